"""The two ways of computing selected logits against slicing sentence by sentence."""

import numpy as np
import pytest
import torch
from toy_models import OBJECTIVES, TableModel

from creamtea_workers.models.inference import Int8Projection
from creamtea_workers.models.interface import EOS
from creamtea_workers.search.output import (
    GatheredInt8,
    GatheredLogits,
    GatheredWeights,
    OutputLayer,
    _pad,
    output_layer,
)

V, D, ROWS = 40, 8, 3
SIZES = [1, 7, 40, 12]


def wide_model() -> TableModel:
    torch.manual_seed(0)
    model = TableModel(V, seed=0)
    model.output_weight, model.output_bias = torch.randn(V, D), torch.randn(V)
    return model


def selection() -> list[torch.Tensor]:
    draw = np.random.default_rng(2)
    rows = [np.union1d([EOS], draw.choice(V, size=n - 1, replace=False)) if n > 1 else [EOS] for n in SIZES]
    return [torch.tensor(np.asarray(row, dtype=np.int64)) for row in rows]


def layers() -> dict[str, OutputLayer]:
    model, padded = wide_model(), _pad(selection(), V)
    return {"weights": GatheredWeights.of(model, *padded), "logits": GatheredLogits(model, *padded)}


@pytest.mark.parametrize("kind", ["weights", "logits"])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kept", [[0, 1, 2, 3], [3, 1]], ids=["all", "some"])
def test_log_scores_are_those_of_the_slice(kind: str, objective: str, kept: list[int]) -> None:
    model, chosen = wide_model(), selection()
    hidden = torch.randn(len(SIZES), ROWS, D)
    layer = layers()[kind].keep(torch.tensor(kept))
    logits = layer.logits(hidden[kept])
    scores = layer.log_scores(OBJECTIVES[objective], logits)
    for row, sentence in enumerate(kept):
        ids = chosen[sentence]
        expected = hidden[sentence] @ model.output_weight[ids].T + model.output_bias[ids]
        torch.testing.assert_close(logits[row, :, : len(ids)], expected)
        expected = OBJECTIVES[objective].log_scores(expected)
        torch.testing.assert_close(scores[row, :, : len(ids)], expected, atol=1e-5, rtol=1e-5)
        assert (scores[row, :, len(ids) :] == -torch.inf).all()
        assert torch.isfinite(logits[row]).all()


def quantised_model() -> TableModel:
    model = wide_model()
    model.projection = Int8Projection(model.output_weight, model.output_bias)
    return model


@pytest.mark.parametrize("kept", [[0, 1, 2, 3], [3, 1], [2]], ids=["all", "some", "one"])
def test_int8_rows_of_a_sentence_are_those_of_the_full_int8_layer(kept: list[int]) -> None:
    model, chosen = quantised_model(), selection()
    hidden = torch.randn(len(SIZES), ROWS, D)
    full = output_layer(model, None).logits(hidden)
    layer = output_layer(model, chosen)
    assert isinstance(layer, GatheredInt8)
    logits = layer.keep(torch.tensor(kept)).logits(hidden[kept])
    scores = layer.keep(torch.tensor(kept)).log_scores(OBJECTIVES["softmax"], logits)
    for row, sentence in enumerate(kept):
        ids = chosen[sentence]
        assert torch.equal(logits[row, :, : len(ids)], full[sentence][:, ids])
        assert (scores[row, :, len(ids) :] == -torch.inf).all()


def test_int8_rows_are_rounded_as_the_full_layer_rounds() -> None:
    """Of many activations some lie so near the middle of two that they could differ."""
    torch.manual_seed(1)
    projection = Int8Projection(torch.randn(5, 256), torch.randn(5))
    hidden = torch.randn(4000, 256)
    assert torch.equal(projection.matrix(hidden), projection(hidden))


def test_int8_selections_too_large_to_gather_come_from_full_int8_logits() -> None:
    model, hidden = quantised_model(), torch.randn(20, 1, D)
    layer = output_layer(model, [torch.arange(V)] * 20)
    assert isinstance(layer, GatheredLogits)
    assert torch.equal(layer.logits(hidden), output_layer(model, None).logits(hidden))


def test_the_end_is_found_among_each_sentences_ids() -> None:
    ends = layers()["weights"].ends(len(SIZES))
    assert [int(ids[end]) for ids, end in zip(selection(), ends.squeeze(1), strict=True)] == [EOS] * 4


def test_a_large_selection_is_computed_from_full_logits() -> None:
    small = [torch.tensor([3, 5])] * 20
    large = [torch.arange(V)] * 20
    assert isinstance(output_layer(wide_model(), small), GatheredWeights)
    assert isinstance(output_layer(wide_model(), large), GatheredLogits)
