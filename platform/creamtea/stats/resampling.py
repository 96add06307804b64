"""Bootstrap and approximate randomisation of segments, on sufficient statistics.

A corpus metric is a function of the *sum* of a few statistics per segment (BLEU: lengths, matched and
possible n-grams; a mean of segment scores: score and 1). Resampling therefore needs no text: the sums of all
resamples are one matrix product, the number of times that each segment was drawn times the statistics.

The draws, the percentiles and `PairedBootstrap.p_value` are sacreBLEU's (`sacrebleu.significance`, after
Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation") and equal to the last printed
digit for the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# (..., F) summed statistics -> (...,) corpus scores; NaN if the sums say nothing, which drops a resample
ScoreFunction = Callable[[Array], Array]

SAMPLES = 1000
SEED = 12345  # sacreBLEU's
MIN_SEGMENTS = 30  # in simulations 95 % intervals over 5 to 29 segments cover 80 to 93 %, fewer over 2 to 4
_CHUNK_DRAWS = 4_000_000  # draws held at once: 32 MB of counts


@dataclass(frozen=True)
class Interval:
    """A corpus score with its 95 % percentile interval; without one, `reason` says why.

    sacreBLEU prints `mean` ± `half_width`.
    """

    value: float
    low: float | None
    high: float | None
    mean: float  # of the resamples
    half_width: float | None
    reason: str = ""


@dataclass(frozen=True)
class PairedBootstrap:
    """A system against a baseline on the same segments.

    `p_value` is sacreBLEU's: the share of resamples whose |difference| exceeds the mean |difference| by more
    than the observed |difference|. Away from zero it covers only one tail, chosen after seeing the sign: the
    rule "p_value < 0.05" gives a false alarm in about 10 % of comparisons of equal systems. `p_two_sided`
    counts both tails of the centred difference and keeps to the nominal 5 %. If resamples cannot differ, both
    are 1, and `reason` says why there is no interval.
    """

    baseline: float  # mean over seeds of the corpus score
    system: float
    delta: float  # system - baseline
    low: float | None  # 95 % percentile interval of the difference
    high: float | None
    p_value: float
    p_two_sided: float
    reason: str = ""


def resampled_sums(
    statistics: Array, samples: int = SAMPLES, seed: int = SEED, groups: Sequence[str] | None = None
) -> Array:
    """Sum statistics over resamples with replacement: (n, F) -> (samples, F).

    The draws equal `numpy.random.default_rng(seed).choice(n, (samples, n))` for every chunk size. With
    `groups` (n), segments are drawn within their group, so that each group keeps its size.

    Resamples of few segments vary too little: their variance has the divisor n, not n - 1. Without groups,
    sacreBLEU does the same. With groups of n segments a 95 % interval covers 81 % for n = 2, 88 % for 3, 91 %
    for 5 and 93 % for 10 (simulated means over 15 groups of normal values).
    """
    if len(statistics) == 0:
        raise ValueError("no segments to resample")
    if groups is None:
        return _sums(statistics, samples, np.random.default_rng(seed))
    names = np.asarray(groups)
    rng = np.random.default_rng(seed)
    sums = np.zeros((samples, statistics.shape[1]))
    for name in np.unique(names):
        sums += _sums(statistics[names == name], samples, rng)
    return sums


def _why_no_spread(segments: int, groups: Sequence[str] | None) -> str:
    """Return why resamples cannot differ, whatever the segments are; "" if they can."""
    if segments == 1:
        return "only one segment: no spread to judge by"
    if groups is not None and len(set(groups)) == segments:
        return "only one segment of each group: no spread to judge by"
    return ""


def _sums(statistics: Array, samples: int, rng: np.random.Generator) -> Array:
    n = len(statistics)
    rows_per_chunk = max(1, _CHUNK_DRAWS // n)
    sums = np.empty((samples, statistics.shape[1]))
    for start in range(0, samples, rows_per_chunk):
        rows = min(rows_per_chunk, samples - start)
        drawn = rng.choice(n, size=(rows, n), replace=True)
        flat = (drawn + np.arange(rows)[:, None] * n).ravel()
        counts = np.bincount(flat, minlength=rows * n).reshape(rows, n)
        sums[start : start + rows] = counts.astype(np.float64) @ statistics
    return sums


def percentile_interval(scores: Array) -> tuple[float, float]:
    """Return the 95 % interval by sacreBLEU's ranks: n // 40 scores are cut off on each side."""
    ordered = np.sort(scores)
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[len(ordered) - cut - 1])


def bootstrap_interval(
    statistics: Array, score: ScoreFunction, groups: Sequence[str] | None = None
) -> Interval:
    """Return the corpus score of statistics (n, F) and its interval over resampled segments.

    There is no interval for a single segment, or if each group has only one.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    scores = score(resampled_sums(statistics, SAMPLES, SEED, groups))
    scores = scores[~np.isnan(scores)]
    low, high = percentile_interval(scores)
    value = float(score(statistics.sum(axis=0)))
    if reason := _why_no_spread(len(statistics), groups):
        return Interval(value, None, None, float(scores.mean()), None, reason)
    return Interval(value, low, high, float(scores.mean()), 0.5 * (high - low))


def paired_bootstrap(
    baseline: Sequence[Array],
    system: Sequence[Array],
    score: ScoreFunction,
    samples: int = SAMPLES,
    seed: int = SEED,
    groups: Sequence[str] | None = None,
) -> PairedBootstrap:
    """Compare a system with a baseline, each given as one (n, F) array of statistics per training seed.

    With several seeds, the compared quantity is the mean corpus score over seeds, all scored on the same
    resample. The interval covers the choice of segments, not the choice of training seeds. There is no
    interval for a single segment, or if each group has only one. ValueError if the arrays differ in their
    number of segments.
    """
    return bootstrap_pairs([baseline, system], score, samples, seed, groups)[0, 1]


def bootstrap_pairs(
    systems: Sequence[Sequence[Array]],
    score: ScoreFunction,
    samples: int = SAMPLES,
    seed: int = SEED,
    groups: Sequence[str] | None = None,
) -> dict[tuple[int, int], PairedBootstrap]:
    """Apply `paired_bootstrap` to every two systems on the same resamples: (baseline, system) -> result."""
    arrays = paired_arrays(*systems)
    width = arrays[0].shape[1]

    # one product for all outputs: (samples, outputs * F) -> scores (samples, outputs)
    sums = resampled_sums(np.concatenate(arrays, axis=1), samples, seed, groups)
    sums = sums.reshape(samples, len(arrays), width)
    resampled = score(sums)
    observed = score(np.stack([array.sum(axis=0) for array in arrays]))

    outputs = outputs_of(systems)
    means = [(float(observed[columns].mean()), resampled[:, columns].mean(axis=1)) for columns in outputs]
    reason = _why_no_spread(len(arrays[0]), groups)
    comparisons = {}
    for i, j in combinations(range(len(means)), 2):
        (baseline, of_baseline), (system, of_system) = means[i], means[j]
        delta, differences = system - baseline, of_system - of_baseline
        differences = differences[~np.isnan(differences)]
        if reason:
            comparisons[i, j] = PairedBootstrap(baseline, system, delta, None, None, 1.0, 1.0, reason)
            continue
        low, high = percentile_interval(differences)
        # sacreBLEU's p-value, then the two-sided one: differences are centred, as if the systems were equal.
        # One is added to both counts, which keeps p above 0. Equal scores have p = 1.
        size = np.abs(differences)
        p_value, p_two_sided = (
            (int(np.sum(exceeding)) + 1) / (len(differences) + 1) if delta else 1.0
            for exceeding in (
                size - size.mean() > abs(delta),
                np.abs(differences - differences.mean()) >= abs(delta),
            )
        )
        comparisons[i, j] = PairedBootstrap(baseline, system, delta, low, high, p_value, p_two_sided)
    return comparisons


def outputs_of(systems: Sequence[Sequence[Array]]) -> list[slice]:
    """Return the positions of each system's outputs among all outputs."""
    ends = np.cumsum([len(outputs) for outputs in systems])
    return [slice(int(end) - len(outputs), int(end)) for outputs, end in zip(systems, ends, strict=True)]


def paired_arrays(*systems: Sequence[Array]) -> list[Array]:
    """Return the outputs of all systems, float64 (n, F), in order. ValueError if they cannot be paired."""
    if not all(systems):
        raise ValueError("a comparison needs at least one output of the baseline and one of the system")
    arrays = [np.asarray(statistics, dtype=np.float64) for outputs in systems for statistics in outputs]
    shapes = {array.shape for array in arrays}
    if len(shapes) != 1:
        raise ValueError(f"outputs of different shapes cannot be paired: {sorted(shapes)}")
    if not len(arrays[0]):
        raise ValueError("no segments to compare")
    return arrays


# Paired approximate randomisation (Riezler and Maxwell 2005) on sufficient statistics.
#
# If a system and a baseline were equal, it would not matter which of the two gave which translation of a
# segment. A trial swaps them on a random half of the segments; the p-value is the share of trials whose
# difference is at least the observed one. As in the bootstrap, the sums of all trials are one matrix product.
#
# The draws and the p-value equal sacreBLEU's (`sacrebleu.significance`) to the last digit, except for ties:
# sacreBLEU counts a trial only if its difference is *above* the observed one. If two systems differ in few
# segments (a vocabulary selection that changes three outputs of a test set), many trials repeat the observed
# difference exactly, and sacreBLEU's p-value is near 0 for a difference that chance gives in every fourth
# trial.


TRIALS = 10_000
_CHUNK_SWAPS = 400_000  # swaps held at once: 3 MB, which fits into a processor's cache
_TIE = 1e-9  # differences closer than this, relative to the scores, are equal up to rounding


def randomization_of_pairs(
    systems: Sequence[Sequence[Array]], score: ScoreFunction, trials: int = TRIALS, seed: int = SEED
) -> dict[tuple[int, int], float]:
    """Test every two systems by approximate randomisation: (baseline, system) -> two-sided p-value.

    A system is given as one (n, F) array of statistics per training seed. p is (number of trials at least as
    far apart + 1) / (trials + 1).

    With several seeds, the compared quantity is the mean corpus score over seeds. A trial swaps a segment in
    all seeds at once and never swaps seeds of one system: like the bootstrap, the test is about the choice of
    segments. Outputs are paired in order, and each list is repeated up to a common length: seeds 1, 2, 3
    against one baseline are three pairs with it. ValueError if the arrays differ in their number of segments.
    """
    outputs = np.stack(paired_arrays(*systems), axis=1)  # (n, outputs, F)
    n, sums = len(outputs), outputs.sum(axis=0)
    scores = score(sums)
    rows_of_system = [np.arange(part.start, part.stop) for part in outputs_of(systems)]
    pairs, thresholds = {}, {}
    for i, j in combinations(range(len(rows_of_system)), 2):
        count = math.lcm(len(rows_of_system[i]), len(rows_of_system[j]))
        pairs[i, j] = theirs, ours = np.resize(rows_of_system[i], count), np.resize(rows_of_system[j], count)
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
    """Yield chunks (rows, n) of random 0 and 1, together (trials, n).

    They equal `default_rng(seed).integers(2, (trials, n), dtype=bool)`. NumPy takes 32 such draws from each
    random number, the lowest bit first, so chunks of 32 rows give the same draws as one call. Unpacking the
    bits is faster than `integers`.
    """
    rng = np.random.default_rng(seed)
    rows_per_chunk = max(1, _CHUNK_SWAPS // (32 * n)) * 32
    for start in range(0, trials, rows_per_chunk):
        rows = min(rows_per_chunk, trials - start)
        drawn = np.frombuffer(rng.bytes(4 * math.ceil(rows * n / 32)), dtype=np.uint8)
        bits = np.unpackbits(drawn, count=rows * n, bitorder="little")
        yield bits.reshape(rows, n).astype(np.float64)


# Medians with 95 % bootstrap intervals.
#
# Latency: a repetition times every sentence once. Its percentile is taken over the sentences, interpolated
# linearly. The median summarises the repetitions' percentiles, because disturbances of the machine are
# outliers on one side only, with a percentile bootstrap over repetitions. The interval is about the
# percentile *of these sentences on this machine*, as in Domhan et al. 2022 (Table 5), not about other
# sentences.


RESAMPLES = 2000  # of repetitions
MIN_VALUES = 5  # the bootstrap interval of a median covers 52 % for two values, 73 % for three, 93 % for five
FEW_VALUES = f"no interval of the median of fewer than {MIN_VALUES}"


@dataclass(frozen=True)
class MedianInterval:
    value: float
    low: float | None = None  # 95 %; None for too few values
    high: float | None = None


def median_interval(values: Array, resamples: int = RESAMPLES) -> MedianInterval:
    """Return the median of values (n,) with its 95 % bootstrap interval.

    Fewer than `MIN_VALUES` values have no interval: it would be too narrow. ValueError for no values.
    """
    if len(values) == 0:
        raise ValueError("no repetitions to summarise")
    if len(values) < MIN_VALUES:
        return MedianInterval(float(np.median(values)))
    drawn = np.random.default_rng(SEED).choice(values, size=(resamples, len(values)), replace=True)
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return MedianInterval(float(np.median(values)), float(low), float(high))


def pooled_median(groups: Sequence[Array], samples: int = SAMPLES, seed: int = SEED) -> MedianInterval:
    """Return the lower median of all values, with a 95 % bootstrap interval over groups.

    Values of one sentence are not independent, so sentences are groups. Fewer than `MIN_VALUES` groups have
    no interval. ValueError for no values.
    """
    values = np.concatenate([np.asarray(group, dtype=np.float64) for group in groups] or [np.zeros(0)])
    if len(values) == 0:
        raise ValueError("no values to take a median of")
    order = np.argsort(values, kind="stable")
    middle = weighted_median(values[order], np.ones(len(values), dtype=np.int64))
    assert middle is not None
    if len(groups) < MIN_VALUES:
        return MedianInterval(middle)
    values, owner = values[order], np.repeat(np.arange(len(groups)), [len(group) for group in groups])[order]
    rng = np.random.default_rng(seed)
    medians = [
        weighted_median(values, np.bincount(drawn, minlength=len(groups))[owner])
        for drawn in (rng.choice(len(groups), size=len(groups)) for _ in range(samples))
    ]
    # a median is None if only empty groups were drawn
    low, high = percentile_interval(np.array([median for median in medians if median is not None]))
    return MedianInterval(middle, low, high)


def weighted_median(values: Array, times: np.typing.NDArray[np.int64]) -> float | None:
    """Return the lower median of ascending values (n,), each counted `times` (n,); None if nothing counts."""
    ranks = np.cumsum(times)  # of each value's last copy
    if ranks[-1] == 0:
        return None
    return float(values[np.searchsorted(ranks, (ranks[-1] + 1) // 2)])
