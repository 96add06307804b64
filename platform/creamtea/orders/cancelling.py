"""Cancelling a study."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import exists, update
from sqlalchemy.orm import Session

from creamtea.orders.rows import LIVE, UNFINISHED, add_events, keys_of, lock_steps
from creamtea.store.database import Database
from creamtea.store.tables import StepRow, StudyRow, StudyStep


def cancel(database: Database, study_id: int) -> bool:
    """Cancel a study, and those of its unfinished steps that no other live study needs.

    A running step loses its claim: its controller notices that at the next renewal and stops it. False: the
    study had already ended.
    """
    with database.transaction() as session:
        lock_steps(session)
        return cancel_in(session, study_id, database.now(session))


def cancel_in(session: Session, study_id: int, now: datetime) -> bool:
    ended = session.execute(
        update(StudyRow)
        .where(StudyRow.id == study_id, StudyRow.state.in_(LIVE))
        .values(state="cancelled", finished_at=now)
        .returning(StudyRow.id)
        .execution_options(synchronize_session=False)
    ).first()
    if ended is None:
        return False
    shared = exists().where(
        StudyStep.step_key == StepRow.key,
        StudyStep.study_id == StudyRow.id,
        StudyRow.id != study_id,
        StudyRow.state.in_(LIVE),
    )
    keys = session.scalars(
        update(StepRow)
        .where(StepRow.key.in_(keys_of(study_id)), StepRow.state.in_(UNFINISHED), ~shared)
        .values(state="cancelled", fence=StepRow.fence + 1, owner=None, lease_until=None, finished_at=now)
        .returning(StepRow.key)
        .execution_options(synchronize_session=False)
    ).all()
    add_events(session, keys, now, "cancelled")
    return True
