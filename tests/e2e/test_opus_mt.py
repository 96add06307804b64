"""A study of a model in MarianMT format, from its folder to a report and to translations."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from command_line import runner
from marian_folders import SIDES, make_folder

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "opus-mt.md").read_text()
EXACT = "  opus-exact: {model: {marian: opus-mt-en-de}, search: {kind: exact, max_states: 200}}\n"


def block(language: str) -> str:
    """The page's block in this language."""
    return PAGE.split(f"```{language}\n")[1].split("```")[0]


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
