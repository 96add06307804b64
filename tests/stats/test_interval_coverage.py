"""The simulations of bench/interval_coverage.py in small. Table: docs/results/data/intervals.yaml."""

from __future__ import annotations

import math
from pathlib import Path

import interval_coverage
import pytest

CASES = {(case.interval, case.setting): case for case in interval_coverage.cases()}
PAGE = Path(__file__).parents[2] / "docs/results/data/intervals.yaml"

# coverage in per cent, as the page has it
HOLDING = {
    ("difference over segments and seeds", "3 and 3 seeds varying alike; error over segments 0.7"): 96.8,
    ("difference over segments and seeds", "5 and 5 seeds varying alike; error over segments 2.0"): 94.7,
    ("mean of segments' scores (COMET and others), bootstrap", "10 segments"): 88.3,
    ("latency, mean over repetitions", "5 repetitions, 0% disturbed"): 95.4,
    ("shares (empty outputs, search errors), Wilson", "30.0% of 20"): 96.6,
}


@pytest.mark.parametrize("key", HOLDING, ids=lambda key: key[1])
def test_coverage_is_that_of_the_page_within_chance(key: tuple[str, str]) -> None:
    found = interval_coverage.simulate(CASES[key], quick=True)
    stated = HOLDING[key] / 100
    assert found.coverage == pytest.approx(
        stated, abs=3.5 * math.sqrt(stated * (1 - stated) / found.simulations)
    )
    assert f"| {' | '.join(key)} | {CASES[key].simulations:,} | {HOLDING[key]} |" in PAGE.read_text()


def test_one_seed_against_several_and_few_repetitions_have_none() -> None:
    seeds = "1 and 3 seeds the first varying five times as much; error over segments 0.7"
    found = interval_coverage.simulate(CASES["difference over segments and seeds", seeds], quick=True)
    assert (found.intervals, found.false_alarms) == (0, 0.0)
    few = CASES["latency, median over repetitions", "3 repetitions, 0% disturbed"]
    assert interval_coverage.simulate(few, quick=True).coverage is None


def test_the_page_has_every_row() -> None:
    rows = [line.strip(" |").split(" | ") for line in PAGE.read_text().splitlines() if " | " in line]
    assert CASES.keys() <= {(row[0], row[1]) for row in rows}
