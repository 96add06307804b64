"""Segments of a document go together: means, tests and intervals over documents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from creamtea.stats.estimate import baseline_ratio, mean_estimate, variance_of_mean
from creamtea.stats.paired import compare_paired, crossed_comparisons

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
    assert (
        found.signed_rank.reason == "the documents weigh differently; the signed-rank test takes no weights"
    )


def test_variance_and_degrees_of_freedom_by_the_matrices_themselves() -> None:
    rng = np.random.default_rng(6)
    w, v, x = rng.uniform(0.2, 3, 7), rng.uniform(0.3, 2, 7), rng.normal(0, 1, 7)
    w /= w.sum()
    centring = np.eye(7) - np.outer(np.ones(7), w)
    form = centring.T @ np.diag(w**2) @ centring @ np.diag(v)
    variance = (w**2 * (x - w @ x) ** 2).sum() * (w**2 * v).sum() / np.trace(form)
    expected = variance, np.trace(form) ** 2 / np.trace(form @ form)
    assert variance_of_mean(x, 5 * w, v) == pytest.approx(expected)


def test_documents_of_one_segment_change_nothing() -> None:
    _, baseline, system = scores(3)
    alone = np.arange(40)
    assert compare_paired(baseline, system, clusters=alone) == compare_paired(baseline, system)
    assert mean_estimate(system, clusters=alone) == mean_estimate(system)


def test_one_document_says_nothing_of_others() -> None:
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
    campaigns = 600
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
