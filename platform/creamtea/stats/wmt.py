"""WMT mode: z-scores per rater, Mann-Whitney wins, rank ranges and clusters, as in WMT's findings papers.

To reproduce published tables (Akhbardeh et al. 2021, Kocmi et al. 2022), by name and for nothing else:
ratings of one item are paired, and the unpaired Mann-Whitney test misses most true differences
(`creamtea.stats.paired`, and tests/stats for by how much).

Differences from the scripts: systems are keyed by their position, never by a score (two systems of equal
means both keep their row), and a standard deviation is replaced by 1 only where it is 0, not below 1 (on a
scale of 1–6 that would leave nothing standardised). A win needs no higher mean, as in the tables of 2021.
Those end a cluster where the system above the line has as many wins as there are systems below, whomever it
beats (wmt-conference/wmt21-news-systems: one line more in de-en, one less in hi-bn). The script of 2022
(wmt-conference/wmt22-news-systems, humaneval/DA+SQM/make_rankings.py) asks for a higher mean, leaves out
raters of no spread, and compares two systems on the segments rated for both unless --include-unmatched is
given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from creamtea.stats.estimate import ROUNDING, Array

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class WmtSystem:
    """A row of the table. `raw` and `z` are means over segments of the means over a segment's ratings."""

    position: int
    raw: float | None = None  # points; None for a system without ratings, which has no rank either
    z: float | None = None
    segments: int = 0
    wins: int = 0
    losses: int = 0
    rank_low: int | None = None  # losses + 1
    rank_high: int | None = None  # systems − wins
    cluster: int | None = None  # 1 is the best


def z_scores(rater: ArrayLike, score: ArrayLike) -> Array:
    """(x − μ)/s per rater, s the sample standard deviation of all ratings given; 0 where s is 0 or there is
    one rating.

    Pass a rater's ratings of system and repeat items, not of bad references, which pull μ down. NaN scores
    stay NaN and are not counted.
    """
    raters, scores = np.asarray(rater), np.asarray(score, dtype=np.float64)
    if raters.shape != scores.shape or np.isinf(scores).any():
        raise ValueError("every score needs its rater, and must be finite or NaN")
    z = np.full(scores.shape, np.nan)
    for label in np.unique(raters):
        rows = (raters == label) & ~np.isnan(scores)
        if rows.any():
            own = scores[rows]
            flat = float(np.ptp(own)) <= ROUNDING * float(np.abs(own).max())
            z[rows] = 0.0 if flat else (own - own.mean()) / np.std(own, ddof=1)
    return z


def wmt_ranking(
    rater: ArrayLike,
    system: ArrayLike,
    segment: ArrayLike,
    score: ArrayLike,
    systems: int,
    repeat: ArrayLike | None = None,
) -> list[WmtSystem]:
    """The WMT table from the best z down (equal ones by position), of long arrays (m,): rater and segment by
    any label, system by its position, 0 … systems − 1.

    `repeat` (m,) marks ratings of exact repeats: they count for a rater's μ and s, not for a segment's mean.
    A win of a over b is a one-sided Mann-Whitney p < 0.05 on their segments' mean z (scipy's `mannwhitneyu`:
    exact up to 8 segments without ties, else the normal approximation with continuity correction). A cluster
    ends below a system iff every system down to it beats every one further down. Segments are not matched
    between systems.
    """
    raters, positions, segments = np.asarray(rater), np.asarray(system), np.asarray(segment)
    scores = np.asarray(score, dtype=np.float64)
    repeats = np.zeros(scores.shape, dtype=bool) if repeat is None else np.asarray(repeat, dtype=bool)
    if not raters.shape == positions.shape == segments.shape == scores.shape == repeats.shape:
        raise ValueError("rater, system, segment, score and repeat must have one length")
    if ((positions < 0) | (positions >= systems)).any():
        raise ValueError(f"systems are the positions 0 to {systems - 1}")
    z = z_scores(raters, scores)
    counted = ~repeats & ~np.isnan(scores)
    means = [
        _segment_means(segments[rows], np.stack([scores[rows], z[rows]], axis=1))
        for rows in (counted & (positions == s) for s in range(systems))
    ]  # per system (segments, 2)
    rated = [s for s in range(systems) if len(means[s])]
    raw = {s: float(means[s][:, 0].mean()) for s in rated}
    mean_z = {s: float(means[s][:, 1].mean()) for s in rated}
    beats = np.zeros((systems, systems), dtype=bool)
    for a in rated:
        for b in rated:
            if a != b:
                beats[a, b] = _mann_whitney(means[a][:, 1], means[b][:, 1]) < SIGNIFICANT

    order = sorted(rated, key=lambda s: (-mean_z[s], s))
    clusters = cluster_numbers(beats[np.ix_(order, order)])
    wins, losses = beats.sum(axis=1), beats.sum(axis=0)
    rows = [
        WmtSystem(
            position=s,
            raw=raw[s],
            z=mean_z[s],
            segments=len(means[s]),
            wins=int(wins[s]),
            losses=int(losses[s]),
            rank_low=int(losses[s]) + 1,
            rank_high=len(rated) - int(wins[s]),
            cluster=cluster,
        )
        for s, cluster in zip(order, clusters, strict=True)
    ]
    unrated = [WmtSystem(s) for s in range(systems) if s not in raw]
    return [*rows, *unrated]


def _segment_means(segments: NDArray[np.generic], values: Array) -> Array:
    """values (m, 2) averaged per segment, in the order of the segments' labels."""
    _, of_segment = np.unique(segments, return_inverse=True)
    counts = np.bincount(of_segment)
    return np.stack([np.bincount(of_segment, weights=column) / counts for column in values.T], axis=1)


def _mann_whitney(ours: Array, theirs: Array) -> float:
    """One-sided p, ours greater; 1 where all are equal and the statistic has no variance."""
    if float(np.ptp([*ours, *theirs])) == 0.0:
        return 1.0
    return float(stats.mannwhitneyu(ours, theirs, alternative="greater").pvalue)


def cluster_numbers(beats: NDArray[np.bool_]) -> list[int]:
    """The cluster of each system, best first, from who beats whom in that order: (n, n) -> n numbers."""
    clusters, current = [], 1
    for i in range(len(beats)):
        clusters.append(current)
        if i + 1 < len(beats) and beats[: i + 1, i + 1 :].all():
            current += 1
    return clusters
