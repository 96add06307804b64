"""`creamtea translate`: lines of text by a trained system."""

from __future__ import annotations

import json
import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from creamtea.cli import workplace
from creamtea.cli.lines import iterate_lines
from creamtea.cli.printing import hand_over, say
from creamtea.errors import InputError

if TYPE_CHECKING:
    from creamtea.methods.searches import Search

EXAMPLES = """Examples:

`creamtea translate demo softmax-beam4`

`creamtea translate demo softmax-beam4 --nbest 4`

`creamtea translate demo softmax-nvs --selected --json < sentences.en`

`creamtea translate demo softmax-nvs --word Regen < sentences.en`
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
    best: Annotated[
        int,
        typer.Option("--nbest", metavar="N", min=1, help="So many translations of each line, with scores."),
    ] = 1,
    word: Annotated[
        str | None,
        typer.Option(
            metavar="WORD", help="Also whether the selection allows each subword of it, or what would."
        ),
    ] = None,
    as_json: workplace.AsJson = False,
) -> None:
    """Translate lines from standard input with a system that a study has trained, here and now.

    Selection, search and precision are the system's. Translations go to standard output, a line each; at a
    terminal there is a prompt, which Ctrl-D ends. JSON has an object for each line: source, text, score (of
    the model; a log-probability for softmax), length in subwords, and the size of the allowed vocabulary.

    With --nbest N a line of output has the number of the line that it translates, a score and a translation,
    separated by tabs, best first; JSON has them as `best`. N is at most the width of the system's beam
    search, which may find fewer. Different subwords can make the same text.
    """
    from creamtea.engine.reopened import opened, translating_step
    from creamtea.engine.runner import load_module
    from creamtea.steps.systems import DecodeParams

    if word is not None and not word.strip():
        raise InputError("--word: no word was given; write one of the target language")
    store = workplace.artefact_store(writable=False)
    with workplace.existing_database() as database:
        task = translating_step(database, store, name, system, seed).task
    _check_best(best, DecodeParams.model_validate(task.params).search, system)
    with opened(task, store) as context:
        lines = load_module("creamtea_workers.search.lines", context.cpus)
        opened_system = lines.OpenSystem.of_step(context)
        prompt = sys.stdin.isatty()
        if prompt:
            say(f"{task.node}: one sentence per line, Ctrl-D to end", err=True)
        number = 0
        given = iterate_lines(sys.stdin.buffer, "standard input", _prompt if prompt else lambda: None)
        while batch := list(islice(given, 1 if prompt else task.params["batch_size"])):
            for row in opened_system.translate(batch, selected, best, word or ""):
                number += 1
                hand_over(json.dumps(row, ensure_ascii=False) if as_json else _shown(row, scores, number))
            sys.stdout.flush()


def _prompt() -> None:
    say("> ", nl=False, err=True)


def _check_best(count: int, search: Search, system: str) -> None:
    if count > search.most_hypotheses:
        most = search.most_hypotheses
        found = "only one translation" if most == 1 else f"at most {most} translations"
        raise InputError(
            f"--nbest {count}: {search.title} of {system} ({search.describe()}) finds {found} of a line; "
            f"{'take a system with a beam search' if most == 1 else 'lower N, or take a wider beam'}"
        )


def _shown(row: dict[str, Any], scores: bool, number: int) -> str:
    """A line, or several with the number of theirs."""
    after = []
    if "selected" in row:
        allowed = row["selected"]
        after.append("the full vocabulary" if allowed is None else " ".join(allowed))
    after += [
        f"{part['subword']} {'allowed' if part['allowed'] else part['needs']}" for part in row.get("word", [])
    ]
    if "best" in row:
        return "\n".join(
            "\t".join([str(number), f"{best['score']:.4f}", best["text"], *after]) for best in row["best"]
        )
    return "\t".join([*([f"{row['score']:.4f}"] if scores else []), row["text"], *after])
