"""The frame of the command line: help, version, what it imports."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
from limits import ANSWER
from typer.testing import CliRunner

import creamtea
from creamtea.cli.main import app
from creamtea.settings import Settings

ROOT = Path(__file__).parents[2]
NAMES_OF_TYPES = re.compile("<(str|bool|int|float|path)>")
COMMANDS = ["validate", "run", "submit", "status", "cancel", "retry", "report", "serve", "link", "campaign"]
COMMANDS += ["translate", "controller", "db", "gc", "du", "study"]


def test_version() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"creamtea {creamtea.__version__}\n")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_has_help_that_names_no_types_of_python(command: str) -> None:
    done = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "100"})
    assert done.exit_code == 0
    assert "Usage:" in done.output
    assert not NAMES_OF_TYPES.search(done.output)


def test_a_variable_that_is_set_to_nothing_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a compose file that passes on what its user has not set."""
    for name in ("HOME", "DATABASE_URL", "ARTEFACTS"):
        monkeypatch.setenv(f"CREAMTEA_{name}", "")
    settings = Settings.load()
    assert settings.home == Path("creamtea-data").absolute()
    assert settings.database_url == f"sqlite:///{settings.home / 'creamtea.db'}"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["'--version'", "'plugins'", "'report', 'none'"])
def test_output_that_nobody_reads_ends_it_as_the_signal_would(command: str, tmp_path: Path) -> None:
    """Written by Typer, by Rich, and as a message."""
    code = f"import sys; from creamtea.cli.main import main; sys.argv = ['creamtea', {command}]; main()"
    closed, written = os.pipe()
    os.close(closed)
    with tempfile.TemporaryFile() as told:
        errors = written if "report" in command else told
        environment = {**os.environ, "CREAMTEA_HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=written, stderr=errors, env=environment, timeout=ANSWER
        )
        told.seek(0)
        assert (done.returncode, told.read()) == (141, b"")
    os.close(written)


def test_an_interrupt_before_the_command_line_is_imported_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")  # the first import that takes long
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "creamtea", "--version"]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=ANSWER)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"creamtea": "creamtea.__main__:main"}


@pytest.mark.parametrize("command", ["'--version'", "'--help'"])
def test_output_that_a_full_disk_refuses_is_said_in_one_line(command: str, tmp_path: Path) -> None:
    code = f"import sys; from creamtea.cli.main import main; sys.argv = ['creamtea', {command}]; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, timeout=ANSWER, text=True
        )
    message = "creamtea: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, message)


@pytest.mark.slow
def test_closed_output_and_input_are_no_traceback(tmp_path: Path) -> None:
    def ran(arguments: str, closed: str) -> tuple[int, str]:
        command = f"{shlex.quote(sys.executable)} -m creamtea.cli.main {arguments} {closed}"
        environment = {**os.environ, "CREAMTEA_HOME": str(tmp_path)}
        done = subprocess.run(
            ["sh", "-c", command], stderr=subprocess.PIPE, env=environment, timeout=ANSWER, text=True
        )
        return done.returncode, done.stderr

    assert ran("--version", ">&-") == (0, "")
    assert ran("translate demo softmax", "<&-") == (
        2,
        "creamtea: standard input is closed; give it the lines to translate\n",
    )


def test_what_is_imported_is_not_searched_for_garbage_when_a_command_ends() -> None:
    code = (
        "import atexit, gc\n"
        "import creamtea.cli.main\n"
        "before = gc.get_freeze_count()\n"
        "atexit._run_exitfuncs()\n"
        "print(before, gc.get_freeze_count() > 10_000)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=ANSWER)
    assert done.stdout == "0 True\n", done.stderr


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
