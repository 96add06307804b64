"""`creamtea init`: from two text files to a first study."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from creamtea.cli import workplace
from creamtea.cli.printing import say

if TYPE_CHECKING:
    from creamtea.study.start.text import FirstStudy
    from creamtea.study.survey import Side

EXAMPLES = """Examples:

`creamtea init --source train.en --target train.de`

`creamtea init --source train.en --target train.de --dev dev.en dev.de --test test.en test.de
-o with-dev.yaml`

`creamtea init --source a.txt --target b.txt --source-language en --target-language ja -o en-ja.yaml`
"""

TwoFiles = tuple[Path, Path]


def init(
    source: Annotated[Path, typer.Option(metavar="FILE", help="Training text, a sentence per line.")],
    target: Annotated[Path, typer.Option(metavar="FILE", help="Its translation, line by line.")],
    dev: Annotated[
        TwoFiles | None, typer.Option(metavar="SOURCE TARGET", help="Development text; else set aside.")
    ] = None,
    test: Annotated[
        TwoFiles | None, typer.Option(metavar="SOURCE TARGET", help="Test text; else set aside.")
    ] = None,
    source_language: Annotated[
        str | None, typer.Option(metavar="CODE", help="en, de, … Else by the end of the file's name.")
    ] = None,
    target_language: Annotated[str | None, typer.Option(metavar="CODE", help="The same.")] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="STUDY.yaml", help="The study to write.")
    ] = Path("study.yaml"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice of what is set aside.")] = 1,
    no_timing: Annotated[
        bool, typer.Option("--no-timing", help="Do not time updates: no estimate, and bf16.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the study and its text.")] = False,
    as_json: workplace.AsJson = False,
) -> None:
    """Look at two text files and write a study with settings that fit them.

    Exit code 0: written; 2: a file or an option is wrong, and nothing was written.
    """
    from creamtea.study.start.aside import Pair
    from creamtea.study.start.begin import InitOptions, begin

    given = {name: Pair(*pair) for name, pair in (("dev", dev), ("test", test)) if pair is not None}
    options = InitOptions(
        train=Pair(source, target),
        given=given,
        languages=(source_language, target_language),
        output=output,
        seed=seed,
        force=force,
        timed=not no_timing,
    )
    begun = begin(options, lambda words: say(f"{words} …", err=True))
    facts = _facts(begun)
    if as_json:
        say(json.dumps(facts, ensure_ascii=False))
        return
    from creamtea.study.start.text import data_option, doubts, duration

    text, recipe, size = begun.text, begun.recipe, begun.recipe.size
    say(
        f"{text.usable:,} pairs to train on, of {text.pairs:,}: {text.empty:,} with an empty side, "
        f"{text.long:,} too long, {text.uneven:,} of uneven lengths, {text.held_out:,} with a sentence of "
        f"the test set, {text.repeated:,} repeated\n"
        f"{_side(begun.languages[0], text.source)}; {_side(begun.languages[1], text.target)}\n"
        f"{recipe.vocabulary:,} subwords, {size.encoder_layers}+{size.decoder_layers} layers of width "
        f"{size.width}, batches of {size.batch_tokens:,} subwords, {recipe.updates:,} updates "
        f"(about {recipe.epochs:.0f} epochs), warm-up {recipe.warmup:,}\n"
        f"{duration(begun)}\n"
        f"{output} is written and valid. Next: creamtea run {quote(str(output))}{data_option(begun)}"
    )
    workplace.show_warnings(doubts(begun))


def _side(code: str, side: Side) -> str:
    return f"{code}: {side.words:,} words, {side.vocabulary:,} distinct, {side.alphabet} characters"


def _facts(begun: FirstStudy) -> dict[str, Any]:
    from creamtea.study.start.text import doubts

    text, recipe = begun.text, begun.recipe
    minutes = begun.timing.minutes(recipe)
    return {
        "study": begun.name,
        "file": str(begun.file),
        "data": str(begun.root),
        "languages": list(begun.languages),
        "pairs": {
            "all": text.pairs,
            "usable": text.usable,
            "empty": text.empty,
            "too_long": text.long,
            "uneven": text.uneven,
            "held_out": text.held_out,
            "repeated": text.repeated,
        },
        "words": [text.source.words, text.target.words],
        "updates": recipe.updates,
        "minutes": None if minutes is None else [round(value, 1) for value in minutes],
        "tokens_per_second": begun.timing.speeds,
        "warnings": [warning.values() for warning in doubts(begun)],
    }
