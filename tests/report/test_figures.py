"""Figures: valid Vega-Lite, all systems in the data, nulls and a subtitle for what is missing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from blocks import figure, figures
from rated_campaigns import rated_campaign

from creamtea.report import drawing, text, vega
from creamtea.report.build import build_report
from creamtea.report.figures import learning_curves
from creamtea.report.model import Choice, Document, Figure
from creamtea.report.vega import LETTER, vega_lite
from creamtea.store.database import Database
from creamtea.store.queries import CurvePoint

Fill = Callable[..., int]
SYSTEMS = ["softmax-greedy", "softmax-lexicon", "softmax-nvs", "scones-greedy"]
RUNS = ["softmax, seed 1", "scones, seed 1", "scones, seed 2", "scones, seed 3"]


STUDY = ("quality/", "recall/", "learning/")


@pytest.fixture
def report(complete: Document) -> Document:
    return complete


def all_figures(report: Document) -> list[Figure]:
    return [one for path, one in figures(report).items() if any(kind in path for kind in STUDY)]


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, float):
        yield value


def test_figures_are_valid_vega_lite(report: Document) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    altair = pytest.importorskip("altair")  # comes with Streamlit, and brings the schema
    (path,) = Path(altair.__file__).parent.rglob("vega-lite-schema.json")
    validator = jsonschema.Draft7Validator(json.loads(path.read_text()))
    drawn = all_figures(report)
    assert len(drawn) == 3 + 2 + 2 * 2 + 1  # both losses have a figure for each objective
    for one in drawn:
        assert [error.message for error in validator.iter_errors(vega_lite(one))] == []


def test_figures_hold_json_without_nan(report: Document) -> None:
    for spec in map(vega_lite, all_figures(report)):
        assert json.loads(json.dumps(spec, allow_nan=False)) == spec
        assert all(math.isfinite(number) for number in numbers(spec))


def test_every_system_is_in_the_quality_figure(report: Document) -> None:
    drawn = figure(report, "quality/bleu")
    assert [row["system"] for row in drawn.rows] == SYSTEMS
    nvs = drawn.rows[2]
    assert (nvs["quality"], nvs["low"], nvs["high"], nvs["latency"]) == (32.5, 31.0, 34.25, 10.0)
    assert (nvs["latency_low"], nvs["latency_high"]) == (9.5, 11.0)
    assert drawn.rows[3]["latency"] is None
    bars = [layer["encoding"] for layer in drawn.spec["layer"] if layer["mark"].get("type") == "rule"]
    assert [(bar["x"]["field"], bar["y"]["field"]) for bar in bars] == [
        ("latency", "low"),
        ("latency_low", "quality"),
    ]
    assert drawn.missing == ("scones-greedy (not measured)",)
    assert vega_lite(drawn)["title"]["subtitle"] == "not drawn: scones-greedy (not measured)"


def test_fields_of_marks_are_in_the_data(report: Document) -> None:
    for one in all_figures(report):
        for layer in one.spec["layer"]:
            for channel in layer["encoding"].values():
                for definition in channel if isinstance(channel, list) else [channel]:
                    if "field" in definition:
                        assert all(definition["field"] in row for row in one.rows)


def test_recall_has_its_sweeps_and_all_systems(report: Document) -> None:
    found = figure(report, "recall/idiom").rows
    sweeps = [
        (row["selection"], row["setting"], row["size"], row["recall"]) for row in found if row["selection"]
    ]
    assert sweeps == [
        ("lexicon", "k=1", 50.0, 0.5),
        ("lexicon", "k=20", 100.0, 0.6),
        ("NVS, softmax", "threshold=0.9", 50.0, 0.5),
    ]
    systems = {row["system"]: (row["size"], row["recall"]) for row in found if row["system"]}
    assert list(systems) == SYSTEMS
    assert systems["softmax-nvs"] == (150.25, 0.9)
    nvs = next(row for row in found if row["system"] == "softmax-nvs")
    assert (nvs["low"], nvs["high"]) == (0.85, 0.94)
    # two full vocabularies lie in one place, under one label
    labels = [row["label"] for row in found if row["system"]]
    assert labels == ["softmax-greedy, scones-greedy", "softmax-lexicon", "softmax-nvs", ""]
    assert all(row["size"] > 0 for row in found)  # the axis is logarithmic


def test_learning_curves_have_every_run_also_one_without_points(filled: Database, fill: Fill) -> None:
    fill(filled, changes={"train/scones/2": {"state": "running"}}, state="running")
    drawn = figure(build_report(filled, "teatime"), "learning/dev_bleu")
    assert list(dict.fromkeys(row["run"] for row in drawn.rows)) == [RUNS[0], RUNS[1], RUNS[3], RUNS[2]]
    assert drawn.missing == ("scones, seed 2 (no points yet)",)
    assert set(drawn.spec["layer"][0]["encoding"]["color"]["scale"]["domain"]) == set(RUNS)


def test_an_infinite_perplexity_is_no_point_that_is_still_to_come() -> None:
    point = [CurvePoint(100.0, 2.5, "")]
    runs = {"softmax": {"dev_loss": point, "dev_perplexity": point}, "entmax": {"dev_loss": point}}
    drawn = learning_curves(runs | {"later": {}}, "dev_perplexity", vega.styles([*runs, "later"]))
    assert drawn.missing == ("entmax (infinite: a reference has probability 0)", "later (no points yet)")


def test_losses_of_different_objectives_have_an_axis_each(report: Document) -> None:
    (learning,) = [
        block for _, block in report.walk() if isinstance(block, Choice) and block.key == "learning"
    ]
    losses = [one for one in learning.figures if one.key.startswith("dev_loss")]
    assert [one.title for one in losses] == ["Development loss: softmax", "Development loss: SCONES α=0.5"]
    assert [{row["run"] for row in one.rows} for one in losses] == [{RUNS[0]}, set(RUNS[1:])]
    assert len({one.choice for one in losses}) == 1  # a page shows them together
    scales = [one.spec["layer"][0]["encoding"]["color"]["scale"] for one in losses]
    assert [scale["domain"] for scale in scales] == [RUNS[:1], RUNS[1:]]
    colours = {run: colour for scale in scales for run, colour in zip(*scale.values(), strict=True)}
    assert len(set(colours.values())) == 2  # of each variant
    assert {row["run"] for row in figure(report, "learning/dev_bleu").rows} == set(RUNS)


def test_figures_fit_their_container_and_name_their_axes(report: Document) -> None:
    for one in all_figures(report):
        assert one.spec["width"] == "container"
        for layer in one.spec["layer"]:
            assert layer["encoding"]["x"]["title"]
            assert layer["encoding"]["y"]["title"]


def test_what_a_study_does_not_measure_has_no_figure(
    filled: Database, fill: Fill, spec: dict[str, Any]
) -> None:
    del spec["latency"]
    fill(filled, spec=spec, changes={"train": {"state": "pending"}, "recall": {"state": "pending"}})
    report = build_report(filled, "teatime")
    assert all_figures(report) == []
    absent = {block.key: block.absent for _, block in report.walk() if isinstance(block, Choice)}
    assert absent == {
        "recall": "no recall has been measured yet",
        "learning": "no training has ended yet",
    }
    assert "figures/quality" not in [heading.path for heading in report.contents()]


def test_without_a_selection_there_is_no_recall_to_draw(
    filled: Database, fill: Fill, spec: dict[str, Any]
) -> None:
    spec["systems"] = {name: spec["systems"][name] for name in ("softmax-greedy", "scones-greedy")}
    spec["latency"]["systems"] = list(spec["systems"])
    fill(filled, spec=spec)
    report = build_report(filled, "teatime")
    titles = [block.title for _, block in report.walk() if isinstance(block, Choice)]
    assert titles == ["Quality against latency", "Learning curves"]


def test_human_scores_are_drawn_in_the_unit_of_their_column(filled: Database, fill: Fill) -> None:
    items = [{"systems": [0, 1], "steps": {"anna": [2, 0]}, "segment_index": i} for i in range(3)]
    names = ["softmax-greedy", "softmax-nvs"]
    rated_campaign(filled, items, systems=names, protocol="preference", study_id=fill(filled))
    drawn = figure(build_report(filled, "teatime"), "quality/human:tasting")
    assert [row["quality"] for row in drawn.rows] == [100.0, None, 0.0, None]
    assert drawn.spec["layer"][0]["encoding"]["y"]["title"] == "human score, %"


def test_points_are_counted_that_are_drawn(report: Document) -> None:
    told = text.figure(figure(report, "quality/bleu"))
    assert told.endswith("(3 points; not drawn: scones-greedy (not measured))")


def test_a_training_that_failed_is_not_waited_for(filled: Database, fill: Fill) -> None:
    failed = {"state": "failed", "error": "boom", "error_kind": "deterministic", "facts": None}
    fill(filled, changes={"train/scones/1": failed}, state="failed")
    drawn = figures(build_report(filled, "teatime"))
    told = {one for each in drawn.values() for one in each.missing if one.startswith("scones, seed 1")}
    assert told == {"scones, seed 1 (failed)"}


@pytest.mark.parametrize("updates", [24_000, 120_000, 1_500_000])
def test_neighbouring_labels_of_an_axis_do_not_touch(updates: int) -> None:
    points = [CurvePoint(updates * part / 10, 4.0, "") for part in range(1, 11)]
    run = "softmax, seed 1"
    drawn = learning_curves({run: {"dev_loss": points}}, "dev_loss", vega.styles([run]))
    label = re.compile(
        r'text-anchor="middle" transform="translate\(([\d.]+),[\d.]+\)"([^>]*)>([\d,]+)</text>'
    )
    shown = [
        (float(x), text) for x, style, text in label.findall(drawing.svg(drawn)) if 'opacity="0"' not in style
    ]
    assert len(shown) > 2
    for (left, word), (right, other) in pairwise(shown):
        assert right - left > LETTER * (len(word) + len(other)) / 2, (word, other)


@pytest.mark.parametrize(("lowest", "begins"), [(0.1, 0), (6.0, None)])
def test_an_axis_of_learning_shows_nothing_below_zero(lowest: float, begins: int | None) -> None:
    points = [CurvePoint(100, lowest, ""), CurvePoint(200, 7.0, "")]
    drawn = learning_curves({"a": {"dev_bleu": points}}, "dev_bleu", vega.styles(["a"]))
    assert drawn.spec["layer"][0]["encoding"]["y"]["scale"].get("domainMin") == begins
