"""How a study ended, for people and scripts: its report, what failed and what to do, the exit code."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass

import typer

from creamtea.cli.printing import say
from creamtea.orders.submission import Submission
from creamtea.store.database import Database
from creamtea.store.queries import steps_of, study_nodes
from creamtea.store.tables import StudyRow

REMEDIES = {
    "deterministic": "a retry would fail again: fix what the message names, then run the study again",
    "infrastructure": "`creamtea retry {name}` tries again from the last checkpoint",
    "timeout": "raise the limit and run the study again: it continues from the last checkpoint",
}


@dataclass(frozen=True)
class StepProblem:
    node: str
    kind: str  # error kind
    error: str
    attempts: int


@dataclass(frozen=True)
class StudyOutcome:
    study: str
    study_id: int
    state: str
    steps: dict[str, int]  # by outcome: state, and of what failed whether it is unavailable or was not run
    failed: list[StepProblem]
    unavailable: list[StepProblem]
    left_out: list[StepProblem]  # not run, because an earlier step failed

    @property
    def exit_code(self) -> int:
        return 0 if self.state == "succeeded" else 1


def outcome_of(database: Database, study_id: int) -> StudyOutcome:
    with database.session() as session:
        study = session.get_one(StudyRow, study_id)
        nodes = study_nodes(session, study_id)
    steps = steps_of(nodes)
    by_kind: dict[str, list[StepProblem]] = {"upstream": [], "unavailable": [], "failed": []}
    for node in steps.values():
        if node.state == "failed":
            kind = node.error_kind or "deterministic"
            problem = StepProblem(node.name, kind, node.error or "", node.attempts)
            by_kind.get(kind, by_kind["failed"]).append(problem)
    return StudyOutcome(
        study=study.name,
        study_id=study.id,
        state=study.state,
        steps=dict(Counter(node.outcome for node in steps.values())),
        failed=by_kind["failed"],
        unavailable=by_kind["unavailable"],
        left_out=by_kind["upstream"],
    )


def conclude(database: Database, submission: Submission, started: float, *, as_json: bool) -> None:
    """Print the report and the problems, and exit with the study's exit code. `started`: time.monotonic()."""
    from creamtea.report.build import build_report

    outcome = outcome_of(database, submission.study_id)
    report = build_report(database, submission.study_id, complete=not as_json)
    if as_json:
        warnings = [warning.values() for warning in (*submission.warnings, *report.warnings())]
        facts = {"reused": submission.reused, "seconds": round(time.monotonic() - started, 1)}
        say(json.dumps({**asdict(outcome), **facts, "warnings": warnings}, ensure_ascii=False))
    else:
        from creamtea.cli.workplace import show_warnings
        from creamtea.report.terminal import make_console, render, render_answer

        console = make_console()
        render(report, console)
        show_warnings(submission.warnings)
        for text in advise(outcome):
            say(text, err=True)
        if console.is_terminal:
            render_answer(report, console)
            say("\nIn a browser: creamtea serve", err=True)
    raise typer.Exit(outcome.exit_code)


def advise(outcome: StudyOutcome) -> list[str]:
    """What to do about each problem; the report has already named it on one line."""
    lines = []
    for kind, remedy in REMEDIES.items():
        problems = [problem for problem in outcome.failed if problem.kind == kind]
        if problems:
            places = ", ".join(problem.node for problem in problems)
            lines.append(f"{places}: {remedy.format(name=outcome.study)}")
        for problem in problems:
            first, _, more = problem.error.partition("\n")
            if more:  # an unexpected error has a traceback
                lines += [f"{problem.node}: {first}", *(f"    {line}" for line in more.splitlines())]
    if outcome.left_out:
        count = len(outcome.left_out)
        lines.append(f"{count} {'step' if count == 1 else 'steps'} not run: an earlier step failed")
    if outcome.unavailable:
        lines.append("the next run tries again what was unavailable")
    if outcome.state == "cancelled":
        lines.append(f"the study was cancelled; `creamtea retry {outcome.study}` continues it")
    return lines
