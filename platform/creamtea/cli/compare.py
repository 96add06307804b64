"""`creamtea compare`: from text files of outputs to a report on them."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from creamtea.cli import workplace
from creamtea.cli.printing import say
from creamtea.cli.report import check_page, write_page
from creamtea.study.comparison import METRICS, STANDARD, TEST_SET, Comparison, comparison, named_outputs

if TYPE_CHECKING:
    from creamtea.orders.submission import Submission
    from creamtea.store.database import Database

WAIT_SECONDS = 1.0  # between looks whether another study has ended
RATED = 4  # systems in the campaign that the last line suggests: as many as one screen compares well

EXAMPLES = """Examples:

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
        list[Path],
        typer.Option(
            default_factory=list,
            metavar="FILE",
            help="A human translation, line by line. Repeatable; none: outputs are compared without.",
        ),
    ],
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
            help=f"Of {', '.join(METRICS)}, and this machine's scorers. By default {', '.join(STANDARD)}, "
            "or none where there are no references.",
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

    Files are UTF-8, plain or gzip. NAME=FILE names a system; otherwise it is called what its file is, without
    the ending and without what all the files' names begin or end with. An output that
    holds the text of a reference is taken for that human reference: people can rate it, and metrics score it
    against the other references. Scores are also given by buckets: lengths of the source, and your labels.
    Without references, outputs are compared by metrics that need none, by how much they agree with each
    other, and by their lengths; people can rate them.
    The study is stored in the database like any other, so that its page shows the outputs side by side and a
    campaign can be made on it. The same files again: nothing is computed.

    Exit code 0: done, even if a metric is unavailable; 1: a step failed; 2: a file or an option is wrong;
    130: interrupted.
    """
    if html is not None:
        check_page(
            html,
            [source, *reference, *named_outputs(outputs).values(), *([] if labels is None else [labels])],
        )
    made = comparison(
        source,
        reference,
        outputs,
        name=name,
        baseline=baseline,
        metrics=None if metrics is None else list(dict.fromkeys(map(str.strip, metrics.split(",")))),
        languages=languages,
        labels=labels,
    )
    from creamtea.cli.outcome import advise, outcome_of
    from creamtea.report.build import build_report

    with workplace.opened_database() as database:
        submission = _run(database, made, quiet)
        outcome = outcome_of(database, submission.study_id)
        report = build_report(database, submission.study_id)
        if html is not None:
            from creamtea.report.html import to_html
            from creamtea.report.outputs import drawn_outputs

            held = drawn_outputs(database, report)
            write_page(html, lambda: to_html(report, held), on_error=as_json)
    if as_json:
        from creamtea.report.values import to_values

        say(json.dumps(to_values(report), ensure_ascii=False, allow_nan=False, indent=1))
    else:
        from creamtea.report.terminal import make_console, render

        render(report, make_console())
    for line in (*advise(outcome), *([] if as_json else _next_steps(made))):
        say(line, err=True)
    raise typer.Exit(outcome.exit_code)


def _run(database: Database, made: Comparison, quiet: bool) -> Submission:
    """In this process, as there is nothing to train, or by the controller that serves this database. Another
    `compare` or `run`, which serves nobody else, is waited for."""
    from creamtea.cli.follow import follow_shown
    from creamtea.cli.run import control
    from creamtea.document.canonical import digest
    from creamtea.engine.lease import AnotherController
    from creamtea.orders.controllers import live_controller
    from creamtea.orders.submission import submit

    planned, spec = made.plan(), made.study.model_dump(mode="json")
    store = workplace.artefact_store()

    def queue() -> Submission:
        return submit(database, store, planned, spec, digest(spec))

    announced = False
    while True:
        live = live_controller(database)
        if live is None:
            with suppress(AnotherController):  # one that began at the same moment
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
