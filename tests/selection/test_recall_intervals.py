"""Intervals of recall are over distinct idioms: their occurrences are no new observations."""

from __future__ import annotations

import numpy as np

from creamtea_workers.selection.recall import Reference, clusters_of, scopes


def reference(**idioms: list[int]) -> Reference:
    return Reference(np.array([]), {name: np.array(ids) for name, ids in idioms.items()})


def test_occurrences_of_an_idiom_are_no_new_observations() -> None:
    """Repeated ten times each, with what is reached of it, an idiom's recall is no better known."""
    references = [reference(**{name: [1, 2, 3]}) for name in "abcdefgh"]
    reached = [np.array([0, n % 4, n % 4]) for n in range(8)]
    other = [np.array([0, n % 3, n % 3]) for n in range(8)]
    for scope in ("idiom_words", "idiom_words_macro"):
        once, ten = (
            [scopes([], [], references * times, counts * times)[scope] for counts in (reached, other)]
            for times in (1, 10)
        )
        for make in (
            lambda pair: pair[0].metric("recall", "", {}),
            lambda pair: pair[0].less(pair[1], "difference", "", {}),
        ):
            assert make(ten) == make(once)


def test_segments_with_an_idiom_in_common_are_together() -> None:
    names = [["a"], ["b"], ["a", "c"], ["d"], ["c", "e"], ["b"], []]
    found = clusters_of(names)
    together = {frozenset(n for n, label in enumerate(found) if label == one) for one in found}
    assert together == {frozenset({0, 2, 4}), frozenset({1, 5}), frozenset({3}), frozenset({6})}
    assert clusters_of([]) == []


def test_of_one_idiom_nothing_is_known_of_others() -> None:
    one = [reference(a=[1, 2])]
    counted = scopes([], [], one, [np.array([0, 1, 1])])
    micro, macro = (counted[scope].metric("recall", "", {}) for scope in ("idiom_words", "idiom_words_macro"))
    assert (micro.value, micro.low, micro.high) == (0.5, 0.0, 1.0)
    assert (macro.value, macro.low, macro.high) == (0.5, 0.0, 1.0)


def test_idioms_that_are_all_alike_have_no_difference_to_judge_by() -> None:
    two = [reference(**{name: [1, 2]}) for name in "ab"]
    every, none = (scopes([], [], two, [np.array([0, n, n])] * 2) for n in (2, 0))
    for scope in ("idiom_words", "idiom_words_macro"):
        found = every[scope].less(none[scope], "difference", "", {})
        assert (found.value, found.low, found.detail["p_two_sided"]) == (1.0, None, None)
        assert found.note == "all 2 idioms have the same value: no spread to judge by"
        whole = every[scope].metric("recall", "", {})
        assert whole.low is not None
        assert (whole.low < 0.5, whole.high) == (True, 1.0)
