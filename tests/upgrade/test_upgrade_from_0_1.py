"""A database of version 0.1.0: it is upgraded, and its report has the same numbers.

`database-0.1.0.sql.xz` is what version 0.1.0 left of tests/e2e/methods.yaml and of two campaigns on its
outputs; `report-0.1.0.json.xz` holds the numbers of its report: [section, row, column, value, low, high].
"""

import json
import lzma
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from creamtea.report.build import build_report
from creamtea.report.model import Cell, Document, Table
from creamtea.store.database import open_database
from creamtea.store.schema import upgrade

HERE = Path(__file__).parent
# (section, column): means whose intervals took the pairs of a segment for independent, and latencies
OTHER_INTERVALS = {
    ("c-preference/means", "mean"),
    ("test", "human:c-preference"),
    *(("test", f"latency_p{percent}") for percent in (50, 90, 99)),  # none of fewer than five repetitions
}
ONE_RATER = "c-contrastive-da"  # no number of items decides its comparisons, so none is promised
Numbers = list[Any]


def text_of(name: str) -> str:
    return lzma.decompress((HERE / name).read_bytes()).decode()


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    path = tmp_path_factory.mktemp("upgraded") / "creamtea.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(text_of("database-0.1.0.sql.xz"))
    url = f"sqlite:///{path}"
    upgrade(url)
    return build_report(open_database(url), "methods")


def numbers_of(document: Document) -> Iterator[tuple[str, str, str, Numbers]]:
    """Path, row, column and [value, low, high] of every cell and difference."""
    for path, block in document.walk():
        if not isinstance(block, Table):
            continue
        for row in block.rows:
            name = ", ".join(filter(None, [row.name, row.setting])).replace("idioms in context", "idioms")
            for key, cell in row.cells.items():
                yield from ((path, name, column, values) for column, values in values_of(key, cell))


def values_of(key: str, cell: Cell) -> Iterator[tuple[str, Numbers]]:
    if cell.value is not None:
        yield key, [cell.value, cell.low, cell.high]
    if cell.delta is not None and cell.delta.value is not None:
        yield f"{key} delta", [cell.delta.value, cell.delta.low, cell.delta.high]


def test_the_report_has_the_numbers_of_0_1_0(document: Document) -> None:
    expected = json.loads(text_of("report-0.1.0.json.xz"))
    found: dict[tuple[str, str], list[tuple[str, Numbers]]] = {}
    for path, row, column, values in numbers_of(document):
        found.setdefault((row, column), []).append((path, values))
    missing = [
        (section, row, column, values)
        for section, row, column, *values in expected
        if not needs_more_raters(section, column)
        and not any(
            section.split("/")[0] in path.split("/")
            and (same(values[:1], own[:1]) if (section, column) in OTHER_INTERVALS else same(values, own))
            for path, own in found.get((row, column), [])
        )
    ]
    assert len(expected) > 700
    assert missing == []


def needs_more_raters(section: str, column: str) -> bool:
    own_verdict = column == "verdict" and section.split("/")[0] == ONE_RATER
    return own_verdict or column == f"human_verdict:{ONE_RATER}"


def same(expected: Numbers, found: Numbers) -> bool:
    """Compare to the last digits: Wilson intervals round differently from the formula of 0.1.0.

    Reports no longer show an interval without width, of a score that is the same in every segment.
    """
    if found[1:] == [None, None] and expected[1:] == expected[:1] * 2:
        expected = [*expected[:1], None, None]
    return all(
        (a is None) == (b is None) and (a is None or b == pytest.approx(a, rel=1e-12, abs=1e-12))
        for a, b in zip(expected, found, strict=True)
    )
