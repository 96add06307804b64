"""Removing studies and files: what is needed stays, whatever runs at the same time."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_campaigns import add_rater, make_campaign, rate, work_for
from sqlalchemy import func, select
from table_rows import all_of, campaign_row
from toy_study import ToyStudy

from creamtea.contract.step import LiveView, PartIndex
from creamtea.errors import DamagedArtefact, InputError
from creamtea.human.results.ratings import fingerprint
from creamtea.store.areas import AREAS, UPLOADS, Entry, LogName, entries, write_log
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.database import Database
from creamtea.store.tables import Base, Campaign, CampaignMedia, StepFile, StudyRow, StudyStep
from creamtea.upkeep import Removed, RemovedCampaign, collect, remove_campaigns, remove_study, unneeded, usage

RunToys = Callable[..., ToyStudy]
OF_CAMPAIGNS = ("campaign", "item", "rater", "assignment", "rating", "audit_event")


def age_all(store: ArtefactStore) -> None:
    for path in Path(store.root).rglob("*"):
        if path.is_file():
            os.utime(path, (1, 1))


def write(store: ArtefactStore, *places: str) -> None:
    for place in places:
        path = Path(store.root) / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("left behind")


def digests(store: ArtefactStore) -> set[str]:
    return {entry.owner for entry in entries(store) if entry.area == "objects"}


def digests_of_studies(database: Database) -> set[str]:
    """The slow way: every file of every step of every study."""
    with database.session() as session:
        return {
            file.digest
            for study in session.scalars(select(StudyRow))
            for place in session.scalars(select(StudyStep).where(StudyStep.study_id == study.id))
            for file in session.scalars(select(StepFile).where(StepFile.step_key == place.step_key))
        }


def count_rows(database: Database, name: str) -> int:
    with database.session() as session:
        return session.scalar(select(func.count()).select_from(Base.metadata.tables[name])) or 0


# ---------------------------------------------------------------- gc


def test_halves_of_a_large_checkpoint_go_and_the_whole_one_stays(
    run_toys: RunToys, database: Database, store: ArtefactStore, tmp_path: Path
) -> None:
    key = run_toys("first", "broken", fail=True).keys["broken"]
    folder = f"checkpoints/{key}"
    parts = f"{folder}/training.pt.parts"
    whole = [f"{parts}/b/rest.pt", f"{parts}/b/00000.safetensors", f"{folder}/best-0.pt"]
    left = [f"{parts}/a/00000.safetensors", f"{parts}/c/00000.safetensors", f"{parts}/c/00001.safetensors"]
    write(store, *whole, *left)
    names = [name.removeprefix(f"{folder}/") for name in whole]
    index = PartIndex(rest=names[0], tensors={names[1]: {}})
    (tmp_path / "index").write_text(index.model_dump_json())
    store.checkpoints(key).save("training.pt.json", tmp_path / "index")
    age_all(store)
    Path(store.root, left[-1]).touch()  # perhaps of a save that goes on
    garbage = unneeded(database, store)
    assert sorted(entry.path for entry in garbage) == [f"{store.root}/{name}" for name in left[:-1]]
    assert collect(store, garbage) == garbage
    kept = {f"{folder}/{name}" for name in store.checkpoints(key).names()}
    assert kept == {*whole, left[-1], f"{folder}/training.pt.json"}


def test_after_a_removal_gc_leaves_what_the_other_studies_need(
    run_toys: RunToys, database: Database, store: ArtefactStore
) -> None:
    first = run_toys("first", "shared", "own")
    second = run_toys("second", "shared", "other")
    assert remove_study(database, "first") == Removed(1, 1)
    assert count_rows(database, "step") == 2
    age_all(store)
    garbage = unneeded(database, store)
    assert [entry.area for entry in garbage] == ["objects"]
    assert collect(store, garbage) == garbage
    assert digests(store) == digests_of_studies(database)
    assert second.states() == {"shared": "succeeded", "other": "succeeded"}
    run_toys("first", "shared", "own")  # runs again
    assert set(first.states().values()) == {"succeeded"}


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(kept=st.sets(st.sampled_from("abc")), removed=st.sets(st.sampled_from("bcd"), min_size=1))
def test_gc_agrees_with_the_slow_way(
    kept: set[str], removed: set[str], run_toys: RunToys, database: Database, store: ArtefactStore
) -> None:
    run_toys("always", "a")
    if kept:
        run_toys("kept", *sorted(kept))
    run_toys("removed", *sorted(removed))
    remove_study(database, "removed")
    age_all(store)
    collect(store, unneeded(database, store))
    assert digests(store) == digests_of_studies(database)


def test_every_file_that_a_store_writes_is_in_a_known_area(store: ArtefactStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    digest = store.put_file(tmp_path / "file")
    Path(store.object_path(digest)).unlink()
    Path(store.object_path(digest)).write_text("damaged")
    with pytest.raises(DamagedArtefact):
        store.materialise([StoredFile("file", digest, 7)], tmp_path / "in")
    store.put_file(tmp_path / "file")
    store.checkpoints("key").save("training.pt", tmp_path / "file")
    store.write_progress("key", 1, 0, 1, "")
    store.write_room("key", 1, 2)
    store.write_live("key", 1, LiveView())
    store.write_reasons(1, {})
    write_log(store, "key", LogName(1, 0), b"")
    assert {entry.area for entry in entries(store)} == AREAS.keys() - {"tmp", UPLOADS}


def test_what_is_not_of_a_store_stays(run_toys: RunToys, database: Database, store: ArtefactStore) -> None:
    run_toys("toys", "a")
    write(store, "notes/mine.txt", "controller/waiting.json")
    age_all(store)
    assert unneeded(database, store) == []


def test_young_files_stay(run_toys: RunToys, database: Database, store: ArtefactStore) -> None:
    run_toys("toys", "a")
    write(store, f"objects/ab/{'ab' * 32}", "tmp/x", "checkpoints/gone/last/model")
    assert unneeded(database, store) == []
    age_all(store)
    assert {entry.area for entry in unneeded(database, store)} == {"objects", "tmp", "checkpoints"}


def test_checkpoints_of_steps_that_may_resume_stay(
    run_toys: RunToys, database: Database, store: ArtefactStore
) -> None:
    done = run_toys("toys", "a")
    broken = run_toys("broken", "b", fail=True)
    for study in (done, broken):
        (key,) = study.keys.values()
        write(store, f"checkpoints/{key}/training.pt", f"logs/{key}/1.log")
    write(store, "logs/gone/1.log")
    age_all(store)
    assert {(entry.area, entry.owner) for entry in unneeded(database, store)} == {
        ("checkpoints", done.keys["a"]),
        ("logs", "gone"),
    }


def test_a_step_with_one_young_checkpoint_keeps_them_all(
    run_toys: RunToys, database: Database, store: ArtefactStore
) -> None:
    run_toys("toys", "a")
    write(store, "checkpoints/gone/old", "checkpoints/gone/new")
    os.utime(Path(store.root, "checkpoints/gone/old"), (1, 1))
    assert unneeded(database, store) == []


def test_what_a_step_produces_again_while_gc_runs_stays(
    run_toys: RunToys, database: Database, store: ArtefactStore, tmp_path: Path
) -> None:
    run_toys("toys", "a")
    output = tmp_path / "again"
    output.mkdir()
    (output / "x").write_text("of a study that was removed")
    (stored,) = store.put_folder(output)
    age_all(store)
    garbage = unneeded(database, store)
    assert [entry.owner for entry in garbage] == [stored.digest]
    store.put_folder(output)  # between the two halves of gc
    assert collect(store, garbage) == []
    assert store.read(stored.digest) == b"of a study that was removed"
    # the other order: it has gone when the step takes it up
    age_all(store)
    assert len(collect(store, garbage)) == 1
    store.put_folder(output)
    assert store.exists(stored.digest)


def test_a_store_of_another_database_is_left_alone(database: Database, store: ArtefactStore) -> None:
    write(store, f"objects/ab/{'ab' * 32}")
    with pytest.raises(InputError, match="CREAMTEA_DATABASE_URL"):
        unneeded(database, store, timedelta(0))


def test_a_file_that_is_gone_is_no_error(store: ArtefactStore) -> None:
    assert collect(store, [Entry("tmp", "", f"{store.root}/tmp/x", 1, 0.0)]) == []


# ---------------------------------------------------------------- du


def test_usage_adds_up_and_tells_shared_files_apart(
    run_toys: RunToys, database: Database, store: ArtefactStore
) -> None:
    run_toys("first", "shared", "own")
    second = run_toys("second", "shared", "other")
    key = second.keys["other"]
    write(store, f"checkpoints/{key}/model", f"room/{key}.json", "tmp/x")
    uses = usage(database, store)
    assert sum(use.size for use in uses) == sum(entry.size for entry in entries(store))
    assert {(use.studies, use.part): use.files for use in uses} == {
        (("first",), "outputs"): 1,
        (("second",), "outputs"): 1,
        (("first", "second"), "outputs"): 1,
        (("second",), "checkpoints"): 1,
        (("second",), "progress"): 1,
        ((), "other"): 1,
    }


# ---------------------------------------------------------------- study rm


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_study_that_runs_is_not_removed(
    state: str, run_toys: RunToys, database: Database, store: ArtefactStore
) -> None:
    run_toys("toys", "a")
    with database.transaction() as session:
        session.scalars(select(StudyRow)).one().state = state
    with pytest.raises(InputError, match="creamtea cancel toys"):
        remove_study(database, "toys")
    assert count_rows(database, "study") == 1


def test_a_study_with_a_campaign_is_not_removed(run_toys: RunToys, database: Database) -> None:
    run_toys("toys", "a")
    campaign_on(database, 1)
    with pytest.raises(InputError, match="campaign jam"):
        remove_study(database, "toys")
    run_toys("toys", "a", "b")
    run_toys("toys", "a", "c")
    assert remove_study(database, "toys", older=True) == Removed(1, 1)  # the first has a campaign
    assert count_rows(database, "study") == 2
    assert remove_study(database, "toys", older=True) == Removed(0, 0)


@pytest.mark.parametrize("state", ["draft", "closed"])
def test_a_campaign_goes_with_all_that_is_its_own(run_toys: RunToys, database: Database, state: str) -> None:
    run_toys("toys", "a")
    kept = make_campaign(database, 2, name="kept", state="launched")
    make_campaign(database, 3, name="gone", state="launched")
    for campaign in ("kept", "gone"):
        rater = add_rater(database, campaign=campaign)
        rate(database, rater, work_for(database, rater))
    with database.transaction() as session:
        gone = session.scalars(select(Campaign).where(Campaign.name == "gone")).one()
        gone.state, gone.study_id = state, session.scalars(select(StudyRow.id)).one()
    counts = {name: count_rows(database, name) for name in OF_CAMPAIGNS}
    assert remove_campaigns(database, ["gone"]) == [RemovedCampaign(items=3, raters=1, answers=1)]
    left = {name: count_rows(database, name) for name in OF_CAMPAIGNS}
    assert all(0 < left[name] < counts[name] for name in OF_CAMPAIGNS), (counts, left)
    assert all_of(database, select(Campaign.id)) == [kept]
    assert remove_study(database, "toys") == Removed(1, 1)


def test_a_new_campaign_is_not_taken_for_the_removed_one_whose_number_it_has(database: Database) -> None:
    """SQLite gives a number again, and pages keep what they computed by fingerprint."""
    with database.session() as session:
        old = fingerprint(session, make_campaign(database, 2, name="jam", state="closed"))
    remove_campaigns(database, ["jam"])
    with database.session() as session:
        assert fingerprint(session, make_campaign(database, 2, name="jam", state="closed")) != old


def test_an_open_campaign_is_not_removed(database: Database) -> None:
    make_campaign(database, 2, name="open", state="launched")
    with pytest.raises(InputError, match="creamtea campaign close open"):
        remove_campaigns(database, ["open"])
    assert count_rows(database, "item") == 2


def campaign_on(database: Database, study_id: int) -> None:
    with database.transaction() as session:
        session.add(campaign_row(name="jam", study_id=study_id, systems=[], state="draft", launched_at=None))


def test_files_beside_sources_stay_while_a_campaign_shows_them(
    database: Database, store: ArtefactStore, run_toys: RunToys, tmp_path: Path
) -> None:
    run_toys("jam", "a")
    (tmp_path / "a.png").write_bytes(b"picture")
    (tmp_path / "b.png").write_bytes(b"of nobody")
    shown, unknown = store.put_file(tmp_path / "a.png"), store.put_file(tmp_path / "b.png")
    number = make_campaign(database, [{"media": [{"digest": shown, "type": "image/png", "description": ""}]}])
    with database.transaction() as session:
        session.add(CampaignMedia(campaign_id=number, digest=shown, type="image/png", size=7))
    age_all(store)
    assert [entry.owner for entry in unneeded(database, store)] == [unknown]
    (use,) = [use for use in usage(database, store) if use.part == "media"]
    assert (use.studies, use.kind, use.files, use.size) == (("campaign c",), "campaign", 1, 7)
    with database.transaction() as session:
        session.delete(session.get_one(Campaign, number))
    assert {entry.owner for entry in unneeded(database, store)} == {shown, unknown}
