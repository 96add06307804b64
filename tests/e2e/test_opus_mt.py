"""A study of a model in MarianMT format, from its folder to a report and to translations."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from command_line import runner
from marian_folders import SIDES, make_folder
from sqlalchemy import select

from creamtea.store.database import open_database
from creamtea.store.tables import Point, StepRow

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "opus-mt.md").read_text()
EXACT = "  opus-exact: {model: {marian: opus-mt-en-de}, search: {kind: exact, max_states: 200}}\n"


def block(language: str, number: int = 1) -> str:
    """One of the page's blocks in this language."""
    return PAGE.split(f"```{language}\n")[number].split("```")[0]


def test_the_commands_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CREAMTEA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    run = runner(monkeypatch, capsys)
    make_folder(tmp_path / "opus-mt-en-de", ends=5.0)
    for side, ending in (("source", "en"), ("target", "de")):
        (tmp_path / f"test.{ending}").write_text("".join(f"{line}\n" for line in SIDES[side]))
    study = block("yaml").replace("baseline: opus\n", f"{EXACT}baseline: opus\n")
    (tmp_path / "opus.yaml").write_text(study)
    source = b"the old man\na \xd0\xb6\n"
    for command in block("sh").splitlines():
        program, *words = command.removesuffix(" < sentences.en").split()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(source)))
        code, out, err = run(*words, *(("-q", "--executor", "inline") if words[0] == "run" else ()))
        assert (program, code) == ("creamtea", 0), out + err
    assert len(out.splitlines()) == 2
    code, out, _ = run("report", "opus", "--json")
    report = json.loads(out)
    sections = {section["key"]: section for section in report["sections"]}
    told = json.dumps(sections["provenance"]), json.dumps(sections["configuration"])
    assert all("creamtea/tiny-en-de" in text and "licence: cc-by-4.0" in text for text in told)
    assert "latency: " in told[0]

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(source)))
    code, out, err = run("translate", "opus", "opus", "--json")
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["source"] for row in rows] == ["the old man", "a ж"]
    assert (rows[0]["unknown"], rows[1]["unknown"]) == ([], ["ж"])
    assert "ж (1)" in err
    code, _, err = run("export", "opus", "opus", "--to", "safetensors", "out")
    assert code == 2
    assert "was not trained here" in err


def test_the_page_fine_tunes_by_each_objective(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CREAMTEA_HOME", str(tmp_path / "home"))
    run = runner(monkeypatch, capsys)
    make_folder(tmp_path / "opus-mt-en-de", ends=5.0)
    for side, ending in (("source", "en"), ("target", "de")):
        lines = "".join(f"{line}\n" for line in SIDES[side])
        for name, times in (("train", 4), ("dev", 1), ("test", 1)):
            (tmp_path / f"{name}.{ending}").write_text(lines * times)
    quick = block("yaml", 2).replace("max_updates: 2000", "max_updates: 12, validate_every: 6")
    (tmp_path / "tuned.yaml").write_text(quick.replace("learning_rate: 0.00005", "learning_rate: 0.01"))
    code, out, err = run("run", "tuned.yaml", "-q", "--executor", "inline")
    assert code == 0, out + err
    with open_database(f"sqlite:///{tmp_path / 'home' / 'creamtea.db'}").session() as session:
        rows = session.scalars(select(StepRow).where(StepRow.kind == "train")).all()
        losses = {
            row.params["objective"]["kind"]: [
                point.y
                for point in session.scalars(
                    select(Point)
                    .where(Point.step_key == row.key, Point.series == "dev_loss")
                    .order_by(Point.x)
                )
            ]
            for row in rows
        }
    assert all(row.params["architecture"]["norm"] == "post" for row in rows)
    assert losses.keys() == {"softmax", "scones", "entmax"}
    # the first is of the imported model itself, the last after twelve updates
    assert all(last < first for first, *_, last in losses.values())
