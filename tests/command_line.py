"""creamtea's command line inside a test's own process."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from creamtea.cli.main import main
from creamtea.store.database import Database

Run = Callable[..., tuple[int, str, str]]


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def call(
    environment: Mapping[str, str], *arguments: str | Path, folder: Path | None = None, given: str = ""
) -> Done:
    """Run a command with these variables and no others, in a folder, with `given` as its standard input.

    A process of its own would take two or three seconds to import torch.
    """
    output, errors = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, environment, clear=True),
        patch.object(sys, "argv", ["creamtea", *map(str, arguments)]),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode()))),
        contextlib.chdir(folder or Path.cwd()),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, output.getvalue(), errors.getvalue())


class CommandsOn:
    """Run commands on a database: `run("report", "demo")` is what it prints."""

    def __init__(self, database: Database) -> None:
        own = {name: text for name, text in os.environ.items() if not name.startswith("CREAMTEA_")}
        own.pop("COLUMNS", None)
        url = database.url.render_as_string(hide_password=False)
        self.environment = own | {"CREAMTEA_DATABASE_URL": url}

    def __call__(self, *arguments: str | Path) -> str:
        done = call(self.environment, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *arguments: str | Path) -> str:
        """The message on standard error of a command that ends with exit code 2."""
        done = call(self.environment, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), done
        return done.stderr.removeprefix("creamtea: ")


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
