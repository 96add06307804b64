"""Table 6 of the NVS paper by plain sets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import step_files
import torch
from step_context import Context
from step_files import Folders, metric

from creamtea.contract.step import StepResult
from creamtea.errors import StepError
from creamtea.methods.analyses.selections import NvsContext
from creamtea.methods.selections import NvsSelection
from creamtea.stats.estimate import clustered_interval
from creamtea_workers.search.translator import source_batch
from creamtea_workers.selection import SelectionResources, build_selector
from creamtea_workers.selection.recall import Reference

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


def selections(folders: Folders, threshold: float, kind: str) -> list[set[int]]:
    """What the idioms' segments may use, a sentence at a time."""
    subwords, model = step_files.subwords_of(folders), step_files.model_of(folders)
    spec = NvsSelection.model_validate({"kind": "nvs", "threshold": threshold, "context": kind})
    selector = build_selector(spec, SelectionResources(model, subwords=subwords))
    found = []
    with torch.inference_mode():
        for segment in SEGMENTS[:-1]:
            source = subwords.encode(segment["source"])
            memory = model.encode(source_batch([source], torch.device("cpu")))
            (ids,) = selector.select([source], memory) or []
            found.append(set(ids.tolist()))
    return found


def test_shares_and_what_only_the_context_selects_are_those_of_plain_sets(folders: Folders) -> None:
    result, subwords = run(folders), step_files.subwords_of(folders)
    seen, listed_at = set(), 0
    for threshold in THRESHOLDS:
        chosen = {kind: selections(folders, threshold, kind) for kind in ("sentence", "word")}
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
    result = run({**folders, "test_set": [step_files.test_set_folder(tmp_path, SEGMENTS[-1:], "plain")]})
    row = metric(result, "all_selected", "0.9/only_sentence")
    assert (row.value, row.note) == (None, "no segment of this test set has an annotated idiom")
    assert {row.value for row in result.metrics} == {None}
    assert result.points == []


def test_a_model_without_the_head_is_refused(folders: Folders, tmp_path: Path) -> None:
    size = step_files.subwords_of(folders).size
    headless = step_files.model_folder(tmp_path, size, "headless", nvs=None)
    with pytest.raises(StepError, match="trained without an NVS head"):
        run({**folders, "train": [headless]})
