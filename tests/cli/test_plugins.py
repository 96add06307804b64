"""How `creamtea plugins` shows what it found."""

from __future__ import annotations

import pytest

from creamtea.cli.plugins import _show


def test_a_reason_with_brackets_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "no such file: [/opt/x]"
    row = {"family": "objective", "kind": "x", "distribution": "d", "version": "1", "state": "broken"}
    _show([{**row, "about": reason}])
    assert reason in " ".join(capsys.readouterr().out.split())
