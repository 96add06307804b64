"""Campaigns that aim, replayed on published ratings: the same verdicts with how many ratings?

    python bench/aiming.py --data DIR [--orders 100] [--json]

DIR as of bench/rater_reports.py. A campaign is replayed with each of its systems as the baseline in turn, its
units (segments of the crowd campaign, documents of the ESA campaign) in random orders. The whole
campaign's verdicts are those of the paired t-test over units with Holm's correction and of two one-sided
tests against ±δ, 2 points. The replay looks after every ten units, rates a system until its verdict is
settled or hopeless and on every tenth unit after that, the baseline where another system is rated
(creamtea/stats/aiming.py). *Same*: the verdict of the whole campaign. *Against*: better for worse or the
other way round. Beside it: a random part of the units with as many ratings, judged like the whole. Other
kinds of mistakes are in the table.
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
from scipy import stats
from sqlalchemy import select

from creamtea.human import audit
from creamtea.human.exchange import exporting
from creamtea.human.exchange.elsewhere import ImportFacts
from creamtea.human.results import load_ratings
from creamtea.stats.aiming import SETTLED_SHARE, State, look
from creamtea.stats.correction import holm
from creamtea.store.database import open_database
from creamtea.store.tables import Campaign

Array = NDArray[np.float64]
CAMPAIGNS = {
    "crowd DA": ("wmt22-da-de-en/ad-deen-good-stnd-redup.csv", "da"),
    "ESA": ("wmt23-esa-en-de/campaign/240520rc6ESA.scores.csv", "esa"),
}
STATISTICS = "wmt22-da-de-en/ad-deen-trk-mean-sd.txt"
EVERY, DELTA = 10, 2.0
UNDECIDED = "undecided"


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
            facts = ImportFacts(name="published", protocol=protocol, statistics=statistics)
            exporting.import_campaign(database, path, "appraise", facts, audit.COMMAND_LINE)
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


def differences(data: Published, baseline: int) -> list[tuple[NDArray[np.int64], Array]]:
    """For each other system the units that are rated for both, and the differences there: of units of
    unequal length w_t · d_t, whose mean is that over segments."""
    found = []
    for system in range(data.sums.shape[1]):
        if system == baseline:
            continue
        both = np.flatnonzero((data.segments[:, system] > 0) & (data.segments[:, baseline] > 0))
        size = np.minimum(data.segments[both, system], data.segments[both, baseline])
        means = (
            data.sums[both, system] / data.segments[both, system]
            - data.sums[both, baseline] / data.segments[both, baseline]
        )
        found.append((both, means * size / size.mean()))
    return found


def whole_verdicts(pairs: list[tuple[NDArray[np.int64], Array]]) -> list[str]:
    """Of the campaign as it was, without looking before its end."""
    p = holm([float(stats.ttest_1samp(values, 0.0).pvalue) for _, values in pairs])
    verdicts = []
    for (_, values), corrected in zip(pairs, p, strict=True):
        mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
        half = float(stats.t.ppf(0.95, len(values) - 1)) * error
        if corrected is not None and corrected < 0.05:
            verdicts.append(State.BETTER.value if mean > 0 else State.WORSE.value)
        else:
            within = abs(mean) + half < DELTA
            verdicts.append(State.NO_LARGER_DIFFERENCE.value if within else UNDECIDED)
    return verdicts


def replay(
    data: Published, baseline: int, order: NDArray[np.int64], rng: np.random.Generator
) -> tuple[list[str], float]:
    """The verdicts of the campaign that aims, and its ratings' share of the whole."""
    pairs = differences(data, baseline)
    others = [system for system in range(data.sums.shape[1]) if system != baseline]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    sorted_pairs = []
    for units, values in pairs:
        by_time = np.argsort(place[units])
        sorted_pairs.append((place[units][by_time], values[by_time]))
    verdict: list[str | None] = [None] * len(others)
    used = 0.0
    for start in range(0, len(order), EVERY):
        end = min(start + EVERY, len(order))
        now = order[start:end]
        is_open = np.array([state is None for state in verdict])
        rated = is_open[None, :] | (rng.random((len(now), len(others))) < SETTLED_SHARE)
        used += float((data.ratings[np.ix_(now, others)] * rated).sum())
        used += float(data.ratings[now, baseline][rated.any(axis=1)].sum())
        if not is_open.any():
            continue
        counts = [int(np.searchsorted(times, end)) for times, _ in sorted_pairs]
        planned = [len(values) for _, values in sorted_pairs]
        seen = [values[:count] for (_, values), count in zip(sorted_pairs, counts, strict=True)]
        for at, found in enumerate(look(seen, planned, DELTA)):
            if verdict[at] is None and found.state is not State.OPEN:
                verdict[at] = UNDECIDED if found.state is State.HOPELESS else found.state.value
    return [state or UNDECIDED for state in verdict], used / float(data.ratings.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--orders", type=int, default=100, help="random orders, over all baselines")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rng = np.random.default_rng(12345)
    for name, (path, protocol) in CAMPAIGNS.items():
        statistics = arguments.data / STATISTICS if protocol == "da" else None
        data = published(arguments.data / path, protocol, statistics)
        units, systems = data.sums.shape
        table, shares, alike = Counter[tuple[str, str]](), [], 0
        for number in range(arguments.orders):
            baseline = number % systems
            wanted = whole_verdicts(differences(data, baseline))
            found, share = replay(data, baseline, rng.permutation(units), rng)
            table.update(zip(wanted, found, strict=True))
            shares.append(share)
            fewer = rng.random(units) < share
            parts = [(at[fewer[at]], values[fewer[at]]) for at, values in differences(data, baseline)]
            alike += sum(a == b for a, b in zip(wanted, whole_verdicts(parts), strict=True))
        total = sum(table.values())
        opposite = {(State.BETTER.value, State.WORSE.value), (State.WORSE.value, State.BETTER.value)}
        row = {
            "campaign": name,
            "units": units,
            "systems": systems,
            "ratings_share": float(np.mean(shares)),
            "ratings_share_quartiles": np.percentile(shares, [25, 50, 75]).tolist(),
            "same": sum(count for (a, b), count in table.items() if a == b) / total,
            "same_with_a_random_part_as_large": alike / total,
            "against": sum(table[pair] for pair in opposite) / total,
            "table": {f"{a} → {b}": count for (a, b), count in sorted(table.items())},
        }
        print(json.dumps(row, indent=None if arguments.json else 1, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
