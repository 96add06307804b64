"""How comparisons stand before the end, also of campaigns of versions that aimed."""

import numpy as np
import pytest
from small_campaigns import add_rater, make_campaign, rate_all, work_for

from creamtea.human import rating as assignment
from creamtea.human.results.ratings import load_ratings
from creamtea.human.results.standings import Standing, standings
from creamtea.stats.sequential import State
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign

SEGMENTS = 60


def aimed(database: Database, settled: int) -> None:
    """A campaign of three systems, of which the second is far better, and was drawn with a chance of a
    twentieth from so many segments on: of these every tenth was."""
    outputs = ["plain", "better", "like plain"]
    items = [
        {
            "outputs": [f"{text} {at}" for text in outputs],
            "chance": 1.0,
            "drawn": True,
            "output_chances": [1.0, 1.0 if at < settled else 0.05, 1.0],
            "output_drawn": [True, at < settled or at % 10 == 0, True],
        }
        for at in range(SEGMENTS)
    ]
    make_campaign(database, items, systems=3, aim=True, baseline="plain", delta=0.2)


def found(database: Database) -> list[Standing]:
    with database.session() as session:
        return standings(session, load_ratings(session, find_campaign(session, "c")), 0, 0.2)


def test_a_settled_comparison_is_that_of_the_units_before(database: Database) -> None:
    settled = 36
    aimed(database, settled)
    rater, rng = add_rater(database), np.random.default_rng(2)
    expected = []
    for at in range(SEGMENTS):
        work = work_for(database, rater)
        steps = {"plain": 10, "better": 15, "like": 10}
        given = [steps[text.split()[0]] + int(rng.integers(-2, 3)) for text in work.outputs]
        of = dict(zip((text.split()[0] for text in work.outputs), given, strict=True))
        assert ("better" in of) == (at < settled or at % 10 == 0)
        if "better" in of:
            expected.append((of["better"] - of["plain"]) * (1.0 if at < settled else 20.0))
        assignment.submit(database, rater, work.assignment_id, given)
    better, alike = found(database)
    assert (better.look.state, better.look.units) == (State.BETTER, settled)
    assert (better.complete, better.planned) == (SEGMENTS, SEGMENTS)
    assert better.unbiased == pytest.approx(0.2 * sum(expected) / SEGMENTS)
    assert alike.look.units == SEGMENTS


def test_a_skipped_unit_of_a_campaign_that_aimed_holds_nothing_up(database: Database) -> None:
    aimed(database, SEGMENTS)
    rater = add_rater(database)
    work = work_for(database, rater)
    assignment.skip(database, rater, work.assignment_id, "I do not understand the source")
    rate_all(database, rater)
    assert [(one.complete, one.planned) for one in found(database)] == [(SEGMENTS - 1, SEGMENTS - 1)] * 2


def test_items_of_weight_0_tell_nothing_before_the_end(database: Database) -> None:
    """They are rated like others."""
    make_campaign(database, [{"weight": float(number != 1)} for number in range(12)], systems=2)
    rater = add_rater(database)
    for number in range(11):
        work = work_for(database, rater)
        assignment.submit(database, rater, work.assignment_id, [number, 10])
    with database.session() as session:
        ratings = load_ratings(session, find_campaign(session, "c"))
        (found,) = standings(session, ratings, 0, 4.0)
    assert (found.complete, found.planned) == (10, 11)
