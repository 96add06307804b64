"""Adaptive designs: the chances of blocks by counting, looks that err rarely together, systems still open."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import studentized_range

from creamtea.human.making import design
from creamtea.human.making.design import EVERYONE, STEPS, adaptive_blocks
from creamtea.stats import incomplete
from creamtea.stats.incomplete import (
    LOOKS,
    SystemEstimates,
    estimate_systems,
    last_look,
    levels_of_looks,
    open_systems,
)


@pytest.fixture(autouse=True)
def few_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chances do not depend on how well balanced the blocks are."""
    monkeypatch.setattr(design, "MAX_EXCHANGES", 20)


@pytest.mark.parametrize("open_ones", [[1, 2, 4], [0, 1, 3, 4], [0, 1, 2, 3, 4]])
def test_stored_chances_are_how_often_systems_share_a_page(open_ones: list[int]) -> None:
    """The oracle counts over 1,000 draws of a part, its first page by itself and its last."""
    draws = 1000
    met: list[Counter[tuple[int, ...]]] = [Counter(), Counter()]
    chances: dict[tuple[int, ...], float] = {}
    for seed in range(draws):
        blocks = adaptive_blocks(7, 5, 3, open_ones, str(seed))
        for counts, block in zip(met, (blocks[0], blocks[-1]), strict=True):
            shown = block["systems"]
            counts.update([*((one,) for one in shown), *combinations(shown, 2)])
        for block in blocks:
            shown = block["systems"]
            for at, one in enumerate(shown):
                chances[(one,)] = block["chances"][at][at]
                for of, other in enumerate(shown[:at]):
                    chances[(other, one)] = block["chances"][at][of]
                    assert block["chances"][at][of] == block["chances"][of][at]
    assert len(chances) == 15
    for counts in met:
        for key, chance in chances.items():
            deviation = np.sqrt(chance * (1 - chance) / draws)
            assert abs(counts[key] / draws - chance) <= 4.5 * deviation + 1e-9, key


def test_every_pair_can_meet_on_every_page() -> None:
    lowest = EVERYONE * 3 * 2 / (30 * 29)
    for blocks in (1, 2, 20):
        for block in adaptive_blocks(blocks, 30, 3, [4, 5, 6, 7], "1"):
            assert np.min(block["chances"]) >= lowest * (1 - 1e-9)
    assert [block["systems"] for block in adaptive_blocks(4, 6, 2, [], "1")] == [
        block["systems"] for block in adaptive_blocks(4, 6, 2, range(6), "1")
    ]


def test_looks_spend_five_per_cent_in_all() -> None:
    planned = 50
    found = [last_look(finished, planned, 30) for finished in range(planned + 1)]
    assert found[:20] == [None] * 20
    looks = dict.fromkeys(look for look in found if look is not None)
    assert [turns for turns, _ in looks] == [20, 30, 40, 50] == [round(part * planned) for part in LOOKS]
    assert found[29] == found[20] != found[30]


@pytest.mark.parametrize("systems", [3, 30])
def test_some_look_errs_in_five_per_cent(systems: int) -> None:
    """Means of equal systems over ever more pages; the bound of a level follows from the last look alone."""
    rng, campaigns, pages = np.random.default_rng(5), 4000, 20
    means = rng.normal(size=(pages, campaigns, systems)).cumsum(axis=0)
    scores = np.ptp(means, axis=2) / np.sqrt(np.arange(1, pages + 1))[:, None]  # each alike for equal systems
    wrong = np.zeros(campaigns, dtype=bool)
    for planned, level in (last_look(finished, pages, systems) for finished in (8, 12, 16, 20)):
        bound = studentized_range.isf(level, systems, np.inf)
        wrong |= scores[planned - 1] > bound
    assert wrong.mean() == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / campaigns))


def test_an_early_look_rarely_errs() -> None:
    first, *_, last = levels_of_looks(12)
    assert first == pytest.approx(0.05 * LOOKS[0] ** 3, rel=0.01)
    assert 0.05 * (1 - LOOKS[-2] ** 3) < last < 0.05


def estimates(effects: np.ndarray, pages: int, seed: int = 1, alpha: float = 0.05) -> SystemEstimates:
    rng = np.random.default_rng(seed)
    systems = len(effects)
    system = np.array([rng.permutation(systems)[:3] for _ in range(pages)])
    value = effects[system] + rng.normal(0, 5, (pages, 1)) + rng.normal(0, 1, (pages, 3))
    return estimate_systems(
        np.repeat(np.arange(pages), 3), system.ravel(), value.ravel(), systems, alpha=alpha
    )


def test_a_smaller_alpha_widens_simultaneous_intervals_and_p_follows() -> None:
    effects = np.array([0.0, 0.4, 0.9, 3.0, 3.1])
    usual, strict = estimates(effects, 120), estimates(effects, 120, alpha=0.01)
    off = ~np.eye(5, dtype=bool)
    assert (strict.half[off] > usual.half[off]).all()
    assert strict.low == pytest.approx(usual.low)  # of a single mean
    assert strict.high == pytest.approx(usual.high)
    assert strict.mean == pytest.approx(usual.mean)
    assert strict.p_value[off] == pytest.approx(np.minimum(1, 5 * usual.p_value[off]))
    beside = np.abs(strict.difference) > strict.half
    assert (beside[off] == (strict.p_value[off] < 0.05)).mean() > 0.9  # draws tell both, to their error


def test_pairs_weigh_by_inverse_chances() -> None:
    """As pairs weighted by 1/q do, by ordinary least squares over the pairs."""
    rng = np.random.default_rng(2)
    pages, systems = 60, 5
    system = np.array([rng.permutation(systems)[:2] for _ in range(pages)])
    value, q = rng.normal(size=(pages, 2)), rng.uniform(0.05, 1, pages)
    chance = np.repeat(q, 2)[:, None] * np.ones(systems)
    found = estimate_systems(
        np.repeat(np.arange(pages), 2), system.ravel(), value.ravel(), systems, chance=chance
    )
    x = np.zeros((pages, systems))
    x[np.arange(pages), system[:, 0]] = 1
    x[np.arange(pages), system[:, 1]] = -1
    root = q**-0.5
    theta = np.linalg.lstsq(root[:, None] * x, root * (value[:, 0] - value[:, 1]), rcond=None)[0]
    assert found.mean - found.mean.mean() == pytest.approx(theta - theta.mean())


def test_what_is_decided_is_no_longer_open() -> None:
    """Systems: one far better, two alike, one that is a little worse than these."""
    effects = np.array([9.0, 0.0, 0.0, -0.6])
    found = estimates(effects, 60)
    assert open_systems(found, 0.1, 2) == [1, 2, 3]
    assert open_systems(found, 0.1, 4) == [0, 1, 2, 3]  # others come along so that a page is full
    assert open_systems(found, 5.0, 2) == []  # every other pair is closer than this
    assert open_systems(replace(found, reason="no spread"), 0.1, 2) == [0, 1, 2, 3]


@pytest.mark.slow
def test_false_alarms_at_any_look_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal systems, each part drawn by what those before seem to say, and looked at whenever it is due."""
    monkeypatch.setattr(incomplete, "DRAWS", 1000)
    systems, pages, campaigns, wrong = 5, 40, 40, 0
    for seed in range(campaigns):
        rng = np.random.default_rng(seed)
        page, system, value, chance = [], [], [], []
        open_ones, alarm = list(range(systems)), False
        step = pages // STEPS
        for end in range(step, pages + 1, step):
            for block in adaptive_blocks(step, systems, 3, open_ones, f"{seed}/{end}"):
                shown = block["systems"]
                full = np.ones((systems, systems))
                full[np.ix_(shown, shown)] = block["chances"]
                page += [len(page) // 3] * 3
                system += shown
                value += (rng.normal(0, 3) + rng.normal(0, 1, 3)).tolist()
                chance += list(full[shown])
            found = estimate_systems(page, system, value, systems, chance=np.sqrt(chance))
            open_ones = open_systems(found, 0.1, 3)
            look = last_look(end, pages, systems)
            if look is not None and look[0] > end - step:
                at = estimate_systems(page, system, value, systems, chance=np.sqrt(chance), alpha=look[1])
                alarm |= bool((np.abs(at.difference) > at.half).any())
        wrong += alarm
    assert wrong / campaigns <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / campaigns)
