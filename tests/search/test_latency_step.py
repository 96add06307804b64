"""Latencies: every translation is timed once, and intervals and ratios are those of the repetitions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import step_files
import torch
from scipy import stats
from step_context import Context
from step_files import read_rows

from creamtea.errors import StepError
from creamtea.methods.searches import Exact
from creamtea.methods.selections import FullVocabulary
from creamtea.steps.systems import LATENCY
from creamtea_workers.search.translator import TrainedModel, Translator
from creamtea_workers.steps import latency

FULL, LEXICON = {"kind": "full"}, {"kind": "lexicon", "k": 2}
WORDWISE = {"kind": "nvs", "threshold": 0.5, "context": "word"}
SYSTEMS: list[dict[str, Any]] = [
    {"selection": FULL, "search": {"kind": "greedy"}, "precision": "fp32", "model": 0},
    {"selection": LEXICON, "search": {"kind": "beam", "width": 2}, "precision": "fp32", "model": 1},
    {"selection": WORDWISE, "search": {"kind": "greedy"}, "precision": "bf16", "model": 0},
    {"selection": LEXICON, "search": {"kind": "beam", "width": 4}, "precision": "int8", "model": 0},
    {"selection": FULL, "search": {"kind": "sample", "top_k": 3}, "precision": "int8", "model": 1},
    {"selection": FULL, "search": {"kind": "mbr", "samples": 3}, "precision": "fp32", "model": 0},
    {"selection": FULL, "search": {"kind": "exact"}, "precision": "fp32", "model": 0},
]


PERCENTILES = ("latency_p50", "latency_p90", "latency_p99")
MEANS = ("latency_mean", "latency_mean_p50", "latency_mean_p90", "latency_mean_p99", "sentences_per_second")


def given(tmp_path: Path, systems: list[dict[str, Any]], **protocol: int) -> Context:
    words = ["the", "cat", "sat", "on", "the", "mat", "in", "the", "park"]
    folders = step_files.input_folders(tmp_path, [" ".join(words[: n % 9]) for n in range(12)])
    other = step_files.model_folder(tmp_path, step_files.subwords_of(folders).size, "other", seed=2)
    folders["models"] = [*folders["train"], other]
    usual = {"sentences": 4, "repetitions": 3, "warmup": 1, "threads": 1}
    return Context(LATENCY, {"latency": usual | protocol, "systems": systems}, folders, tmp_path / "out")


@pytest.mark.slow
def test_every_system_sentence_and_repetition_is_timed_once(tmp_path: Path) -> None:
    context = given(tmp_path, SYSTEMS, repetitions=5)
    size = step_files.vocabulary_size(context.input("subwords"))
    result = context.run()

    rows = read_rows(tmp_path / "out" / "latency.jsonl")
    keys = [(row["system"], row["sentence"], row["repetition"]) for row in rows]
    sentences = result.facts["segments"]
    assert sorted(keys) == sorted((s, n, r) for s in range(len(SYSTEMS)) for n in sentences for r in range(5))
    assert len(sentences) == 4
    assert all(row["seconds"] > 0 for row in rows)

    by_subject = {(row.name, row.subject): row for row in result.metrics}
    names = (*PERCENTILES, *MEANS)
    assert set(by_subject) == {(name, str(s)) for name in names for s in range(len(SYSTEMS))}
    for (name, subject), row in by_subject.items():
        if name in MEANS:
            continue
        table = np.array([one["seconds"] for one in rows if one["system"] == int(subject)]).reshape(5, 4)
        expected = np.median([np.percentile(one, int(name.removeprefix("latency_p"))) for one in table])
        assert row.value == pytest.approx(1000 * expected, rel=1e-2, abs=1e-3)
        assert row.low <= row.value <= row.high
        assert row.detail["batch_size"] == row.detail["threads"] == 1
        assert row.detail["hardware"]
    first, second, third, fourth = (by_subject["latency_p50", str(s)].detail for s in range(4))
    assert first["percent_of"][0] == {"value": 100.0, "low": 100.0, "high": 100.0}
    assert (second["selection"], second["beam"], second["search"]) == ("lexicon k=2", 2, "beam")
    assert (third["selection"], third["precision"]) == ("nvs threshold=0.5 context=word", "bf16")
    assert (fourth["precision"], fourth["beam"]) == ("int8", 4)
    assert first["selected_size"] == size > second["selected_size"]


class Captures:
    """A system whose every translation takes 5 seconds, 3 of which capture a graph."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.capture_seconds = 0.0, 0.0
        self.translated: list[Any] = []
        monkeypatch.setattr(latency.time, "perf_counter", lambda: self.now)

    def translate(self, batch: Any, with_scores: bool) -> None:
        self.now, self.capture_seconds = self.now + 5, self.capture_seconds + 3
        self.translated.append(batch)


def test_capturing_graphs_is_not_timed_but_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    system: Any = Captures(monkeypatch)
    assert latency.warm_up([system], [[["one"], ["two"]]], 1, torch.device("cpu")) == [3.0]
    assert system.translated == [["two"]]
    assert latency.warm_up([system], [[["one"], ["two"]]], 1, torch.device("cuda")) == [6.0]
    assert system.translated == [["two"], ["two"], ["one"]]  # on a GPU every batch has its graph
    context: Any = given(tmp_path, SYSTEMS)
    assert latency.measure([system], [[["one"]]], 2, context).tolist() == [[[2.0], [2.0]]]


def test_exact_search_in_int8_is_refused_with_the_remedy(tmp_path: Path) -> None:
    trained = TrainedModel.load(step_files.model_folder(tmp_path, 9), "int8", torch.device("cpu"))
    with pytest.raises(StepError, match=r"exact search in precision int8.*fp32"):
        trained.translator(FullVocabulary(), Exact(kind="exact"))


def test_the_beam_of_exact_search_is_not_its_nodes(tmp_path: Path) -> None:
    exact = {**SYSTEMS[1], "search": {"kind": "exact", "beam": 2}}
    result = given(tmp_path, [SYSTEMS[0], exact]).run()
    beams = {row.subject: row.detail["beam"] for row in result.metrics if row.name == "latency_p50"}
    assert beams == {"0": 1, "1": 2}


def test_percentages_are_paired_over_repetitions_against_every_system() -> None:
    # two sentences, five repetitions on a machine that slows down; the second system takes half the time of
    # the first in every one of them, and once a quarter
    drift = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    first = np.stack([drift, 3 * drift], axis=1)  # (repetitions, sentences)
    second = first * np.array([0.5, 0.5, 0.5, 0.5, 0.25])[:, None]
    rows = list(latency.percentiles(np.stack([first, second]), [{"beam": 1}, {"beam": 2}]))
    of = {(row.name, row.subject): row.detail["percent_of"] for row in rows}
    assert of["latency_p50", "1"][0]["value"] == of["latency_p99", "1"][0]["value"] == 50.0
    assert (of["latency_p50", "1"][0]["low"], of["latency_p50", "1"][0]["high"]) == (25.0, 50.0)
    assert of["latency_p50", "0"][1]["value"] == 200.0
    assert of["latency_p90", "1"][1] == {"value": 100.0, "low": 100.0, "high": 100.0}
    # the times themselves are spread by the drift
    (time,) = [row for row in rows if (row.name, row.subject) == ("latency_p50", "0")]
    assert (time.low, time.value, time.high) == (2000.0, 8000.0, 32000.0)
    assert time.detail["beam"] == 1


def test_medians_of_few_repetitions_have_no_interval_and_say_so() -> None:
    seconds = np.arange(1.0, 17.0).reshape(2, 4, 2)
    for row in latency.percentiles(seconds, [{}, {}]):
        found = (row.low, row.high, row.note)
        assert found == (None, None, "no interval of the median of fewer than 5 repetitions")
        assert all(percent["low"] is None for percent in row.detail["percent_of"])
    assert all(row.low is not None for row in latency.means(seconds, 2, [{}, {}]))


def test_means_have_the_t_interval_over_repetitions_and_ratios_are_paired() -> None:
    drift = np.array([1.0, 2.0, 4.0, 8.0])
    first = np.stack([drift, 3 * drift], axis=1)
    second = first * np.array([0.5, 0.5, 0.5, 0.25])[:, None]
    rows = {
        (row.name, row.subject): row
        for row in latency.means(np.stack([first, second]), 6, [{"beam": 1}, {"beam": 2}])
    }
    assert {name for name, _ in rows} == set(MEANS)
    for name, values in (
        ("latency_mean", 2000 * drift),
        ("latency_mean_p90", 2800 * drift),
        ("sentences_per_second", 6 / (4 * drift)),
    ):
        row = rows[name, "0"]
        low, high = stats.ttest_1samp(values, 0).confidence_interval()
        assert (row.low, row.value, row.high) == pytest.approx((low, values.mean(), high))
        assert row.detail["beam"] == 1
        assert row.detail["percent_of"][0]["value"] == 100.0
    half = rows["latency_mean", "1"].detail["percent_of"][0]
    assert half["value"] == pytest.approx(100 * second.mean() / first.mean())
    assert half["low"] < half["value"] < half["high"]
    assert rows["sentences_per_second", "1"].detail["percent_of"][0]["value"] > 200


def test_batches_hold_neighbouring_lengths_and_are_timed_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = given(tmp_path, [SYSTEMS[0], SYSTEMS[1]], sentences=9, batch_size=3)
    sizes: list[list[int]] = []
    translate = Translator.translate

    def counted(self: Translator, sources: Any, with_scores: bool = True) -> Any:
        sizes.append([len(source) for source in sources])
        return translate(self, sources, with_scores)

    monkeypatch.setattr(Translator, "translate", counted)
    result = context.run()
    assert len(sizes) == 2 * (1 + 3 * 3)  # systems × (warm-up + repetitions × batches)
    assert {len(size) for size in sizes} == {3}
    assert all(size == sorted(size) for size in sizes)
    rows = read_rows(tmp_path / "out" / "latency.jsonl")
    firsts = result.facts["segments"][::3]
    keys = sorted((row["system"], row["sentence"], row["repetition"]) for row in rows)
    assert keys == sorted((s, n, r) for s in range(2) for n in firsts for r in range(3))
    by_subject = {(row.name, row.subject): row for row in result.metrics}
    for system in range(2):
        of_system = [row["seconds"] for row in rows if row["system"] == system]
        totals = np.array(of_system).reshape(3, 3).sum(axis=1)
        speed = by_subject["sentences_per_second", str(system)]
        assert speed.value == pytest.approx((9 / totals).mean(), rel=1e-2)
        assert speed.detail["batch_size"] == 3


def test_a_small_test_set_gives_the_whole_batches_that_it_has(tmp_path: Path) -> None:
    result = given(tmp_path, [SYSTEMS[0]], sentences=100, batch_size=5).run()  # of 12 segments
    assert len(result.facts["segments"]) == 10
    assert {row.detail["sentences"] for row in result.metrics} == {10}


def test_a_test_set_smaller_than_a_batch_is_refused(tmp_path: Path) -> None:
    context = given(tmp_path, [SYSTEMS[0]], sentences=64, batch_size=64)
    with pytest.raises(StepError, match="12 sentences, fewer than a batch of 64"):
        context.run()


@pytest.mark.parametrize(
    ("lengths", "count", "chosen"),
    [
        ([5, 1, 3, 2, 4], 3, [1, 2, 0]),
        ([5, 1, 3, 2, 4], 9, [1, 3, 2, 4, 0]),
        ([7, 7, 7], 2, [0, 2]),
        ([4], 1, [0]),
    ],
)
def test_sentences_are_spread_over_the_lengths(lengths: list[int], count: int, chosen: list[int]) -> None:
    assert latency.spread_by_length(lengths, count) == chosen
