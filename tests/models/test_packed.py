"""Packed sentences: the same hidden vectors and gradients as with padding, and the fused kernel."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from creamtea.methods.architectures import TransformerArchitecture
from creamtea_workers.corpora.batches import Batch, PackedBatch, Pairs, rounded_up
from creamtea_workers.models.interface import BOS, EOS, PAD, SourceVocabulary
from creamtea_workers.models.nvs import NvsHead
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.training.trainer import PackedPasses, can_pack, unpacked

CPU = torch.device("cpu")
VOCABULARY = 40
SIZE = {"encoder_layers": 2, "decoder_layers": 2, "width": 16, "heads": 2, "feed_forward": 24, "dropout": 0.0}
PAIRS = Pairs([[5, 6, 7], [8], [9, 10]], [[11], [12, 13, 14, 15], [16, 17, 18]])


def batch_of(pairs: Pairs = PAIRS) -> Batch:
    return pairs.batch(np.arange(len(pairs)))


def transformer(source: SourceVocabulary | None = None) -> Transformer:
    torch.manual_seed(1)
    return Transformer(VOCABULARY, TransformerArchitecture.model_validate(SIZE), source=source).train()


def gradients(model: Transformer) -> dict[str, Tensor]:
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("own_source", [False, True])
def test_vectors_and_gradients_are_those_of_padded_sentences(own_source: bool) -> None:
    model = transformer(SourceVocabulary(size=12, bracketed=0) if own_source else None)
    batch = batch_of()
    hidden, targets = batch.real(model.decode(model.encode(batch.source), batch.target_in))
    slope = torch.randn_like(hidden)
    hidden.backward(slope)
    expected = gradients(model)
    model.zero_grad()

    passes = PackedPasses(model, torch.float32)
    packed = PackedBatch.of(batch, 1, CPU)
    memory, found = passes(packed)
    assert packed.targets.tolist() == targets.tolist()
    torch.testing.assert_close(found, hidden, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(
        unpacked(memory, batch.source).hidden[batch.source != PAD],
        model.encode(batch.source).hidden[batch.source != PAD],
        atol=1e-6,
        rtol=1e-5,
    )
    found.backward(slope)
    passes.collect()
    assert gradients(model).keys() == expected.keys()
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-5, rtol=1e-4, msg=name)


def test_bf16_matrices_are_copies_and_their_gradients_come_back_in_fp32() -> None:
    model = transformer()
    passes = PackedPasses(model, torch.bfloat16)
    assert len(passes.copies) == len(passes.own) == 2 * (4 * 2 + 7 * 2)  # weight and bias of each layer
    (_, hidden), before = passes(PackedBatch.of(batch_of(), 1, CPU)), model.encoder[0].feed.inner.weight
    assert hidden.dtype == torch.bfloat16
    hidden.float().sum().backward()
    assert before.grad is None
    passes.collect()
    assert before.grad.dtype == torch.float32
    assert all(twin.grad is None for twin in passes.copies)
    with torch.no_grad():
        before.fill_(3.0)
    assert not (passes.model.encoder[0].feed.inner.weight == 3).any()
    passes.refresh()
    assert (passes.model.encoder[0].feed.inner.weight == 3).all()
    assert passes.model.embedding.weight is model.embedding.weight


def test_the_head_of_nvs_has_the_votes_of_padded_sentences() -> None:
    model, batch, head = transformer(), batch_of(), NvsHead(VOCABULARY, 16)
    rows, _ = PackedPasses(model, torch.float32)(PackedBatch.of(batch, 1, CPU))
    torch.testing.assert_close(
        head(unpacked(rows, batch.source)), head(model.encode(batch.source)), atol=1e-5, rtol=1e-4
    )


@pytest.mark.parametrize("changes", [{"width": 24, "heads": 4}, {"kind": "ssru"}, {"attention": "entmax"}])
def test_shapes_without_kernels_are_padded(changes: dict[str, Any]) -> None:
    from creamtea_workers.models.model import ModelConfig, build_model

    config = {"objective": {"kind": "softmax"}, "nvs": None, "vocabulary_size": VOCABULARY}
    architecture = {"kind": "transformer", **SIZE, **changes}
    assert not can_pack(build_model(ModelConfig.model_validate({**config, "architecture": architecture})))
    assert can_pack(transformer())


@pytest.mark.parametrize("detach", [True, False])
def test_a_head_that_trains_the_encoder_has_no_packed_passes(detach: bool) -> None:
    model = transformer()
    model.nvs = NvsHead(VOCABULARY, 16, detach)
    assert can_pack(model) == detach


def test_a_packed_batch_holds_every_subword_and_short_padding() -> None:
    random = np.random.default_rng(1)
    lengths = random.integers(1, 100, size=(300, 2))
    pairs = Pairs(*([random.integers(4, 40, n).tolist() for n in lengths[:, side]] for side in (0, 1)))
    packed = PackedBatch.of(batch_of(pairs), 2**64 - 1, CPU)
    for n in range(300):
        source = packed.source[packed.source_starts[n] : packed.source_starts[n + 1]].tolist()
        target = packed.target_in[packed.target_starts[n] : packed.target_starts[n + 1]].tolist()
        assert source == [*pairs.sources[n].tolist(), EOS]
        assert target == [BOS, *pairs.targets[n].tolist()]
    assert packed.targets.tolist() == [id_ for row in pairs.targets for id_ in (*row.tolist(), EOS)]
    sides = (packed.source_starts, packed.source, 16), (packed.target_starts, packed.target_in, 32)
    for starts, ids, parts in sides:
        assert len(starts) == 513
        sizes = starts.diff()
        assert sizes.sum() == len(ids) == rounded_up(int(sizes[:300].sum()) + 128, parts)
        assert 1 <= sizes[300:428].min() <= sizes[300:428].max() <= 16
        assert (sizes[428:] == 0).all()
        assert (ids[int(starts[300]) :] == PAD).all()
    places = torch.cat([torch.arange(int(n)) for n in packed.source_starts.diff()])
    assert packed.places[: len(packed.source)].tolist() == places.tolist()
    assert int(packed.seed) == -1
    assert packed.longest == (128, 128)


@pytest.mark.parametrize("parts", [16, 32])
def test_sizes_are_few(parts: int) -> None:
    for rows in (1000, 16384, 100_000):
        assert rows <= rounded_up(rows, parts) <= rows * (1 + 1 / parts)
        assert len({rounded_up(n, parts) for n in range(rows, 2 * rows, 7)}) <= 2 * parts + 1
