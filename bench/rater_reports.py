"""Rater reports on published campaigns: how many accepted annotators they describe as bad, and how many bad
raters they find among them.

    python bench/rater_reports.py --data DIR [--each 60] [--json]
    python bench/rater_reports.py --time 50,300,500    # processor time per rater, of simulated campaigns

DIR holds wmt22-da-de-en (WMT 2022 crowd DA of accepted workers, released in wmt22-news-systems) and
wmt23-esa-en-de (an ESA and an MQM campaign, released in ErrorSpanAnnotation). They are imported as they are.
The bad raters take an accepted annotator's place, items, controls and order, and answer anew:

- at random: each score drawn from the scale (MQM: from all scores of the campaign);
- shuffled: the annotator's own scores in another order, the hardest to tell;
- one score: for everything, one output in twenty a step off; always the best: without exception;
- reversed: the annotator's own scores, highest for lowest;
- as before: the preceding answer again nine times in ten, else a random one.

*Flagged*: a check says "look". *Described*: the report says what the answers look like. Intervals: Wilson's.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from creamtea.access import audit
from creamtea.human.formats import exchange
from creamtea.human.formats.base import ImportFacts
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.quality import (
    NONE,
    Answers,
    Comparison,
    RaterReport,
    measure,
    rater_reports,
    read_answers,
    report_of,
)
from creamtea.human.results.ratings import load_ratings
from creamtea.stats.estimate import wilson_interval
from creamtea.store.database import open_database
from creamtea.store.tables import Campaign, ItemKind

Steps = NDArray[np.int64]
ESA, MQM = (
    ("wmt23-esa-en-de/campaign/240520rc6ESA.scores.csv", "esa"),
    ("wmt23-esa-en-de/campaign/240521rc6MQM.scores.csv", "mqm"),
)
CAMPAIGNS = {  # by name: the file of scores, the protocol, and whether sources and outputs are read, too
    "crowd DA": ("wmt22-da-de-en/ad-deen-good-stnd-redup.csv", "da", False),
    "ESA": (*ESA, False),
    "ESA, with texts": (*ESA, True),
    "MQM": (*MQM, False),
    "MQM, with texts": (*MQM, True),
}
TEXTS = "wmt23-esa-en-de"
SEGMENT_SCORES = {  # published: they tell which lines of a document the campaign has
    "240520rc6ESA.scores.csv": "en-de.ESA-2.seg.score",
    "240521rc6MQM.scores.csv": "en-de.MQM-IAA.seg.score",
}
STATISTICS = "wmt22-da-de-en/ad-deen-trk-mean-sd.txt"
EACH = 60  # bad raters of a kind in a campaign


def at_random(own: Steps, rng: np.random.Generator, pool: Steps) -> Steps:
    low, high = pool.min(), pool.max()
    if high - low > 200:  # MQM's scale has 10,001 steps, of which few are used
        return rng.choice(pool, len(own))
    return rng.integers(low, high + 1, len(own))


def shuffled(own: Steps, rng: np.random.Generator, pool: Steps) -> Steps:
    return rng.permutation(own)


def one_score(own: Steps, rng: np.random.Generator, pool: Steps) -> Steps:
    return rng.choice(pool) - (rng.random(len(own)) < 0.05)


def always_the_best(own: Steps, rng: np.random.Generator, pool: Steps) -> Steps:
    return np.full(len(own), pool.max())


def reversed_scale(own: Steps, rng: np.random.Generator, pool: Steps) -> Steps:
    return own.max() + own.min() - own


def as_before(own: Steps, rng: np.random.Generator, pool: Steps) -> Steps:
    drawn = rng.choice(pool, len(own))
    fresh = rng.random(len(own)) < 0.1
    fresh[0] = True
    return drawn[np.maximum.accumulate(np.where(fresh, np.arange(len(own)), 0))]


BAD: dict[str, Callable[[Steps, np.random.Generator, Steps], Steps]] = {
    "at random": at_random,
    "shuffled": shuffled,
    "one score": one_score,
    "always the best": always_the_best,
    "reversed": reversed_scale,
    "as before": as_before,
}


@dataclass(frozen=True)
class Rate:
    count: int
    of: int

    def __str__(self) -> str:
        low, high = wilson_interval(self.count, self.of)
        share = 100 * self.count / self.of
        return f"{self.count} of {self.of} ({share:.1f} % [{100 * low:.1f}, {100 * high:.1f}])"


def texts_of(folder: Path, scores: Path) -> dict[str, Any]:
    """The sources, the documents, and the outputs of the systems that the scores name."""
    with scores.open(encoding="utf-8", newline="") as file:
        systems = {row[1] for row in csv.reader(file)}
    outputs = {f"wmt23.{path.stem}": path for path in (folder / "system-outputs" / "en-de").glob("*.txt")}
    return {
        "sources": folder / "sources" / "en-de.txt",
        "documents": folder / "documents" / "en-de.docs",
        "segment_scores": folder / "campaign" / SEGMENT_SCORES[scores.name],
        "output_of": {system: path for system, path in outputs.items() if system in systems},
    }


def answers_of(path: Path, protocol: str, **files: Any) -> Answers:
    """The campaign's answers by way of an import into a scratch database. `files`: of ImportFacts."""
    with tempfile.TemporaryDirectory(prefix="creamtea-reports-") as folder:
        database = open_database(f"sqlite:///{Path(folder) / 'scratch.db'}")
        try:
            facts = ImportFacts(name="published", protocol=protocol, **files)
            exchange.import_campaign(database, path, "appraise", facts, audit.COMMAND_LINE)
            with database.session() as session:
                return read_answers(session, load_ratings(session, session.scalars(select(Campaign)).one()))
        finally:
            database.close()


def impostors(
    answers: Answers, protocol: Protocol, kind: str, each: int, rng: np.random.Generator
) -> list[RaterReport]:
    """Reports of bad raters, one at a time in the place of an accepted one with at least 60 answers."""
    everybody = set(answers.rater.tolist())
    honest = measure(answers, protocol, everybody)
    others = Comparison(protocol, honest)
    places = [rater for rater, own in honest.items() if own.answers >= 60]
    found = []
    for rater in rng.choice(places, each, replace=each > len(places)).tolist():
        own = answers.rater[answers.answer] == rater  # one score each
        step = answers.step.copy()
        step[own] = BAD[kind](step[own], rng, answers.step)
        measured = measure(replace(answers, step=step), protocol, everybody, only={rater})[rater]
        found.append(report_of(rater, measured, others))
    return found


def simulated(raters: int, each: int = 100, systems: int = 4) -> Answers:
    """Two raters for each output of `systems` systems, on as many segments as give a rater `each` answers."""
    rng = np.random.default_rng(1)
    segments = raters * each // (2 * systems)
    worth = rng.normal(60, 15, (segments, systems))
    segment, system = (np.tile(column.ravel(), 2) for column in np.indices((segments, systems)))
    count = len(segment)
    return Answers(
        rater=rng.permutation(np.repeat(np.arange(raters), each)[:count]),
        item=segment * systems + system,
        segment=segment,
        kind=np.full(count, ItemKind.RATED, dtype="<U16"),
        original=np.full(count, NONE),
        degraded=np.full(count, NONE),
        words=np.full(count, 20.0),
        seconds=np.full(count, 20.0),
        answer=np.arange(count),
        place=np.zeros(count, dtype=np.int64),
        system=system,
        step=np.clip(worth[segment, system] + rng.normal(0, 10, count), 0, 100).astype(np.int64),
    )


def print_times(sizes: Sequence[int]) -> None:
    for size in sizes:
        answers, began = simulated(size), time.process_time()
        reports = rater_reports(answers, find_protocol("da"))
        seconds = time.process_time() - began
        print(
            f"{size} raters, {len(answers.item):,} answers: {1000 * seconds / len(reports):.1f} ms per rater"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--data", type=Path)
    what.add_argument("--time", metavar="RATERS,…", help="of campaigns with so many raters")
    parser.add_argument("--each", type=int, default=EACH, help="bad raters of a kind in a campaign")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.time:
        return print_times([int(size) for size in arguments.time.split(",")])
    rng = np.random.default_rng(12345)
    rows = []
    for name, (path, protocol_name, with_texts) in CAMPAIGNS.items():
        scores = arguments.data / path
        files = texts_of(arguments.data / TEXTS, scores) if with_texts else {}
        if protocol_name == "da":
            files["rater_statistics"] = arguments.data / STATISTICS
        answers, protocol = answers_of(scores, protocol_name, **files), find_protocol(protocol_name)
        groups = {"accepted": rater_reports(answers, protocol)}
        groups |= {kind: impostors(answers, protocol, kind, arguments.each, rng) for kind in BAD}
        for kind, reports in groups.items():
            row = {
                "campaign": name,
                "raters": kind,
                "number": len(reports),
                "flagged": sum(bool(report.flagged) for report in reports),
                "described": sum(bool(report.signs) for report in reports),
                "signs": Counter(sign for report in reports for sign in report.signs),
                "checks": Counter(check.name for report in reports for check in report.flagged),
            }
            rows.append(row)
            if arguments.json:
                print(json.dumps(row), flush=True)
                continue
            flagged, described = (Rate(row[what], len(reports)) for what in ("flagged", "described"))
            print(f"{name:15} {kind:16} flagged {flagged!s:30} described {described!s:30}", flush=True)
            print(" " * 12, dict(row["signs"]), dict(row["checks"]) if kind == "accepted" else "", flush=True)


if __name__ == "__main__":
    main()
