"""Further scales beside the score: what an answer is, what reports make of it, and what files keep."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from rated_campaigns import drawn_steps, rated_campaign, side_by_side
from sqlalchemy import select

from creamtea.human.formats.base import FOREIGN, ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.losses import not_held
from creamtea.human.formats.storing import collect
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.protocols import find_protocol
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.tables import Rating

SCALES = ["Fluency", "Style"]
DA = find_protocol("da", {"scales": SCALES})


def test_an_answer_has_a_value_on_every_scale() -> None:
    answer = {"scales": {"Style": 60, "Fluency": 80}, "score": 75}
    (scored,) = DA.read([answer], ["text"])
    assert (scored.step, scored.payload, scored.answer) == (75, answer, answer)
    assert DA.in_words([scored]) == "75 (Fluency 80, Style 60)"
    assert DA.page_data()["scales"] == SCALES
    complete = CampaignSettings(scales=SCALES).complete(find_protocol("da"), ["a", "b"], None)
    assert complete.minutes_per_item == pytest.approx(find_protocol("da").minutes(2) + 0.2)


@pytest.mark.parametrize(
    ("answer", "draft"),
    [
        ({"score": 75}, True),
        ({"scales": {"Style": 60}}, True),
        ({"score": 75, "scales": {"Style": 60}}, True),
        ({"score": 101, "scales": {"Fluency": 80, "Style": 60}}, False),
        ({"score": 75, "scales": {"Fluency": 80, "Style": 60.0}}, False),
        ({"score": 75, "scales": {"Fluency": 80, "Style": 60, "Tone": 1}}, False),
        ({"score": 75, "scales": [80, 60]}, False),
        ({"score": 75, "scales": {"Fluency": 80, "Style": 60}, "spans": []}, False),
        (75, False),
    ],
)
def test_incomplete_and_foreign_answers_are_refused(answer: Any, draft: bool) -> None:
    with pytest.raises(ValueError):
        DA.read_answer(answer, "text")
    if draft:
        DA.check_draft(answer, "text")
    else:
        with pytest.raises(ValueError):
            DA.check_draft(answer, "text")


def test_without_further_scales_an_answer_is_a_step() -> None:
    for protocol in (find_protocol("da"), find_protocol("contrastive-da", {"scales": []})):
        assert protocol is find_protocol(protocol.name)
        assert protocol.read_answer(7, "text").payload is None
        with pytest.raises(ValueError):
            protocol.read_answer({"score": 7, "scales": {}}, "text")


def test_protocols_of_another_kind_take_none() -> None:
    settings = CampaignSettings(scales=SCALES)
    for name in ("esa", "cesa", "mqm", "preference", "post-edit"):
        found = dict(settings.misfits(find_protocol(name)))
        assert found["protocol.scales"].startswith(f"{name} takes no further scales")
    with pytest.raises(ValueError, match="has a name twice"):
        CampaignSettings(scales=["Style", "Style"])


STEPS = {
    name: drawn_steps(12, [60, 50], 2, seed=seed, highest=100) for seed, name in enumerate(["", *SCALES])
}


@pytest.fixture
def rated(database: Database) -> Database:
    """Campaign `tasting`, and for each further scale one in which its values are the scores."""
    rated_campaign(database, side_by_side(STEPS[""]), protocol="da", settings={"scales": SCALES})
    with database.transaction() as session:
        values = {name: STEPS[name].transpose(0, 2, 1).ravel().tolist() for name in SCALES}
        for at, rating in enumerate(session.scalars(select(Rating).order_by(Rating.id))):
            further = {name: values[name][at] for name in SCALES}
            rating.payload = {"score": rating.step, "scales": further}
    for name in SCALES:
        rated_campaign(database, side_by_side(STEPS[name]), protocol="da", name=name)
    return database


def test_the_report_treats_them_as_it_does_scores(rated: Database) -> None:
    report = build_human(rated, "tasting")
    for number, name in enumerate(SCALES, 1):
        alone = build_human(rated, name)
        for own, key in ((f"scale_{number}_means", "means"), (f"scale_{number}", "comparisons")):
            rows = {row.name: row.cells for row in report.table(own).rows}
            assert rows == {row.name: row.cells for row in alone.table(key).rows}
    assert report.table("scale_2").title == "Style, against plain"
    # the scores are as they would be alone
    steps = STEPS[""].mean(axis=2)
    means = {row.name: row.cells["mean"].value for row in report.table("means").rows}
    assert [means["plain"], means["beam"]] == pytest.approx(steps.mean(axis=0).tolist())


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_export_brings_them_back(rated: Database, tmp_path: Path, kind: str) -> None:
    export_campaign(rated, "tasting", kind, tmp_path / "out", "test")
    import_campaign(rated, tmp_path / "out", kind, ImportFacts("again"), "test")
    tables = [build_human(rated, name).table("scale_1").rows for name in ("tasting", "again")]
    assert tables[0] == tables[1]


def test_other_formats_name_what_they_lose(rated: Database) -> None:
    content = collect(rated, "tasting")
    for kind in FOREIGN:
        lost = {part.what: part.count for part in not_held(content, kind)}
        assert lost["values on further scales"] == 12 * 2 * 2 * 2
    plain = dataclasses.replace(content, settings={}, answers=())
    assert "values on further scales" not in {part.what for part in not_held(plain, "pearmut")}
