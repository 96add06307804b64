"""`creamtea report` and `creamtea campaign report` as a user types them.

`--html FILE` writes a whole page or keeps what was there before.
"""

import json
import os
import threading
from pathlib import Path

import pytest
from command_line import CommandsOn
from human_rows import add_campaign, add_segment_scores
from limits import ANSWER
from rated_campaigns import rated_campaign
from teatime_study import fill_study

from creamtea.cli.report import Printing, check_page, write_page
from creamtea.errors import InputError
from creamtea.report.terminal import WIDTH
from creamtea.store.database import Database


@pytest.fixture
def run(database: Database) -> CommandsOn:
    fill_study(database)
    return CommandsOn(database)


def test_the_report_in_each_format(run: CommandsOn, tmp_path: Path) -> None:
    lines = run("report", "teatime").splitlines()
    (heading,) = [line for line in lines if line.split()[:2] == ["system", "BLEU"]]  # one, in a pipe, too
    assert "COMET" in heading
    assert sum("p=0.030/0.016" in line for line in lines) == 1
    values = json.loads(run("report", "1", "--json", "--test-set", "test"))  # by its number
    assert values["name"] == "teatime"
    sections = {section["key"]: section for section in values["sections"]}
    assert list(sections) == ["answer", "systems", "reading", "figures", "provenance", "configuration"]
    (test,) = sections["systems"]["blocks"]
    assert test["blocks"][0]["rows"][0]["cells"]["bleu"]["value"] == 34.0
    path = tmp_path / "report.html"
    assert run("report", "teatime", "--html", str(path)) == f"wrote {path}\n"
    assert path.read_text(encoding="utf-8").count("<table ") > 1
    assert "\n\n| system | BLEU | chrF |" in run("report", "teatime", "--markdown")
    assert "creamtea report demo --test-set test --markdown" in " ".join(run("report", "--help").split())


def test_mistakes_are_one_message(run: CommandsOn) -> None:
    for arguments, message in {
        "coffee": "no study 'coffee'; known studies: teatime",
        "7": "no study with number 7; known studies: teatime",
        "teatime --test-set dev": "--test-set dev: study 'teatime' has no such test set; it has test",
        "teatime --json --markdown": "--markdown and --json are different formats",
        "teatime --format csv": "--format is for the files of --export FOLDER",
        "teatime --export x --json": "--json and --export are different formats",
        "teatime --html no-such-folder/x.html": "--html no-such-folder/x.html: there is no folder",
    }.items():
        assert run.refused("report", *arguments.split()).startswith(message)


# ---------------------------------------------------------------- of a campaign


@pytest.fixture
def tasting(run: CommandsOn, database: Database) -> CommandsOn:
    """With a campaign, and one that was rated elsewhere."""
    add_campaign(database, 1, items=30)
    add_segment_scores(database, 1, items=30)
    items = [{"steps": {"anna": [i, i + 3]}, "outputs": ["[bold]x", "*y*"]} for i in range(9)]
    rated_campaign(database, items, name="[red]old[/red]", systems=["[b]A[/b]", "B"], raters=["anna"])
    return run


def test_the_terminal_has_every_table_and_the_texts(tasting: CommandsOn) -> None:
    whole, short = (
        tasting("campaign", "report", "tasting", "--full"),
        tasting("campaign", "report", "tasting"),
    )
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


def test_ratings_made_elsewhere_are_reported_with_their_names_as_text(tasting: CommandsOn) -> None:
    shown = tasting("campaign", "report", "[red]old[/red]")
    assert shown.startswith("[red]old[/red]  ")
    assert "[b]A[/b]" in shown
    assert "Metrics against human scores" not in shown
    assert "\\[b\\]A" in tasting("campaign", "report", "[red]old[/red]", "--markdown")


@pytest.mark.slow
def test_json_markdown_and_html_hold_the_same_means(tasting: CommandsOn, tmp_path: Path) -> None:
    values = json.loads(tasting("campaign", "report", "tasting", "--json"))
    reports = [(report["rater"], report["answers"]) for report in values["raters"]]
    assert reports == [("anna", 30), ("ben", 30)]
    assert {"flags", "looks", "suggestion", "checks"} < values["raters"][0].keys()
    blocks = values["sections"][1]["blocks"][0]["blocks"]
    (means,) = [block["rows"] for block in blocks if block["key"] == "means"]
    path = tmp_path / "tasting.html"
    assert tasting("campaign", "report", "tasting", "--html", str(path)) == f"wrote {path}\n"
    for text in (tasting("campaign", "report", "tasting", "--markdown"), path.read_text(encoding="utf-8")):
        assert all(f"{row['cells']['mean']['value']:.2f}" in text for row in means)
        assert "Where raters disagree most" in text


def test_mistakes_of_a_campaign_are_one_message(tasting: CommandsOn) -> None:
    report = ("campaign", "report")
    assert tasting.refused(*report, "nothing").startswith("no campaign 'nothing'; known: ")
    different = "--markdown and --json are different formats"
    assert tasting.refused(*report, "tasting", "--markdown", "--json").startswith(different)


# ---------------------------------------------------------------- the file of --html


def broken() -> str:
    raise RuntimeError("no such font")


def never() -> str:
    raise AssertionError("the page was made")


def test_a_page_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for there in (None, "<html>yesterday\n"):
        if there is not None:
            path.write_text(there)
        with pytest.raises(RuntimeError):
            write_page(path, broken)
        assert [one.read_text() for one in tmp_path.iterdir()] == ([there] if there else [])


def test_a_page_takes_the_place_of_another_and_keeps_its_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.write_text("<!doctype html>\nyesterday, and longer")
    real.chmod(0o640)
    link.symlink_to(real)
    write_page(link, lambda: "todaÿ")
    assert real.read_text(encoding="utf-8") == "todaÿ"
    assert (link.is_symlink(), real.stat().st_mode & 0o777) == (True, 0o640)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.html", "real.html"]
    new = tmp_path / ("n" * 250 + ".html")  # near the longest name there may be
    write_page(new, lambda: "new")
    assert new.read_text() == "new"


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "no" / "x.html", "there is no folder"), (tmp_path, "Is a directory")):
        with pytest.raises(InputError, match=rf"--html .*: {why}"):
            write_page(path, never)
    if os.geteuid() != 0:  # root may write everywhere
        (tmp_path / "fixed.html").touch(0o444)
        with pytest.raises(InputError, match="Permission denied"):
            write_page(tmp_path / "fixed.html", never)


@pytest.mark.parametrize("there", ["", "\ufeff\n <!DOCTYPE HTML>\n", "<HTML lang=en>"])
def test_a_page_takes_the_place_of_a_page_or_of_nothing(there: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(there, encoding="utf-8")
    write_page(path, lambda: "new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("there", ["das Haus am See\n", "\n", " " * 2000 + "text", "<html5>", "\x1f\x8b"])
def test_what_is_no_page_is_kept(there: str, tmp_path: Path) -> None:
    path = tmp_path / "out.de"
    path.write_text(there)
    for refused in (lambda: write_page(path, never), lambda: Printing(False, False, path, None, None)):
        with pytest.raises(InputError, match=r"--html .*out\.de: .*name another"):
            refused()
    assert path.read_text() == there


def test_a_file_that_is_read_is_kept_even_if_it_is_a_page(tmp_path: Path) -> None:
    path, link = tmp_path / "source.html", tmp_path / "link.html"
    path.write_text("<html>")
    link.symlink_to(path)
    with pytest.raises(InputError, match=r"would overwrite .*source\.html"):
        check_page(link, [tmp_path / "none", path])


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    path, got = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_text()), daemon=True)
    reader.start()
    write_page(path, lambda: "page")
    reader.join(ANSWER)
    assert got == ["page"]
    assert path.is_fifo()
