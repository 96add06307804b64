"""Ratings as arrays: which count, in what shape, and what is said of the others."""

import dataclasses
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from rated_campaigns import rated_campaign, side_by_side
from small_campaigns import ON_BOTH, results_of
from sqlalchemy import update

from creamtea.human.protocols import find_protocol, protocol_names
from creamtea.human.results.ratings import load_ratings, repeated_scores, standings
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign

NAN = float("nan")


def test_scores_are_means_over_raters_in_points(database: Database) -> None:
    steps = [[[0, 5], [10, 10]], [[25, 20], [1, 2]]]  # item, system, rater
    rated_campaign(database, side_by_side(steps), ratings_per_item=2)
    ratings = results_of(database, "tasting")
    assert ratings.matrix() == pytest.approx(np.array([[1.5, 3.0], [5.5, 1.3]]))
    assert ratings.raters == ("anna", "ben")
    assert (ratings.submitted, ratings.wanted, ratings.items) == (4, 4, 2)
    assert not any(dataclasses.astuple(ratings.left_out))
    unit, rater, scores = ratings.side_by_side()
    assert unit.tolist() == [0, 0, 1, 1]
    assert rater.tolist() == [0, 1, 0, 1]
    assert scores == pytest.approx(np.array([[1, 3], [2, 3], [6, 1.2], [5, 1.4]]))


@ON_BOTH
@pytest.mark.parametrize("fraction", [0, 499_999, 700_000, 999_000])
def test_the_second_of_an_answer_is_the_one_that_has_begun(database: Database, fraction: int) -> None:
    rated_campaign(database, side_by_side([[[0], [5]]]), ratings_per_item=1)
    begun = datetime(2026, 3, 1, 12, 0, 7, tzinfo=UTC)
    with database.transaction() as session:
        session.execute(update(Assignment).values(submitted_at=begun.replace(microsecond=fraction)))
    assert set(results_of(database, "tasting").moment.tolist()) == {int(begun.timestamp())}


@ON_BOTH
def test_the_last_revision_counts_and_excluded_raters_do_not(database: Database) -> None:
    items = [
        {"steps": {"anna": [[1, 2], [3, 4]], "eve": [25, 0]}},
        {"steps": {"anna": []}},  # skipped
        {"steps": {"eve": [25, 0]}},
        {"steps": {"anna": [0, 0]}, "kind": "repeat", "original_id": None},
        {"steps": {"anna": [7, 9], "eve": [1, 1]}, "kind": "bad-reference"},
        {"steps": {"anna": [50, 60]}, "kind": "random"},
    ]
    rated_campaign(
        database, items, raters=["anna", "eve"], excluded=["eve"], ratings_per_item=2, protocol="da"
    )
    ratings = results_of(database, "tasting")
    assert ratings.raters == ("anna",)
    assert ratings.matrix().tolist() == [[3.0, 4.0], [50.0, 60.0]]
    assert (ratings.segment_index.tolist(), ratings.random.tolist()) == ([0, 5], [False, True])
    out = ratings.left_out
    assert (out.excluded_raters, out.excluded_ratings) == (1, 4)
    assert (out.replaced_ratings, out.control_ratings) == (2, 6)
    assert (out.skipped, out.unrated_items, out.incomplete_items) == (1, 2, 2)
    assert (ratings.submitted, ratings.wanted) == (2, 8)
    assert ratings.controls.value.tolist() == [0, 0, 7, 9]
    assert ratings.controls.kind.tolist() == ["repeat", "repeat", "bad-reference", "bad-reference"]


def test_outputs_of_one_segment_in_several_items_are_one_unit(database: Database) -> None:
    items = [
        {"segment_index": 7, "systems": [0], "steps": {"anna": [50]}, "weight": 2.0},
        {"segment_index": 3, "systems": [0, 1], "outputs": ["x", "x"], "steps": {"ben": [10, 10]}},
        {"segment_index": 7, "systems": [1], "steps": {"ben": [90], "anna": [80]}, "weight": 2.0},
    ]
    rated_campaign(database, items, protocol="da")
    ratings = results_of(database, "tasting")
    assert ratings.segment_index.tolist() == [3, 7]
    assert ratings.matrix().tolist() == [[10, 10], [50, 85]]
    assert ratings.weight.tolist() == [1.0, 2.0]
    with database.session() as session:
        assert repeated_scores(session, ratings).tolist() == [[False, True], [False, False]]
    _, _, scores = ratings.side_by_side()
    np.testing.assert_array_equal(scores, [[10, 10], [50, 80], [NAN, 90]])


def test_a_pair_of_a_preference_is_a_unit_of_its_own(database: Database) -> None:
    items: list[dict[str, Any]] = [
        {"segment_index": 0, "systems": [0, 1], "steps": {"anna": [2, 0]}},
        {"segment_index": 0, "systems": [0, 2], "steps": {"anna": [0, 2]}},
    ]
    systems = ["plain", "beam", "greedy"]
    rated_campaign(database, items, systems=systems, protocol="preference")
    ratings = results_of(database, "tasting")
    np.testing.assert_array_equal(ratings.matrix(), [[2, 0, NAN], [0, NAN, 2]])


@pytest.mark.parametrize("items", [[], [{}], [{"steps": {"anna": []}}]])
def test_a_campaign_without_ratings_is_empty(database: Database, items: list[dict[str, Any]]) -> None:
    rated_campaign(database, items)
    ratings = results_of(database, "tasting")
    assert ratings.matrix().shape == (0, 2)
    assert ratings.left_out.unrated_items == len(items)
    assert ratings.side_by_side()[2].shape == (0, 2)


@pytest.mark.parametrize("protocol", [one for one in protocol_names(rated_here=True) if one != "mqm"])
def test_every_step_of_every_scale_comes_back_as_its_exact_value(database: Database, protocol: str) -> None:
    scale = find_protocol(protocol).scale
    items = [{"systems": [0], "steps": {"anna": [step]}} for step in range(scale.steps)]
    rated_campaign(database, items, protocol=protocol)
    ratings = results_of(database, "tasting")
    assert ratings.matrix()[:, 0].tolist() == [float(scale.value(step)) for step in range(scale.steps)]


def test_items_of_weight_0_are_rated_and_tell_nothing_before_the_end(database: Database) -> None:
    items = [{"weight": float(at != 1), "steps": {"anna": [at, 10]} if at < 11 else {}} for at in range(12)]
    campaign = rated_campaign(database, items)
    with database.session() as session:
        (found,) = standings(session, load_ratings(session, session.get_one(Campaign, campaign)), 0, 4.0)
    assert (found.complete, found.planned) == (10, 11)
