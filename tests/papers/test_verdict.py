"""The rule of the verdicts, case by case, and what it must never depend on."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.report.model import ONE_SEED, Cell, Delta
from creamtea.report.papers import Judgement, OurValue, Outcome, direction_of, judge


def ours(value: float | None, half: float | None = None, **more: object) -> OurValue:
    low, high = (None, None) if half is None or value is None else (value - half, value + half)
    cell = Cell("ok" if value is not None else "pending", value=value, low=low, high=high)
    return OurValue(cell, **{"study": "tea", "table": "test/bleu", **more})  # type: ignore[arg-type]


def compared(value: float, delta: float, significant: bool) -> OurValue:
    """With the study's own comparison with its baseline."""
    found = Delta("ok", value=delta, low=delta - 1, high=delta + 1, significant=significant)
    return ours(value, 5.0, row="scones", deltas={"softmax": found})


@pytest.mark.parametrize(
    ("own", "other", "words", "direction"),
    [
        (40.3, 39.6, "", "higher"),
        (39.3, 39.6, "", "lower"),
        (34.4, 34.4, "", ""),
        (None, 39.6, "", ""),
        (None, 39.6, "lower", "lower"),
        (24.03, 24.24, "higher", "lower"),  # as printed, against the general claim
    ],
)
def test_the_printed_difference_gives_the_direction_and_words_where_no_numbers_do(
    own: float | None, other: float, words: str, direction: str
) -> None:
    assert direction_of(own, other, words) == direction


@pytest.mark.parametrize(
    ("own", "other", "outcome"),
    [
        (ours(3, 0.5), ours(1, 0.5), Outcome.HOLDS),  # 2.5 to 3.5 and 0.5 to 1.5
        (ours(1, 0.5), ours(3, 0.5), Outcome.OPPOSITE),
        (ours(2, 0.5), ours(1, 0.5), Outcome.UNDECIDED),  # they touch at 1.5
        (ours(2, 0.49), ours(1, 0.5), Outcome.HOLDS),
        (ours(3), ours(1), Outcome.SAME),
        (ours(1, 0.5), ours(3), Outcome.OTHER),  # one interval says nothing
        (ours(None), ours(1, 0.5), Outcome.NOT_RUN),
        (ours(3, 0.5), ours(1, 0.5, study="another"), Outcome.NOT_RUN),  # sizes are not compared
    ],
)
def test_intervals_of_both_values(own: OurValue, other: OurValue, outcome: Outcome) -> None:
    assert judge(own, other, "higher").outcome == outcome


SOFTMAX = ours(30, 5.0, row="softmax")


def test_the_interval_shown_is_the_widest_that_both_allow() -> None:
    assert judge(ours(3, 0.5), ours(1, 0.25), "higher") == Judgement(Outcome.HOLDS, 2, 1.25, 2.75)


def test_a_paired_comparison_decides_by_its_tests() -> None:
    assert judge(compared(32, 2, True), SOFTMAX, "higher") == Judgement(Outcome.HOLDS, 2, 1, 3)
    assert judge(compared(32, 2, True), SOFTMAX, "lower").outcome == Outcome.OPPOSITE
    assert judge(compared(32, 2, False), SOFTMAX, "higher").outcome == Outcome.UNDECIDED
    # a comparison with another row or column decides nothing
    for other in (ours(30, 5.0, row="entmax"), replace(SOFTMAX, table="test/chrf")):
        assert judge(compared(32, 2, True), other, "higher").outcome == Outcome.UNDECIDED
    # an interval with seeds makes nothing significant
    seeded = with_seeds(compared(32, 2, False), 0.5, 3.5)
    assert judge(seeded, SOFTMAX, "higher").outcome == Outcome.UNDECIDED


def test_a_mark_that_the_study_withheld_is_undecided_with_its_reason() -> None:
    delta = Delta("ok", "BLEU near zero", value=0.9, low=0.6, high=1.2)
    own = ours(1.5, 0.3, row="scones", deltas={"softmax": delta})
    found = judge(own, ours(0.6, 0.3, row="softmax"), "higher")
    assert found == Judgement(Outcome.UNDECIDED, 0.9, 0.6, 1.2, "BLEU near zero")


def test_a_paired_comparison_decides_whichever_row_is_named_first() -> None:
    """The study compares with its baseline, which may be the row that the paper names first."""
    scones = compared(28, -2, True)
    assert judge(SOFTMAX, scones, "higher") == Judgement(Outcome.HOLDS, 2, 1, 3)
    assert judge(SOFTMAX, scones, "alike").outcome == Outcome.OPPOSITE  # 1 to 3, and 2 % of 28 are 0.56


def test_of_several_comparisons_that_with_the_row_decides() -> None:
    further = Delta("ok", value=-1, low=-1.5, high=-0.5, significant=True)
    own = compared(32, 2, True)
    both = replace(own, deltas={**own.deltas, "entmax": further})
    assert judge(both, ours(33, 5.0, row="entmax"), "lower") == Judgement(Outcome.HOLDS, -1, -1.5, -0.5)
    assert judge(both, SOFTMAX, "higher") == Judgement(Outcome.HOLDS, 2, 1, 3)


def with_seeds(ours: OurValue, low: float, high: float) -> OurValue:
    (found,) = ours.deltas.items()
    return replace(ours, deltas={found[0]: replace(found[1], seeds_low=low, seeds_high=high)})


def test_the_interval_over_segments_and_seeds_is_shown() -> None:
    scones = with_seeds(compared(32, 2, True), 0.5, 3.5)
    assert judge(scones, SOFTMAX, "higher") == Judgement(Outcome.HOLDS, 2, 0.5, 3.5)
    assert judge(SOFTMAX, scones, "lower") == Judgement(Outcome.HOLDS, -2, -3.5, -0.5)
    assert judge(scones, SOFTMAX, "alike") == Judgement(Outcome.UNDECIDED, 2, 0.5, 3.5)  # 0.6 of 30


def seeded(value: float, half: float, seeds: int, deviation: float | None = None) -> OurValue:
    own = ours(value, half)
    return replace(own, cell=replace(own.cell, deviation=deviation, seeds=seeds))


def test_values_that_were_not_compared_are_judged_over_their_seeds() -> None:
    assert judge(ours(18, 1.0), ours(14, 1.0), "higher").outcome == Outcome.HOLDS
    judgement = judge(seeded(18, 1.0, 3, 4.0), seeded(14, 1.0, 3, 4.0), "higher")
    assert judgement.outcome == Outcome.UNDECIDED
    half = (1 + (4.302653 * 4 / 3**0.5) ** 2) ** 0.5
    assert (judgement.low, judgement.high) == pytest.approx((4 - 2 * half, 4 + 2 * half))


def test_one_seed_against_several_decides_nothing() -> None:
    several, single = seeded(20, 1.0, 3, 0.1), seeded(14, 1.0, 1)
    equal, alone = seeded(500, 0.1, 3, 0.1), seeded(500, 0.1, 1)
    for judgement in (
        judge(several, single, "higher"),
        judge(single, several, "lower"),
        judge(equal, alone, "alike"),
    ):
        assert (judgement.outcome, judgement.note) == (Outcome.UNDECIDED, ONE_SEED)
    assert judge(seeded(20, 1.0, 1), single, "higher").outcome == Outcome.HOLDS
    assert judge(alone, alone, "alike").outcome == Outcome.HOLDS


def test_without_a_direction_nothing_is_judged() -> None:
    assert judge(ours(3, 0.5), ours(1, 0.5), "").outcome == Outcome.NO_DIRECTION


@pytest.mark.parametrize(
    ("own", "outcome"),
    [
        (ours(25.1, 0.1), Outcome.HOLDS),  # −0.1 to 0.3, and 2 % of 25 are 0.5
        (ours(25.4, 0.1), Outcome.UNDECIDED),  # 0.2 to 0.6
        (ours(26.0, 0.1), Outcome.OPPOSITE),  # 0.8 to 1.2
        (ours(24.0, 0.1), Outcome.OPPOSITE),
        (ours(25.1), Outcome.NO_INTERVAL),
        (ours(None), Outcome.NOT_RUN),
    ],
)
def test_alike_is_within_two_percent_of_the_other(own: OurValue, outcome: Outcome) -> None:
    assert judge(own, ours(25.0, 0.1), "alike").outcome == outcome


def test_a_weak_model_needs_a_narrower_interval_to_be_alike() -> None:
    """0.1 BLEU to either side are little of 25.5, and not of 4.1."""
    assert judge(ours(25.5, 0.1), ours(25.5, 0.1), "alike").outcome == Outcome.HOLDS
    assert judge(ours(4.1, 0.1), ours(4.1, 0.1), "alike").outcome == Outcome.UNDECIDED


values = st.builds(ours, st.floats(-100, 100), st.none() | st.floats(0.01, 20))
MIRRORED = {"higher": "lower", "lower": "higher"}


@given(values, values, st.sampled_from(["higher", "lower"]))
def test_it_does_not_matter_which_is_named_first(own: OurValue, other: OurValue, direction: str) -> None:
    there, back = judge(own, other, direction), judge(other, own, MIRRORED[direction])  # type: ignore[arg-type]
    assert there.outcome == back.outcome


@given(values, values)
def test_one_direction_is_the_opposite_of_the_other(own: OurValue, other: OurValue) -> None:
    opposites = {
        Outcome.HOLDS: Outcome.OPPOSITE,
        Outcome.OPPOSITE: Outcome.HOLDS,
        Outcome.SAME: Outcome.OTHER,
        Outcome.OTHER: Outcome.SAME,
        Outcome.UNDECIDED: Outcome.UNDECIDED,
    }
    up, down = judge(own, other, "higher").outcome, judge(own, other, "lower").outcome
    assert down == opposites[up]
