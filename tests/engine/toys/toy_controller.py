"""A controller in a process of its own, to be killed: DATABASE_URL ARTEFACTS STUDY_ID, or `service
[ADDRESS]` for what `creamtea controller` is."""

import os
import signal
import sys
from pathlib import Path

import toy_catalogue
import typer

from creamtea.cli import workplace
from creamtea.cli.running import controller
from creamtea.engine import queue
from creamtea.engine.controller import Controller
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.engine.executors.ray import RayExecutor
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import open_database


def runtime_env() -> dict[str, object]:
    return {
        # with the code of these tests, wherever it is
        "env_vars": {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])},
        "worker_process_setup_hook": "toy_catalogue.register",
    }


def main() -> None:
    if sys.argv[1] == "service":
        toy_catalogue.register()
        queue.GROW_AFTER = float(os.environ.get("TOY_GROW_AFTER", queue.GROW_AFTER))
        address = sys.argv[2] if len(sys.argv) > 2 else None
        if address:
            workplace.make_executor = lambda name, address: RayExecutor(address, runtime_env())
        try:
            controller("ray" if address else "inline", address, until_idle=False, metrics_port=None)
        except typer.Exit as exit:
            sys.exit(exit.exit_code)
        return
    url, artefacts, study_id = sys.argv[1:]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    toy_catalogue.register()
    Controller(open_database(url), ArtefactStore(artefacts), InlineExecutor()).run(int(study_id))


if __name__ == "__main__":
    main()
