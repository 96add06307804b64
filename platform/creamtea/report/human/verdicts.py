"""A rated campaign: its systems' means, their differences from the baseline, and one verdict per pair."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy  # scipy.stats is slow to import, and so is imported where it is first used

from creamtea.contract.step import Column
from creamtea.human.protocols import Protocol
from creamtea.human.results.ratings import Array, Booleans, Integers, Ratings, Standing, estimate_over_pages
from creamtea.report import text
from creamtea.report.model import Cell, Row, Table
from creamtea.stats.estimate import (
    Estimate,
    MeanEstimate,
    Ratio,
    baseline_ratio,
    cluster_means,
    mean_estimate,
)
from creamtea.stats.incomplete import LOOKS as LOOKS_IN_BLOCKS
from creamtea.stats.incomplete import SystemEstimates, last_look
from creamtea.stats.paired import (
    FEW_RATERS,
    FLIPS,
    CrossedComparison,
    PairedComparison,
    compare_paired,
    crossed_comparisons,
    holm,
)
from creamtea.stats.power import POWER
from creamtea.stats.sequential import BURN_IN, LOOKS, State
from creamtea.stats.verdict import Outcome, Verdict, judge, judge_in_blocks
from creamtea.wording import counted


@dataclass(frozen=True)
class RatedCampaign:
    """A campaign's ratings, with the weights, the baseline and the δ of its comparisons."""

    ratings: Ratings
    matrix: Array  # (units, systems): means over raters
    weights: Array  # (units,)
    baseline: int
    delta: float  # the smallest difference that matters, points of the scale

    @property
    def systems(self) -> tuple[str, ...]:
        return self.ratings.campaign.systems

    @property
    def protocol(self) -> Protocol:
        return self.ratings.campaign.protocol

    @cached_property
    def documents(self) -> Integers | None:
        """The document of each unit; None unless intervals and tests are over documents."""
        return self.ratings.documents

    @cached_property
    def has_ratio(self) -> bool:
        """Return True if a percentage of the baseline means something: no score is below 0."""
        return self.protocol.has_ratio and not bool((self.ratings.value < 0).any())

    @cached_property
    def in_blocks(self) -> bool:
        """Return True if a page shows only some systems, drawn for its segment or document."""
        return any(self.ratings.blocks)

    @cached_property
    def is_adaptive(self) -> bool:
        settings = self.ratings.campaign.settings
        return self.in_blocks and (settings.design == "adaptive" or settings.aim)

    @cached_property
    def look(self) -> tuple[int, float] | None:
        """The last look at an adaptive design (`stats.incomplete.last_look`)."""
        campaign = self.ratings.campaign
        return last_look(self.ratings.finished, self.ratings.turns, len(campaign.systems))

    @cached_property
    def estimates(self) -> SystemEstimates | None:
        """The systems' estimates over pages; in an adaptive design over those up to the last look.

        `missing` says why there are none.
        """
        if not self.is_adaptive:
            return estimate_over_pages(self.ratings, self.weights)
        if self.look is None:
            return None
        turns, alpha = self.look
        return estimate_over_pages(
            self.ratings, np.where(self.ratings.turn < turns, self.weights, 0.0), alpha
        )

    @property
    def missing(self) -> str:
        """Why there are no estimates."""
        if self.is_adaptive and self.look is None:
            first, turns = math.ceil(LOOKS_IN_BLOCKS[0] * self.ratings.turns), self.ratings.turns
            if self.ratings.campaign.state == "closed":
                return f"closed before the first of {len(LOOKS_IN_BLOCKS)} looks, over {first:,} of {turns:,}"
            return f"the first of {len(LOOKS_IN_BLOCKS)} looks comes once {first:,} of {turns:,} are rated"
        return "no chain of pages connects all systems yet"

    def points(self, key: str, title: str, note: str = "", better: str = "") -> Column:
        """Return a column of points of the scale, as the protocol shows them."""
        points = self.protocol.points
        return Column(key, title, points.decimals, better, points.factor, points.unit, note=note)

    def shown_delta(self) -> str:
        """Format δ as the columns of points show numbers."""
        return self.protocol.points.text(self.delta)


def with_baseline(ratings: Ratings, study_baseline: str | None) -> RatedCampaign:
    """Join a campaign's ratings with its baseline and its δ.

    The baseline is the campaign's, or else the study's, or else the first system. δ is the campaign's, or
    else the protocol's convention. In an adaptive design units after the last look have no weight.
    """
    campaign = ratings.campaign
    named = campaign.settings.baseline or study_baseline
    baseline = campaign.systems.index(named) if named in campaign.systems else 0
    delta = campaign.settings.delta or campaign.protocol.usual_delta
    judged = RatedCampaign(ratings, ratings.matrix(), ratings.weight, baseline, float(delta))
    # campaigns with `aim` registered tests of all items
    if judged.is_adaptive and not campaign.settings.aim and judged.look is not None:
        judged = _within_units(judged, ratings.turn < judged.look[0])
    return judged


def only_random(judged: RatedCampaign) -> RatedCampaign:
    """Keep the part that was drawn at random; every unit weighs the same."""
    random = _within_units(judged, judged.ratings.random)
    return replace(random, weights=(random.weights > 0).astype(np.float64))


def _within_units(judged: RatedCampaign, chosen: Booleans) -> RatedCampaign:
    """Keep the chosen units: the weights of the others are 0, and their means NaN."""
    matrix = np.where(chosen[:, None], judged.matrix, np.nan)
    return replace(judged, matrix=matrix, weights=np.where(chosen, judged.weights, 0.0))


# ---------------------------------------------------------------- cells


def table(
    key: str, title: str, about: str, heading: str, columns: Sequence[Column], rows: Sequence[Row]
) -> Table:
    """Build a table; omit a column if no row has a cell in it."""
    used = tuple(column for column in columns if any(column.key in row.cells for row in rows))
    filled = (
        replace(row, cells={c.key: row.cells.get(c.key, Cell("absent", "not measured")) for c in used})
        for row in rows
    )
    return Table(key, title, heading, used, tuple(filled), about=about)


def count(number: int) -> Cell:
    return Cell("ok", value=float(number))


def number(value: float | None, reason: str | None = None) -> Cell:
    """Return the cell of a value that has no interval; `reason` says why it is missing."""
    return estimate(Estimate(value, reason=reason if value is None else None))


def estimate(found: Estimate) -> Cell:
    if found.value is None:
        return Cell("absent", found.reason or "nothing to measure")
    return Cell("ok", found.reason or "", value=found.value, low=found.low, high=found.high)


def p_value(p: float | None, reason: str | None = None) -> Cell:
    if p is None:
        return Cell("absent", reason or "no p-value")
    return Cell("ok", value=p, words=text.p_value(p))


# ---------------------------------------------------------------- means

ITEMS = Column("items", "items", 0)
OVER_PAGES = "by least squares over pages; 95 % interval of the distance from the mean of all systems"
OVER_ITEMS = "mean over items of the means over raters, with its 95 % t interval over items"
DOCUMENTS = Column(
    "documents", "documents", 0, note="documents of the items; intervals and tests are over these"
)


@dataclass(frozen=True)
class SystemMean:
    """A system's mean in points over its items, and as a percentage of the baseline's."""

    system: int
    items: int
    ratings: int
    mean: MeanEstimate
    ratio: Ratio | None  # None if the scale has no ratios, and in blocks: few items have both systems


def system_means(judged: RatedCampaign) -> list[SystemMean]:
    """Compute each system's mean: the best comes first, systems without a rating last."""
    ratings, used = judged.ratings, judged.weights > 0
    estimates = judged.estimates if judged.in_blocks else None
    means = []
    for system in range(len(judged.systems)):
        rated = used & ~np.isnan(judged.matrix[:, system])
        own, weights = judged.matrix[rated, system], judged.weights[rated]
        mean = mean_estimate(
            own,
            weights if len(own) and np.ptp(weights) else None,
            clusters=None if judged.documents is None else judged.documents[rated],
            cluster=ratings.together,
        )
        if judged.in_blocks:
            mean = MeanEstimate(reason=judged.missing)
            if estimates is not None:
                ends = (float(end[system]) for end in (estimates.low, estimates.high))
                low, high = (None if np.isnan(end) else end for end in ends)
                mean = MeanEstimate(float(estimates.mean[system]), low, high, estimates.reason)
        scale = judged.protocol.scale
        mean = _within(mean, float(scale.lowest), float(scale.highest))
        ratio = None
        if judged.has_ratio and not judged.in_blocks:
            ratio = Ratio(Estimate(100.0), Estimate(100.0))
        if ratio is not None and system != judged.baseline:
            columns = judged.matrix[:, judged.baseline], judged.matrix[:, system]
            ratio = baseline_ratio(*columns, judged.weights, judged.documents)
        scores = int((rated[ratings.unit] & (ratings.system == system)).sum())
        means.append(SystemMean(system, len(own), scores, mean, ratio))
    return sorted(means, key=lambda each: (each.mean.value is None, -(each.mean.value or 0.0)))


def _within(found: MeanEstimate, lowest: float, highest: float) -> MeanEstimate:
    """Cut the interval at the ends of the scale: no true value lies beyond, so coverage stays the same."""
    if found.value is None or found.low is None or found.high is None:
        return found
    low, high = min(lowest, found.value), max(highest, found.value)
    return replace(found, low=max(found.low, low), high=min(found.high, high))


def means_table(
    judged: RatedCampaign, means: Sequence[SystemMean], key: str, title: str, about: str
) -> Table:
    """Build the table of each system's mean, in points and as a percentage of the baseline's."""
    name, over = judged.systems[judged.baseline], OVER_PAGES if judged.in_blocks else OVER_ITEMS
    columns = [
        ITEMS,
        Column("ratings", "ratings", 0),
        judged.points("mean", judged.protocol.mean_title, over, "higher"),
        Column(
            "percent",
            f"% of {name}",
            1,
            "higher",
            note="ratio of the means over the items rated for both; 95 % interval by the delta method",
        ),
        Column(
            "percent_paired_t",
            f"% of {name}, paired t",
            1,
            "higher",
            note="the same ratio; 95 % interval: the paired-t interval of the difference, divided by the "
            "baseline's mean as if that were known (Domhan et al. 2022)",
        ),
    ]
    rows = []
    for each in means:
        cells = {"items": count(each.items), "ratings": count(each.ratings), "mean": estimate(each.mean)}
        if each.ratio is not None:
            cells |= {
                "percent": estimate(each.ratio.delta),
                "percent_paired_t": estimate(each.ratio.paired_t),
            }
        rows.append(Row(judged.systems[each.system], cells))
    return table(key, title, about, "system", columns, rows)


# ---------------------------------------------------------------- pairs of systems


@dataclass(frozen=True)
class PairTests:
    """Tests of the items that two systems share; Holm has corrected the p-values over the table's pairs."""

    comparison: PairedComparison
    decisive: float | None  # p of the t-test, or of the sign flips if all differences are equal
    signed_rank: float | None
    sign_flip: float | None
    crossed: CrossedComparison
    crossed_p: float | None

    @property
    def t(self) -> float | None:
        return None if self.comparison.t_test.p_value is None else self.decisive


@dataclass(frozen=True)
class Pair:
    """A system against another. `tests`: None in blocks, where few items have both systems."""

    baseline: int
    system: int
    verdict: Verdict
    tests: PairTests | None


def compared(
    judged: RatedCampaign, positions: Sequence[tuple[int, int]], flips: bool, known: Sequence[Pair] = ()
) -> list[Pair]:
    """Compare pairs of systems, (baseline, system) each, with p-values corrected over all of them.

    Without `flips`, the permutation test is omitted. Pairs in `known` are not tested again.
    """
    tests: Sequence[PairTests | None] = [None] * len(positions)
    if not judged.in_blocks or judged.ratings.campaign.settings.aim:  # campaigns with `aim` registered them
        tests = _tested(judged, positions, flips, known)
    return [
        Pair(*place, _verdict(judged, *place, tests_of_pair, len(positions)), tests_of_pair)
        for place, tests_of_pair in zip(positions, tests, strict=True)
    ]


def _tested(
    judged: RatedCampaign, positions: Sequence[tuple[int, int]], flips: bool, known: Sequence[Pair]
) -> list[PairTests]:
    done = {(pair.baseline, pair.system): pair.tests.comparison for pair in known if pair.tests is not None}
    comparisons = [done.get(place) or _compare(judged, *place, flips) for place in positions]
    # if all differences are equal, there is no t; the sign flips decide
    tests = [each.t_test if each.t_test.p_value is not None else each.sign_flip for each in comparisons]
    unit, rater, scores = judged.ratings.side_by_side()
    documents = None if judged.documents is None else judged.documents[unit]
    crossed = crossed_comparisons(unit, rater, scores, positions, judged.weights[unit], documents)
    columns = (
        comparisons,
        holm([test.p_value for test in tests]),
        holm([comparison.signed_rank.p_value for comparison in comparisons]),
        holm([comparison.sign_flip.p_value if flips else None for comparison in comparisons]),
        crossed,
        holm([comparison.difference.p_value for comparison in crossed]),
    )
    return list(itertools.starmap(PairTests, zip(*columns, strict=True)))


def _verdict(
    judged: RatedCampaign, baseline: int, system: int, tests: PairTests | None, pairs: int
) -> Verdict:
    if judged.in_blocks or tests is None:
        return judge_in_blocks(judged.estimates, baseline, system, judged.delta, judged.missing)
    return judge(tests.comparison, judged.delta, tests.decisive, pairs, tests.crossed, tests.crossed_p)


def _compare(judged: RatedCampaign, baseline: int, system: int, flips: bool) -> PairedComparison:
    """Compare two systems. If all differences are equal, always do the sign flips: the verdict needs them."""
    columns = judged.matrix[:, baseline], judged.matrix[:, system], judged.weights
    comparison = compare_paired(*columns, flips=FLIPS if flips else 1, clusters=judged.documents)
    if not flips and comparison.t_test.p_value is None:
        return compare_paired(*columns, clusters=judged.documents)
    return comparison


def against_baseline(judged: RatedCampaign, flips: bool) -> list[Pair]:
    others = (system for system in range(len(judged.systems)) if system != judged.baseline)
    return compared(judged, [(judged.baseline, other) for other in others], flips)


def other_pairs(judged: RatedCampaign, known: Sequence[Pair]) -> list[Pair]:
    """Compare the pairs without the baseline, corrected over all pairs; `known`: the pairs with it."""
    every = list(itertools.combinations(range(len(judged.systems)), 2))
    pairs = compared(judged, every, flips=True, known=known)
    return [pair for pair in pairs if judged.baseline not in (pair.baseline, pair.system)]


def better_pairs(judged: RatedCampaign, known: Sequence[Pair]) -> set[tuple[int, int]]:
    """Return the pairs in which a system is better than the other, the better one first."""
    every = list(itertools.combinations(range(len(judged.systems)), 2))
    pairs = compared(judged, every, flips=False, known=known)
    better = {(pair.system, pair.baseline) for pair in pairs if pair.verdict.outcome is Outcome.BETTER}
    worse = {(pair.baseline, pair.system) for pair in pairs if pair.verdict.outcome is Outcome.WORSE}
    return better | worse


def pair_table(judged: RatedCampaign, pairs: Sequence[Pair], key: str, title: str, about: str) -> Table:
    """Build the table of pairs: by tests of their shared items, or in blocks by all pages."""
    over = "simultaneous 95 % interval"
    if not judged.in_blocks:
        over = "mean over the shared items, 95 % paired-t interval"
    columns = [
        ITEMS,
        DOCUMENTS,
        Column("shared", "score pairs", 0, note="one of each on a page; other pages also contribute"),
        judged.points("difference", "difference", over),
        Column("wins", "wins", 0, note="ratings that prefer the system"),
        Column("ties", "ties", 0),
        Column("losses", "losses", 0),
        Column("p_family", "p", 3, note="family-wise over all pairs of systems"),
        Column("p_t", "p, t-test", 3, note="paired t-test"),
        Column("p_signed_rank", "p, ranks", 3, note="Wilcoxon's test, zeros by Pratt's rule"),
        Column("p_sign_flip", "p, sign flips", 3, note="permutation test of the signs of differences"),
        Column("p_sign", "p, signs", 3, note="sign test of items, or of documents, won and lost"),
        Column("verdict", "verdict", 0),
    ]
    relative = judged.protocol.relative
    sign_tests = holm([_sign_test(judged, pair) if relative and pair.tests else None for pair in pairs])
    unit, _, scores = judged.ratings.side_by_side()
    scores = scores[judged.weights[unit] > 0]  # items without a weight are left out, as in the tests
    rows = []
    for pair, sign_p in zip(pairs, sign_tests, strict=True):
        cells = {} if pair.tests is None else _of_shared_items(pair.tests)
        if judged.in_blocks:
            cells |= _over_pages(judged, pair)
        if relative:
            # single ratings: each row has one rater's scores of both systems on one item
            differences = scores[:, pair.system] - scores[:, pair.baseline]
            tallies = {"wins": differences > 0, "ties": differences == 0, "losses": differences < 0}
            cells |= {name: count(int(rated.sum())) for name, rated in tallies.items()}
            if pair.tests is not None:
                cells["p_sign"] = p_value(sign_p, "no item was won or lost")
        cells["verdict"] = verdict_cell(judged, pair.verdict)
        rows.append(Row(judged.systems[pair.system], cells, f"against {judged.systems[pair.baseline]}"))
    return table(key, title, about, "system", columns, rows)


def _of_shared_items(tests: PairTests) -> dict[str, Cell]:
    comparison = tests.comparison
    cells = {
        "items": count(comparison.items),
        "difference": estimate(comparison.estimate),
        "p_t": p_value(tests.t, comparison.t_test.reason),
        "p_signed_rank": p_value(tests.signed_rank, comparison.signed_rank.reason),
    }
    if comparison.documents is not None:
        cells["documents"] = count(comparison.documents)
    if tests.sign_flip is not None:
        cells["p_sign_flip"] = p_value(tests.sign_flip, comparison.sign_flip.reason)
    return cells


def _over_pages(judged: RatedCampaign, pair: Pair) -> dict[str, Cell]:
    estimates, place = judged.estimates, (pair.system, pair.baseline)
    if estimates is None:
        return {"difference": Cell("absent", judged.missing)}
    difference, half = float(estimates.difference[place]), float(estimates.half[place])
    low, high = (None, None) if estimates.reason else (difference - half, difference + half)
    width = float(judged.protocol.scale.highest - judged.protocol.scale.lowest)
    within = _within(MeanEstimate(difference, low, high, estimates.reason), -width, width)
    return {
        "shared": count(int(estimates.shared[place])),
        "difference": estimate(within),
        "p_family": p_value(None if estimates.reason else float(estimates.p_value[place]), estimates.reason),
    }


def verdict_cell(judged: RatedCampaign, verdict: Verdict) -> Cell:
    """Format a verdict; the note says how many items would decide an undecided pair."""
    delta = judged.shown_delta()
    if verdict.outcome is Outcome.NO_LARGER_DIFFERENCE:
        return Cell("ok", words=verdict.outcome.value.replace("δ", delta))
    if verdict.outcome is not Outcome.UNDECIDED:
        note = f"there is a difference, and it is smaller than {delta}"
        return Cell("ok", note if verdict.within_delta else "", words=verdict.outcome.value)
    if verdict.for_these_raters is not None:
        decided = verdict.for_these_raters.value.replace("δ", delta)
        note = "too few raters, or too much difference, to generalise: add raters rather than items"
        if judged.in_blocks and judged.protocol.max_outputs == 1:
            note = "blocks of single outputs say nothing about other raters: show outputs side by side"
        return Cell("ok", note, words=f"undecided (these raters: {decided})")
    if verdict.items_needed is None:
        why = verdict.reason or "more than a million items would be needed"
        return Cell("ok", why, words="undecided")
    note = (
        f"{verdict.items_needed:,} items would decide it with {100 * POWER:.0f} % power for these raters, if "
        "the true difference is the observed one"
    )
    return Cell("ok", note, value=float(verdict.items_needed), words="undecided")


def _sign_test(judged: RatedCampaign, pair: Pair) -> float | None:
    """Return the p-value of the two-sided binomial test of items won against items lost.

    An item is won by the mean over its raters. If the other tests are over documents, so is this one.
    """
    differences = judged.matrix[:, pair.system] - judged.matrix[:, pair.baseline]
    used = (judged.weights > 0) & ~np.isnan(differences)
    differences = differences[used]
    if judged.documents is not None:
        means, _, _ = cluster_means(differences, judged.weights[used], judged.documents[used])
        differences = means.round(9)  # so that a document with one item won and one lost is a tie
    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    return float(scipy.stats.binomtest(won, won + lost).pvalue) if won + lost else None


# ---------------------------------------------------------------- pages that show some of the systems


def ranks(judged: RatedCampaign) -> Table:
    """Build the table of the systems' ranks, over pages."""
    estimates = judged.estimates
    columns = [
        Column("scores", "scores", 0, note="on pages with other systems"),
        Column("rank_low", "ranks from", 0, note="one more than the number of better systems"),
        Column("rank_high", "ranks to", 0, note="the number of systems minus the worse ones"),
        Column("cluster", "cluster", 0, note="all systems of a cluster are better than all of the next"),
    ]
    rows = []
    for system, name in enumerate(judged.systems):
        cells = {"rank_low": Cell("absent", judged.missing)}
        if estimates is not None:
            cells = {
                "scores": count(int(estimates.scores[system])),
                "rank_low": count(int(estimates.rank_low[system])),
                "rank_high": count(int(estimates.rank_high[system])),
                "cluster": count(int(estimates.cluster[system])),
            }
        rows.append(Row(name, cells))
    return table("ranks", "Ranks over pages", _about_ranks(judged, estimates), "system", columns, rows)


def _about_ranks(judged: RatedCampaign, estimates: SystemEstimates | None) -> str:
    about = (
        "A page shows some of the systems; two that never met are compared through others. The model: a "
        "score is the page's level plus the system's plus an error"
    )
    if judged.protocol.max_outputs == 1:
        about += " plus the rater's severity"
    about += ". With 95 % probability all ranks lie in their ranges at once, and all differences of two "
    about += "systems in their intervals."
    if judged.is_adaptive:
        about += (
            " Systems whose ranks are open come more often, so results are those of the last of "
            f"{len(LOOKS_IN_BLOCKS)} planned looks: with 95 % probability the statements of all looks are "
            "right, whenever you look or end the campaign. Ratings after a look count at the next one."
        )
        if judged.look is not None:
            about += f" This look is over {judged.look[0]:,} of {judged.ratings.turns:,}."
    if judged.protocol.relative:
        about += " A mean is the share of pairs, against all other systems, in which the system is preferred."
    if estimates is None:
        return about
    what = judged.ratings.together if judged.documents is not None else "segment"
    about += f" Errors are over {counted(estimates.clusters, what)}"
    if estimates.raters:
        return f"{about} and {counted(estimates.raters, 'rater')}."
    return f"{about}: they are about these raters."


# ---------------------------------------------------------------- items and raters


def clusters(judged: RatedCampaign, pairs: Sequence[Pair]) -> list[Table]:
    """Build the table that generalises differences to other raters; empty with one rater and in blocks."""
    rows = []
    for pair in () if judged.in_blocks else pairs:
        if pair.tests is not None and pair.tests.crossed.raters > 1:
            crossed, difference = pair.tests.crossed, pair.tests.crossed.difference
            cells = {
                "items": count(crossed.items),
                "raters": count(crossed.raters),
                "difference": estimate(difference),
                "p_cluster": p_value(pair.tests.crossed_p, difference.reason),
            }
            if judged.has_ratio:
                cells["percent"] = estimate(crossed.ratio)
            rows.append(Row(judged.systems[pair.system], cells))
    if not rows:
        return []
    columns = [
        ITEMS,
        Column("raters", "raters", 0),
        judged.points("difference", "difference", "95 % t interval over items and raters"),
        Column("percent", f"% of {judged.systems[judged.baseline]}", 1),
        Column("p_cluster", "p", 3),
    ]
    about = (
        "How far a difference holds for other items and other raters: variances of crossed items and raters "
        "(Obuchowski and Rockette 1995; Hillis 2007), critical values by Cochran and Cox. A verdict needs "
        f"this to agree. Fewer than {FEW_RATERS} raters say little about how raters differ: the interval is "
        "then wide. p: after Holm's correction."
    )
    return [table("clusters", "Generalised to other raters", about, "system", columns, rows)]


# ---------------------------------------------------------------- before the end

# Items come in an order drawn at the beginning: what is complete so far is a random part of the whole.
# Unlike the other tables' tests, these hold over all looks together (`stats.sequential`).
LOOKED = (
    "Differences, intervals and p-values that hold whenever you look: over documents (or single segments) "
    "with all their ratings. Better, worse and no difference > δ are settled: if you close the campaign once "
    "every comparison is, a false better or worse has a chance of 5 % over all comparisons together, and a "
    "false no difference > δ one of 5 % in each. (A group-sequential test with "
    f"{LOOKS} looks, from {BURN_IN} documents or segments on; the power family of error spending, Kim and "
    "DeMets 1987. Ratings after a look count at the next look.) They are about these raters. "
    "p: after Holm's correction."
)


def looks(judged: RatedCampaign, standings: Sequence[Standing]) -> Table:
    """Build the table of the comparisons as they stand before the end."""
    rows = []
    for standing in standings:
        look = standing.look
        few = f"shown once {min(BURN_IN, standing.planned)} are complete"
        looked = look.low is not None or look.state.settled
        words = look.state.value.replace("δ", judged.shown_delta()) if looked else "too early"
        if look.state is State.HOPELESS:
            ended = standing.complete == standing.planned
            words = "not decided" if ended else "undecided; the planned ratings are unlikely to decide it"
        difference = Estimate(look.mean, look.low, look.high) if looked else Estimate(reason=few)
        cells = {
            "units": count(standing.complete),
            "planned": count(standing.planned),
            "difference": estimate(difference),
            "p_any": p_value(look.p_value if looked else None, few),
            "state": Cell("ok", words=words),
        }
        rows.append(Row(judged.systems[standing.system], cells))
    columns = [
        Column("units", "complete", 0, note="documents, or single segments"),
        Column("planned", "planned", 0),
        judged.points(
            "difference", "difference", "95 % repeated confidence interval: it holds at all looks together"
        ),
        Column("p_any", "p, any time", 3),
        Column("state", "so far", 0),
    ]
    title = f"If you look before the end, against {judged.systems[judged.baseline]}"
    return table("looks", title, LOOKED, "system", columns, rows)
