"""From a step's result and files to rows, and what is refused on the way."""

import hashlib
import json
import math
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select
from table_rows import step_row

from creamtea.contract.step import MetricRow, PointRow, StepResult
from creamtea.errors import StepError
from creamtea.store import MAX_INDEXED
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.database import Database, open_database
from creamtea.store.ingest import BATCH, ingest, read_texts, stored_lines
from creamtea.store.tables import (
    Base,
    Hypothesis,
    Metric,
    Point,
    Segment,
    SegmentScore,
    StepFile,
)

SEGMENT = {
    "index": 0,
    "source": "Ein Hund",
    "reference": "A dog",
    "idioms": [{"name": "i", "source": [0, 3]}],
}
HYPOTHESIS = {"index": 0, "text": "A dog", "score": -1.5, "length": 2, "selected_size": 40}
SCORE = {"index": 0, "value": 0.25}


Put = Callable[..., list[StoredFile]]


@pytest.fixture
def put(database: Database, tmp_path: Path) -> Put:
    """Stores files, and takes them in as those of the running step "k", with its result."""
    with database.transaction() as session:
        session.add(step_row("k", "decode", state="running"))
    store = ArtefactStore(tmp_path / "root")

    def take_in(result: StepResult | None = None, **contents: bytes) -> list[StoredFile]:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        files = store.put_folder(folder)
        with database.transaction() as session:
            ingest(session, "k", result or StepResult(), files, read_texts(store, files))
        return files

    return take_in


def lines(*rows: dict[str, Any]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def rows_of(database: Database, table: type[Base]) -> list[dict[str, Any]]:
    """The table's rows without the step's key, in the order of the primary key."""
    with database.session() as session:
        found = session.execute(select(table.__table__).order_by(*table.__mapper__.primary_key)).mappings()
        return [{name: value for name, value in row.items() if name != "step_key"} for row in found]


def test_everything_becomes_rows(database: Database, put: Put) -> None:
    third = {**SEGMENT, "index": 3, "source": "größer 😀", "idioms": []}
    contents = {
        "segments.jsonl": lines(SEGMENT, third),
        "hypotheses.jsonl": lines(HYPOTHESIS),
        "segment_scores.jsonl": lines(SCORE, {"index": 1, "value": 1}),
        "model.bin": b"\xff\x00",
    }
    result = StepResult(
        metrics=[
            MetricRow("bleu", 31.5, 30.0, 33.0, detail={"signature": "x", "n": 2}),
            MetricRow("comet", None, note="the model cannot be had", subject="test"),
        ],
        points=[PointRow("loss", 1, 2.0), PointRow("other", 0, 0), PointRow("loss", 2, 1.0, "k=1")],
    )
    files = put(result, **contents)
    assert rows_of(database, Segment) == [SEGMENT, third]
    assert rows_of(database, Hypothesis) == [HYPOTHESIS]
    assert rows_of(database, SegmentScore) == [SCORE, {"index": 1, "value": 1.0}]
    assert rows_of(database, StepFile) == [
        {"name": file.name, "digest": file.digest, "size": file.size} for file in files
    ]
    usual = {"subject": "", "low": None, "high": None, "note": "", "detail": {}}
    measured = {"value": 31.5, "low": 30.0, "high": 33.0, "detail": {"signature": "x", "n": 2}}
    assert rows_of(database, Metric) == [
        {"name": "bleu", **usual, **measured},
        {"name": "comet", **usual, "value": None, "subject": "test", "note": "the model cannot be had"},
    ]
    assert rows_of(database, Point) == [
        {"series": "loss", "position": 0, "x": 1.0, "y": 2.0, "label": ""},
        {"series": "loss", "position": 1, "x": 2.0, "y": 1.0, "label": "k=1"},
        {"series": "other", "position": 0, "x": 0.0, "y": 0.0, "label": ""},
    ]


def test_a_second_call_replaces_the_first_and_a_bad_one_leaves_it(database: Database, put: Put) -> None:
    first = {"hypotheses.jsonl": lines(HYPOTHESIS, {**HYPOTHESIS, "index": 1})}
    second = {"hypotheses.jsonl": lines({**HYPOTHESIS, "text": "later"})}
    for contents, value in ((first, 1.0), (second, 2.0), (second, 2.0)):
        files = put(StepResult([MetricRow("m", value)], [PointRow("s", 0, value)]), **contents)
    with pytest.raises(StepError):
        put(**{"hypotheses.jsonl": lines(HYPOTHESIS, HYPOTHESIS)})
    assert [row["text"] for row in rows_of(database, Hypothesis)] == ["later"]
    assert [row["value"] for row in rows_of(database, Metric)] == [2.0]
    assert [row["y"] for row in rows_of(database, Point)] == [2.0]
    assert [row["digest"] for row in rows_of(database, StepFile)] == [files[0].digest]


def test_the_longest_texts_that_are_taken_fit_an_index(database: Database) -> None:
    """PostgreSQL compresses what is longer than this, but nothing that is random."""
    draw = Random(1)
    name, subject, series = (
        "".join(chr(draw.randrange(0x10000, 0x110000)) for _ in range(MAX_INDEXED)) for _ in range(3)
    )
    key = hashlib.sha256(b"step").hexdigest()
    result = StepResult([MetricRow(name, 1.0, subject=subject)], [PointRow(series, 0, 1.0)])
    with database.transaction() as session:
        session.add(step_row(key, "decode", state="running"))
        session.flush()
        ingest(session, key, result, [StoredFile(series, key, 1)], {})
    assert [row["subject"] for row in rows_of(database, Metric)] == [subject]


def test_more_rows_than_a_batch(database: Database, put: Put) -> None:
    scores = [{"index": index, "value": index / 2} for index in range(2 * BATCH + 1)]
    put(**{"segment_scores.jsonl": lines(*scores)})
    with database.session() as session:
        assert session.scalar(select(func.count()).select_from(SegmentScore)) == len(scores)
        assert session.scalar(select(func.sum(SegmentScore.value))) == sum(s["value"] for s in scores)


BAD_LINES = {
    "hypotheses.jsonl": [
        (
            lines(HYPOTHESIS, HYPOTHESIS | {"index": 1, "colour": 1}),
            "line 2: colour: Extra .*; its keys are index, text, score, length, ",
        ),
        (lines(HYPOTHESIS | {"length": 2.0}), "line 1: length: .*integer, found 2.0"),
        (lines(HYPOTHESIS | {"length": -1}), "line 1: length: .*greater than or equal to 0, found -1"),
        (lines(HYPOTHESIS | {"text": None}), "line 1: text: .*string, found None"),
        (lines(HYPOTHESIS | {"text": "a\0b"}), "line 1: text: .*NUL character, found 'a"),
    ],
    "segment_scores.jsonl": [
        (lines({"index": 0}), "line 1: value: Field required.*; its keys are index, value"),
        (b'{"index": 0, "value": NaN}\n', "line 1: value: .*finite.*nan"),
        (b'{"index": 0, "value": 1e999}\n', "line 1: value: .*finite.*inf"),
        (b'{"index": 0, "value": 1' + b"0" * 400 + b"}\n", "line 1: value: .*valid number"),
        (lines(SCORE) + b"\n", "line 2: Invalid JSON"),
        (b"[]\n", "line 1: .*an object"),
        (b"\xff\n", "line 1: Invalid JSON"),
        (lines(SCORE, SCORE), "line 2: index 0 after 0; indices must increase"),
    ],
    "segments.jsonl": [
        (
            b'{"index": 0, "source": "\\ud800", "reference": "", "idioms": []}\n',
            "line 1: Invalid JSON",
        ),
        (lines(SEGMENT | {"idioms": {}}), "line 1: idioms: .*array.*{}"),
        (lines(SEGMENT | {"idioms": [{"name": "a\0"}]}), "line 1: idioms: .*NUL character, found .*name"),
    ],
}


@pytest.mark.parametrize(
    ("name", "content", "message"), [(name, *case) for name, cases in BAD_LINES.items() for case in cases]
)
def test_a_bad_line_is_named(name: str, content: bytes, message: str) -> None:
    with pytest.raises(StepError, match=f"^{name}, {message}"):
        list(stored_lines(name, BytesIO(content)))


def bleu(value: float | None = 1.0, **more: Any) -> StepResult:
    return StepResult([MetricRow("bleu", value, **more)])


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (bleu(math.nan), "metric 'bleu': value: .*finite.*nan"),
        (bleu(low=-math.inf, subject="dev"), "metric 'bleu' of 'dev': low: .*finite.*-inf"),
        (bleu(None), "metric 'bleu' has neither a value nor a note that says why not"),
        (StepResult([MetricRow("bleu", 1.0), MetricRow("bleu", 2.0)]), "metric 'bleu' is given twice"),
        (bleu(detail={"p_values": [0.5, math.nan]}), "metric 'bleu': detail: .*nan"),
        (bleu(detail={"path": Path("a")}), "metric 'bleu': detail: .*a PosixPath, which JSON cannot"),
        (bleu(subject="x" * 301), "metric 'bleu' of .*: subject: .*at most 300"),
        (bleu(note="a\0b"), "metric 'bleu': note: .*NUL"),
        (bleu(note="Stra\udcdfe"), "metric 'bleu': note: .*half of a surrogate pair"),
        (
            StepResult(points=[PointRow("loss", 1, 2.0), PointRow("loss", 2, math.nan)]),
            "point 1 of 'loss': y: .*finite.*nan",
        ),
        (StepResult(points=[PointRow("x" * 301, 1, 2.0)]), "point 0 of .*: series: .*at most 300"),
        (StepResult(facts={"seconds": math.inf}), "the step's result: facts: seconds: .*inf"),
        (StepResult(facts={"a\0": 1}), "the step's result: facts: .*NUL character"),
    ],
)
def test_a_bad_result_is_named(sqlite_template: Path, result: StepResult, message: str) -> None:
    database = open_database(f"sqlite:///{sqlite_template}")  # in which nothing stays of a bad result
    with pytest.raises(StepError, match=f"^{message}"), database.transaction() as session:
        ingest(session, "k", result, [], {})
    database.close()


def test_numpy_numbers_are_numbers(database: Database, put: Put) -> None:
    half: Any = np.float32(0.5)
    put(StepResult([MetricRow("m", half, detail={"n": np.int64(3), "mean": np.float64(0.25)})]))
    (row,) = rows_of(database, Metric)
    assert row["value"] == 0.5
    assert json.dumps(row["detail"], sort_keys=True) == '{"mean": 0.25, "n": 3}'
