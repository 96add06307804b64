"""Write a Transformer of ours as a CTranslate2 model: the same weights under other names.

Its arg max is of the logits, like ours: the objective that a model was trained with affects only scores. An
empty source is not shown to the model, whereas ours is translated as </s>.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from creamtea.shipped import MAP
from creamtea_workers.corpora.subwords import BOS, SubwordTexts, TextModel
from creamtea_workers.models.base import Model
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.search.shipped import Names
from creamtea_workers.selection.alignment import LexiconSelector

if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

POSITIONS = 2048  # of sources and of hypotheses that an exported model can read


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
