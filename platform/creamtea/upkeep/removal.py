"""Removing studies from the database (`creamtea study rm`)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, exists, func, select
from sqlalchemy.orm import Session

from creamtea.errors import InputError
from creamtea.orders.rows import LIVE, lock_steps
from creamtea.store.database import Database
from creamtea.store.queries import find_study
from creamtea.store.tables import Campaign, StepInput, StepRow, StudyRow, StudyStep


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
            f"{', '.join(sorted(campaigns))}, whose results rest on its outputs: it cannot be removed"
        )


def _drop_orphans(session: Session) -> int:
    """Delete the steps without a place in any study, with their results; returns how many."""
    orphans = StepRow.key.not_in(select(StudyStep.step_key).distinct())
    count = session.scalar(select(func.count()).where(orphans)) or 0
    # a step's inputs are in every study that has the step, so that no other step reads an orphan
    session.execute(delete(StepInput).where(StepInput.step_key.in_(select(StepRow.key).where(orphans))))
    session.execute(delete(StepRow).where(orphans).execution_options(synchronize_session=False))
    return count
