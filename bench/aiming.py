"""Campaigns that aim, replayed on published ratings: the same verdicts with how many ratings?

    python bench/aiming.py --data DIR [--orders 130] [--seeds 3] [--json]

DIR as of bench/rater_reports.py. A campaign is replayed with each of its systems as the baseline in turn, its
units (segments of the crowd campaign, documents of the ESA campaign) in random orders. The whole campaign's
verdicts are the registered ones: the paired t-test over units by their sizes with Holm's correction, and two
one-sided tests against ±δ, 2 points. The replay rates a system until its verdict is settled or hopeless and
on every twentieth unit after that, the baseline where another system is rated (creamtea/stats/sequential.py).
Units have their turns a few at a time, as in the application. Ratings are those of units that were rated for
the baseline: others are in no comparison. Both files have one output an item: what a shrinking board does to
scores side by side, no replay can say.

*Same*: the verdict of the whole campaign. *Against*: better for worse or the other way round. Beside it

- uniform: every system is rated until no verdict is open;
- part: a random part of the units with as many ratings, judged like the whole;
- second, second_aimed: units are drawn with replacement, as if the campaign were run once more, in full or
  aiming; *same* is still the verdict of the first. What the first cannot say of the second is noise;
- oracle: the share that is needed if the whole verdicts were known: a decided comparison is rated on the
  smallest random part (in steps of 5 %) that says the same in nine of ten orders, an undecided one never.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from creamtea.access import audit
from creamtea.human.formats import exchange
from creamtea.human.formats.base import ImportFacts
from creamtea.human.results.ratings import load_ratings
from creamtea.stats.estimate import mean_estimate
from creamtea.stats.paired import holm
from creamtea.stats.sequential import SETTLED_SHARE, State, course, look
from creamtea.store.database import open_database
from creamtea.store.tables import Campaign

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
CAMPAIGNS = {  # path, protocol, units that have their turn at once
    "ESA": ("wmt23-esa-en-de/campaign/240520rc6ESA.scores.csv", "esa", 2),
    "crowd DA": ("wmt22-da-de-en/ad-deen-good-stnd-redup.csv", "da", 5),
}
STATISTICS = "wmt22-da-de-en/ad-deen-trk-mean-sd.txt"
DELTA = 2.0
UNDECIDED = "undecided"
ORACLE_ORDERS, ORACLE_SAME = 20, 0.9


@dataclass(frozen=True)
class Published:
    """Sums and numbers of segments rated, and numbers of ratings: (units, systems) each."""

    sums: Array
    segments: Array
    ratings: Array


def published(path: Path, protocol: str, statistics: Path | None) -> Published:
    with tempfile.TemporaryDirectory(prefix="creamtea-aiming-") as folder:
        database = open_database(f"sqlite:///{Path(folder) / 'scratch.db'}")
        try:
            facts = ImportFacts(name="published", protocol=protocol, rater_statistics=statistics)
            exchange.import_campaign(database, path, "appraise", facts, audit.COMMAND_LINE)
            with database.session() as session:
                ratings = load_ratings(session, session.scalars(select(Campaign)).one())
        finally:
            database.close()
    references = [name.lower().startswith("ref") for name in ratings.campaign.systems]
    kept = (
        ~np.array([name == "reference" for name in ratings.campaign.systems])
        if any(references)
        else slice(None)
    )
    matrix = ratings.matrix()
    _, document = np.unique(ratings.document, return_inverse=True)
    shape = (int(document.max()) + 1, matrix.shape[1])
    sums, segments, many = (np.zeros(shape) for _ in range(3))
    np.add.at(sums, document, np.nan_to_num(matrix))
    np.add.at(segments, document, ~np.isnan(matrix))
    np.add.at(many, (document[ratings.unit], ratings.system), 1)
    return Published(sums[:, kept], segments[:, kept], many[:, kept])


@dataclass(frozen=True)
class Pair:
    """A system and the baseline: the units rated for both, Σ w·d and w there."""

    system: int
    units: Integers
    sums: Array
    sizes: Array


def pairs_of(data: Published, baseline: int) -> list[Pair]:
    """Of each other system; a unit's difference is that of its means, its size the smaller number of
    segments."""
    found = []
    for system in range(data.sums.shape[1]):
        if system == baseline:
            continue
        both = np.flatnonzero((data.segments[:, system] > 0) & (data.segments[:, baseline] > 0))
        size = np.minimum(data.segments[both, system], data.segments[both, baseline])
        means = data.sums[both] / np.maximum(data.segments[both], 1)
        found.append(Pair(system, both, size * (means[:, system] - means[:, baseline]), size))
    return found


def whole_verdicts(pairs: list[Pair], times: Integers) -> list[str]:
    """Of a campaign that has each unit so many `times`, without looking before its end."""
    found = []
    for pair in pairs:
        at = np.repeat(np.arange(len(pair.units)), times[pair.units])
        found.append(mean_estimate(pair.sums[at] / pair.sizes[at], pair.sizes[at]))
    verdicts = []
    for one, p in zip(found, holm([one.t_test() for one in found]), strict=True):
        within = one.interval(0.90)
        if p is not None and p < 0.05:
            verdicts.append(State.BETTER.value if (one.value or 0) > 0 else State.WORSE.value)
        elif within is not None and within[0] > -DELTA and within[1] < DELTA:
            verdicts.append(State.NO_LARGER_DIFFERENCE.value)
        else:
            verdicts.append(UNDECIDED)
    return verdicts


@dataclass(frozen=True)
class Replayed:
    verdicts: list[str]
    aimed: float  # share of the ratings
    uniform: float


def replay(
    data: Published, pairs: list[Pair], baseline: int, order: Integers, block: int, u: Array
) -> Replayed:
    """`order`: a unit of the data for each place in time (one may come twice); `u` (places,) uniform."""
    there = data.ratings[order][:, [pair.system for pair in pairs]]
    of_baseline = data.ratings[order, baseline]
    there = np.where(of_baseline[:, None] > 0, there, 0.0)
    position = np.full(len(data.sums), -1)
    places, whole = [], []
    for pair in pairs:
        position[:] = -1
        position[pair.units] = np.arange(len(pair.units))
        row = position[order]
        places.append(np.flatnonzero(row >= 0))
        row = row[row >= 0]
        whole.append(course(pair.sums[row], pair.sizes[row], len(row)))
    stopped: list[int | None] = [None] * len(pairs)  # after so many of its own units
    until = np.full(len(pairs), len(order))  # the place from which a system is rated seldom
    found, looks = [], 0
    for start in range(0, len(order), block):
        seen = [
            one.until(int(np.searchsorted(own, start)) if at is None else at)
            for one, own, at in zip(whole, places, stopped, strict=True)
        ]
        if sum(len(one.mean) for one in seen) == looks:
            continue  # nothing to look at since the last time
        looks = sum(len(one.mean) for one in seen)
        found = look(seen, DELTA, [at is not None for at in stopped])
        for at, one in enumerate(found):
            if stopped[at] is None and one.state is not State.OPEN:
                stopped[at], until[at] = seen[at].seen, start
        if None not in stopped:
            break
    else:
        seen = [one if at is None else one.until(at) for one, at in zip(whole, stopped, strict=True)]
        found = look(seen, DELTA, [at is not None for at in stopped])
    verdicts = [one.state.value if one.state.settled else UNDECIDED for one in found]
    time = np.arange(len(order))
    rated = (time[:, None] < until) | (u < SETTLED_SHARE)[:, None]
    total = float(there.sum() + of_baseline.sum())
    aimed = float((there * rated).sum() + (of_baseline * rated.any(axis=1)).sum())
    last = (time < until.max()) | (u < SETTLED_SHARE)
    return Replayed(verdicts, aimed / total, float(((there.sum(axis=1) + of_baseline) * last).sum()) / total)


def oracle(
    data: Published, pairs: list[Pair], baseline: int, wanted: list[str], rng: np.random.Generator
) -> float:
    """The share of the ratings that is needed if the whole campaign's verdicts are known."""
    units = len(data.sums)
    needed = np.array([0.0 if verdict == UNDECIDED else 1.0 for verdict in wanted])
    for share in np.arange(0.95, 0.0, -0.05):
        same = np.zeros(len(pairs))
        for _ in range(ORACLE_ORDERS):
            part = np.zeros(units, dtype=np.int64)
            part[rng.permutation(units)[: max(2, round(share * units))]] = 1
            same += [a == b for a, b in zip(whole_verdicts(pairs, part), wanted, strict=True)]
        enough = (same >= ORACLE_SAME * ORACLE_ORDERS) & (np.round(needed - share, 3) <= 0.05)
        needed = np.where(enough & (needed > 0), share, needed)
    with_baseline = data.ratings[:, baseline] > 0
    each = np.array([data.ratings[with_baseline, pair.system].sum() for pair in pairs])
    of_baseline = data.ratings[:, baseline].sum()
    return float((each @ needed + of_baseline * needed.max()) / (each.sum() + of_baseline))


def same(wanted: list[str], found: list[str]) -> float:
    return float(np.mean([a == b for a, b in zip(wanted, found, strict=True)]))


def run(name: str, data: Published, block: int, orders: int, seed: int) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    units, systems = data.sums.shape
    once = np.ones(units, dtype=np.int64)
    table, rows, oracles = Counter[tuple[str, str]](), [], []
    for number in range(orders):
        baseline = number % systems
        pairs = pairs_of(data, baseline)
        wanted = whole_verdicts(pairs, once)
        found = replay(data, pairs, baseline, rng.permutation(units), block, rng.random(units))
        table.update(zip(wanted, found.verdicts, strict=True))
        part = (rng.random(units) < found.aimed).astype(np.int64)
        again = rng.integers(0, units, units)
        second = replay(data, pairs, baseline, again, block, rng.random(units))
        if number < systems:
            oracles.append(oracle(data, pairs, baseline, wanted, rng))
        rows.append(
            {
                "aimed": found.aimed,
                "same": same(wanted, found.verdicts),
                "uniform": found.uniform,
                "part_same": same(wanted, whole_verdicts(pairs, part)),
                "second_same": same(wanted, whole_verdicts(pairs, np.bincount(again, minlength=units))),
                "second_aimed": second.aimed,
                "second_aimed_same": same(wanted, second.verdicts),
            }
        )
    total = sum(table.values())
    opposite = {(State.BETTER.value, State.WORSE.value), (State.WORSE.value, State.BETTER.value)}
    means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    errors = {key: float(np.std([row[key] for row in rows]) / math.sqrt(orders)) for key in rows[0]}
    return {
        "campaign": name,
        "seed": seed,
        "units": units,
        "systems": systems,
        "orders": orders,
        **means,
        "quartiles": np.percentile([row["aimed"] for row in rows], [25, 50, 75]).tolist(),
        "standard_errors": errors,
        "against": sum(table[pair] for pair in opposite) / total,
        "oracle": float(np.mean(oracles)),
        "table": {f"{a} → {b}": count for (a, b), count in sorted(table.items())},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--orders", type=int, default=130, help="random orders a seed, over all baselines")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    for name, (path, protocol, block) in CAMPAIGNS.items():
        statistics = arguments.data / STATISTICS if protocol == "da" else None
        data = published(arguments.data / path, protocol, statistics)
        for seed in range(1, arguments.seeds + 1):
            row = run(name, data, block, arguments.orders, seed)
            print(json.dumps(row, indent=None if arguments.json else 1, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
