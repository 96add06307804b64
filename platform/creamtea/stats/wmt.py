"""WMT mode: z-scores per rater, Mann-Whitney wins, rank ranges and clusters, as in WMT's findings papers.

Use it only to reproduce published tables (Akhbardeh et al. 2021, Kocmi et al. 2022): ratings of one item are
paired, and the unpaired Mann-Whitney test misses most true differences (`creamtea.stats.paired`; tests/stats
measures how many).

The rules differ between campaigns and years (`RULES`). Sources: the released judgements, tables of wins and
clusters.csv of wmt-conference/wmt21-news-systems and wmt22-news-systems (crowd), the latter's
humaneval/DA+SQM/make_rankings.py (Appraise), humeval/tools.py of wmt24-news-systems (ESA and MQM), and
humeval/02b-analyze_results.py of wmt26-general-mt (contrastive ESA). Unlike the scripts, systems are keyed by
their position, never by a score: two systems of equal means both keep their row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # imports the slow scipy.stats only when it is first used
from numpy.typing import ArrayLike, NDArray

from creamtea.stats.estimate import ROUNDING, Array, numbered
from creamtea.stats.paired import SIGNIFICANT

RESAMPLES = 100  # bootstrap samples, as in WMT 2026
RATED, REPEAT, BAD = 0, 1, 2  # what was rated: a system's output, an exact repeat, a bad reference


@dataclass(frozen=True)
class WmtRule:
    """The choices that differ between years of WMT.

    - `standardised_by`: the ratings that determine a rater's mean and deviation; none: scores count as they
      are.
    - `repeats`: whether ratings of repeats count in a segment's mean.
    - `again`: which scores count if a rater rated an output again (not as a control): each, their mean as one
      score, or the last.
    - `flat_raters`: whether raters who give one score throughout count (with z = 0).
    - `matched`: whether two systems are compared only on segments rated for both.
    - `higher_mean`: whether a win needs a higher mean.
    - `test`: the one-sided Mann-Whitney test, the two-sided signed-rank test on the segments rated for both,
      or a bootstrap (`bootstrap_better`).
    - `domains`: whether means and p-values are computed per domain, then averaged and combined
      (`combined_p`), if domains are known.
    - `line`: a cluster ends where every system above beats every one below ("all beaten"), where the last
      system has as many wins as there are systems below ("own wins"), or where the fewest wins so far are as
      many ("fewest wins").
    """

    name: str
    title: str
    standardised_by: Literal["all", "systems and repeats", "systems", "none"]
    repeats: bool
    again: Literal["each", "mean", "last"]
    flat_raters: bool = True
    matched: bool = False
    higher_mean: bool = False
    test: Literal["Mann-Whitney", "signed-rank", "bootstrap"] = "Mann-Whitney"
    line: Literal["all beaten", "own wins", "fewest wins"] = "all beaten"
    domains: bool = False


USUAL = WmtRule("usual", "creamtea's campaigns", "systems and repeats", repeats=False, again="mean")
RULES = {
    rule.name: rule
    for rule in (
        USUAL,
        WmtRule("crowd", "crowd DA, 2017 to 2022", "all", repeats=True, again="each", line="own wins"),
        WmtRule(
            "da-sqm",
            "DA+SQM with Appraise, 2022 and 2023",
            "systems",
            repeats=False,
            again="each",
            flat_raters=False,
            matched=True,
            higher_mean=True,
            line="fewest wins",
        ),
        WmtRule(
            "esa",
            "ESA and MQM, 2024",
            "none",
            repeats=False,
            again="last",
            domains=True,
            matched=True,
            higher_mean=True,
            test="signed-rank",
        ),
        WmtRule("2026", "contrastive ESA, 2026", "none", repeats=False, again="each", test="bootstrap"),
    )
}


@dataclass(frozen=True)
class WmtSystem:
    """A row of the table.

    `raw` and `z` are averaged per segment, then over the segments (per domain first with `WmtRule.domains`).
    """

    position: int
    raw: float | None = None  # points; None for a system without ratings, which has no rank either
    z: float | None = None  # None if scores are not standardised
    segments: int = 0
    wins: int = 0
    beaten: tuple[int, ...] = ()  # positions of the systems that it wins against
    losses: int = 0
    rank_low: int | None = None  # losses + 1
    rank_high: int | None = None  # systems − wins
    cluster: int | None = None  # 1 is the best


def z_scores(
    rater: ArrayLike, score: ArrayLike, standard: ArrayLike | None = None, flat: float = 0.0
) -> Array:
    """Standardise scores per rater: (x − μ)/s, s the sample standard deviation.

    `standard` (m,) marks the ratings that determine μ and s, by default all. z is `flat` if s is 0 or only
    one rating is marked. NaN scores stay NaN and do not count; a rater without marked ratings has NaN
    throughout.
    """
    raters, scores = np.asarray(rater), np.asarray(score, dtype=np.float64)
    if raters.shape != scores.shape or np.isinf(scores).any():
        raise ValueError("every score needs its rater, and must be finite or NaN")
    counts = ~np.isnan(scores) if standard is None else ~np.isnan(scores) & np.asarray(standard, dtype=bool)
    z = np.full(scores.shape, np.nan)
    for label in np.unique(raters):
        rows = raters == label
        of_rater = scores[rows & counts]
        if len(of_rater) > 0:
            equal = float(np.ptp(of_rater)) <= ROUNDING * float(np.abs(of_rater).max())
            z[rows] = flat if equal else (scores[rows] - of_rater.mean()) / np.std(of_rater, ddof=1)
    z[np.isnan(scores)] = np.nan
    return z


def wmt_ranking(
    rater: ArrayLike,
    system: ArrayLike,
    segment: ArrayLike,
    score: ArrayLike,
    systems: int,
    kind: ArrayLike | None = None,
    rule: WmtRule = USUAL,
    left_out: Collection[int] = (),
    domain: ArrayLike | None = None,
    moment: ArrayLike | None = None,
) -> list[WmtSystem]:
    """Rank systems as WMT does, from the best mean z down, equal means by position.

    Long arrays (m,): rater and segment by any label, system by its position, 0 … systems − 1. `kind` (m,):
    RATED, REPEAT or BAD; by default all are ratings of systems. A win of a over b is a one-sided Mann-Whitney
    p < 0.05 on their segments' mean z (scipy's `mannwhitneyu`: exact up to 8 segments without ties, else the
    normal approximation with continuity correction).

    `left_out`: positions of systems that do not compete (references). Their ratings only count when their
    raters' scores are standardised, and they have no row. `domain` (m,): the segment's domain, by any label;
    None if unknown or the same for all. `moment` (m,): when each rating was given, as ascending numbers; for
    equal moments, and by default, the later row is the later rating.
    """
    raters, positions, segments = np.asarray(rater), np.asarray(system), np.asarray(segment)
    scores = np.asarray(score, dtype=np.float64)
    moments = np.zeros(scores.shape) if moment is None else np.asarray(moment, dtype=np.float64)
    kinds = np.zeros(scores.shape, dtype=np.int64) if kind is None else np.asarray(kind)
    of_domain = np.zeros(scores.shape, dtype=np.int64)
    if rule.domains and domain is not None:
        of_domain = np.unique(np.asarray(domain), return_inverse=True)[1]
    columns = (raters, positions, segments, scores, kinds, of_domain, moments)
    if len({column.shape for column in columns}) > 1:
        raise ValueError("rater, system, segment, score, kind, domain and moment must have one length")
    if ((positions < 0) | (positions >= systems)).any():
        raise ValueError(f"systems are the positions 0 to {systems - 1}")
    # one number for each rater and output
    output = np.unique(
        np.stack([numbered(raters), positions, numbered(segments)]), axis=1, return_inverse=True
    )[1]
    if rule.again == "last":
        scores = np.where(_replaced(output, moments, (kinds == RATED) & ~np.isnan(scores)), np.nan, scores)
    z = _standardised(raters, scores, kinds, rule)
    counted = (kinds <= (REPEAT if rule.repeats else RATED)) & ~np.isnan(z)
    means = {
        s: _segment_means(
            segments[rows],
            np.stack([scores[rows], z[rows]], axis=1),
            of_domain[rows],
            output[rows] if rule.again == "mean" else None,
        )
        for s in range(systems)
        if s not in left_out and (rows := counted & (positions == s)).any()
    }
    raw, mean_z = ({s: _mean(of_system, column) for s, of_system in means.items()} for column in (0, 1))
    beats = np.zeros((systems, systems), dtype=bool)
    for a in means:
        for b in means:
            if a != b and (mean_z[a] > mean_z[b] or not rule.higher_mean):
                beats[a, b] = _wins(means[a], means[b], rule)

    order = sorted(means, key=lambda s: (-mean_z[s], s))
    clusters = cluster_numbers(beats[np.ix_(order, order)], rule)
    wins, losses = beats.sum(axis=1), beats.sum(axis=0)
    rows = [
        WmtSystem(
            position=s,
            raw=raw[s],
            z=None if rule.standardised_by == "none" else mean_z[s],
            segments=len(means[s].segment),
            wins=int(wins[s]),
            beaten=tuple(np.flatnonzero(beats[s]).tolist()),
            losses=int(losses[s]),
            rank_low=int(losses[s]) + 1,
            rank_high=len(means) - int(wins[s]),
            cluster=cluster,
        )
        for s, cluster in zip(order, clusters, strict=True)
    ]
    unrated = [WmtSystem(s) for s in range(systems) if s not in raw and s not in left_out]
    return [*rows, *unrated]


def _standardised(
    raters: NDArray[np.generic], scores: Array, kinds: NDArray[np.int64], rule: WmtRule
) -> Array:
    """Return each rating's z (m,), or its score if nothing is standardised; NaN if it does not count."""
    if rule.standardised_by == "none":
        return scores
    standard = {
        "all": np.ones(kinds.shape, dtype=bool),
        "systems and repeats": kinds <= REPEAT,
        "systems": kinds == RATED,
    }[rule.standardised_by]
    return z_scores(raters, scores, standard, flat=0.0 if rule.flat_raters else np.nan)


@dataclass(frozen=True)
class Means:
    """Means of a system's segments."""

    segment: NDArray[np.generic]  # labels, ascending
    value: Array  # (segments, 2): raw and standardised
    domain: NDArray[np.int64]


def _segment_means(
    segments: NDArray[np.generic],
    values: Array,
    domains: NDArray[np.int64],
    outputs: NDArray[np.int64] | None,
) -> Means:
    """Average values (m, 2) per segment, first over equal `outputs` (m,): one number per rater and output."""
    if outputs is not None:
        first, values = _averaged(outputs, values)
        segments, domains = segments[first], domains[first]
    first, values = _averaged(segments, values)
    return Means(segments[first], values, domains[first])


def _averaged(labels: NDArray[np.generic], values: Array) -> tuple[NDArray[np.int64], Array]:
    """Return the first row of each label, ascending, and the means (labels, 2) of values (m, 2)."""
    _, first, row = np.unique(labels, return_index=True, return_inverse=True)
    counts = np.bincount(row)
    return first, np.stack([np.bincount(row, weights=column) / counts for column in values.T], axis=1)


def _replaced(output: NDArray[np.int64], moments: Array, counted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return (m,) whether a counted rating was replaced: the rater rated the output again later."""
    rows = np.flatnonzero(counted)
    rows = rows[np.lexsort((rows, moments[rows], output[rows]))]
    replaced = np.zeros(counted.shape, dtype=bool)
    replaced[rows[:-1]] = output[rows[:-1]] == output[rows[1:]]
    return replaced


def _mean(means: Means, column: int) -> float:
    """Average the domains' means."""
    domains = np.unique(means.domain)
    return float(np.mean([means.value[means.domain == domain, column].mean() for domain in domains]))


def _wins(ours: Means, theirs: Means, rule: WmtRule) -> bool:
    own, others = ours.value[:, 1], theirs.value[:, 1]
    if rule.test == "bootstrap":
        common, our_rows, their_rows = np.intersect1d(ours.segment, theirs.segment, return_indices=True)
        return bootstrap_better(own, others, own[our_rows] - others[their_rows] if len(common) else None)
    domains = ours.domain
    if rule.matched:
        both = np.isin(ours.segment, theirs.segment)
        own, others, domains = own[both], others[np.isin(theirs.segment, ours.segment)], domains[both]
    if rule.test == "signed-rank":
        differences = own - others
        of_domains = [differences[domains == domain] for domain in np.unique(domains)]
        # scipy leaves out differences of 0
        p = combined_p([float(scipy.stats.wilcoxon(d).pvalue) if d.any() else 1.0 for d in of_domains])
    elif not len(own) or float(np.ptp([*own, *others])) == 0.0:
        p = 1.0  # the statistic has no variance
    else:
        p = float(scipy.stats.mannwhitneyu(own, others, alternative="greater").pvalue)
    return p < SIGNIFICANT


def bootstrap_better(ours: Array, theirs: Array, differences: Array | None) -> bool:
    """Return True if `ours` is better by WMT 2026's rule.

    Over 100 resamples, the 5th percentile must be above 0 either for the mean paired difference *or* for the
    difference of the two independently resampled means. These are two one-sided tests at 5 % for every pair
    of systems, without a correction. The draws are always the same.
    """
    draw = np.random.default_rng(0)

    def means(values: Array) -> Array:
        resampled: Array = values[draw.integers(len(values), size=(RESAMPLES, len(values)))].mean(axis=1)
        return resampled

    unpaired = means(ours) - means(theirs)
    paired = unpaired if differences is None else means(differences)
    return bool(max(np.quantile(unpaired, SIGNIFICANT), np.quantile(paired, SIGNIFICANT)) > ROUNDING)


def combined_p(p: Collection[float]) -> float:
    """Combine p-values by Stouffer's z = Σ Φ⁻¹(1 − p) / √n, equally weighted; return its p.

    Return 1 without p-values, and if one of them is 1. A single p stays as it is. WMT's script combines
    two-sided p-values, which do not say which system a domain favours.
    """
    if len(p) < 2:
        return next(iter(p), 1.0)
    z = scipy.stats.norm.isf(np.fromiter(p, dtype=np.float64))
    return 1.0 if np.isneginf(z).any() else float(scipy.stats.norm.sf(z.sum() / np.sqrt(len(z))))


def cluster_numbers(beats: NDArray[np.bool_], rule: WmtRule = USUAL) -> list[int]:
    """Return each system's cluster number, best first; `beats` (n, n) has the systems in the same order."""
    clusters, current, wins = [], 1, beats.sum(axis=1)
    for i in range(len(beats)):
        clusters.append(current)
        below = len(beats) - (i + 1)
        ends = {
            "all beaten": bool(beats[: i + 1, i + 1 :].all()),
            "own wins": wins[i] == below,
            "fewest wins": wins[: i + 1].min() == below,
        }[rule.line]
        if below and ends:
            current += 1
    return clusters
