"""Every two systems at once, against each pair by itself and against every way to swap."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from noisy_texts import as_statistics, bleu, mean_score, noisy, sentences
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from creamtea.stats.resampling import (
    Array,
    bootstrap_pairs,
    paired_bootstrap,
    paired_randomization,
    randomization_of_pairs,
)


def test_all_pairs_are_what_each_pair_is_by_itself() -> None:
    rng = np.random.default_rng(0)
    systems = [[as_statistics(rng.normal(50, 10, 40)) for _ in range(seeds)] for seeds in (1, 2, 3, 2)]
    together = bootstrap_pairs(systems, mean_score, samples=200, seed=9)
    swapped = randomization_of_pairs(systems, mean_score, trials=300, seed=9)
    assert sorted(together) == sorted(swapped) == [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for (i, j), result in together.items():
        alone = paired_bootstrap(systems[i], systems[j], mean_score, samples=200, seed=9)
        assert vars(result) == pytest.approx(vars(alone))
        p = paired_randomization(systems[i], systems[j], mean_score, trials=300, seed=9)
        assert swapped[i, j] == p


def test_all_pairs_of_bleu_are_sacrebleus() -> None:
    references = sentences(60)
    texts = [noisy(references, rate, seed) for seed, rate in enumerate((0.3, 0.35, 0.4))]
    scorer = BLEU()
    systems: list[list[Array]] = [
        [np.array(scorer._extract_corpus_statistics(lines, [references]), dtype=float)] for lines in texts
    ]
    boots = bootstrap_pairs(systems, bleu, samples=300)
    swaps = randomization_of_pairs(systems, bleu, trials=300)
    for i, j in boots:
        named = [("base", texts[i]), ("system", texts[j])]
        for kind, ours in (("bs", boots[i, j].p_value), ("ar", swaps[i, j])):
            test = PairedTest(named, {"m": scorer}, [references], test_type=kind, n_samples=300)
            theirs = next(values for key, values in test()[1].items() if key != "System")
            assert ours == pytest.approx(theirs[1].p_value)


def test_swaps_come_near_to_all_that_there_are() -> None:
    values = [np.array([3.0, 1.0, 4.0, 1.0]), np.array([2.0, 0.0, 4.5, 1.0]), np.array([5.0, 5.0, 4.0, 2.0])]
    found = randomization_of_pairs([[as_statistics(own)] for own in values], mean_score, trials=20_000)
    for (i, j), p in found.items():
        gains = values[j] - values[i]
        totals = [abs(float(np.dot(signs, gains))) for signs in product((1, -1), repeat=4)]
        exact = np.mean([total >= abs(gains.sum()) - 1e-9 for total in totals])
        assert p == pytest.approx(exact, abs=0.015)
