"""Submitting a study on the page: the same mistakes as by the command line, and no way out of one folder."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from organiser_app import READER, visits
from organiser_app import shown as html
from sqlalchemy import select
from table_rows import all_of

from creamtea.document.mistakes import StudyErrors
from creamtea.errors import InputError
from creamtea.orders.submission import check_written
from creamtea.store.database import Database
from creamtea.store.tables import StudyRow


def study(**files: str) -> str:
    """A study of given outputs, in files of these names by default."""
    names = {"source": "test.en", "target": "test.de", "outputs": "mt.de"} | files
    return yaml.safe_dump(
        {
            "name": "given",
            "languages": {"source": "en", "target": "de"},
            "systems": {"mt": {"outputs": {"test": names["outputs"]}}},
            "test_sets": {"test": {"kind": "files", "source": names["source"], "target": names["target"]}},
            "metrics": [{"kind": "bleu"}],
            "baseline": "mt",
        }
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("test.en", "test.de", "mt.de"):
        (folder / name).write_text("ein Satz\n" * 3)
    (tmp_path / "secret.txt").write_text("ein Satz\n" * 3)
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "within.txt").symlink_to(folder / "test.de")
    return folder


def test_files_inside_of_the_folder_are_read(data: Path) -> None:
    written = check_written(study(target="within.txt"), data)
    assert written.name == "given"
    assert "score" in written.planned.kinds()


@pytest.mark.parametrize(
    "name", ["../secret.txt", "{above}/secret.txt", "link.txt", "../none.txt", "a/../../secret.txt"]
)
@pytest.mark.parametrize("role", ["source", "outputs"])
def test_a_path_out_of_the_folder_is_a_mistake_that_tells_nothing(role: str, name: str, data: Path) -> None:
    with pytest.raises(StudyErrors) as refused:
        check_written(study(**{role: name.format(above=data.parent)}), data)
    (line,) = [line for line in refused.value.lines if "outside" in line]
    assert line.startswith("study:")
    assert "no such file" not in line


def test_a_metrics_checkpoint_stays_inside_too(data: Path) -> None:
    text = study().replace("kind: bleu", "kind: comet\n  model: ../secret.txt")
    with pytest.raises(InputError, match="outside"):
        check_written(text, data)
    assert (
        check_written(study().replace("kind: bleu", "kind: comet\n  model: some/name"), data).name == "given"
    )


def test_an_overlong_text_is_not_parsed(data: Path) -> None:
    with pytest.raises(InputError, match="characters"):
        check_written("#" * 300_000, data)


@pytest.fixture
def visit(database: Database, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CREAMTEA_ARTEFACTS", str(tmp_path / "artefacts"))
    monkeypatch.setenv("CREAMTEA_DATA", str(data))
    return visits(database, monkeypatch)


def studies(database: Database) -> list[tuple[str, str]]:
    return [(row.name, row.state) for row in all_of(database, select(StudyRow).order_by(StudyRow.id))]


def test_an_organiser_corrects_and_submits(visit: Any, database: Database) -> None:
    app = visit(submit="new")
    app.text_area(key="submit-text").set_value("name: <img src=x>\nsystem: {}\n").run()
    assert "study:" in html(app)
    assert "&lt;img src=x&gt;" in html(app)
    assert not app.button
    app.text_area(key="submit-text").set_value(study()).run()
    assert "given is valid" in html(app)
    app.button(key="submit-study").click().run()
    assert studies(database) == [("given", "queued")]
    assert "creamtea controller" in html(app)
    app.text_area(key="submit-text").set_value(f"description: better\n{study()}").run()
    assert "will be cancelled" in html(app)
    app.button(key="submit-study").click().run()
    assert studies(database) == [("given", "cancelled"), ("given", "queued")]


def test_a_file_is_taken_as_it_is_or_refused(visit: Any) -> None:
    app = visit(submit="new")
    written = f"description: grün\n{study()}"
    app.file_uploader(key="submit-file").set_value(
        ("new.yaml", written.encode("utf-8-sig"), "text/yaml")
    ).run()
    assert app.text_area(key="submit-text").value == written
    assert "given is valid" in html(app)
    app.file_uploader(key="submit-file").set_value(("old.yaml", written.encode("latin-1"), "text/yaml")).run()
    assert "old.yaml, line 1: not UTF-8 text" in html(app)
    assert app.text_area(key="submit-text").value == written


def test_only_organisers_of_a_server_with_a_folder_submit(visit: Any) -> None:
    reader = visit(READER, submit="new")
    assert [error.value for error in reader.error if "does not open this page" in error.value]
    assert not reader.text_area


def test_without_a_folder_the_page_says_what_to_do(visit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREAMTEA_DATA", raising=False)
    app = visit(submit="new")
    assert "CREAMTEA_DATA" in html(app)
    assert not app.text_area
