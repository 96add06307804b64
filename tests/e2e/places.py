"""The study of these tests, and a CREAMTEA_HOME with the command line in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from limits import COMMAND, RAY_ENVIRONMENT
from sqlalchemy import select

from creamtea.store.database import open_database
from creamtea.store.tables import Event, Hypothesis, Metric, Point, StepFile, StudyStep

STUDY = Path(__file__).with_name("tiny.yaml")
CLOCKED = ("tokens_per_second", "sentences_per_second", "latency_")


class Place:
    """A CREAMTEA_HOME of a test, and the command line in it."""

    def __init__(self, home: Path, url: str | None = None, more: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.url = url or f"sqlite:///{home / 'creamtea.db'}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CREAMTEA", "RAY"))}
        self.environment = {
            **kept,
            "CREAMTEA_HOME": str(home),
            "CREAMTEA_DATABASE_URL": self.url,
            "OMP_NUM_THREADS": "1",
            **RAY_ENVIRONMENT,
            **(more or {}),
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "creamtea.cli.main", *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> str:
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=COMMAND)
        assert process.returncode == 0, output
        return output

    def contents(self) -> dict[str, object]:
        """What the database holds, by step key, but for times."""
        database = open_database(self.url)
        try:
            with database.session() as session:
                return {
                    "metrics": {
                        (m.step_key, m.name, m.subject): (m.value, m.low, m.high)
                        for m in session.scalars(select(Metric))
                        if not m.name.startswith(CLOCKED)
                    },
                    "points": {
                        (p.step_key, p.series, p.position): (p.x, p.y) for p in session.scalars(select(Point))
                    },
                    "hypotheses": {
                        (h.step_key, h.index): (h.text, h.score, h.selected_size)
                        for h in session.scalars(select(Hypothesis))
                    },
                    "files": {
                        (f.step_key, f.name): f.digest
                        for f in session.scalars(select(StepFile))
                        if f.name != "latency.jsonl"
                    },
                }
        finally:
            database.close()

    def happened(self, node: str) -> list[str]:
        database = open_database(self.url)
        try:
            with database.session() as session:
                keys = select(StudyStep.step_key).where(StudyStep.node == node)
                wanted = select(Event.what).where(Event.step_key.in_(keys)).order_by(Event.id)
                return list(session.scalars(wanted))
        finally:
            database.close()

    def checkpoint(self) -> float:
        """When the training was last saved; 0.0 while it has not been."""
        times = [0.0]
        for path in self.home.glob("artefacts/checkpoints/*/training.pt"):
            try:
                times.append(path.stat().st_mtime)
            except FileNotFoundError:
                continue
        return max(times)
