"""A study written in a browser: checked as `creamtea validate` checks it, its files kept inside one folder.

Whoever submits a study by the command line may read what that account may read. Who submits by a page may
not: every path must lie in the folder that the server's owner has set aside (CREAMTEA_DATA), symbolic links
followed.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from creamtea.document.warning import StudyWarning
from creamtea.errors import InputError
from creamtea.orders.submission import Submission, submit
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.study.checks.warnings import warnings_of
from creamtea.study.loader import LoadedStudy, load_study
from creamtea.study.plan import Plan, plan

MAX_CHARACTERS = 200_000
NAME = "study"  # how messages call the text: "study:12"


@dataclass(frozen=True)
class WrittenStudy:
    """A study without mistakes."""

    loaded: LoadedStudy
    planned: Plan
    warnings: tuple[StudyWarning, ...]

    @property
    def name(self) -> str:
        return self.planned.study


def check_written(text: str, folder: Path) -> WrittenStudy:
    """StudyErrors with every mistake and its line; InputError for what is not a study at all."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"the study has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    if not folder.is_dir():
        raise InputError(f"CREAMTEA_DATA={folder}: no such folder on the server")
    with tempfile.TemporaryDirectory() as aside:
        path = Path(aside) / "study.yaml"
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        loaded = load_study(path, name=NAME)
    planned = plan(loaded.study, folder, loaded.errors, confined=True)
    warnings = tuple(dict.fromkeys(warnings_of(loaded.study, planned, folder, loaded.place_of)))
    return WrittenStudy(loaded, planned, warnings)


def submit_written(database: Database, store: ArtefactStore, written: WrittenStudy) -> Submission:
    """Queue it. An unfinished study of the same name is cancelled, as by `creamtea submit`."""
    store.check_writable()
    return submit(database, store, written.planned, written.loaded.spec, written.loaded.config_hash)
