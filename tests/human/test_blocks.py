"""Campaigns whose pages show some of the systems: what is drawn, stored, given out, and carried on.

Balanced blocks are drawn when a campaign is made; those of an adaptive design when their turn comes, from
what was rated before.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rated_study import fill_study
from ready_campaigns import PLAIN, draft_campaign, launched_campaign
from small_campaigns import (
    add_rater,
    changes_of,
    exchanged,
    items_of,
    rate_in_turns,
    results_of,
    system_of,
    work_for,
)
from sqlalchemy import select
from sqlalchemy.orm import Session
from table_rows import all_of, one_of

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.exchange import without_systems
from creamtea.human.formats.storing import collect
from creamtea.human.making import design, launching
from creamtea.human.making.campaigns import progress_by_kind, summary
from creamtea.human.making.design import balanced_blocks, block_of
from creamtea.human.making.preview import preview
from creamtea.human.making.texts import Documents
from creamtea.human.protocols import find_protocol
from creamtea.human.rating import adaptive, raters
from creamtea.human.rating.adaptive import Blocks, next_part, store_part
from creamtea.report.human.build import build_human
from creamtea.report.model import Document, Notes
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Assignment, Campaign, Item, Rater, Segment, StudyRow

NAMES = [f"s{number:02}" for number in range(12)]
MEANS = np.array(
    [0, 0, 1, 1, 8, 12, 6, 7, 8, 9, 10, 11]
)  # steps above 5: of six the last two are soon decided
BALANCED = 44  # segments: 11 times each of twelve systems, twice each pair
ADAPTIVE = 60  # segments of six systems


@pytest.fixture(autouse=True)
def few_exchanges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that designs that cannot be balanced do not take seconds."""
    if "six" in request.fixturenames:
        monkeypatch.setattr(design, "MAX_EXCHANGES", 200)


def filled(database: Database, systems: int, segments: int) -> Database:
    outputs = [[f"o{segment}-{at} a b c d" for at in range(systems)] for segment in range(segments)]
    fill_study(database, systems=NAMES[:systems], outputs=outputs)
    with database.transaction() as session:
        for segment in session.scalars(select(Segment)):
            segment.reference = f"reference {segment.index} of the test set"
    return database


@pytest.fixture
def twelve(database: Database) -> Database:
    return filled(database, 12, BALANCED)


@pytest.fixture
def six(database: Database) -> Database:
    return filled(database, 6, ADAPTIVE)


def make(
    database: Database,
    protocol: str = "contrastive-da",
    name: str = "c",
    systems: Sequence[str] | None = None,
    documents: int = 0,
    k: int = 1,
    **settings: Any,
) -> list[Item]:
    """The items of a draft, adaptive if there are six systems; `documents`: of so many segments each."""
    segments = len(all_of(database, select(Segment.index)))
    of_all = [*one_of(database, select(StudyRow.spec))["systems"]]
    names = Documents(tuple(f"d{at // documents}" for at in range(segments))) if documents else None
    given = {"systems_per_page": 3, "design": "adaptive" if len(of_all) == 6 else "balanced"}
    given["unit"] = "document" if documents else "segment"
    chosen = PLAIN.model_copy(update={**given, **settings})
    texts: dict[str, Any] = {"systems": systems or of_all, "documents": names, "ratings_per_item": k}
    draft_campaign(database, name, protocol=protocol, settings=chosen, **texts)
    return items_of(database, name)


def rate(database: Database, people: int, stop: int | None = None) -> list[tuple[int, list[int]]]:
    """Raters take turns until nothing is left, or so many pages are rated: who rated which systems."""
    with database.session() as session:
        campaign = find_campaign(session, "c")
        protocol = find_protocol(campaign.protocol)
    if campaign.state == "draft":
        launching.launch(database, "c")
        for number in range(people):
            add_rater(database, f"rater {number}")
    with database.session() as session:
        raters = list(session.scalars(select(Rater.id).order_by(Rater.id)))
    rng = np.random.default_rng(2)

    def answer(systems: list[int]) -> list[Any]:
        if protocol.relative:
            one, other = MEANS[systems]
            first = int(one > other) + int(one >= other)
            return [first, 2 - first]
        return [int(np.clip(5 + MEANS[at] + rng.integers(-2, 3), 0, 25)) for at in systems]

    return rate_in_turns(database, raters, answer, stop)


def spread(counts: Counter[Any], number: int) -> tuple[int, int]:
    """The lowest and the highest count of so many things."""
    assert len(counts) <= number
    return (min(counts.values()) if len(counts) == number else 0), max(counts.values())


# ---------------------------------------------------------------- balanced: what is drawn


def test_pages_show_balanced_blocks_with_their_chances(twelve: Database) -> None:
    items = make(twelve)
    assert len(items) == BALANCED
    assert all(item.systems == (item.block or {})["systems"] and len(item.systems) == 3 for item in items)
    assert all(
        item.outputs == [f"o{item.segment_index}-{at} a b c d" for at in item.systems] for item in items
    )
    assert spread(Counter(at for item in items for at in item.systems), 12) == (11, 11)
    assert spread(Counter(pair for item in items for pair in combinations(item.systems, 2)), 66) == (2, 2)
    one, two = 3 / 12, 3 * 2 / (12 * 11)
    assert items[0].block == {
        **items[0].block,
        "chances": [[one, two, two], [two, one, two], [two, two, one]],
    }


def test_the_order_in_which_systems_are_listed_changes_nothing(twelve: Database) -> None:
    def names(items: list[Item], systems: Sequence[str]) -> list[tuple[int, set[str]]]:
        return [(item.segment_index, {systems[at] for at in item.systems}) for item in items]

    backwards = NAMES[::-1]
    assert names(make(twelve), NAMES) == names(make(twelve, name="d", systems=backwards), backwards)


@pytest.mark.parametrize("protocol", ["da", "preference"])
def test_smaller_items_meet_by_the_blocks_of_their_segments(twelve: Database, protocol: str) -> None:
    items = make(twelve, protocol, select="all" if protocol == "da" else "differing")
    met: Counter[tuple[int, ...]] = Counter()
    for segment in range(BALANCED):
        own = [item for item in items if item.segment_index == segment]
        (block,) = {tuple((item.block or {})["systems"]) for item in own}
        shown = sorted(tuple(item.systems) for item in own)
        assert shown == list(combinations(block, 2 if protocol == "preference" else 1))
        met.update(combinations(block, 2))
    assert spread(met, 66) == (2, 2)


@pytest.mark.parametrize(("protocol", "pages"), [("contrastive-da", 22), ("esa", 66)])
def test_the_pages_of_a_document_keep_their_systems(twelve: Database, protocol: str, pages: int) -> None:
    """Eleven documents of four segments, on two pages each."""
    items = make(twelve, protocol, documents=4, segments_per_page=2)
    assert len({item.page for item in items}) == pages
    shown: dict[str, set[tuple[int, ...]]] = defaultdict(set)
    for item in items:
        shown[item.document].add(tuple((item.block or {})["systems"]))
        assert set(item.systems) <= set((item.block or {})["systems"])
    assert all(len(blocks) == 1 for blocks in shown.values())
    assert spread(Counter(at for (block,) in shown.values() for at in block), 12) == (2, 3)


def test_all_systems_share_a_page_where_there_are_no_more(twelve: Database) -> None:
    items = make(twelve, systems=NAMES[:3])
    assert {(tuple(item.systems), item.block) for item in items} == {((0, 1, 2), None)}
    alone = make(twelve, "da", name="d", systems_per_page=None)
    assert (len(alone), {item.block for item in alone}) == (12 * BALANCED, {None})
    with pytest.raises(InputError, match="a page shows at most 8 outputs, and there are 12 systems"):
        make(twelve, name="e", systems_per_page=None)


@pytest.mark.parametrize("design", ["balanced", "adaptive"])
def test_too_few_pages_for_all_systems_are_refused(twelve: Database, design: str) -> None:
    short = r"systems_per_page: 3 segments with 3 of 12 systems each .* at least 4 segments \(sample\.items\)"
    with pytest.raises(InputError, match=short):
        make(twelve, items=3, design=design)
    with pytest.raises(InputError, match="3 documents with 3 of 12 systems each"):
        make(twelve, documents=20, design=design)
    make(twelve, items=4, design=design)


@pytest.mark.parametrize(("documents", "people"), [(0, 4), (2, 2)])
def test_each_rater_sees_all_systems_about_equally_often(
    twelve: Database, documents: int, people: int
) -> None:
    """11 pages of three systems each, or of 22 documents 11."""
    make(twelve, documents=documents, **({"segments_per_page": 2} if documents else {}))
    seen: dict[int, Counter[int]] = defaultdict(Counter)
    for rater, systems in rate(twelve, people):
        seen[rater].update(set(systems))
    for counts in seen.values():
        low, high = spread(counts, 12)
        assert (sum(counts.values()), high - low <= 2) == (33, True)
    if documents:
        with twelve.session() as session:  # a document stays with one rater
            rows = session.execute(select(Item.document, Assignment.rater_id).join(Assignment)).all()
        assert len(set(rows)) == 22


def test_comparisons_count_the_segments_that_both_systems_share(twelve: Database) -> None:
    make(twelve)
    plan = preview(twelve, "c")
    assert plan.units == pytest.approx(8)  # 11, of which 12·2/(3·11) tell of a difference
    power = dict(plan.facts())["power"]
    assert "these raters only" not in power
    assert ("over 66 pairs of systems" in power, "Holm" in power, "paired" in power) == (True, False, False)
    make(twelve, name="whole", systems=NAMES[:3])
    # 44 segments are worth 8: as many segments of three systems alone need 44/8 times as many
    assert plan.units_needed == pytest.approx(44 / 8 * (preview(twelve, "whole").units_needed or 0), abs=1)
    launching.launch(twelve, "c")
    rate_in_turns(twelve, [add_rater(twelve)], lambda systems: [system + 5 for system in systems])
    assert np.isfinite(results_of(twelve).matrix()).sum() == 3 * BALANCED
    report = build_human(twelve, "c")
    assert {row.cells["items"].value for row in report.table("means").rows} == {11.0}
    compared = report.table("comparisons").rows
    assert {row.cells["shared"].value for row in compared} == {2.0}
    # each score is its system's number: one output is better than another by as much on all pages
    ranked = report.table("ranks").rows
    assert [row.name for row in ranked] == NAMES[::-1]
    assert compared[0].cells["difference"].value == pytest.approx(11 * 0.2)
    assert {row.cells["difference"].note for row in compared} == {"no spread to judge by"}
    assert [(row.cells["rank_low"].value, row.cells["rank_high"].value) for row in ranked] == [(1, 12)] * 12


# ---------------------------------------------------------------- both: controls, registration, exchange


@pytest.mark.parametrize("study", ["twelve", "six"])
def test_controls_show_what_their_originals_do_with_one_text_spoilt(
    study: str, request: pytest.FixtureRequest
) -> None:
    database = request.getfixturevalue(study)
    make(database, bad_references=5, repeats=5, items=20)
    if study == "six":
        rate(database, people=1)  # for their blocks to be drawn
    items = items_of(database)
    originals = {item.id: item for item in items}
    kinds = Counter(item.kind for item in items if item.shown)
    assert (kinds["bad-reference"], kinds["repeat"]) == (5, 5)
    for item in items:
        if item.original_id is None:
            continue
        original = originals[item.original_id]
        assert (item.shown, item.block) == (original.shown, original.block)
        texts = zip(item.systems, item.outputs, original.outputs, strict=True)
        differs = [system for system, own, other in texts if own != other]
        assert differs == ([] if item.kind == "repeat" else [item.degraded])
        assert set(differs) <= set(item.shown)


@pytest.mark.parametrize("study", ["twelve", "six"])
def test_an_export_brings_the_blocks_back(study: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    database = request.getfixturevalue(study)
    make(database, bad_references=3)
    rate(database, people=1, stop=30)
    before, after = collect(database, "c"), exchanged(database, tmp_path, "jsonl")
    assert before.items == after.items
    ranks = [build_human(database, name).table("ranks").rows for name in ("c", "again")]
    assert ranks[0] == ranks[1]
    with database.session() as session:  # by positions, as in the campaign
        digests = [launching.items_digest(session, find_campaign(session, n).id) for n in ("c", "again")]
    assert digests[0] == digests[1]
    if study == "twelve":
        first = before.items[0]
        assert (first.block or {})["systems"] == list(first.systems)
        left, _ = without_systems(before, [first.systems[1]])
        assert left.items[0].block == {
            "systems": [first.systems[0], first.systems[2]],
            "chances": [[0.25, 1 / 22], [1 / 22, 0.25]],
        }


def test_what_was_drawn_is_registered(twelve: Database) -> None:
    make(twelve)
    launching.launch(twelve, "c")
    assert changes_of(twelve) == []
    with twelve.transaction() as session:
        item = session.scalars(select(Item)).first()
        item.block = {**(item.block or {}), "chances": [[1.0] * 3] * 3}
    assert changes_of(twelve) == ["items"]


def test_the_registration_stands_while_blocks_are_drawn(six: Database) -> None:
    make(six, bad_references=3)
    rate(six, people=2, stop=12)
    assert changes_of(six) == []
    with six.transaction() as session:
        analysis = (find_campaign(session, "c").registered or {})["analysis"]
        assert "looks after 40%, 60%, 80%, 100%" in analysis["early end"]
        assert "weigh 1/√q" in analysis["items"]
        # outputs of a bad reference are drawn later, and so are not registered
        item = session.scalars(select(Item).filter_by(kind="rated").order_by(Item.position)).first()
        item.outputs = ["other", *item.outputs[1:]]
    assert changes_of(six) == ["items"]


# ---------------------------------------------------------------- adaptive: turns


def test_a_part_that_somebody_else_has_drawn_is_not_drawn_again(six: Database) -> None:
    make(six)
    launching.launch(six, "c")
    with six.transaction() as session:
        campaign = find_campaign(session, "c")
        blocks = select(Item.block).order_by(Item.position)
        blocks_of_part = next_part(session, campaign)
        store_part(session, campaign, 0, blocks_of_part)
        drawn = session.scalars(blocks).all()
        assert sum(block is not None for block in drawn) == ADAPTIVE // design.STEPS == len(blocks_of_part)
        other = dict(zip(blocks_of_part, reversed(blocks_of_part.values()), strict=True))
        store_part(session, campaign, 0, other)
        assert session.scalars(blocks).all() == drawn


def test_one_rater_estimates_for_all_who_wait(six: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    make(six)
    rate(six, people=5, stop=ADAPTIVE // design.STEPS)
    with six.session() as session:
        people = session.scalars(select(Rater.id)).all()
    parts: list[Blocks] = []

    def estimate(session: Session, campaign: Campaign) -> Blocks:
        add_rater(six, f"comes meanwhile {len(parts)}")  # nothing is locked
        parts.append(next_part(session, campaign))
        return parts[-1]

    monkeypatch.setattr(adaptive, "next_part", estimate)
    with ThreadPoolExecutor(5) as pool:
        works = list(pool.map(lambda rater: work_for(six, rater), people))
    assert len(parts) == 1
    assert len({work.assignment_id for work in works}) == 5


def test_pages_are_drawn_a_tenth_at_a_time(six: Database) -> None:
    make(six)
    assert {item.block for item in items_of(six)} == {None}
    rate(six, people=2, stop=1)
    items = items_of(six)
    turned = [item for item in items if item.drawn]
    assert turned == items[: ADAPTIVE // 10]
    assert all(item.shown == (item.block or {})["systems"] and len(item.shown) == 3 for item in turned)
    one, two = 3 / 6, 3 * 2 / (6 * 5)  # before anything is known all systems are drawn alike
    assert (turned[0].block or {})["chances"] == [[one, two, two], [two, one, two], [two, two, one]]
    rate(six, people=2)
    assert all(item.drawn for item in items_of(six))


@pytest.mark.parametrize(("pages", "documents"), [(2, 0), (7, 0), (2, 30)])
def test_the_first_pages_show_every_system(six: Database, pages: int, documents: int) -> None:
    """A tenth of so few pages would show three systems, and the next ones might show them again."""
    pages_of = {"segments_per_page": 30} if documents else {}
    make(six, items=pages, documents=documents, **pages_of)
    rate(six, people=1, stop=2)
    turned = [item for item in items_of(six) if item.drawn]
    assert {system for item in turned for system in item.shown} == set(range(6))
    assert len({item.document or item.id for item in turned}) == 2


def test_open_systems_come_more_often_and_raters_see_only_what_was_drawn(six: Database) -> None:
    make(six)
    rate(six, people=8)
    items = items_of(six)
    later = Counter(at for item in items[20:] for at in item.shown)
    assert sum(later[at] for at in range(4)) / 4 > 1.3 * (later[4] + later[5]) / 2 > 0
    with six.session() as session:
        orders = session.execute(select(Assignment.item_id, Assignment.order)).all()
    ratings = results_of(six)
    shown = {item.id: item.shown for item in items}
    for item, order in orders:
        assert sorted(system for group in order for system in group) == shown[item]
    assert (ratings.turns, ratings.finished, len(orders)) == (ADAPTIVE, ADAPTIVE, ADAPTIVE)
    chances = {round(block["chances"][0][1], 6) for block in ratings.blocks if block is not None}
    assert len(chances) > 1
    assert all(0 < chance <= 1 for chance in chances)


def test_the_past_alone_decides(six: Database) -> None:
    """The same answers lead to the same blocks, whatever comes later."""
    make(six)
    make(six, name="d")
    for name in ("c", "d"):
        launching.launch(six, name)
    first, second = add_rater(six, "anna", "c"), add_rater(six, "ben", "d")
    for _ in range(20):
        for rater in (first, second):
            work = assignment.next_item(six, rater)
            systems = [system_of(text) for text in work.outputs]
            assignment.submit(six, rater, work.assignment_id, [int(5 + MEANS[at]) for at in systems])
    assert [item.block for item in items_of(six)] == [item.block for item in items_of(six, "d")]


@pytest.mark.parametrize("protocol", ["contrastive-da", "da", "preference"])
def test_a_document_keeps_its_systems(six: Database, protocol: str) -> None:
    if protocol == "preference":
        make(six, protocol, select="differing", items=20)
    else:
        make(six, protocol, documents=3, segments_per_page=2, items=7)
    rate(six, people=2)
    shown: dict[str | int, set[int]] = defaultdict(set)
    for item in items_of(six):
        key = item.document or item.segment_index
        assert item.drawn == ((set(item.systems) & set((item.block or {})["systems"])) != set()) or (
            protocol == "preference"
        )
        if item.drawn:
            shown[key].update(item.shown)
            assert len(item.shown) == {"da": 1, "preference": 2, "contrastive-da": 3}[protocol]
    assert {len(systems) for systems in shown.values()} == {3}
    with six.session() as session:
        campaign = find_campaign(session, "c")
        (kind,) = progress_by_kind(session, campaign)
    assert kind.submitted == kind.wanted == kind.items - kind.passed_over
    assert build_human(six, "c").table("ranks").rows


def test_results_come_at_looks(six: Database) -> None:
    make(six)
    rate(six, people=8, stop=23)
    early = build_human(six, "c")
    assert "the first of 4 looks comes once 24 of 60 are rated" in {
        row.cells["verdict"].note for row in early.table("comparisons").rows
    }
    rate(six, people=8, stop=1)
    first = build_human(six, "c").table("ranks")
    assert "This look is over 24 of 60." in first.about
    rate(six, people=8, stop=5)
    between = build_human(six, "c")
    assert between.table("ranks").rows == first.rows
    of_means = {row.name: row.cells["ratings"].value for row in between.table("means").rows}
    assert of_means == {row.name: row.cells["scores"].value for row in first.rows}
    assert sum(of_means.values()) == 24 * 3
    assert "72 scores count" in notes_of(between)
    assert "scores after the last look, until the next look: 15" in notes_of(between)
    rate(six, people=8)
    last = build_human(six, "c")
    assert "This look is over 60 of 60." in last.table("ranks").about
    ranks = {row.name: row.cells for row in last.table("ranks").rows}
    assert (ranks["s05"]["rank_low"].value, ranks["s05"]["rank_high"].value) == (1, 1)
    assert "looks" not in {block.key for _, block in last.walk() if hasattr(block, "key")}


@pytest.mark.parametrize(("protocol", "per_segment"), [("contrastive-da", 1), ("da", 3), ("preference", 3)])
def test_progress_expects_of_undrawn_turns_what_the_preview_expects(
    six: Database, protocol: str, per_segment: int
) -> None:
    """Raters get 60 pages, or 180 of 360 outputs, or 180 of 900 pairs."""
    make(six, protocol, k=2)
    wanted = 2 * ADAPTIVE * per_segment
    assert preview(six, "c").ratings == wanted
    for stop in (0, 20):
        if stop:
            rate(six, people=2, stop=stop)
        with six.session() as session:
            campaign = find_campaign(session, "c")
            (kind,) = progress_by_kind(session, campaign)
            expected = raters.workload_of(session, campaign).items
        assert summary(six, "c").wanted == kind.wanted == pytest.approx(wanted, abs=6)
        assert expected == wanted / 2
    assert results_of(six).wanted == pytest.approx(wanted, abs=6)


def notes_of(report: Document) -> str:
    return " ".join(
        words for _, block in report.walk() if isinstance(block, Notes) for words in block.paragraphs
    )


def test_a_closed_campaign_keeps_its_looks_without_an_excluded_rater(six: Database) -> None:
    make(six)
    rate(six, people=8)
    with six.transaction() as session:
        session.scalars(select(Rater).limit(1)).one().excluded_at = six.now(session)
    assert results_of(six).finished < 24  # others could rate these items
    launching.close(six, "c", "done")
    assert results_of(six).finished == ADAPTIVE
    assert "This look is over 60 of 60." in build_human(six, "c").table("ranks").about


def test_a_campaign_that_is_closed_before_a_look_says_so(six: Database) -> None:
    make(six)
    rate(six, people=2, stop=10)
    launching.close(six, "c", "tired")
    notes = {row.cells["mean"].note for row in build_human(six, "c").table("means").rows}
    assert notes == {"closed before the first of 4 looks, over 24 of 60"}


def test_a_mean_of_preferences_is_the_share_of_pairs_won(six: Database) -> None:
    """Systems meet about equally often; the best wins each pair, the worst none."""
    make(six, "preference", design="balanced")
    rate(six, people=2)
    ratings = results_of(six)
    rows = {row.name: row.cells["mean"] for row in build_human(six, "c").table("means").rows}
    for at, name in enumerate(NAMES[:6]):
        share = ratings.value[ratings.system == at].mean()
        assert rows[name].value == pytest.approx(share, abs=0.02)
    # on the scale from 0 to 2
    assert rows["s05"].value == pytest.approx(2, abs=0.02)
    assert rows["s00"].value == pytest.approx(0.2, abs=0.02)  # it ties with one of five


def test_single_outputs_in_blocks_are_about_these_raters_and_count_to_the_look(six: Database) -> None:
    make(six, "da", documents=3, k=2)
    assert "decide for these raters only" in dict(preview(six, "c").facts())["power"]
    rate(six, people=3, stop=60)  # of 20 documents with 3 systems and 2 raters: 120 pages
    report = build_human(six, "c")
    ratings = results_of(six)
    assert len(set(ratings.document.tolist())) > ratings.finished >= 8
    notes = [words for _, block in report.walk() if block.key == "notes" for words in block.paragraphs]
    assert any("tests are over 8 documents" in words for words in notes)  # the look at 40 %
    (left_out,) = [words for words in notes if "adaptive design" in words]
    assert f"adaptive design did not give to raters: {ratings.left_out.passed_over}" in left_out
    verdicts = [row.cells["verdict"] for row in report.table("comparisons").rows]
    decided = {cell.note for cell in verdicts if "these raters" in cell.words}
    assert decided
    assert all("side by side" in note for note in decided)
    with six.session() as session:
        registered = (find_campaign(session, "c").registered or {})["analysis"]
    assert "outputs shown one at a time, undecided" in registered["verdict"]


def test_balanced_blocks_have_no_early_end(twelve: Database) -> None:
    make(twelve, "da", k=2)
    rate(twelve, people=2, stop=200)
    keys = {block.key for _, block in build_human(twelve, "c").walk() if hasattr(block, "key")}
    assert "comparisons" in keys
    assert "looks" not in keys
    with twelve.session() as session:
        registered = (find_campaign(session, "c").registered or {})["analysis"]
    assert registered["early end"] == "none"
    rate(twelve, people=2)
    shared = {row.cells["shared"].value for row in build_human(twelve, "c").table("comparisons").rows}
    assert shared == {2 * 2 * 2.0}  # on two segments, two raters' scores of each, of single outputs


def test_a_skipped_page_holds_no_look_up(six: Database) -> None:
    make(six, items=12)
    launching.launch(six, "c")
    anna = add_rater(six)
    assignment.skip(six, anna, work_for(six, anna).assignment_id, "I do not understand the source")
    rate(six, people=0)
    ratings = results_of(six)
    assert (ratings.turns, ratings.finished, len(ratings.segment_index)) == (12, 12, 11)


def test_a_campaign_that_aimed_finishes_by_rating_what_is_left(six: Database) -> None:
    """Its items are as migration 0022 leaves them."""
    launched_campaign(six, systems=NAMES[:3])
    with six.transaction() as session:
        campaign = find_campaign(session, "c")
        campaign.settings = {**campaign.settings, "aim": True}
        for at, item in enumerate(session.scalars(select(Item).order_by(Item.position))):
            if at < 30:  # had their turn: of the last six the third system was settled
                item.drawn, item.output_drawn = True, [True, True, at < 24]
                systems = [0, 1, 2][: sum(item.output_drawn)]
                item.block = {"systems": systems, "chances": [[1.0] * len(systems)] * len(systems)}
    anna = add_rater(six, "anna")
    seen = []
    while (work := assignment.next_item(six, anna)) is not None:
        seen.append(len(work.outputs))
        systems = [system_of(text) for text in work.outputs]
        assignment.submit(six, anna, work.assignment_id, [5 + at + len(seen) % 3 * at for at in systems])
    assert seen == [3] * 24 + [2] * 6 + [3] * 30
    report = build_human(six, "c")
    assert {row.name: row.cells["rank_high"].value for row in report.table("ranks").rows}["s02"] == 1
    compared = report.table("comparisons")
    assert {"difference", "p_family", "p_t", "p_signed_rank"} <= {*compared.rows[0].cells}
    assert "by least squares" in compared.about
    assert "names another test: “paired t-test" in compared.about


def test_a_draft_that_aims_is_made_anew(six: Database) -> None:
    make(six)
    with six.transaction() as session:
        campaign = find_campaign(session, "c")
        campaign.settings = {**campaign.settings, "aim": True}
    with pytest.raises(InputError, match=r"sample\.design adaptive has replaced"):
        launching.launch(six, "c")


# ---------------------------------------------------------------- balanced designs, by their properties


def counts(blocks: list[list[int]], systems: int) -> tuple[list[int], list[int]]:
    """How many blocks each system is in, and how many each pair shares."""
    shown = Counter(system for block in blocks for system in block)
    met = Counter(pair for block in blocks for pair in combinations(block, 2))
    pairs = combinations(range(systems), 2)
    return [shown[system] for system in range(systems)], [met[pair] for pair in pairs]


def width(values: list[int]) -> int:
    return max(values) - min(values)


# blocks, systems, size: the projective planes of orders 2 and 3, the affine plane of order 3, a biplane,
# Kirkman's fifteen, and pairs alone
EXACT = [(7, 7, 3), (13, 13, 4), (12, 9, 3), (11, 11, 5), (35, 15, 3), (290, 30, 3), (45, 10, 2)]


@pytest.mark.parametrize(("blocks", "systems", "size"), EXACT)
def test_designs_that_exist_are_found(blocks: int, systems: int, size: int) -> None:
    for seed in range(3):
        shown, met = counts(balanced_blocks(blocks, systems, size, str(seed)), systems)
        assert (width(shown), width(met)) == (0, 0)


# as campaigns have them; the sixth has 9 of 435 pairs one further off
USUAL = [
    *((500, 13, 3, 1), (71, 13, 3, 1), (500, 30, 3, 1), (1000, 60, 3, 1), (300, 12, 5, 1)),
    *((145, 30, 3, 2), (100, 30, 7, 3), (60, 60, 8, 3)),
]


@pytest.mark.parametrize(("blocks", "systems", "size", "apart"), USUAL)
def test_pairs_of_campaigns_meet_equally_often(blocks: int, systems: int, size: int, apart: int) -> None:
    shown, met = counts(balanced_blocks(blocks, systems, size, "1/blocks"), systems)
    assert width(shown) <= 1
    assert width(met) <= apart
    usual = round(sum(met) / len(met))
    assert sum(abs(count - usual) > 1 for count in met) <= len(met) / 20


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_blocks_of_any_size_are_drawn_by_the_seed(data: st.DataObject) -> None:
    systems = data.draw(st.integers(3, 14))
    size = data.draw(st.integers(2, min(8, systems - 1)))
    blocks, seed = data.draw(st.integers(0, 40)), data.draw(st.text(max_size=5))
    with patch.object(design, "MAX_EXCHANGES", 3000):
        found = balanced_blocks(blocks, systems, size, seed)
        assert found == balanced_blocks(blocks, systems, size, seed)
    assert len(found) == blocks
    assert all(len(set(block)) == size and block == sorted(block) for block in found)
    assert all(0 <= system < systems for block in found for system in block)
    shown, met = counts(found, systems)
    assert width(shown) <= 1
    usual = round(sum(met) / len(met))
    assert sum(abs(count - usual) > 1 for count in met) <= len(met) / 8  # there are none of some sizes


def test_every_stretch_of_pages_shows_all_systems_about_equally_often() -> None:
    """A campaign that ends early is balanced, too, and so are the segments of a document."""
    blocks = balanced_blocks(500, 30, 3, "1")
    for start, end in pairwise(range(0, 501, 50)):  # 5 of each
        shown, _ = counts(blocks[start:end], 30)
        assert 3 <= min(shown) <= max(shown) <= 7


def test_systems_and_pairs_are_drawn_with_the_stored_chances() -> None:
    """Of one block, over seeds: the search favours nobody."""
    draws, systems, size = 2000, 7, 3
    firsts = [balanced_blocks(5, systems, size, str(seed))[2] for seed in range(draws)]
    shown, met = counts(firsts, systems)
    chances = block_of(firsts[0], systems)["chances"]
    for number, chance in [(n, chances[1][1]) for n in shown] + [(n, chances[0][2]) for n in met]:
        deviation = (chance * (1 - chance) / draws) ** 0.5
        assert abs(number / draws - chance) < 4.5 * deviation


@pytest.mark.parametrize("size", [1, 5, 6])
def test_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="a block has from 2 to 4 of 5 systems"):
        balanced_blocks(3, 5, size, "1")
