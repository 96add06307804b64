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

import numpy as np

from creamtea.stats.bootstrap import SEED, Array, ScoreFunction, paired_arrays

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
    arrays = paired_arrays(baseline, system)
    split, n, pairs = len(baseline), len(arrays[0]), math.lcm(len(baseline), len(system))
    theirs = np.stack([arrays[pair % split] for pair in range(pairs)], axis=1)  # (n, pairs, F)
    ours = np.stack([arrays[split + pair % len(system)] for pair in range(pairs)], axis=1)
    gain = (theirs - ours).reshape(n, -1)
    our_sums, their_sums = ours.sum(axis=0), theirs.sum(axis=0)
    our_scores, their_scores = score(our_sums), score(their_sums)
    observed = abs(float(our_scores.mean() - their_scores.mean()))
    threshold = observed - _TIE * float(np.abs([our_scores, their_scores]).max())
    exceeding = 0
    for swapped in swaps(n, trials, seed):
        moved = (swapped @ gain).reshape(-1, *our_sums.shape)
        differences = (score(our_sums + moved) - score(their_sums - moved)).mean(axis=-1)
        exceeding += int(np.sum(np.abs(differences) >= threshold))
    return (exceeding + 1) / (trials + 1)


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
