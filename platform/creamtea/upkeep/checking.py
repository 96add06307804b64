"""Whether the artefact store still holds what was stored in it (`creamtea db check`)."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, CampaignMedia, StepFile, StepRow, StudyRow, StudyStep

MAX_AT_ONCE = 8  # objects that are read at a time


@dataclass(frozen=True)
class Fault:
    """An object that the database refers to and that is not what was stored."""

    path: str
    what: str  # "damaged" or "missing"
    places: tuple[str, ...]  # where it belongs, for people
    studies: tuple[str, ...]  # of which it is an output; none for a file beside sources


@dataclass(frozen=True)
class StoreCheck:
    files: int
    size: int  # bytes
    faults: tuple[Fault, ...]


@dataclass
class _Object:
    size: int
    places: set[str]
    studies: set[str]


def check_store(
    database: Database, store: ArtefactStore, report: Callable[[int, int], None] = lambda done, total: None
) -> StoreCheck:
    """Read every object that the database refers to. `report` is called with the bytes read so far, and all.

    InfrastructureError if the store cannot be read.
    """
    with database.session() as session:
        objects = _objects(session)
    total, done = sum(needed.size for needed in objects.values()), 0
    faults = []
    with ThreadPoolExecutor(min(MAX_AT_ONCE, os.cpu_count() or 1)) as readers:
        for digest, found in zip(objects, readers.map(store.digest, objects), strict=True):
            done += objects[digest].size
            report(done, total)
            if found != digest:
                faults.append(_fault(store, digest, found, objects[digest]))
    return StoreCheck(len(objects), total, tuple(faults))


def _fault(store: ArtefactStore, digest: str, found: str | None, needed: _Object) -> Fault:
    what = "missing" if found is None else "damaged"
    return Fault(store.object_path(digest), what, tuple(sorted(needed.places)), tuple(sorted(needed.studies)))


def _objects(session: Session) -> dict[str, _Object]:
    """What the database refers to, by digest."""
    found: dict[str, _Object] = defaultdict(lambda: _Object(0, set(), set()))
    outputs = (
        select(StepFile.digest, StepFile.size, StepFile.name, StudyStep.node, StudyRow.name.label("study"))
        .join(StepRow, StepRow.key == StepFile.step_key)
        .outerjoin(StudyStep, StudyStep.step_key == StepRow.key)
        .outerjoin(StudyRow, StudyRow.id == StudyStep.study_id)
        .where(StepRow.state == "succeeded")
    )
    for row in session.execute(outputs):
        needed = found[row.digest]
        needed.size = row.size
        needed.places.add(
            f"{row.node} of study {row.study}: {row.name}" if row.study else f"of no study: {row.name}"
        )
        needed.studies |= {row.study} if row.study else set()
    media = select(CampaignMedia.digest, CampaignMedia.size, Campaign.name).join(
        Campaign, Campaign.id == CampaignMedia.campaign_id
    )
    for digest, size, campaign in session.execute(media):
        found[digest].size = size
        found[digest].places.add(f"beside sources of campaign {campaign}")
    return dict(found)


def remedies(faults: Iterable[Fault]) -> list[str]:
    """What to do about them, in sentences."""
    faults = list(faults)
    studies = sorted({study for fault in faults for study in fault.studies})
    lines = []
    if any(fault.what == "damaged" for fault in faults):
        lines.append("Delete the damaged files.")
    if studies:
        lines.append(f"Then make them again: {', '.join(f'`creamtea retry {name}`' for name in studies)}.")
    if any(not fault.studies for fault in faults):
        lines.append("Put the others back from a backup.")
    return lines
