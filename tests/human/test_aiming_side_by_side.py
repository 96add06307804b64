"""Campaigns that aim side by side: items are composed when their turn comes, of what is still open."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_campaigns import add_rater, make_campaign, rate_in_turns, work_for
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.human import rating as assignment
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.quality.measures import read_answers, reading_words
from creamtea.human.rating import aiming
from creamtea.human.rating.aiming import chances_on, standings, take_turns
from creamtea.human.results.ratings import load_ratings
from creamtea.report.human.build import build_human
from creamtea.stats.sequential import SETTLED_SHARE, Look, State, unbiased_mean
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, Item, Rating

SEGMENTS, MEANS = 50, (10.0, 17.0, 10.1)  # steps: the second is far better, the third is like the baseline
SETTINGS: dict[str, Any] = {"aim": True, "baseline": "plain", "delta": 0.2}


def campaign_of(database: Database, items: list[dict[str, Any]], **settings: Any) -> int:
    return make_campaign(database, items, systems=len(MEANS), **SETTINGS | settings)


def outputs(segment: int) -> list[str]:
    return [f"o{segment}-{system}" for system in range(len(MEANS))]


def rate_all(database: Database) -> list[int]:
    """How many outputs each page showed to two raters, in time."""
    people = [add_rater(database, name) for name in ("anna", "ben")]
    return rate_in_turns(database, people, MEANS, spread=2, highest=25)


def items_of(session: Session, campaign: int) -> list[Item]:
    return list(
        session.scalars(select(Item).where(Item.campaign_id == campaign).order_by(Item.position)).all()
    )


def rated(session: Session) -> set[tuple[int, int]]:
    """Item and system of every score."""
    rows = session.execute(
        select(Assignment.item_id, Rating.system).join(Rating, Rating.assignment_id == Assignment.id)
    )
    return {(item, system) for item, system in rows}


# ---------------------------------------------------------------- a campaign


@pytest.mark.slow
def test_a_settled_system_leaves_the_board_and_the_others_go_on(database: Database, tmp_path: Path) -> None:
    campaign_id = campaign_of(database, [{"outputs": outputs(at)} for at in range(SEGMENTS)])
    shown = rate_all(database)
    with database.session() as session:
        items = items_of(session, campaign_id)
        ratings = load_ratings(session, session.get_one(Campaign, campaign_id))
        found = {one.system: one for one in standings(session, ratings, 0, 0.2)}
        scores = rated(session)
        answers = read_answers(session, ratings)
    to_read = dict(zip(answers.item.tolist(), answers.words.tolist(), strict=True))
    drawn = np.array([item.output_drawn for item in items])
    chances = np.array([item.output_chances for item in items])
    # the second is settled and leaves; the third, hard to tell from the baseline, goes on without it
    assert found[1].look.state is State.BETTER
    assert found[1].look.units <= SEGMENTS / 2
    assert shown[:20] == [3] * 20
    assert shown.count(2) >= 10
    assert sum(shown) == drawn.sum() < 0.9 * SEGMENTS * len(MEANS)
    # stored is what was done
    assert scores == {
        (item.id, system) for item, row in zip(items, drawn, strict=True) for system in np.flatnonzero(row)
    }
    assert set(chances.ravel()) == {SETTLED_SHARE, 1.0}
    assert [item.chance for item in items] == chances.max(axis=1).tolist() == chances[:, 0].tolist()
    assert [item.drawn for item in items] == drawn.any(axis=1).tolist()
    assert (drawn | (chances < 1)).all()
    assert all(drawn[drawn[:, system], 0].all() for system in (1, 2))  # never without the baseline
    # statistics take the chances of single outputs
    assert found[1].complete == found[1].planned == SEGMENTS
    matrix = ratings.matrix()
    known = ~np.isnan(matrix)
    assert (known == drawn[ratings.segment_index]).all()
    assert (ratings.chance[known] == chances[ratings.segment_index][known]).all()
    both = known[:, 0] & known[:, 1]
    difference = (matrix[both, 1] - matrix[both, 0]) / chances[ratings.segment_index[both], 1]
    assert found[1].unbiased == pytest.approx(difference.sum() / SEGMENTS)
    few = next(item for item, row in zip(items, drawn, strict=True) if row.tolist() == [True, False, True])
    assert to_read[few.id] == reading_words(few.source, [], [few.outputs[0], few.outputs[2]])
    # the report and an export have all of it
    table = build_human(database, "c").table("looks")
    (row,) = [row for row in table.rows if row.name == "beam"]
    assert row.cells["state"].words == "better"
    assert row.cells["unbiased"].value == pytest.approx(found[1].unbiased)
    for kind in ("csv", "jsonl"):
        export_campaign(database, "c", kind, tmp_path / kind, "test")
        import_campaign(database, tmp_path / kind, kind, ImportFacts(kind), "test")
        before, after = collect(database, "c"), collect(database, kind)
        assert (after.items, after.answers) == (before.items, before.answers)


@pytest.mark.slow
def test_pairs_with_the_baseline_aim_one_by_one(database: Database) -> None:
    """A preference's unit is the pair: it has the chance of its other system."""
    items = [
        {"segment_index": at, "systems": [0, other], "outputs": [f"o{at}-0", f"o{at}-{other}"]}
        for at in range(SEGMENTS)
        for other in (1, 2)
    ]
    campaign_id = make_campaign(
        database, items, protocol="preference", systems=3, **SETTINGS, pairs="baseline"
    )
    rng = np.random.default_rng(2)
    anna, done = add_rater(database), 0
    while (work := assignment.next_item(database, anna)) is not None:
        systems = [int(text.split("-")[1]) for text in work.outputs]
        wins = rng.random() < (0.9 if 1 in systems else 0.5)
        steps = [2 * (wins == (system > 0)) for system in systems]
        assignment.submit(database, anna, work.assignment_id, steps)
        done += 1
    with database.session() as session:
        stored = items_of(session, campaign_id)
        ratings = load_ratings(session, session.get_one(Campaign, campaign_id))
        found = {one.system: one for one in standings(session, ratings, 0, 0.2)}
    assert done == sum(item.drawn is True for item in stored) < 0.9 * len(items)
    assert all(item.output_drawn is None for item in stored)
    assert found[1].look.state is State.BETTER
    assert {item.chance for item in stored if item.systems == [0, 1]} == {SETTLED_SHARE, 1.0}
    assert (found[1].planned, found[1].complete) == (SEGMENTS, SEGMENTS)
    pairs = {item.id: item for item in stored}
    total = sum(
        row[1] * 2 / (pairs[int(item)].chance or 0)  # 2 − 0 or 0 − 2
        for item, row in zip(ratings.item[::2], ratings.matrix() - 1, strict=True)
        if pairs[int(item)].systems == [0, 1]
    )
    assert found[1].unbiased == pytest.approx(total / SEGMENTS)
    assert "better" in [row.cells["state"].words for row in build_human(database, "c").table("looks").rows]


def with_states(monkeypatch: pytest.MonkeyPatch, *states: State) -> None:
    """Every look finds these states of systems 1, 2, …"""
    found = [aiming.Standing(at, Look(state, 0), 0, 0, None) for at, state in enumerate(states, start=1)]
    monkeypatch.setattr(aiming, "standings", lambda *_: found)


def test_a_system_leaves_a_document_on_all_of_its_pages(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pages each, with a score of the whole. That the second system says in one segment what the third
    does keeps it nowhere on the board; that it says so in all of the fourth document keeps it there."""
    with_states(monkeypatch, State.BETTER, State.OPEN)
    items: list[dict[str, Any]] = []
    for document in range(4):
        for at in range(3):
            said = outputs(len(items))
            if at == 1 or document == 3:
                said[1] = said[2]
            page = len(items) - at % 2 if at < 2 else len(items)
            items.append({"page": page, "document": f"d{document}", "outputs": said})
    campaign_id = campaign_of(database, items, unit="document", document_score=True)
    anna = add_rater(database)
    while (work := assignment.next_item(database, anna)) is not None:
        assert [segment.letters for segment in work.segments] == [["A", "B"]] * len(work.segments)
        assert len(work.document_letters) == (2 if len(work.segments) == 1 else 0)  # on the last page
        steps = [3] * len(work.outputs)
        assignment.submit(
            database, anna, work.assignment_id, steps, document=[3] * len(work.document_letters)
        )
    with database.session() as session:
        stored = items_of(session, campaign_id)
        assert rated(session) == {(item.id, system) for item in stored for system in item.shown}
    assert [item.shown for item in stored] == [[0, 2]] * 9 + [[0, 1, 2]] * 3


def test_controls_show_what_their_originals_do(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with_states(monkeypatch, State.BETTER, State.OPEN)
    # u of segments 0 and 1 lies above a twentieth
    assert all(random.Random(f"1/turn/{segment}").random() > SETTLED_SHARE for segment in (0, 1))
    spoilt = ["spoilt-0", "o0-1", "o0-2"]
    items: list[dict[str, Any]] = [
        {"outputs": outputs(0)},
        {"outputs": outputs(1)},
        {"kind": "repeat", "original": 0, "segment_index": 0, "outputs": outputs(0)},
        {"kind": "bad-reference", "original": 1, "segment_index": 1, "outputs": spoilt, "degraded": 0},
        {"kind": "bad-reference", "original": 0, "segment_index": 0, "outputs": spoilt, "degraded": 1},
    ]
    campaign_id = campaign_of(database, items)
    anna, seen = add_rater(database), []
    while (work := assignment.next_item(database, anna)) is not None:
        seen.append(sorted(work.outputs))
        assignment.submit(database, anna, work.assignment_id, [3] * len(work.outputs))
    with database.session() as session:
        stored = items_of(session, campaign_id)
    both = [["o0-0", "o0-2"], ["o1-0", "o1-2"]]
    assert sorted(seen) == sorted([*both, ["o0-0", "o0-2"], ["o0-2", "spoilt-0"]])
    assert [item.shown for item in stored] == [[0, 2]] * 5
    assert [item.drawn for item in stored] == [True] * 4 + [False]  # its spoilt text would not be there


def test_equal_texts_stay_together(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with_states(monkeypatch, State.BETTER, State.OPEN)
    campaign_id = campaign_of(
        database, [{"outputs": ["a-0", "b-1", "b-1"]}, {"outputs": ["a-0", "a-0", "c-2"]}]
    )
    work = work_for(database, add_rater(database))
    assert sorted(work.outputs) == ["a-0", "b-1"]
    with database.session() as session:
        assert [item.output_chances for item in items_of(session, campaign_id)] == [[1.0] * 3] * 2


def test_a_pair_has_the_chance_of_its_other_system(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_states(monkeypatch, State.BETTER, State.OPEN)
    items = [{"segment_index": 0, "systems": [0, other], "outputs": ["a", f"b{other}"]} for other in (1, 2)]
    campaign_id = make_campaign(
        database, items, protocol="preference", systems=3, **SETTINGS, pairs="baseline"
    )
    assert sorted(work_for(database, add_rater(database)).outputs) == ["a", "b2"]
    with database.session() as session:
        assert [item.chance for item in items_of(session, campaign_id)] == [SETTLED_SHARE, 1.0]


def test_where_all_is_settled_whole_items_are_passed_over(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_states(monkeypatch, State.BETTER, State.HOPELESS)
    campaign_id = campaign_of(database, [{} for _ in range(60)])
    with database.transaction() as session:
        while take_turns(session, session.get_one(Campaign, campaign_id)):
            pass
        items = items_of(session, campaign_id)
    expected = [random.Random(f"1/turn/{at}").random() < SETTLED_SHARE for at in range(60)]
    assert 0 < sum(expected) < 10
    assert [item.drawn for item in items] == expected
    assert [item.output_drawn for item in items] == [[one] * 3 for one in expected]


def test_what_was_passed_over_leaves_with_its_system(database: Database, tmp_path: Path) -> None:
    """An import that leaves out a system keeps the rest of what was drawn."""
    campaign_of(
        database,
        [
            {
                "chance": 1.0,
                "drawn": True,
                "output_chances": [1.0, 0.05, 1.0],
                "output_drawn": [True, False, True],
            }
        ],
    )
    anna = add_rater(database)
    assignment.submit(database, anna, work_for(database, anna).assignment_id, [3, 4])
    export_campaign(database, "c", "jsonl", tmp_path / "c", "test")
    facts = replace(ImportFacts("d"), leave_out=("scones",))
    import_campaign(database, tmp_path / "c", "jsonl", facts, "test")
    (item,) = collect(database, "d").items
    assert (item.output_chances, item.output_drawn, item.shown) == ((1.0, 0.05), (True, False), ["plain"])


def test_pearmut_gets_what_raters_saw(database: Database, tmp_path: Path) -> None:
    aimed = {"chance": 1.0, "drawn": True, "output_chances": [1.0, 0.05, 1.0]}
    items = [
        {**aimed, "output_drawn": [True, False, True], "outputs": outputs(0)},
        {"chance": 0.05, "drawn": False, "output_chances": [0.05] * 3, "output_drawn": [False] * 3},
    ]
    make_campaign(database, items, protocol="cesa", systems=3, **SETTINGS)
    anna = add_rater(database)
    answers = [{"score": 40, "spans": []}, {"score": 60, "spans": []}]
    assignment.submit(database, anna, work_for(database, anna).assignment_id, answers)
    export_campaign(database, "c", "pearmut", tmp_path / "c", "test")
    import_campaign(database, tmp_path / "c", "pearmut", ImportFacts("d", protocol="cesa"), "test")
    first, second = collect(database, "d").items
    assert (first.systems, first.outputs) == (("plain", "scones"), ("o0-0", "o0-2"))
    assert len(second.systems) == 3  # nobody has seen it: it can still be rated
    (answer,) = collect(database, "d").answers
    assert sorted(score.step for score in answer.scores) == [40, 60]


# ---------------------------------------------------------------- without bias


STATES = [State.OPEN, State.BETTER, State.HOPELESS]


@st.composite
def segments(draw: st.DrawFn) -> list[list[int]]:
    """The systems of each text of an item with four outputs; system 0 is the baseline."""
    said = draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
    return [[system for system in range(4) if said[system] == text] for text in sorted(set(said))]


@given(texts=segments(), states=st.lists(st.sampled_from(STATES), min_size=3, max_size=3))
def test_chances_on_a_segment(texts: list[list[int]], states: list[State]) -> None:
    of_system = dict(enumerate(states, start=1))
    (chances,) = chances_on([texts], of_system, 0)
    assert set(chances) == set(range(4))
    assert chances[0] == max(chances.values())
    assert all(len({chances[system] for system in text}) == 1 for text in texts)
    assert all(chances[system] == 1 for system, state in of_system.items() if state is State.OPEN)
    apart = [text for text in texts if 0 not in text and not any(of_system[s] is State.OPEN for s in text)]
    assert all(chances[system] == SETTLED_SHARE for text in apart for system in text)


@given(
    values=st.lists(st.lists(st.floats(-9, 9), min_size=4, max_size=4), min_size=3, max_size=3),
    texts=st.lists(segments(), min_size=3, max_size=3),
    weights=st.lists(st.floats(0.5, 3), min_size=3, max_size=3),
    policy=st.randoms(use_true_random=False),
)
def test_means_are_unbiased_however_the_states_follow_from_the_past(
    values: list[list[float]], texts: list[list[list[int]]], weights: list[float], policy: random.Random
) -> None:
    """The oracle walks through every campaign there can be: all that the draws decide, each with its chance,
    where the states of the next turn are anything that depends on what was rated before."""
    decided: dict[tuple[tuple[bool, ...], ...], list[State]] = {}
    sizes = np.array(weights)
    differences = np.array([[row[system] - row[0] for system in range(1, 4)] for row in values])
    expected, whole = np.zeros(3), 0.0

    def walk(past: tuple[tuple[bool, ...], ...], chances: list[list[float]], chance: float) -> None:
        nonlocal whole, expected
        turn = len(past)
        if turn == len(texts):
            q, drawn = np.array(chances)[:, 1:], np.array(past)[:, 1:]
            sums = sizes[:, None] * differences
            found = [unbiased_mean(sums[:, s], sizes, q[:, s], drawn[:, s]) for s in range(3)]
            expected += chance * np.array(found)
            whole += chance
            return
        states = decided.setdefault(past, [policy.choice(STATES) for _ in range(3)])
        (of_system,) = chances_on([texts[turn]], dict(enumerate(states, start=1)), 0)
        own = [of_system[system] for system in range(4)]
        for low, high in pairwise(sorted({0.0, 1.0, *own})):  # one u for all outputs
            drawn = tuple((low + high) / 2 < q for q in own)
            assert drawn[0] or not any(drawn)  # a difference is known where its system is
            walk((*past, drawn), [*chances, own], chance * (high - low))

    walk((), [], 1.0)
    assert whole == pytest.approx(1)
    assert expected == pytest.approx(sizes @ differences / sizes.sum(), abs=1e-9)
