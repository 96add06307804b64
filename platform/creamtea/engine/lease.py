"""The controller's lease: at most one process per database claims steps.

The lease is a single row. Another process takes it over when it has expired, or at once if its owner was a
process of this host that is gone. Each take-over raises the fence, so a controller that was only asleep
learns that it has been replaced. All times come from the database's clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from creamtea.errors import InputError
from creamtea.orders.controllers import is_alive, own_name
from creamtea.orders.rows import lock_steps
from creamtea.store.database import Database
from creamtea.store.tables import Controller, Event, StepRow

LEASE = timedelta(seconds=60)  # longer than Ray takes to start on a busy machine

RENEWAL = LEASE / 3  # between two renewals while a study is planned

NO_STUDY = 0  # stands for the study of a controller that is still queueing it


class AnotherController(InputError):
    """Another controller is working on the database."""


@dataclass(frozen=True)
class Lease:
    """This process's right to claim the steps of one study, or of every queued study (`study_id` None)."""

    owner: str
    fence: int
    study_id: int | None


def acquire(database: Database, address: str, study_id: int | None) -> Lease:
    """Become the controller; raise AnotherController if one is running.

    Steps that an earlier controller left running become ready again; their lost attempts are not counted.
    """
    owner = own_name()
    shorten(database)
    try:
        with database.transaction() as session:
            now = database.now(session)
            row = session.scalar(select(Controller).with_for_update())
            if row is not None and is_alive(row, now):
                raise AnotherController(refusal(row))
            fence = 1 if row is None else row.fence + 1
            if row is None:
                row = Controller(id=1)
                session.add(row)
            row.owner, row.address, row.study_id, row.fence = owner, address, study_id, fence
            row.lease_until = now + LEASE
            release_running(session, "its controller is gone")
    except IntegrityError:  # two processes inserted the first row at the same moment
        raise AnotherController("another controller has just started on this database; try again") from None
    return Lease(owner, fence, study_id)


def hold(database: Database, address: str, queue: Callable[[], int]) -> Lease:
    """Become the controller, and then queue the study that it runs.

    `queue` queues the study and returns its number; it is not called if another controller is running.
    Raises AnotherController in that case, and if one took over while `queue` ran.
    """
    lease = acquire(database, address, NO_STUDY)
    try:
        with _renewed(database, lease):
            study_id = queue()
        with database.transaction() as session:
            if not _change(session, lease, study_id=study_id, lease_until=database.now(session) + LEASE):
                live = session.scalars(select(Controller)).one()
                raise AnotherController(
                    f"this process gave no sign of life for {LEASE.seconds} seconds while it planned the "
                    f"study (its machine slept, or was too busy), and by now {refusal(live)}"
                )
    except BaseException:
        with suppress(SQLAlchemyError):  # people need the first error; the lease expires by itself
            release(database, lease)
        raise
    return replace(lease, study_id=study_id)


@contextmanager
def _renewed(database: Database, lease: Lease) -> Iterator[None]:
    """Keep renewing the lease: reading a large corpus takes longer than a lease lasts."""
    # if no renewal succeeds before the lease expires, `hold` finds out
    done = threading.Event()

    def renew_it() -> None:
        while not done.wait(RENEWAL.total_seconds()):
            with suppress(SQLAlchemyError):
                renew(database, lease)

    thread = threading.Thread(target=renew_it, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def renew(database: Database, lease: Lease) -> bool:
    """Renew the lease; return False if another controller holds it: then this one must stop."""
    with database.transaction() as session:
        return _change(session, lease, lease_until=database.now(session) + LEASE)


def release(database: Database, lease: Lease) -> None:
    """Give up the lease, and make running steps ready; do nothing if the lease was lost."""
    with database.transaction() as session:
        if _change(session, lease, lease_until=database.now(session)):
            release_running(session, "the controller was stopped")


def shorten(database: Database) -> None:
    """Shorten a lease that lasts longer than a new one: the clock was set back.

    A living controller renews its lease within seconds; a dead controller's lease has to expire.
    """
    with database.session() as session:
        lasts = select(Controller.id).where(Controller.lease_until > Database.now(session) + LEASE)
        if session.scalar(lasts) is None:
            return
    with database.transaction() as session:
        until = database.now(session) + LEASE
        session.execute(update(Controller).where(Controller.lease_until > until).values(lease_until=until))


def refusal(live: Controller) -> str:
    """Return a message: why no second controller may start, and what to do."""
    return (
        f"another controller is working on this database: {live}. Wait until it has finished, stop that "
        "process (the next one continues its steps where they were), or name another folder in CREAMTEA_HOME"
    )


def release_running(session: Session, why: str, keys: Collection[str] | None = None) -> None:
    """Make running steps ready, all or only `keys`; raise their fences, to discard late results."""
    lock_steps(session)
    now = Database.now(session)
    chosen = [] if keys is None else [StepRow.key.in_(keys)]
    statement = (
        update(StepRow)
        .where(StepRow.state == "running", *chosen)
        .values(
            state="ready",
            attempts=StepRow.attempts - 1,
            fence=StepRow.fence + 1,
            owner=None,
            lease_until=None,
            started_at=None,
        )
        .returning(StepRow.key)
    )
    for key in session.scalars(statement).all():
        session.add(Event(step_key=key, at=now, what="interrupted", detail=why))


def _change(session: Session, lease: Lease, **values: Any) -> bool:
    """Change the lease's row; return False if another controller holds it."""
    held = update(Controller).where(Controller.owner == lease.owner, Controller.fence == lease.fence)
    return session.execute(held.values(values).returning(Controller.id)).first() is not None
