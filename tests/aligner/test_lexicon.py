"""The lexicon: rows, selection, storage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea_workers.selection.aligner import Lexicon, TranslationTable

V = 12
EOS = 3


def table_of(entries: dict[tuple[int, int], float]) -> TranslationTable:
    keys = sorted(entries)
    return TranslationTable(
        source=np.array([source for source, _ in keys], dtype=np.int64),
        target=np.array([target for _, target in keys], dtype=np.int64),
        probability=np.array([entries[key] for key in keys], dtype=np.float64),
        vocabulary_size=V,
    )


TABLE = table_of(
    {
        (5, 10): 0.2,
        (5, 9): 0.2,
        (5, 8): 0.6,
        (6, 4): 0.999,
        (6, 7): 1e-12,  # no mass: not stored
        (V, 11): 1.0,  # NULL: no row
    }
)


def test_a_row_begins_with_the_most_probable_and_equals_go_by_id() -> None:
    lexicon = Lexicon.build(TABLE, max_k=10)
    assert [lexicon.select([5], k).tolist() for k in (1, 2, 3)] == [[3, 8], [3, 8, 9], [3, 8, 9, 10]]


def test_a_sentence_selects_the_union_of_its_subwords_rows() -> None:
    assert Lexicon.build(TABLE, max_k=10).select([6, 5, 6], k=1).tolist() == [EOS, 4, 8]


def test_only_entries_with_mass_and_of_real_sources_are_stored() -> None:
    lexicon = Lexicon.build(TABLE, max_k=10)
    assert lexicon.entries == 4
    assert lexicon.select([6], k=10).tolist() == [EOS, 4]


def test_a_row_is_cut_at_max_k() -> None:
    lexicon = Lexicon.build(TABLE, max_k=2)
    assert lexicon.entries == 3
    assert lexicon.select([5], k=1000).tolist() == [EOS, 8, 9]


@pytest.mark.parametrize("source", [[], [EOS], [11]])
def test_eos_is_always_allowed(source: list[int]) -> None:
    assert Lexicon.build(TABLE, max_k=10).select(source, k=5).tolist() == [EOS]


def test_no_candidates_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="k must be 1 or more"):
        Lexicon.build(TABLE, max_k=10).select([5], k=0)


def test_a_lexicon_survives_its_file_and_the_file_is_always_the_same(tmp_path: Path) -> None:
    lexicon = Lexicon.build(TABLE, max_k=10)
    for name in ("one.npz", "two.npz"):
        lexicon.save(tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    loaded = Lexicon.load(tmp_path / "one.npz")
    assert loaded.select([5, 6], k=2).tolist() == lexicon.select([5, 6], k=2).tolist()
    assert loaded.probabilities.tolist() == pytest.approx([0.6, 0.2, 0.2, 0.999])


@given(
    entries=st.dictionaries(
        st.tuples(st.integers(4, V), st.integers(4, V - 1)),
        st.sampled_from([0.0, 1e-12, 0.1, 0.25, 0.5, 1.0]),
        min_size=1,
    ),
    source=st.lists(st.integers(4, V - 1)),
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
    selected = Lexicon.build(table_of(entries), max_k).select(source, k)
    assert selected.tolist() == sorted(expected)
    assert selected.dtype == np.int64
