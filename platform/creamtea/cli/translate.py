"""`creamtea translate`: lines of text by a trained system."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from creamtea.cli import workplace
from creamtea.cli.lines import iterate_lines
from creamtea.cli.printing import hand_over, say
from creamtea.errors import InputError
from creamtea.wording import counted

if TYPE_CHECKING:
    from creamtea.methods.searches import Search

SHOWN = 10  # symbols of a warning
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
        typer.Option("--nbest", metavar="N", min=1, help="The N best translations per line, with scores."),
    ] = 1,
    word: Annotated[
        str | None,
        typer.Option(metavar="WORD", help="Also whether the selection allows its subwords, or what would."),
    ] = None,
    as_json: workplace.AsJson = False,
) -> None:
    """Translate lines from standard input with a system that a study has trained, here and now.

    Selection, search and precision are the system's. Translations go to standard output, a line each; at a
    terminal there is a prompt, which Ctrl-D ends. JSON has an object for each line: source, text, score (of
    the model; a log-probability for softmax), length in subwords, the size of the allowed vocabulary, and
    what of the source the model has never seen (`unknown`), of which there is also a warning.

    A line for a system of words is written as its sources are, with the language as a symbol and the tags of
    the form, if it has any: `<ady>абан`, `<zulu>hamba<V><PST>`.

    With --nbest N a line of output has the number of the line that it translates, a score and a translation,
    separated by tabs, in the order of the search (by score / length, say); JSON has them as `best`. N is at
    most the width of the system's beam search, which may find fewer. Different subwords can make the same
    text.
    """
    from creamtea.engine.runner import load_module
    from creamtea.engine.trained_systems import opened, translating_step
    from creamtea.steps.systems import DecodeParams

    if word is not None and not word.strip():
        raise InputError("--word: no word was given; write one of the target language")
    if sys.stdin is None:
        raise InputError("standard input is closed; give it the lines to translate")
    store = workplace.artefact_store(writable=False)
    with workplace.existing_database() as database:
        task = translating_step(database, store, name, system, seed).task
    _check_best(best, DecodeParams.model_validate(task.params).search, system)
    with opened(task, store) as context:
        lines = load_module("creamtea_workers.search.translator", context.cpus)
        opened_system = lines.OpenSystem.of_step(context)
        prompt = sys.stdin.isatty()
        if prompt:
            say(f"{task.node}: one sentence per line, Ctrl-D to end", err=True)
        number, doubts = 0, Doubts(opened_system.example)
        given = iterate_lines(sys.stdin.buffer, "standard input", _prompt if prompt else lambda: None)
        while batch := list(islice(given, 1 if prompt else task.params["batch_size"])):
            for row in opened_system.translate(batch, selected, best, word or ""):
                number += 1
                doubts.add(row)
                hand_over(json.dumps(row, ensure_ascii=False) if as_json else _shown(row, scores, number))
            sys.stdout.flush()
            if prompt:
                doubts.tell()
        doubts.tell()


@dataclass
class Doubts:
    """Lines whose translations mean little, counted until they are told."""

    example: str  # a source of the system with its language; "" for a system whose sources have none
    unknown: Counter[str] = field(default_factory=Counter)
    with_unknown: int = 0  # [lines]
    otherwise: int = 0  # [lines] without the language, or the tags

    def add(self, row: Mapping[str, Any]) -> None:
        self.unknown.update(row["unknown"])
        self.with_unknown += bool(row["unknown"])
        ends = [(line.startswith("<"), line.endswith(">")) for line in (row["source"], self.example)]
        self.otherwise += bool(self.example) and ends[0] != ends[1]

    def tell(self) -> None:
        """On standard error, each kind once."""
        if self.otherwise:
            tags = " and its tags last" if self.example.endswith(">") else ""
            say(
                f"creamtea: {_lines(self.otherwise, 'is', 'are')} not written like this system's sources, "
                f"the language first{tags}, as in {self.example}",
                err=True,
            )
        if self.with_unknown:
            symbols = ", ".join(f"{symbol} ({count})" for symbol, count in self.unknown.most_common(SHOWN))
            more = f" and {counted(len(self.unknown) - SHOWN, 'other')}" if len(self.unknown) > SHOWN else ""
            say(
                f"creamtea: {_lines(self.with_unknown, 'has', 'have')} what the model has never seen: "
                f"{symbols}{more}",
                err=True,
            )
        self.unknown.clear()
        self.with_unknown = self.otherwise = 0


def _lines(count: int, one: str, several: str) -> str:
    return f"{counted(count, 'line')} {one if count == 1 else several}"


def _prompt() -> None:
    say("> ", nl=False, err=True)


def _check_best(count: int, search: Search, system: str) -> None:
    if count > search.most_hypotheses:
        most = search.most_hypotheses
        found = "only one translation" if most == 1 else f"at most {most} translations"
        raise InputError(
            f"--nbest {count}: {search.title} of {system} ({search.describe()}) finds {found} per line; "
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
