"""Trying a sentence on the systems of a study, by a process beside the web app, which has no torch.

The process keeps the systems that it has loaded (`creamtea.engine.try_out`), so that only the first sentence
waits for them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from creamtea.errors import CreamteaError
from creamtea.settings import Settings
from creamtea_webapp.helper_process import HelperProcess, TookTooLong

COMMAND = [sys.executable, "-m", "creamtea.engine.try_out"]
SECONDS = 120.0  # for all systems together; the process is ended then
MAX_CHARACTERS = 1000  # of a sentence
MAX_WORD = 60  # characters
MAX_SYSTEMS = 4

_process = HelperProcess()  # one of this server: a model takes memory and a processor


class CannotTry(CreamteaError):
    """Why nothing, or not everything, was translated."""


def is_available() -> bool:
    """Whether models can be loaded here: torch is installed, and the artefacts are in a folder of this
    machine. CREAMTEA_TRY_OUT=off switches it off."""
    settings = Settings.load()
    return (
        settings.try_out
        and find_spec("torch") is not None
        and "://" not in settings.artefacts
        and Path(settings.artefacts).is_dir()
    )


def try_sentence(study: int, systems: Sequence[str], line: str, word: str = "") -> list[dict[str, Any]]:
    """For each system a row of `creamtea.engine.try_out`, in their order. CannotTry where another person is
    trying one, for what is too long, and after `SECONDS`."""
    if len(line) > MAX_CHARACTERS or len(word) > MAX_WORD or len(systems) > MAX_SYSTEMS:
        raise CannotTry(
            f"A sentence has at most {MAX_CHARACTERS:,} characters here, a word {MAX_WORD}, and at most "
            f"{MAX_SYSTEMS} systems translate at a time."
        )
    if not _process.busy.acquire(blocking=False):
        raise CannotTry("Somebody else is trying a sentence. Try again in a minute.")
    try:
        request = {"study": study, "systems": list(systems), "line": line, "word": word}
        rows = _process.rows(COMMAND, request, len(systems), SECONDS)
    except TookTooLong as error:
        raise CannotTry(f"{error} Choose fewer systems.") from None
    finally:
        _process.busy.release()
    if len(rows) < len(systems):
        raise CannotTry(
            f"{systems[len(rows)]} could not be tried: its process ended early. `creamtea translate` on the "
            "server's machine says why."
        )
    return rows


def end() -> None:
    """End the process, with all that it has loaded."""
    with _process.busy:
        _process.end()
