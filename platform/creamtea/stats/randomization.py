"""Paired approximate randomisation (Riezler and Maxwell 2005) on sufficient statistics.

If a system and a baseline were equal, it would not matter which of the two gave which translation of a
segment. A trial swaps them on a random half of the segments; the p-value is the share of trials whose
difference is at least the observed one. As in `creamtea.stats.bootstrap`, the sums of all trials are one
matrix product.

The draws are sacreBLEU's (`sacrebleu.significance`), and so is the p-value, to the last digit, except for
ties: sacreBLEU counts a trial only if its difference is *above* the observed one. Where two systems differ in
few segments (a vocabulary selection that changes three outputs of a test set), many trials repeat the
observed difference exactly, and sacreBLEU's p-value is near 0 for what chance gives in every fourth trial.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from creamtea.stats.bootstrap import SEED, Array, ScoreFunction, outputs_of, paired_arrays

TRIALS = 10_000
_CHUNK_CELLS = 400_000  # swaps held at once: 3 MB, which fits into a processor's cache
_TIE = 1e-9  # differences closer than this, relative to the scores, are the same one, summed otherwise


def paired_randomization(
    baseline: Sequence[Array],
    system: Sequence[Array],
    score: ScoreFunction,
    trials: int = TRIALS,
    seed: int = SEED,
) -> float:
    """The two-sided p-value of a system against a baseline, each given as one (n, F) array of statistics per
    training seed: (trials at least as far apart + 1) / (trials + 1).

    With several seeds the compared quantity is the mean over seeds of the corpus score. A trial swaps a
    segment in all of them together: the seeds of a system are not swapped with each other, so that what is
    tested is the choice of segments, as by the bootstrap. Outputs are paired in order, and the shorter list
    is repeated until both come out even: seeds 1, 2, 3 against one baseline are three pairs with it.
    Raises ValueError when the arrays differ in their number of segments.
    """
    return randomization_of_pairs([baseline, system], score, trials, seed)[0, 1]


def randomization_of_pairs(
    systems: Sequence[Sequence[Array]], score: ScoreFunction, trials: int = TRIALS, seed: int = SEED
) -> dict[tuple[int, int], float]:
    """`paired_randomization` of every two systems with the same swaps, by position (baseline, system)."""
    outputs = np.stack(paired_arrays(*systems), axis=1)  # (n, outputs, F)
    n, sums = len(outputs), outputs.sum(axis=0)
    scores = score(sums)
    own = [np.arange(part.start, part.stop) for part in outputs_of(systems)]
    pairs, thresholds = {}, {}
    for i, j in combinations(range(len(own)), 2):
        count = math.lcm(len(own[i]), len(own[j]))
        pairs[i, j] = theirs, ours = np.resize(own[i], count), np.resize(own[j], count)
        observed = abs(float(scores[ours].mean() - scores[theirs].mean()))
        thresholds[i, j] = observed - _TIE * float(np.abs([scores[ours], scores[theirs]]).max())
    exceeding = dict.fromkeys(pairs, 0)
    for swapped in swaps(n, trials, seed):
        moved = (swapped @ outputs.reshape(n, -1)).reshape(-1, *sums.shape)  # (trials, outputs, F)
        for pair, (theirs, ours) in pairs.items():
            gain = moved[:, theirs] - moved[:, ours]
            differences = (score(sums[ours] + gain) - score(sums[theirs] - gain)).mean(axis=-1)
            exceeding[pair] += int(np.sum(np.abs(differences) >= thresholds[pair]))
    return {pair: (count + 1) / (trials + 1) for pair, count in exceeding.items()}


def swaps(n: int, trials: int, seed: int) -> Iterator[Array]:
    """(rows, n) of 0 and 1, together (trials, n): `default_rng(seed).integers(2, …, dtype=bool)`.

    NumPy takes 32 such draws from each random number, the lowest bit first, so chunks of whole numbers give
    the same draws as one call. Unpacking them takes a third of the time of `integers`.
    """
    rng = np.random.default_rng(seed)
    rows_per_chunk = max(1, _CHUNK_CELLS // (32 * n)) * 32
    for start in range(0, trials, rows_per_chunk):
        rows = min(rows_per_chunk, trials - start)
        drawn = np.frombuffer(rng.bytes(4 * math.ceil(rows * n / 32)), dtype=np.uint8)
        bits = np.unpackbits(drawn, count=rows * n, bitorder="little")
        yield bits.reshape(rows, n).astype(np.float64)
