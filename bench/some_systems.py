"""How often estimates from pages that show some of the systems err, with the noise of a real campaign.

    python bench/some_systems.py DOCUMENTS SCORES [--campaigns 100] [--only equal] [--beside] [--adaptive]
        [--views 3] [--raters 20]

DOCUMENTS has DOMAIN TAB DOCUMENT for each segment and SCORES "SYSTEM SCORE" lines, those of a system
together (en-de.ESA-2.seg.score of WMT 2023's ESA campaign, None where nobody rated).

Simulated: pages of documents that show 3 of 30 systems by balanced blocks (`making/design.py`). The noise
is the real one: each document takes a real document's scores less the means of its systems and segments,
from as many real systems at random, so that what a document does to a system stays. Raters, a document
each, differ in severity (sd 10) and in what they think of each system (sd 3; with --views 0 raters agree, and
estimates do not take them for a sample).
- equal: all systems are equal. False alarm: some interval of a difference lies beside 0 (5 ± 1 % is the
  goal).
- apart: systems lie 0 to 15 points apart. Covered: all differences in their intervals at once; ranks
  likewise (equal systems share several ranks: each one's range must hold them all); and a single system's
  distance from the mean, whose interval is not simultaneous.

Beside (--beside): as many ratings of fewer documents, each with all systems, and WMT 2026's rule on the
ratings of both designs. A document's systems then have the scores of several real documents, as one has only
13. Of every design and rule: how many pairs are told apart, how many of them wrongly (equal systems, or the
worse for the better), and in how many campaigns some pair is.

Adaptive (--adaptive): the same by an adaptive design, beside balanced ones with the same looks. Covered and
wrong then mean at any of the looks, so also at the one that looks best. How many pairs are decided at each
look, and how many systems are open then, tells what being adaptive saves; --groups puts the systems into
groups of equal ones.

Thinned: the real campaign's own scores, 3 of its systems on each document, against the whole campaign: how
far the mean of the estimates is from the whole, in standard errors of that mean, and how often the
simultaneous intervals hold all differences of the whole.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from creamtea.human.making.design import STEPS, adaptive_blocks, balanced_blocks, block_of
from creamtea.stats import incomplete
from creamtea.stats.incomplete import SystemEstimates, estimate_systems, last_look, open_systems
from creamtea.stats.paired import SIGNIFICANT
from creamtea.stats.wmt import RULES, wmt_ranking

Array = NDArray[np.float64]
Documents = list[Array]  # (segments, systems) each
RATERS, SEVERITY, VIEWS, RANGE = 20, 10.0, 3.0, 15.0


def read(documents: Path, scores: Path) -> Documents:
    """The segments that were rated for all systems, by documents."""
    names = [line.split()[-1] for line in documents.read_text().splitlines()]
    columns: dict[str, list[float]] = {}
    for line in scores.read_text().splitlines():
        system, score = line.split()
        columns.setdefault(system, []).append(np.nan if score == "None" else float(score))
    table = np.array([column for column in columns.values() if not np.isnan(column).all()]).T
    known = ~np.isnan(table).any(axis=1)
    found: dict[str, list[Array]] = {}
    for name, row, complete in zip(names, table, known, strict=True):
        if complete:
            found.setdefault(name, []).append(row)
    return [np.array(rows) for rows in found.values()]


def pages_of(
    documents: Documents, blocks: list[list[int]], raters: NDArray[np.int64] | None = None
) -> dict[str, Array | None]:
    """Columns of scores: of each document (segments, systems) the systems of its block."""
    columns: dict[str, list[Array]] = {name: [] for name in ("page", "system", "value", "cluster", "rater")}
    page = 0
    for number, (scores, block) in enumerate(zip(documents, blocks, strict=True)):
        shown = scores[:, block]
        columns["page"].append(np.repeat(page + np.arange(len(shown)), len(block)))
        columns["system"].append(np.tile(block, len(shown)))
        columns["value"].append(shown.ravel())
        columns["cluster"].append(np.full(shown.size, number))
        columns["rater"].append(np.full(shown.size, 0 if raters is None else raters[number]))
        page += len(shown)
    return {
        name: None if name == "rater" and raters is None else np.concatenate(parts)
        for name, parts in columns.items()
    }


class Simulation:
    """A campaign of so many documents, rated block by block."""

    sd_of_views, number_of_raters = VIEWS, RATERS

    def __init__(self, rng: np.random.Generator, noise: Documents, effects: Array, documents: int) -> None:
        self.rng, self.noise, self.effects = rng, noise, effects
        self.raters = rng.permutation(np.arange(documents) % self.number_of_raters)
        self.severity = rng.normal(0, SEVERITY, self.number_of_raters)
        self.views = rng.normal(0, self.sd_of_views, (self.number_of_raters, len(effects)))
        self.scores: Documents = []
        self.blocks: list[list[int]] = []
        self.chances: list[Array] = []

    def rate(self, block: list[int], chances: list[list[float]]) -> None:
        systems, rater = len(self.effects), self.raters[len(self.blocks)]
        real = self.noise[self.rng.integers(len(self.noise))]
        full = np.zeros((len(real), systems))
        columns = real[:, self.rng.permutation(real.shape[1])]
        while columns.shape[1] < len(block):  # rows of another document, repeated or left out
            more = self.noise[self.rng.integers(len(self.noise))]
            more = more[:, self.rng.permutation(more.shape[1])]  # no place is always the same real system's
            columns = np.hstack([columns, np.resize(more, (len(real), more.shape[1]))])
        full[:, block] = columns[:, : len(block)]
        self.scores.append(full + self.effects + self.severity[rater] + self.views[rater])
        self.blocks.append(block)
        of_pairs = np.ones((systems, systems))
        of_pairs[np.ix_(block, block)] = chances
        self.chances.append(of_pairs)

    def estimate(self, alpha: float = SIGNIFICANT) -> SystemEstimates | None:
        columns = pages_of(self.scores, self.blocks, self.raters if self.sd_of_views else None)
        chance = np.sqrt(np.array(self.chances)[columns["cluster"], columns["system"]])
        try:
            return estimate_systems(**columns, systems=len(self.effects), chance=chance, alpha=alpha)
        except ValueError:
            return None  # not connected yet


def simulated(
    rng: np.random.Generator, noise: Documents, effects: Array, design: list[list[int]]
) -> tuple[Simulation, SystemEstimates]:
    """A campaign by this design, its systems in the places drawn anew."""
    campaign = Simulation(rng, noise, effects, len(design))
    names = rng.permutation(len(effects))
    for block in design:
        own = block_of(names[block].tolist(), len(effects))
        campaign.rate(own["systems"], own["chances"])
    found = campaign.estimate()
    assert found is not None  # a whole design connects all systems
    return campaign, found


def told_apart(campaign: Simulation, found: SystemEstimates) -> list[NDArray[np.bool_]]:
    """(systems, systems): whether the first is called better, by us and by WMT 2026's rule."""
    columns = pages_of(campaign.scores, campaign.blocks, campaign.raters)
    by_wmt = np.zeros(found.half.shape, dtype=bool)
    for row in wmt_ranking(
        *(columns["rater"], columns["system"], columns["page"], columns["value"]),
        systems=len(by_wmt),
        rule=RULES["2026"],
    ):
        by_wmt[row.position, list(row.beaten)] = True
    return [found.difference > found.half, by_wmt]


def beside(options: argparse.Namespace, rng: np.random.Generator, noise: Documents, effects: Array) -> None:
    """Print what two designs and two rules tell apart, with as many ratings."""
    systems = len(effects)
    truth = effects[:, None] - effects[None, :]
    whole = [list(range(systems))] * (options.pages * options.shown // systems)
    some = balanced_blocks(options.pages, systems, options.shown, str(options.seed))
    for name, design in (("some systems", some), ("all systems", whole)):
        better, widths = [], []
        for _ in range(options.campaigns):
            campaign, found = simulated(rng, noise, effects, design)
            better.append(told_apart(campaign, found))
            widths.append(float(np.median(found.half)))
        told = np.array(better)  # (campaigns, rules, systems, systems)
        wrong = (told & (truth <= 0)).sum(axis=(2, 3))
        print(f"  {name} on each of {len(design)} documents: half-width {np.mean(widths):.1f} points")
        for at, rule in enumerate(("ours", "WMT 2026's")):
            pairs = told[:, at].sum(axis=(1, 2)).mean()
            print(f"    {rule}: {pairs:.2f} of {systems * (systems - 1) // 2} pairs told apart,", end=" ")
            print(f"{wrong[:, at].mean():.3f} wrongly; some wrongly {share((wrong[:, at] > 0).tolist())}")
        sys.stdout.flush()


def looked_at(
    rng: np.random.Generator,
    noise: Documents,
    effects: Array,
    documents: int,
    shown: int,
    *,
    adaptive: bool,
    delta: float,
) -> tuple[list[SystemEstimates | None], list[int]]:
    """A campaign at its looks, and how many systems are open after each."""
    systems, seed = len(effects), str(rng.integers(1 << 40))
    campaign = Simulation(rng, noise, effects, documents)
    whole = balanced_blocks(documents, systems, shown, seed)
    open_ones = list(range(systems))
    looks: list[SystemEstimates | None] = []
    counts: list[int] = []
    ends = np.ceil(documents * np.arange(STEPS + 1) / STEPS).astype(int)
    for start, end in pairwise(ends.tolist()):
        part = [block_of(block, systems) for block in whole[start:end]]
        if adaptive:
            part = adaptive_blocks(end - start, systems, shown, open_ones, f"{seed}/{start}")
        for own in part:
            campaign.rate(own["systems"], own["chances"])
        now = last_look(end, documents, systems)
        due = now is not None and now[0] > start
        if adaptive:
            found = campaign.estimate()
            if found is not None:
                open_ones = open_systems(found, delta, shown)
        if due:
            assert now is not None
            looks.append(campaign.estimate(now[1]))
            counts.append(len(open_ones))
    return looks, counts


def designs(options: argparse.Namespace, rng: np.random.Generator, noise: Documents, effects: Array) -> None:
    """Print how often adaptive and balanced designs err at any of their looks, and what they decide."""
    truth = effects[:, None] - effects[None, :]
    better = (effects[None, :] > effects[:, None]).sum(axis=1)
    worse = (effects[None, :] < effects[:, None]).sum(axis=1)
    pair = np.triu_indices(len(effects), 1)
    for adaptive in (False, True):
        wrong, all_in, ranks, decided, still_open, slopes = [], [], [], [], [], []
        for _ in range(options.campaigns):
            looks, counts = looked_at(
                rng, noise, effects, options.pages, options.shown, adaptive=adaptive, delta=options.delta
            )
            known = [found for found in looks if found is not None and found.reason is None]
            off = [np.abs(found.difference - truth) > found.half for found in known]
            wrong.append(any(bool((each & (truth == 0)).any()) for each in off))
            all_in.append(not any(bool(each.any()) for each in off))
            ranks.append(
                all(
                    bool(((f.rank_low <= 1 + better) & (len(effects) - worse <= f.rank_high)).all())
                    for f in known
                )
            )
            decided.append(
                [0] * (len(looks) - len(known)) + [int((f.p_value[pair] < SIGNIFICANT).sum()) for f in known]
            )
            still_open.append(counts)
            last = known[-1].mean
            slopes.append(float(np.polyfit(effects, last, 1)[0]) if np.ptp(effects) else np.nan)
        print(f"  {'adaptive' if adaptive else 'balanced'}: {options.campaigns} campaigns")
        print(f"    at any look: some pair falsely different {share(wrong)}; all differences covered")
        print(f"    {share(all_in)}, all ranks {share(ranks)}")
        print(f"    pairs decided at each look {np.mean(decided, axis=0).round(1)} of {len(pair[0])}")
        print(f"    open systems after it {np.mean(still_open, axis=0).round(1)}")
        spread = np.std(slopes) / np.sqrt(len(slopes))
        print(f"    estimates on true effects: slope {np.mean(slopes):.3f} ± {spread:.3f}", flush=True)


def share(hits: list[bool]) -> str:
    mean = float(np.mean(hits))
    return f"{100 * mean:.1f} % ± {100 * np.sqrt(mean * (1 - mean) / len(hits)):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("documents", type=Path)
    parser.add_argument("scores", type=Path)
    parser.add_argument("--campaigns", type=int, default=100)
    parser.add_argument("--systems", type=int, default=30)
    parser.add_argument("--shown", type=int, default=3)
    parser.add_argument("--pages", type=int, default=200, help="documents of a campaign")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["equal", "apart", "thinned"])
    parser.add_argument("--adaptive", action="store_true")
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--range", type=float, default=RANGE, help="points from the worst to the best system")
    parser.add_argument("--groups", type=int, help="of equal systems, equally far apart")
    parser.add_argument("--delta", type=float, default=2.0, help="points: smaller differences do not matter")
    parser.add_argument("--views", type=float, default=VIEWS, help="sd of raters' views of systems, points")
    parser.add_argument("--raters", type=int, default=RATERS)
    options = parser.parse_args()
    Simulation.sd_of_views, Simulation.number_of_raters = options.views, options.raters
    incomplete.DRAWS = 2000  # a fifth: the level of an interval is then known to 0.5 %
    real = read(options.documents, options.scores)
    every = np.concatenate(real)
    centred = [scores - every.mean(axis=0) for scores in real]
    noise = [scores - scores.mean(axis=1, keepdims=True) for scores in centred]
    sizes = f"{len(real)} documents, {len(every)} segments, {every.shape[1]} systems"
    print(f"{sizes}; noise sd {np.concatenate(noise).std():.1f}", flush=True)
    rng = np.random.default_rng(options.seed)
    order = np.arange(options.systems)
    place = order if options.groups is None else order * options.groups // options.systems
    design = balanced_blocks(options.pages, options.systems, options.shown, str(options.seed))
    for name, effects in (
        ("equal", np.zeros(options.systems)),
        ("apart", options.range * place / place.max()),
    ):
        if options.only not in (None, name):
            continue
        if options.adaptive or options.beside:
            print(f"{name}: {options.campaigns} campaigns of {options.pages} documents")
            (designs if options.adaptive else beside)(options, rng, noise, effects)
            continue
        began, wrong, all_in, ranks, single, widths = time.perf_counter(), [], [], [], [], []
        truth = effects[:, None] - effects[None, :]
        for _ in range(options.campaigns):
            _, found = simulated(rng, noise, effects, design)
            wrong.append(bool((np.abs(found.difference) > found.half).any()))
            all_in.append(bool((np.abs(found.difference - truth) <= found.half).all()))
            rank = options.systems - order
            ranks.append(bool(((found.rank_low <= rank) & (rank <= found.rank_high)).all()))
            middle = found.mean - found.mean.mean() - effects + effects.mean()
            single += (np.abs(middle) <= found.high - found.mean).tolist()
            widths.append(float(np.median(found.half)))
        each = (time.perf_counter() - began) / options.campaigns
        print(f"{name}: {options.campaigns} campaigns of {options.pages} documents, {each:.2f} s each")
        if name == "equal":
            print(f"  some pair falsely different: {share(wrong)}")
        else:
            print(f"  all ranks in their ranges: {share(ranks)}")
        print(f"  all differences covered: {share(all_in)}; a system's mean: {share(single)}")
        print(f"  half-width of a difference: {np.mean(widths):.1f} points", flush=True)
    if options.only in (None, "thinned") and not (options.adaptive or options.beside):
        thinned(real, options.shown, options.campaigns)


def thinned(real: Documents, shown: int, draws: int) -> None:
    systems = real[0].shape[1]
    means = np.array([document.mean(axis=0) for document in real])
    sizes = np.array([len(document) for document in real], dtype=float)
    whole = (sizes / sizes.sum()) @ means
    whole -= whole.mean()
    errors, covered = [], []
    for seed in range(draws):
        blocks = balanced_blocks(len(real), systems, shown, str(seed))
        found = estimate_systems(**pages_of(real, blocks), systems=systems)
        errors.append(found.mean - found.mean.mean() - whole)
        off = found.difference - (whole[:, None] - whole[None, :])
        covered.append(bool((np.abs(off) <= found.half).all()))
    z = np.mean(errors, axis=0) / (np.std(errors, axis=0, ddof=1) / np.sqrt(draws))
    print(f"thinned to {shown} of {systems}, {draws} draws: bias in standard errors {np.round(z, 1)}")
    print(f"  root mean square error {np.sqrt(np.mean(np.square(errors))):.2f} points")
    print(f"  all differences covered: {share(covered)}")


if __name__ == "__main__":
    main()
