"""False alarms and coverage of the statistics of human evaluation, over simulated campaigns.

    python bench/coverage.py [--campaigns 4000] [--json]

A campaign: segments in documents of unequal length, two systems, DA 0 to 100 in whole points. A score is
level + document + segment + system × document + system × segment + rater's severity + rater's view of the
systems + noise. What is measured, for two systems that are equal and for two that differ by 2 points:

- documents: the paired t interval and test over documents, and what they would be over segments;
- documents and raters: the interval and test that draw raters as well (stats/crossed.py);
- pre-filled: the same where a metric's marked errors are shown before the rating: raters' scores are drawn
  half-way to the metric's, whose mistakes all raters of an output share, and outputs without a marked error
  get 100 from every second rater;
- aimed: units are rated with a probability that falls to 0.2 whenever the two look decided (p < 0.1 so far).
  The mean by inverse probabilities at the end of the campaign with its t interval; and the sequential test
  and its confidence sequence, looked at after every document (stats/sequential.py).

False alarms: p < 0.05 where there is no difference (5 ± 1 % is the goal). Coverage: the 95 % interval holds
the true difference (95 ± 1 %). Sequential tests have 5 % for all looks together and may have less.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from creamtea.stats.aiming import weights_at_the_end
from creamtea.stats.crossed import crossed_comparisons
from creamtea.stats.estimate import mean_estimate
from creamtea.stats.sequential import sequence

Array = NDArray[np.float64]
CAMPAIGNS = 4000
MANY = 100_000


@dataclass(frozen=True)
class Setting:
    """Deviations in points of 0 to 100."""

    documents: int = 30
    difference: float = 0.0
    raters: int = 6
    each: int = 1  # raters a document
    views: float = 3.0  # of raters, of the difference
    prefilled: bool = False
    document: float = 6.0  # system × document, of each system
    segment: float = 12.0  # system × segment
    noise: float = 10.0


@dataclass(frozen=True)
class Campaign:
    """A row is one rater's work on one segment, side by side: (rows,) each, scores (rows, 2)."""

    document: NDArray[np.int64]
    segment: NDArray[np.int64]
    rater: NDArray[np.int64]
    scores: Array


def draw(rng: np.random.Generator, setting: Setting) -> Campaign:
    """One campaign. Scores are whole points; few reach the ends of the scale."""
    sizes = np.clip(np.round(np.exp(rng.normal(1.6, 0.6, setting.documents))), 1, 20).astype(int)
    document = np.repeat(np.arange(setting.documents), sizes)
    n = len(document)
    level = 55 + rng.normal(0, 6, setting.documents)[document] + rng.normal(0, 8, n)
    quality = (
        level[:, None]
        + np.array([0.0, setting.difference])
        + rng.normal(0, setting.document, (setting.documents, 2))[document]
        + rng.normal(0, setting.segment, (n, 2))
    )
    seats = (np.arange(setting.documents)[:, None] * setting.each + np.arange(setting.each)) % setting.raters
    seats = rng.permutation(setting.raters)[seats]
    severity = rng.normal(0, 6, setting.raters)
    views = rng.normal(0, setting.views / np.sqrt(2), (setting.raters, 2))
    rows = np.repeat(np.arange(n), setting.each)
    rater = seats[document].ravel()
    scores = quality[rows] + severity[rater][:, None] + views[rater]
    scores += rng.normal(0, setting.noise, scores.shape)
    if setting.prefilled:
        # the metric sees the quality with mistakes of its own, also of whole documents
        proposed = quality + rng.normal(0, 8, quality.shape)
        proposed += rng.normal(0, 4, (setting.documents, 2))[document]
        scores = 0.5 * scores + 0.5 * proposed[rows]
        clean = (proposed > 68)[rows] & (rng.random(scores.shape) < 0.5)
        scores = np.where(clean, 100.0, scores)
    return Campaign(document[rows], rows, rater, np.clip(np.round(scores), 0, 100))


def segment_means(campaign: Campaign) -> tuple[Array, NDArray[np.int64]]:
    """The differences of segments (n,), means over raters, and their documents."""
    points = campaign.scores[:, 1] - campaign.scores[:, 0]
    many = np.bincount(campaign.segment)
    return np.bincount(campaign.segment, points) / many, campaign.document[
        np.searchsorted(campaign.segment, np.arange(len(many)))
    ]


Result = tuple[float | None, float | None, float | None]  # p, low, high


def over_documents(campaign: Campaign, rng: np.random.Generator) -> Result:
    points, documents = segment_means(campaign)
    found = mean_estimate(points, clusters=documents)
    return found.t_test(), found.low, found.high


def over_segments(campaign: Campaign, rng: np.random.Generator) -> Result:
    found = mean_estimate(segment_means(campaign)[0])
    return found.t_test(), found.low, found.high


def over_documents_and_raters(campaign: Campaign, rng: np.random.Generator) -> Result:
    found = crossed_comparisons(
        campaign.segment, campaign.rater, campaign.scores, [(0, 1)], clusters=campaign.document
    )[0].difference
    return found.p_value, found.low, found.high


def aimed(campaign: Campaign, rng: np.random.Generator) -> tuple[Array, Array]:
    """y_t of the documents in a random order, with probabilities that fall to 0.2 whenever p < 0.1."""
    points, documents = segment_means(campaign)
    sums, sizes = np.bincount(documents, points), np.bincount(documents)
    order = rng.permutation(len(sums))
    y, probabilities = np.zeros(len(order)), np.ones(len(order))
    squares = total = 0.0
    for t, document in enumerate(order):
        clear = t >= 5 and total**2 > 2.7 * squares  # z² of p = 0.1
        probability = 0.2 if clear else 1.0
        probabilities[t] = probability
        if rng.random() < probability:
            y[t] = sums[document] / sizes.mean() / probability
        total, squares = total + y[t], squares + y[t] ** 2
    return y, probabilities


def aimed_at_the_end(campaign: Campaign, rng: np.random.Generator) -> Result:
    y, probabilities = aimed(campaign, rng)
    found = mean_estimate(y, weights_at_the_end(probabilities))
    return found.t_test(), found.low, found.high


def aimed_at_any_time(campaign: Campaign, rng: np.random.Generator) -> Result:
    """The smallest p of all looks, and the narrowest interval that all looks leave."""
    y, _ = aimed(campaign, rng)
    found = sequence(y, best_at=len(y) // 2)
    return float(found.p_value[-1]), float(found.low.max()), float(found.high.min())


Method = Callable[[Campaign, np.random.Generator], Result]
WITHOUT_VIEWS = {"views": 0.0}  # what raters have in common is not in these


def cases() -> Iterator[tuple[str, Method, Setting]]:
    for documents in (12, 30, 80):
        for prefilled in (False, True):
            setting = Setting(documents=documents, views=0.0, raters=documents, prefilled=prefilled)
            yield "over documents", over_documents, setting
    yield "over segments (wrong)", over_segments, Setting(views=0.0, raters=30)
    for raters, each in ((4, 1), (6, 2), (12, 1)):
        for prefilled in (False, True):
            setting = Setting(raters=raters, each=each, prefilled=prefilled)
            yield "over documents and raters", over_documents_and_raters, setting
    for documents in (60, 200):
        for prefilled in (False, True):
            setting = Setting(documents=documents, views=0.0, raters=documents, prefilled=prefilled)
            yield "aimed, at the end", aimed_at_the_end, setting
            yield "aimed, at any time", aimed_at_any_time, setting


@dataclass(frozen=True)
class Rates:
    method: str
    documents: int
    raters: int
    prefilled: bool
    false_alarms: float
    coverage: float
    campaigns: int


def rates(name: str, method: Method, setting: Setting, campaigns: int, seed: int) -> Rates:
    """Of equal systems the false alarms, of systems 2 points apart the coverage of the difference that raters
    see on average (pre-filled scores are drawn together), which a campaign of 100,000 documents tells."""
    apart = replace(setting, difference=2.0)
    true = float(
        segment_means(draw(np.random.default_rng(seed), replace(apart, documents=MANY, raters=MANY)))[
            0
        ].mean()
    )
    alarms = covered = 0
    for number in range(campaigns):
        rng = np.random.default_rng((seed, number, 0))
        p, _, _ = method(draw(rng, setting), rng)
        alarms += p is not None and p < 0.05
        rng = np.random.default_rng((seed, number, 1))
        _, low, high = method(draw(rng, apart), rng)
        covered += low is None or high is None or low <= true <= high
    return Rates(
        name,
        setting.documents,
        setting.raters,
        setting.prefilled,
        alarms / campaigns,
        covered / campaigns,
        campaigns,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    began = time.monotonic()
    for seed, (name, method, setting) in enumerate(cases()):
        found = rates(name, method, setting, arguments.campaigns, seed)
        if arguments.json:
            print(json.dumps(asdict(found)), flush=True)
            continue
        shown = "pre-filled" if found.prefilled else ""
        print(
            f"{name:27} {found.documents:4} documents {found.raters:4} raters {shown:10}  "
            f"false alarms {100 * found.false_alarms:4.1f} %  coverage {100 * found.coverage:4.1f} %",
            flush=True,
        )
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
