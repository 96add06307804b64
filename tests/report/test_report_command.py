"""`creamtea report` as a user types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from creamtea.cli import report as command
from creamtea.errors import InputError
from creamtea.store.database import Database

Fill = Callable[..., int]


@pytest.fixture
def run(filled: Database, fill: Fill, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    fill(filled)
    monkeypatch.setenv("CREAMTEA_DATABASE_URL", filled.url.render_as_string(hide_password=False))
    monkeypatch.delenv("COLUMNS", raising=False)
    app = typer.Typer(rich_markup_mode="markdown")
    app.callback()(lambda: None)
    app.command(epilog=command.REPORT_EXAMPLES)(command.report)

    def invoke(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["report", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return invoke


def test_the_terminal_shows_the_table(run: Callable[..., str]) -> None:
    lines = run("teatime").splitlines()
    (heading,) = [line for line in lines if line.split()[:2] == ["system", "BLEU"]]  # one, in a pipe, too
    assert "COMET" in heading
    assert sum("p=0.030/0.016" in line for line in lines) == 1


def test_a_study_is_found_by_its_number(run: Callable[..., str]) -> None:
    assert json.loads(run("1", "--json"))["name"] == "teatime"


def test_json_is_the_whole_report(run: Callable[..., str]) -> None:
    values = json.loads(run("teatime", "--json", "--test-set", "test"))
    sections = {section["key"]: section for section in values["sections"]}
    assert list(sections) == ["answer", "systems", "reading", "figures", "provenance", "configuration"]
    (test,) = sections["systems"]["blocks"]
    assert test["blocks"][0]["rows"][0]["cells"]["bleu"]["value"] == 34.0


def test_html_is_one_file(run: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert run("teatime", "--html", str(path)) == f"wrote {path}\n"
    assert path.read_text(encoding="utf-8").count("<table ") > 1


def test_markdown_is_a_table(run: Callable[..., str]) -> None:
    assert "\n\n| system | BLEU | chrF |" in run("teatime", "--markdown")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["coffee"], "no study 'coffee'; known studies: teatime"),
        (["7"], "no study with number 7; known studies: teatime"),
        (
            ["teatime", "--test-set", "dev"],
            "--test-set dev: study 'teatime' has no such test set; it has test",
        ),
        (
            ["teatime", "--json", "--markdown"],
            "--markdown and --json are different formats: give one of them",
        ),
        (["teatime", "--format", "csv"], "--format is of the files of --export FOLDER: give both"),
        (
            ["teatime", "--export", "x", "--json"],
            "--json and --export are different formats: give one of them",
        ),
        (
            ["teatime", "--html", "no-such-folder/x.html"],
            "--html no-such-folder/x.html: there is no folder no-such-folder; make it first",
        ),
    ],
)
def test_mistakes_are_one_message(run: Callable[..., str], arguments: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        run(*arguments)
    assert str(caught.value).partition(" (looked in ")[0] == message


def test_help_has_examples(run: Callable[..., str]) -> None:
    assert "creamtea report demo --test-set test --markdown" in " ".join(run("--help").split())
