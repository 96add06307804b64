"""How often each interval of the reports holds the true value, and how often its test gives a false alarm.

    python bench/interval_coverage.py [--quick] [--only WORD]

Each row calls the functions that the product calls, on data drawn with a fixed seed: the share of simulations
whose 95 % interval holds the true value, and the share with p < 0.05 (or a mark) where nothing differs. "–":
reports give no interval, or no test. Prints the table of docs/results/data/intervals.yaml. --quick
takes a twentieth of the simulations, for tests.
"""

from __future__ import annotations

import argparse
import math
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from false_alarms import Result, Setting, draw, over_documents, over_documents_and_raters
from numpy.typing import NDArray

from creamtea.methods.metrics import Bleu, Chrf
from creamtea.methods.texts import Languages
from creamtea.stats.agreement import RaterAgreement, krippendorff_alpha, rater_agreement
from creamtea.stats.estimate import (
    Estimate,
    baseline_ratio,
    cluster_mean,
    clustered_interval,
    mean_estimate,
    one_against_several,
    p_with_seeds,
    positive_estimate,
    spread_of_difference,
    spread_of_mean,
    widened,
    wilson_interval,
)
from creamtea.stats.paired import compare_paired, crossed_comparisons
from creamtea.stats.resampling import (
    SAMPLES,
    bootstrap_interval,
    median_interval,
    paired_bootstrap,
    pooled_median,
    randomization_of_pairs,
)
from creamtea.stats.verdict import Outcome, judge
from creamtea.stats.wmt import wmt_ranking
from creamtea_workers.analysis.rows import ratio_row
from creamtea_workers.metrics.base import Texts, mean_statistics, ratio
from creamtea_workers.metrics.sacrebleu_metrics import BleuMetric, ChrfMetric
from creamtea_workers.selection.recall import Counted
from creamtea_workers.steps.probabilities import bin_sums, expected_calibration_error, reflected

Array = NDArray[np.float64]
Rng = np.random.Generator
SEED = 20_261
SLOW, USUAL = 1000, 2000  # simulations of a row
QUICK = 20  # a row of --quick has that much fewer
POOL = 3000  # segments, from which test sets are drawn


@dataclass(frozen=True)
class Once:
    """One simulation; None where there is no interval, or no test."""

    covers: bool | None = None
    alarm: bool | None = None


@dataclass(frozen=True)
class Case:
    interval: str  # as in the table
    setting: str
    once: Callable[[Rng], Once]
    simulations: int = USUAL


@dataclass(frozen=True)
class Rates:
    case: Case
    simulations: int
    intervals: int
    covered: int
    tests: int
    alarms: int

    @property
    def coverage(self) -> float | None:
        return self.covered / self.intervals if self.intervals else None

    @property
    def false_alarms(self) -> float | None:
        return self.alarms / self.tests if self.tests else None


def within(low: float | None, high: float | None, true: float) -> bool | None:
    return None if low is None or high is None else low <= true <= high


def holds(estimate: Estimate, true: float) -> bool | None:
    return within(estimate.low, estimate.high, true)


# ---------------------------------------------------------------- metrics over segments


SCORERS: dict[str, BleuMetric | ChrfMetric] = {
    "BLEU": BleuMetric(Bleu(kind="bleu"), Languages(source="en", target="de")),
    "chrF": ChrfMetric(Chrf(kind="chrf")),
}


@cache
def pool(metric: str, noise: float, segments: int = POOL) -> tuple[Array, Array]:
    """Make two outputs of equal quality of made-up segments, which differ in difficulty: their statistics."""
    rng = np.random.default_rng(SEED)
    words = np.array(
        ["".join(rng.choice(list("abcdefghijklmnopr"), rng.integers(2, 9))) for _ in range(3000)]
    )
    often = 1 / np.arange(1, len(words) + 1)
    often /= often.sum()
    lengths = np.clip(np.exp(rng.normal(2.6, 0.5, segments)).round(), 3, 60).astype(int)
    references = [rng.choice(words, length, p=often) for length in lengths]
    hard = rng.beta(2 * noise / (1 - noise), 2, segments)
    texts = [" ".join(reference) for reference in references]
    found = []
    for _ in range(2):
        outputs = [
            " ".join(
                np.where(
                    rng.random(len(reference)) < q, rng.choice(words, len(reference), p=often), reference
                )
            )
            for reference, q in zip(references, hard, strict=True)
        ]
        found.append(SCORERS[metric].statistics(Texts(list(range(segments)), texts, outputs, texts)))
    return found[0], found[1]


def corpus_score(rng: Rng, segments: int, metric: str, noise: float) -> Once:
    both, score = pool(metric, noise), SCORERS[metric].score
    found = bootstrap_interval(both[0][rng.integers(0, POOL, segments)], score)
    return Once(within(found.low, found.high, float(score(both[0].sum(axis=0)))))


def corpus_difference(rng: Rng, metric: str, noise: float, segments: int) -> Once:
    """Which output of a segment is whose is drawn, so that the two systems are equal."""
    drawn = rng.integers(0, POOL, segments)
    one, other = (statistics[drawn] for statistics in pool(metric, noise))
    swapped = (rng.random(segments) < 0.5)[:, None]
    a, b, score = np.where(swapped, other, one), np.where(swapped, one, other), SCORERS[metric].score
    found = paired_bootstrap([a], [b], score)
    p = randomization_of_pairs([[a], [b]], score, trials=SAMPLES)[0, 1]
    marked = found.p_two_sided < 0.05 and p < 0.05
    return Once(within(found.low, found.high, 0.0), marked)


def segment_mean(rng: Rng, segments: int) -> Once:
    found = ratio_row("comet", mean_statistics(rng.beta(6, 1.5, segments).tolist()))
    return Once(within(found.low, found.high, 0.8))


def mean_of_groups(rng: Rng, words: int) -> Once:
    """Fifteen languages of so many words, the distance of each from its reference."""
    levels = rng.gamma(2, 0.2, 15)
    values = rng.poisson(np.repeat(levels, words))
    groups = np.repeat(np.arange(15), words).astype(str).tolist()
    found = bootstrap_interval(mean_statistics(values.tolist()), ratio, groups)
    return Once(within(found.low, found.high, float(levels.mean())))


def share(rng: Rng, cases: int, p: float) -> Once:
    return Once(within(*wilson_interval(int(rng.binomial(cases, p)), cases), p))


def calibration(rng: Rng, sentences: int, error: float) -> Once:
    """Fifteen positions per sentence, whose confidences are too high by the error."""
    confidence = 0.2 + 0.8 * rng.beta(3, 1.5, (sentences, 15))
    right = rng.random(confidence.shape) < confidence - error
    rows = [bin_sums(np.stack(one, axis=1), 10) for one in zip(confidence, right, strict=True)]
    found = reflected(ratio_row("ece", np.stack(rows), expected_calibration_error))
    return Once(within(found.low, found.high, error))


def support(rng: Rng, sentences: int) -> Once:
    """The median size of a support is 20; a sentence has ten sizes around a level of its own."""
    sizes = [np.exp(rng.normal(math.log(20) + rng.normal(0, 0.4), 0.6, 10)) for _ in range(sentences)]
    found = pooled_median(sizes)
    return Once(within(found.low, found.high, 20.0))


# ---------------------------------------------------------------- seeds


def seeds(rng: Rng, one: int, other: int, ratio: float, error: float) -> Once:
    """Two recipes of equal mean; scores of the second's seeds vary `ratio` times less. Marked as in reports:
    by the segments, whose error is normal and known, and by p with seeds where there is one."""
    sides = (("a", one, 1.0), ("b", other, 1 / ratio))
    scores = [
        {f"{side}{seed}": float(rng.normal(0, deviation)) for seed in range(count)}
        for side, count, deviation in sides
    ]
    return _with_seeds(rng, scores[0], scores[1], error)


def same_models(rng: Rng, count: int, error: float) -> Once:
    luck = {str(seed): float(rng.normal(0, 1)) for seed in range(count)}
    return _with_seeds(rng, {seed: of + float(rng.normal(0, 1)) for seed, of in luck.items()}, luck, error)


def _with_seeds(rng: Rng, system: dict[str, float], baseline: dict[str, float], error: float) -> Once:
    value = float(np.mean(list(system.values())) - np.mean(list(baseline.values())) + rng.normal(0, error))
    low, high = value - 1.96 * error, value + 1.96 * error
    marked = not low <= 0 <= high
    if one_against_several(system, baseline):
        return Once(None, False)
    spread = spread_of_difference(system, baseline)
    if spread is None:
        return Once(low <= 0 <= high, marked)
    covers = within(*widened(value, low, high, spread), 0.0)
    return Once(covers, marked and p_with_seeds(value, low, high, spread) < 0.05)


def mean_over_seeds(rng: Rng, count: int, error: float) -> Once:
    """A value beside a paper's: its interval over segments and seeds."""
    scores = rng.normal(0, 1, count)
    value = float(scores.mean() + rng.normal(0, error))
    spread = spread_of_mean(float(scores.std(ddof=1)), count)
    return Once(within(*widened(value, value - 1.96 * error, value + 1.96 * error, spread), 0.0))


# ---------------------------------------------------------------- latency


def times(rng: Rng, repetitions: int, disturbed: float) -> Array:
    """Seconds; this share of the repetitions is disturbed."""
    return np.exp(rng.normal(0, 0.03, repetitions)) * np.where(rng.random(repetitions) < disturbed, 1.3, 1.0)


@cache
def true_times(disturbed: float) -> tuple[float, float]:
    """Median and mean."""
    many = times(np.random.default_rng(SEED), 1_000_000, disturbed)
    return float(np.median(many)), float(many.mean())


def latency(rng: Rng, repetitions: int, disturbed: float, median: bool) -> Once:
    """The interval of a mean is computed on the scale of logarithms, as in reports."""
    found, true = times(rng, repetitions, disturbed), true_times(disturbed)
    if median:
        interval = median_interval(found)
        return Once(within(interval.low, interval.high, true[0]))
    return Once(holds(positive_estimate(mean_estimate(found)), true[1]))


def latency_percent(rng: Rng, repetitions: int, disturbed: float, median: bool) -> Once:
    """The baseline takes as long, and the machine disturbs both: the true value is 100 %."""
    machine = times(rng, repetitions, disturbed)
    own, other = (machine * np.exp(rng.normal(0, 0.03, repetitions)) for _ in range(2))
    if median:
        interval = median_interval(100 * own / other)
        return Once(within(interval.low, interval.high, 100.0))
    return Once(holds(positive_estimate(baseline_ratio(other, own).delta), 100.0))


# ---------------------------------------------------------------- idioms and marks, in clusters

LIKE, A_THIRD = "of like size", "one of them a third"


def idiom_counts(rng: Rng, idioms: int, p: float, largest: str) -> tuple[Array, Array]:
    """Subwords reached and wanted of each idiom, beta-binomial with an intraclass correlation of 0.4; one
    idiom may be a third of all cases."""
    sizes = rng.integers(2, 5, idioms)
    if largest == A_THIRD:
        sizes *= rng.integers(1, 8, idioms)
        sizes[0] = sizes[1:].sum() // 2
    rates = rng.beta(1.5 * p, 1.5 * (1 - p), idioms)
    return rng.binomial(sizes, rates).astype(float), sizes.astype(float)


def idiom_recall(rng: Rng, idioms: int, p: float, largest: str) -> Once:
    found = Counted(np.stack(idiom_counts(rng, idioms, p, largest), axis=1), of_idioms=True).metric(
        "recall", "", {}
    )
    return Once(within(found.low, found.high, p))


def idiom_macro(rng: Rng, idioms: int, p: float) -> Once:
    reached, wanted = idiom_counts(rng, idioms, p, LIKE)
    rows = np.stack([reached / wanted, np.ones(idioms)], axis=1)
    found = Counted(rows, of_idioms=True, macro=True).metric("recall_macro", "", {})
    return Once(within(found.low, found.high, p))


def idiom_difference(rng: Rng, idioms: int, largest: str) -> Once:
    """Two selections that reach the same on most idioms, and on others one or the other more."""
    sizes = idiom_counts(rng, idioms, 0.5, largest)[1]
    more = np.where(rng.random(idioms) < 0.4, rng.integers(0, sizes.astype(int) + 1), 0)
    found = cluster_mean(more * rng.choice([-1, 1], idioms), sizes, "idiom")
    alarm = None if found.p_value is None else found.p_value < 0.05
    return Once(within(found.low, found.high, 0.0), alarm)


def marks(rng: Rng, segments: int, p: float) -> Once:
    """The share of marked errors with one cause, one to six per segment."""
    sizes = rng.integers(1, 7, segments)
    counts = rng.binomial(sizes, rng.beta(4 * p, 4 * (1 - p), segments))
    return Once(within(*clustered_interval(counts, sizes), p))


# ---------------------------------------------------------------- people


def documents_drawn(rng: Rng, documents: int) -> Once:
    setting = Setting(documents=documents, raters=documents, views=0.0)
    return _of_campaign(over_documents(draw(rng, setting)))


def documents_and_raters_drawn(rng: Rng, raters: int, each: int) -> Once:
    """Documents, of which there are 30, and raters are drawn."""
    return _of_campaign(over_documents_and_raters(draw(rng, Setting(raters=raters, each=each))))


def _of_campaign(found: Result) -> Once:
    return Once(within(found.low, found.high, 0.0), found.p is not None and found.p < 0.05)


def paired_items(rng: Rng, items: int, test: str) -> Once:
    """Item means of side by side ratings in steps of 0.2 from 1 to 6, or preferences −1, 0 and 1."""
    if test == "preferences":
        baseline, system = np.zeros(items), rng.choice([-1.0, 0.0, 1.0], items, p=[0.3, 0.4, 0.3])
    else:
        scores = rng.normal(3.6, 0.6, (items, 1)) + rng.normal(0, 0.5, (items, 2))
        baseline, system = (1 + 0.2 * np.clip(np.round((scores - 1) / 0.2), 0, 25)).T
    found = compare_paired(baseline, system, flips=SAMPLES)
    tests = {"signed-rank": found.signed_rank, "sign flip": found.sign_flip}
    p = tests.get(test, found.t_test).p_value
    return Once(None if test in tests else holds(found.estimate, 0.0), p is not None and p < 0.05)


def no_larger_difference(rng: Rng, items: int) -> Once:
    """The systems differ by δ: the verdict that they do not."""
    scores = rng.normal(3.6, 0.6, (items, 1)) + rng.normal([0.0, 0.2], 0.4, (items, 2))
    return Once(
        None,
        judge(compare_paired(scores[:, 0], scores[:, 1], flips=1), 0.2).outcome
        is Outcome.NO_LARGER_DIFFERENCE,
    )


def crossed(rng: Rng, raters: int, each: int) -> Once:
    """Single segments, 40, by raters who take turns and have views of the two systems."""
    item, rater = np.repeat(np.arange(40), each), np.arange(40 * each) % raters
    systems = rng.normal(0, 0.4, (40, 2))[item] + rng.normal(0, 0.2, (raters, 2))[rater]
    scores = 3.5 + rng.normal(0, 0.4, raters)[rater][:, None] + systems + rng.normal(0, 0.35, (40 * each, 2))
    found = crossed_comparisons(item, rater, scores, [(0, 1)])[0].difference
    return Once(holds(found, 0.0), found.p_value is not None and found.p_value < 0.05)


def human_percent(rng: Rng, items: int) -> Once:
    level = rng.normal(3.6, 0.6, items)
    own, other = level + rng.normal(0, 0.4, items), level + rng.normal(0, 0.4, items)
    return Once(holds(baseline_ratio(other, own).delta, 100.0))


def severity(rng: Rng, items: int) -> Once:
    found = _agreement(rng, items, 1).severity
    return Once(holds(found, 0.0))


def correlation(rng: Rng, items: int, outputs: int) -> Once:
    return Once(holds(_agreement(rng, items, outputs).correlation, 0.5))


def _agreement(rng: Rng, items: int, outputs: int) -> RaterAgreement:
    """A rater against another: half of the variance of scores is the output's (part of it the item's)."""
    item = np.repeat(np.arange(items), outputs)
    quality = rng.normal(0, 0.5**0.5, items)[item] + rng.normal(0, 0.5**0.5, len(item))
    scores = (quality[:, None] + rng.normal(0, 1, (len(item), 2))).ravel()
    both = np.tile([0, 1], len(item))
    return rater_agreement(both, np.repeat(np.arange(len(item)), 2), scores, item, [0])[0]


def alpha(rng: Rng, items: int, outputs: int) -> Once:
    """Three raters of each output; half of the variance is the output's, and of that half the item's."""
    item = np.repeat(np.arange(items), outputs)
    quality = rng.normal(0, 0.5**0.5, items)[item] + rng.normal(0, 0.5**0.5, len(item))
    matrix = quality[:, None] + rng.normal(0, 1, (len(item), 3))
    return Once(holds(krippendorff_alpha(matrix, groups=item), 0.5))


def wmt_win(rng: Rng, segments: int) -> Once:
    """An alarm is a win of either of two equal systems; one of ten raters rates each output."""
    level = rng.normal(70, 10, segments)
    scores = (level[:, None] + rng.normal(0, 15, (segments, 2))).ravel()
    rater = rng.integers(0, 10, 2 * segments)
    where, system = np.repeat(np.arange(segments), 2), np.tile([0, 1], segments)
    found = wmt_ranking(rater, system, where, scores, systems=2)
    return Once(None, any(row.wins for row in found))


# ---------------------------------------------------------------- the table


def family(
    interval: str, once: Callable[..., Once], setting: str, simulations: int = USUAL, **values: Sequence[Any]
) -> Iterator[Case]:
    """A row for every combination of the values, which the two texts name."""
    for chosen in product(*values.values()):
        given = dict(zip(values, chosen, strict=True))
        yield Case(interval, setting.format(**given), partial(once, **given), simulations)


def cases() -> Iterator[Case]:
    few = (2, 3, 4, 5, 10, 20, 30, 100, 300)
    for metric in SCORERS:
        of: dict[str, Sequence[Any]] = {"metric": [metric], "noise": [0.3]}
        yield from family(
            f"{metric}, bootstrap", corpus_score, "{segments} segments", SLOW, segments=few, **of
        )
    for metric, noise, words in (("BLEU", 0.3, ""), ("BLEU", 0.7, ", bad outputs"), ("chrF", 0.3, "")):
        name, of = (
            f"difference in {metric}, bootstrap; mark by both tests",
            {"metric": [metric], "noise": [noise]},
        )
        yield from family(name, corpus_difference, f"{{segments}} segments{words}", SLOW, segments=few, **of)
    name = "mean of segments' scores (COMET and others), bootstrap"
    yield from family(name, segment_mean, "{segments} segments", SLOW, segments=few)
    name = "mean over languages (metrics of words), bootstrap"
    yield from family(name, mean_of_groups, "15 languages of {words} words", SLOW, words=(5, 10, 50))

    name, setting = "difference over segments and seeds", "{one} and {other} seeds"
    errors = (0.1, 0.7, 2.0)  # over segments, of the deviation of the first's seeds
    for one, other in ((1, 1), (2, 2), (3, 3), (5, 5), (2, 5), (3, 10), (1, 3)):
        for apart, words in ((1.0, "varying alike"), (5.0, "the first varying five times as much")):
            of = {"one": [one], "other": [other], "ratio": [apart], "error": errors}
            told = f"{setting} {words}; error over segments {{error}}"
            yield from family(name, seeds, told, **of)
    told = "{count} seeds of the same models; error over segments {error}"
    yield from family(name, same_models, told, count=(2, 3, 5), error=[0.7])
    name = "value beside a paper's, over segments and seeds"
    yield from family(name, mean_over_seeds, "{count} seeds", count=(2, 3, 5), error=[0.7])

    for kind, once in (("latency", latency), ("latency in % of a baseline", latency_percent)):
        for median, word in ((True, "median"), (False, "mean")):
            of = {"median": [median], "disturbed": (0.0, 0.1), "repetitions": (2, 3, 5, 10, 30)}
            told = "{repetitions} repetitions, {disturbed:.0%} disturbed"
            yield from family(f"{kind}, {word} over repetitions", once, told, SLOW, **of)

    name, told = "shares (empty outputs, search errors), Wilson", "{p:.1%} of {cases}"
    yield from family(name, share, told, SLOW, cases=(20, 200, 2000), p=(0.005, 0.05, 0.3))
    name, told = "calibration error, basic bootstrap", "{sentences} sentences, true error {error}"
    yield from family(
        name, calibration, told, SLOW // 2, sentences=(30, 100, 300, 1000), error=(0.005, 0.02, 0.05)
    )
    name = "median support, bootstrap over sentences"
    yield from family(name, support, "{sentences} sentences", SLOW // 2, sentences=(4, 5, 10, 30, 100))

    name, told, many = "idiom recall", "{idioms} idioms {largest}, recall {p}", (3, 10, 30, 68)
    of = {"idioms": many, "largest": (LIKE, A_THIRD), "p": (0.6, 0.9, 0.98)}
    yield from family(name, idiom_recall, told, SLOW, **of)
    name, told = "idiom recall, mean over idioms", "{idioms} idioms, recall {p}"
    yield from family(name, idiom_macro, told, SLOW, idioms=(3, 5, 10, 30, 68), p=(0.7, 0.95))
    name, told = "difference in idiom recall, t over idioms", "{idioms} idioms {largest}"
    yield from family(name, idiom_difference, told, SLOW, idioms=(5, 10, 30, 68), largest=(LIKE, A_THIRD))
    name, told = "share of marked errors with a cause (blame)", "{segments} segments, {p:.0%}"
    yield from family(name, marks, told, SLOW, segments=(5, 20, 100), p=(0.05, 0.3))

    name = "human scores, t over documents"
    yield from family(name, documents_drawn, "{documents} documents", SLOW, documents=(5, 12, 30, 80))
    name, told = "human scores, documents and raters drawn", "30 documents, {raters} raters, {each} on each"
    for raters, each in ((2, 2), (3, 1), (4, 1), (12, 1)):
        yield from family(name, documents_and_raters_drawn, told, SLOW, raters=[raters], each=[each])
    name, told = "human scores, items and raters drawn", "40 items, {raters} raters, {each} on each"
    for raters, each in ((2, 2), (3, 1), (4, 2), (8, 2)):
        yield from family(name, crossed, told, SLOW, raters=[raters], each=[each])
    for test in ("paired t", "signed-rank", "sign flip"):
        yield from family(
            f"human scores, {test}", paired_items, "{items} items", SLOW, items=(5, 10, 40), test=[test]
        )
    name = "preferences, paired t"
    yield from family(name, paired_items, "{items} pairs", SLOW, items=(10, 40), test=["preferences"])
    name = "verdict “no difference > δ” where it is δ"
    yield from family(name, no_larger_difference, "{items} items", SLOW, items=(40, 150))
    name = "human score in % of the baseline's"
    yield from family(name, human_percent, "{items} items", SLOW, items=(5, 10, 40))
    yield from family("a rater's severity", severity, "{items} items", SLOW, items=(5, 10, 40))
    name, told = "a rater's correlation with the others", "{items} items, outputs of each: {outputs}"
    yield from family(name, correlation, told, SLOW, items=(4, 5, 10, 40), outputs=(1, 4))
    name, told = "Krippendorff's α, jackknife over items", "{items} items, outputs of each: {outputs}"
    yield from family(name, alpha, told, SLOW, items=(5, 10, 20, 30, 100), outputs=(1, 4))
    name = "WMT's tables: a win of either of two"
    yield from family(name, wmt_win, "{segments} segments", SLOW, segments=(100, 500))


def simulate(case: Case, quick: bool = False) -> Rates:
    count = case.simulations // (QUICK if quick else 1)
    first = zlib.crc32(f"{case.interval}; {case.setting}".encode())
    found = [case.once(np.random.default_rng((SEED, first, number))) for number in range(count)]
    covers = [once.covers for once in found if once.covers is not None]
    alarms = [once.alarm for once in found if once.alarm is not None]
    return Rates(case, count, len(covers), sum(covers), len(alarms), sum(alarms))


def line(rates: Rates) -> str:
    covered = percent(rates.coverage)
    if 0 < rates.intervals < rates.simulations:
        covered += f" of the {percent(rates.intervals / rates.simulations)} % with an interval"
    cells = (
        rates.case.interval,
        rates.case.setting,
        f"{rates.simulations:,}",
        covered,
        percent(rates.false_alarms),
    )
    return f"| {' | '.join(cells)} |"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the simulations")
    parser.add_argument("--only", default="", help="intervals whose name has this word")
    arguments = parser.parse_args()
    began = time.monotonic()
    print("| interval, test | setting | simulations | coverage, % | false alarms, % |")
    print("| :-- | :-- | --: | --: | --: |")
    for case in cases():
        if arguments.only in case.interval:
            print(line(simulate(case, arguments.quick)), flush=True)
    print(f"\n{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
