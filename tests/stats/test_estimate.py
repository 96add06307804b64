"""Means, shares, medians and ratios: against scipy, by hand, and how often their intervals hold."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import interval_coverage
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from creamtea.stats.estimate import (
    ClusterMean,
    Estimate,
    baseline_ratio,
    cluster_mean,
    clustered_interval,
    effective_clusters,
    logit_interval,
    mean_estimate,
    positive_estimate,
    variance_of_mean,
    wilson_interval,
)
from creamtea.stats.paired import compare_paired, crossed_comparisons
from creamtea.stats.resampling import (
    MIN_VALUES,
    MedianInterval,
    median_interval,
    percentile_interval,
    pooled_median,
)

DOCUMENTS, LENGTH = 8, 5


def scores(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Documents of five segments, scores of two systems: (40,) each."""
    rng = np.random.default_rng(seed)
    document = np.repeat(np.arange(DOCUMENTS), LENGTH)
    level = rng.normal(60, 10, DOCUMENTS)[document]
    systems = level + rng.normal(0, 5, (2, DOCUMENTS))[:, document] + rng.normal(0, 4, (2, len(document)))
    return document, systems[0], systems[1]


def test_documents_of_one_length_are_the_t_test_of_their_means() -> None:
    document, baseline, system = scores(1)
    found = compare_paired(baseline, system, clusters=document)
    means = (system - baseline).reshape(DOCUMENTS, LENGTH).mean(axis=1)
    expected = stats.ttest_1samp(means, 0)
    interval = expected.confidence_interval()
    assert (found.items, found.documents) == (40, DOCUMENTS)
    assert found.t_test.p_value == pytest.approx(float(expected.pvalue))
    assert (found.estimate.low, found.estimate.high) == pytest.approx((interval.low, interval.high))
    assert found.signed_rank.p_value == pytest.approx(float(stats.wilcoxon(means).pvalue))
    ratio = baseline_ratio(baseline, system, clusters=document)
    share = 100 / baseline.mean()
    assert ratio.paired_t.low == pytest.approx(100 + share * interval.low)


def test_the_mean_is_that_of_the_segments_whatever_the_documents_lengths() -> None:
    document, baseline, system = scores(2)
    kept = np.arange(40) % 7 != 3
    found = compare_paired(baseline[kept], system[kept], clusters=document[kept])
    assert found.estimate.value == pytest.approx(float((system - baseline)[kept].mean()))
    why = "the documents weigh differently; the signed-rank test takes no weights"
    assert found.signed_rank.reason == why


@given(
    st.lists(st.tuples(st.floats(0.05, 3), st.floats(0.3, 2)), min_size=2, max_size=12), st.integers(0, 99)
)
def test_variance_and_degrees_of_freedom_by_the_matrices_themselves(
    parts: list[tuple[float, float]], seed: int
) -> None:
    """Of values whose weights and variances differ."""
    w, v = np.array(parts).T
    n, x = len(w), np.random.default_rng(seed).normal(0, 1, len(w))
    w = w / w.sum()
    centring = np.eye(n) - np.outer(np.ones(n), w)
    form = centring.T @ np.diag(w**2) @ centring
    variance = (x @ form @ x) * (w**2 * v).sum() / np.trace(form @ np.diag(v))
    degrees = np.trace(form @ np.diag(v)) ** 2 / np.trace(form @ np.diag(v) @ form @ np.diag(v))
    assert variance_of_mean(x, 5 * w, v) == pytest.approx((variance, degrees), rel=1e-6)
    alike = variance_of_mean(x, np.full(n, 7.0))
    assert alike == pytest.approx((x.var(ddof=1) / n, n - 1))


def test_documents_of_one_segment_change_nothing_and_one_says_nothing_of_others() -> None:
    _, baseline, system = scores(3)
    alone = np.arange(40)
    assert compare_paired(baseline, system, clusters=alone) == compare_paired(baseline, system)
    assert mean_estimate(system, clusters=alone) == mean_estimate(system)
    found = mean_estimate([1.0, 2.0, 4.0], clusters=[7, 7, 7])
    assert (found.value, found.low) == (pytest.approx(7 / 3), None)
    assert found.reason == "only one document: no spread to judge by"


def test_crossed_documents_and_raters_are_those_of_one_row_a_document() -> None:
    """Documents of one length, each by two raters: a document's mean is as good as its segments."""
    document, baseline, system = scores(4)
    rng = np.random.default_rng(4)
    item = np.repeat(np.arange(40), 2)
    rater = (document[item] + np.tile([0, 1], 40)) % 4
    rows = np.stack([baseline[item], system[item]], axis=1) + rng.normal(0, 3, (80, 2))
    found = crossed_comparisons(item, rater, rows, [(0, 1)], clusters=document[item])[0]
    cell, where = np.unique(document[item] * 4 + rater, return_inverse=True)
    means = np.stack([np.bincount(where, column) / np.bincount(where) for column in rows.T], axis=1)
    expected = crossed_comparisons(cell // 4, cell % 4, means, [(0, 1)])[0]
    assert (found.items, expected.items) == (40, DOCUMENTS)
    assert found.difference.standard_error == pytest.approx(expected.difference.standard_error)
    assert found.difference.p_value == pytest.approx(expected.difference.p_value)
    assert (found.ratio.low, found.ratio.high) == pytest.approx((expected.ratio.low, expected.ratio.high))
    alone = crossed_comparisons(item, rater, rows, [(0, 1)])[0]
    assert (alone.difference.standard_error or 0) < (found.difference.standard_error or 0)


@pytest.mark.slow
@pytest.mark.parametrize("raters", [0, 6])
def test_false_alarms_and_coverage_with_documents_of_unlike_length(raters: int) -> None:
    """bench/false_alarms.py in small: over segments 16 % of equal systems would differ."""
    rng = np.random.default_rng(7)
    alarms = covered = naive = 0
    campaigns = 300
    for _ in range(campaigns):
        sizes = rng.integers(1, 12, 30)
        document = np.repeat(np.arange(30), sizes)
        points = rng.normal(0, 6, 30)[document] + rng.normal(0, 12, len(document))
        if raters:
            views = rng.normal(0, 2, raters)
            rater = (np.arange(30) % raters)[document]
            rows = np.stack([np.zeros(len(document)), points + views[rater]], axis=1)
            item = np.arange(len(document))
            found = crossed_comparisons(item, rater, rows, [(0, 1)], clusters=document)[0].difference
            p, low, high = found.p_value, found.low, found.high
        else:
            mean = mean_estimate(points, clusters=document)
            p, low, high = mean.t_test(), mean.low, mean.high
        alarms += (p or 1.0) < 0.05
        covered += (low or 0.0) <= 0.0 <= (high or 0.0)
        naive += (mean_estimate(points).t_test() or 1.0) < 0.05
    assert 0.025 <= alarms / campaigns <= 0.075
    assert 0.925 <= covered / campaigns <= 0.975
    assert naive / campaigns > 0.1


def test_of_single_cases_it_is_the_t_interval_of_a_mean() -> None:
    values = np.random.default_rng(1).normal(0.3, 1.0, 30)
    found = cluster_mean(values, np.ones(30))
    interval = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(interval)
    assert found.p_value == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue)


def test_by_hand() -> None:
    """Totals 3 and 1 of 4 and 2 cases: 2/3; residuals 1/3 and -1/3, which count 3 and 3/2 times."""
    found = cluster_mean([3, 1], [4, 2])
    freedom = 36 / 20 - 1
    half = stats.t.ppf(0.975, freedom) * np.sqrt(4.5 / 9) / 6
    assert found.value == pytest.approx(2 / 3)
    assert (found.low, found.high) == pytest.approx((2 / 3 - half, 2 / 3 + half))


def test_clusters_that_weigh_unequally_count_as_fewer() -> None:
    assert effective_clusters([5] * 7) == pytest.approx(7)
    assert effective_clusters([100, 1, 1]) == pytest.approx(102**2 / 10002)


def test_one_cluster_says_nothing_of_others_nor_do_clusters_that_are_all_alike() -> None:
    assert cluster_mean([1], [4]) == ClusterMean(0.25, reason="only one cluster: no spread to judge by")
    sizes = np.array([2, 3, 41])
    for times in (0.0, 1.0, 0.7):
        found = cluster_mean(times * sizes, sizes, "idiom")
        assert found.value == pytest.approx(times)
        assert found.reason == "all 3 idioms have the same value: no spread to judge by"


@pytest.mark.parametrize("sizes", [[5] * 30, [400, 100, 60, 50, 40, 30] + [5] * 60])
def test_it_covers_a_difference(sizes: list[int]) -> None:
    """Of two selections that reach equally much, where every occurrence of an idiom is like the others."""
    draw, size = np.random.default_rng(3), np.array(sizes)
    covered, alarms = 0, 0
    for _ in range(500):
        found = cluster_mean(size * draw.normal(0.0, 0.3, len(size)), size)
        covered += found.low <= 0.0 <= found.high
        alarms += found.p_value < 0.05
    assert 0.93 <= covered / 500 <= 0.985
    assert alarms == 500 - covered


def test_single_cases_have_nearly_wilsons_interval() -> None:
    counts = [1] * 60 + [0] * 140
    assert clustered_interval(counts, [1] * 200) == pytest.approx(wilson_interval(60, 200), abs=0.002)


def test_cases_that_only_repeat_their_cluster_count_once() -> None:
    counts = [1] * 30 + [0] * 70
    single = clustered_interval(counts, [1] * 100)
    assert clustered_interval([5 * count for count in counts], [5] * 100) == pytest.approx(single)


def test_shares_of_0_and_1_have_room() -> None:
    low, high = clustered_interval([0] * 20, [7] * 20)
    assert low == 0.0
    assert high == pytest.approx(wilson_interval(0, 20)[1], abs=0.03)
    assert clustered_interval([7] * 20, [7] * 20) == pytest.approx((1 - high, 1.0))
    assert clustered_interval([3], [4]) == (0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "together"), [(0.1, 0.5), (0.4, 0.0), (0.4, 0.7), (0.95, 0.3)])
def test_it_covers(share: float, together: float) -> None:
    """Clusters of 1 to 6 cases, each a copy of its cluster's with the probability `together`."""
    draw = np.random.default_rng(7)
    covered = 0
    for _ in range(500):
        sizes = draw.integers(1, 7, 40)
        own = draw.random(40) < share
        counts = [
            int(np.where(draw.random(size) < together, first, draw.random(size) < share).sum())
            for size, first in zip(sizes, own, strict=True)
        ]
        low, high = clustered_interval(counts, sizes.tolist())
        covered += low <= share <= high
    assert 0.925 <= covered / 500 <= 0.99


@pytest.mark.parametrize("clusters", [10, 30, 68])
@pytest.mark.parametrize("share", [0.6, 0.9, 0.98])
def test_it_covers_where_one_cluster_is_a_third(clusters: int, share: float) -> None:
    """Beta-binomial clusters with an intraclass correlation of 0.4, as idioms of a test set may have."""
    draw, together = np.random.default_rng(5), 0.4
    covered = 0
    for _ in range(300):
        sizes = draw.integers(2, 5, clusters) * draw.integers(1, 8, clusters)
        sizes[0] = sizes[1:].sum() // 2
        rates = draw.beta(share * (1 / together - 1), (1 - share) * (1 / together - 1), clusters)
        low, high = clustered_interval(draw.binomial(sizes, rates), sizes)
        covered += low <= share <= high
    assert covered / 300 >= 0.93  # 0.72 to 0.96 by the variance alone


def test_clusters_of_equal_size_are_not_capped() -> None:
    """Four clusters of a hundred cases that are alike tell more than twenty cases."""
    low, high = clustered_interval([49, 50, 51, 50], [100] * 4)
    assert high - low < 0.2


@pytest.mark.parametrize("sizes", [[130, 1], [300, 1, 1], [900, 1, 1, 1, 1], [1800, *[1] * 10], [10**9, 1]])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_of_one_cluster_among_crumbs_nothing_is_known(sizes: list[int], share: float) -> None:
    """Their effective number is 1.01 or less, of which Student's quantile has more than a hundred digits."""
    counts = [share * size for size in sizes]
    assert clustered_interval(counts, sizes) == pytest.approx((0.0, 1.0), abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30))
def test_it_holds_the_share(pairs: list[tuple[int, int]]) -> None:
    counts, sizes = [a for a, _ in pairs], [a + b + (a + b == 0) for a, b in pairs]
    low, high = clustered_interval(counts, sizes)
    assert 0.0 <= low <= sum(counts) / sum(sizes) + 1e-12
    assert sum(counts) / sum(sizes) - 1e-12 <= high <= 1.0


@pytest.mark.parametrize(
    "count, of, low, high",
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_published_intervals(count: int, of: int, low: float, high: float) -> None:
    """Newcombe (1998), "Two-sided confidence intervals for the single proportion", Table I, method 3."""
    assert wilson_interval(count, of) == pytest.approx((low, high), abs=5e-5)


def test_the_interval_on_the_scale_of_log_odds_stays_between_0_and_1() -> None:
    half = 0.1 / (0.95 * 0.05)
    odds = [math.exp(sign * half) * 19 for sign in (-1, 1)]
    assert logit_interval(0.95, 0.1) == pytest.approx(tuple(one / (1 + one) for one in odds))
    assert logit_interval(0.5, 1e-6) == pytest.approx((0.5 - 1e-6, 0.5 + 1e-6), abs=1e-12)


RUNS = 2000


@pytest.mark.parametrize("repetitions", [2, 3, 5, 30])
@pytest.mark.parametrize(("sigma", "least"), [(0.05, 0.94), (0.3, 0.935), (1.0, 0.87)])
def test_times_are_covered_at_least_as_often_as_by_the_interval_of_the_times(
    sigma: float, least: float, repetitions: int
) -> None:
    truth = np.exp(sigma**2 / 2)  # of a log-normal distribution
    drawn = np.random.default_rng(1).lognormal(0, sigma, (RUNS, repetitions))
    plain = [mean_estimate(times) for times in drawn]
    positive = [positive_estimate(estimate) for estimate in plain]
    assert all(estimate.low is not None and estimate.low > 0 for estimate in positive)
    assert share(positive, truth) >= max(least, share(plain, truth) - 0.001)


def share(estimates: list[Estimate], truth: float) -> float:
    covered = [e.low <= truth <= e.high for e in estimates if e.low is not None and e.high is not None]
    return sum(covered) / len(covered)


def test_thirty_repetitions_hardly_differ_from_the_interval_of_the_times() -> None:
    plain = mean_estimate(np.random.default_rng(2).normal(20.0, 1.0, 30))  # milliseconds
    positive = positive_estimate(plain)
    assert positive.value == plain.value
    assert (positive.low, positive.high) == pytest.approx((plain.low, plain.high), abs=0.005)
    # what has no interval keeps its reason
    assert positive_estimate(Estimate(3.0, reason="only one item")) == Estimate(3.0, reason="only one item")


def test_both_intervals_by_hand() -> None:
    baseline, system = np.array([4.0, 5.0, 3.0, 4.0]), np.array([3.0, 5.0, 2.0, 4.0])
    found = baseline_ratio(baseline, system)
    assert found.delta.value == pytest.approx(100 * 14 / 16)
    t = stats.t.ppf(0.975, 3)
    # differences −1, 0, −1, 0: mean −0.5, sd √(1/3); scaled by 100/4
    half = 25 * t * np.sqrt(1 / 3) / 2
    assert (found.paired_t.low, found.paired_t.high) == pytest.approx((87.5 - half, 87.5 + half))
    # residuals x_s − 0.875·x_b: −0.5, 0.625, −0.625, 0.5
    half = 100 * t * np.sqrt((0.25 + 0.390625) * 2 / 3) / (2 * 4)
    assert (found.delta.low, found.delta.high) == pytest.approx((87.5 - half, 87.5 + half))


def test_the_papers_interval_is_scipys_scaled() -> None:
    rng = np.random.default_rng(2)
    baseline = rng.normal(4, 1, 350)
    system = baseline + rng.normal(-0.1, 0.7, 350)
    found = baseline_ratio(baseline, system)
    interval = stats.ttest_rel(system, baseline).confidence_interval()
    expected = 100 + 100 * np.array([interval.low, interval.high]) / baseline.mean()
    assert (found.paired_t.low, found.paired_t.high) == pytest.approx(tuple(expected), rel=1e-12)


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=3, max_size=30), st.integers(2, 9)
)
def test_another_unit_and_another_order_change_nothing(pairs: list[tuple[int, int]], unit: int) -> None:
    baseline, system = np.array(pairs, dtype=float).T
    found, scaled = (
        baseline_ratio(baseline, system),
        baseline_ratio(unit * baseline[::-1], unit * system[::-1]),
    )
    assert scaled.delta.value == pytest.approx(found.delta.value, rel=1e-9)
    for ours, theirs in ((found.paired_t, scaled.paired_t), (found.delta, scaled.delta)):
        assert ours.reason == theirs.reason
        if ours.low is not None:
            assert (theirs.low, theirs.high) == pytest.approx((ours.low, ours.high), rel=1e-6)


def test_missing_and_weighted_items() -> None:
    baseline = np.array([4.0, np.nan, 3.0, 5.0, 2.0, 6.0])
    system = np.array([3.0, 5.0, np.nan, 5.0, 2.5, 6.0])
    found = baseline_ratio(baseline, system, [1, 1, 1, 2, 1, 0])
    assert found.delta.value == pytest.approx(100 * (3 + 10 + 2.5) / (4 + 10 + 2))
    assert found.delta.low < found.delta.value  # type: ignore[operator]


def test_where_there_is_no_ratio_or_no_interval_it_says_why() -> None:
    assert baseline_ratio([], []).delta.reason == "no items"
    zero = baseline_ratio([0.0, 0.0], [1.0, 2.0])
    assert (zero.delta.value, zero.paired_t.low) == (None, None)
    assert zero.paired_t.reason == zero.delta.reason == "the baseline's mean is not above 0: no ratio to it"
    itself = baseline_ratio([1.2, 3.4], [1.2, 3.4])
    assert (itself.delta.value, itself.paired_t.low) == (100.0, None)
    assert itself.delta.reason == "the same value on all 2 items: no spread to judge by"
    assert baseline_ratio([2.0], [3.0]).delta.value == 150.0
    assert baseline_ratio([2.0], [3.0]).delta.reason == "only one item: no spread to judge by"
    # a system that is always half of the baseline: the differences spread, the residuals do not
    half = baseline_ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert half.paired_t.low is not None
    assert half.delta.low is None


def test_the_interval_is_the_percentile_bootstraps() -> None:
    values = np.random.default_rng(2).gamma(2.0, size=40)
    found = median_interval(values, resamples=20_000)
    oracle = stats.bootstrap(
        (values,), np.median, n_resamples=20_000, method="percentile", rng=np.random.default_rng(3)
    ).confidence_interval
    assert found.value == np.median(values)
    assert found.low == pytest.approx(oracle.low, rel=0.03)
    assert found.high == pytest.approx(oracle.high, rel=0.03)


def test_the_interval_covers_the_true_median_about_95_times_in_100() -> None:
    draw = np.random.default_rng(4)
    truth = stats.lognorm(0.5).median()
    samples = draw.lognormal(0.0, 0.5, size=(300, 30))
    intervals = [median_interval(sample, resamples=400) for sample in samples]
    covered = np.mean([interval.low <= truth <= interval.high for interval in intervals])
    assert 0.90 <= covered <= 0.99


@pytest.mark.parametrize("repetitions", [1, 2, 3, 4])
def test_of_fewer_than_five_there_is_no_interval(repetitions: int) -> None:
    """That of two covers 52 %, of three 73 %: no resample reaches beyond them."""
    values = np.arange(repetitions, dtype=float)
    assert median_interval(values) == MedianInterval(float(np.median(values)))
    assert pooled_median([np.array([value]) for value in values]).low is None
    assert median_interval(np.arange(5.0), 400).low is not None


def lower_median(values: np.ndarray) -> float:
    return float(np.sort(values)[(len(values) - 1) // 2])


@given(
    groups=st.lists(
        st.lists(st.integers(1, 9), min_size=1, max_size=6).map(np.array), min_size=1, max_size=7
    ),
    seed=st.integers(0, 50),
)
def test_against_resampling_the_groups_themselves(groups: list[np.ndarray], seed: int) -> None:
    found = pooled_median(groups, samples=40, seed=seed)
    rng = np.random.default_rng(seed)
    medians = [
        lower_median(np.concatenate([groups[n] for n in rng.choice(len(groups), size=len(groups))]))
        for _ in range(40)
    ]
    assert found.value == lower_median(np.concatenate(groups))
    known = len(groups) >= MIN_VALUES
    assert (found.low, found.high) == (percentile_interval(np.array(medians)) if known else (None, None))


@pytest.mark.parametrize(
    ("estimate", "arguments", "message"),
    [
        *((cluster_mean, given, "needs clusters") for given in (([], []), ([1], [0]), ([1, 2], [1]))),
        *(
            (clustered_interval, given, "a share needs")
            for given in (([], []), ([2], [1]), ([0], [0]), ([-1], [2]))
        ),
        *((wilson_interval, given, "not a share") for given in ((0, 0), (2, 1), (-1, 5))),
        *((logit_interval, (mean, 0.1), "no log odds") for mean in (0.0, 1.0)),
        (positive_estimate, (Estimate(-1.0, -2.0, 0.0),), "not above 0"),
        (median_interval, (np.array([]),), "no repetitions"),
        (pooled_median, ([],), "no values"),
    ],
)
def test_what_is_refused(estimate: Callable[..., Any], arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate(*arguments)


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
