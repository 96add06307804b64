"""Adaptive designs: blocks are drawn when their turn comes, from what was rated before, and stored."""

from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rated_study import fill_study
from ready_campaigns import PLAIN, draft_campaign, launched_campaign
from small_campaigns import add_rater, rate_in_turns, system_of, work_for
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.making import design, launching
from creamtea.human.making.campaigns import progress_by_kind
from creamtea.human.making.texts import Documents
from creamtea.human.protocols import find_protocol
from creamtea.human.rating import adaptive
from creamtea.human.rating.adaptive import NextPart, next_part, store_part
from creamtea.human.results.ratings import load_ratings
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Assignment, Campaign, Item, Rater, Segment

NAMES = [f"s{number}" for number in range(6)]
MEANS = np.array([0, 0, 1, 1, 8, 12])  # steps above 5: the last two are soon decided
SEGMENTS = 60


@pytest.fixture(autouse=True)
def few_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that designs that cannot be balanced do not take seconds."""
    monkeypatch.setattr(design, "MAX_EXCHANGES", 200)


@pytest.fixture
def many(database: Database) -> Database:
    outputs = [[f"o{segment}-{system} a b c d" for system in range(6)] for segment in range(SEGMENTS)]
    fill_study(database, systems=NAMES, outputs=outputs)
    with database.transaction() as session:
        for segment in session.scalars(select(Segment)):
            segment.reference = f"reference {segment.index} of the test set"
    return database


def make(
    database: Database, protocol: str = "contrastive-da", name: str = "c", documents: int = 0, **settings: Any
) -> None:
    """`documents`: of so many segments each."""
    names = Documents(tuple(f"d{at // documents}" for at in range(SEGMENTS))) if documents else None
    given = {"systems_per_page": 3, "design": "adaptive", "unit": "document" if documents else "segment"}
    chosen = PLAIN.model_copy(update={**given, **settings})
    draft_campaign(database, name, systems=NAMES, protocol=protocol, settings=chosen, documents=names)


def rate(database: Database, people: int, stop: int | None = None, name: str = "c") -> None:
    """Raters take turns until nothing is left, or so many pages are rated."""
    with database.session() as session:
        draft = find_campaign(session, name).state == "draft"
    if draft:
        launching.launch(database, name)
        for number in range(people):
            add_rater(database, f"rater {number}", name)
    with database.session() as session:
        campaign = find_campaign(session, name)
        protocol, raters = find_protocol(campaign.protocol), [rater.id for rater in campaign_raters(session)]
    rng = np.random.default_rng(2)

    def answer(systems: list[int]) -> list[Any]:
        if protocol.relative:
            one, other = MEANS[systems]
            first = int(one > other) + int(one >= other)
            return [first, 2 - first]
        return [int(np.clip(5 + MEANS[at] + rng.integers(-2, 3), 0, 25)) for at in systems]

    rate_in_turns(database, raters, answer, stop)


def campaign_raters(session: Any) -> list[Any]:
    return list(session.scalars(select(Rater).order_by(Rater.id)))


def items_of(database: Database, name: str = "c") -> list[Item]:
    with database.session() as session:
        campaign = find_campaign(session, name)
        return list(session.scalars(select(Item).filter_by(campaign_id=campaign.id).order_by(Item.position)))


# ---------------------------------------------------------------- turns


def test_a_part_that_somebody_else_has_drawn_is_not_drawn_again(many: Database) -> None:
    make(many)
    launching.launch(many, "c")
    with many.transaction() as session:
        campaign = find_campaign(session, "c")
        part = next_part(session, campaign)
        store_part(session, campaign, part)
        drawn = [item.block for item in session.scalars(select(Item).order_by(Item.position))]
        assert sum(block is not None for block in drawn) == SEGMENTS // design.STEPS == len(part.blocks)
        other = dict(zip(part.blocks, reversed(part.blocks.values()), strict=True))
        store_part(session, campaign, replace(part, blocks=other))
        assert [item.block for item in session.scalars(select(Item).order_by(Item.position))] == drawn


def test_one_rater_estimates_for_all_who_wait(many: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    make(many)
    rate(many, people=5, stop=SEGMENTS // design.STEPS)
    with many.session() as session:
        people = [rater.id for rater in campaign_raters(session)]
    parts: list[NextPart | None] = []

    def estimate(session: Session, campaign: Campaign) -> NextPart | None:
        add_rater(many, f"comes meanwhile {len(parts)}")  # nothing is locked
        parts.append(next_part(session, campaign))
        return parts[-1]

    monkeypatch.setattr(adaptive, "next_part", estimate)
    with ThreadPoolExecutor(5) as pool:
        works = list(pool.map(lambda rater: work_for(many, rater), people))
    assert len(parts) == 1
    assert len({work.assignment_id for work in works}) == 5


def test_pages_are_drawn_a_tenth_at_a_time(many: Database) -> None:
    make(many)
    assert {item.block for item in items_of(many)} == {None}
    rate(many, people=2, stop=1)
    items = items_of(many)
    turned = [item for item in items if item.drawn]
    assert turned == items[: SEGMENTS // 10]
    assert all(item.shown == (item.block or {})["systems"] and len(item.shown) == 3 for item in turned)
    one, two = 3 / 6, 3 * 2 / (6 * 5)  # before anything is known all systems are drawn alike
    assert (turned[0].block or {})["chances"] == [[one, two, two], [two, one, two], [two, two, one]]
    rate(many, people=2)
    assert all(item.drawn for item in items_of(many))


@pytest.mark.parametrize(("pages", "documents"), [(2, 0), (7, 0), (2, 30)])
def test_the_first_pages_show_every_system(many: Database, pages: int, documents: int) -> None:
    """A tenth of so few pages would show three systems, and the next ones might show them again."""
    pages_of = {"segments_per_page": 30} if documents else {}
    make(many, items=pages, documents=documents, **pages_of)
    rate(many, people=1, stop=2)
    turned = [item for item in items_of(many) if item.drawn]
    assert {system for item in turned for system in item.shown} == set(range(6))
    assert len({item.document or item.id for item in turned}) == 2


def test_open_systems_come_more_often_and_raters_see_only_what_was_drawn(many: Database) -> None:
    make(many)
    rate(many, people=8)
    items = items_of(many)
    later = Counter(at for item in items[20:] for at in item.shown)
    assert sum(later[at] for at in range(4)) / 4 > 1.3 * (later[4] + later[5]) / 2 > 0
    with many.session() as session:
        orders = session.execute(select(Assignment.item_id, Assignment.order)).all()
        ratings = load_ratings(session, find_campaign(session, "c"))
    shown = {item.id: item.shown for item in items}
    for item, order in orders:
        assert sorted(system for group in order for system in group) == shown[item]
    assert (ratings.turns, ratings.finished, len(orders)) == (SEGMENTS, SEGMENTS, SEGMENTS)
    chances = {round(block["chances"][0][1], 6) for block in ratings.blocks if block is not None}
    assert len(chances) > 1
    assert all(0 < chance <= 1 for chance in chances)


def test_the_past_alone_decides(many: Database) -> None:
    """The same answers lead to the same blocks, whatever comes later."""
    make(many)
    make(many, name="d")
    for name in ("c", "d"):
        launching.launch(many, name)
    first, second = add_rater(many, "anna", "c"), add_rater(many, "ben", "d")
    for _ in range(20):
        for rater in (first, second):
            work = assignment.next_item(many, rater)
            systems = [system_of(text) for text in work.outputs]
            assignment.submit(many, rater, work.assignment_id, [int(5 + MEANS[at]) for at in systems])
    assert [item.block for item in items_of(many)] == [item.block for item in items_of(many, "d")]


@pytest.mark.parametrize("protocol", ["contrastive-da", "da", "preference"])
def test_a_document_keeps_its_systems(many: Database, protocol: str) -> None:
    if protocol == "preference":
        make(many, protocol, select="differing")
    else:
        make(many, protocol, documents=3, segments_per_page=2)
    rate(many, people=2)
    shown: dict[str | int, set[int]] = defaultdict(set)
    for item in items_of(many):
        key = item.document or item.segment_index
        assert item.drawn == ((set(item.systems) & set((item.block or {})["systems"])) != set()) or (
            protocol == "preference"
        )
        if item.drawn:
            shown[key].update(item.shown)
            assert len(item.shown) == {"da": 1, "preference": 2, "contrastive-da": 3}[protocol]
    assert {len(systems) for systems in shown.values()} == {3}
    with many.session() as session:
        campaign = find_campaign(session, "c")
        (kind,) = progress_by_kind(session, campaign)
    assert kind.submitted == kind.wanted == kind.items - kind.passed_over
    assert build_human(many, "c").table("ranks").rows


# ---------------------------------------------------------------- controls, registration, exchange


def test_controls_show_what_their_originals_do_with_one_text_spoilt(many: Database) -> None:
    make(many, bad_references=5, repeats=5)
    rate(many, people=1)
    items = items_of(many)
    originals = {item.id: item for item in items}
    kinds = Counter(item.kind for item in items if item.drawn)
    assert (kinds["bad-reference"], kinds["repeat"]) == (5, 5)
    for item in items:
        if item.original_id is None:
            continue
        original = originals[item.original_id]
        assert (item.shown, item.block) == (original.shown, original.block)
        differs = [
            system
            for system, own, other in zip(item.systems, item.outputs, original.outputs, strict=True)
            if own != other
        ]
        assert differs == ([] if item.kind == "repeat" else [item.degraded])
        assert set(differs) <= set(item.shown)


def test_the_registration_stands_while_blocks_are_drawn(many: Database) -> None:
    make(many, bad_references=3)
    rate(many, people=2)
    with many.transaction() as session:
        campaign = find_campaign(session, "c")
        assert launching.changes(session, campaign) == []
        analysis = (campaign.registered or {})["analysis"]
        assert "looks after 40%, 60%, 80%, 100%" in analysis["early end"]
        assert "weigh 1/√q" in analysis["items"]
        # outputs of a bad reference are drawn later, and so are not registered
        of_systems = select(Item).filter_by(campaign_id=campaign.id, kind="rated").order_by(Item.position)
        item = session.scalars(of_systems).all()[0]
        item.outputs = ["other", *item.outputs[1:]]
        session.flush()
        assert launching.changes(session, campaign) == ["items"]


def test_an_export_brings_everything_back(many: Database, tmp_path: Path) -> None:
    make(many, bad_references=3)
    rate(many, people=1, stop=30)
    export_campaign(many, "c", "jsonl", tmp_path / "out", "test")
    import_campaign(many, tmp_path / "out", "jsonl", ImportFacts("again"), "test")
    assert collect(many, "c").items == collect(many, "again").items
    before, after = (build_human(many, name).table("ranks") for name in ("c", "again"))
    assert before.rows == after.rows


# ---------------------------------------------------------------- results


def test_results_come_at_looks(many: Database) -> None:
    make(many)
    rate(many, people=8, stop=23)
    early = build_human(many, "c")
    assert "the first of 4 looks comes once 24 of 60 are rated" in {
        row.cells["verdict"].note for row in early.table("comparisons").rows
    }
    rate(many, people=8, stop=1)
    first = build_human(many, "c").table("ranks")
    assert "This look is over 24 of 60." in first.about
    rate(many, people=8, stop=5)
    assert build_human(many, "c").table("ranks").rows == first.rows
    rate(many, people=8)
    last = build_human(many, "c")
    assert "This look is over 60 of 60." in last.table("ranks").about
    ranks = {row.name: row.cells for row in last.table("ranks").rows}
    assert (ranks["s5"]["rank_low"].value, ranks["s5"]["rank_high"].value) == (1, 1)
    assert "looks" not in {block.key for _, block in last.walk() if hasattr(block, "key")}


def test_a_skipped_page_holds_no_look_up(many: Database) -> None:
    make(many)
    launching.launch(many, "c")
    anna = add_rater(many, "anna")
    work = assignment.next_item(many, anna)
    assignment.skip(many, anna, work.assignment_id, "I do not understand the source")
    rate(many, people=1)
    with many.session() as session:
        ratings = load_ratings(session, find_campaign(session, "c"))
    assert (ratings.turns, ratings.finished) == (SEGMENTS, SEGMENTS)
    assert len(ratings.segment_index) == SEGMENTS - 1


# ---------------------------------------------------------------- campaigns made before


def test_a_campaign_that_aimed_finishes_by_rating_what_is_left(many: Database) -> None:
    """Its items are as migration 0022 leaves them."""
    launched_campaign(many, systems=NAMES[:3])
    with many.transaction() as session:
        campaign = find_campaign(session, "c")
        campaign.settings = {**campaign.settings, "aim": True}
        for at, item in enumerate(session.scalars(select(Item).order_by(Item.position))):
            if at < 30:  # had their turn: of the last six the third system was settled
                item.drawn, item.output_drawn = True, [True, True, at < 24]
                systems = [0, 1, 2][: sum(item.output_drawn)]
                item.block = {"systems": systems, "chances": [[1.0] * len(systems)] * len(systems)}
    anna = add_rater(many, "anna")
    seen = []
    while (work := assignment.next_item(many, anna)) is not None:
        seen.append(len(work.outputs))
        systems = [system_of(text) for text in work.outputs]
        assignment.submit(many, anna, work.assignment_id, [5 + at + len(seen) % 3 * at for at in systems])
    assert seen == [3] * 24 + [2] * 6 + [3] * 30
    report = build_human(many, "c")
    assert {row.name: row.cells["rank_high"].value for row in report.table("ranks").rows}["s2"] == 1
    compared = report.table("comparisons")
    assert {"difference", "p_family", "p_t", "p_signed_rank"} <= {*compared.rows[0].cells}
    about = compared.about
    assert "by least squares" in about
    assert "names another test: “paired t-test" in about


def test_a_draft_that_aims_is_made_anew(many: Database) -> None:
    make(many)
    with many.transaction() as session:
        campaign = find_campaign(session, "c")
        campaign.settings = {**campaign.settings, "aim": True}
    with pytest.raises(InputError, match=r"sample\.design adaptive has replaced"):
        launching.launch(many, "c")
