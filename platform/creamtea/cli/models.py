"""Commands that use a trained model: translate and export."""

from __future__ import annotations

import json
import shutil
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from creamtea.cli import workplace
from creamtea.cli.printing import hand_over, say
from creamtea.errors import InfrastructureError, InputError
from creamtea.files import check_new, unpacked
from creamtea.store.queries import find_study
from creamtea.wording import counted
from creamtea.words import MAX_LINE, count_words

if TYPE_CHECKING:
    from creamtea.contract.step import ExportFacts
    from creamtea.methods.searches import Search


def iterate_lines(stream: BinaryIO, name: str, before: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Yield strictly UTF-8 lines without their ends, LF or CR LF; a byte-order mark is not text.

    `before` is called before each line is read. InputError for a line that is not UTF-8 says its number and
    the stream's `name`.
    """
    for number in count(1):
        before()
        line = stream.readline()
        if not line:
            return
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            yield text.removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise InputError(f"{name}, line {number}: not UTF-8; convert it (iconv -t UTF-8)") from None


MAX_SYMBOLS = 10  # symbols that a warning lists
TRANSLATE_EXAMPLES = """Examples:

`creamtea translate demo softmax-beam4`

`creamtea translate demo softmax-beam4 --nbest 4`

`creamtea translate demo softmax-nvs --selected --json < sentences.en`

`creamtea translate demo softmax-nvs --word Regen < sentences.en`
"""


def translate(
    name: workplace.StudyOrNumber,
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="One of the study's systems.")],
    seed: Annotated[
        int | None, typer.Option(help="The seed of the model; by default the variant's first.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Print the model's score before each translation.")
    ] = False,
    selected: Annotated[
        bool, typer.Option("--selected", help="Also print the subwords that the selection allowed.")
    ] = False,
    best: Annotated[
        int,
        typer.Option("--nbest", metavar="N", min=1, help="The N best translations per line, with scores."),
    ] = 1,
    word: Annotated[
        str | None,
        typer.Option(
            metavar="WORD", help="Also say whether its subwords are allowed, or what would allow them."
        ),
    ] = None,
    as_json: workplace.AsJson = False,
) -> None:
    """Translate lines from standard input with a system that a study has trained.

    Selection, search and precision are the system's. Each translation is a line on standard output. At a
    terminal there is a prompt, which Ctrl-D ends. JSON has an object per line: source, text, score (of the
    model; a log-probability for softmax), length in subwords, size of the allowed vocabulary, and the symbols
    that the model has never seen (`unknown`); a warning lists these, too.

    For a system of words, write a line as its sources are written: the language as a symbol, and the tags of
    the form, if it has any: `<ady>абан`, `<zulu>hamba<V><PST>`.

    With --nbest N a line of output has the number of the source line, a score and a translation, separated by
    tabs, in the order of the search (by score / length, say); JSON has them as `best`. N is at most the width
    of the system's beam search, which may find fewer. Different subwords can make the same text.
    """
    from creamtea.engine.runner import load_module
    from creamtea.engine.try_out import opened, translating_step
    from creamtea.steps.systems import DecodeParams

    if word is not None and not word.strip():
        raise InputError("--word: no word was given; write one of the target language")
    if sys.stdin is None:
        raise InputError("standard input is closed; give it the lines to translate")
    store = workplace.artefact_store(writable=False)
    with workplace.existing_database() as database:
        study = workplace.study_asked_for(database, name)
        task = translating_step(database, store, study, system, seed).task
    _check_best(best, DecodeParams.model_validate(task.params).search, system)
    with opened(task, store) as context:
        lines = load_module("creamtea_workers.search.translator", context.cpus)
        opened_system = lines.OpenSystem.of_step(context)
        prompt = sys.stdin.isatty()
        if prompt:
            say(f"{task.name}: one sentence per line, Ctrl-D to end", err=True)
        number, doubts = 0, Doubts(opened_system.example)

        def show_prompt() -> None:
            if prompt:
                say("> ", nl=False, err=True)

        source_lines = iterate_lines(sys.stdin.buffer, "standard input", show_prompt)
        while batch := list(islice(source_lines, 1 if prompt else task.params["batch_size"])):
            warn_of_long_lines(batch, number)
            for row in opened_system.translate(batch, selected, best, word or ""):
                number += 1
                doubts.add(row)
                hand_over(json.dumps(row, ensure_ascii=False) if as_json else _shown(row, scores, number))
            sys.stdout.flush()
            if prompt:
                doubts.tell()
        doubts.tell()


def warn_of_long_lines(batch: Sequence[str], before: int) -> None:
    """Warn of lines that are whole texts, before translating. `before`: number of earlier lines."""
    for number, line in enumerate(batch, before + 1):
        if (words := count_words(line, unspaced=True)) > MAX_LINE:
            say(
                f"creamtea: line {number:,} has {words:,} words, which may take many minutes: write one "
                "sentence per line",
                err=True,
            )


@dataclass
class Doubts:
    """Counts of lines whose translations mean little, until `tell` prints them."""

    example: str  # a source of the system with its language; "" for a system whose sources have none
    unknown: Counter[str] = field(default_factory=Counter)
    with_unknown: int = 0  # [lines]
    incomplete: int = 0  # [lines] without the language, or the tags

    def add(self, row: Mapping[str, Any]) -> None:
        self.unknown.update(row["unknown"])
        self.with_unknown += bool(row["unknown"])
        ends = [(line.startswith("<"), line.endswith(">")) for line in (row["source"], self.example)]
        self.incomplete += bool(self.example) and ends[0] != ends[1]

    def tell(self) -> None:
        """Print the doubts to standard error, each kind once."""
        if self.incomplete:
            tags = " and its tags last" if self.example.endswith(">") else ""
            say(
                f"creamtea: {_lines(self.incomplete, 'is', 'are')} not written like this system's sources, "
                f"the language first{tags}, as in {self.example}",
                err=True,
            )
        if self.with_unknown:
            symbols = ", ".join(
                f"{symbol} ({count})" for symbol, count in self.unknown.most_common(MAX_SYMBOLS)
            )
            more = (
                f" and {counted(len(self.unknown) - MAX_SYMBOLS, 'other')}"
                if len(self.unknown) > MAX_SYMBOLS
                else ""
            )
            say(
                f"creamtea: {_lines(self.with_unknown, 'has', 'have')} symbols that the model has never "
                f"seen: {symbols}{more}",
                err=True,
            )
        self.unknown.clear()
        self.with_unknown = self.incomplete = 0


def _lines(count: int, singular: str, plural: str) -> str:
    return f"{counted(count, 'line')} {singular if count == 1 else plural}"


def _check_best(count: int, search: Search, system: str) -> None:
    if count > search.most_hypotheses:
        most = search.most_hypotheses
        amount = "only one translation" if most == 1 else f"at most {most} translations"
        raise InputError(
            f"--nbest {count}: {search.title} of {system} ({search.describe()}) finds {amount} per line; "
            f"{'take a system with a beam search' if most == 1 else 'lower N, or take a wider beam'}"
        )


def _shown(row: dict[str, Any], scores: bool, number: int) -> str:
    """Format a translation as a line, or several translations as lines with the number of the source."""
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


FORMATS = ("ctranslate2", "safetensors")
QUANTIZATIONS = (("ctranslate2", "int8"),)
EXPORT_EXAMPLES = """Examples:

`creamtea export demo softmax-greedy --to ctranslate2 softmax-model`

`creamtea export demo softmax-beam4 --to ctranslate2 --quantize int8 small-model`

`creamtea export demo scones-greedy --to safetensors --seed 1 --proof held-out.en scones-model`
"""


def export(
    name: workplace.StudyOrNumber,
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="One of the study's systems.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder, for the model.")],
    to: Annotated[str, typer.Option("--to", metavar="|".join(FORMATS), help="What will load the model.")],
    seed: Annotated[
        int | None, typer.Option(help="The seed of the model; by default the variant's first.")
    ] = None,
    quantize: Annotated[
        str | None,
        typer.Option(metavar="int8", help="For ctranslate2: smaller and faster, in 8-bit integers."),
    ] = None,
    proof: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Sentences for the proof, one per line; by default the first test set."
        ),
    ] = None,
    as_json: workplace.AsJson = False,
) -> None:
    """Write a trained model for other tools, with a model card, and prove that it translates the same.

    The folder has the weights, the subwords, and README.md: what the model is, what it was trained on, its
    scores, Python that loads it, and the proof. For the proof, creamtea and the exported model both translate
    the system's first test set, or the sentences of `--proof`, by greedy search over the whole vocabulary. A
    lexicon is exported to CTranslate2 as its vocabulary map; other vocabulary selections are not exported.

    Weights are in fp32, with `--quantize int8` in 8-bit integers. Quantization may change outputs; the card
    says how many are identical. If the system has a beam search, the card also says how many outputs of both
    beam searches are identical.

    CTranslate2 supports Transformers with subwords, trained with any objective; it needs `pip install
    'creamtea[export]'`. safetensors supports every model, for `creamtea_workers.export.load`.

    Exit code 0: every greedy output is identical, or the model is quantized; 1: some differ (the folder is
    written, and its card says so); 2: wrong input, or a model that the format cannot express.
    """
    if to not in FORMATS:
        raise InputError(f"--to {to}: unknown format; use {' or '.join(FORMATS)}")
    if quantize is not None and (to, quantize) not in QUANTIZATIONS:
        raise InputError(f"--quantize {quantize}: unknown for {to}; use --to ctranslate2 --quantize int8")
    check_new(folder, "FOLDER")
    sentences = None if proof is None else _sentences(proof)

    from creamtea.engine.runner import load_module
    from creamtea.engine.try_out import opened, translating_step
    from creamtea.orders.submission import spec_of
    from creamtea.report.model_card import (
        SHOWN,
        Export,
        beam_words,
        difference_words,
        model_card,
        proof_words,
    )
    from creamtea.study.spec import ShippedModel

    store = workplace.artefact_store(writable=False)
    with ExitStack() as stack:
        database = stack.enter_context(workplace.existing_database())
        study = workplace.study_asked_for(database, name)
        step = translating_step(database, store, study, system, seed)
        with database.session() as session:
            model = spec_of(find_study(session, study)).systems[system].model
        if isinstance(model, ShippedModel):
            raise InputError(
                f"system {system}: its model is a CTranslate2 folder already ({model.path}); use it as it is"
            )
        stack.enter_context(_writing(folder))
        folder.parent.mkdir(parents=True, exist_ok=True)
        place = Path(stack.enter_context(TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-")))
        with opened(step.task, store) as context:
            exporting = load_module("creamtea_workers.export", context.cpus)
            made: ExportFacts = exporting.export(context, to, place, sentences, quantize)
        proved_on = f"test set {step.node.labels['test_set']}" if proof is None else f"the file {proof.name}"
        done = Export(to, step.node, proved_on, made)
        (place / "README.md").write_text(model_card(database, done, study), encoding="utf-8")
        folder.mkdir(exist_ok=True)
        for file in place.iterdir():
            shutil.move(file, folder / file.name)
    differences = made.proof.differences
    if as_json:
        say(json.dumps({"folder": str(folder), "node": step.node.name, **asdict(made)}, ensure_ascii=False))
    else:
        also = f"; {beam_words(made.beam)}" if made.beam else ""
        say(f"{folder}: {step.node.name} for {to}; {proof_words(done)}{also}")
    if differences and not quantize:
        say(
            f"creamtea: {len(differences):,} of {made.proof.sentences:,} outputs differ from creamtea's; "
            f"{difference_words(differences[0])}. {folder}/README.md lists the first {SHOWN}",
            err=True,
        )
        raise typer.Exit(1)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn an OSError into one message, which blames the folder only if that could not be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        named = error.filename2 or error.filename
        if isinstance(named, str) and not _concerns(Path(named), folder):
            raise InfrastructureError(f"{named}: {reason}; fix that, then export again") from None
        raise InputError(
            f"{folder}: cannot be written ({reason}); free some space, or give another folder"
        ) from None


def _concerns(path: Path, folder: Path) -> bool:
    """Return True for a path in the folder, above it, or in the one beside it that is filled first."""
    path, folder = path.absolute(), folder.absolute()
    if folder.is_relative_to(path) or path.is_relative_to(folder):
        return True
    beside = path.is_relative_to(folder.parent)
    return beside and path.relative_to(folder.parent).parts[0].startswith(f".{folder.name}-")


def _sentences(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            lines = list(iterate_lines(unpacked(stream), str(path)))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"--proof {path}: cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from None
    if not lines:
        raise InputError(f"--proof {path}: no sentence in it; give a text file with one per line")
    return lines
