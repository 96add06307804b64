"""From a step that translates to a folder with its model, and the proof that it is the same model."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from creamtea.contract.step import StepContext
from creamtea.errors import InputError
from creamtea.methods.searches import Greedy
from creamtea.steps.systems import DecodeParams
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.vocabularies import TextModel, load_text_model, text_model_file
from creamtea_workers.export import to_ctranslate2, weights
from creamtea_workers.export.batches import Sources, in_batches
from creamtea_workers.export.proof import Translate, prove
from creamtea_workers.models.base import Model
from creamtea_workers.models.build import load_model
from creamtea_workers.models.inference import prepare
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search import build_search
from creamtea_workers.search.hypothesis import length_limit
from creamtea_workers.search.translator import Translator
from creamtea_workers.selection.full import FullSelector

# what translates with the written model, and which numbers of subwords of a source it takes
_Exported = tuple[Translate, Callable[[int], bool]]


@dataclass(frozen=True)
class _Source:
    """A trained model, as it is read and in its folder."""

    model: Model
    folder: Path
    subwords: TextModel
    subwords_file: Path
    ratio: float  # of the length limit
    threads: int


def export(
    context: StepContext[DecodeParams], to: str, folder: Path, lines: Sequence[str] | None
) -> dict[str, Any]:
    """Write the model of a decode step into an existing folder, as "ctranslate2" or "safetensors", and
    translate `lines` (None: the sources of the step's test set) with both: on the CPU, in fp32, by greedy
    search over the whole vocabulary. The numbers that a model card gives; `proof` is a `Proof`. InputError
    where no sentence can be compared, and, before anything is written, where the format cannot express the
    model.
    """
    prepare_torch(context.cpus)
    trained = _only_model(context)
    model, objective, config = load_model(trained)
    parameters = sum(
        weight.numel()
        for name, weight in model.named_parameters()
        if to == "safetensors" or not name.startswith("nvs.")
    )
    subwords, subwords_file = load_text_model(context), text_model_file(context.input("subwords"))
    ratio = context.params.search.max_length_ratio
    write = {"ctranslate2": _to_ctranslate2, "safetensors": _to_safetensors}[to]
    theirs, fits = write(_Source(model, trained, subwords, subwords_file, ratio, context.cpus), folder)

    search = build_search(Greedy(max_length_ratio=ratio))
    ours = Translator(prepare(model, "fp32"), objective, FullSelector(), search)
    sources = EncodedTestSet.of_step(context).sources if lines is None else subwords.encode_lines(lines)
    proof = prove(ours.model, partial(weights.translate_all, ours), theirs, sources, fits)
    if not proof.sentences:
        raise InputError(
            f"all {proof.left_out:,} sentences are empty or too long to be compared: give others with --proof"
        )
    return {
        "parameters": parameters,
        "vocabulary_size": config.vocabulary_size,
        "max_length_ratio": ratio,
        "proof": {**asdict(proof), "identical": proof.identical},
    }


def _only_model(context: StepContext[DecodeParams]) -> Path:
    folders = context.inputs("train")
    if len(folders) > 1:
        raise InputError(
            f"the system is an ensemble of {len(folders)} models, which no export holds: give a system of "
            "the same variant without `ensemble`, and --seed for each"
        )
    return folders[0]


def _to_ctranslate2(source: _Source, folder: Path) -> _Exported:
    to_ctranslate2.require_ctranslate2()
    model, subwords = source.model, source.subwords
    if reason := to_ctranslate2.obstacle(model, subwords):
        raise InputError(f"CTranslate2 cannot express this model: {reason}; export it `--to safetensors`")
    assert isinstance(model, Transformer)
    assert isinstance(subwords, SubwordModel)
    names = subwords.pieces(range(subwords.size))
    to_ctranslate2.save(model, names, folder)
    shutil.copyfile(source.subwords_file, folder / source.subwords_file.name)
    peer = to_ctranslate2.GreedyPeer(folder, names, source.threads)

    def batch(sources: Sources) -> list[list[int]]:
        return peer.translate(sources, [length_limit(source.ratio, len(row)) for row in sources])

    def fits(length: int) -> bool:
        return length > 0 and max(length + 1, length_limit(source.ratio, length)) <= to_ctranslate2.POSITIONS

    return partial(in_batches, batch), fits


def _to_safetensors(source: _Source, folder: Path) -> _Exported:
    weights.save(source.folder, source.subwords_file, folder)
    loaded = weights.load(folder, max_length_ratio=source.ratio)
    return partial(weights.translate_all, loaded.translator), lambda length: True
