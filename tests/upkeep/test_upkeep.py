"""Removing studies and files: what is needed stays, whatever runs at the same time."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_campaigns import add_rater, make_campaign, rate, work_for
from sqlalchemy import func, select
from table_rows import all_of, campaign_row

from creamtea.contract.step import LiveView, PartIndex
from creamtea.errors import DamagedArtefact, InputError
from creamtea.human.results.ratings import fingerprint
from creamtea.store.areas import AREAS, UPLOADS, Entry, LogName, entries, write_log
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.database import Database
from creamtea.store.tables import Base, Campaign, CampaignMedia, StepFile, StudyRow, StudyStep
from creamtea.upkeep import Removed, RemovedCampaign, collect, remove_campaigns, remove_study, unneeded, usage

OF_CAMPAIGNS = ("campaign", "item", "rater", "assignment", "rating", "audit_event")


def assert_only_what_studies_need_is_left(toys: Any) -> None:
    """By the slow way: every file of every step of every study."""
    with toys.database.session() as session:
        needed = {
            file.digest
            for study in session.scalars(select(StudyRow))
            for place in session.scalars(select(StudyStep).where(StudyStep.study_id == study.id))
            for file in session.scalars(select(StepFile).where(StepFile.step_key == place.step_key))
        }
    assert {entry.owner for entry in entries(toys.store) if entry.area == "objects"} == needed


def count_rows(database: Database, name: str) -> int:
    with database.session() as session:
        return session.scalar(select(func.count()).select_from(Base.metadata.tables[name])) or 0


# ---------------------------------------------------------------- gc


def test_halves_of_a_large_checkpoint_go_and_the_whole_one_stays(tmp_path: Path, toys: Any) -> None:
    key = toys.run("first", "broken", fail=True).keys["broken"]
    folder = f"checkpoints/{key}"
    parts = f"{folder}/training.pt.parts"
    whole = [f"{parts}/b/rest.pt", f"{parts}/b/00000.safetensors", f"{folder}/best-0.pt"]
    left = [f"{parts}/a/00000.safetensors", f"{parts}/c/00000.safetensors", f"{parts}/c/00001.safetensors"]
    toys.write(*whole, *left)
    names = [name.removeprefix(f"{folder}/") for name in whole]
    index = PartIndex(rest=names[0], tensors={names[1]: {}})
    (tmp_path / "index").write_text(index.model_dump_json())
    toys.store.checkpoints(key).save("training.pt.json", tmp_path / "index")
    toys.age()
    Path(toys.store.root, left[-1]).touch()  # perhaps of a save that goes on
    garbage = toys.garbage()
    assert sorted(entry.path for entry in garbage) == [f"{toys.store.root}/{name}" for name in left[:-1]]
    assert collect(toys.store, garbage) == garbage
    kept = {f"{folder}/{name}" for name in toys.store.checkpoints(key).names()}
    assert kept == {*whole, left[-1], f"{folder}/training.pt.json"}


def test_after_a_removal_gc_leaves_what_the_other_studies_need(toys: Any) -> None:
    first = toys.run("first", "shared", "own")
    second = toys.run("second", "shared", "other")
    assert remove_study(toys.database, "first") == Removed(1, 1)
    assert count_rows(toys.database, "step") == 2
    toys.age()
    garbage = toys.garbage()
    assert [entry.area for entry in garbage] == ["objects"]
    assert collect(toys.store, garbage) == garbage
    assert_only_what_studies_need_is_left(toys)
    assert second.states() == {"shared": "succeeded", "other": "succeeded"}
    toys.run("first", "shared", "own")  # runs again
    assert set(first.states().values()) == {"succeeded"}


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(kept=st.sets(st.sampled_from("abc")), removed=st.sets(st.sampled_from("bcd"), min_size=1))
def test_gc_agrees_with_the_slow_way(kept: set[str], removed: set[str], toys: Any) -> None:
    toys.run("always", "a")
    if kept:
        toys.run("kept", *sorted(kept))
    toys.run("removed", *sorted(removed))
    remove_study(toys.database, "removed")
    toys.age()
    collect(toys.store, toys.garbage())
    assert_only_what_studies_need_is_left(toys)


def test_every_file_that_a_store_writes_is_in_a_known_area(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path / "artefacts")
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
    # a file that is gone is no error
    assert collect(store, [Entry("tmp", "", f"{store.root}/tmp/x", 1, 0.0)]) == []


def test_what_is_not_of_a_store_stays(toys: Any) -> None:
    toys.run("toys", "a")
    toys.write("notes/mine.txt", "controller/waiting.json")
    toys.age()
    assert toys.garbage() == []


def test_young_files_stay(toys: Any) -> None:
    toys.run("toys", "a")
    toys.write(f"objects/ab/{'ab' * 32}", "tmp/x", "checkpoints/gone/last/model")
    assert toys.garbage() == []
    toys.age()
    assert {entry.area for entry in toys.garbage()} == {"objects", "tmp", "checkpoints"}


def test_checkpoints_of_steps_that_may_resume_stay(toys: Any) -> None:
    done = toys.run("toys", "a")
    broken = toys.run("broken", "b", fail=True)
    for study in (done, broken):
        (key,) = study.keys.values()
        toys.write(f"checkpoints/{key}/training.pt", f"logs/{key}/1.log")
    toys.write("logs/gone/1.log")
    toys.age()
    assert {(entry.area, entry.owner) for entry in toys.garbage()} == {
        ("checkpoints", done.keys["a"]),
        ("logs", "gone"),
    }


def test_a_step_with_one_young_checkpoint_keeps_them_all(toys: Any) -> None:
    toys.run("toys", "a")
    toys.write("checkpoints/gone/old", "checkpoints/gone/new")
    os.utime(Path(toys.store.root, "checkpoints/gone/old"), (1, 1))
    assert toys.garbage() == []


def test_what_a_step_produces_again_while_gc_runs_stays(tmp_path: Path, toys: Any) -> None:
    toys.run("toys", "a")
    output = tmp_path / "again"
    output.mkdir()
    (output / "x").write_text("of a study that was removed")
    (stored,) = toys.store.put_folder(output)
    toys.age()
    garbage = toys.garbage()
    assert [entry.owner for entry in garbage] == [stored.digest]
    toys.store.put_folder(output)  # between the two halves of gc
    assert collect(toys.store, garbage) == []
    assert toys.store.read(stored.digest) == b"of a study that was removed"
    # the other order: it has gone when the step takes it up
    toys.age()
    assert len(collect(toys.store, garbage)) == 1
    toys.store.put_folder(output)
    assert toys.store.exists(stored.digest)


def test_a_store_of_another_database_is_left_alone(toys: Any) -> None:
    toys.write(f"objects/ab/{'ab' * 32}")
    with pytest.raises(InputError, match="CREAMTEA_DATABASE_URL"):
        unneeded(toys.database, toys.store, timedelta(0))


# ---------------------------------------------------------------- du


def test_usage_adds_up_and_tells_shared_files_apart(toys: Any) -> None:
    toys.run("first", "shared", "own")
    second = toys.run("second", "shared", "other")
    key = second.keys["other"]
    toys.write(f"checkpoints/{key}/model", f"room/{key}.json", "tmp/x")
    uses = usage(toys.database, toys.store)
    assert sum(use.size for use in uses) == sum(entry.size for entry in entries(toys.store))
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
def test_a_study_that_runs_is_not_removed(state: str, toys: Any) -> None:
    toys.run("toys", "a")
    with toys.database.transaction() as session:
        session.scalars(select(StudyRow)).one().state = state
    with pytest.raises(InputError, match="creamtea cancel toys"):
        remove_study(toys.database, "toys")
    assert count_rows(toys.database, "study") == 1


def test_a_study_with_a_campaign_is_not_removed(toys: Any) -> None:
    toys.run("toys", "a")
    campaign_on(toys.database, 1)
    with pytest.raises(InputError, match="campaign jam"):
        remove_study(toys.database, "toys")
    toys.run("toys", "a", "b")
    toys.run("toys", "a", "c")
    assert remove_study(toys.database, "toys", older=True) == Removed(1, 1)  # the first has a campaign
    assert count_rows(toys.database, "study") == 2
    assert remove_study(toys.database, "toys", older=True) == Removed(0, 0)


@pytest.mark.parametrize("state", ["draft", "closed"])
def test_a_campaign_goes_with_all_that_is_its_own(state: str, toys: Any) -> None:
    toys.run("toys", "a")
    kept = make_campaign(toys.database, 2, name="kept", state="launched")
    make_campaign(toys.database, 3, name="gone", state="launched")
    for campaign in ("kept", "gone"):
        rater = add_rater(toys.database, campaign=campaign)
        rate(toys.database, rater, work_for(toys.database, rater))
    with toys.database.transaction() as session:
        gone = session.scalars(select(Campaign).where(Campaign.name == "gone")).one()
        gone.state, gone.study_id = state, session.scalars(select(StudyRow.id)).one()
    counts = {name: count_rows(toys.database, name) for name in OF_CAMPAIGNS}
    assert remove_campaigns(toys.database, ["gone"]) == [RemovedCampaign(items=3, raters=1, answers=1)]
    left = {name: count_rows(toys.database, name) for name in OF_CAMPAIGNS}
    assert all(0 < left[name] < counts[name] for name in OF_CAMPAIGNS), (counts, left)
    assert all_of(toys.database, select(Campaign.id)) == [kept]
    assert remove_study(toys.database, "toys") == Removed(1, 1)


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


def test_files_beside_sources_stay_while_a_campaign_shows_them(tmp_path: Path, toys: Any) -> None:
    toys.run("jam", "a")
    (tmp_path / "a.png").write_bytes(b"picture")
    (tmp_path / "b.png").write_bytes(b"of nobody")
    shown, unknown = toys.store.put_file(tmp_path / "a.png"), toys.store.put_file(tmp_path / "b.png")
    number = make_campaign(
        toys.database, [{"media": [{"digest": shown, "type": "image/png", "description": ""}]}]
    )
    with toys.database.transaction() as session:
        session.add(CampaignMedia(campaign_id=number, digest=shown, type="image/png", size=7))
    toys.age()
    assert [entry.owner for entry in toys.garbage()] == [unknown]
    (use,) = [use for use in usage(toys.database, toys.store) if use.part == "media"]
    assert (use.studies, use.kind, use.files, use.size) == (("campaign c",), "campaign", 1, 7)
    with toys.database.transaction() as session:
        session.delete(session.get_one(Campaign, number))
    assert {entry.owner for entry in toys.garbage()} == {shown, unknown}
