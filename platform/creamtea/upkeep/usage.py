"""How many bytes the studies take in the artefact store (`creamtea du`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.store.areas import AREAS
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.inventory import Entry, entries
from creamtea.store.tables import Campaign, CampaignMedia, StepFile, StepRow, StudyRow, StudyStep

MEDIA = "campaign"  # the kind of files beside sources


@dataclass(frozen=True)
class Use:
    """Files of one kind of step. They belong to one study, to several (shared), or to none (unneeded)."""

    # names; submissions of one name count as one study, and a campaign without a study as one
    studies: tuple[str, ...]
    kind: str  # of step, or MEDIA; empty for what neither has
    part: str  # of an Area, "media", or "other" for what no step has
    files: int
    size: int  # bytes


def usage(database: Database, store: ArtefactStore) -> list[Use]:
    """What is in the store, largest first. A file that several steps have is counted once."""
    stored = list(entries(store))
    with database.session() as session:
        owners = _owners(session)
    files: Counter[tuple[tuple[str, ...], str, str]] = Counter()
    sizes: Counter[tuple[tuple[str, ...], str, str]] = Counter()
    for entry in stored:
        place = _place(entry, owners)
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


def _place(entry: Entry, owners: Owners) -> tuple[tuple[str, ...], str, str]:
    if entry.area in AREAS and entry.owner in owners:
        kind, studies = owners[entry.owner]
        return studies, kind, "media" if kind == MEDIA else AREAS[entry.area].part
    return (), "", "other"
