"""Convert a model in MarianMT or Marian format to ours: the same numbers under other names.

Marian's decoder begins with its pad, whose embedding becomes the row of our bos. Our pad and bos cannot be
produced: their logits are `NEVER`. Marian itself has no pad among its outputs. The transformers library has
one and forbids it only after the softmax, so that its log-probabilities are lower by the pad's share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import torch
from safetensors import safe_open
from torch import Tensor

from creamtea.errors import StepError
from creamtea.marian import BIAS, WEIGHTS, MarianFolder, embedding_names, order
from creamtea.marian_files import load_array
from creamtea.methods.objectives import Softmax
from creamtea_workers.corpora.subwords import MarianSubwords
from creamtea_workers.models.interface import BOS, PAD, SourceVocabulary
from creamtea_workers.models.model import Model, ModelConfig, build_model

NEVER = -1e4  # a logit that has no mass under any objective; finite in fp16
Read = Callable[[str], Tensor]


def load_marian(marian: MarianFolder) -> tuple[Model, ModelConfig, MarianSubwords]:
    """Load the model in fp32, in eval mode, with its subwords."""
    ids = [None if marian.source is None else order(marian.source), order(marian.target, marian.start)]
    pieces = [
        None if own is None or names is None else [names[id_] for id_ in own]
        for own, names in zip(ids, (marian.source, marian.target), strict=True)
    ]
    assert pieces[1] is not None
    models = [(marian.folder / name).read_bytes() for name in marian.spm]
    subwords = MarianSubwords(models, pieces[0], pieces[1])
    source = None if pieces[0] is None else SourceVocabulary(size=len(pieces[0]), bracketed=0)
    config = ModelConfig(
        objective=Softmax(kind="softmax"),
        architecture=marian.architecture,
        nvs=None,
        vocabulary_size=len(pieces[1]),
        source_vocabulary=source,
    )
    model = build_model(config)
    with ExitStack() as stack:
        path = marian.folder / marian.file
        file = stack.enter_context(safe_open(path, framework="pt")) if path.name == WEIGHTS else None

        def read(name: str) -> Tensor:
            weight = torch.from_numpy(load_array(path, name)) if file is None else file.get_tensor(name)
            return weight.float()

        state = dict(_weights(marian, read))
        tables = [torch.tensor(own if own is not None else ids[1]) for own in ids]
        state |= dict(_embeddings(marian, read, tables[0], tables[1]))
    model.load_state_dict(state)
    return model.eval(), config, subwords


def _weights(marian: MarianFolder, read: Read) -> Iterator[tuple[str, Tensor]]:
    size = marian.architecture
    for side, layers in (("encoder", size.encoder_layers), ("decoder", size.decoder_layers)):
        for layer in range(layers):
            theirs, ours = f"model.{side}.layers.{layer}", f"{side}.{layer}"
            parts = {
                "attention.qkv": [f"self_attn.{part}_proj" for part in "qkv"],
                "attention.out": ["self_attn.out_proj"],
                "attention_norm": ["self_attn_layer_norm"],
                "feed.inner": ["fc1"],
                "feed.out": ["fc2"],
                "feed_norm": ["final_layer_norm"],
            }
            if side == "decoder":
                parts |= {
                    "cross.query": ["encoder_attn.q_proj"],
                    "cross.kv": [f"encoder_attn.{part}_proj" for part in "kv"],
                    "cross.out": ["encoder_attn.out_proj"],
                    "cross_norm": ["encoder_attn_layer_norm"],
                }
            if side == "decoder" and size.recurrent:
                del parts["attention.qkv"], parts["attention.out"]
                parts |= {"attention.forget": ["ssru.forget"], "attention_norm": ["ssru_layer_norm"]}
                yield f"{ours}.attention.candidate.weight", read(f"{theirs}.ssru.candidate.weight")
            for own, names in parts.items():
                for kind in ("weight", "bias"):
                    yield (
                        f"{ours}.{own}.{kind}",
                        torch.cat([read(f"{theirs}.{name}.{kind}") for name in names]),
                    )


def _embeddings(
    marian: MarianFolder, read: Read, source: Tensor, target: Tensor
) -> Iterator[tuple[str, Tensor]]:
    """Yield the embeddings. `source`, `target`: Marian's id of each of our ids.

    Raises StepError if two copies of a matrix differ.
    """
    matrices = []
    for names in embedding_names(marian.architecture):
        first, *others = [name for name in names if name in marian.weights]
        for other in others:
            if not torch.equal(read(first), read(other)):
                raise StepError(f"{first} and {other} differ, which config.json says are one matrix")
        matrices.append(read(first))
    if len(matrices) == 1:
        yield "embedding.weight", matrices[0][target]
    else:
        yield "source_embedding.weight", matrices[0][source]
        yield "embedding.weight", matrices[1][target]
    if len(matrices) == 3:
        yield "output_embedding.weight", matrices[2][target]
    bias = read(BIAS)[0][target]
    bias[[PAD, BOS]] = NEVER
    yield "output_bias", bias
