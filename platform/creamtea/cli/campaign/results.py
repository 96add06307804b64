"""`creamtea campaign report`: what raters say, for a campaign by itself."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from creamtea.cli.campaign.raters import rater_values
from creamtea.cli.campaign.shared import Name
from creamtea.cli.report import ExportFolder, Formats, HtmlFile, Markdown, Printing
from creamtea.cli.workplace import AsJson, existing_database
from creamtea.document.mistakes import one_of
from creamtea.errors import InputError
from creamtea.human.making.settings import WmtRuleName

RULE_NAMES = get_args(WmtRuleName)

EXAMPLE = (
    "Examples: `creamtea campaign report first` · `creamtea campaign report first --full` · "
    "`creamtea campaign report first --html first.html` · "
    "`creamtea campaign report first --export paper --format latex`"
)


def register(commands: typer.Typer) -> None:
    commands.command("report", epilog=EXAMPLE)(report)


def report(
    name: Name,
    markdown: Markdown = False,
    html: HtmlFile = None,
    export: ExportFolder = None,
    formats: Formats = None,
    wmt: Annotated[
        str | None,
        typer.Option(metavar="RULE", help=f"WMT's rules for ranks: {', '.join(RULE_NAMES)}; the campaign's."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Print every table and text, as --markdown and --html always do."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what raters say: means with intervals and verdicts; with `--full` also agreement, ranks, metrics
    against human scores, and outputs that raters disagree on.

    For ratings made elsewhere too, which have no study. `creamtea report STUDY` shows the same beside
    the study's metrics. `--json` also has the reports of the raters (`creamtea campaign raters report`).
    """
    from creamtea.report.human.build import build_human  # its statistics take a second to import

    if wmt is not None and wmt not in RULE_NAMES:
        raise InputError(f"--wmt {wmt}: unknown rules; give {one_of(RULE_NAMES, wmt)}")
    printing = Printing(markdown, as_json, html, export, formats, full)
    with existing_database() as database:
        built = build_human(database, name, wmt)
        printing.show(built, values=lambda: {"raters": rater_values(database, built.number)})
