"""Write a Transformer of ours as a CTranslate2 model: the same weights under other names.

By default CTranslate2 forbids an empty hypothesis and cuts sources and hypotheses. Its greedy search equals
ours only with the settings `AS_OURS`. It never shows an empty source to the model: its output is empty,
whereas ours is the model's translation of </s>. Its arg max is of the logits, like ours: the objective that a
model was trained with affects only scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from creamtea.errors import InputError
from creamtea_workers.corpora.subwords import BOS, PAD, SubwordTexts, TextModel, vocabulary_sizes
from creamtea_workers.models.base import Model
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.search.translator import Sources
from creamtea_workers.selection.alignment import LexiconSelector

if TYPE_CHECKING:
    from ctranslate2 import Translator
    from ctranslate2.specs import TransformerSpec

Names = tuple[list[str], list[str]]  # of source and target subwords, by id
MAP = "vmap.txt"
POSITIONS = 2048  # of sources and of hypotheses that an exported model can read
# by default an output has one subword or more, and a source at most 1,024
AS_OURS: dict[str, Any] = {"min_decoding_length": 0, "max_input_length": 0}


def obstacle(model: Model, subwords: TextModel) -> str:
    """Return why CTranslate2 cannot express the model, as a clause; "" if it can."""
    if not isinstance(model, Transformer):
        return "its architecture is not a Transformer, and CTranslate2 has no counterpart"
    if model.recurrent:
        return "its decoder has SSRUs, which CTranslate2 does not have"
    if not isinstance(subwords, SubwordTexts):
        return "its vocabularies are not of SentencePiece, and this conversion writes no others"
    if model.size.attention != "softmax":
        return f"it has {model.size.attention} attention, and CTranslate2 softmax alone"
    if model.size.positions == "learned":
        return "its positions are learned, which this conversion does not write"
    return ""


def require_ctranslate2() -> None:
    """Raise InputError if the package is missing."""
    try:
        import ctranslate2  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"CTranslate2 cannot be imported ({error}): install it with `pip install 'creamtea[export]'`, or "
            "export `--to safetensors`, which needs nothing more"
        ) from None


def token_names(subwords: SubwordTexts) -> Names:
    """Return the names of source and target subwords, by id, each name once.

    Marian's decoder begins with the padding symbol, so that its name stands at two ids: at BOS it becomes
    `<begin>`.
    """
    sizes = vocabulary_sizes(subwords)
    sides = subwords.source_pieces(range(sizes[0])), subwords.pieces(range(sizes[1]))
    for names in sides:
        if names[BOS] == names[PAD]:
            names[BOS] = "<begin>"
    return sides


def save(model: Transformer, names: Names, folder: Path, quantization: str | None = None) -> None:
    """Write the model into an existing folder. `quantization` as CTranslate2 knows it; None: fp32."""
    spec = specification(model, names)
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))


def save_map(selector: LexiconSelector, names: Names, folder: Path) -> None:
    """Write CTranslate2's vocabulary map: a line of target subwords for each source subword.

    The line with an empty name has the subwords of every sentence; CTranslate2 adds the special ones.
    """

    def row(source: str, ids: list[int], frequent: int = 0) -> str:
        targets = selector.lexicon.select(ids, selector.k, frequent).tolist()
        return f"{source}\t{' '.join(names[1][id_] for id_ in targets)}\n"

    rows = (row(source, [id_]) for id_, source in enumerate(names[0]))
    (folder / MAP).write_text("".join([row("", [], selector.frequent), *rows]), encoding="utf-8")


def translator(folder: Path, compute_type: str = "float32", threads: int = 1) -> Translator:
    """Load the model of a folder on the CPU."""
    import ctranslate2

    return ctranslate2.Translator(
        str(folder), compute_type=compute_type, inter_threads=1, intra_threads=threads
    )


class Peer:
    """CTranslate2's searches over ids, to be compared with ours."""

    def __init__(self, folder: Path, names: Names, threads: int = 1, compute_type: str = "float32") -> None:
        self._translator = translator(folder, compute_type, threads)
        self._names = names[0]
        self._ids = {name: id_ for id_, name in enumerate(names[1])}

    def selected(self, sources: Sources, limits: Sequence[int]) -> list[list[int]]:
        """Search greedily with the vocabulary map, one sentence at a time.

        Of several sentences CTranslate2 would take the union of their vocabularies.
        """
        pairs = zip(sources, limits, strict=True)
        return [self._translate([row], limit, beam_size=1, use_vmap=True)[0] for row, limit in pairs]

    def greedy(self, sources: Sources, limits: Sequence[int]) -> list[list[int]]:
        """Search greedily. `limits`: the maximum number of tokens of each hypothesis, </s> included.

        CTranslate2 has one limit per batch. A longer greedy search begins like a shorter one, so the batch
        runs to the highest limit, and each hypothesis is cut off at its own.
        """
        hypotheses = self._translate(sources, max(limits), beam_size=1)
        return [ids[:limit] for ids, limit in zip(hypotheses, limits, strict=True)]

    def beam(
        self, sources: Sources, limits: Sequence[int], width: int, normalization: float
    ) -> list[list[int]]:
        """Search by a beam of this width; scores are divided by length ** `normalization`.

        A beam search with another limit may end otherwise, so each limit is a batch of its own.
        """
        hypotheses: dict[int, list[int]] = {}
        for limit in set(limits):
            places = [place for place, its_limit in enumerate(limits) if its_limit == limit]
            rows = [sources[place] for place in places]
            settings = {"beam_size": width, "length_penalty": normalization}
            hypotheses.update(zip(places, self._translate(rows, limit, **settings), strict=True))
        return [hypotheses[place] for place in range(len(sources))]

    def _translate(self, sources: Sources, limit: int, **search: Any) -> list[list[int]]:
        rows = [[self._names[id_] for id_ in source] for source in sources]
        results = self._translator.translate_batch(rows, max_decoding_length=limit, **AS_OURS, **search)
        return [[self._ids[name] for name in result.hypotheses[0]] for result in results]


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
