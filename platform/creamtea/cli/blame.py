"""`creamtea blame`: where the errors that raters marked come from."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from creamtea.blame.labels import Origin
from creamtea.cli import workplace
from creamtea.cli.printing import say
from creamtea.errors import InputError
from creamtea.wording import counted

if TYPE_CHECKING:
    from creamtea.report.model import Document, Table

BLAME_EXAMPLES = (
    "Examples: `creamtea blame demo esa-demo` · `creamtea blame demo esa-demo --system softmax-lexicon "
    "--beam 64` · `creamtea blame demo da-demo --below 40`"
)


def blame(
    name: workplace.StudyOrNumber,
    campaign: Annotated[str, typer.Argument(metavar="CAMPAIGN", help="Where raters marked its outputs.")],
    systems: Annotated[
        list[str] | None,
        typer.Option("--system", metavar="SYSTEM", help="Only the errors of this system. Repeatable."),
    ] = None,
    beam: Annotated[int, typer.Option(min=1, max=1000, help="Width of the wider beam.")] = 16,
    states: Annotated[
        int, typer.Option(min=1, help="Decoder states that exact search may explore for a sentence.")
    ] = 10_000,
    below: Annotated[
        float | None,
        typer.Option(
            metavar="SCORE",
            help="If raters mark no errors: an output with at most this mean score counts as one error.",
        ),
    ] = None,
    as_json: workplace.AsJson = False,
    quiet: workplace.Quiet = False,
) -> None:
    """Say for each marked error whether the vocabulary selection, the search or the model caused it.

    Each marked output is decoded again: with all words, with a wider beam, with exact search, and by the
    study's other objectives. The model also scores the reference and the outputs that raters preferred. The
    campaign's report then shows shares by system, with intervals and examples.

    Models run in this process, on the CPU. Results are stored: an interrupted run continues, and after new
    ratings only new outputs are decoded. Ratings made elsewhere work, too, if the rated outputs are the
    study's.

    Exit code 0: done; 2: no such study or campaign, or none of the marked outputs is the study's.
    """
    from creamtea.blame.gathering import Settings as Searches
    from creamtea.blame.gathering import gather
    from creamtea.report.human.build import build_human

    if below is not None and not math.isfinite(below):
        raise InputError(f"--below {below:g}: give a number; one above the scale includes all outputs")
    searches = Searches(beam, states, below)
    last = 0

    def progress(done: int, total: int, system: str) -> None:
        nonlocal last
        percent = 100 * done // total
        if not quiet and (percent >= last + 5 or done == total):
            last = percent
            say(f"{done:,} of {counted(total, 'output')}, {system}", err=True)

    store = workplace.artefact_store(writable=False)
    with workplace.existing_database() as database:
        study = workplace.study_asked_for(database, name)
        gathered = gather(database, store, study, campaign, searches, systems or [], progress)
        report = build_human(database, campaign)
    if as_json:
        from creamtea.report.export import to_values

        table = _table(report)
        origins = None if table is None else to_values(table)
        say(json.dumps({**asdict(gathered), "origins": origins}, ensure_ascii=False))
        return
    for line in shares(report):
        say(line)
    for system, count in gathered.others.items():
        say(f"{system}: {count:,} marked outputs are not translations by this study", err=True)
    say(
        f"{counted(gathered.now, 'output')} analysed, {gathered.before:,} earlier; in full: creamtea "
        f"campaign report {quote(campaign)}",
        err=True,
    )


def _table(report: Document) -> Table | None:
    try:
        return report.table("origins")
    except KeyError:
        return None


def shares(report: Document) -> list[str]:
    """Say for each system which shares of its marked errors have which origin."""
    table = _table(report)
    if table is None:
        return ["no errors are marked in outputs that this study translated"]
    lines = []
    for row in table.rows:
        shares = ", ".join(
            f"{origin.value} {_percent(cell)}"
            for origin in Origin
            if (cell := row.cells[origin.value]).value is not None
        )
        proved = row.cells["proved"]
        words = "" if proved.value is None else f"; exact search ended with a proof for {_percent(proved)}"
        lines.append(f"{row.name}: {row.cells['marks'].value:,.0f} marks: {shares}{words}")
    return lines


def _percent(cell: Any) -> str:
    return f"{100 * cell.value:.0f} % [{100 * cell.low:.0f}, {100 * cell.high:.0f}]"
