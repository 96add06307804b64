"""Steps that score and compare texts, and sacreBLEU's own command."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import step_files
from limits import COMMAND
from step_context import Context

from creamtea.steps.systems import COMPARE, SCORE

Texts = Sequence[str]
LANGUAGES = {"source": "en", "target": "de"}


def segments(root: Path, references: Texts, **columns: Sequence[Any]) -> Path:
    """`columns`: more of each segment, as its source, which is else its reference."""
    rows = [{"source": text, "reference": text} for text in references]
    for name, values in columns.items():
        rows = [{**row, name: value} for row, value in zip(rows, values, strict=True)]
    return step_files.segments_folder(Path(mkdtemp(dir=root)), rows)


def outputs(root: Path, texts: Texts) -> Path:
    return step_files.outputs_folder(Path(mkdtemp(dir=root)), texts)


def scoring(test_set: Path, decode: Path, metric: dict[str, Any], **params: Any) -> Context:
    params = {"metric": metric, "languages": LANGUAGES, **params}
    locations = params.pop("locations", {})
    return Context(SCORE, params, {"test_set": [test_set], "decode": [decode]}, locations=locations)


def comparing(
    test_set: Path | None,
    baseline: Sequence[Path],
    system: Sequence[Path],
    metric: dict[str, Any],
    languages: dict[str, str] = LANGUAGES,
    **significance: int,
) -> Context:
    params = {"metric": metric, "languages": languages, "significance": significance}
    folders = {"test_set": [test_set] if test_set else [], "baseline": baseline, "system": system}
    return Context(COMPARE, params, folders)


def printed_by_sacrebleu(folder: Path, *options: str) -> list[dict[str, Any]]:
    """What its command prints of the files `hyp` and `ref`."""
    command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "hyp", "--format", "json", *options]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=COMMAND)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
