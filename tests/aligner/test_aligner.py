"""The aligner against Dyer et al.'s equations in plain loops, and the lexicon by plain sorting."""

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from creamtea_workers.corpora.tokens import Shard
from creamtea_workers.selection import aligner
from creamtea_workers.selection.aligner import (
    NULL,
    NULL_PROBABILITY,
    Aligner,
    Ids,
    Lexicon,
    TranslationTable,
    diagonal_prior,
    train_aligner,
    viterbi,
)

V = 6
Sentences = list[list[int]]
Table = dict[tuple[int, int], float]  # (source or V for NULL, target) -> t

sentence = st.lists(st.integers(0, V - 1), min_size=1, max_size=5)
pairs = st.lists(st.tuples(sentence, sentence), min_size=1, max_size=8)


def shards_of(sources: Sequence[list[int]], targets: Sequence[list[int]], size: int = 10**9) -> list[Shard]:
    return [
        Shard.of(sources[first : first + size], targets[first : first + size])
        for first in range(0, len(sources), size)
    ]


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
    result = train_aligner(shards_of(sources, targets), V, iterations)
    assert as_table(result) == pytest.approx(table, rel=1e-4, abs=1e-9)
    assert result.tension == pytest.approx(tension, rel=1e-4)
    assert result.log_likelihoods == pytest.approx(history, rel=1e-6)


@given(corpus=pairs)
def test_the_likelihood_never_falls(corpus: list[tuple[list[int], list[int]]]) -> None:
    result = train_aligner(shards_of(*zip(*corpus, strict=True)), V, 6)
    assert (np.diff(result.log_likelihoods) >= -1e-9).all()


@given(corpus=pairs)
def test_every_row_is_a_distribution(corpus: list[tuple[list[int], list[int]]]) -> None:
    table = train_aligner(shards_of(*zip(*corpus, strict=True)), V, 3).table
    sums = np.bincount(table.source, weights=table.probability, minlength=V + 1)
    assert sums[np.unique(table.source)] == pytest.approx(1.0)
    assert set(table.source.tolist()) == {f for source, _ in corpus for f in source} | {V}


@pytest.mark.parametrize("cells, buffer", [(1, 1), (8, 20), (1 << 20, 30)])
def test_the_size_of_the_parts_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, cells: int, buffer: int
) -> None:
    sources, targets = [f for f, _ in CORPUS] * 3, [e for _, e in CORPUS] * 3
    whole = train_aligner(shards_of(sources, targets), V, 4)
    monkeypatch.setattr(aligner, "CELLS", cells)
    monkeypatch.setattr(aligner, "_BLOCK", buffer)
    monkeypatch.setattr(aligner, "_ENTRIES", cells)
    monkeypatch.setattr(aligner, "_UNIT", buffer)
    parts = train_aligner(shards_of(sources, targets), V, 4)
    assert as_table(parts) == pytest.approx(as_table(whole), rel=1e-8)
    assert parts.tension == pytest.approx(whole.tension, rel=1e-6)


def test_a_dictionary_is_found_again() -> None:
    """Words 0 … 9 translate to 10 … 19, in an order that is mostly the source's."""
    rng = np.random.default_rng(1)
    sources = [rng.choice(10, size=rng.integers(3, 8)).tolist() for _ in range(300)]
    targets = [[word + 10 for word in source] for source in sources]
    for target in targets[::3]:
        target[0], target[1] = target[1], target[0]
    table = train_aligner(shards_of(sources, targets), 20, 5).table
    for word in range(10):
        row = table.source == word
        assert table.target[row][table.probability[row].argmax()] == word + 10
        assert table.probability[row].max() > 0.95


def test_pairs_with_an_empty_side_say_nothing() -> None:
    plain = train_aligner(shards_of([[0, 1]], [[2]]), V, 2)
    mixed = train_aligner(shards_of([[0, 1], [], [3]], [[2], [4], []]), V, 2)
    assert as_table(mixed) == as_table(plain)


def test_nothing_to_align_is_an_error() -> None:
    with pytest.raises(ValueError, match="no pair to align"):
        train_aligner(shards_of([[]], [[1]]), V, 1)


def test_every_iteration_is_reported() -> None:
    reports: list[tuple[int, float]] = []
    result = train_aligner(shards_of([[0, 1]], [[2, 3]]), V, 3, lambda *report: reports.append(report))
    assert reports == list(enumerate(result.log_likelihoods, start=1))


def test_sources_of_one_subword_leave_the_tension_alone() -> None:
    assert train_aligner(shards_of([[0], [1]], [[2, 3], [4]]), V, 3).tension == 4.0


# ---------------------------------------------------------------- shards


def whole_corpus_em(sources: Sentences, targets: Sentences, size: int, iterations: int) -> Aligner:
    """With every cell of the corpus in memory, as a place in the table that np.unique gives; sums in the
    order of the shapes."""
    pairs = [(f, e) for f, e in zip(sources, targets, strict=True) if f and e]
    groups = []
    for shape in sorted({(len(e), len(f)) for f, e in pairs}):
        alike = [pair for pair in pairs if (len(pair[1]), len(pair[0])) == shape]
        groups.append(tuple(np.array([pair[side] for pair in alike]) for side in (0, 1)))
    cells = [
        np.concatenate([(f[:, None, :] * size + e[:, :, None]).ravel(), (size * size + e).ravel()])
        for f, e in groups
    ]
    keys, places = np.unique(np.concatenate(cells), return_inverse=True)
    probability, tension, history = np.full(len(keys), 1 / size), 4.0, []
    tokens = sum(e.size for _, e in groups)
    for _ in range(iterations):
        values, start, weights = probability[places], 0, {}
        likelihood = feature = 0.0
        for f, e in groups:
            (count, m), n = e.shape, f.shape[1]
            middle, end = start + count * m * n, start + count * m * (n + 1)
            aligned, null = values[start:middle].reshape(count, m, n), values[middle:end].reshape(count, m)
            aligned *= (1 - aligner.NULL_PROBABILITY) * aligner.diagonal_prior(m, n, tension)
            null *= aligner.NULL_PROBABILITY
            total = aligned.sum(axis=2) + null
            aligned /= total[:, :, None]
            null /= total
            mass = aligned.sum(axis=0)
            likelihood += float(np.log(total).sum())
            feature += float((mass * aligner.diagonal_feature(m, n)).sum())
            weights[m, n] = mass.sum(axis=1)
            start = end
        counts = np.bincount(places, weights=values)
        probability = counts / np.bincount(keys // size, weights=counts)[keys // size]
        expected = aligner._Expected(counts, likelihood, feature, weights, tokens)
        tension = aligner._best_tension(expected, tension)
        history.append(likelihood / tokens)
    table = aligner.TranslationTable(keys // size, keys % size, probability, size)
    return Aligner(table, tension, history)


def random_corpus(pairs: int, size: int) -> tuple[Sentences, Sentences]:
    rng = np.random.default_rng(3)
    words = rng.zipf(1.3, size=(pairs, 2, 9)) % size
    lengths = rng.integers(0, 10, size=(pairs, 2))
    return tuple([words[n, side, : lengths[n, side]].tolist() for n in range(pairs)] for side in (0, 1))


def test_the_table_is_exactly_that_of_the_whole_corpus_in_memory() -> None:
    sources, targets = random_corpus(400, 200)
    expected = whole_corpus_em(sources, targets, 200, 3)
    for threads in (1, 3):
        found = train_aligner(shards_of(sources, targets), 200, 3, threads=threads)
        assert found.table.keys.tolist() == expected.table.keys.tolist()
        assert found.table.probability.tolist() == expected.table.probability.tolist()
        assert (found.tension, found.log_likelihoods) == (expected.tension, expected.log_likelihoods)


def test_shards_and_threads_change_only_roundings(monkeypatch: pytest.MonkeyPatch) -> None:
    sources, targets = random_corpus(400, 200)
    whole = train_aligner(shards_of(sources, targets), 200, 4)
    monkeypatch.setattr(aligner, "_UNIT", 500)
    shards = shards_of(sources, targets, 37)
    parts = [train_aligner(shards, 200, 4, threads=threads) for threads in (1, 2)]
    assert parts[0].table.probability.tolist() == parts[1].table.probability.tolist()
    assert parts[0].table.keys.tolist() == whole.table.keys.tolist()
    assert parts[0].table.probability == pytest.approx(whole.table.probability, abs=1e-9)
    lexicons = [Lexicon.build(result.table, 20) for result in (whole, parts[0])]
    for source in range(200):
        rows = [lexicon.select([source], 5).tolist() for lexicon in lexicons]
        assert rows[0] == rows[1]


def test_pairs_too_long_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aligner, "MAX_CELLS", 4)
    plain = train_aligner(shards_of([[0, 1]], [[2, 3]]), V, 2)
    mixed = train_aligner(shards_of([[0, 1], [0, 1, 2]], [[2, 3], [4, 5]]), V, 2)
    assert as_table(mixed) == as_table(plain)
    assert (plain.left_out, mixed.left_out) == (0, 1)


# ---------------------------------------------------------------- the best alignment


SIZE = 6


def aligned(aligner: Aligner, sources: list[list[int]], targets: list[list[int]]) -> list[Ids]:
    return viterbi(aligner, Shard.of(sources, targets))


sentences = st.lists(st.integers(0, SIZE - 1), min_size=0, max_size=5)


def table_of(probabilities: dict[tuple[int, int], float], size: int = SIZE) -> TranslationTable:
    keys = sorted(probabilities)
    sources, targets = (np.array([key[side] for key in keys]) for side in (0, 1))
    return TranslationTable(sources, targets, np.array([probabilities[key] for key in keys]), size)


def slow(aligner: Aligner, source: list[int], target: list[int]) -> list[int]:
    """One word after the other, every origin tried."""
    table = aligner.table
    t = dict(
        zip(zip(table.source.tolist(), table.target.tolist(), strict=True), table.probability, strict=True)
    )
    best = []
    for i, word in enumerate(target):
        scores = {NULL: NULL_PROBABILITY * t.get((SIZE, word), 0.0)}
        for j, x in enumerate(source):
            prior = diagonal_prior(len(target), len(source), aligner.tension)[i, j]
            scores[j] = (1 - NULL_PROBABILITY) * prior * t.get((x, word), 0.0)
        best.append(
            max(scores, key=lambda j: (scores[j], j != NULL and scores[j] > 0, -j)) if source else NULL
        )
    return best


@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=6), sentences, sentences)
def test_it_is_the_best_of_every_word(
    pairs: list[tuple[list[int], list[int]]], source: list[int], target: list[int]
) -> None:
    """On the pairs of the training and on one whose words need not have met in it."""
    sources, targets = [[*s, 0] for s, _ in pairs], [[*t, 1] for _, t in pairs]
    aligner = train_aligner([Shard.of(sources, targets)], SIZE, 2)
    sources, targets = [*sources, source], [*targets, target]
    found = [row.tolist() for row in aligned(aligner, sources, targets)]
    assert found == [slow(aligner, s, t) for s, t in zip(sources, targets, strict=True)]


def test_words_go_to_their_translations_and_what_has_none_to_null() -> None:
    table = table_of({(1, 3): 1.0, (2, 4): 1.0, (SIZE, 5): 1.0})
    (found,) = aligned(Aligner(table, 1.0, []), [[1, 2]], [[4, 5, 3, 0]])
    assert found.tolist() == [1, NULL, 0, NULL]


def test_of_equal_words_the_diagonal_decides() -> None:
    table = table_of({(1, 3): 1.0})
    (found,) = aligned(Aligner(table, 4.0, []), [[1, 1, 1]], [[3, 3, 3]])
    assert found.tolist() == [0, 1, 2]


def test_a_pair_without_a_source_is_nulls() -> None:
    found = aligned(Aligner(table_of({(1, 3): 1.0}), 1.0, []), [[], [1]], [[3, 3], []])
    assert [row.tolist() for row in found] == [[NULL, NULL], []]


# ---------------------------------------------------------------- the lexicon


WORDS = 12
EOS = 3


# no mass (6, 7) and NULL (WORDS) are not stored
ENTRIES = {(5, 10): 0.2, (5, 9): 0.2, (5, 8): 0.6, (6, 4): 0.999, (6, 7): 1e-12, (WORDS, 11): 1.0}
TABLE = table_of(ENTRIES, WORDS)


def test_no_candidates_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="k must be 1 or more"):
        Lexicon.build(TABLE, max_k=10).select([5], k=0)


def test_a_lexicon_survives_its_file_and_the_file_is_always_the_same(tmp_path: Path) -> None:
    lexicon = Lexicon.build(TABLE, max_k=10)
    assert lexicon.entries == 4
    for name in ("one.npz", "two.npz"):
        lexicon.save(tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    loaded = Lexicon.load(tmp_path / "one.npz")
    assert loaded.select([5, 6], k=2).tolist() == lexicon.select([5, 6], k=2).tolist()
    assert loaded.probabilities.tolist() == pytest.approx([0.6, 0.2, 0.2, 0.999])


@given(
    entries=st.dictionaries(
        st.tuples(st.integers(4, WORDS), st.integers(4, WORDS - 1)),
        st.sampled_from([0.0, 1e-12, 0.1, 0.25, 0.5, 1.0]),
        min_size=1,
    ),
    source=st.lists(st.integers(4, WORDS - 1)),
    max_k=st.integers(1, 6),
    k=st.integers(1, 8),
)
def test_selection_is_that_of_plain_sorting(
    entries: dict[tuple[int, int], float], source: list[int], max_k: int, k: int
) -> None:
    expected = {EOS}
    for word in source:
        row = [(-p, target) for (s, target), p in entries.items() if s == word and p > 1e-9]
        expected |= {target for _, target in sorted(row)[: min(k, max_k)]}
    selected = Lexicon.build(table_of(entries, WORDS), max_k).select(source, k)
    assert selected.tolist() == sorted(expected)
    assert selected.dtype == np.int64
