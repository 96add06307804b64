"""Formats recognised by what is in a file or a folder; a zip from somebody else."""

import io
import json
import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from file_cases import Case, outcome, read_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import FIXTURES_ARE_SHARED
from rated import everything

from creamtea import files as packed
from creamtea.errors import InputError
from creamtea.files import unpack
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
        ("rater|segment|system|value\n", "csv"),
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


# ---------------------------------------------------------------- a zip from somebody else


def zipped(folder: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    path = folder / "given.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_a_folder_comes_out_as_it_went_in(tmp_path: Path) -> None:
    files = {"sources/en-de.txt": b"one\n", "human-scores/en-de.mqm.seg.score": b"A 1\n", "empty": b""}
    assert contents(unpack(zipped(tmp_path, files), tmp_path / "out")) == files


def test_one_folder_with_all_in_it_is_that_folder(tmp_path: Path) -> None:
    files = {"wmt/sources/a": b"1", "wmt/b": b"2", "__MACOSX/wmt/._b": b"x", "wmt/.DS_Store": b"x"}
    assert contents(unpack(zipped(tmp_path, files), tmp_path / "out")) == {"sources/a": b"1", "b": b"2"}


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "C:x", "a\\x", "./../x"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "given.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = name
        archive.writestr(info, b"")
    with pytest.raises(InputError, match="is not a plain file"):
        unpack(path, tmp_path / "out")
    assert contents(tmp_path / "out") == {}


def test_links_and_repeated_names_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "link.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, b"/etc/passwd")
    with pytest.raises(InputError, match="'link' is not a plain file"):
        unpack(path, tmp_path / "out")
    path = tmp_path / "twice.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", b"")
    with pytest.raises(InputError, match="'a' occurs twice"):
        unpack(path, tmp_path / "again")


def test_a_bomb_is_counted_while_it_unpacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MAX_UNPACKED", 1_000_000)
    path = zipped(tmp_path, {"a": bytes(600_000), "b": bytes(600_000)})
    assert path.stat().st_size < 2000
    with pytest.raises(InputError, match="unpacks to more than 1 MB; use the command line"):
        unpack(path, tmp_path / "out")
    assert sum(map(len, contents(tmp_path / "out").values())) <= 1_000_000


def test_sizes_that_are_lies_do_not_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory says ten bytes: no more than that is read, and the check sum does not fit."""
    data = bytearray(zipped(tmp_path, {"a": bytes(100_000)}).read_bytes())
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 10)
    (tmp_path / "lie.zip").write_bytes(data)
    monkeypatch.setattr(packed, "MAX_UNPACKED", 1000)
    with pytest.raises(InputError, match=r"lie.zip: (not a zip file|unpacks to more)"):
        unpack(tmp_path / "lie.zip", tmp_path / "out")
    assert sum(map(len, contents(tmp_path / "out").values())) <= 1000


def test_many_files_are_refused_before_any_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "MAX_FILES", 3)
    with pytest.raises(InputError, match="more than 3 files"):
        unpack(zipped(tmp_path, {str(number): b"" for number in range(4)}), tmp_path / "out")
    assert contents(tmp_path / "out") == {}


def test_a_file_without_a_name_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a", b"text")
    named = (tmp_path / "x.zip").read_bytes()
    (tmp_path / "x.zip").write_bytes(named.replace(b"a", b"\0"))  # which ends a name
    with pytest.raises(InputError, match="not a plain file"):
        unpack(tmp_path / "x.zip", tmp_path / "out")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_that_other_compressions_find(tmp_path: Path, method: int) -> None:
    content = bytes(range(256)) * 40
    path = zipped(tmp_path, {"a": content}, method)
    spoilt = bytearray(path.read_bytes())
    spoilt[41:200] = b"\xff" * 159  # behind the heads of the file and of its compression
    path.write_bytes(spoilt)
    with pytest.raises(InputError):
        unpack(path, tmp_path / "out")


@settings(suppress_health_check=FIXTURES_ARE_SHARED)
@given(st.data())
def test_a_damaged_zip_is_an_input_error_or_unpacks(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b", b"text " * 20)
        archive.writestr("a/c", b"more")
    spoilt = bytearray(out.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        spoilt[data.draw(st.integers(0, len(spoilt) - 1))] = data.draw(st.integers(0, 255))
    (folder / "x.zip").write_bytes(spoilt[: data.draw(st.integers(1, len(spoilt)))])
    with suppress(InputError):
        unpack(folder / "x.zip", folder / "out")
    assert {path.name for path in folder.iterdir()} <= {"x.zip", "out"}
