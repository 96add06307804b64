"""The command line in processes of its own, with fake steps where a test wants them."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fake_steps
import psutil
import pytest
from command_line import Done, call
from limits import START
from rated_study import fill_study
from sqlalchemy import func, select

from creamtea.cli import running
from creamtea.engine import lease as leases
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.store.database import Database, open_database
from creamtea.store.tables import StepRow, StudyRow, StudyStep

FAKES = Path(__file__).parent / "fakes"
STUDY = """
name: tiny
languages: {source: en, target: de}
corpora: {grammar: {kind: synthetic, train: 100, dev: 10}}
subwords: {joint: {vocabulary: 100}}
variants:
  softmax: {corpus: grammar, subwords: joint, objective: {kind: softmax}}
  scones: {corpus: grammar, subwords: joint, objective: {kind: scones}}
systems:
  softmax-greedy: {variant: softmax}
  scones-greedy: {variant: scones}
test_sets: {test: {kind: synthetic, corpus: grammar, lines: 4}}
metrics: [{kind: bleu}]
baseline: softmax-greedy
"""


@dataclass
class CommandLine:
    """Runs `creamtea` with a home of its own: in this process, or by `start` in one of its own."""

    folder: Path
    environment: dict[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def __call__(self, *arguments: str | Path, **environment: str) -> Done:
        return call({**self.environment, **environment}, *arguments, folder=self.folder)

    def refused(self, *arguments: str | Path, **environment: str) -> str:
        """What a command says that ends with exit code 2, prints nothing and shows no traceback."""
        done = self(*arguments, **environment)
        assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False), done
        return done.stderr

    def start(
        self,
        *arguments: str | Path,
        program: tuple[str, str] = ("-m", "creamtea.cli.main"),
        **environment: str,
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    @contextmanager
    def database(self) -> Iterator[Database]:
        opened = open_database(f"sqlite:///{self.home / 'creamtea.db'}")
        yield opened
        opened.close()

    @contextmanager
    def lease(self, study: int | None = None) -> Iterator[None]:
        """The work on the database, as a controller has it."""
        with self.database() as database:
            lease = leases.acquire(database, "", study)
            yield
            leases.release(database, lease)

    def json(self, *arguments: str | Path, **environment: str) -> Any:
        done = self(*arguments, "--json", **environment)
        return json.loads(done.stdout)

    def state(self, name: str = "tiny") -> dict[str, str]:
        """The states of the study's steps, by node; empty while there is no study. Straight from the
        database, since tests that wait for a state ask again and again."""
        newest = select(func.max(StudyRow.id)).where(StudyRow.name == name).scalar_subquery()
        steps = select(StudyStep.node, StepRow.state).join(StepRow, StepRow.key == StudyStep.step_key)
        with self.database() as database, database.session() as reading:
            return dict(reading.execute(steps.where(StudyStep.study_id == newest)).all())

    def draft_campaigns(self, *names: str) -> None:
        """Fill a study of three systems, and make campaigns without controls of it."""
        with self.database() as database:
            fill_study(database)
        of = ("--study", "jam", "--test-set", "test", "--systems", "plain,beam,scones")
        without = ("--set", "controls.bad_references=0", "--set", "controls.repeats=0")
        for name in names:
            made = self("campaign", "create", name, *of, *without)
            assert made.returncode == 0, made.stderr

    def stop(self) -> None:
        """End what the test left: our own processes, and detached controllers by the test's home."""
        for process in self.started:
            process.kill()
            process.communicate()
        if not self.started and not (self.home / "logs").exists():  # of detached controllers
            return
        for process in psutil.process_iter():
            try:
                if process.environ().get("CREAMTEA_HOME") == str(self.home):
                    process.send_signal(signal.SIGKILL)
            except psutil.Error:
                continue


@pytest.fixture
def creamtea(tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("CREAMTEA_", "RAY_"))
    }
    environment |= {
        "CREAMTEA_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(FAKES), os.environ.get("PYTHONPATH", "")]),
        "COLUMNS": "200",
    }
    for name, kind in list(STEP_KINDS.items()):  # `register` below replaces them all
        monkeypatch.setitem(STEP_KINDS, name, kind)
    fake_steps.register()
    monkeypatch.setattr(running, "START_SECONDS", START)  # of a controller
    (tmp_path / "home").mkdir()
    shutil.copyfile(sqlite_template, tmp_path / "home" / "creamtea.db")
    line = CommandLine(tmp_path, environment)
    yield line
    line.stop()


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(STUDY)
    return path
