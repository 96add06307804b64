"""Campaigns whose pages show some of the systems: what is drawn and stored, given out, and carried on."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from rated_study import fill_study
from ready_campaigns import PLAIN, draft_campaign
from small_campaigns import add_rater, rate_in_turns
from sqlalchemy import select

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign, without_systems
from creamtea.human.formats.storing import collect
from creamtea.human.making import launching
from creamtea.human.making.preview import preview
from creamtea.human.making.texts import Documents
from creamtea.human.results.ratings import load_ratings
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Assignment, Item

NAMES = [f"s{number:02}" for number in range(12)]
SEGMENTS = 44  # 11 times each system, twice each pair


@pytest.fixture
def many(database: Database) -> Database:
    outputs = [[f"o{segment}-{system}" for system in range(12)] for segment in range(SEGMENTS)]
    fill_study(database, systems=NAMES, outputs=outputs)
    return database


def make(
    database: Database,
    protocol: str = "contrastive-da",
    systems: Sequence[str] = NAMES,
    documents: Documents | None = None,
    name: str = "c",
    **settings: Any,
) -> list[Item]:
    chosen = PLAIN.model_copy(update={"systems_per_page": 3, **settings})
    draft_campaign(database, name, systems=systems, protocol=protocol, settings=chosen, documents=documents)
    with database.session() as session:
        campaign = find_campaign(session, name)
        return list(session.scalars(select(Item).filter_by(campaign_id=campaign.id).order_by(Item.position)))


def spread(counts: Counter[Any], number: int) -> tuple[int, int]:
    """The lowest and the highest count of so many things."""
    assert len(counts) <= number
    return (min(counts.values()) if len(counts) == number else 0), max(counts.values())


# ---------------------------------------------------------------- what is drawn


def test_pages_show_balanced_blocks_with_their_chances(many: Database) -> None:
    items = make(many)
    assert len(items) == SEGMENTS
    assert all(item.systems == (item.block or {})["systems"] and len(item.systems) == 3 for item in items)
    assert all(item.outputs == [f"o{item.segment_index}-{at}" for at in item.systems] for item in items)
    assert spread(Counter(at for item in items for at in item.systems), 12) == (11, 11)
    assert spread(Counter(pair for item in items for pair in combinations(item.systems, 2)), 66) == (2, 2)
    one, two = 3 / 12, 3 * 2 / (12 * 11)
    assert items[0].block == {
        **items[0].block,
        "chances": [[one, two, two], [two, one, two], [two, two, one]],
    }


def test_the_order_in_which_systems_are_listed_changes_nothing(many: Database) -> None:
    def names(items: list[Item], systems: Sequence[str]) -> list[tuple[int, set[str]]]:
        return [(item.segment_index, {systems[at] for at in item.systems}) for item in items]

    backwards = NAMES[::-1]
    assert names(make(many), NAMES) == names(make(many, systems=backwards, name="d"), backwards)


def test_one_output_at_a_time_has_a_block_per_segment(many: Database) -> None:
    items = make(many, "da")
    shown: dict[int, set[int]] = defaultdict(set)
    for item in items:
        (system,) = item.systems
        shown[item.segment_index].add(system)
    assert len(items) == 3 * SEGMENTS
    assert all(sorted(shown[item.segment_index]) == (item.block or {})["systems"] for item in items)
    assert spread(Counter(pair for own in shown.values() for pair in combinations(sorted(own), 2)), 66) == (
        2,
        2,
    )


def test_preferences_compare_the_pairs_of_a_block(many: Database) -> None:
    items = make(many, "preference", select="differing")
    assert spread(Counter(tuple(item.systems) for item in items), 66) == (2, 2)


@pytest.mark.parametrize(("protocol", "pages"), [("contrastive-da", 22), ("esa", 66)])
def test_the_pages_of_a_document_keep_their_systems(many: Database, protocol: str, pages: int) -> None:
    """Eleven documents of four segments, on two pages each."""
    documents = Documents(tuple(f"d{segment // 4}" for segment in range(SEGMENTS)))
    items = make(many, protocol, documents=documents, unit="document", segments_per_page=2)
    assert len({item.page for item in items}) == pages
    shown: dict[str, set[tuple[int, ...]]] = defaultdict(set)
    for item in items:
        shown[item.document].add(tuple((item.block or {})["systems"]))
        assert set(item.systems) <= set((item.block or {})["systems"])
    assert all(len(blocks) == 1 for blocks in shown.values())
    assert spread(Counter(at for (block,) in shown.values() for at in block), 12) in ((2, 3),)


def test_controls_show_what_their_originals_do(many: Database) -> None:
    items = make(many, repeats=4)
    originals = {item.id: item for item in items}
    controls = [item for item in items if item.kind == "repeat"]
    assert len(controls) == 4
    for item in controls:
        original = originals[item.original_id or 0]
        assert (item.systems, item.block) == (original.systems, original.block)


def test_all_systems_share_a_page_where_there_are_no_more(many: Database) -> None:
    few = NAMES[:3]
    items = make(many, systems=few)
    assert {tuple(item.systems) for item in items} == {(0, 1, 2)}
    assert {item.block for item in items} == {None}
    alone = make(many, "da", name="d", systems_per_page=None)
    assert (len(alone), {item.block for item in alone}) == (12 * SEGMENTS, {None})


def test_more_outputs_than_a_page_holds_are_refused(many: Database) -> None:
    with pytest.raises(InputError, match="a page shows at most 8 outputs, and there are 12 systems"):
        make(many, systems_per_page=None)


@pytest.mark.parametrize("design", ["balanced", "adaptive"])
def test_too_few_pages_for_all_systems_are_refused(many: Database, design: str) -> None:
    short = r"systems_per_page: 3 segments with 3 of 12 systems each .* at least 4 segments \(sample\.items\)"
    with pytest.raises(InputError, match=short):
        make(many, items=3, design=design)
    documents = Documents(tuple(f"d{segment // 20}" for segment in range(SEGMENTS)))
    with pytest.raises(InputError, match="3 documents with 3 of 12 systems each"):
        make(many, documents=documents, unit="document", design=design)
    make(many, items=4, design=design)


# ---------------------------------------------------------------- rating


def rate(database: Database, people: int, name: str = "c") -> dict[int, Counter[int]]:
    """Raters take turns until nothing is left: how often each saw each system."""
    launching.launch(database, name)
    raters = [add_rater(database, f"rater {number}", name) for number in range(people)]
    seen: dict[int, Counter[int]] = {rater: Counter() for rater in raters}
    for rater, systems in rate_in_turns(database, raters, lambda systems: [system + 5 for system in systems]):
        seen[rater].update(set(systems))
    return seen


def test_each_rater_sees_all_systems_about_equally_often(many: Database) -> None:
    make(many)
    for counts in rate(many, people=4).values():  # 11 pages of 3: 2.75 times each of 12
        assert sum(counts.values()) == 33
        low, high = spread(counts, 12)
        assert high - low <= 2


def test_documents_are_given_out_evenly_too(many: Database) -> None:
    documents = Documents(tuple(f"d{segment // 2}" for segment in range(SEGMENTS)))
    make(many, documents=documents, unit="document", segments_per_page=2)
    for counts in rate(many, people=2).values():  # of 22 documents 11 each
        low, high = spread(counts, 12)
        assert high - low <= 2
    with many.session() as session:  # a document stays with one rater
        rows = session.execute(select(Item.document, Assignment.rater_id).join(Assignment)).all()
    assert len(set(rows)) == 22


# ---------------------------------------------------------------- afterwards


def test_comparisons_count_the_segments_that_both_systems_share(many: Database) -> None:
    make(many, name="c")
    plan = preview(many, "c")
    assert plan.units == pytest.approx(8)  # 11, of which 12·2/(3·11) tell of a difference
    power = dict(plan.facts())["power"]
    assert ("over 66 pairs of systems" in power, "Holm" in power, "paired" in power) == (True, False, False)
    make(many, name="whole", systems=NAMES[:3])
    # 44 segments are worth 8: as many segments of three systems alone need 44/8 times as many
    assert plan.units_needed == pytest.approx(44 / 8 * (preview(many, "whole").units_needed or 0), abs=1)
    rate(many, people=1)
    with many.session() as session:
        ratings = load_ratings(session, find_campaign(session, "c"))
    assert (~(ratings.matrix() != ratings.matrix())).sum() == 3 * SEGMENTS  # the others are NaN
    report = build_human(many, "c")
    assert {row.cells["items"].value for row in report.table("means").rows} == {11.0}
    compared = report.table("comparisons").rows
    assert {row.cells["shared"].value for row in compared} == {2.0}
    # each score is its system's number: one output is better than another by as much on all pages
    ranked = report.table("ranks").rows
    assert [row.name for row in ranked] == NAMES[::-1]
    assert compared[0].cells["difference"].value == pytest.approx(11 * 0.2)
    assert {row.cells["difference"].note for row in compared} == {"no spread to judge by"}
    assert [(row.cells["rank_low"].value, row.cells["rank_high"].value) for row in ranked] == [(1, 12)] * 12


def test_an_export_brings_the_blocks_back(many: Database, tmp_path: Path) -> None:
    make(many)
    rate(many, people=1)
    export_campaign(many, "c", "jsonl", tmp_path / "out", "test")
    import_campaign(many, tmp_path / "out", "jsonl", ImportFacts("again"), "test")
    before, after = collect(many, "c"), collect(many, "again")
    assert before.items == after.items
    first = before.items[0]
    assert (first.block or {})["systems"] == list(first.systems)
    with many.session() as session:  # by positions, as in the campaign
        assert launching.items_digest(session, find_campaign(session, "c").id) == launching.items_digest(
            session, find_campaign(session, "again").id
        )
    left, _ = without_systems(before, [first.systems[1]])
    assert left.items[0].block == {
        "systems": [first.systems[0], first.systems[2]],
        "chances": [[0.25, 1 / 22], [1 / 22, 0.25]],
    }


def test_what_was_drawn_is_registered(many: Database) -> None:
    make(many)
    launching.launch(many, "c")
    with many.transaction() as session:
        campaign = find_campaign(session, "c")
        assert launching.changes(session, campaign) == []
        item = session.scalars(select(Item).filter_by(campaign_id=campaign.id)).all()[0]
        item.block = {**(item.block or {}), "chances": [[1.0] * 3] * 3}
        session.flush()
        assert launching.changes(session, campaign) == ["items"]
