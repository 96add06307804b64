"""Ratings as arrays: which count, in what shape; and where raters disagree, third ratings."""

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rated_campaigns import rated_campaign, side_by_side
from small_campaigns import ON_BOTH, add_rater, exchanged, make_campaign, rate, rate_all, results_of, work_for
from sqlalchemy import update

from creamtea.access import audit
from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.exchange import export_campaign
from creamtea.human.making import campaigns, launching
from creamtea.human.protocols import find_protocol, protocol_names
from creamtea.human.rating import raters
from creamtea.human.rating.raters import additional_raters
from creamtea.human.results.disputes import ask_for_third_ratings, list_disputes
from creamtea.human.results.ratings import load_ratings, repeated_scores, standings
from creamtea.report.human.build import build_human
from creamtea.report.model import Texts
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, ItemKind

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


# ---------------------------------------------------------------- raters who lie far apart, and third ratings


FAR = [[[0, 0], [10, 10]], [[2, 25], [8, 9]], [[5, 4], [20, 3]]]  # item, system, rater


def disputed(database: Database, steps: Any = FAR, **campaign: Any) -> int:
    return rated_campaign(database, side_by_side(steps), ratings_per_item=2, **campaign)


def finished(database: Database, campaign: int) -> dict[str, bool]:
    return {person.pseudonym: person.finished for person in raters.overview(database, campaign)}


@pytest.mark.parametrize("bound", [0.2, 1.0, 2.5, 5.0])
def test_the_list_is_that_of_a_comparison_of_every_pair(database: Database, bound: float) -> None:
    steps = np.random.default_rng(3).integers(0, 26, (12, 2, 3))
    rated_campaign(database, side_by_side(steps, "abc"), raters="abc", ratings_per_item=3)
    expected = {
        (f"segment {item + 1}", ("plain", "beam")[system])
        for item in range(12)
        for system in range(2)
        if max(abs(int(a) - int(b)) for a in steps[item, system] for b in steps[item, system]) >= 5 * bound
    }
    found = list_disputes(database, "tasting", bound)
    assert {(each.segment, each.system) for each in found.listed} == expected
    assert found.outputs == 24


def test_a_disputed_pair_counts_once_among_the_pairs(database: Database) -> None:
    steps = [[[0, 2], [2, 0]], [[1, 1], [1, 1]]]
    rated_campaign(database, side_by_side(steps), ratings_per_item=2, protocol="preference")
    found = list_disputes(database, "tasting")
    assert (len(found.listed), found.outputs, found.judged) == (1, 2, "pair")


def test_the_bound_is_half_of_the_scale_or_the_campaigns(database: Database) -> None:
    costly = {"taxonomy": {"severities": [{"name": "minor", "weight": 2}]}}
    for protocol, settings, points in (("da", {}, 50), ("mqm", {}, 12.5), ("mqm", costly, 5)):
        assert find_protocol(protocol, settings).far_apart() == points
    disputed(database)
    disputed(database, name="strict", settings={"disputed_from": 0.2})
    found = list_disputes(database, "tasting")
    assert (found.bound, len(found.listed)) == (2.5, 2)
    assert found.listed[0].ratings == {"anna": 1.4, "ben": 6.0}
    assert len(list_disputes(database, "strict").listed) == 4


def test_a_third_rating_goes_to_another_rater_and_counts_nowhere(database: Database) -> None:
    campaign = disputed(database)
    before = results_of(database, "tasting").matrix().tolist()
    with database.session() as session:
        row, now = session.get_one(Campaign, campaign), database.now(session)
        registered = launching.registration(session, row)["items"]
        assert additional_raters(session, row, now) == 0
    assert ask_for_third_ratings(database, "tasting", "test", reason="paper") == 2
    with database.session() as session:
        assert additional_raters(session, session.get_one(Campaign, campaign), now) == 2
    assert assignment.next_item(database, raters.find(database, "tasting", "anna")) is None  # has rated all
    chris, dora = (add_rater(database, name, "tasting") for name in ("chris", "dora"))
    work = work_for(database, chris)
    assert (work.source, work.left) == ("source 1", 2)
    assert work_for(database, dora).source == "source 2"  # the other one is with chris
    assert finished(database, campaign) == {"anna": True, "ben": True, "chris": False, "dora": False}
    rate(database, chris, work, step=20)
    assert assignment.next_item(database, chris) is None
    listed = {each.segment: each.third for each in list_disputes(database, "tasting").listed}
    assert listed == {"segment 2": 5.0, "segment 3": None}
    ratings = results_of(database, "tasting")
    assert ratings.matrix().tolist() == before
    assert (ratings.left_out.third_ratings, ratings.left_out.control_ratings) == (2, 0)
    assert (ratings.submitted, ratings.wanted) == (6, 6)
    with database.session() as session:
        row = session.get_one(Campaign, campaign)
        assert launching.registration(session, row)["items"] == registered
        kinds = {kind.kind: kind for kind in campaigns.progress_by_kind(session, row)}
    third = kinds[ItemKind.THIRD]
    assert (third.items, third.wanted, third.submitted, third.complete) == (2, 2, 1, 1)
    assert campaigns.summary(database, "tasting").items == 3
    entry = audit.read(database, campaign)[-3]
    shown = (entry.action, entry.reason, entry.detail)
    assert shown == (audit.THIRD_ASKED, "paper", {"pages": 2, "points apart": 2.5})


def test_a_page_of_a_document_is_given_whole(database: Database) -> None:
    items = side_by_side(FAR)
    for item in items:
        item |= {"page": 0, "document": "d"}
    rated_campaign(database, items, ratings_per_item=2)
    assert ask_for_third_ratings(database, "tasting", "test") == 1
    work = work_for(database, add_rater(database, "chris", "tasting"))
    assert [segment.source for segment in work.segments] == [f"source {at}" for at in range(3)]


def test_who_rated_an_output_on_another_item_gives_no_third_rating_of_it(database: Database) -> None:
    items = side_by_side(FAR[1:2])
    items[0] |= {"segment_index": 1, "systems": [0, 1]}
    others = {"carl": [1, 2], "dora": [0, 2], "emil": [2, 3]}
    for name, systems in others.items():
        items.append({"segment_index": 1, "systems": systems, "steps": {name: [3, 4]}})
    campaign = rated_campaign(
        database, items, systems=("plain", "beam", "scones", "entmax"), raters=("anna", "ben", *others)
    )
    assert ask_for_third_ratings(database, "tasting", "test") == 1
    all_but_emil = {**dict.fromkeys(("anna", "ben", "carl", "dora"), True), "emil": False}
    assert finished(database, campaign) == all_but_emil
    carl, dora, emil = (raters.find(database, "tasting", name) for name in others)
    assert [assignment.next_item(database, rater) for rater in (carl, dora)] == [None, None]
    assert work_for(database, emil).source == "source 0"


def test_a_third_rating_is_found_on_whichever_item_it_was_given(database: Database) -> None:
    """Two items of one segment have an output in common, and each is disputed for another one."""
    items = [
        {"segment_index": 1, "systems": [0, 1], "steps": {"anna": [2, 5], "ben": [25, 20]}},
        {"segment_index": 1, "systems": [1, 2], "steps": {"anna": [5, 2], "ben": [20, 25]}},
    ]
    rated_campaign(database, items, systems=("plain", "beam", "scones"), ratings_per_item=2)
    assert ask_for_third_ratings(database, "tasting", "test") == 2
    chris = add_rater(database, "chris", "tasting")
    assert work_for(database, chris).source == "source 0"
    rate(database, chris, work_for(database, chris), step=10)
    assert assignment.next_item(database, chris) is None  # who has rated one of the outputs by now
    thirds = {each.system: each.third for each in list_disputes(database, "tasting").listed}
    assert thirds == {"plain": 3.0, "beam": 3.0, "scones": None}


def test_a_new_rater_rates_what_is_planned_first(database: Database) -> None:
    items = [*side_by_side(FAR), {"steps": {"anna": [1, 2]}}]
    rated_campaign(database, items, ratings_per_item=2)
    ask_for_third_ratings(database, "tasting", "test")
    chris = add_rater(database, "chris", "tasting")
    assert rate_all(database, chris) == ["source 3", "source 1", "source 2"]


def test_nothing_is_asked_for_in_vain(database: Database) -> None:
    make_campaign(database)
    assert list_disputes(database, "c").listed == []  # without a rating
    disputed(database)
    disputed(database, name="over", state="closed")
    for campaign, bound, said in (
        ("over", None, "'over' is closed, and nobody can rate in it: open it with"),
        ("tasting", 0.0, "--apart 0: give more than 0 points"),
        ("tasting", 5.0, "5 points apart or more: there are none"),
    ):
        with pytest.raises(InputError, match=said):
            ask_for_third_ratings(database, campaign, "test", bound)
    ask_for_third_ratings(database, "tasting", "test")
    with pytest.raises(InputError, match="a third rating or wait for one"):
        ask_for_third_ratings(database, "tasting", "test")


def test_the_report_and_exports_have_third_ratings_or_say_that_they_do_not(
    database: Database, tmp_path: Path
) -> None:
    disputed(database)
    ask_for_third_ratings(database, "tasting", "test")
    chris = add_rater(database, "chris", "tasting")
    rate(database, chris, work_for(database, chris), step=20)
    blocks = build_human(database, "tasting").sections[-1].blocks[0].blocks  # type: ignore[union-attr]
    texts = next(block for block in blocks if isinstance(block, Texts) and block.key == "disputes")
    assert "2.5 points or more apart on 2 of 6 outputs with two raters or more" in texts.about
    assert "count in no mean and no test" in texts.about
    numbers = [{column.key: cell for column, cell in entry.numbers} for entry in texts.entries]
    assert numbers[0]["third"].value == 5.0
    assert (numbers[1]["third"].value, numbers[1]["third"].note) == (None, "asked for")
    assert "third" in numbers[2]  # the page of a dispute has the other output, too
    assert "scores of third ratings, shown beside those that disagree: 2" in str(blocks)
    exchanged(database, tmp_path, name="tasting")
    assert list_disputes(database, "again").listed == list_disputes(database, "tasting").listed
    lost = export_campaign(database, "tasting", "mt-metrics-eval", tmp_path / "folder", "test").not_kept
    assert ("items given for a third rating", "2") in [(part.what, part.number) for part in lost]
