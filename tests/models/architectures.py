"""Small random models of every architecture, with an NVS head and a vocabulary of the source's own."""

from typing import Any

import step_files
import torch

from creamtea_workers.models.interface import Memory
from creamtea_workers.models.model import Model
from creamtea_workers.search.translator import source_batch

VOCABULARY = 12
LAYERS = {"encoder_layers": 2, "decoder_layers": 2, "width": 16, "heads": 4, "feed_forward": 24}
MARIAN = {"norm": "post", "activation": "silu", "positions": "halves", "scale_embeddings": False}
OTHERS = {"activation": "gelu", "positions": "learned", "max_positions": 64, "tied_embeddings": "none"}
RNN = {"kind": "rnn", "layers": 2, "width": 6, "embedding": 5, "language_embedding": 2}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "transformer": LAYERS,
    "marian's": {**LAYERS, **MARIAN},
    "untied": {**LAYERS, **OTHERS},
    "entmax attention": {**LAYERS, "attention": "entmax"},
    "ssru": {**LAYERS, "kind": "ssru"},
    "ssru, post-norm": {**LAYERS, "kind": "ssru", "norm": "post", "tied_embeddings": "target"},
    "ssru, sparsemax attention": {**LAYERS, "kind": "ssru", "attention": "sparsemax"},
    "rnn": {**RNN, "attention": "softmax"},
    "rnn, entmax attention": RNN,
    "rnn, gated": {**RNN, "gated": True},
    "rnn, gated, sparsemax": {**RNN, "gated": True, "attention": "sparsemax", "layers": 1},
}
# ids 4, 5, 6 are a language and two tags; letters begin at 7
SOURCES = [[4, 7, 8, 9, 5, 6], [4, 10], [4, 8, 8, 8, 8, 8, 6], []]
SOURCE = {"size": 11, "bracketed": 3}


def random_model(architecture: dict[str, Any], **params: Any) -> Model:
    parts = {"nvs": {}, "source_vocabulary": SOURCE, "objective": {"kind": "entmax"}, **params}
    model = step_files.random_model(VOCABULARY, 4, architecture=architecture, **parts)
    if architecture.get("kind") == "rnn":
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(2.0)  # so that attention is not nearly even
    return model


def encoded(model: Model, sources: list[list[int]] = SOURCES) -> Memory:
    return model.encode(source_batch(sources, torch.device("cpu")))
