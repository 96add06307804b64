"""Table 6 of the NVS paper by plain sets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import step_files
import torch
from step_context import Context

from creamtea.contract.step import MetricRow, StepResult
from creamtea.errors import StepError
from creamtea.methods.analyses.selections import NvsContext
from creamtea.methods.selections import NvsSelection
from creamtea.stats.estimate import clustered_interval
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.models.model import load_model
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
def folders(tmp_path: Path) -> dict[str, list[Path]]:
    subwords = step_files.subwords_folder(tmp_path)
    return {
        "test_set": [step_files.test_set_folder(tmp_path, SEGMENTS)],
        "subwords": [subwords],
        "train": [step_files.model_folder(tmp_path, step_files.vocabulary_size(subwords), seed=1)],
    }


def run(folders: dict[str, list[Path]]) -> StepResult:
    return Context(NvsContext.step, {"thresholds": THRESHOLDS}, folders).run()


def metric(result: StepResult, name: str, subject: str) -> MetricRow:
    (row,) = [row for row in result.metrics if (row.name, row.subject) == (name, subject)]
    return row


def test_shares_are_those_of_plain_sets(folders: dict[str, list[Path]]) -> None:
    result = run(folders)
    subwords = SubwordModel.load(folders["subwords"][0] / "subwords.model")
    model, _, _ = load_model(folders["train"][0])
    seen = set()
    for threshold in THRESHOLDS:
        hits: dict[str, list[bool]] = {"sentence": [], "word": []}
        sizes: dict[str, list[int]] = {"sentence": [], "word": []}
        for kind in hits:
            spec = NvsSelection(kind="nvs", threshold=threshold, context=kind)  # type: ignore[arg-type]
            selector = build_selector(spec, SelectionResources(model, subwords=subwords))
            for segment in SEGMENTS[:-1]:
                source = subwords.encode(segment["source"])
                wanted = Reference.of(subwords, segment["reference"], segment["idioms"]).idiom.tolist()
                with torch.inference_mode():
                    memory = model.encode(source_batch([source], torch.device("cpu")))
                    (ids,) = selector.select([source], memory) or []
                hits[kind].append(set(wanted) <= set(ids.tolist()))
                sizes[kind].append(len(ids))
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
        for kind in ("sentence", "word"):
            size = metric(result, "selected_size", f"{threshold:g}/{kind}").value
            assert size == pytest.approx(np.mean(sizes[kind]))
            (point,) = [
                p
                for p in result.points
                if p.series == f"all_selected_{kind}" and p.label == f"threshold={threshold:g}"
            ]
            assert (point.x, point.y) == pytest.approx((size, expected[kind] / 5))
        seen.update(pairs)
    assert len(seen) == 4  # the cases differ, or this would test little


def test_subwords_that_only_the_context_selects_are_listed(folders: dict[str, list[Path]]) -> None:
    result = run(folders)
    subwords = SubwordModel.load(folders["subwords"][0] / "subwords.model")
    model, _, _ = load_model(folders["train"][0])
    listed_at = 0
    for threshold in THRESHOLDS:
        expected = []
        for index, segment in enumerate(SEGMENTS[:-1]):
            source = subwords.encode(segment["source"])
            selected = []
            for kind in ("sentence", "word"):
                spec = NvsSelection(kind="nvs", threshold=threshold, context=kind)  # type: ignore[arg-type]
                selector = build_selector(spec, SelectionResources(model, subwords=subwords))
                with torch.inference_mode():
                    memory = model.encode(source_batch([source], torch.device("cpu")))
                    (ids,) = selector.select([source], memory) or []
                selected.append(set(ids.tolist()))
            start, end = segment["idioms"][0]["target"]
            target = segment["reference"][start:end]
            only = [id_ for id_ in dict.fromkeys(subwords.encode(target)) if id_ in selected[0] - selected[1]]
            idiom = {"segment": index, "source": segment["source"][:1], "target": target}
            expected += [{**idiom, "only_in_context": subwords.pieces(only)}] if only else []
        expected.sort(key=lambda idiom: -len(idiom["only_in_context"]))
        listed = metric(result, "all_words_selected", f"{threshold:g}/only_sentence").detail
        assert listed["only_in_context"] == {"count": len(expected), "of": 5, "idioms": expected}
        listed_at += bool(expected)
    assert 0 < listed_at < len(THRESHOLDS)


def test_without_idioms_there_is_a_note_and_no_number(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    result = run({**folders, "test_set": [step_files.test_set_folder(tmp_path / "plain", SEGMENTS[-1:])]})
    row = metric(result, "all_selected", "0.9/only_sentence")
    assert (row.value, row.note) == (None, "no segment of this test set has an annotated idiom")
    assert {row.value for row in result.metrics} == {None}
    assert result.points == []


def test_a_model_without_the_head_is_refused(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    size = step_files.vocabulary_size(folders["subwords"][0])
    headless = step_files.model_folder(tmp_path, size, "headless", nvs=None)
    with pytest.raises(StepError, match="trained without an NVS head"):
        run({**folders, "train": [headless]})
