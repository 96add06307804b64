"""A hook of Ray's workers: groups that decode wait until their node is killed, or until there is more room.

Each wait happens once, and leaves a file that says so in the folder HELD_STEPS.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from limits import ANSWER, wait_until

TOGETHER = "together"  # the second of two workers waits to be killed
ALONE = "alone"  # a worker alone waits for room
HELD_SENTENCES = 5  # that a worker has newly translated: one batch of four is saved


def environment(folder: Path) -> dict[str, object]:
    """`runtime_env` of a cluster whose steps are held."""
    toys = Path(__file__).parent
    tests = toys.parents[1]  # of whose other folders one puts fake steps into every Python
    code = [entry for entry in sys.path if entry and not Path(entry).is_relative_to(tests)]
    path = [str(toys), str(tests), *code]
    return {
        "env_vars": {"PYTHONPATH": os.pathsep.join(path), "HELD_STEPS": str(folder)},
        "worker_process_setup_hook": "held_steps.register",
    }


def register() -> None:
    """Hold the steps of this process of Ray; only those that run steps import torch."""
    from creamtea.engine import runner

    load_module = runner.load_module

    def held_module(name: str, cpus: int) -> ModuleType:
        module = load_module(name, cpus)
        if name.endswith(".decode"):
            hold_decoding(module)
        return module

    runner.load_module = held_module


def hold_decoding(decode: Any) -> None:
    translate = decode.translate

    def held_translate(translator: Any, sources: Any, context: Any, group: Any) -> object:
        progress = context.progress
        before: list[float] = []

        def held_progress(done: float, total: float, message: str = "") -> None:
            progress(done, total, message)
            before.append(done)
            if done >= before[0] + HELD_SENTENCES:
                hold(group.rank, group.size, context.has_more_room)

        context.progress = held_progress
        return translate(translator, sources, context, group)

    decode.translate, decode.SAVE_EVERY = held_translate, -1.0


def hold(rank: int, size: int, has_more_room: Callable[[], bool]) -> None:
    if size == 1 and first_time(ALONE):
        wait_until(has_more_room, ANSWER, lambda: "for more room")
    elif rank == 1 and first_time(TOGETHER):
        wait_until(lambda: False, ANSWER, lambda: "to be killed")


def first_time(wait: str) -> bool:
    try:
        Path(os.environ["HELD_STEPS"], wait).open("x").close()
    except FileExistsError:
        return False
    return True
