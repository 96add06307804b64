"""creamtea's command line inside a test's own process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from creamtea.cli.main import main

Run = Callable[..., tuple[int, str, str]]


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command: exit code, standard output, standard error."""

    def creamtea(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["creamtea", *arguments])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, *capsys.readouterr()

    return creamtea
