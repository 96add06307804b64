"""The command line: puts the commands together, and turns errors into one line and an exit code.

Exit codes: 0 done, 1 something failed, 2 the input is wrong, 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from sqlalchemy.exc import OperationalError

import creamtea
from creamtea.cli import (
    campaign,
    cancel,
    compare,
    controller,
    db,
    docs,
    export,
    init,
    links,
    logs,
    plugins,
    report,
    retry,
    run,
    schema,
    serve,
    status,
    submit,
    translate,
    upkeep,
    validate,
)
from creamtea.errors import CreamteaError

TRACEBACK = "--traceback"

app = typer.Typer(
    name="creamtea",
    help="Train, decode, rate and compare neural machine translation variants.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command, examples in (
    (init.init, init.EXAMPLES),
    (validate.validate, validate.EXAMPLES),
    (schema.schema, schema.EXAMPLES),
    (run.run, run.EXAMPLES),
    (compare.compare, compare.EXAMPLES),
    (submit.submit, submit.EXAMPLES),
    (status.status, status.EXAMPLES),
    (logs.logs, logs.EXAMPLES),
    (cancel.cancel, cancel.EXAMPLES),
    (retry.retry, retry.EXAMPLES),
    (report.report, report.EXAMPLES),
    (translate.translate, translate.EXAMPLES),
    (export.export, export.EXAMPLES),
    (serve.serve, serve.EXAMPLES),
    (serve.link, "Example: `creamtea link --role reader`"),
    (controller.controller, controller.EXAMPLES),
    (plugins.plugins, plugins.EXAMPLES),
    (docs.docs, docs.EXAMPLES),
    (upkeep.gc, upkeep.GC_EXAMPLES),
    (upkeep.du, upkeep.DU_EXAMPLES),
):
    app.command(epilog=examples)(command)
app.add_typer(upkeep.study_commands, name="study")
app.add_typer(links.commands, name="links")
campaign.register(app)
app.add_typer(db.commands, name="db")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"creamtea {creamtea.__version__}")
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
    try:
        app()
    except (CreamteaError, OperationalError) as error:
        if TRACEBACK in sys.argv:
            raise
        typer.echo(f"creamtea: {_message(error)}", err=True)
        sys.exit(error.exit_code if isinstance(error, CreamteaError) else 1)


def _message(error: CreamteaError | OperationalError) -> str:
    if isinstance(error, OperationalError):
        return (
            f"the database failed: {str(error.orig).strip()}. What was committed is safe. When it is back, "
            f"run the same command again (`creamtea {TRACEBACK} ...` shows where it failed)"
        )
    return str(error)


if __name__ == "__main__":
    main()
