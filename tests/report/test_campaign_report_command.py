"""`creamtea campaign report` as a user types it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from human_rows import add_campaign, add_segment_scores
from rated_campaigns import rated_campaign
from teatime_study import fill_study
from typer.testing import CliRunner

from creamtea.cli.campaign import commands
from creamtea.errors import InputError
from creamtea.report.terminal import WIDTH
from creamtea.store.database import Database


@pytest.fixture
def run(database: Database, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    study = fill_study(database)
    add_campaign(database, study, items=30)
    add_segment_scores(database, study, items=30)
    items = [{"steps": {"anna": [i, i + 3]}, "outputs": ["[bold]x", "*y*"]} for i in range(9)]
    rated_campaign(database, items, name="[red]old[/red]", systems=["[b]A[/b]", "B"], raters=["anna"])
    monkeypatch.setenv("CREAMTEA_DATABASE_URL", database.url.render_as_string(hide_password=False))
    monkeypatch.delenv("COLUMNS", raising=False)

    def invoke(*arguments: str) -> str:
        result = CliRunner().invoke(commands, ["report", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return invoke


def test_the_terminal_has_every_table_and_the_texts(run: Callable[..., str]) -> None:
    whole, short = run("tasting", "--full"), run("tasting")
    for title in (
        "Against softmax-greedy",
        "Generalised to other raters",
        "Agreement",
        "WMT mode",
        "Metrics against human scores",
        "Where human scores and metrics disagree most",
        "Where raters disagree most",
    ):
        assert title in whole
    assert "launched: 60 of 60 item ratings (100 %) by 2 raters" in " ".join(whole.split())
    assert "depends on its zero point" in " ".join(whole.split())
    assert max(map(len, whole.splitlines())) <= WIDTH
    # what a page folds is named only
    for part in ("p, ranks", "With --full also: ", "Generalised to other raters; ", "WMT mode; "):
        assert part in short
    assert "Krippendorff" not in short
    assert len(short.splitlines()) < 60


def test_ratings_made_elsewhere_are_reported_with_their_names_as_text(run: Callable[..., str]) -> None:
    shown = run("[red]old[/red]")
    assert shown.startswith("[red]old[/red]  ")
    assert "[b]A[/b]" in shown
    assert "Metrics against human scores" not in shown
    assert "\\[b\\]A" in run("[red]old[/red]", "--markdown")


@pytest.mark.slow
def test_json_markdown_and_html_hold_the_same_means(run: Callable[..., str], tmp_path: Path) -> None:
    values = json.loads(run("tasting", "--json"))
    reports = [(report["rater"], report["answers"]) for report in values["raters"]]
    assert reports == [("anna", 30), ("ben", 30)]
    assert {"flags", "looks", "suggestion", "checks"} < values["raters"][0].keys()
    blocks = values["sections"][1]["blocks"][0]["blocks"]
    (means,) = [block["rows"] for block in blocks if block["key"] == "means"]
    path = tmp_path / "tasting.html"
    assert run("tasting", "--html", str(path)) == f"wrote {path}\n"
    for text in (run("tasting", "--markdown"), path.read_text(encoding="utf-8")):
        assert all(f"{row['cells']['mean']['value']:.2f}" in text for row in means)
        assert "Where raters disagree most" in text


def test_mistakes_are_one_message(run: Callable[..., str]) -> None:
    with pytest.raises(InputError, match="no campaign 'nothing'; known: "):
        run("nothing")
    with pytest.raises(InputError, match="--markdown and --json are different formats"):
        run("tasting", "--markdown", "--json")
