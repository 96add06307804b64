"""Removing studies and campaigns from the database (`creamtea study rm`, `creamtea campaign rm`)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Select, delete, exists, func, select
from sqlalchemy.orm import Session

from creamtea.errors import InputError
from creamtea.orders.rows import LIVE, lock_steps
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign, find_study
from creamtea.store.tables import (
    Assignment,
    Campaign,
    Item,
    Rater,
    Rating,
    StepInput,
    StepRow,
    StudyRow,
    StudyStep,
)


@dataclass(frozen=True)
class Removed:
    submissions: int
    steps: int  # with their results; those that another study has stay


def remove_study(database: Database, name: str, older: bool = False) -> Removed:
    """Remove all submissions of a study, or those before the newest, with the steps that no other study has.

    Their files stay in the artefact store until `creamtea gc`. InputError for an unknown study, one that has
    not ended, and one that a campaign rests on; with `older`, submissions with a campaign are kept.
    """
    with database.transaction() as session:
        newest = find_study(session, name)
        lock_steps(session)
        chosen = select(StudyRow).where(StudyRow.name == name)
        if older:
            rests = exists().where(Campaign.study_id == StudyRow.id)
            chosen = chosen.where(StudyRow.id != newest.id, StudyRow.state.not_in(LIVE), ~rests)
        studies = {study.id: study for study in session.scalars(chosen)}
        _check(session, studies)
        session.execute(delete(StudyRow).where(StudyRow.id.in_(studies)))  # their places with them
        return Removed(len(studies), _drop_orphans(session))


def _check(session: Session, studies: dict[int, StudyRow]) -> None:
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
            f"{', '.join(sorted(campaigns))}, whose results rest on its outputs: first remove "
            "what is not needed with `creamtea campaign rm NAME`"
        )


@dataclass(frozen=True)
class RemovedCampaign:
    items: int
    raters: int
    answers: int  # of raters, each to an item


def what_it_holds(session: Session, campaign: Campaign) -> RemovedCampaign:
    """What would go with a campaign. InputError for one that people may be rating."""
    if campaign.state == "launched":
        raise InputError(
            f"campaign {campaign.name} is launched, and people may be rating: end it with "
            f"`creamtea campaign close {campaign.name}` first"
        )
    answered = select(func.count(Rating.assignment_id.distinct())).join(Assignment).join(Item)
    return RemovedCampaign(
        items=_count(session, select(func.count(Item.id)).where(Item.campaign_id == campaign.id)),
        raters=_count(session, select(func.count(Rater.id)).where(Rater.campaign_id == campaign.id)),
        answers=_count(session, answered.where(Item.campaign_id == campaign.id)),
    )


def _count(session: Session, counted: Select[int]) -> int:
    return session.scalar(counted) or 0


def remove_campaign(database: Database, name: str) -> RemovedCampaign:
    """Remove a draft or a closed campaign with its items, links, log, and all that raters have left.

    Files beside its sources stay in the artefact store until `creamtea gc`. InputError for an unknown
    campaign and one that is launched.
    """
    with database.transaction() as session:
        campaign = find_campaign(session, name, lock=True)
        removed = what_it_holds(session, campaign)
        session.execute(delete(Campaign).where(Campaign.id == campaign.id))  # all else with it
        return removed


def _drop_orphans(session: Session) -> int:
    """Delete the steps without a place in any study, with their results; returns how many."""
    orphans = StepRow.key.not_in(select(StudyStep.step_key).distinct())
    count = session.scalar(select(func.count()).where(orphans)) or 0
    # a step's inputs are in every study that has the step, so that no other step reads an orphan
    session.execute(delete(StepInput).where(StepInput.step_key.in_(select(StepRow.key).where(orphans))))
    session.execute(delete(StepRow).where(orphans).execution_options(synchronize_session=False))
    return count
