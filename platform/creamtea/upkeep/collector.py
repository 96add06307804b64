"""What no study needs any more: outputs, checkpoints, logs and temporary files (`creamtea gc`).

A file is needed if the database refers to it: an output of a step, a checkpoint of a step that has not
succeeded (without parts that belong to no whole one), a log of a step, a file beside a source of a campaign.
A running attempt writes files that the database does not know yet, so that only files without a change for
`age` are ever removed. A step that produces what exists already makes it young, as a campaign does that is
given a file again.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Select, exists, select, union

from creamtea.contract.parts import halves
from creamtea.errors import InfrastructureError, InputError
from creamtea.store.areas import AREAS, Kept
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.inventory import Entry, entries, remove
from creamtea.store.tables import CampaignMedia, StepFile, StepRow
from creamtea.wording import counted

AGE = timedelta(hours=24)


@dataclass(frozen=True)
class Needed:
    """What the database refers to."""

    digests: frozenset[str]
    steps: frozenset[str]
    unfinished: frozenset[str]  # the steps that have not succeeded

    @classmethod
    def load(cls, database: Database) -> Needed:
        with database.session() as session:
            digests = frozenset(session.scalars(union(*_digests())))
            steps = session.execute(select(StepRow.key, StepRow.state)).all()
        unfinished = frozenset(key for key, state in steps if state != "succeeded")
        return cls(digests, frozenset(key for key, _ in steps), unfinished)

    def includes(self, entry: Entry) -> bool:
        if entry.area not in AREAS:  # it is not ours
            return True
        match AREAS[entry.area].kept:
            case Kept.REFERENCED:
                return entry.owner in self.digests
            case Kept.UNFINISHED:
                return entry.owner in self.unfinished
            case Kept.STEP:
                return entry.owner in self.steps
            case Kept.ALWAYS:
                return True
            case Kept.WRITING:
                return False


def needs_no_files(database: Database) -> bool:
    """True where it refers to no output at all, so that `unneeded` could not tell whose store it is given."""
    with database.session() as session:
        return not session.scalar(select(exists(union(*_digests()).subquery())))


def _digests() -> tuple[Select[str], Select[str]]:
    return select(StepFile.digest), select(CampaignMedia.digest)


def unneeded(database: Database, store: ArtefactStore, age: timedelta = AGE) -> list[Entry]:
    """The files that no study needs, none of them changed during `age`.

    InputError if the database knows none of the store's outputs: then one of the two is the wrong one.
    """
    stored = list(entries(store))  # before the database is read: what is committed now is needed below
    needed = Needed.load(database)
    outputs = [entry for entry in stored if entry.area == "objects"]
    if outputs and not any(needed.includes(entry) for entry in outputs):
        raise InputError(
            f"the database refers to none of the {counted(len(outputs), 'output')} in {store.root}: check "
            "CREAMTEA_DATABASE_URL and CREAMTEA_ARTEFACTS. If no database needs them, delete that folder"
        )
    before = time.time() - age.total_seconds()
    left = [
        entry
        for group in _by_owner(entry for entry in stored if not needed.includes(entry))
        if max(entry.modified for entry in group) < before  # checkpoints go together or not at all
        for entry in group
    ]
    kept = [entry for entry in stored if entry.area == "checkpoints" and needed.includes(entry)]
    parts = (entry for group in _by_owner(kept) for entry in _halves(store, group))
    return [*left, *(entry for entry in parts if entry.modified < before)]


def _halves(store: ArtefactStore, group: list[Entry]) -> list[Entry]:
    """Parts of large checkpoints of one step, written by a save that did not end."""
    names = {entry.path.partition(f"/{entry.owner}/")[2]: entry for entry in group}
    saved = store.checkpoints(group[0].owner)

    def read(name: str) -> bytes:
        content = saved.read(name, Path.read_bytes)
        if content is None:
            raise InfrastructureError(f"{names[name].path} has just been removed: run the command again")
        return content

    return [names[name] for name in halves(names, read)]


def collect(store: ArtefactStore, garbage: Iterable[Entry], age: timedelta = AGE) -> list[Entry]:
    """Delete what `unneeded` found; returns what has gone. What has changed in the meantime stays."""
    before = time.time() - age.total_seconds()
    return [entry for entry in garbage if remove(store, entry, before)]


def _by_owner(stored: Iterable[Entry]) -> list[list[Entry]]:
    groups: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in stored:
        groups[entry.area, entry.owner].append(entry)
    return list(groups.values())
