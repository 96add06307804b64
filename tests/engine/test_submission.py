"""What a submission reuses, runs again, refuses and cancels."""

from pathlib import Path

import pytest
from by_hand import ByHand
from toy_study import ToyStudy

from creamtea.errors import InputError
from creamtea.orders.submission import requeue, would_cancel
from creamtea.store.artefacts import ArtefactStore


@pytest.fixture
def study(study_on_both: ToyStudy) -> ToyStudy:
    return study_on_both


def test_succeeded_steps_are_reused_by_any_study(study: ToyStudy, hand: ByHand) -> None:
    second = study.another("second")
    second.add("shared")
    second.add("own", before=["shared"])
    study.submit("shared")
    hand.finish(hand.claimed())
    assert second.submit().reused == 1
    assert hand.claimed().name == "own"
    assert study.happened("shared")[-1] == "reused"


def test_a_step_without_its_files_runs_again_with_all_behind_it(study: ToyStudy, hand: ByHand) -> None:
    study.add("first")
    study.add("second", before=["first"])
    study.submit("other")
    for _ in range(3):
        hand.finish(hand.claimed())
    (hand.scratch / "out.txt").write_text("first")
    [file] = study.store.put_folder(hand.scratch)
    Path(study.store.object_path(file.digest)).unlink()
    submission = study.submit()
    assert (submission.reused, submission.lost) == (1, 1)
    assert study.states() == {"first": "pending", "second": "pending", "other": "succeeded"}
    assert study.happened("first")[-1] == "reset"


def test_an_empty_store_is_no_reason_to_run_all_again(study: ToyStudy, hand: ByHand, tmp_path: Path) -> None:
    study.add("first")
    study.add("second", before=["first"])
    study.submit()
    for _ in range(2):
        hand.finish(hand.claimed())
    hand.settle()
    study.store = ArtefactStore(tmp_path / "not mounted")
    for again in (study.submit, lambda: requeue(study.database, study.store, study.id)):
        with pytest.raises(InputError, match=r"not mounted has none of the 2 files .* CREAMTEA_ARTEFACTS"):
            again()
    assert set(study.states().values()) == {"succeeded"}
    assert requeue(study.database, study.store, study.id, make_anew=True).reused_keys == frozenset()
    assert study.states() == {"first": "pending", "second": "pending"}


def test_what_a_submission_would_cancel(study: ToyStudy) -> None:
    first, second = study.another("tea"), study.another("tea")
    second.add("other")
    first.submit("one")
    assert not would_cancel(study.database, first.plan, "hash")
    assert would_cancel(study.database, second.plan, "hash")  # the same spec, of changed files
