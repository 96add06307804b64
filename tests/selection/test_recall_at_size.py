"""NVS against the lexicon at equal size, against plain loops over every threshold."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import step_files
import torch
from hypothesis import given
from hypothesis import strategies as st
from step_context import Context
from step_files import Folders, metric

from creamtea.contract.step import StepResult
from creamtea.methods.analyses.selections import RecallAtSize
from creamtea_workers.models.interface import EOS
from creamtea_workers.search.translator import source_batch
from creamtea_workers.selection import recall
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.recall import Largest, Reference
from creamtea_workers.steps.selections import threshold_for

KS = [1, 2, 9]
SEGMENTS: list[dict[str, Any]] = [
    {
        "source": "the cat sat on the mat",
        "reference": "the dog sat on the mat",
        "idioms": [{"name": "x", "source": [0, 3], "target": [4, 11]}],
    },
    {
        "source": "a dog",
        "reference": "she took the cake",
        "idioms": [{"name": "y", "source": [0, 1], "target": [4, 17]}],
    },
    {"source": "it rains", "reference": "it rains cats and dogs", "idioms": []},
    {"source": "", "reference": "", "idioms": []},
]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return step_files.input_folders(tmp_path, SEGMENTS)


def run(folders: Folders) -> StepResult:
    return Context(RecallAtSize.step, {"k": KS}, folders).run()


def value(result: StepResult, name: str, subject: str) -> float:
    found = metric(result, name, subject).value
    assert found is not None
    return found


def test_thresholds_sizes_and_recalls_are_those_of_plain_loops(folders: dict[str, list[Path]]) -> None:
    result = run(folders)
    subwords, model = step_files.subwords_of(folders), step_files.model_of(folders)
    lexicon = Lexicon.load(folders["align"][0] / "lexicon.npz")
    votes, chosen, wanted = [], {}, []
    for segment in SEGMENTS:
        source = subwords.encode(segment["source"])
        with torch.inference_mode():
            memory = model.encode(source_batch([source], torch.device("cpu")))
            votes.append(model.nvs_logits(memory)[0].tolist())
        for k in KS:
            chosen.setdefault(k, []).append(set(lexicon.select(source, k).tolist()))
        wanted.append(Reference.of(subwords, segment["reference"], segment["idioms"]))
    candidates = sorted({x for row in votes for n, x in enumerate(row) if n != EOS} | {-math.inf})
    for k in KS:
        total = sum(map(len, chosen[k]))
        for least in candidates:  # the lowest one that does not select more
            sets = [{n for n, x in enumerate(row) if x > least or n == EOS} for row in votes]
            if sum(map(len, sets)) <= total:
                break
        assert value(result, "selected_size_lexicon", f"k={k}") == pytest.approx(total / len(SEGMENTS))
        size = sum(map(len, sets)) / len(SEGMENTS)
        assert value(result, "selected_size_nvs", f"k={k}") == pytest.approx(size)
        assert value(result, "threshold", f"k={k}") == pytest.approx(1 / (1 + math.exp(-least)), abs=1e-6)
        for scope in ("sentence", "idiom"):
            unique = [set(getattr(reference, scope).tolist()) for reference in wanted]
            recalls = [
                sum(len(a & b) for a, b in zip(unique, own, strict=True)) / sum(map(len, unique))
                for own in (chosen[k], sets)
            ]
            subject = f"k={k}/{scope}"
            assert value(result, "recall_lexicon", subject) == pytest.approx(recalls[0])
            assert value(result, "recall_nvs", subject) == pytest.approx(recalls[1])
            difference = metric(result, "recall_difference", subject)
            assert difference.value == pytest.approx(recalls[1] - recalls[0])
            assert difference.low <= difference.value <= difference.high
            assert 0 < difference.detail["p_two_sided"] <= 1
            point = {p.label: p for p in result.points if p.series == f"recall_nvs_{scope}"}[f"k={k}"]
            assert (point.x, point.y) == pytest.approx((size, recalls[1]))
        shares = [  # "x" and "y" are in one segment each
            len(set(ids.tolist()) & own) / len(ids)
            for reference, own in zip(wanted, sets, strict=True)
            for ids in reference.idioms.values()
        ]
        assert value(result, "recall_nvs", f"k={k}/idiom_macro") == pytest.approx(np.mean(shares))


def test_without_idioms_there_is_a_note_and_no_number(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    folders["test_set"] = [step_files.test_set_folder(tmp_path, SEGMENTS[2:], "plain")]
    result = run(folders)
    for scope in ("idiom", "idiom_macro", "idiom_words", "idiom_words_macro"):
        row = metric(result, "recall_difference", f"k=1/{scope}")
        assert (row.value, row.note) == (None, "no segment of this test set has an annotated idiom")
    assert metric(result, "recall_difference", "k=1/sentence").value is not None
    assert {p.series for p in result.points} == {"recall_lexicon_sentence", "recall_nvs_sentence"}


logits = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0]), min_size=1, max_size=30)


@given(logits, st.data())
def test_the_threshold_is_the_lowest_that_keeps_the_budget(values: list[float], data: st.DataObject) -> None:
    budget = data.draw(st.integers(0, len(values) - 1))
    descending = np.sort(np.array(values, dtype=np.float32))[::-1]
    least, selected = threshold_for(descending, budget)
    assert selected == sum(value > least for value in values) <= budget
    lower = [value for value in values if value < least]
    if lower:  # with the next lower threshold it would be too many
        assert sum(value > max(lower) for value in values) > budget


@given(st.lists(logits, max_size=6), st.integers(1, 20))
def test_the_largest_of_parts_are_the_largest_of_all(parts: list[list[float]], count: int) -> None:
    room, recall._BUFFER = recall._BUFFER, 3
    try:
        pool = Largest(count)
        for part in parts:
            pool.add(np.array(part, dtype=np.float32))
        expected = sorted((value for part in parts for value in part), reverse=True)[:count]
        assert pool.descending().tolist() == expected
    finally:
        recall._BUFFER = room
