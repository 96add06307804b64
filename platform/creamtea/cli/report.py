"""`creamtea report`: a study's report, or a paper's table beside our studies, in the terminal, as JSON,
Markdown, HTML or files for papers."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from creamtea.cli.printing import hand_over, say
from creamtea.cli.workplace import AsJson, existing_database, existing_or_empty_database, study_asked_for
from creamtea.errors import InputError
from creamtea.papers.catalogue import NAMES as PAPERS
from creamtea.replacing import replacing
from creamtea.report.export import Format, export
from creamtea.report.markdown import to_markdown
from creamtea.report.model import Document
from creamtea.report.outputs import Outputs, drawn_outputs
from creamtea.report.terminal import make_console, render
from creamtea.report.values import to_values
from creamtea.store.database import Database
from creamtea.wording import counted

EXAMPLES = (
    "Examples: `creamtea report demo` · `creamtea report demo --test-set test --markdown` · "
    "`creamtea report 1 --json > report.json` · `creamtea report demo --html demo.html` · "
    "`creamtea report demo --export paper --format latex --format svg` · "
    "`creamtea report --paper scones` · `creamtea report --paper scones --table 3`"
)

PAGE_BEGINNING = 1000  # bytes, in which a page says that it is one, after blanks

HtmlFile = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", help="Write one HTML page that opens without a server or a network."
    ),
]


Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown.")]
ExportFolder = Annotated[
    Path | None,
    typer.Option(
        "--export",
        metavar="FOLDER",
        help="Write each table (CSV, LaTeX) and each figure (SVG, PNG, its data as CSV) into a new folder.",
    ),
]
Formats = Annotated[
    list[Format] | None,
    typer.Option("--format", help="Of the files of --export: only this one. Repeatable."),
]


def report(
    study: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The study's name (its newest submission), or its number."),
    ] = None,
    paper: Annotated[
        str | None,
        typer.Option(
            "--paper",
            metavar="|".join(PAPERS),
            help="In place of a study: what a paper published beside ours. Alone, a list of its tables.",
        ),
    ] = None,
    table: Annotated[
        int | None, typer.Option("--table", metavar="N", help="This table of the paper.")
    ] = None,
    figure: Annotated[
        int | None, typer.Option("--figure", metavar="N", help="This figure of the paper.")
    ] = None,
    test_set: Annotated[
        str | None, typer.Option("--test-set", metavar="NAME", help="Only what belongs to this test set.")
    ] = None,
    segments: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,…",
            help="The segments whose outputs stand side by side in the file of --html; by default 100 that "
            "are drawn, always the same.",
        ),
    ] = None,
    markdown: Markdown = False,
    html: HtmlFile = None,
    export: ExportFolder = None,
    formats: Formats = None,
    as_json: AsJson = False,
) -> None:
    """Show a study's systems side by side: quality with intervals and significance against the baseline,
    human scores, recall and size of the selected vocabulary, latency, analyses, training, and what failed
    and why.

    Works while the study runs: cells without a value yet say so. `--json` prints the whole report with
    the data of its figures, at full precision.

    With `--paper`, a table or figure of a paper in its own rows and columns: published values, ours with
    intervals from the studies in the database, and a verdict.
    """
    printing = Printing(markdown, as_json, html, export, formats)
    _check_asked(study, paper, table, figure, test_set)
    if segments is not None and (html is None or paper is not None):
        raise InputError("--segments is of the file that --html writes of a study: give both")
    numbers = [_number(part) for part in segments.split(",")] if segments is not None else []
    if paper is not None:
        with existing_or_empty_database() as database:
            printing.show(_build_paper(database, paper, table, figure))
        return
    with existing_database() as database:
        built = _build(database, study or "")
        if test_set is not None and test_set not in built.test_sets:
            raise InputError(
                f"--test-set {test_set}: study {built.name!r} has no such test set; it has "
                f"{', '.join(built.test_sets)}"
            )
        shown = built if test_set is None else built.only(test_set)
        printing.show(shown, drawn_outputs(database, shown, numbers) if html is not None else ())


def _number(part: str) -> int:
    try:
        return int(part)
    except ValueError:
        raise InputError(f"--segments: {part!r} is not the number of a segment") from None


def _check_asked(
    study: str | None, paper: str | None, table: int | None, figure: int | None, test_set: str | None
) -> None:
    """InputError unless one thing is asked for."""
    if study is None and paper is None:
        raise InputError(
            "name a study (`creamtea report NAME`) or a paper (`creamtea report --paper scones`)"
        )
    if study is not None and paper is not None:
        raise InputError(f"{study} is a study and --paper {paper} a paper: give one of them")
    if paper is None and (table is not None or figure is not None):
        raise InputError("--table and --figure are of a paper: give --paper, too")
    if table is not None and figure is not None:
        raise InputError("--table and --figure: give one of them")
    if paper is not None and test_set is not None:
        raise InputError("--test-set is of a study, not of a paper: leave it out")


class Printing:
    """The one way in which a report is to be shown. InputError for more than one, before it is built."""

    def __init__(
        self,
        markdown: bool,
        as_json: bool,
        html: Path | None,
        export: Path | None,
        formats: list[Format] | None,
        full: bool = True,
    ) -> None:
        asked = {
            "markdown": markdown,
            "json": as_json,
            "html": html is not None,
            "export": export is not None,
        }
        chosen = [f"--{name}" for name, given in asked.items() if given]
        if len(chosen) > 1:
            raise InputError(f"{' and '.join(chosen)} are different formats: give one of them")
        if formats and export is None:
            raise InputError("--format is of the files of --export FOLDER: give both")
        self._markdown, self._as_json, self._html, self._export = markdown, as_json, html, export
        self._formats, self._full = formats or list(Format), full
        if html is not None:
            check_page(html)

    def show(
        self,
        built: Document,
        outputs: Sequence[Outputs] = (),
        values: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        """`outputs`: those that a page holds beside the report; `values`: what JSON holds beside it."""
        if self._as_json:
            say(
                json.dumps(
                    to_values(built) | to_values(values()), ensure_ascii=False, allow_nan=False, indent=1
                )
            )
        elif self._html is not None:
            from creamtea.report.html import to_html

            write_page(self._html, lambda: to_html(built, outputs))
        elif self._export is not None:
            written = export(built, self._export, self._formats)
            say(f"wrote {counted(len(written), 'file')} into {self._export}")
        elif self._markdown:
            hand_over(to_markdown(built), nl=False)
        else:
            render(built, make_console(), folded=self._full)


def check_page(path: Path, inputs: Iterable[Path] = ()) -> None:
    """InputError unless a page may be written there: a file that is there already must be a page, or empty,
    so that a slip on the command line costs nobody their text. `inputs`: files that the command reads."""
    try:
        if not path.is_file():
            if not path.parent.is_dir():
                raise InputError(f"--html {path}: there is no folder {path.parent}; make it first")
            return
        read = [str(given) for given in inputs if given.exists() and given.samefile(path)]
        with path.open("rb") as file:
            beginning = file.read(PAGE_BEGINNING).removeprefix(codecs.BOM_UTF8).lstrip().lower()
        is_page = re.match(rb"<(!doctype )?html\b", beginning) or path.stat().st_size == 0
    except OSError as error:
        raise InputError(f"--html {path}: {error.strerror or error}") from None
    if read:
        raise InputError(
            f"--html {path}: the page would overwrite {read[0]}, which is read; name another file"
        )
    if not is_page:
        raise InputError(f"--html {path}: this file is not an HTML page; move it, or name another")


def write_page(path: Path, page: Callable[[], str], on_error: bool = False) -> None:
    """InputError where the file cannot be written or is no page, before the page is made. `on_error`: that it
    is written is said on standard error, as it is of what is no file.

    The page is written beside the file and replaces it once complete, so that a failure leaves the old file
    as it was. A link to a file is followed; what is not a file (a pipe, /dev/stdout) is written to directly.
    """
    check_page(path)
    try:
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8") as sink:
                sink.write(page())
        else:
            _replace(path.resolve(), page)
    except OSError as error:
        raise InputError(f"--html {path}: {error.strerror or error}") from None
    say(f"wrote {path}", err=on_error or not path.is_file())


def _replace(target: Path, page: Callable[[], str]) -> None:
    """Write `target` in one step; OSError before the page is made."""
    if target.exists():
        with target.open("a"):  # as an unwritable file would refuse to be written
            pass
    with replacing(target) as partial, partial.open("x", encoding="utf-8") as sink:
        sink.write(page())


def _build_paper(database: Database, paper: str, table: int | None, figure: int | None) -> Document:
    from creamtea.report.papers.build import build_exhibit, build_list  # likewise

    if table is not None:
        return build_exhibit(database, paper, "table", table)
    if figure is not None:
        return build_exhibit(database, paper, "figure", figure)
    return build_list(database, paper)


def _build(database: Database, study: str) -> Document:
    from creamtea.report.build import build_report  # its statistics take a second to import

    return build_report(database, study_asked_for(database, study))
