"""Property tests that are to be repeatable draw the same examples whatever ran before them."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers


def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Draw examples as the first test of a process would that draws whole numbers."""
    monkeypatch.setattr(providers, "CONSTANTS_CACHE", type(providers.CONSTANTS_CACHE)(1024))
    numbers: list[int] = []

    @settings(derandomize=True, max_examples=100, database=None)
    @given(st.integers())
    def draw(number: int) -> None:
        numbers.append(number)

    draw()
    return numbers


def test_examples_do_not_depend_on_the_modules_that_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = drawn(monkeypatch)
    (tmp_path / "loaded_later.py").write_text(f"NUMBERS = {list(range(123_456, 123_556))}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("loaded_later")
    assert drawn(monkeypatch) == before
