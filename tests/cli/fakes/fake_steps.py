"""Every step kind, done in no time: plausible rows, made up. `FAKES` (JSON) says what goes wrong.

{"train": "error"} makes every train step fail; "unavailable", "infrastructure" and "sleep" do what they
say, "once" fails the first attempt only, and "deaf" is inside of torch and hears of nothing.
"""

import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import InfrastructureError, StepError, StepUnavailable
from creamtea.steps import catalogue

LINES = 4


def register() -> None:
    """Replace every step kind of this process by its fake."""
    for name, kind in list(catalogue.STEP_KINDS.items()):
        fake = dataclasses.replace(kind, worker=f"fake_steps_{name}")
        catalogue.STEP_KINDS[name] = fake
        module = ModuleType(fake.module)
        module.run = lambda context, name=name: run(name, context)  # type: ignore[attr-defined]
        sys.modules[fake.module] = module


def run(kind: str, context: StepContext) -> StepResult:
    go_wrong(json.loads(os.environ.get("FAKES", "{}")).get(kind), context)
    lines = []
    if kind == "test_set":
        lines = [{"index": n, "source": f"s{n}", "reference": f"r{n}", "idioms": []} for n in range(LINES)]
        write(context.output / "segments.jsonl", lines)
    if kind == "decode":
        row = {"score": -1.0, "length": 1, "selected_size": 10}
        write(
            context.output / "hypotheses.jsonl", [{"index": n, "text": f"r{n}", **row} for n in range(LINES)]
        )
    if kind == "score":
        return StepResult([MetricRow(context.params.metric.kind, 50.0, 49.0, 51.0)])
    return StepResult()


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def go_wrong(how: str | None, context: StepContext) -> None:
    match how:
        case "error":
            raise StepError("the loss is NaN at update 3")
        case "unavailable":
            raise StepUnavailable("the metric's model cannot be had here")
        case "infrastructure":
            raise InfrastructureError("the disk went away")
        case "once" if context.checkpoints.read("failed", Path.exists) is None:
            leave(context, "failed")
            raise InfrastructureError("the disk went away")
        case "sleep":
            for tick in range(12_000):
                context.progress(tick, 12_000, "asleep")
                time.sleep(0.05)
        case "deaf":
            import torch

            matrix = torch.rand(200, 200)
            leave(context, "deaf")
            while True:
                torch.mm(matrix, matrix)


def leave(context: StepContext, name: str) -> None:
    """Save an empty file of this name beside the step's checkpoints."""
    marker = context.output.parent / name
    marker.touch()
    context.checkpoints.save(name, marker)
