"""Upkeep: disk space, unneeded and damaged files, and removing studies and campaigns.

A file is needed if the database refers to it: an output of a step, a checkpoint of a step that has not
succeeded (without parts that belong to no complete checkpoint), a log of a step, a media file of a
campaign. A running attempt writes files that the database does not know yet, so only files that have not
changed for `age` are ever removed. If a step produces an existing file again, or a campaign gets a file
again, the file's time is renewed.
"""

from __future__ import annotations

import os
import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Select, delete, exists, func, select, union
from sqlalchemy.orm import Session

from creamtea.contract.step import orphaned_parts
from creamtea.errors import InfrastructureError, InputError
from creamtea.orders.rows import LIVE, lock_steps
from creamtea.steps.catalogue import is_of_this_version
from creamtea.store.areas import AREAS, Entry, Kept, entries, remove
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign, find_study
from creamtea.store.tables import (
    Assignment,
    Campaign,
    CampaignMedia,
    Item,
    Rater,
    Rating,
    StepFile,
    StepInput,
    StepRow,
    StudyRow,
    StudyStep,
)
from creamtea.wording import counted

AGE = timedelta(hours=24)


@dataclass(frozen=True)
class Needed:
    """The files and steps that the database refers to."""

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
        if entry.area not in AREAS:  # not one of our files
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
    """Return True if the database refers to no output: then `unneeded` cannot recognise its store."""
    with database.session() as session:
        return not session.scalar(select(exists(union(*_digests()).subquery())))


def _digests() -> tuple[Select[str], Select[str]]:
    return select(StepFile.digest), select(CampaignMedia.digest)


def unneeded(database: Database, store: ArtefactStore, age: timedelta = AGE) -> list[Entry]:
    """List the files that no study needs and that have not changed during `age`.

    Raises InputError if the database refers to none of the store's outputs: one of the two is the wrong one.
    """
    stored = list(entries(store))  # listed before the database is read, so that no newer file is unneeded
    needed = Needed.load(database)
    outputs = [entry for entry in stored if entry.area == "objects"]
    if outputs and not any(needed.includes(entry) for entry in outputs):
        raise InputError(
            f"the database refers to none of the {counted(len(outputs), 'output')} in {store.root}: check "
            "CREAMTEA_DATABASE_URL and CREAMTEA_ARTEFACTS. If no database needs them, delete that folder"
        )
    before = time.time() - age.total_seconds()
    garbage = [
        entry
        for group in _by_owner(each for each in stored if not needed.includes(each))
        if max(each.modified for each in group) < before  # a step's checkpoints are removed together
        for entry in group
    ]
    checkpoints = [entry for entry in stored if entry.area == "checkpoints" and needed.includes(entry)]
    parts = (entry for group in _by_owner(checkpoints) for entry in _unused_parts(store, group))
    return [*garbage, *(entry for entry in parts if entry.modified < before)]


def _unused_parts(store: ArtefactStore, group: list[Entry]) -> list[Entry]:
    """List the parts of one step's large checkpoints that an interrupted save left behind."""
    names = {entry.path.partition(f"/{entry.owner}/")[2]: entry for entry in group}
    saved = store.checkpoints(group[0].owner)

    def read(name: str) -> bytes:
        content = saved.read(name, Path.read_bytes)
        if content is None:
            raise InfrastructureError(f"{names[name].path} has just been removed: run the command again")
        return content

    return [names[name] for name in orphaned_parts(names, read)]


def collect(store: ArtefactStore, garbage: Iterable[Entry], age: timedelta = AGE) -> list[Entry]:
    """Delete the files that `unneeded` listed, except files changed since; return the deleted files."""
    before = time.time() - age.total_seconds()
    return [entry for entry in garbage if remove(store, entry, before)]


def _by_owner(stored: Iterable[Entry]) -> list[list[Entry]]:
    groups: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in stored:
        groups[entry.area, entry.owner].append(entry)
    return list(groups.values())


# ---------------------------------------------------------------- creamtea du

MEDIA = "campaign"  # the kind for media files


@dataclass(frozen=True)
class Use:
    """Files of one kind of step. They belong to one study, to several (shared), or to none (unneeded)."""

    # names; submissions with the same name count as one study, and a campaign without a study counts as one
    studies: tuple[str, ...]
    kind: str  # kind of step, or MEDIA; "" for other files
    part: str  # an Area's part, "media", or "other" for files of no step
    files: int
    size: int  # bytes


def usage(database: Database, store: ArtefactStore) -> list[Use]:
    """Return the use of the store, largest first; a file that several steps have is counted once."""
    stored = list(entries(store))
    with database.session() as session:
        owners = _owners(session)
    files: Counter[tuple[tuple[str, ...], str, str]] = Counter()
    sizes: Counter[tuple[tuple[str, ...], str, str]] = Counter()
    for entry in stored:
        place: tuple[tuple[str, ...], str, str] = ((), "", "other")
        if entry.area in AREAS and entry.owner in owners:
            kind, studies = owners[entry.owner]
            place = studies, kind, "media" if kind == MEDIA else AREAS[entry.area].part
        files[place] += 1
        sizes[place] += entry.size
    uses = [Use(*place, files[place], sizes[place]) for place in files]
    return sorted(uses, key=lambda use: (-use.size, use.studies, use.kind, use.part))


Owners = dict[str, tuple[str, tuple[str, ...]]]  # a step's key or a digest: kind, names of studies


def _owners(session: Session) -> Owners:
    kinds: dict[str, str] = {}
    names: dict[str, set[str]] = defaultdict(set)
    places = (
        select(StepRow.key, StepRow.kind, StudyRow.name)
        .join(StudyStep, StudyStep.step_key == StepRow.key)
        .join(StudyRow, StudyRow.id == StudyStep.study_id)
        .distinct()
    )
    for key, kind, study in session.execute(places):
        kinds[key] = kind
        names[key].add(study)
    for digest, key in session.execute(select(StepFile.digest, StepFile.step_key)):
        if key in kinds:
            kinds[digest] = min(kinds.get(digest, kinds[key]), kinds[key])
            names[digest] |= names[key]
    shown = (
        select(CampaignMedia.digest, Campaign.name, StudyRow.name)
        .join(Campaign, Campaign.id == CampaignMedia.campaign_id)
        .outerjoin(StudyRow, StudyRow.id == Campaign.study_id)
    )
    for digest, campaign, study in session.execute(shown):
        kinds.setdefault(digest, MEDIA)
        names[digest].add(study or f"campaign {campaign}")
    return {owner: (kind, tuple(sorted(names[owner]))) for owner, kind in kinds.items()}


# ---------------------------------------------------------------- creamtea db check

MAX_AT_ONCE = 8  # objects to read at a time


@dataclass(frozen=True)
class Fault:
    """An object that the database refers to, and that is damaged, missing or unreadable."""

    path: str
    what: str  # "damaged", "missing" or "unreadable"
    places: tuple[str, ...]  # its places in studies and campaigns, for people
    studies: tuple[str, ...]  # studies with this output; () for a media file
    submission: int | None  # the newest submission with this output
    outdated: bool  # made by another version of creamtea, whose steps this version cannot run


@dataclass(frozen=True)
class StoreCheck:
    root: str
    files: int
    size: int  # bytes
    faults: tuple[Fault, ...]
    retries: tuple[str, ...] = ()  # arguments of `creamtea retry` that make the faulty outputs again


@dataclass
class _Object:
    size: int
    places: set[str]
    studies: dict[int, str]  # names, by number of the submission
    outdated: bool = False


def check_store(
    database: Database, store: ArtefactStore, report: Callable[[int, int], None] = lambda done, total: None
) -> StoreCheck:
    """Read every object that the database refers to; find damaged and missing objects.

    Calls `report` with the bytes read so far, and all bytes. Raises InfrastructureError if a remote store
    cannot be read.
    """
    with database.session() as session:
        objects = _objects(session)
        newest = dict(
            session.execute(select(StudyRow.name, func.max(StudyRow.id)).group_by(StudyRow.name)).all()
        )
    total, done = sum(needed.size for needed in objects.values()), 0
    faults, intact, to_retry = [], set[int](), dict[int, str]()

    def digest_or_error(digest: str) -> str | InfrastructureError | None:
        try:
            return store.digest(digest)
        except InfrastructureError as error:
            if not store.local:
                raise
            return error  # a bad block of the disk, say: the other files are read all the same

    with ThreadPoolExecutor(min(MAX_AT_ONCE, os.cpu_count() or 1)) as readers:
        for (digest, needed), read in zip(
            objects.items(), readers.map(digest_or_error, objects), strict=True
        ):
            done += needed.size
            report(done, total)
            if read == digest:
                intact.update(needed.studies)
                continue
            what = "damaged" if isinstance(read, str) else "unreadable" if read else "missing"
            places, studies = tuple(sorted(needed.places)), tuple(sorted(set(needed.studies.values())))
            last = max(needed.studies, default=None)
            fault = Fault(store.object_path(digest), what, places, studies, last, needed.outdated)
            faults.append(fault)
            if last is not None and not needed.outdated:
                name = needed.studies[last]
                to_retry[last] = shlex.quote(name) if newest[name] == last else str(last)
    retries = tuple(
        name + ("" if number in intact else " --make-anew") for number, name in sorted(to_retry.items())
    )
    return StoreCheck(store.root, len(objects), total, tuple(faults), retries)


def _objects(session: Session) -> dict[str, _Object]:
    """Return the objects that the database refers to, by digest."""
    objects: dict[str, _Object] = defaultdict(lambda: _Object(0, set(), {}))
    outputs = (
        select(
            StepFile.digest,
            StepFile.size,
            StepFile.name,
            StepRow.kind,
            StepRow.version,
            StudyStep.node,
            StudyRow.name.label("study"),
            StudyRow.id.label("submission"),
        )
        .join(StepRow, StepRow.key == StepFile.step_key)
        .outerjoin(StudyStep, StudyStep.step_key == StepRow.key)
        .outerjoin(StudyRow, StudyRow.id == StudyStep.study_id)
        .where(StepRow.state == "succeeded")
    )
    for row in session.execute(outputs):
        needed = objects[row.digest]
        needed.size = row.size
        needed.places.add(
            f"{row.node} of study {row.study}: {row.name}" if row.study else f"of no study: {row.name}"
        )
        needed.outdated |= not is_of_this_version(row.kind, row.version)
        if row.study:
            needed.studies[row.submission] = row.study
    media = select(CampaignMedia.digest, CampaignMedia.size, Campaign.name).join(
        Campaign, Campaign.id == CampaignMedia.campaign_id
    )
    for digest, size, campaign in session.execute(media):
        objects[digest].size = size
        objects[digest].places.add(f"media files of campaign {campaign}")
    return dict(objects)


def remedies(checked: StoreCheck) -> list[str]:
    """Return sentences that say what to do about the faults."""
    lines = []
    whats = {fault.what for fault in checked.faults}
    if "damaged" in whats:
        lines.append("Delete the damaged files.")
    if "unreadable" in whats:
        lines.append("Check the rights of the unreadable files and the machine's log; delete what stays so.")
    if checked.retries:
        commands = ", ".join(f"`creamtea retry {name}`" for name in checked.retries)
        lines.append(f"{'Then make' if lines else 'Make'} them again: {commands}.")
    if any(fault.outdated for fault in checked.faults):
        lines.append(
            "Put what another version of creamtea made back from a backup, or run the study's file again."
        )
    if any(not fault.studies for fault in checked.faults):
        lines.append("Put the others back from a backup.")
    return lines


@dataclass(frozen=True)
class Removed:
    submissions: int
    steps: int  # with their results; steps of other studies stay


def remove_study(database: Database, name: str, older: bool = False) -> Removed:
    """Remove all submissions of a study, and steps that no other study has.

    `older`: keep the newest submission, running ones, and submissions with a campaign. Files stay in the
    artefact store until `creamtea gc`. Raises InputError for a study that is unknown, that has not ended, or
    that a campaign needs.
    """
    with database.transaction() as session:
        newest = find_study(session, name)
        lock_steps(session)
        chosen = select(StudyRow).where(StudyRow.name == name)
        if older:
            rests = exists().where(Campaign.study_id == StudyRow.id)
            chosen = chosen.where(StudyRow.id != newest.id, StudyRow.state.not_in(LIVE), ~rests)
        studies = {study.id: study for study in session.scalars(chosen)}
        _check_removable(session, studies)
        session.execute(delete(StudyRow).where(StudyRow.id.in_(studies)))  # also deletes their places
        # steps without a place in any study, with their results
        orphans = StepRow.key.not_in(select(StudyStep.step_key).distinct())
        count = session.scalar(select(func.count()).where(orphans)) or 0
        # a step's inputs are in every study that has the step, so that no other step reads an orphan
        session.execute(delete(StepInput).where(StepInput.step_key.in_(select(StepRow.key).where(orphans))))
        session.execute(delete(StepRow).where(orphans).execution_options(synchronize_session=False))
        return Removed(len(studies), count)


def _check_removable(session: Session, studies: dict[int, StudyRow]) -> None:
    for study in studies.values():
        if study.state in LIVE:
            raise InputError(
                f"study {study.name} is {study.state}: stop it with `creamtea cancel {study.name}` first"
            )
    campaigns = session.scalars(select(Campaign.name).where(Campaign.study_id.in_(studies))).all()
    if campaigns:
        name = next(iter(studies.values())).name
        raise InputError(
            f"study {name} is needed by {'campaign' if len(campaigns) == 1 else 'campaigns'} "
            f"{', '.join(sorted(campaigns))}, whose results rest on its outputs: first remove the "
            "campaigns that nobody needs with `creamtea campaign rm NAME`"
        )


@dataclass(frozen=True)
class RemovedCampaign:
    items: int
    raters: int
    answers: int  # one per rater and item


def what_it_holds(session: Session, campaign: Campaign) -> RemovedCampaign:
    """Count the rows to remove with a campaign. Raise InputError if people may be rating it."""
    if campaign.state == "launched":
        raise InputError(
            f"campaign {campaign.name} is launched, and people may be rating: end it with "
            f"`creamtea campaign close {campaign.name}` first"
        )
    answered = select(func.count(Rating.assignment_id.distinct())).join(Assignment).join(Item)
    return RemovedCampaign(
        items=session.scalar(select(func.count(Item.id)).where(Item.campaign_id == campaign.id)) or 0,
        raters=session.scalar(select(func.count(Rater.id)).where(Rater.campaign_id == campaign.id)) or 0,
        answers=session.scalar(answered.where(Item.campaign_id == campaign.id)) or 0,
    )


def remove_campaigns(database: Database, names: Sequence[str]) -> list[RemovedCampaign]:
    """Remove draft or closed campaigns with their items, links, logs and all data of raters.

    Removes all of them or none. Media files stay in the artefact store until `creamtea gc`.
    Raises InputError for a campaign that is unknown or launched.
    """
    with database.transaction() as session:
        campaigns = [find_campaign(session, name, lock=True) for name in names]
        removed = [what_it_holds(session, campaign) for campaign in campaigns]
        ids = [campaign.id for campaign in campaigns]
        session.execute(delete(Campaign).where(Campaign.id.in_(ids)))  # also deletes everything below
        return removed
