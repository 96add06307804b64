"""What a submission reuses, runs again, refuses and cancels."""

from pathlib import Path

import pytest
from by_hand import claimed, finish, settle
from toy_study import ToyStudy, happenings

from creamtea.engine.lease import Lease
from creamtea.errors import InputError
from creamtea.orders.submission import requeue, would_cancel
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database


def test_succeeded_steps_are_reused_by_any_study(
    database: Database, store: ArtefactStore, log: Path, lease: Lease, tmp_path: Path
) -> None:
    first, second = ToyStudy(log, "first"), ToyStudy(log, "second")
    key = first.add("shared")
    second.add("shared")
    second.add("own", before=["shared"])
    first.submit(database, store)
    settle(database)
    finish(database, store, claimed(database, lease), tmp_path / "out")
    submission = second.submit(database, store)
    assert submission.reused == 1
    settle(database)
    assert claimed(database, lease).name == "own"
    assert happenings(database, key)[-1] == "reused"


def test_a_step_without_its_files_runs_again_with_all_behind_it(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease, tmp_path: Path
) -> None:
    first = study.add("first")
    study.add("second", before=["first"])
    study.add("other")
    study.submit(database, store)
    for _ in range(3):
        settle(database)
        finish(database, store, claimed(database, lease), tmp_path / "out")
    settle(database)
    digest = store.put_folder(_folder(tmp_path / "same", "first"))[0].digest
    (tmp_path / "artefacts" / "objects" / digest[:2] / digest).unlink()
    submission = study.submit(database, store)
    assert submission.reused == 1
    assert study.states(database) == {"first": "pending", "second": "pending", "other": "succeeded"}
    assert happenings(database, first)[-1] == "reset"


def test_an_empty_store_is_no_reason_to_run_all_again(
    database: Database, store: ArtefactStore, study: ToyStudy, lease: Lease, tmp_path: Path
) -> None:
    study.add("first")
    study.add("second", before=["first"])
    submission = study.submit(database, store)
    for _ in range(2):
        settle(database)
        finish(database, store, claimed(database, lease), tmp_path / "out")
    settle(database)
    elsewhere = ArtefactStore(tmp_path / "not mounted")
    for again in (
        lambda: study.submit(database, elsewhere),
        lambda: requeue(database, elsewhere, submission.study_id),
    ):
        with pytest.raises(InputError, match=r"not mounted has none of the 2 files .* CREAMTEA_ARTEFACTS"):
            again()
    assert set(study.states(database).values()) == {"succeeded"}
    retried = requeue(database, elsewhere, submission.study_id, make_anew=True)
    assert retried.reused_keys == frozenset()
    assert study.states(database) == {"first": "pending", "second": "pending"}


def test_what_a_submission_would_cancel(database: Database, store: ArtefactStore, log: Path) -> None:
    first, second = ToyStudy(log, "tea"), ToyStudy(log, "tea")
    first.add("one")
    second.add("other")
    first.submit(database, store)
    assert not would_cancel(database, first.plan, "hash")
    assert would_cancel(database, second.plan, "hash")  # the same spec, of changed files


def _folder(folder: Path, text: str) -> Path:
    folder.mkdir()
    folder.joinpath("out.txt").write_text(text)
    return folder
