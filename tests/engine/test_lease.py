"""The controller's lease: one at a time, taken over only from the dead."""

import os
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from by_hand import ByHand
from limits import wait_until
from sqlalchemy import select, text, update
from toy_study import ToyStudy

from creamtea.cli.running import control
from creamtea.engine import lease as leases
from creamtea.engine import state
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.errors import InputError
from creamtea.orders import controllers
from creamtea.orders.submission import Submission
from creamtea.store.database import Database
from creamtea.store.tables import Controller

ON_LINUX = pytest.mark.skipif(
    controllers.start_ticks(os.getpid()) is None,
    reason="elsewhere only the clock tells when a process started",
)


def pretend_owner(database: Database, owner: str, seconds: float = 30) -> None:
    """Let the lease belong to `owner` for that long."""
    with database.transaction() as session:
        until = database.now(session) + timedelta(seconds=seconds)
        session.execute(update(Controller).values(owner=owner, lease_until=until))


def test_a_second_controller_is_refused_with_who_since_when_and_what_to_do(database: Database) -> None:
    leases.acquire(database, "", None)
    with pytest.raises(InputError) as refused:
        leases.acquire(database, "", None)
    text = str(refused.value)
    assert f"process {os.getpid()} on {socket.gethostname()}, since 20" in text
    assert "Wait until it has finished" in text
    assert "CREAMTEA_HOME" in text


def test_a_released_lease_can_be_taken_at_once_and_the_fence_rises(database: Database) -> None:
    first = leases.acquire(database, "", None)
    leases.release(database, first)
    second = leases.acquire(database, "", None)
    assert second.fence == first.fence + 1
    assert not leases.renew(database, first)
    assert leases.renew(database, second)
    leases.release(database, first)  # not its own any more: nothing happens
    assert controllers.live_controller(database) is not None


def test_a_lease_of_another_host_lasts_until_it_runs_out(database: Database) -> None:
    leases.acquire(database, "", None)
    pretend_owner(database, "elsewhere:1:1700000000")
    with pytest.raises(InputError, match="process 1 on elsewhere, since 2023-11-14 22:13:20 UTC"):
        leases.acquire(database, "", None)
    pretend_owner(database, "elsewhere:1:1700000000", seconds=-1)
    assert controllers.live_controller(database) is None
    leases.acquire(database, "", None)


def test_a_dead_process_of_this_host_loses_its_lease_at_once(database: Database) -> None:
    place, _, start = leases.acquire(database, "", None).owner.split(":")
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    created = int(psutil.Process(process.pid).create_time())
    owners = [f"{socket.gethostname()}:{process.pid}:{created}"]  # as without /proc
    if (ticks := controllers.start_ticks(process.pid)) is not None:
        owners.append(f"{place.rpartition('/')[0]}/{ticks}:{process.pid}:{start}")
    for owner in owners:
        pretend_owner(database, owner)
        assert controllers.live_controller(database) is not None, owner
    pretend_owner(database, f"{socket.gethostname()}:{process.pid}:{created - 1000}")  # an earlier process
    assert controllers.live_controller(database) is None
    process.kill()
    wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE)
    for owner in owners:
        pretend_owner(database, owner)
        assert controllers.live_controller(database) is None, "a zombie is dead"
    process.wait()
    for owner in owners:
        pretend_owner(database, owner)
        assert controllers.live_controller(database) is None, "it is gone"
    leases.acquire(database, "", None)


def test_the_lease_of_a_lost_controller_runs_out_though_the_clock_was_set_back(database: Database) -> None:
    lease = leases.acquire(database, "", None)
    pretend_owner(database, "elsewhere:1:1", seconds=3600)
    with pytest.raises(leases.AnotherController):
        leases.acquire(database, "", None)
    with database.session() as session:
        row = session.scalars(select(Controller)).one()
        assert row.fence == lease.fence
        assert row.lease_until <= database.now(session) + leases.LEASE


@ON_LINUX
def test_a_clock_that_is_set_declares_no_live_controller_dead(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases.acquire(sqlite, "", None)
    real = controllers.started_at
    monkeypatch.setattr(
        controllers, "started_at", lambda pid: (real(pid) or 0) + 3600
    )  # moves with the clock
    assert controllers.live_controller(sqlite) is not None


@ON_LINUX
def test_who_sees_other_processes_waits_for_the_lease(sqlite: Database) -> None:
    lease = leases.acquire(sqlite, "", None)
    host, boot, space, rest = lease.owner.split("/")
    since, pid, start = rest.split(":")
    gone = 2**22 + 1  # above the largest pid
    for owner, alive in [
        (f"{host}/{boot}/{space}/{since}:{pid}:{start}", True),
        (f"{host}/{boot}/{space}/{since}:{gone}:{start}", False),
        (f"{host}/{boot}/{space}/{int(since) - 1}:{pid}:{start}", False),  # an earlier one of this number
        (f"{host}/{boot}/{space}1/{since}:{gone}:{start}", True),  # of another container
        (f"{host}/another/{space}/{since}:{gone}:{start}", True),  # another machine of this name
        (f"elsewhere/{boot}/{space}/{since}:{gone}:{start}", True),
    ]:
        pretend_owner(sqlite, owner)
        assert (controllers.live_controller(sqlite) is not None) == alive, owner
        pretend_owner(sqlite, owner, seconds=-1)
        assert controllers.live_controller(sqlite) is None


@ON_LINUX
def test_a_controller_of_a_user_whose_processes_are_hidden_is_not_dead(
    sqlite: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/proc with hidepid shows each user their own processes only."""
    lease = leases.acquire(sqlite, "", None)
    (tmp_path / "sys").symlink_to("/proc/sys")
    (tmp_path / "self").symlink_to("/proc/self")
    monkeypatch.setattr(controllers, "PROC", tmp_path)
    assert controllers.live_controller(sqlite) is not None
    pretend_owner(sqlite, lease.owner.replace(f":{os.getpid()}:", f":{2**22 + 1}:"))
    assert controllers.live_controller(sqlite) is None


def test_without_proc_a_process_is_told_by_its_start(
    sqlite: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controllers, "PROC", tmp_path)
    lease = leases.acquire(sqlite, "", None)
    host, pid, start = lease.owner.split(":")
    assert (host, pid) == (socket.gethostname(), str(os.getpid()))
    assert controllers.live_controller(sqlite) is not None
    pretend_owner(sqlite, f"{host}:{pid}:{int(start) - 1000}")
    assert controllers.live_controller(sqlite) is None


def test_a_run_that_fell_asleep_while_planning_gives_way_to_who_took_over(study: ToyStudy) -> None:
    def queue() -> Submission:
        submission = study.submit("step")
        pretend_owner(study.database, "elsewhere:1:1700000000")
        return submission

    with pytest.raises(
        leases.AnotherController, match=r"for 60 seconds while it planned.*process 1 on elsewhere"
    ):
        control(study.database, study.store, InlineExecutor(), queue, quiet=True)
    assert controllers.live_controller(study.database).study_id == leases.NO_STUDY
    assert study.states() == {"step": "cancelled"}


def test_a_take_over_frees_the_running_steps_without_counting_their_attempt(
    study_on_both: ToyStudy,
) -> None:
    study, database = study_on_both, study_on_both.database
    study.submit("step")
    old = ByHand(study)
    old.claimed()
    pretend_owner(database, "elsewhere:1:1700000000", seconds=-1)
    new = ByHand(study)
    row = study.rows()["step"]
    assert (row.state, row.attempts) == ("ready", 0)
    assert not state.claim(database, old.lease, [row.key], ""), "the old controller claims nothing any more"
    assert new.claimed().attempt == 1
    assert study.happened("step") == ["started", "interrupted", "started"]


def test_the_lease_of_a_run_lasts_however_long_its_planning_takes(
    study_on_both: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, database = study_on_both, study_on_both.database
    monkeypatch.setattr(leases, "RENEWAL", timedelta(milliseconds=10))

    def queue() -> Submission:
        with database.transaction() as session:
            ended = database.now(session) - timedelta(seconds=1)
            session.execute(update(Controller).values(lease_until=ended))
        wait_until(lambda: controllers.live_controller(database) is not None)
        return study.submit("step")

    control(database, study.store, InlineExecutor(), queue, quiet=True)
    assert study.states() == {"step": "succeeded"}


def test_a_database_that_goes_away_hides_no_mistake_of_a_study(sqlite: Database) -> None:
    def queue() -> int:
        with sqlite.transaction() as session:
            session.execute(text("ALTER TABLE controller RENAME TO gone"))
        raise InputError("study.yaml, line 3: no such metric")

    with pytest.raises(InputError, match="no such metric"):
        leases.hold(sqlite, "", queue)
