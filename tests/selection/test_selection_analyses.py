"""Table 6 of the NVS paper by plain sets, and NVS against the lexicon at equal size by plain loops."""

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
from creamtea.errors import StepError
from creamtea.methods.analyses.selections import NvsContext, RecallAtSize
from creamtea.stats.estimate import clustered_interval
from creamtea_workers.models.interface import EOS
from creamtea_workers.search.translator import source_batch
from creamtea_workers.selection import recall
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.recall import Largest, Reference
from creamtea_workers.steps.selections import threshold_for

THRESHOLDS = [0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5]
SEGMENTS: list[dict[str, Any]] = [
    {"source": source, "reference": reference, "idioms": [{"name": name, "source": [0, 1], "target": span}]}
    for name, source, reference, span in (
        ("x", "the cat sat", "the dog sat on the mat", [4, 7]),
        ("y", "a dog ran", "she took the cake", [13, 14]),
        ("x", "rains cats and dogs", "a dog", [0, 1]),
        ("z", "the park", "the cat", [0, 3]),
        ("x", "took", "on the mat", [0, 2]),
    )
] + [{"source": "the dog", "reference": "a cat", "idioms": []}]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return step_files.input_folders(tmp_path, SEGMENTS)


def run(folders: Folders) -> StepResult:
    return Context(NvsContext.step, {"thresholds": THRESHOLDS}, folders).run()


def test_shares_and_what_only_the_context_selects_are_those_of_plain_sets(folders: Folders) -> None:
    result, subwords = run(folders), step_files.subwords_of(folders)
    seen, listed_at = set(), 0
    for threshold in THRESHOLDS:
        nvs = {"kind": "nvs", "threshold": threshold}
        sources = [segment["source"] for segment in SEGMENTS[:-1]]
        chosen = {
            kind: step_files.selected_alone(folders, {**nvs, "context": kind}, sources)
            for kind in ("sentence", "word")
        }
        hits: dict[str, list[bool]] = {"sentence": [], "word": []}
        listed = []
        for index, segment in enumerate(SEGMENTS[:-1]):
            wanted = Reference.of(subwords, segment["reference"], segment["idioms"]).idiom.tolist()
            for kind, sets in chosen.items():
                hits[kind].append(set(wanted) <= sets[index])
            start, end = segment["idioms"][0]["target"]
            target = segment["reference"][start:end]
            only = chosen["sentence"][index] - chosen["word"][index]
            ids = [id_ for id_ in dict.fromkeys(subwords.encode(target)) if id_ in only]
            idiom = {"segment": index, "source": segment["source"][:1], "target": target}
            listed += [{**idiom, "only_in_context": subwords.pieces(ids)}] if ids else []
        listed.sort(key=lambda idiom: -len(idiom["only_in_context"]))
        detail = metric(result, "all_words_selected", f"{threshold:g}/only_sentence").detail
        assert detail["only_in_context"] == {"count": len(listed), "of": 5, "idioms": listed}
        listed_at += bool(listed)
        pairs = list(zip(hits["sentence"], hits["word"], strict=True))
        found = {
            **hits,
            "only_sentence": [a and not b for a, b in pairs],
            "only_word": [b and not a for a, b in pairs],
        }
        expected = {kind: sum(rows) for kind, rows in found.items()}
        for kind, count in expected.items():
            row = metric(result, "all_selected", f"{threshold:g}/{kind}")
            assert row.value == pytest.approx(count / 5)
            x, y, z = sum(found[kind][::2]), found[kind][1], found[kind][3]
            assert (row.low, row.high) == clustered_interval([x, y, z], [3, 1, 1])
            assert row.detail["count"] == count
            assert row.detail["segments"] == 5
        for kind, sets in chosen.items():
            size = metric(result, "selected_size", f"{threshold:g}/{kind}").value
            assert size == pytest.approx(np.mean(list(map(len, sets))))
            points = {p.label: p for p in result.points if p.series == f"all_selected_{kind}"}
            point = points[f"threshold={threshold:g}"]
            assert (point.x, point.y) == pytest.approx((size, expected[kind] / 5))
        seen.update(pairs)
    assert len(seen) == 4  # the cases differ, or this would test little
    assert 0 < listed_at < len(THRESHOLDS)


def test_without_idioms_there_is_a_note_and_no_number(folders: Folders, tmp_path: Path) -> None:
    result = run({**folders, "test_set": [step_files.segments_folder(tmp_path, SEGMENTS[-1:], "plain")]})
    row = metric(result, "all_selected", "0.9/only_sentence")
    assert (row.value, row.note) == (None, "no segment of this test set has an annotated idiom")
    assert {row.value for row in result.metrics} == {None}
    assert result.points == []


def test_a_model_without_the_head_is_refused(folders: Folders, tmp_path: Path) -> None:
    size = step_files.subwords_of(folders).size
    headless = step_files.model_folder(tmp_path, size, "headless", nvs=None)
    with pytest.raises(StepError, match="trained without an NVS head"):
        run({**folders, "train": [headless]})


# ---------------------------------------------------------------- NVS against the lexicon at equal size


KS = [1, 2, 9]
PAIRS: list[dict[str, Any]] = [
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
def recalled(tmp_path: Path) -> Folders:
    return step_files.input_folders(tmp_path, PAIRS)


def at_size(folders: Folders) -> StepResult:
    return Context(RecallAtSize.step, {"k": KS}, folders).run()


def value(result: StepResult, name: str, subject: str) -> float:
    found = metric(result, name, subject).value
    assert found is not None
    return found


def test_thresholds_sizes_and_recalls_are_those_of_plain_loops(recalled: Folders) -> None:
    result = at_size(recalled)
    subwords, model = step_files.subwords_of(recalled), step_files.model_of(recalled)
    lexicon = Lexicon.load(recalled["align"][0] / "lexicon.npz")
    votes, chosen, wanted = [], {}, []
    for segment in PAIRS:
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
        assert value(result, "selected_size_lexicon", f"k={k}") == pytest.approx(total / len(PAIRS))
        size = sum(map(len, sets)) / len(PAIRS)
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


def test_at_equal_size_without_idioms_there_is_a_note_and_no_number(
    recalled: Folders, tmp_path: Path
) -> None:
    recalled["test_set"] = [step_files.segments_folder(tmp_path, PAIRS[2:], "plain")]
    result = at_size(recalled)
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
