"""What a toy step does is its parameter "do"; every attempt is logged in the folder "log"."""

import errno
import os
import signal
import sys
import time
from pathlib import Path

from toy_catalogue import ToyParams

from creamtea.contract.step import GaveWay, MetricRow, PointRow, StepContext, StepResult
from creamtea.errors import InfrastructureError, InputError, StepError, StepUnavailable
from creamtea.settings import is_withheld


class Panic(BaseException):
    """As extensions in Rust raise it."""


TICKS = 12_000  # ten minutes
ENOUGH = "enough"  # a file beside the attempts


def run(context: StepContext[ToyParams]) -> StepResult:
    params = context.params
    attempt = log_attempt(Path(params.log), params.name)
    do = params.do
    if attempt <= params.until:
        misbehave(do, context)
    if do == "no result":
        return None  # type: ignore[return-value]  # what the runner must notice
    before = "".join(path.joinpath("out.txt").read_text() for path in context.inputs("before"))
    text = f"{before}{params.name}{attempt if do == 'numbered' else ''};"
    context.output.joinpath("out.txt").write_text(text)
    return StepResult(
        metrics=[MetricRow("length", float(len(text)), detail={"n": 1})],
        points=[PointRow("curve", 1.0, 2.0)],
        facts={"said": text, "withheld": list(filter(is_withheld, os.environ))},
    )


def log_attempt(log: Path, name: str) -> int:
    """Append a line "name pid" and return which attempt of this step it is."""
    with log.joinpath("attempts").open("a") as file:
        file.write(f"{name} {os.getpid()}\n")
    return attempts(log).count(name)


def attempts(log: Path) -> list[str]:
    """The names of the steps, one for each attempt, in order."""
    path = log / "attempts"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def counts(log: Path) -> list[str]:
    """Where the attempts of a counting step began, and where one waits to be killed."""
    path = log / "counts"
    return path.read_text().splitlines() if path.exists() else []


def misbehave(do: str, context: StepContext[ToyParams]) -> None:
    match do:
        case "text" | "numbered":
            pass
        case "error":
            raise ValueError("the toy is broken")
        case "step error":
            raise StepError("the loss is NaN")
        case "input error":
            raise InputError("file x is empty")
        case "unavailable":
            raise StepUnavailable("no toy model here")
        case "infrastructure":
            raise InfrastructureError("the disk went away")
        case "memory":
            raise MemoryError("too much")
        case "disk":
            raise OSError(errno.ENOSPC, "No space left on device")
        case "no result":
            pass
        case "exit":
            sys.exit(3)
        case "panic":
            raise Panic("index out of bounds")
        case "interrupt":
            raise KeyboardInterrupt
        case "give way":
            raise GaveWay
        case "sleep":  # until killed or cancelled
            wait(context)
        case "watch":  # until somebody writes that it is enough
            for tick in range(TICKS):
                context.progress(tick, TICKS, f"tick {tick}")
                if Path(context.params.log, ENOUGH).exists():
                    break
                time.sleep(0.05)
        case "nap":
            context.progress(1, 2, "napping")
            time.sleep(context.params.seconds)
        case "count":  # to ten with a checkpoint after every number; says where it began
            count(context, attempts(Path(context.params.log)).count(context.params.name))
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            raise AssertionError(do)


def wait(context: StepContext[ToyParams]) -> None:
    """Report progress until killed or cancelled: whoever polls at each report goes on polling."""
    for tick in range(TICKS):
        context.progress(tick, TICKS, f"tick {tick}")
        time.sleep(0.05)


def count(context: StepContext[ToyParams], attempt: int) -> None:
    """The first attempt goes as far as `stop_at`, and then waits to be killed."""
    first = context.checkpoints.read("number", lambda saved: int(saved.read_text())) or 0
    log = Path(context.params.log)
    with log.joinpath("counts").open("a") as file:
        file.write(f"from {first}\n")
    scratch = context.output.parent / "number"
    for number in range(first + 1, 11):
        scratch.write_text(str(number))
        context.checkpoints.save("number", scratch)
        context.progress(number, 10)
        if attempt == 1 and number == context.params.stop_at:
            with log.joinpath("counts").open("a") as file:
                file.write(f"at {number}\n")
            wait(context)
