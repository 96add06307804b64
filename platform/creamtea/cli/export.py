"""`creamtea export`: a trained model in a folder that other tools load."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from creamtea.cli import workplace
from creamtea.cli.lines import iterate_lines
from creamtea.cli.printing import say
from creamtea.errors import InputError
from creamtea.new_folder import check_new
from creamtea.unpacked import unpacked

FORMATS = ("ctranslate2", "safetensors")
QUANTIZATIONS = (("ctranslate2", "int8"),)
EXAMPLES = """Examples:

`creamtea export demo softmax-greedy --to ctranslate2 softmax-model`

`creamtea export demo softmax-beam4 --to ctranslate2 --quantize int8 small-model`

`creamtea export demo scones-greedy --to safetensors --seed 1 --proof held-out.en scones-model`
"""


def export(
    name: workplace.StudyName,
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="One of the study's systems.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder, for the model.")],
    to: Annotated[str, typer.Option("--to", metavar="|".join(FORMATS), help="What will load the model.")],
    seed: Annotated[
        int | None, typer.Option(help="Which of its variant's models; by default the first.")
    ] = None,
    quantize: Annotated[
        str | None,
        typer.Option(metavar="int8", help="For ctranslate2: smaller and faster, in 8-bit integers."),
    ] = None,
    proof: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Prove it on these sentences, one per line, not on a test set."),
    ] = None,
    as_json: workplace.AsJson = False,
) -> None:
    """Write a trained model that other tools load, with a model card, and prove that it is the same model.

    The folder has the weights, the subwords, and README.md: what the model is and was trained on, its scores,
    Python that loads it, and the proof. For that, creamtea and the exported model both translate the system's
    first test set, or the sentences of `--proof`, by greedy search over the whole vocabulary. A vocabulary
    selection is not exported.

    Weights are in fp32, with `--quantize int8` in 8-bit integers. With these, outputs may differ: how many
    are identical is measured, and the card says it, as it does of the beam search of a system that has one.

    CTranslate2 has Transformers with subwords, trained with any objective; it needs
    `pip install 'creamtea[export]'`. safetensors has every model, for `creamtea_workers.export.load`.

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
    from creamtea.engine.trained_systems import opened, translating_step
    from creamtea.report.model_card import (
        SHOWN,
        Export,
        beam_words,
        difference_words,
        model_card,
        proof_words,
    )

    store = workplace.artefact_store(writable=False)
    with ExitStack() as stack:
        database = stack.enter_context(workplace.existing_database())
        step = translating_step(database, store, name, system, seed)
        if "variant" not in step.node.labels:
            raise InputError(
                f"system {system}: its model was not trained here, and is in its own folder already; "
                "export a system with a variant"
            )
        stack.enter_context(_writing(folder))
        folder.parent.mkdir(parents=True, exist_ok=True)
        place = Path(stack.enter_context(TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-")))
        with opened(step.task, store) as context:
            exporting = load_module("creamtea_workers.export.exporting", context.cpus)
            made = exporting.export(context, to, place, sentences, quantize)
        proved_on = f"test set {step.node.labels['test_set']}" if proof is None else f"the file {proof.name}"
        done = Export(to, step.node, proved_on, made)
        (place / "README.md").write_text(model_card(database, done, name), encoding="utf-8")
        folder.mkdir(exist_ok=True)
        for file in place.iterdir():
            shutil.move(file, folder / file.name)
    differences = done.proof["differences"]
    if as_json:
        say(json.dumps({"folder": str(folder), "node": step.node.name, **made}, ensure_ascii=False))
    else:
        also = f"; {beam_words(done)}" if made["beam"] else ""
        say(f"{folder}: {step.node.name} for {to}; {proof_words(done)}{also}")
    if differences and not quantize:
        say(
            f"creamtea: {len(differences):,} of {done.proof['sentences']:,} outputs differ from creamtea's; "
            f"{difference_words(differences[0])}. {folder}/README.md lists the first {SHOWN}",
            err=True,
        )
        raise typer.Exit(1)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"{folder}: cannot be written ({reason}); free some space, or give another folder"
        ) from None


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
