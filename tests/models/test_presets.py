"""The presets' models have the sizes that their papers' have."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from creamtea_workers.models.build import ModelConfig, build_model
from creamtea_workers.models.transformer import Transformer

VOCABULARY = 32000


def preset(architecture: dict[str, Any], nvs: bool = False) -> Transformer:
    """Without memory for its parameters."""
    params = {
        "objective": {"kind": "softmax"},
        "architecture": architecture,
        "nvs": {"positive_weight": 100000.0} if nvs else None,
        "vocabulary_size": VOCABULARY,
    }
    with torch.device("meta"):
        return build_model(ModelConfig.model_validate(params))


def count(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def by_hand(encoder: int, decoder: int, width: int, inner: int, ssru: bool) -> int:
    """One embedding for source, target and output, with an output bias; a norm before each sublayer and
    after each stack."""
    norm = 2 * width
    attention = 4 * (width * width + width)  # queries, keys, values, output
    feed = width * inner + inner + inner * width + width
    own = 2 * width * width + width if ssru else attention  # forget gate with bias, candidate without
    stacks = encoder * (attention + feed + 2 * norm) + decoder * (own + attention + feed + 3 * norm)
    return VOCABULARY * width + VOCABULARY + stacks + 2 * norm


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("small", (3, 3, 128, 512, False)),
        ("base", (6, 6, 512, 2048, False)),
        ("big", (6, 6, 1024, 4096, False)),
        ("deep", (20, 2, 1024, 4096, True)),
    ],
)
def test_parameters_of_presets(name: str, sizes: tuple[int, int, int, int, bool]) -> None:
    assert count(preset({"preset": name})) == by_hand(*sizes)


def test_the_nvs_head_adds_an_output_layer() -> None:
    added = count(preset({"preset": "deep"}, nvs=True)) - count(preset({"preset": "deep"}))
    assert added == VOCABULARY * 1024 + VOCABULARY


def test_an_ssru_decoder_of_preset_sizes() -> None:
    assert count(preset({"preset": "base", "kind": "ssru"})) == by_hand(6, 6, 512, 2048, True)
