"""`creamtea campaign export` and `import`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

RATINGS = "rater,segment,system,value,output\nann,1,a,2,=x\nann,1,b,0,y\nbob,1,a,1,=x\nbob,1,b,1,y\n"
APPRAISE = "ann,A,1,TGT,eng,deu,60,d,False,1.0,2.5\nann,A,1,TGT,eng,deu,60,d,True,1.0,2.5\n"


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.csv"
    path.write_text(RATINGS)
    return path


def test_in_and_out_and_in_again(creamtea: Any, ratings: Path) -> None:
    done = creamtea("campaign", "import", "old", "--from", ratings, "--protocol", "preference")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "campaign old: 4 ratings of 2 systems, 1 item, 2 raters, read as csv\n"
    done = creamtea("campaign", "export", "old", "-o", "out", "--format", "jsonl")
    assert done.stdout == "campaign old: 4 ratings, 3 files in out\n"
    shown = {path.name for path in (creamtea.folder / "out").iterdir()}
    assert shown == {"campaign.json", "items.jsonl", "ratings.jsonl"}
    found = creamtea.json("campaign", "import", "again", "--from", "out")
    amounts = {"campaign": "again", "systems": 2, "items": 1, "raters": 2, "ratings": 4}
    assert found == {**amounts, "not_kept": [], "notices": []}
    found = creamtea.json("campaign", "export", "again", "-o", "mtme", "--format", "mt-metrics-eval")
    assert found["ratings"] == 4
    assert "mtme/human-scores/und-und.preference.seg.score" in found["files"]
    assert (
        creamtea.folder / "mtme/human-scores/und-und.preference.sys.score"
    ).read_text() == "a\t1.5\nb\t0.5\n"


def test_scores_of_appraise(creamtea: Any) -> None:
    (creamtea.folder / "wmt.csv").write_text(APPRAISE)
    (creamtea.folder / "a").write_text("eins\n")
    command = ["campaign", "import", "wmt", "--from", "wmt.csv", "--output-of", "A=a", "--protocol", "da-sqm"]
    done = creamtea(*command[:5], "--format", "appraise", "--dry-run")
    assert done.stdout.endswith("1  scores of whole documents\n--dry-run: nothing is stored\n")
    done = creamtea(*command)  # the name is free
    assert done.stdout == (
        "campaign wmt: 1 rating of 1 system, 1 item, 1 rater, read as appraise\nnot kept:\n"
        "        1  scores of whole documents\n"
    )
    creamtea("campaign", "export", "wmt", "-o", "out")
    item = json.loads((creamtea.folder / "out" / "items.jsonl").read_text())
    assert (item["document"], item["outputs"]) == ("d", ["eins"])
    done = creamtea("campaign", "export", "wmt", "--format", "appraise", "-o", "appraise")
    assert "1 rating, 1 file in appraise\nnot kept by appraise:\n" in done.stdout
    lines = (creamtea.folder / "appraise" / "scores.csv").read_bytes()
    assert lines == b"ann,A,1,TGT,eng,deu,60,d,False,[],1.000000,2.500000\r\n"


def test_what_cannot_be_done_is_said(creamtea: Any, ratings: Path) -> None:
    known = "it is one of csv, jsonl, appraise"
    for arguments, message in {
        "export none -o out": "no campaign 'none'; known: none yet; ",
        "export none -o out --format xml": f"--format xml: {known}, mqm",
        "import x --from nowhere": "--from nowhere: no such file or folder",
        "import x --from ratings.csv": "it does not name the protocol: give --protocol",
        "import x --from ratings.csv --format xml": f"--format xml: {known}",
        "import x --from ratings.csv --source-language en": "give both or neither",
        "import x --from ratings.csv --format appraise --output-of A": "--output-of A: give SYSTEM=FILE",
        "import x --from . --protocol da": "are in the folder's campaign.json",
        "import x --from .": "campaign.json: No such file or directory",
    }.items():
        assert message in creamtea.refused("campaign", *arguments.split())


def test_a_taxonomy_of_their_own(creamtea: Any) -> None:
    (creamtea.folder / "own.yaml").write_text("severities: [{name: minor, weight: 3}]\n")
    (creamtea.folder / "few.yaml").write_text("severities: [{name: minor, weight: 0.25}]\n")
    row = {"rater": "ann", "segment": 1, "system": "A", "payload": {"spans": [{"severity": "minor"}]}}
    (creamtea.folder / "made.jsonl").write_text(json.dumps(row))
    command = ["campaign", "import", "own", "--from", "made.jsonl", "--format", "jsonl", "--protocol", "mqm"]
    assert "few.yaml" in creamtea.refused(*command, "--taxonomy", "few.yaml")
    assert creamtea(*command, "--taxonomy", "own.yaml").returncode == 0
    creamtea("campaign", "export", "own", "-o", "out", "--format", "jsonl")
    assert json.loads((creamtea.folder / "out" / "ratings.jsonl").read_text())["value"] == "-3.0"
    done = creamtea("campaign", "export", "own", "-o", "mqm", "--format", "mqm")
    assert re.search("^ +1  .* scores by them$", done.stdout, re.MULTILINE)
