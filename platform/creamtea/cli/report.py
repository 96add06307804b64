"""`creamtea report` and `creamtea compare`: reports on studies, papers and files of outputs."""

from __future__ import annotations

import codecs
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from creamtea.cli import workplace
from creamtea.cli.printing import hand_over, say
from creamtea.cli.workplace import AsJson, existing_database, existing_or_empty_database, study_asked_for
from creamtea.document.values import digest
from creamtea.errors import CreamteaError, InputError
from creamtea.files import replacing
from creamtea.orders.submission import submit
from creamtea.papers.catalogue import NAMES as PAPERS
from creamtea.report.export import Format, export, to_values
from creamtea.report.markdown import to_markdown
from creamtea.report.model import Document
from creamtea.report.outputs import Outputs, drawn_outputs
from creamtea.report.terminal import PrintingConsole, make_console, render
from creamtea.store.database import Database
from creamtea.store.queries import find_study
from creamtea.study.comparison import METRICS, STANDARD, TEST_SET, Comparison, comparison, named_outputs
from creamtea.study.warnings import byte_order_marks, csv_quotes, long_lines
from creamtea.wording import counted

if TYPE_CHECKING:
    from creamtea.orders.submission import Submission
    from creamtea.report.across_studies import CompareRequest

REPORT_EXAMPLES = (
    "Examples: `creamtea report demo` · `creamtea report demo --test-set test --markdown` · "
    "`creamtea report 1 --json > report.json` · `creamtea report demo --html demo.html` · "
    "`creamtea report demo --export paper --format latex --format svg` · "
    "`creamtea report demo bigger --baseline 'demo: softmax-greedy'` · "
    "`creamtea report --paper scones` · `creamtea report --paper scones --table 3`"
)

PAGE_BEGINNING = 1000  # bytes in which an HTML page declares itself, after blanks

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
    typer.Option("--format", help="Write only this kind of file with --export. Repeatable."),
]


def report(
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...",
            help="A study's name (its newest submission), or its number; several are compared.",
        ),
    ] = None,
    paper: Annotated[
        str | None,
        typer.Option(
            "--paper",
            metavar="|".join(PAPERS),
            help="In place of a study: a paper's values beside ours. Alone: its list of tables and figures.",
        ),
    ] = None,
    table: Annotated[
        int | None, typer.Option("--table", metavar="N", help="This table of the paper.")
    ] = None,
    figure: Annotated[
        int | None, typer.Option("--figure", metavar="N", help="This figure of the paper.")
    ] = None,
    test_set: Annotated[
        str | None, typer.Option("--test-set", metavar="NAME", help="Show only this test set's results.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="STUDY: SYSTEM",
            help="With several studies: the system that all others are compared with; by default the first "
            "study's baseline.",
        ),
    ] = None,
    segments: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,…",
            help="The segments whose outputs the file of --html shows side by side; by default 100 random "
            "ones, always the same.",
        ),
    ] = None,
    markdown: Markdown = False,
    html: HtmlFile = None,
    export: ExportFolder = None,
    formats: Formats = None,
    as_json: AsJson = False,
) -> None:
    """Show a study's systems side by side, with intervals and significance against the baseline.

    The report has quality, human scores, recall and size of the selected vocabulary, latency, analyses,
    training, and failed steps with reasons. While the study runs, cells without a value yet say so. `--json`
    prints the whole report with the data of its figures, at full precision.

    Several studies are compared on the test sets that all of them have (the same sentences and references),
    with every difference tested and the settings in which the studies differ.

    `--paper` shows a table or figure of a paper in its own rows and columns: published values, ours with
    intervals from the studies in the database, and a verdict.
    """
    printing = Printing(markdown, as_json, html, export, formats)
    names = studies or []
    _check_asked(names, paper, table, figure, test_set)
    if segments is not None and (html is None or len(names) != 1):
        raise InputError("--segments chooses what --html writes of one study: give --html and one study")
    if baseline is not None and len(names) < 2:
        raise InputError("--baseline is for several studies: name two or more")
    numbers = [_number(part) for part in segments.split(",")] if segments is not None else []
    if paper is not None:
        with existing_or_empty_database() as database:
            printing.show(_build_paper(database, paper, table, figure))
        return
    with existing_database() as database:
        if len(names) > 1:
            printing.show(_build_comparison(database, names, baseline))
            return
        from creamtea.report.build import build_report  # its statistics take a second to import

        built = build_report(database, study_asked_for(database, names[0]))
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
    studies: Sequence[str], paper: str | None, table: int | None, figure: int | None, test_set: str | None
) -> None:
    """Raise InputError unless exactly one thing is asked for."""
    if not studies and paper is None:
        raise InputError(
            "name a study (`creamtea report NAME`) or a paper (`creamtea report --paper scones`)"
        )
    if studies and paper is not None:
        raise InputError(f"{studies[0]} is a study and --paper {paper} a paper: give one of them")
    if paper is None and (table is not None or figure is not None):
        raise InputError("--table and --figure belong to a paper: give --paper as well")
    if table is not None and figure is not None:
        raise InputError("--table and --figure: give one of them")
    if test_set is not None and len(studies) != 1:
        raise InputError("--test-set is for one study, not for a paper or several studies: leave it out")


class Printing:
    """The chosen way to show a report. InputError for more than one, before the report is built."""

    def __init__(
        self,
        markdown: bool = False,
        as_json: bool = False,
        html: Path | None = None,
        export: Path | None = None,
        formats: list[Format] | None = None,
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
            raise InputError("--format is for the files of --export FOLDER: give both")
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
        """Show a report. `outputs`: added to a page; `values`: added to JSON."""
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
    """Raise InputError unless a page may be written there.

    A file that exists must be a page, or empty, so that a slip on the command line costs nobody their text.
    `inputs`: files that the command reads.
    """
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
    """Write a page. InputError, before the page is made, if the file cannot be written or is not a page.

    `on_error`: print the confirmation to stderr. It also goes there if `path` is not a file. The page is
    written beside the file and replaces it once complete, so a failure leaves the old file unchanged. A link
    to a file is followed; a pipe or a device (/dev/stdout) is written to directly.
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
        with target.open("a"):  # raises if the file is not writable
            pass
    with replacing(target) as partial, partial.open("x", encoding="utf-8") as sink:
        sink.write(page())


def _build_paper(database: Database, paper: str, table: int | None, figure: int | None) -> Document:
    from creamtea.report.papers import build_exhibit, build_list  # slow to import: it has statistics

    if table is not None:
        return build_exhibit(database, paper, "table", table)
    if figure is not None:
        return build_exhibit(database, paper, "figure", figure)
    return build_list(database, paper)


def _build_comparison(database: Database, names: Sequence[str], baseline: str | None) -> Document:
    from creamtea.engine.compare_outputs import compared  # slow to import: it has statistics
    from creamtea.report.across_studies import comparison_report

    store, tests = workplace.artefact_store(writable=False), 0

    def test(asked: CompareRequest) -> Mapping[str, Any]:
        nonlocal tests
        tests += 1
        progress.update(f"testing differences: {tests}")
        try:
            return compared(database, store, **asked)
        except CreamteaError as error:
            return {"error": str(error)}

    asked_for = [study_asked_for(database, name) for name in names]
    with (
        database.session() as session,
        PrintingConsole(stderr=True).status("testing differences") as progress,
    ):
        rows = {row.id: row for row in (find_study(session, number) for number in asked_for)}
        if len(rows) < 2:
            raise InputError(f"{' and '.join(names)} are one study: name two or more")
        return comparison_report(session, list(rows.values()), test, baseline)


WAIT_SECONDS = 1.0  # between checks whether another study has ended
RATED = 4  # systems in the campaign that the last line suggests: as many as one screen compares well

COMPARE_EXAMPLES = """Examples:

`creamtea compare --source test.en --reference test.de gpt.de nllb.de ours.de`

`creamtea compare --source test.en --reference test.de us=ours.de them=gpt.de`

`creamtea compare --source test.en --reference a.de --reference b.de --languages en-de *.out.de`

`creamtea compare --source s.txt --reference r.txt A.txt B.txt --baseline B --metrics bleu,chrf++,comet
--html report.html`

`creamtea compare --source s.txt A.txt B.txt --metrics cometkiwi`
"""


def compare(
    outputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="[NAME=]FILE...", help="The outputs of each system: text, one line per segment."
        ),
    ],
    source: Annotated[Path, typer.Option(metavar="FILE", help="What was translated, one line per segment.")],
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A human translation, line by line. Repeatable. May be omitted.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the stored study; by default that of the source file.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="SYSTEM", help="What the others are compared with; by default the first file."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="M,M,…",
            help=f"Any of {', '.join(METRICS)}, and this machine's scorers. By default "
            f"{', '.join(STANDARD)}, or none if there are no references.",
        ),
    ] = None,
    languages: Annotated[
        str | None,
        typer.Option(
            metavar="XX-YY", help="Codes of source and target; by default as the files' names say (en-de)."
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A label for each segment, line by line: scores are given for each label."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the report as one page.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    quiet: workplace.Quiet = False,
) -> None:
    """Compare outputs from anywhere: metrics with intervals, and both significance tests against a baseline.

    Files are UTF-8, plain or gzip. NAME=FILE names a system. Otherwise a system has its file's name, without
    the ending and without the parts, between dots, that all names have at their beginning or end.

    If an output is the text of a reference, it counts as that human reference: people can rate it, and
    metrics score it against the other references. Scores are also given by buckets: lengths of the source,
    and your labels.

    Without references, outputs are compared by metrics that need none, by how much they agree with each
    other, and by their lengths; people can rate them.

    The study is stored in the database like any other: its page shows the outputs side by side, and you can
    make a campaign on it. If you run the command again on the same files, nothing is computed.

    Exit code 0: done, even if a metric is unavailable; 1: a step failed; 2: a file or an option is wrong;
    130: interrupted.
    """
    references = reference or []
    if html is not None:
        check_page(
            html,
            [source, *references, *named_outputs(outputs).values(), *([] if labels is None else [labels])],
        )
    made = comparison(
        source,
        references,
        outputs,
        name=name,
        baseline=baseline,
        metrics=None if metrics is None else list(dict.fromkeys(map(str.strip, metrics.split(",")))),
        languages=languages,
        labels=labels,
    )
    from creamtea.cli.following import advise, outcome_of
    from creamtea.report.build import build_report

    with workplace.opened_database() as database:
        submission = _run(database, made, quiet)
        outcome = outcome_of(database, submission.study_id)
        report = build_report(database, submission.study_id)
        if html is not None:
            from creamtea.report.html import to_html

            held = drawn_outputs(database, report)
            write_page(html, lambda: to_html(report, held), on_error=as_json)
    Printing(as_json=as_json).show(report)
    for line in (*advise(outcome), *([] if as_json else _next_steps(made))):
        say(line, err=True)
    raise typer.Exit(outcome.exit_code)


def _run(database: Database, made: Comparison, quiet: bool) -> Submission:
    """Run the comparison in this process, or by the controller that serves this database.

    Nothing has to be trained. If another `compare` or `run` is running, which serves only its own study, wait
    for it.
    """
    from creamtea.cli.following import follow_shown
    from creamtea.cli.running import control
    from creamtea.engine.lease import AnotherController
    from creamtea.orders.controllers import live_controller

    planned, spec = made.plan(), made.study.model_dump(mode="json")
    to_check = made.study, planned, made.place_of
    workplace.show_warnings([*byte_order_marks(*to_check), *csv_quotes(*to_check), *long_lines(*to_check)])
    store = workplace.artefact_store()

    def queue() -> Submission:
        return submit(database, store, planned, spec, digest(spec))

    announced = False
    while True:
        live = live_controller(database)
        if live is None:
            with suppress(AnotherController):  # another controller began at the same moment
                return control(database, store, workplace.make_executor("inline", None), queue, quiet=quiet)
        elif live.study_id is None:
            submission = queue()
            follow_shown(database, store, submission, "the controller's log", quiet)
            return submission
        elif not announced:
            say(f"creamtea: waiting for another study to end ({live}); Control-C ends the waiting", err=True)
            announced = True
        time.sleep(WAIT_SECONDS)


def _next_steps(made: Comparison) -> list[str]:
    name, human = made.study.name, made.human
    systems = [system for system in made.study.systems if system not in human]
    rated = ",".join([*systems[: RATED - len(human[:1])], *human[:1]])
    lines = [f"{system} is a human reference: it can be rated" for system in human]
    lines += [
        f"the page of {name}, with the outputs side by side: creamtea serve",
        f"the report again: creamtea report {name}",
    ]
    if len(made.study.systems) > 1:
        lines.append(
            f"let people rate some of them: creamtea campaign create {name}-rated --study {name} "
            f"--test-set {TEST_SET} --systems {rated} --items 100 --ratings 2"
        )
    return lines
