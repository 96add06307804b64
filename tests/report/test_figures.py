"""Figures: valid Vega-Lite, all systems in the data, nulls and a subtitle for what is missing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from creamtea.report import figures, vega
from creamtea.report.build import build_report
from creamtea.report.model import Report
from creamtea.store.database import Database

Fill = Callable[..., int]
SYSTEMS = ["softmax-greedy", "softmax-lexicon", "softmax-nvs", "scones-greedy"]
RUNS = ["softmax, seed 1", "scones, seed 1", "scones, seed 2", "scones, seed 3"]


@pytest.fixture
def report(filled: Database, fill: Fill) -> Report:
    fill(filled)
    return build_report(filled, "teatime")


def all_figures(report: Report) -> list[figures.Spec | None]:
    return [
        *(figures.quality_against_latency(report, "test", metric) for metric in ("bleu", "chrf", "comet")),
        *(figures.recall_against_size(report, "test", scope) for scope in ("sentence", "idiom")),
        *(figures.learning_curves(report, series) for series in ("train_loss", "dev_loss", "dev_bleu")),
    ]


def rows(spec: figures.Spec | None) -> list[dict[str, Any]]:
    assert spec is not None
    found: list[dict[str, Any]] = spec["data"]["values"]
    return found


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, float):
        yield value


def test_figures_are_valid_vega_lite(report: Report) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    altair = pytest.importorskip("altair")  # comes with Streamlit, and brings the schema
    (path,) = Path(altair.__file__).parent.rglob("vega-lite-schema.json")
    validator = jsonschema.Draft7Validator(json.loads(path.read_text()))
    for spec in all_figures(report):
        assert [error.message for error in validator.iter_errors(spec)] == []


def test_figures_hold_json_without_nan(report: Report) -> None:
    for spec in all_figures(report):
        assert json.loads(json.dumps(spec, allow_nan=False)) == spec
        assert all(math.isfinite(number) for number in numbers(spec))


def test_every_system_is_in_the_quality_figure(report: Report) -> None:
    spec = figures.quality_against_latency(report, "test", "bleu")
    assert [row["system"] for row in rows(spec)] == SYSTEMS
    nvs = rows(spec)[2]
    assert (nvs["quality"], nvs["low"], nvs["high"], nvs["latency"]) == (32.5, 31.0, 34.25, 10.0)
    assert (nvs["latency_low"], nvs["latency_high"]) == (9.5, 11.0)
    assert rows(spec)[3]["latency"] is None
    assert spec is not None
    bars = [layer["encoding"] for layer in spec["layer"] if layer["mark"].get("type") == "rule"]
    assert [(bar["x"]["field"], bar["y"]["field"]) for bar in bars] == [
        ("latency", "low"),
        ("latency_low", "quality"),
    ]
    assert spec["title"]["subtitle"] == "not drawn: scones-greedy (not measured)"


def test_fields_of_marks_are_in_the_data(report: Report) -> None:
    for spec in all_figures(report):
        assert spec is not None
        for layer in spec["layer"]:
            for channel in layer["encoding"].values():
                for definition in channel if isinstance(channel, list) else [channel]:
                    if "field" in definition:
                        assert all(definition["field"] in row for row in rows(spec))


def test_recall_has_its_sweeps_and_all_systems(report: Report) -> None:
    found = rows(figures.recall_against_size(report, "test", "idiom"))
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
    spec = figures.learning_curves(build_report(filled, "teatime"), "dev_bleu")
    assert list(dict.fromkeys(row["run"] for row in rows(spec))) == [RUNS[0], RUNS[1], RUNS[3], RUNS[2]]
    assert spec is not None
    assert spec["title"]["subtitle"] == "not drawn: scones, seed 2 (no points yet)"
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == RUNS


def test_a_system_keeps_its_colour_and_colours_repeat_only_after_the_palette(report: Report) -> None:
    colours = [
        figures.quality_against_latency(report, "test", metric)["layer"][1]["encoding"]["color"]["scale"]  # type: ignore[index]
        for metric in ("bleu", "comet")
    ]
    assert colours[0] == colours[1]
    assert len(set(vega.PALETTE)) == len(vega.PALETTE) == len(vega.SHAPES)
    many = vega.colour_scale("system", [str(number) for number in range(9)])["scale"]
    assert many["range"][7:] == list(vega.PALETTE[:2])


def test_figures_fit_their_container_and_name_their_axes(report: Report) -> None:
    for spec in all_figures(report):
        assert spec is not None
        assert spec["width"] == "container"
        for layer in spec["layer"]:
            assert layer["encoding"]["x"]["title"]
            assert layer["encoding"]["y"]["title"]


def test_what_a_study_does_not_measure_has_no_figure(
    filled: Database, fill: Fill, spec: dict[str, Any]
) -> None:
    del spec["latency"]
    fill(filled, spec=spec, changes={"train": {"state": "pending"}, "recall": {"state": "pending"}})
    report = build_report(filled, "teatime")
    assert all(figure is None for figure in all_figures(report))
    with pytest.raises(KeyError):
        figures.quality_against_latency(report, "none", "bleu")


def test_an_unknown_metric_is_an_error(report: Report) -> None:
    with pytest.raises(KeyError):
        figures.quality_against_latency(report, "test", "ter")
