from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import step_files
import torch
from step_context import Context
from step_files import read_rows

from creamtea.errors import StepError
from creamtea.methods.searches import Exact
from creamtea.methods.selections import FullVocabulary
from creamtea.steps.systems import LATENCY
from creamtea_workers.search.systems import TrainedModel
from creamtea_workers.steps import latency

SYSTEMS = [
    {"selection": {"kind": "full"}, "search": {"kind": "greedy"}, "precision": "fp32", "model": 0},
    {
        "selection": {"kind": "lexicon", "k": 2},
        "search": {"kind": "beam", "width": 2},
        "precision": "fp32",
        "model": 1,
    },
    {
        "selection": {"kind": "nvs", "threshold": 0.5, "context": "word"},
        "search": {"kind": "greedy"},
        "precision": "bf16",
        "model": 0,
    },
    {
        "selection": {"kind": "lexicon", "k": 2},
        "search": {"kind": "beam", "width": 4},
        "precision": "int8",
        "model": 0,
    },
    {
        "selection": {"kind": "full"},
        "search": {"kind": "sample", "top_k": 3},
        "precision": "int8",
        "model": 1,
    },
    {"selection": {"kind": "full"}, "search": {"kind": "mbr", "samples": 3}, "precision": "fp32", "model": 0},
    {"selection": {"kind": "full"}, "search": {"kind": "exact"}, "precision": "fp32", "model": 0},
]


def given(tmp_path: Path, systems: list[dict[str, Any]]) -> Context:
    subwords = step_files.subwords_folder(tmp_path)
    size = step_files.vocabulary_size(subwords)
    words = ["the", "cat", "sat", "on", "the", "mat", "in", "the", "park"]
    segments = [{"source": " ".join(words[: n % 9]), "reference": "x"} for n in range(12)]
    return Context(
        LATENCY,
        {"latency": {"sentences": 4, "repetitions": 3, "warmup": 1, "threads": 1}, "systems": systems},
        {
            "test_set": [step_files.test_set_folder(tmp_path, segments)],
            "subwords": [subwords],
            "models": [step_files.model_folder(tmp_path, size, f"model{n}", seed=n) for n in (1, 2)],
            "align": [step_files.lexicon_folder(tmp_path, size)],
        },
        tmp_path / "out",
    )


def test_a_beam_wider_than_the_selection_is_refused_before_anything_is_timed(tmp_path: Path) -> None:
    wide = {**SYSTEMS[1], "search": {"kind": "beam", "width": 30}}
    context = given(tmp_path, [SYSTEMS[0], wide])
    with pytest.raises(
        StepError, match=r"segment \d+: the selection leaves \d+ subwords, .* width of 30.* `k`"
    ):
        context.run()
    assert context.progresses == []


@pytest.mark.slow
def test_every_system_sentence_and_repetition_is_timed_once(tmp_path: Path) -> None:
    context = given(tmp_path, SYSTEMS)
    size = step_files.vocabulary_size(context.input("subwords"))
    result = context.run()

    rows = read_rows(tmp_path / "out" / "latency.jsonl")
    keys = [(row["system"], row["sentence"], row["repetition"]) for row in rows]
    sentences = result.facts["segments"]
    assert sorted(keys) == sorted((s, n, r) for s in range(len(SYSTEMS)) for n in sentences for r in range(3))
    assert len(sentences) == 4
    assert all(row["seconds"] > 0 for row in rows)

    by_subject = {(row.name, row.subject): row for row in result.metrics}
    assert set(by_subject) == {(f"latency_p{p}", str(s)) for p in (50, 90, 99) for s in range(len(SYSTEMS))}
    for (name, subject), row in by_subject.items():
        table = np.array([one["seconds"] for one in rows if one["system"] == int(subject)]).reshape(3, 4)
        expected = np.median([np.percentile(one, int(name.removeprefix("latency_p"))) for one in table])
        assert row.value == pytest.approx(1000 * expected, rel=1e-2, abs=1e-3)
        assert row.low is not None
        assert row.high is not None
        assert row.low <= row.value <= row.high
        assert row.detail["batch_size"] == row.detail["threads"] == 1
        assert row.detail["hardware"]
    first, second, third, fourth = (by_subject["latency_p50", str(s)].detail for s in range(4))
    assert first["percent_of"][0] == {"value": 100.0, "low": 100.0, "high": 100.0}
    assert (second["selection"], second["beam"], second["search"]) == ("lexicon k=2", 2, "beam")
    assert (third["selection"], third["precision"]) == ("nvs threshold=0.5 context=word", "bf16")
    assert (fourth["precision"], fourth["beam"]) == ("int8", 4)
    assert first["selected_size"] == size > second["selected_size"]


def test_exact_search_in_int8_is_refused_with_the_remedy(tmp_path: Path) -> None:
    size = step_files.vocabulary_size(step_files.subwords_folder(tmp_path))
    trained = TrainedModel.load(step_files.model_folder(tmp_path, size), "int8", torch.device("cpu"))
    with pytest.raises(StepError, match=r"exact search in precision int8.*fp32"):
        trained.translator(FullVocabulary(), Exact(kind="exact"))


def test_percentages_are_paired_over_repetitions_against_every_system() -> None:
    # two sentences, four repetitions on a machine that slows down; the second system takes half the time of
    # the first in every one of them, and once a quarter
    drift = np.array([1.0, 2.0, 4.0, 8.0])
    first = np.stack([drift, 3 * drift], axis=1)  # (repetitions, sentences)
    second = first * np.array([0.5, 0.5, 0.5, 0.25])[:, None]
    rows = latency.metrics(np.stack([first, second]), [{"beam": 1}, {"beam": 2}])
    of = {(row.name, row.subject): row.detail["percent_of"] for row in rows}
    assert of["latency_p50", "1"][0]["value"] == of["latency_p99", "1"][0]["value"] == 50.0
    assert (of["latency_p50", "1"][0]["low"], of["latency_p50", "1"][0]["high"]) == (25.0, 50.0)
    assert of["latency_p50", "0"][1]["value"] == 200.0
    assert of["latency_p90", "1"][1] == {"value": 100.0, "low": 100.0, "high": 100.0}
    # the times themselves are spread by the drift
    (time,) = [row for row in rows if (row.name, row.subject) == ("latency_p50", "0")]
    assert (time.low, time.value, time.high) == (2000.0, 6000.0, 16000.0)
    assert time.detail["beam"] == 1


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
