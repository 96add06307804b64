"""The preview: counts, hours, and power against the statistics of an earlier campaign."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ready_campaigns import PLAIN, draft_campaign, launched_campaign
from small_campaigns import add_rater
from sqlalchemy import select
from table_rows import NOON, assignment_row

from creamtea.human.making import launching
from creamtea.human.making.campaigns import CampaignSummary
from creamtea.human.making.preview import detectable, preview
from creamtea.human.making.settings import AttentionItem, TutorialItem
from creamtea.human.making.texts import Documents
from creamtea.human.media import Amount
from creamtea.human.protocols import find_protocol
from creamtea.human.rating import raters
from creamtea.stats.power import default_deviation, intraclass_correlation, power_of, worth
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Hypothesis, Item, Rating, Segment

GOOD: dict[str, Any] = {"systems": ["beam", "plain", "scones"]}


TWO = {"source": "s", "outputs": [{"text": "a", "accepted": [1, 2]}, {"text": "b", "accepted": [5, 6]}]}


def test_items_and_hours(study_database: Database) -> None:
    """With an attention check after each two of a rater's six answers, of four that there are."""
    checks = [AttentionItem.model_validate({**TWO, "source": f"s{number}"}) for number in range(4)]
    practice = TutorialItem.model_validate({**TWO, "explanation": "e"})
    given = {"attention": checks, "attention_every": 2, "repeats": 2, "tutorial": [practice]}
    settings = PLAIN.model_copy(update={**given, "minutes_per_item": 3.0})
    draft_campaign(study_database, "c", ratings_per_item=2, settings=settings, **GOOD)
    found = preview(study_database, "c")
    assert found.kinds == {"rated": 4, "repeat": 2, "tutorial": 1, "attention-check": 4}
    assert (found.ratings, found.raters, found.comparisons) == (12, 2, 2)
    assert found.rater_hours == pytest.approx((12 + 2 + 2 * 3) * 3 / 60)
    assert found.hours_per_rater == pytest.approx(found.rater_hours / 2)
    assert "decide little: they find a difference of 0.1 points in" in found.doubt
    assert replace(found, power=0.8).doubt == ""
    media = Amount(2, 3 * 10**6)
    assert dict(replace(found, media=media).facts())["files"] == "2 of sources and outputs, 3.0 MB"
    by_rule = replace(found, media=media, by_rule_of_thumb=True)
    assert dict(by_rule.facts())["files"].endswith("MB; minutes per item do not count them")
    beyond = dict(replace(found, detectable=1e4).facts())["detectable"]
    assert "power): none on a scale of" in beyond
    assert (found.delta, found.written(found.delta), found.units) == (0.1, "0.1 points", 4)
    assert (found.deviation, found.deviation_from) == (default_deviation(1, 6), "")
    assert found.power == power_of(4, 0.1, found.deviation)
    launching.launch(study_database, "c")
    workload = raters.workload(study_database, add_rater(study_database))
    assert workload.minutes == pytest.approx(60 * found.hours_per_rater)


@pytest.mark.parametrize(("units", "deviation"), [(2, 1.0), (20, 0.8), (350, 0.8), (150, 14.1)])
def test_the_detectable_difference_has_a_power_of_80_percent(units: int, deviation: float) -> None:
    difference = detectable(units, deviation)
    assert difference is not None
    assert power_of(units, difference, deviation) == pytest.approx(0.8, abs=1e-6)
    assert detectable(1, deviation) is None


def test_unequal_weights_are_worth_fewer_units() -> None:
    assert worth([2.0] * 7, range(7)).effective == pytest.approx(7)
    sample = worth([1.0] * 16 + [16.0] * 4, range(20))
    assert sample.effective == sample.units == sample.documents == pytest.approx(80**2 / (16 + 4 * 256))


def test_segments_of_a_document_are_worth_less_by_the_design_effect() -> None:
    sample = worth([1.0] * 30, np.repeat(range(6), 5), intraclass=0.2)
    assert (sample.units, sample.documents) == pytest.approx((30, 6))
    assert sample.design_effect == pytest.approx(1 + 4 * 0.2)  # Kish 1965


def test_the_intraclass_correlation_is_that_of_the_simulated_documents() -> None:
    rng = np.random.default_rng(5)
    document = np.repeat(np.arange(400), rng.integers(1, 8, 400))
    columns = [rng.normal(0, 3, 400)[document] + rng.normal(0, 4, len(document)) for _ in range(3)]
    assert intraclass_correlation(columns, document) == pytest.approx(9 / 25, abs=0.03)
    assert intraclass_correlation(columns, np.arange(len(document))) is None


@pytest.mark.parametrize(
    ("protocol", "pairs", "units"),
    [("contrastive-da", "all", 4), ("da", "all", 5), ("preference", "all", 3), ("preference", "baseline", 3)],
)
def test_units_are_those_of_the_thinnest_comparison(
    study_database: Database, protocol: str, pairs: str, units: int
) -> None:
    # plain and scones share segment 0; beam is the baseline of plain and scones: they share segment 3
    settings = PLAIN.model_copy(update={"pairs": pairs, "baseline": "beam"})
    draft_campaign(study_database, "c", settings=settings, protocol=protocol, **GOOD)
    assert preview(study_database, "c").units == units


def lengthen(database: Database, segments: int) -> None:
    """More segments on which the systems differ."""
    more = range(5, segments)
    with database.transaction() as session:
        for key in session.scalars(select(Segment.step_key).distinct()).all():
            session.add_all(Segment(step_key=key, index=i, source="s", reference="", idioms=[]) for i in more)
        for key in session.scalars(select(Hypothesis.step_key).distinct()).all():
            session.add_all(
                Hypothesis(step_key=key, index=i, text=f"{key} {i}", score=0.0, length=1, selected_size=1)
                for i in more
            )


def rate(database: Database, campaign: CampaignSummary, steps: np.ndarray) -> None:
    """One rater's steps (items, systems), by the items' position."""
    rater = add_rater(database, campaign=campaign.name)
    with database.transaction() as session:
        items = session.scalars(select(Item).where(Item.campaign_id == campaign.id).order_by(Item.position))
        for item, row in zip(items, steps, strict=True):
            assignment = assignment_row(item.id, rater, [[0], [1], [2]])
            session.add(assignment)
            session.flush()
            session.add_all(
                Rating(assignment_id=assignment.id, system=s, revision=1, step=int(step), created_at=NOON)
                for s, step in enumerate(row)
            )


def test_the_deviation_comes_from_an_earlier_campaign(study_database: Database) -> None:
    lengthen(study_database, 21)
    earlier = launched_campaign(study_database, "earlier", **GOOD)
    steps = np.random.default_rng(1).integers(0, 26, (earlier.items, 3))
    rate(study_database, earlier, steps)
    draft_campaign(study_database, "c", **GOOD)
    found = preview(study_database, "c")
    points = 0.2 * steps  # beam, plain (the baseline), scones
    variances = [np.var(points[:, system] - points[:, 1], ddof=1) for system in (0, 2)]
    assert found.deviation_from == "earlier"
    assert found.deviation == pytest.approx(math.sqrt(np.mean(variances)))
    assert find_protocol("contrastive-da").scale.highest - find_protocol("contrastive-da").scale.lowest == 5
    draft_campaign(study_database, "other", protocol="da", **GOOD)
    assert preview(study_database, "other").deviation_from == ""


def test_few_ratings_or_none_that_differ_do_not_count(study_database: Database) -> None:
    earlier = launched_campaign(study_database, "few", **GOOD)
    rate(study_database, earlier, np.arange(12).reshape(4, 3))
    lengthen(study_database, 21)
    same = launched_campaign(study_database, "same", **GOOD)
    # one step apart throughout: of differences such as 3.4 − 3.2 rounding is left
    rate(study_database, same, (np.arange(same.items) % 20)[:, None] + np.arange(3))
    draft_campaign(study_database, "c", **GOOD)
    assert preview(study_database, "c").deviation_from == ""


def test_a_campaign_of_one_system_compares_nothing(study_database: Database) -> None:
    """Ratings made elsewhere may be of one system."""
    draft_campaign(study_database, "c", protocol="da", **GOOD)
    with study_database.transaction() as session:
        row = find_campaign(session, "c")
        row.systems = ["plain"]
        for item in session.scalars(select(Item)):
            item.systems, item.outputs = [0], item.outputs[:1]
    found = preview(study_database, "c")
    assert (found.comparisons, found.units, found.power, found.detectable) == (0, 0.0, None, None)
    assert "power cannot be told, as a test needs two segments' worth" in found.doubt
    assert dict(found.facts())["power"] in found.doubt
    assert "equivalence" not in dict(found.facts())


@pytest.mark.parametrize("protocol", ["contrastive-da", "da", "preference"])
def test_an_adaptive_design_is_worth_about_what_a_balanced_one_is(
    study_database: Database, protocol: str
) -> None:
    lengthen(study_database, 160)
    found = {}
    for design in ("balanced", "adaptive"):
        settings = PLAIN.model_copy(update={"design": design, "systems_per_page": 2, "select": "differing"})
        draft_campaign(study_database, design, settings=settings, protocol=protocol, **GOOD)
        found[design] = preview(study_database, design)
    balanced, adaptive = found["balanced"], found["adaptive"]
    assert adaptive.ratings == pytest.approx(balanced.ratings, rel=0.15)
    assert adaptive.units == pytest.approx(balanced.units, rel=0.15)
    assert adaptive.power == pytest.approx(balanced.power, abs=0.1)


def test_pages_that_an_adaptive_design_passes_over_are_not_counted(study_database: Database) -> None:
    lengthen(study_database, 20)
    documents = Documents(tuple(f"d{segment // 2}" for segment in range(20)))
    for design in ("balanced", "adaptive"):
        few = {"design": design, "systems_per_page": 2, "unit": "document", "segments_per_page": 2}
        fields = {"settings": PLAIN.model_copy(update=few), "protocol": "da", "documents": documents}
        draft_campaign(study_database, design, **fields, **GOOD)
        assert preview(study_database, design).pages == 19, design
