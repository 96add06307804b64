"""Whether the labels find the faults of systems, with marks and truth that they had no part in."""

from __future__ import annotations

import pytest
from blame_known_faults import FAULTS, Agreement, Labelled, Outputs, labelled, stretches
from faulty_study import SEARCHES, Trained

from creamtea.blame.labels import Mark, Origin

MODEL, SEARCH, SELECTION = FAULTS


def test_a_stretch_is_right_where_its_neighbours_stand_beside_it() -> None:
    (found,) = stretches("der Hund schläft heute", "die Katze schläft heute")
    assert found.mark == Mark(0, 7)
    assert found.right_in("die Katze schläft jetzt")
    assert not found.right_in("und die Katze schläft"), "the sentence does not begin there"
    assert not found.right_in("die Katze isst")
    (extra,) = stretches("der Hund Hund schläft", "der Hund schläft")
    assert extra.right_in("so schläft der Hund schläft") is True
    assert stretches("der Hund", "der Hund schläft") == [], "an omission"


def test_the_truth_is_the_only_fault_without_which_it_is_right() -> None:
    texts = {
        **{fault.value: {} for fault in FAULTS},
        "model-search-selection": {0: "a x", 1: "a x", 2: "a x", 3: "a x"},
        "model-search": {0: "a b", 1: "a b", 2: "a x", 3: "a x"},  # no fault of the selection
        "model-selection": {0: "a x", 1: "a b", 2: "a x", 3: "a x"},  # of the search
        "search-selection": {0: "a x", 1: "a x", 2: "a b", 3: "a c"},  # of the model
    }
    outputs = Outputs(dict.fromkeys(range(4), ("", "a b")), texts)
    assert outputs.of_all() == {(0, Mark(2, 2)): SELECTION, (2, Mark(2, 2)): MODEL}


def test_chance_is_what_labels_have_that_do_not_look() -> None:
    cases = [Labelled(n, fault, fault if n % 2 else MODEL) for n, fault in enumerate([*FAULTS] * 4)]
    found = Agreement.of(cases)
    assert found.right[0] == pytest.approx(8 / 12)
    assert found.chance == pytest.approx((4 * 2 + 4 * 2 + 4 * 8) / 144)
    assert found.balanced == pytest.approx((0.5 + 0.5 + 1.0) / 3)
    undecided = Agreement.of([Labelled(n, MODEL, Origin.UNDECIDED) for n in range(3)])
    assert (undecided.right[0], undecided.chance) == (0.0, 0.0)


@pytest.mark.slow
def test_the_labels_find_the_faults(trained: Trained) -> None:
    outputs = Outputs.of(trained.database, "faulty", "test")
    cases = [
        case
        for fault in FAULTS
        for case in labelled(
            trained.database,
            trained.store,
            "faulty",
            "test",
            fault.value,
            outputs,
            outputs.of_one_fault(fault),
            SEARCHES,
        )
    ]
    assert {case.truth for case in cases} == set(FAULTS)
    agreement = Agreement.of(cases)
    assert agreement.right[1] > agreement.chance  # the interval's lower end
    for fault in (SELECTION, SEARCH):
        assert Agreement.of([case for case in cases if case.truth is fault]).right[0] > 0.6
    # a model of two epochs is so unsure that a beam misses what it prefers: the search is at fault, too
    assert MODEL in {case.found for case in cases if case.truth is MODEL}
