"""Write the model of a step that translates into a folder, and prove that it is the same model."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from creamtea.contract.export import BeamProof, Difference, ExportFacts, MapProof, Proof
from creamtea.contract.step import StepContext
from creamtea.errors import InputError
from creamtea.methods.searches import Beam, Greedy, Search
from creamtea.methods.selections import LexiconSelection
from creamtea.steps.systems import DecodeParams
from creamtea_workers.corpora.batches import parts
from creamtea_workers.corpora.marian_subwords import MarianSubwords
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.corpora.subwords import SubwordTexts, TextModel, load_text_model, text_model_file
from creamtea_workers.export import to_ctranslate2, weights
from creamtea_workers.models.base import Model
from creamtea_workers.models.build import load_model
from creamtea_workers.models.inference import prepare
from creamtea_workers.models.interface import BOS, EOS, TranslationModel, output_logits
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search import build_search
from creamtea_workers.search.base import Sources, length_limit
from creamtea_workers.search.shipped import Library, require_ctranslate2, token_names
from creamtea_workers.search.translator import Translator, lexicon_file, source_batch, translate_all
from creamtea_workers.selection.alignment import LexiconSelector, build
from creamtea_workers.selection.base import SelectionResources, Selector
from creamtea_workers.selection.full import FullSelector

BATCH = 64  # sentences of `in_batches`
FULL = FullSelector()
Ids = Sequence[int]
Translate = Callable[[Sources], list[list[int]]]  # sources and outputs are subwords without </s>


@dataclass(frozen=True)
class _Exported:
    """What translates with the written model."""

    greedy: Translate
    fits: Callable[[int], bool]  # whether it takes a source of so many subwords
    subwords: tuple[str, ...] = ()  # files of the SentencePiece models of source and target, for CTranslate2
    beam: Callable[[Beam], Translate] | None = None  # if its beam search differs from ours
    selected: Translate | None = None  # greedy, in the lexicon's vocabulary


@dataclass(frozen=True)
class _Source:
    """A trained model, loaded and in its folder."""

    model: Model
    folder: Path
    subwords: TextModel
    subwords_file: Path
    lexicon: LexiconSelector | None  # if the system selects by it
    ratio: float  # of the length limit
    threads: int
    quantization: str | None


def export(
    context: StepContext[DecodeParams],
    to: str,
    folder: Path,
    lines: Sequence[str] | None,
    quantization: str | None = None,
) -> ExportFacts:
    """Write the model of a decode step into an existing folder, and prove that it translates alike.

    `to`: "ctranslate2" or "safetensors". `lines`: what both models translate, on the CPU; by default the
    sources of the step's test set. creamtea's weights are in fp32, the written ones in fp32 or their
    `quantization` (CTranslate2's "int8"). InputError if no sentence can be compared and, before anything is
    written, if the format cannot express the model.
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
    selection, lexicon = context.params.selection, None
    if isinstance(selection, LexiconSelection) and to == "ctranslate2":
        lexicon = build(selection, SelectionResources(model, lexicon_file(context)))
    source = _Source(model, trained, subwords, subwords_file, lexicon, ratio, context.cpus, quantization)
    theirs = write(source, folder)

    prepared = prepare(model, "fp32")
    sources = EncodedTestSet.of_step(context).sources if lines is None else subwords.encode_lines(lines)

    def proved(search: Search, exported: Translate, selector: Selector = FULL) -> Proof:
        ours = Translator(prepared, objective, selector, build_search(search))
        return prove(prepared, partial(translate_all, ours), exported, sources, theirs.fits)

    greedy = Greedy(max_length_ratio=ratio)
    proof = proved(greedy, theirs.greedy)
    if not proof.sentences:
        raise InputError(
            f"all {proof.left_out:,} sentences are empty or too long to be compared: give others with --proof"
        )
    search, beam, by_map = context.params.search, None, None
    if theirs.beam is not None and isinstance(search, Beam) and search.ranks_by_length:
        beam = BeamProof(**vars(proved(search, theirs.beam(search))), search=search.describe())
    if theirs.selected is not None and lexicon is not None:
        by_map = MapProof(**vars(proved(greedy, theirs.selected, lexicon)), selection=selection.describe())
    return ExportFacts(
        parameters, config.vocabulary_size, ratio, quantization, theirs.subwords, proof, beam, by_map
    )


def _only_model(context: StepContext[DecodeParams]) -> Path:
    folders = context.inputs("train")
    if len(folders) > 1:
        raise InputError(
            f"the system is an ensemble of {len(folders)} models, which no export holds: give a system of "
            "the same variant without `ensemble`, and --seed for each"
        )
    return folders[0]


def _to_ctranslate2(source: _Source, folder: Path) -> _Exported:
    require_ctranslate2(", or export `--to safetensors`, which needs nothing more")
    model, subwords = source.model, source.subwords
    if reason := to_ctranslate2.obstacle(model, subwords):
        raise InputError(f"CTranslate2 cannot express this model: {reason}; export it `--to safetensors`")
    assert isinstance(model, Transformer)
    assert isinstance(subwords, SubwordTexts)
    names = token_names(subwords)
    to_ctranslate2.save(model, names, folder, source.quantization)
    files: tuple[str, ...] = (source.subwords_file.name,) * 2
    if isinstance(subwords, MarianSubwords):
        files = tuple(subwords.write_models(folder))
    else:
        shutil.copyfile(source.subwords_file, folder / source.subwords_file.name)
    if source.lexicon is not None:
        to_ctranslate2.save_map(source.lexicon, names, folder)
    library = Library(folder, names, source.threads, source.quantization or "float32")

    def translate(sources: Sources, search: Beam | None = None, mapped: bool = False) -> list[list[int]]:
        limits = [length_limit(source.ratio, len(row)) for row in sources]
        return [best.tokens for (best,) in library.translate(sources, limits, search, mapped=mapped)]

    def beam(search: Beam) -> Translate:
        return partial(in_batches, partial(translate, search=search))

    def fits(length: int) -> bool:
        return length > 0 and max(length + 1, length_limit(source.ratio, length)) <= to_ctranslate2.POSITIONS

    selected = partial(translate, mapped=True) if source.lexicon else None
    return _Exported(partial(in_batches, translate), fits, files, beam, selected)


def _to_safetensors(source: _Source, folder: Path) -> _Exported:
    weights.save(source.folder, source.subwords_file, folder)
    loaded = weights.load(folder, max_length_ratio=source.ratio)
    return _Exported(partial(translate_all, loaded.translator), lambda length: True)


def in_batches(work: Translate, sources: Sources) -> list[list[int]]:
    """Translate by batches of similar lengths; return the outputs in the order of the sources."""
    lengths = [len(source) for source in sources]
    results: dict[int, list[int]] = {}
    for part in parts(sorted(range(len(sources)), key=lengths.__getitem__), lengths, BATCH):
        results.update(zip(part, work([sources[n] for n in part]), strict=True))
    return [results[n] for n in range(len(sources))]


# ---------------------------------------------------------------- the proof


def prove(
    model: TranslationModel,
    ours: Translate,
    theirs: Translate,
    sources: Sources,
    fits: Callable[[int], bool],
) -> Proof:
    """Compare outputs of two programs for the sources that the exported model reads.

    `model` is that of `ours`. `fits` says whether the exported model reads a source of so many subwords.
    """
    lines = [n for n, source in enumerate(sources) if fits(len(source))]
    compared = [sources[n] for n in lines]
    differences = tuple(
        _difference(model, line + 1, source, own, other)
        for line, source, own, other in zip(lines, compared, ours(compared), theirs(compared), strict=True)
        if own != other
    )
    identical = len(lines) - len(differences)
    return Proof(len(lines), len(sources) - len(lines), identical, differences)


@torch.inference_mode()
def _difference(model: TranslationModel, line: int, source: Ids, own: Ids, other: Ids) -> Difference:
    first, second = [*own, EOS], [*other, EOS]
    position = next(n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    device = model.output_weight.device
    memory = model.encode(source_batch([source], device))
    prefix = torch.tensor([[BOS, *own[:position]]], device=device)
    logits = output_logits(model, model.decode(memory, prefix)[0, -1])  # (V,)
    return Difference(line, position, float(logits[first[position]] - logits[second[position]]))
