"""False alarms and coverage of the statistics of human evaluation, over simulated campaigns.

    python bench/false_alarms.py [--campaigns 4000] [--seeds 1] [--only WORD] [--json]

A campaign: segments in documents of unequal length, two systems, DA 0 to 100 in whole points. A score is
level + document + segment + system × document + system × segment + rater's severity + rater's view of the
systems + noise. What is measured, for two systems that are equal and for two that differ by 2 points:

- documents: the paired t interval and test over documents, and what they would be over segments;
- documents and raters: the interval and test that draw raters as well (stats/paired.py);
- pre-filled: the same where a metric's marked errors are shown before the rating: raters' scores are drawn
  half-way to the metric's, whose mistakes all raters of an output share, and outputs without a marked error
  get 100 from every second rater;
- aimed: a campaign that aimed, as in creamtea 0.2 (stats/sequential.py): documents in
  random order, each of them rated until the verdict is settled or hopeless, then one in twenty. At any
  look: the group-sequential test up to there and its repeated confidence intervals. Never given up: the
  same with all looks up to the end, which spends all of the 5 %. At the end: the paired t interval and test
  over documents of the report's other tables, with weights 1/√q. Unbiased: the mean by inverse
  probabilities, without an interval;
- side by side: the same of a campaign that shows a baseline and three systems together and composes each
  document of what is still open. One system is far better and soon leaves the board. A
  false alarm is any of the two others, equal to the baseline, with p < 0.05 after Holm's correction over all
  three; coverage and bias are those of one of these. Scores do not depend on what stands beside. One alone:
  a comparison never given up, before the correction.

False alarms: p < 0.05 where there is no difference (5 ± 1 % is the goal). Coverage: the 95 % interval holds
the true difference (95 ± 1 %), of repeated intervals all of them. Bias: the mean less the true difference, in
standard deviations of the mean.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from creamtea.stats.estimate import mean_estimate
from creamtea.stats.paired import crossed_comparisons, holm
from creamtea.stats.sequential import (
    SETTLED_SHARE,
    State,
    course,
    look,
    looked_at,
    unbiased_mean,
    weights_at_the_end,
)

Array = NDArray[np.float64]
CAMPAIGNS = 4000
MANY = 100_000
DELTA = 2.0


@dataclass(frozen=True)
class Setting:
    """Deviations in points of 0 to 100."""

    documents: int = 30
    difference: float = 0.0
    raters: int = 6
    each: int = 1  # raters a document
    views: float = 3.0  # of raters, of the difference
    prefilled: bool = False
    far: tuple[float, ...] = ()  # differences of more systems
    document: float = 6.0  # system × document, of each system
    segment: float = 12.0  # system × segment
    noise: float = 10.0


@dataclass(frozen=True)
class Campaign:
    """A row is one rater's work on one segment, side by side: (rows,) each, scores (rows, systems)."""

    document: NDArray[np.int64]
    segment: NDArray[np.int64]
    rater: NDArray[np.int64]
    scores: Array


def draw(rng: np.random.Generator, setting: Setting) -> Campaign:
    """One campaign. Scores are whole points; few reach the ends of the scale."""
    sizes = np.clip(np.round(np.exp(rng.normal(1.6, 0.6, setting.documents))), 1, 20).astype(int)
    document = np.repeat(np.arange(setting.documents), sizes)
    n = len(document)
    effects = np.array([0.0, setting.difference, *setting.far])
    systems = len(effects)
    level = 55 + rng.normal(0, 6, setting.documents)[document] + rng.normal(0, 8, n)
    quality = (
        level[:, None]
        + effects
        + rng.normal(0, setting.document, (setting.documents, systems))[document]
        + rng.normal(0, setting.segment, (n, systems))
    )
    seats = (np.arange(setting.documents)[:, None] * setting.each + np.arange(setting.each)) % setting.raters
    seats = rng.permutation(setting.raters)[seats]
    severity = rng.normal(0, 6, setting.raters)
    views = rng.normal(0, setting.views / np.sqrt(2), (setting.raters, systems))
    rows = np.repeat(np.arange(n), setting.each)
    rater = seats[document].ravel()
    scores = quality[rows] + severity[rater][:, None] + views[rater]
    scores += rng.normal(0, setting.noise, scores.shape)
    if setting.prefilled:
        # the metric sees the quality with mistakes of its own, also of whole documents
        proposed = quality + rng.normal(0, 8, quality.shape)
        proposed += rng.normal(0, 4, (setting.documents, systems))[document]
        scores = 0.5 * scores + 0.5 * proposed[rows]
        clean = (proposed > 68)[rows] & (rng.random(scores.shape) < 0.5)
        scores = np.where(clean, 100.0, scores)
    return Campaign(document[rows], rows, rater, np.clip(np.round(scores), 0, 100))


def segment_means(campaign: Campaign, system: int = 1) -> tuple[Array, NDArray[np.int64]]:
    """The differences of segments (n,), means over raters, and their documents."""
    points = campaign.scores[:, system] - campaign.scores[:, 0]
    many = np.bincount(campaign.segment)
    return np.bincount(campaign.segment, points) / many, campaign.document[
        np.searchsorted(campaign.segment, np.arange(len(many)))
    ]


@dataclass(frozen=True)
class Result:
    """`low` and `high` None: no interval. `covers` where it is not that of one interval."""

    p: float | None
    low: float | None
    high: float | None
    mean: float | None = None
    covers: Callable[[float], bool] | None = None


def over_documents(campaign: Campaign, rng: np.random.Generator) -> list[Result]:
    points, documents = segment_means(campaign)
    found = mean_estimate(points, clusters=documents)
    return [Result(found.t_test(), found.low, found.high)]


def over_segments(campaign: Campaign, rng: np.random.Generator) -> list[Result]:
    found = mean_estimate(segment_means(campaign)[0])
    return [Result(found.t_test(), found.low, found.high)]


def over_documents_and_raters(campaign: Campaign, rng: np.random.Generator) -> list[Result]:
    found = crossed_comparisons(
        campaign.segment, campaign.rater, campaign.scores, [(0, 1)], clusters=campaign.document
    )[0].difference
    return [Result(found.p_value, found.low, found.high)]


def aimed(campaign: Campaign, rng: np.random.Generator) -> list[Result]:
    points, documents = segment_means(campaign)
    sums, sizes = np.bincount(documents, points), np.bincount(documents).astype(float)
    order = rng.permutation(len(sums))
    whole = course(sums[order], sizes[order], len(order))
    ends = looked_at(len(order)).tolist()
    stop = next((end for end in ends if look([whole.until(end)], DELTA)[0].state is not State.OPEN), ends[-1])
    results = []
    for seen in (whole.until(stop), whole):
        half, p = seen.half_width(), float(seen.p_value[-1])
        mean = float(seen.mean[-1])
        results.append(
            Result(p, None, None, mean, lambda true, c=seen, h=half: bool((abs(c.mean - true) <= h).all()))
        )
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    q = np.where(place < stop, 1.0, SETTLED_SHARE)
    rated = rng.random(len(order)) < q
    kept = rated[documents]
    weights = 1 / weights_at_the_end(q[documents][kept])
    found = mean_estimate(points[kept], weights, clusters=documents[kept])
    results.append(Result(found.t_test(), found.low, found.high, found.value))
    results.append(Result(None, None, None, unbiased_mean(sums * rated, sizes, q, rated)))
    return results


def side_by_side(campaign: Campaign, rng: np.random.Generator) -> list[Result]:
    """Of the first comparison, with the smallest p-value of the two first ones after Holm's correction."""
    systems = range(1, campaign.scores.shape[1])
    points = np.array([segment_means(campaign, system)[0] for system in systems])
    documents = segment_means(campaign)[1]
    sums = np.array([np.bincount(documents, one) for one in points])
    sizes = np.bincount(documents).astype(float)
    order = rng.permutation(len(sizes))
    whole = [course(one[order], sizes[order], len(order)) for one in sums]
    stopped: list[int | None] = [None for _ in systems]
    for end in looked_at(len(order)).tolist():
        seen = [one.until(end if at is None else at) for one, at in zip(whole, stopped, strict=True)]
        for at, one in enumerate(look(seen, DELTA, [at is not None for at in stopped])):
            if stopped[at] is None and one.state is not State.OPEN:
                stopped[at] = end
    until = [len(order) if at is None else at for at in stopped]
    results = []
    for courses in ([one.until(at) for one, at in zip(whole, until, strict=True)], whole):
        p = smallest([float(one.p_value[-1]) for one in courses])
        first, half = courses[0], courses[0].half_width()
        results.append(
            Result(p, None, None, float(first.mean[-1]), lambda true, c=first, h=half: holds(c.mean, h, true))
        )
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    u = rng.random(len(order))  # one for all outputs of a document
    chances = np.where(place < np.array(until)[:, None], 1.0, SETTLED_SHARE)
    estimates = []
    for one, q in zip(points, chances, strict=True):
        kept = (u < q)[documents]
        weights = 1 / weights_at_the_end(q[documents][kept])
        estimates.append(mean_estimate(one[kept], weights, clusters=documents[kept]))
    found = estimates[0]
    p = smallest([one.t_test() for one in estimates])
    results.append(Result(p, found.low, found.high, found.value))
    rated = u < chances[0]
    results.append(Result(None, None, None, unbiased_mean(sums[0] * rated, sizes, chances[0], rated)))
    results.append(Result(float(whole[0].p_value[-1]), None, None, covers=results[1].covers))
    return results


def smallest(p_values: list[float | None]) -> float | None:
    """Of the equal systems, which stand first, after the correction over all; None of too few units."""
    return min((p for p in holm(p_values)[:EQUAL] if p is not None), default=None)


def holds(means: Array, half: Array, true: float) -> bool:
    return bool((abs(means - true) <= half).all())


Method = Callable[[Campaign, np.random.Generator], list[Result]]

AIMED = tuple(f"aimed, {how}" for how in ("at any look", "never given up", "at the end", "unbiased"))


SIDE_BY_SIDE = (*(name.replace("aimed", "side by side") for name in AIMED), "side by side, one alone")
EQUAL, FAR = 2, 15.0  # systems equal to the baseline; the other one's difference, points


def cases() -> Iterator[tuple[tuple[str, ...], Method, Setting]]:
    for documents in (12, 30, 80):
        for prefilled in (False, True):
            setting = Setting(documents=documents, views=0.0, raters=documents, prefilled=prefilled)
            yield ("over documents",), over_documents, setting
    yield ("over segments (wrong)",), over_segments, Setting(views=0.0, raters=30)
    for raters, each in ((4, 1), (6, 2), (12, 1)):
        for prefilled in (False, True):
            setting = Setting(raters=raters, each=each, prefilled=prefilled)
            yield ("over documents and raters",), over_documents_and_raters, setting
    for documents in (60, 200):
        for prefilled in (False, True):
            setting = Setting(documents=documents, views=0.0, raters=documents, prefilled=prefilled)
            yield AIMED, aimed, setting
    for documents in (60, 200):
        for prefilled in (False, True):
            setting = Setting(documents=documents, raters=documents, views=0.0, prefilled=prefilled)
            yield SIDE_BY_SIDE, side_by_side, replace(setting, far=(0.0, FAR))


@dataclass(frozen=True)
class Rates:
    """Numbers of campaigns; `bias` in standard deviations of the mean, without and with a difference."""

    method: str
    documents: int
    raters: int
    prefilled: bool
    seed: int
    campaigns: int
    false_alarms: int
    covered: int | None
    bias: tuple[float, float] | None


def rates(names: tuple[str, ...], method: Method, setting: Setting, campaigns: int, seed: int) -> list[Rates]:
    """Of equal systems the false alarms, of systems 2 points apart the coverage of the difference that raters
    see on average (pre-filled scores are drawn together), which a campaign of 100,000 documents tells."""
    apart = replace(setting, difference=DELTA)
    true = float(
        segment_means(draw(np.random.default_rng(seed), replace(apart, documents=MANY, raters=MANY)))[
            0
        ].mean()
    )
    drawn: list[list[list[Result]]] = []
    for kind, one in enumerate((setting, apart)):
        drawn.append([])
        for number in range(campaigns):
            rng = np.random.default_rng((seed, number, kind))
            drawn[kind].append(method(draw(rng, one), rng))
    found = []
    for at, name in enumerate(names):
        equal, differing = ([results[at] for results in of_kind] for of_kind in drawn)
        alarms = sum(one.p is not None and one.p < 0.05 for one in equal)
        tested = any(one.p is not None for one in differing)  # else a mean alone
        covered = sum(_covers(one, true) for one in differing) if tested else None
        means = [
            np.array([one.mean for one in of_kind if one.mean is not None]) for of_kind in (equal, differing)
        ]
        bias = None
        if all(len(values) for values in means):
            bias = (_bias(means[0], 0.0), _bias(means[1], true))
        raters = setting.raters
        found.append(
            Rates(name, setting.documents, raters, setting.prefilled, seed, campaigns, alarms, covered, bias)
        )
    return found


def _covers(one: Result, true: float) -> bool:
    if one.covers is not None:
        return one.covers(true)
    return one.low is None or one.high is None or one.low <= true <= one.high


def _bias(means: Array, true: float) -> float:
    return float((means.mean() - true) / means.std())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS, help="of each setting and seed")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="methods whose name has this word")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    began = time.monotonic()
    for number, (names, method, setting) in enumerate(cases()):
        if not any(arguments.only in name for name in names):
            continue
        seeds = [
            rates(names, method, setting, arguments.campaigns, 100 * at + number)
            for at in range(arguments.seeds)
        ]
        for of_method in zip(*seeds, strict=True):
            if arguments.json:
                for found in of_method:
                    print(json.dumps(asdict(found)), flush=True)
            else:
                print(line(list(of_method)), flush=True)
    print(f"{time.monotonic() - began:.0f} s")


def line(found: list[Rates]) -> str:
    """All seeds of a method in one setting."""
    one, many = found[0], sum(of_seed.campaigns for of_seed in found)
    shown = f"{one.method:27} {one.documents:4} documents {'pre-filled' if one.prefilled else '':10}"
    if one.covered is not None:
        shown += f"  false alarms {percent(sum(f.false_alarms for f in found), many)}"
        shown += f"  coverage {percent(sum(f.covered or 0 for f in found), many)}"
    if one.bias is not None:
        biases = np.mean([of_seed.bias for of_seed in found if of_seed.bias], axis=0)
        shown += f"  bias {biases[0]:+.3f} {biases[1]:+.3f}"
    return shown


def percent(count: int, of: int) -> str:
    """With the half-width of its 95 % Monte-Carlo interval."""
    share = count / of
    return f"{100 * share:5.2f} ± {196 * math.sqrt(share * (1 - share) / of):.2f} %"


if __name__ == "__main__":
    main()
