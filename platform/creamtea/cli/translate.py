"""`creamtea translate`: lines of text by a trained system."""

from __future__ import annotations

import json
import sys
from itertools import islice
from typing import Annotated, Any

import typer

from creamtea.cli import workplace
from creamtea.cli.lines import iterate_lines
from creamtea.settings import Settings
from creamtea.store.artefacts import ArtefactStore

EXAMPLES = """Examples:

`creamtea translate demo softmax-beam4`

`creamtea translate demo softmax-nvs --selected --json < sentences.en`
"""


def translate(
    name: workplace.StudyName,
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="One of the study's systems.")],
    seed: Annotated[
        int | None, typer.Option(help="Which of its variant's models; by default the first.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="The model's score before each translation.")
    ] = False,
    selected: Annotated[
        bool, typer.Option("--selected", help="Also the subwords that the selection allowed.")
    ] = False,
    as_json: workplace.AsJson = False,
) -> None:
    """Translate lines from standard input with a system that a study has trained, here and now.

    Selection, search and precision are the system's. Translations go to standard output, a line each; at a
    terminal there is a prompt, which Ctrl-D ends. JSON has an object for each line: source, text, score (of
    the model; a log-probability for softmax), length in subwords, and the size of the allowed vocabulary.
    """
    from creamtea.engine.reopened import opened, translating_step
    from creamtea.engine.runner import load_module

    store = ArtefactStore(Settings.load().artefacts)
    with workplace.opened_database() as database:
        task = translating_step(database, store, name, system, seed).task
    with opened(task, store) as context:
        lines = load_module("creamtea_workers.search.lines", context.cpus)
        rows = lines.open_system(context, selected)
        prompt = sys.stdin.isatty()
        if prompt:
            typer.echo(f"{task.node}: one sentence a line, Ctrl-D to end", err=True)
        given = iterate_lines(sys.stdin.buffer, "standard input", _prompt if prompt else lambda: None)
        while batch := list(islice(given, 1 if prompt else task.params["batch_size"])):
            for row in rows(batch):
                typer.echo(json.dumps(row, ensure_ascii=False) if as_json else _shown(row, scores))
            sys.stdout.flush()


def _prompt() -> None:
    typer.echo("> ", nl=False, err=True)


def _shown(row: dict[str, Any], scores: bool) -> str:
    parts = [f"{row['score']:.4f}"] if scores else []
    parts.append(row["text"])
    if "selected" in row:
        allowed = row["selected"]
        parts.append("the full vocabulary" if allowed is None else " ".join(allowed))
    return "\t".join(parts)
