"""docs/steps.md says what the kinds of steps say."""

from __future__ import annotations

from pathlib import Path

from creamtea.steps.table import markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "steps.md"


def test_the_page_is_what_the_kinds_declare() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run `make docs`"
