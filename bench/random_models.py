"""Models, lexica and sentences of random numbers, on which searches do as much work as on real ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from creamtea_workers.models.interface import EOS
from creamtea_workers.models.model import ModelConfig, build_model
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.search.translator import source_batch
from creamtea_workers.selection.aligner import Lexicon

LENGTHS = (8, 12, 16, 20, 24, 25, 26, 30, 34, 40)  # source subwords


def random_model(vocabulary: int, architecture: dict[str, Any]) -> Transformer:
    """</s> is out of reach. Sublayers weigh more than in a fresh model: subwords would predict themselves."""
    torch.manual_seed(1)
    parts = {"architecture": architecture, "nvs": {}, "objective": {"kind": "softmax"}}
    model = build_model(ModelConfig.model_validate({**parts, "vocabulary_size": vocabulary})).eval()
    with torch.no_grad():
        model.output_bias[EOS] = -1000.0
        for name, weight in model.named_parameters():
            if name.endswith("out.weight"):
                weight.mul_(4.0)
    return model


def random_lexicon(vocabulary: int, k: int) -> Lexicon:
    """`k` targets for each source subword."""
    draw = np.random.default_rng(3)
    targets = draw.integers(4, vocabulary, size=vocabulary * k, dtype=np.int32)
    starts = np.arange(0, vocabulary * k + 1, k)
    return Lexicon(starts, targets, np.full(len(targets), 1 / k, dtype=np.float32))


def random_sentences(vocabulary: int) -> list[list[int]]:
    draw = np.random.default_rng(2)
    return [draw.integers(4, vocabulary, size=length).tolist() for length in LENGTHS]


@torch.inference_mode()
def threshold_for(model: Transformer, sentences: Sequence[list[int]], size: int) -> float:
    """The probability above which the head has `size` subwords per sentence, on average. It lies between the
    logits of two subwords: on one of them, rounding would decide whether that subword is selected."""
    logits = [model.nvs_logits(model.encode(source_batch([s], torch.device("cpu"))))[0] for s in sentences]
    *_, last, next_ = torch.cat(logits).topk(size * len(sentences) + 1).values.double().tolist()
    return float(torch.sigmoid(torch.tensor((last + next_) / 2, dtype=torch.float64)))
