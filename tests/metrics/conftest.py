"""The context of a step, and the outputs of the steps before."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from step_context import Context

from creamtea.contract.step import StepKind


@pytest.fixture
def make_context(tmp_path: Path) -> Callable[..., Context]:
    def make(
        kind: StepKind[Any], params: dict[str, Any], folders: Mapping[str, Sequence[Path]], **more: Any
    ) -> Context:
        languages = {"source": "en", "target": "de"}
        return Context(kind, {"languages": languages, **params}, folders, tmp_path / "output", **more)

    return make


Texts = Callable[..., Path]


@pytest.fixture
def test_set_folder(tmp_path: Path) -> Texts:
    def write(references: Sequence[str], sources: Sequence[str] | None = None) -> Path:
        folder = tmp_path / "test_set"
        rows = [
            {"index": index, "source": source, "reference": reference, "idioms": []}
            for index, (source, reference) in enumerate(zip(sources or references, references, strict=True))
        ]
        return _write(folder / "segments.jsonl", rows)

    return write


@pytest.fixture
def decode_folder(tmp_path: Path) -> Texts:
    def write(hypotheses: Sequence[str], name: str = "decode") -> Path:
        rows = [
            {"index": index, "text": text, "score": -1.0, "length": 3, "selected_size": 9}
            for index, text in enumerate(hypotheses)
        ]
        return _write(tmp_path / name / "hypotheses.jsonl", rows)

    return write


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")
    return path.parent
