"""Where commands look for what there is: no database, another folder, none at all."""

from pathlib import Path

import pytest
from command_line import runner

from creamtea.errors import InputError
from creamtea.settings import Settings, path_of
from creamtea.store.engines import parse_url

READING = """
status
status tiny
logs tiny train/softmax/1
cancel tiny
retry tiny
translate tiny softmax-greedy
export tiny softmax-greedy --to safetensors model
bundle tiny
gc --delete
du
link
links list
campaign raters list first
report tiny
campaign create first --study tiny --test-set test --systems a,b
campaign list
campaign status first
campaign report first
"""


def test_a_command_that_reads_makes_no_database(creamtea) -> None:
    elsewhere = creamtea.folder / "elsewhere"
    missing = f"creamtea: there is no database at {elsewhere / 'creamtea.db'}"
    for command in READING.strip().splitlines():
        said = creamtea.refused(*command.split(), CREAMTEA_HOME=str(elsewhere))
        assert said.startswith(missing), command
        assert "CREAMTEA_HOME" in said, command
    # a paper's table needs none
    done = creamtea("report", "--paper", "scones", "--table", "7", CREAMTEA_HOME=str(elsewhere))
    assert done.returncode == 0
    assert done.stderr == f"{missing}, so nothing here belongs to a study\n"
    assert "studies here: 0 of" in done.stdout
    assert "4.01%" in done.stdout  # as published
    assert not elsewhere.exists()


def test_an_unknown_study_is_missed_in_a_database_that_is_named(creamtea) -> None:
    for command in ("status", "report", "cancel"):
        assert f"SQLite file {creamtea.home / 'creamtea.db'}" in creamtea.refused(command, "coffee")


def test_the_home_of_the_user_can_be_written_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CREAMTEA_DATABASE_URL", raising=False)
    for name in ("HOME", "DATA", "SCORERS"):
        monkeypatch.setenv(f"CREAMTEA_{name}", f"~/{name}")
    settings = Settings.load()
    found = (settings.home, settings.data, settings.scorers)
    assert found == (tmp_path / "HOME", tmp_path / "DATA", tmp_path / "SCORERS")
    assert settings.database_url == f"sqlite:///{tmp_path}/HOME/creamtea.db"
    assert parse_url("sqlite:///~/tea.db").database == f"{tmp_path}/tea.db"
    with pytest.raises(InputError, match="~nobody-of-this-name/tea"):
        path_of("~nobody-of-this-name/tea")


@pytest.mark.parametrize("arguments", [["status"], ["run", "study.yaml", "--executor", "inline"]])
def test_a_deleted_folder_is_said_in_one_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "DATABASE_URL"):
        monkeypatch.delenv(f"CREAMTEA_{name}", raising=False)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code, _, told = runner(monkeypatch, capsys)(*arguments)
    assert code == 2
    assert "has been deleted: `cd`" in told
    assert len(told.splitlines()) == 1
