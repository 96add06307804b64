"""What planning, submitting and controlling a study costs for each of its steps, which do nothing here.

The study has as many variants of three seeds as make --steps steps: train, decode, score and compare on
two test sets. The executor ends every attempt at once, without output. Slopes matter: a step of a study of
50,000 should cost what a step of 5,000 costs.

    python bench/controller.py --steps 5000 50000
    python bench/controller.py --steps 50000 --database postgresql://USER@HOST/EMPTY --profile control
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import event

from creamtea.contract.step import StepResult
from creamtea.engine.controller import Controller
from creamtea.engine.executors.base import Amounts, Capacity, FinishedAttempt, Need, StepOutcome, StepTask
from creamtea.engine.state import all_ended
from creamtea.orders.submission import Submission, submit
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.study.plan import Plan, plan
from creamtea.study.spec import Study

STEPS_PER_VARIANT = 25  # 3 train, 6 decode, 12 score, 4 compare
T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    """Of a study of that many steps; milliseconds of elapsed time per step, with the server's."""

    steps: int
    plan: float
    submit: float
    control: float
    cpu: float  # of all three: this process's processor time, which others on the machine do not lengthen
    statements: float  # of SQL per step, submission and control together

    @property
    def total(self) -> float:
        return self.plan + self.submit + self.control


class InstantExecutor:
    """Sixteen attempts at a time, each of which has succeeded when it is asked for."""

    address = opening = ""

    def __init__(self) -> None:
        self._running: list[StepTask] = []

    def capacity(self) -> Capacity:
        nodes = {"bench": Amounts(16.0, 0.0, 64.0)}
        return Capacity(nodes, ((["bench"], Need.of(task.resources)) for task in self._running))

    def check(self) -> None: ...

    def start(self, task: StepTask, nodes: Sequence[str]) -> None:
        self._running.append(task)

    def poll(self, timeout: float) -> list[FinishedAttempt]:
        finished, self._running = self._running, []
        return [FinishedAttempt(task, StepOutcome(StepResult(facts={"seconds": 0.0}))) for task in finished]

    def cancel(self, task: StepTask) -> None: ...

    def shutdown(self) -> None: ...


def make_study(name: str, steps: int) -> Study:
    variant = {"corpus": "c", "subwords": "s", "objective": {"kind": "softmax"}, "seeds": [1, 2, 3]}
    count = max(2, steps // STEPS_PER_VARIANT)
    # the learning rate makes the variants differ
    variants = {
        f"v{number}": {**variant, "training": {"learning_rate": 0.001 + 1e-7 * number}}
        for number in range(count)
    }
    return Study.model_validate(
        {
            "name": name,
            "languages": {"source": "en", "target": "de"},
            "corpora": {"c": {"kind": "synthetic", "train": 10, "dev": 10}},
            "subwords": {"s": {"kind": "bpe", "vocabulary": 600}},
            "variants": variants,
            "systems": {f"s{number}": {"variant": f"v{number}"} for number in range(count)},
            "baseline": "s0",
            "test_sets": {
                f"t{seed}": {"kind": "synthetic", "corpus": "c", "lines": 10, "seed": seed} for seed in (1, 2)
            },
        }
    )


def timed(work: Callable[[], T], profiled: bool) -> tuple[T, float]:
    profile = cProfile.Profile()
    started = time.perf_counter()
    result = profile.runcall(work) if profiled else work()
    seconds = time.perf_counter() - started
    if profiled:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
    return result, seconds


def measure(database: Database, store: ArtefactStore, steps: int, profiled: str | None) -> Cost:
    def planned() -> tuple[Plan, Study]:
        study = make_study(f"bench-{steps}-{time.time_ns()}", steps)
        return plan(study, None), study

    def submitted() -> Submission:
        return submit(database, store, made, study.model_dump(mode="json"), "bench")

    def controlled() -> None:
        Controller(database, store, InstantExecutor()).run(submission.study_id)

    statements = 0

    def count(*_: Any) -> None:
        nonlocal statements
        statements += 1

    event.listen(database.engine, "before_cursor_execute", count)
    used = time.process_time()
    (made, study), planning = timed(planned, profiled == "plan")
    submission, submitting = timed(submitted, profiled == "submit")
    _, controlling = timed(controlled, profiled == "control")
    used = time.process_time() - used
    event.remove(database.engine, "before_cursor_execute", count)
    if not all_ended(database):
        raise SystemExit("the study has not ended")
    number = len(made.steps)
    times = [1000 * seconds / number for seconds in (planning, submitting, controlling, used)]
    return Cost(number, *times, statements / number)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[500, 5000])
    parser.add_argument("--database", help="of an empty database; by default an SQLite file of its own")
    parser.add_argument("--profile", choices=["plan", "submit", "control"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for steps in options.steps:
            url = options.database or f"sqlite:///{Path(folder) / f'{steps}.db'}"
            database = open_database(url)
            cost = measure(database, ArtefactStore(Path(folder) / "artefacts"), steps, options.profile)
            database.close()
            if options.json:
                print(json.dumps(asdict(cost)), flush=True)
                continue
            print(
                f"{cost.steps:6d} steps: plan {cost.plan:.2f}, submit {cost.submit:.2f}, control "
                f"{cost.control:.2f}, in all {cost.total:.2f} ms a step "
                f"({cost.cpu:.2f} of processor time here); {cost.statements:.1f} statements",
                flush=True,
            )


if __name__ == "__main__":
    main()
