"""The command line: puts the commands together, and turns errors into one line and an exit code.

Exit codes: 0 done, 1 something failed, 2 the input is wrong, 130 interrupted, 141 nobody reads
the output any more (`| head`).
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import creamtea
from creamtea.cli.lazy import HELP_OPTIONS, Entry, lazy_group
from creamtea.cli.printing import say
from creamtea.errors import CreamteaError

# What a command imports has very many objects, among which Python would look for garbage again and again.
gc.set_threshold(10_000, 10, 10)

TRACEBACK = "--traceback"
STDOUT = 1  # its file descriptor
CLOSED_PIPE = 141  # 128 + SIGPIPE, as of tools that the signal ends

COMMANDS = {
    "init": Entry("init:init"),
    "validate": Entry("validate:validate"),
    "schema": Entry("schema:schema"),
    "run": Entry("run:run"),
    "compare": Entry("compare:compare"),
    "submit": Entry("submit:submit"),
    "status": Entry("status:status"),
    "logs": Entry("logs:logs"),
    "cancel": Entry("cancel:cancel"),
    "retry": Entry("retry:retry"),
    "report": Entry("report:report"),
    "translate": Entry("translate:translate"),
    "export": Entry("export:export"),
    "blame": Entry("blame:blame"),
    "bundle": Entry("bundle:bundle"),
    "verify": Entry("bundle:verify", "VERIFY_EXAMPLES"),
    "serve": Entry("serve:serve"),
    "link": Entry("serve:link", "LINK_EXAMPLES"),
    "controller": Entry("controller:controller"),
    "plugins": Entry("plugins:plugins"),
    "docs": Entry("docs:docs"),
    "gc": Entry("upkeep:gc", "GC_EXAMPLES"),
    "du": Entry("upkeep:du", "DU_EXAMPLES"),
    "study": Entry("upkeep:study_commands", summary="Remove studies from the database."),
    "links": Entry("links:commands", summary="The links of readers, organisers and raters."),
    "campaign": Entry(
        "campaign:commands", summary="Human evaluation: people rate the outputs of systems, blind."
    ),
    "db": Entry("db:commands", summary="The schema of the database."),
}

NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
# what a path that somebody named may be, and `Path.exists` raises for, instead of being there or not
WRONG_PATH = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOTDIR)

app = typer.Typer(
    name="creamtea",
    cls=lazy_group(COMMANDS),
    help="Train, decode, rate and compare neural machine translation variants.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings=HELP_OPTIONS,
)


def _version(asked: bool) -> None:
    if asked:
        say(f"creamtea {creamtea.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option(TRACEBACK, help="Show the traceback of an error, for a bug report.")
    ] = False,
) -> None:
    pass


def main() -> None:
    if sys.stdout is None:  # closed by who started it, who wants nothing of it
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives
    try:
        _run()
    except BrokenPipeError:  # of a message
        _end(CLOSED_PIPE)
    except SystemExit as ended:
        # Typer and Rich make 1 of it
        _end(CLOSED_PIPE if isinstance(ended.__context__, BrokenPipeError) else ended.code)


def _end(code: int | str | None) -> NoReturn:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = CLOSED_PIPE
    except OSError as error:
        say(f"creamtea: {_not_written(error)}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
        code = 1
    if code == CLOSED_PIPE:
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)  # for what Python writes out at its end
    inline = sys.modules.get("creamtea.engine.executors.inline")
    if inline is not None and isinstance(code, int):
        inline.leave_running_steps(code)
    sys.exit(code)


def _run() -> None:
    try:
        app()
    except Exception as error:
        message, code = _told(error)
        if not message or TRACEBACK in sys.argv:
            raise
        say(f"creamtea: {message}", err=True)
        sys.exit(code)


def _told(error: Exception) -> tuple[str, int]:
    """What to tell a person, and the exit code; nothing of an error that nobody foresaw."""
    if isinstance(error, CreamteaError):
        return str(error), error.exit_code
    if isinstance(error, FileNotFoundError) and _folder_is_gone():
        return "the folder that you are in has been deleted: `cd` to another one, and try again", 2
    if isinstance(error, OSError) and error.errno in NOT_WRITTEN and error.filename is None:
        return _not_written(error), 1
    if isinstance(error, OSError) and error.errno in WRONG_PATH and isinstance(error.filename, str):
        return f"{error.filename}: {error.strerror}; name another path", 2
    if "sqlalchemy" in sys.modules:
        from creamtea.store.engines import outage_of

        if (outage := outage_of(error)) is not None:
            safe = " What was committed is safe." if outage.patience else ""
            mend = "" if outage.remedy else " See its server's log, or which program has its file open."
            again = f"Then run the same command again (`creamtea {TRACEBACK} ...` shows where it failed)"
            return f"{outage}.{mend}{safe} {again}", 1
    return "", 1


def _not_written(error: OSError) -> str:
    return f"the output cannot be written: {error.strerror}"


def _folder_is_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


if __name__ == "__main__":
    main()
