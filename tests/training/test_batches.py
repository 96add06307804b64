"""Batches: every pair once an epoch, within the bound, the same for the same seed."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from creamtea_workers.corpora.batches import (
    ATTENDED,
    Pairs,
    cut,
    order_by_length,
    parts,
    plan_epoch,
    plan_in_order,
)
from creamtea_workers.corpora.tokens import Rows, RowWriter
from creamtea_workers.models.interface import BOS, EOS, PAD
from creamtea_workers.objectives.base import unigram_frequencies

lengths = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=60)


def pairs_of(sizes: list[tuple[int, int]], max_tokens: int | None = None) -> Pairs:
    return Pairs([[5] * s for s, _ in sizes], [[6] * t for _, t in sizes], max_tokens)


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


def test_the_order_follows_from_seed_and_epoch() -> None:
    pairs = pairs_of([(n % 7, n % 5) for n in range(200)])
    twice = [
        [str(plan_epoch(pairs, 30, seed, epoch)) for seed in (1, 2) for epoch in (0, 1)] for _ in range(2)
    ]
    assert twice[0] == twice[1]
    assert len(set(twice[0])) == 4


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
    assert len(batch.positions) == 6


@given(lengths)
def test_real_positions_are_those_without_padding(sizes: list[tuple[int, int]]) -> None:
    pairs = pairs_of(sizes)
    batch = pairs.batch(np.arange(len(sizes)))
    hidden = torch.randn(*batch.target.shape, 3)
    rows, targets = batch.real(hidden)
    mask = batch.target != PAD
    assert torch.equal(rows, hidden[mask])
    assert torch.equal(targets, batch.target[mask])


# ---------------------------------------------------------------- the same as pair by pair


def slow_batch(rows: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, rows)) + 1
    return torch.tensor([[*row, EOS] + [PAD] * (longest - len(row) - 1) for row in rows])


def slow_cut(lengths: list[int], batch_tokens: int) -> list[int]:
    cuts = [0]
    for position, length in enumerate(lengths):
        if position > cuts[-1] and (position + 1 - cuts[-1]) * length > batch_tokens:
            cuts.append(position)
    return [*cuts, len(lengths)] if lengths else cuts


@given(st.lists(st.integers(1, 30) | st.integers(1, 3), max_size=80), st.integers(1, 60))
def test_cuts_are_those_of_the_loop_over_pairs(lengths: list[int], batch_tokens: int) -> None:
    ascending = np.array(sorted(lengths), dtype=np.int64)
    assert cut(ascending, batch_tokens) == slow_cut(ascending.tolist(), batch_tokens)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20000)), max_size=50))
def test_the_order_is_lexsorts(rows: list[tuple[int, int]]) -> None:
    first, second = (np.array([row[side] for row in rows], dtype=np.int64) for side in (0, 1))
    assert order_by_length(first, second).tolist() == np.lexsort((second, first)).tolist()


id_rows = st.lists(st.lists(st.integers(4, 70000), max_size=6), min_size=1, max_size=12)


@pytest.mark.slow
@given(id_rows, st.data())
def test_batches_of_mapped_pairs_are_those_of_lists(
    tmp_path_factory: pytest.TempPathFactory, sources: list[list[int]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("encoded")
    size = st.lists(st.integers(4, 70000), max_size=6)
    targets = data.draw(st.lists(size, min_size=len(sources), max_size=len(sources)))
    max_tokens = data.draw(st.none() | st.integers(0, 6))
    for name, rows in (("train.src", sources), ("train.tgt", targets)):
        writer = RowWriter(folder, name, 70001)
        half = len(rows) // 2
        writer.write(rows[:half])
        writer.write(rows[half:])
        writer.close()
    kept = [
        pair
        for pair in zip(sources, targets, strict=True)
        if max_tokens is None or max(map(len, pair)) <= max_tokens
    ]
    for pairs in (Pairs.load(folder, "train", max_tokens), Pairs(sources, targets, max_tokens)):
        assert (len(pairs), pairs.left_out) == (len(kept), len(sources) - len(kept))
        assert [row.tolist() for row in pairs.targets] == [target for _, target in kept]
        assert pairs.source_lengths.tolist() == [len(source) + 1 for source, _ in kept]
        counts = np.bincount([id_ for _, target in kept for id_ in [*target, EOS]], minlength=70001)
        if kept:
            assert unigram_frequencies(pairs.targets, 70001).tolist() == (counts / counts.sum()).tolist()
            members = data.draw(st.lists(st.integers(0, len(kept) - 1), min_size=1, max_size=5))
            batch = pairs.batch(np.array(members))
            assert batch.source.tolist() == slow_batch([kept[n][0] for n in members]).tolist()
            assert batch.target.tolist() == slow_batch([kept[n][1] for n in members]).tolist()
            assert batch.source.dtype == torch.int64


@pytest.mark.parametrize(("size", "dtype"), [(1 << 16, np.uint16), (1 + (1 << 16), np.uint32)])
def test_tokens_take_as_few_bits_as_the_vocabulary_allows(tmp_path: Path, size: int, dtype: type) -> None:
    writer = RowWriter(tmp_path, "dev.src", size)
    writer.write([[size - 1]])
    writer.close()
    rows = Rows.load(tmp_path, "dev", "src")
    assert rows.tokens.dtype == dtype
    assert rows[0].tolist() == [size - 1]


@given(id_rows, st.integers(4, 6))
def test_rows_without_a_token(rows: list[list[int]], token: int) -> None:
    left = Rows.of(rows).without(token)
    assert [row.tolist() for row in left] == [[id_ for id_ in row if id_ != token] for row in rows]


def test_sides_of_different_lengths_are_no_pairs() -> None:
    with pytest.raises(ValueError, match="2 sources and 1 targets"):
        Pairs([[4], [5]], [[6]])


@given(st.lists(st.integers(0, 9000), max_size=40), st.integers(1, 16), st.booleans())
def test_parts_hold_every_sentence_once_and_few_beside_a_long_one(
    lengths: list[int], most: int, longest_first: bool
) -> None:
    order = sorted(range(len(lengths)), key=lambda n: lengths[n], reverse=longest_first)
    batches = list(parts(order, lengths, most))
    assert [n for batch in batches for n in batch] == order
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[n] for n in batch) ** 2 <= ATTENDED
        assert len(batch) <= most
    if max(lengths, default=0) <= 1024:  # usual text: `most` alone decides
        assert batches == [order[start : start + most] for start in range(0, len(order), most)]


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 16))
def test_parts_that_may_not_be_padded_are_of_one_length(lengths: list[int], most: int) -> None:
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    batches = list(parts(order, lengths, most, may_pad=False))
    assert [n for batch in batches for n in batch] == order
    assert all(len({lengths[n] for n in batch}) == 1 and len(batch) <= most for batch in batches)
    assert len(batches) == sum(-(-lengths.count(length) // most) for length in set(lengths))


def test_a_very_long_source_is_evaluated_by_itself() -> None:
    """Development text has no longest line; target positions alone would put it beside short ones."""
    sources = [[4] * length for length in (10, 10, 9000, 10)]
    plan = plan_in_order(Pairs(sources, [[4] * 10] * 4), 4096)
    assert sorted(map(sorted, (batch.tolist() for batch in plan))) == [[0, 1, 3], [2]]
