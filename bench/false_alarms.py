"""False alarms and coverage of the statistics of human evaluation, over simulated campaigns.

    python bench/false_alarms.py [--campaigns 4000] [--seeds 1] [--only WORD] [--json]

A campaign: segments in documents of unequal length, two systems, DA 0 to 100 in whole points. A score is
level + document + segment + system × document + system × segment + rater's severity + rater's view of the
systems + noise. What is measured, for two systems that are equal and for two that differ by 2 points:

- documents: the paired t interval and test over documents, and what they would be over segments;
- documents and raters: the interval and test that draw raters as well (stats/paired.py);
- pre-filled: the same where a metric's marked errors are shown before the rating: raters' scores are drawn
  half-way to the metric's, whose mistakes all raters of an output share, and outputs without a marked error
  get 100 from every second rater.

Adaptive designs are measured by bench/some_systems.py.

False alarms: p < 0.05 where there is no difference (5 ± 1 % is the goal). Coverage: the 95 % interval holds
the true difference (95 ± 1 %).
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
from creamtea.stats.paired import crossed_comparisons

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
    effects = np.array([0.0, setting.difference])
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


def segment_means(campaign: Campaign) -> tuple[Array, NDArray[np.int64]]:
    """The differences of segments (n,), means over raters, and their documents."""
    points = campaign.scores[:, 1] - campaign.scores[:, 0]
    many = np.bincount(campaign.segment)
    return np.bincount(campaign.segment, points) / many, campaign.document[
        np.searchsorted(campaign.segment, np.arange(len(many)))
    ]


@dataclass(frozen=True)
class Result:
    """`low` and `high` None: no interval."""

    p: float | None
    low: float | None
    high: float | None

    def covers(self, true: float) -> bool:
        return self.low is None or self.high is None or self.low <= true <= self.high


def over_documents(campaign: Campaign) -> Result:
    points, documents = segment_means(campaign)
    found = mean_estimate(points, clusters=documents)
    return Result(found.t_test(), found.low, found.high)


def over_segments(campaign: Campaign) -> Result:
    found = mean_estimate(segment_means(campaign)[0])
    return Result(found.t_test(), found.low, found.high)


def over_documents_and_raters(campaign: Campaign) -> Result:
    found = crossed_comparisons(
        campaign.segment, campaign.rater, campaign.scores, [(0, 1)], clusters=campaign.document
    )[0].difference
    return Result(found.p_value, found.low, found.high)


Method = Callable[[Campaign], Result]


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


@dataclass(frozen=True)
class Rates:
    """Numbers of campaigns."""

    method: str
    documents: int
    raters: int
    prefilled: bool
    seed: int
    campaigns: int
    false_alarms: int
    covered: int


def rates(name: str, method: Method, setting: Setting, campaigns: int, seed: int) -> Rates:
    """Of equal systems the false alarms, of systems 2 points apart the coverage of the difference that raters
    see on average (pre-filled scores are drawn together), which a campaign of 100,000 documents tells."""
    apart = replace(setting, difference=DELTA)
    many = draw(np.random.default_rng(seed), replace(apart, documents=MANY, raters=MANY))
    true = float(segment_means(many)[0].mean())
    equal, differing = (
        [method(draw(np.random.default_rng((seed, number, kind)), drawn)) for number in range(campaigns)]
        for kind, drawn in enumerate((setting, apart))
    )
    return Rates(
        name,
        setting.documents,
        setting.raters,
        setting.prefilled,
        seed,
        campaigns,
        false_alarms=sum(result.p is not None and result.p < 0.05 for result in equal),
        covered=sum(result.covers(true) for result in differing),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS, help="of each setting and seed")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="methods whose name has this word")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    began = time.monotonic()
    for number, (name, method, setting) in enumerate(cases()):
        if arguments.only not in name:
            continue
        seeds = [
            rates(name, method, setting, arguments.campaigns, 100 * at + number)
            for at in range(arguments.seeds)
        ]
        if arguments.json:
            for found in seeds:
                print(json.dumps(asdict(found)), flush=True)
        else:
            print(line(seeds), flush=True)
    print(f"{time.monotonic() - began:.0f} s")


def line(seeds: list[Rates]) -> str:
    """All seeds of a method in one setting."""
    first, many = seeds[0], sum(found.campaigns for found in seeds)
    setting = f"{first.documents:4} documents {'pre-filled' if first.prefilled else '':10}"
    alarms = percent(sum(found.false_alarms for found in seeds), many)
    coverage = percent(sum(found.covered for found in seeds), many)
    return f"{first.method:27} {setting}  false alarms {alarms}  coverage {coverage}"


def percent(count: int, of: int) -> str:
    """With the half-width of its 95 % Monte-Carlo interval."""
    share = count / of
    return f"{100 * share:5.2f} ± {196 * math.sqrt(share * (1 - share) / of):.2f} %"


if __name__ == "__main__":
    main()
