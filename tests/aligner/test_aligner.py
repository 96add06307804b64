"""The aligner against Dyer et al.'s equations in plain loops."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from creamtea_workers.selection import aligner
from creamtea_workers.selection.aligner import Aligner, train_aligner

V = 6
Sentences = list[list[int]]
Table = dict[tuple[int, int], float]  # (source or V for NULL, target) -> t

sentence = st.lists(st.integers(0, V - 1), min_size=1, max_size=5)
pairs = st.lists(st.tuples(sentence, sentence), min_size=1, max_size=8)


def delta(tension: float, i: int, j: int, m: int, n: int) -> float:
    """δ(a_i = j | i, m, n) over the source positions."""
    scores = [math.exp(-tension * abs(i / m - k / n)) for k in range(1, n + 1)]
    return scores[j - 1] / sum(scores)


def posteriors(
    f: Sequence[int], e: Sequence[int], table: Table, tension: float
) -> tuple[list[list[float]], float]:
    """For each target position, the posterior of NULL and of every source position; the log-likelihood."""
    m, n, p0 = len(e), len(f), 0.08
    rows, total = [], 0.0
    for i, word in enumerate(e, start=1):
        joint = [p0 * table[V, word]]
        joint += [(1 - p0) * delta(tension, i, j, m, n) * table[f[j - 1], word] for j in range(1, n + 1)]
        rows.append([p / sum(joint) for p in joint])
        total += math.log(sum(joint))
    return rows, total


def slow_em(sources: Sentences, targets: Sentences, iterations: int) -> tuple[Table, float, list[float]]:
    table: Table = {(f, e): 1 / V for f in range(V + 1) for e in range(V)}
    tension, history = 4.0, []
    for _ in range(iterations):
        counts: Table = defaultdict(float)
        likelihood, cells = 0.0, []
        for f, e in zip(sources, targets, strict=True):
            rows, value = posteriors(f, e, table, tension)
            likelihood += value
            for i, row in enumerate(rows, start=1):
                counts[V, e[i - 1]] += row[0]
                for j, posterior in enumerate(row[1:], start=1):
                    counts[f[j - 1], e[i - 1]] += posterior
                    cells.append((posterior, i, j, len(e), len(f)))
        history.append(likelihood / sum(len(e) for e in targets))
        sums: dict[int, float] = defaultdict(float)
        for (f_id, _), count in counts.items():
            sums[f_id] += count
        table = {key: count / sums[key[0]] for key, count in counts.items()}
        tension = minimize_scalar(
            lambda x, cells=cells: -sum(p * math.log(delta(x, i, j, m, n)) for p, i, j, m, n in cells),
            bounds=(0, 50),
            method="bounded",
            options={"xatol": 1e-9},
        ).x
    return table, tension, history


def as_table(result: Aligner) -> Table:
    keys = zip(result.table.source.tolist(), result.table.target.tolist(), strict=True)
    return dict(zip(keys, result.table.probability.tolist(), strict=True))


CORPUS = [
    ([0, 1, 2], [3, 4, 5]),
    ([1, 0], [4, 3]),
    ([2, 2, 0, 1], [5, 3, 4]),
    ([1], [4, 4]),
    ([0, 2], [3, 5]),
    ([2, 1, 0], [4, 5]),
    ([0, 1, 2], [5, 4, 3]),
]


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_em_is_that_of_the_plain_loops(iterations: int) -> None:
    sources, targets = [f for f, _ in CORPUS], [e for _, e in CORPUS]
    table, tension, history = slow_em(sources, targets, iterations)
    result = train_aligner(sources, targets, V, iterations)
    assert as_table(result) == pytest.approx(table, rel=1e-4, abs=1e-9)
    assert result.tension == pytest.approx(tension, rel=1e-4)
    assert result.log_likelihoods == pytest.approx(history, rel=1e-6)


@settings(deadline=None, max_examples=40)
@given(corpus=pairs)
def test_the_likelihood_never_falls(corpus: list[tuple[list[int], list[int]]]) -> None:
    result = train_aligner([f for f, _ in corpus], [e for _, e in corpus], V, 6)
    assert (np.diff(result.log_likelihoods) >= -1e-9).all()


@settings(deadline=None, max_examples=40)
@given(corpus=pairs)
def test_every_row_is_a_distribution(corpus: list[tuple[list[int], list[int]]]) -> None:
    table = train_aligner([f for f, _ in corpus], [e for _, e in corpus], V, 3).table
    sums = np.bincount(table.source, weights=table.probability, minlength=V + 1)
    assert sums[np.unique(table.source)] == pytest.approx(1.0)
    assert set(table.source.tolist()) == {f for source, _ in corpus for f in source} | {V}


@pytest.mark.parametrize("cells, buffer", [(1, 1), (8, 20), (1 << 20, 30)])
def test_the_size_of_the_parts_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, cells: int, buffer: int
) -> None:
    sources, targets = [f for f, _ in CORPUS] * 3, [e for _, e in CORPUS] * 3
    whole = train_aligner(sources, targets, V, 4)
    monkeypatch.setattr(aligner, "_CELLS", cells)
    monkeypatch.setattr(aligner, "_BUFFER", buffer)
    parts = train_aligner(sources, targets, V, 4)
    assert as_table(parts) == pytest.approx(as_table(whole), rel=1e-8)
    assert parts.tension == pytest.approx(whole.tension, rel=1e-6)


def test_a_dictionary_is_found_again() -> None:
    """Words 0 … 9 translate to 10 … 19, in an order that is mostly the source's."""
    rng = np.random.default_rng(1)
    sources = [rng.choice(10, size=rng.integers(3, 8)).tolist() for _ in range(300)]
    targets = [[word + 10 for word in source] for source in sources]
    for target in targets[::3]:
        target[0], target[1] = target[1], target[0]
    table = train_aligner(sources, targets, 20, 5).table
    for word in range(10):
        row = table.source == word
        assert table.target[row][table.probability[row].argmax()] == word + 10
        assert table.probability[row].max() > 0.95


def test_pairs_with_an_empty_side_say_nothing() -> None:
    plain = train_aligner([[0, 1]], [[2]], V, 2)
    mixed = train_aligner([[0, 1], [], [3]], [[2], [4], []], V, 2)
    assert as_table(mixed) == as_table(plain)


def test_nothing_to_align_is_an_error() -> None:
    with pytest.raises(ValueError, match="no pair to align"):
        train_aligner([[]], [[1]], V, 1)


def test_every_iteration_is_reported() -> None:
    reports: list[tuple[int, float]] = []
    result = train_aligner([[0, 1]], [[2, 3]], V, 3, lambda *report: reports.append(report))
    assert reports == list(enumerate(result.log_likelihoods, start=1))


def test_sources_of_one_subword_leave_the_tension_alone() -> None:
    assert train_aligner([[0], [1]], [[2, 3], [4]], V, 3).tension == 4.0
