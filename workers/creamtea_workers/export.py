"""Write the model of a decode step into a folder, and prove that it is the same model.

Other programs load the folder: a CTranslate2 model, or weights that `load` reads.

| file for `load` | content |
|---|---|
| `model.safetensors` | weights by name, fp32 |
| `config.json` | objective, architecture, nvs, vocabulary_size, from which the module is rebuilt |
| `subwords.model` or `vocabularies.json` | text to ids and back |
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from creamtea.contract.step import BeamProof, Difference, ExportFacts, MapProof, Proof, StepContext
from creamtea.errors import InputError
from creamtea.methods.searches import Beam, Greedy, Search
from creamtea.methods.selections import LexiconSelection
from creamtea.shipped import MAP
from creamtea.steps.systems import DecodeParams
from creamtea_workers.corpora.batches import in_batches, parts
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.corpora.subwords import (
    MarianSubwords,
    SubwordTexts,
    TextModel,
    load_text_model,
    load_text_model_of,
    text_model_file,
)
from creamtea_workers.models.inference import prepare
from creamtea_workers.models.interface import BOS, EOS, TranslationModel, output_logits
from creamtea_workers.models.model import CONFIG, WEIGHTS, Model, load_model
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.runtime import prepare_torch, use_tf32
from creamtea_workers.search import build_search
from creamtea_workers.search.base import Sources, length_limit
from creamtea_workers.search.shipped import Library, Names, require_ctranslate2, token_names
from creamtea_workers.search.translator import Translator, lexicon_file, source_batch, translate_all
from creamtea_workers.selection.base import SelectionResources, Selector
from creamtea_workers.selection.tables import FullSelector, LexiconSelector, build

EXPORTED_CONFIG = "config.json"  # other programs recognise a model's folder by this file
POSITIONS = 2048  # longest source and longest hypothesis of an exported model, in subwords
BATCH = 64  # sentences of `by_length`
FULL = FullSelector()
Ids = Sequence[int]
Translate = Callable[[Sources], list[list[int]]]  # sources and outputs are subwords without </s>


@dataclass(frozen=True)
class _Exported:
    """Functions that translate with the written model."""

    greedy: Translate
    fits: Callable[[int], bool]  # whether the model reads a source of this many subwords
    subwords: tuple[str, ...] = ()  # SentencePiece files of source and target, for CTranslate2
    beam: Callable[[Beam], Translate] | None = None  # if the program's beam search differs from ours
    selected: Translate | None = None  # greedy search in the lexicon's vocabulary


@dataclass(frozen=True)
class _Source:
    """A trained model: loaded, and the folder it was loaded from."""

    model: Model
    folder: Path
    subwords: TextModel
    subwords_file: Path
    lexicon: LexiconSelector | None  # if the system selects by a lexicon
    ratio: float  # the search's max_length_ratio
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

    `to`: "ctranslate2" or "safetensors". `lines`: sentences that both models translate on the CPU; by default
    the sources of the step's test set. `quantization` of the written weights: CTranslate2's "int8"; None is
    fp32, like creamtea's own weights. Raises InputError if the format cannot express the model (before
    anything is written), or if no sentence can be compared.
    """
    prepare_torch(context.cpus)
    folders = context.inputs("train")
    if len(folders) > 1:
        raise InputError(
            f"the system is an ensemble of {len(folders)} models, and an export holds one: give a system of "
            "the same variant without `ensemble`, and --seed for each"
        )
    model, objective, config = load_model(folders[0])
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
        selector = build(selection, SelectionResources(model, lexicon_file(context)))
        assert isinstance(selector, LexiconSelector)
        lexicon = selector
    source = _Source(model, folders[0], subwords, subwords_file, lexicon, ratio, context.cpus, quantization)
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


def _to_ctranslate2(source: _Source, folder: Path) -> _Exported:
    require_ctranslate2(", or export `--to safetensors`, which needs nothing more")
    model, subwords = source.model, source.subwords
    if reason := obstacle(model, subwords):
        raise InputError(f"CTranslate2 cannot express this model: {reason}; export it `--to safetensors`")
    assert isinstance(model, Transformer)
    assert isinstance(subwords, SubwordTexts)
    names = token_names(subwords)
    save_ctranslate2(model, names, folder, source.quantization)
    files: tuple[str, ...] = (source.subwords_file.name,) * 2
    if isinstance(subwords, MarianSubwords):
        files = tuple(subwords.write_models(folder))
    else:
        shutil.copyfile(source.subwords_file, folder / source.subwords_file.name)
    if source.lexicon is not None:
        save_map(source.lexicon, names, folder)
    library = Library(folder, names, source.threads, source.quantization or "float32")

    def translate(sources: Sources, search: Beam | None = None, mapped: bool = False) -> list[list[int]]:
        limits = [length_limit(source.ratio, len(row)) for row in sources]
        return [best.tokens for (best,) in library.translate(sources, limits, search, mapped=mapped)]

    def beam(search: Beam) -> Translate:
        return partial(by_length, partial(translate, search=search))

    def fits(length: int) -> bool:
        return length > 0 and max(length + 1, length_limit(source.ratio, length)) <= POSITIONS

    selected = partial(translate, mapped=True) if source.lexicon else None
    return _Exported(partial(by_length, translate), fits, files, beam, selected)


def _to_safetensors(source: _Source, folder: Path) -> _Exported:
    shutil.copyfile(source.subwords_file, folder / source.subwords_file.name)
    shutil.copyfile(source.folder / WEIGHTS, folder / WEIGHTS)
    shutil.copyfile(source.folder / CONFIG, folder / EXPORTED_CONFIG)
    loaded = load(folder, max_length_ratio=source.ratio)
    return _Exported(partial(translate_all, loaded.translator), lambda length: True)


def by_length(work: Translate, sources: Sources) -> list[list[int]]:
    """Translate by batches of similar lengths; return the outputs in the order of the sources."""
    lengths = [len(source) for source in sources]
    order = sorted(range(len(sources)), key=lengths.__getitem__)
    return in_batches(parts(order, lengths, BATCH), sources, work)


# ---------------------------------------------------------------- the proof


def prove(
    model: TranslationModel,
    ours: Translate,
    theirs: Translate,
    sources: Sources,
    fits: Callable[[int], bool],
) -> Proof:
    """Compare outputs of two programs for the sources that the exported model reads.

    `ours` translates with `model`. `fits` returns True if the exported model reads a source of this length.
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


if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

# ---------------------------------------------------------------- CTranslate2


# The written model has the same weights under other names. Both programs take the arg max of the logits: the
# objective of the training affects only scores. CTranslate2 does not run the model on an empty source;
# creamtea translates an empty source as </s>.


def obstacle(model: Model, subwords: TextModel) -> str:
    """Return why CTranslate2 cannot express the model, as a clause; "" if it can."""
    if not isinstance(model, Transformer):
        return "its architecture is not a Transformer, and CTranslate2 has no counterpart"
    if model.recurrent:
        return "its decoder has SSRUs, which CTranslate2 does not have"
    if not isinstance(subwords, SubwordTexts):
        return "its vocabularies are not SentencePiece models, and this conversion writes no others"
    if model.size.attention != "softmax":
        return f"it has {model.size.attention} attention, and CTranslate2 has only softmax attention"
    if model.size.positions == "learned":
        return "its positions are learned, which this conversion does not write"
    return ""


def save_ctranslate2(model: Transformer, names: Names, folder: Path, quantization: str | None = None) -> None:
    """Write the model into an existing folder. `quantization` is CTranslate2's name; None is fp32."""
    spec = specification(model, names)
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))


def save_map(selector: LexiconSelector, names: Names, folder: Path) -> None:
    """Write CTranslate2's vocabulary map: a line of target subwords for each source subword.

    The line with an empty name lists the subwords that every sentence may use. CTranslate2 adds its special
    tokens itself.
    """

    def row(source: str, ids: list[int], frequent: int = 0) -> str:
        targets = selector.lexicon.select(ids, selector.k, frequent).tolist()
        return f"{source}\t{' '.join(names[1][id_] for id_ in targets)}\n"

    rows = (row(source, [id_]) for id_, source in enumerate(names[0]))
    (folder / MAP).write_text("".join([row("", [], selector.frequent), *rows]), encoding="utf-8")


def specification(model: Transformer, names: Names) -> TransformerSpec:
    """Convert the model to CTranslate2's specification, with sinusoidal positions as a table."""
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.common_spec import Activation

    activations = {"relu": Activation.RELU, "gelu": Activation.GELU, "silu": Activation.SWISH}
    spec = TransformerSpec.from_config(
        (len(model.encoder), len(model.decoder)),
        model.heads,
        pre_norm=model.size.norm == "pre",
        activation=activations[model.size.activation],
    )
    spec.register_source_vocabulary(names[0])
    spec.register_target_vocabulary(names[1])
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = names[1][1:4]
    spec.config.decoder_start_token = names[1][BOS]
    spec.config.add_source_eos = True
    for side, layers, norm, table in (
        (spec.encoder, model.encoder, model.encoder_norm, model.source_embedding or model.embedding),
        (spec.decoder, model.decoder, model.decoder_norm, model.embedding),
    ):
        embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        embeddings.weight = _array(table.weight)
        side.scale_embeddings = model.size.scale_embeddings
        side.position_encodings.encodings = _array(model.positions(0, POSITIONS))
        if norm is not None:
            _fill_norm(side.layer_norm, norm)
        for target, layer in zip(side.layer, layers, strict=True):
            _fill_layer(target, layer)
    spec.decoder.projection.weight = _array(model.output_weight)
    spec.decoder.projection.bias = _array(model.output_bias)
    return spec


def _fill_layer(target: Any, layer: Any) -> None:
    _fill_norm(target.self_attention.layer_norm, layer.attention_norm)
    _fill_linear(target.self_attention.linear[0], layer.attention.qkv)
    _fill_linear(target.self_attention.linear[1], layer.attention.out)
    if hasattr(layer, "cross"):
        _fill_norm(target.attention.layer_norm, layer.cross_norm)
        for linear, ours in zip(
            target.attention.linear, (layer.cross.query, layer.cross.kv, layer.cross.out), strict=True
        ):
            _fill_linear(linear, ours)
    _fill_norm(target.ffn.layer_norm, layer.feed_norm)
    _fill_linear(target.ffn.linear_0, layer.feed.inner)
    _fill_linear(target.ffn.linear_1, layer.feed.out)


def _fill_norm(target: Any, norm: nn.Module) -> None:
    target.gamma, target.beta = _array(norm.weight), _array(norm.bias)


def _fill_linear(target: Any, linear: nn.Module) -> None:
    target.weight, target.bias = _array(linear.weight), _array(linear.bias)


def _array(values: Any) -> NDArray[np.float32]:
    assert isinstance(values, Tensor)
    return values.detach().numpy().copy()  # quantising works in place


# ---------------------------------------------------------------- safetensors


@dataclass(frozen=True)
class ExportedModel:
    """A loaded model with its subwords, which translates with the full vocabulary in fp32."""

    translator: Translator
    subwords: TextModel

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return one translation per line, in their order."""
        sources = self.subwords.encode_lines(list(lines))
        return [self.subwords.decode(tokens) for tokens in translate_all(self.translator, sources)]


def load(
    folder: str | Path, *, beam: int = 1, max_length_ratio: float = 2.0, device: str = "cpu"
) -> ExportedModel:
    """Load a model that `creamtea export --to safetensors` wrote, ready to translate.

    `beam`: 1 is greedy search. Outputs have at most `max_length_ratio` times the source's subwords, plus 10.
    Switches TF32 off for this whole process. Raises InputError if the folder has no such model.
    """
    folder = Path(folder)
    missing = [name for name in (EXPORTED_CONFIG, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder}: no {' and no '.join(missing)} in it; give a folder that `creamtea export --to "
            "safetensors` wrote"
        )
    use_tf32(False)
    model, objective, _ = load_model(folder, torch.device(device), EXPORTED_CONFIG)
    search: Search = Greedy(max_length_ratio=max_length_ratio)
    if beam != 1:
        search = Beam(kind="beam", width=beam, max_length_ratio=max_length_ratio)
    translator = Translator(prepare(model, "fp32"), objective, FullSelector(), build_search(search))
    return ExportedModel(translator, load_text_model_of(folder))
