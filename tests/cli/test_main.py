"""The frame of the command line: help, version, what it imports."""

from __future__ import annotations

import subprocess
import sys

import pytest
from limits import ANSWER
from typer.testing import CliRunner

import creamtea
from creamtea.cli.main import app

COMMANDS = ["validate", "run", "submit", "status", "cancel", "retry", "report", "serve", "link", "campaign"]
COMMANDS += ["translate", "controller", "db", "gc", "du", "study"]


def test_version() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"creamtea {creamtea.__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "100"})
    assert done.exit_code == 0
    assert "Usage:" in done.output


@pytest.mark.slow
def test_help_lists_the_commands_and_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from creamtea.cli.main import app\n"
        "try:\n    app(['--help'])\n"
        "finally:\n"
        "    heavy = {'ray', 'torch', 'streamlit', 'scipy', 'pandas', 'grpc', 'numpy', 'sqlalchemy'}\n"
        "    heavy &= sys.modules.keys()\n"
        "    print('heavy:', *sorted(heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=ANSWER)
    assert done.stdout.rstrip().endswith("heavy:"), done.stdout[-300:] + done.stderr
    for command in COMMANDS:
        assert f" {command} " in done.stdout
