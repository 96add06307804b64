"""The set of hashes against Python's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from creamtea_workers.corpora.files import SeenHashes, pair_hash


@given(st.lists(st.lists(st.integers(0, 40) | st.integers(2**64 - 3, 2**64 - 1), max_size=12), max_size=20))
def test_a_hash_is_new_once(parts: list[list[int]]) -> None:
    hashes, seen = SeenHashes(), set()
    for part in parts:
        expected = []
        for value in part:
            expected.append(value not in seen)
            seen.add(value)
        assert hashes.add(part).tolist() == expected


def test_sides_do_not_run_into_each_other() -> None:
    assert pair_hash("a b", "c") != pair_hash("a", "b c")
    assert pair_hash("a", "b") == pair_hash("a", "b")
