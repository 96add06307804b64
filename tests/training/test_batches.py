"""Batches: every pair once an epoch, within the bound, the same for the same seed."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from creamtea_workers.corpora.batches import Batch, Pairs, plan_epoch, plan_in_order
from creamtea_workers.models.interface import BOS, EOS, PAD

lengths = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=60)


def pairs_of(sizes: list[tuple[int, int]], max_tokens: int | None = None) -> Pairs:
    return Pairs([[5] * s for s, _ in sizes], [[6] * t for _, t in sizes], max_tokens)


@settings(deadline=None)
@given(lengths, st.integers(1, 60), st.integers(0, 3), st.integers(0, 3))
def test_every_pair_once_and_within_the_bound(
    sizes: list[tuple[int, int]], batch_tokens: int, seed: int, epoch: int
) -> None:
    pairs = pairs_of(sizes)
    for plan in (plan_epoch(pairs, batch_tokens, seed, epoch), plan_in_order(pairs, batch_tokens)):
        assert sorted(np.concatenate(plan)) == list(range(len(sizes)))
        for members in plan:
            rows, longest = pairs.batch(members).target.shape
            assert rows * longest <= batch_tokens or rows == 1


@given(lengths, st.integers(1, 60))
def test_the_order_follows_from_seed_and_epoch(sizes: list[tuple[int, int]], batch_tokens: int) -> None:
    pairs = pairs_of(sizes)

    def order(seed: int, epoch: int) -> list[list[int]]:
        return [members.tolist() for members in plan_epoch(pairs, batch_tokens, seed, epoch)]

    assert order(3, 7) == order(3, 7)


def test_seeds_and_epochs_differ() -> None:
    pairs = pairs_of([(n % 7, n % 5) for n in range(200)])
    orders = {str(plan_epoch(pairs, 30, seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}
    assert len(orders) == 4


def test_little_is_padding() -> None:
    random = np.random.default_rng(1)
    pairs = pairs_of([(int(n), int(n)) for n in random.integers(1, 40, 5000)])
    plan = plan_epoch(pairs, 500, 1, 0)
    padded = sum(len(members) * pairs.target_lengths[members].max() for members in plan)
    assert pairs.target_lengths.sum() / padded > 0.95


def test_pairs_with_a_side_too_long_are_left_out_and_counted() -> None:
    pairs = pairs_of([(3, 3), (4, 1), (1, 4), (0, 0)], max_tokens=3)
    assert pairs.left_out == 2
    assert pairs.source_lengths.tolist() == [4, 1]


def test_what_the_decoder_reads_and_emits() -> None:
    pairs = Pairs([[5, 6], [7]], [[8], [9, 10, 11]])
    batch = pairs.batch(np.array([0, 1]))
    assert batch.source.tolist() == [[5, 6, EOS], [7, EOS, PAD]]
    assert batch.target.tolist() == [[8, EOS, PAD, PAD], [9, 10, 11, EOS]]
    assert batch.target_in.tolist() == [[BOS, 8, EOS, PAD], [BOS, 9, 10, 11]]
    assert batch.target_tokens == 6


@given(lengths)
def test_real_positions_are_those_without_padding(sizes: list[tuple[int, int]]) -> None:
    pairs = pairs_of(sizes)
    batch = Batch.of(pairs.sources, pairs.targets)
    hidden = torch.randn(*batch.target.shape, 3)
    rows, targets = batch.real(hidden)
    mask = batch.target != PAD
    assert torch.equal(rows, hidden[mask])
    assert torch.equal(targets, batch.target[mask])
