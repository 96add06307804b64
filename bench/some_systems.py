"""How often estimates from pages that show some of the systems err, with the noise of a real campaign.

    python bench/some_systems.py DOCUMENTS SCORES [--campaigns 100] [--only equal]

DOCUMENTS has DOMAIN TAB DOCUMENT for each segment and SCORES "SYSTEM SCORE" lines, those of a system
together (en-de.ESA-2.seg.score of WMT 2023's ESA campaign, None where nobody rated).

Simulated: pages of documents that show 3 of 30 systems by balanced blocks (`making/design.py`). The noise
is the real one: each document takes a real document's scores less the means of its systems and segments,
from as many real systems at random, so that what a document does to a system stays. Raters, a document
each, differ in severity (sd 10) and in what they think of each system (sd 3).
- equal: all systems are equal. False alarm: some interval of a difference lies beside 0 (5 ± 1 % is the
  goal).
- apart: systems lie 0 to 15 points apart. Covered: all differences in their intervals at once; ranks
  likewise; and a single system's distance from the mean, whose interval is not simultaneous.

Thinned: the real campaign's own scores, 3 of its systems on each document, against the whole campaign: how
far the mean of the estimates is from the whole, in standard errors of that mean, and how often the
simultaneous intervals hold all differences of the whole.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from creamtea.human.making.design import balanced_blocks
from creamtea.stats import incomplete
from creamtea.stats.incomplete import SystemEstimates, estimate_systems

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


def simulated(
    rng: np.random.Generator, noise: Documents, effects: Array, design: list[list[int]]
) -> SystemEstimates:
    """A campaign by this design, its systems in the places drawn anew."""
    systems, documents, shown = len(effects), len(design), len(design[0])
    raters = rng.permutation(np.arange(documents) % RATERS)
    severity, views = rng.normal(0, SEVERITY, RATERS), rng.normal(0, VIEWS, (RATERS, systems))
    names = rng.permutation(systems)
    blocks = [names[block].tolist() for block in design]
    scores = []
    for number, block in enumerate(blocks):
        real = noise[rng.integers(len(noise))]
        full = np.zeros((len(real), systems))
        full[:, block] = real[:, rng.choice(real.shape[1], shown, replace=False)]
        scores.append(full + effects + severity[raters[number]] + views[raters[number]])
    return estimate_systems(**pages_of(scores, blocks, raters), systems=systems)


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
    options = parser.parse_args()
    incomplete.DRAWS = 2000  # a fifth: the level of an interval is then known to 0.5 %
    real = read(options.documents, options.scores)
    every = np.concatenate(real)
    centred = [scores - every.mean(axis=0) for scores in real]
    noise = [scores - scores.mean(axis=1, keepdims=True) for scores in centred]
    sizes = f"{len(real)} documents, {len(every)} segments, {every.shape[1]} systems"
    print(f"{sizes}; noise sd {np.concatenate(noise).std():.1f}", flush=True)
    rng = np.random.default_rng(options.seed)
    order = np.arange(options.systems)
    design = balanced_blocks(options.pages, options.systems, options.shown, str(options.seed))
    for name, effects in (
        ("equal", np.zeros(options.systems)),
        ("apart", RANGE * order / (options.systems - 1)),
    ):
        if options.only not in (None, name):
            continue
        began, wrong, all_in, ranks, single, widths = time.perf_counter(), [], [], [], [], []
        truth = effects[:, None] - effects[None, :]
        for _ in range(options.campaigns):
            found = simulated(rng, noise, effects, design)
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
    if options.only in (None, "thinned"):
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
