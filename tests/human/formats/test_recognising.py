"""Formats that are recognised by what is in a file or a folder."""

import json
from pathlib import Path

import pytest
from file_cases import Case, outcome, read_cases
from rated import everything

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import BUILT_IN, export_campaign, find_format, import_campaign, recognise
from creamtea.store.database import Database

ESA_LINE = 'ann,A,1,TGT,eng,deu,87,d#A,False,"[{""start_i"": 1, ""end_i"": 2}]",1,5\n'
MQM_LINE = "A\td\t1\t7\tann\tone\teins\tNo-error\tno-error\n"
ANSWERS = {"annotation": [{"A": {"score": 1}}], "user_id": "ann", "item_i": 0}


@pytest.mark.parametrize("kind", sorted({*BUILT_IN} - {"mqm"}))  # which cannot hold this campaign's tabs
def test_the_folder_of_an_export_is_recognised(database: Database, tmp_path: Path, kind: str) -> None:
    name = everything(database, "esa")
    export_campaign(database, name, kind, tmp_path / "out", "test")
    assert recognise(tmp_path / "out") == kind


@pytest.mark.parametrize(("kind", "text"), [("appraise", "ann,A,1,TGT,eng,deu,87,1,5\n"), ("mqm", MQM_LINE)])
def test_the_folder_of_an_only_file_is_read_as_the_file(
    other: Database, tmp_path: Path, kind: str, text: str
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / find_format(kind).only_file).write_text(text, encoding="utf-8")
    assert recognise(tmp_path / "out") == kind
    done = import_campaign(other, tmp_path / "out", kind, ImportFacts("x"), "test", dry_run=True)
    assert done.ratings == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("rater,segment,system,value\n", "csv"),
        ("\ufeffsystem;rater;segment;value\r\n", "csv"),  # whose reader asks for commas
        ("rater\tsegment\tsystem\tvalue\tdocument\tkind\tsource\toutput\titem\n", "csv"),
        ('{"rater": "ann", "segment": 0, "system": "A", "value": 5}\n', "jsonl"),
        ('[{"rater": "ann", "segment": 0, "system": "A", "value": 5}]', "jsonl"),
        (ESA_LINE, "appraise"),
        ("username,system,itemID\n" + ESA_LINE, "appraise"),
        ("HITId WorkerId\tInput.srclang\n", "appraise"),
        ('"HITId","WorkerId","Input.srclang"\n', "appraise"),
        ("system,doc,rater,segment,value\n", "csv"),  # whose reader refuses doc
        ("system,doc,doc_id,seg_id,rater,source,target,category,severity\n", "mqm"),  # asks for tabs
        (MQM_LINE, "mqm"),
        ("System\tdoc\tglobalSegId\n" + MQM_LINE, "mqm"),
        (json.dumps(ANSWERS), "pearmut"),
        (json.dumps({"fox": [ANSWERS]}, indent=2), "pearmut"),
        (json.dumps({"info": {}, "data": []}), "pearmut"),  # whose reader asks for answers, too
    ],
)
def test_a_file_is_recognised_by_its_first_record(tmp_path: Path, text: str, kind: str) -> None:
    (tmp_path / "ratings").write_text(text, encoding="utf-8")
    assert recognise(tmp_path / "ratings") == kind


@pytest.mark.parametrize("text", ["a,b,c\n1,2,3\n", "[1, 2]", '{"a": 1}', "one\ttwo\n", "{broken"])
def test_what_nobody_recognises_is_told_what_each_format_expects(tmp_path: Path, text: str) -> None:
    (tmp_path / "ratings.csv").write_text(text)
    with pytest.raises(InputError, match=r"ratings\.csv: not one of the formats") as caught:
        recognise(tmp_path / "ratings.csv")
    assert all(f"\n  {kind}: " in str(caught.value) for kind in BUILT_IN)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="not one of the formats"):
        recognise(tmp_path / "empty")


FOLDER = Path(__file__).parent


@pytest.mark.parametrize(
    "case", read_cases(FOLDER / "read.txt"), ids=lambda case: f"{case.kind}-{case.title}"
)
def test_a_file_becomes_a_campaign(tmp_path: Path, case: Case) -> None:
    assert outcome(case, tmp_path) == case.expected


@pytest.mark.parametrize("case", read_cases(FOLDER / "refused.txt"), ids=lambda case: case.expected[0][9:69])
def test_a_file_is_refused(tmp_path: Path, case: Case) -> None:
    (expected,) = case.expected
    (found,) = outcome(case, tmp_path)
    assert found.startswith("refused: ")
    assert expected.removeprefix("refused: ") in found
