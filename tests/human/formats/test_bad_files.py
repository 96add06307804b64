"""Files that were changed or damaged, cells that cannot be, and folders that cannot be written."""

import csv
import errno
import gzip
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import media_files as samples
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rated import NAME, everything
from small_campaigns import add_rater, make_campaign, rate_all
from sqlalchemy import func, select
from table_rows import all_of

from creamtea.access.audit import EXPORTED
from creamtea.errors import InputError
from creamtea.human import record
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.columns import Column
from creamtea.human.formats.exchange import export_campaign, import_campaign, recognise
from creamtea.human.media import store_media
from creamtea.printable import text_from_cell, text_to_cell
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import AuditEvent, Campaign, Item, Rater, Rating

Rows = list[dict[str, Any]]
Exported = Callable[..., Path]


@pytest.fixture(scope="module")
def once(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """`once(kind, protocol)`: an export of the campaign `bad`, which nobody changes."""

    @cache
    def export(kind: str, protocol: str) -> Path:
        folder = tmp_path_factory.mktemp("once")
        shutil.copyfile(sqlite_template, folder / "creamtea.db")
        database = Database(f"sqlite:///{folder / 'creamtea.db'}")
        export_campaign(database, everything(database, protocol), kind, folder / "out", "test")
        database.close()
        return folder / "out"

    return export


@pytest.fixture
def exported(once: Exported, tmp_path: Path) -> Exported:
    return lambda kind, protocol="da": Path(shutil.copytree(once(kind, protocol), tmp_path / "out"))


def seal(folder: Path) -> None:
    """The digests of the files as they are now: so that what lies behind the digest is tested."""
    path = folder / "campaign.json"
    header = json.loads(path.read_text())
    for name in header["sha256"]:
        header["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    path.write_text(json.dumps(header))


def change_csv(folder: Path, change: Callable[[Rows], None]) -> None:
    path = folder / "ratings.csv"
    found = list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))
    change(found)
    out = io.StringIO()
    writer = csv.DictWriter(out, dict.fromkeys(name for row in found for name in row))
    writer.writeheader()
    writer.writerows(found)
    path.write_bytes(out.getvalue().encode())
    seal(folder)


def refused(database: Database, folder: Path, kind: str, name: str = "import") -> str:
    with pytest.raises(InputError) as error:
        import_campaign(database, folder, kind, ImportFacts(name), "test")
    with database.session() as session:
        for table in (Campaign, Item, Rater):
            assert session.scalar(select(func.count()).select_from(table)) == 0
    return str(error.value)


FIRST = "ratings.csv, line 2, column"
CHANGED = [
    ("step", "101", "a score is a whole number of steps from 0 to 100, not 101"),
    ("step", "ten", "found 'ten'; allowed: a whole number from 0 to 2147483647, or none"),
    ("value", "0.5", "'0.5' is not a value of the scale 0, 1, …, 100"),
    ("value", "7", "found '7'; allowed: '0', step 0 of da;"),
    ("revision", "", "found nothing; allowed: 1, as the rest"),
    ("revision", "0", "found 0; allowed: 1, as the rest"),
    ("revision", "2", "found 2; allowed: 1, as the rest"),
    ("rater", "nobody", "found 'nobody'; allowed: a pseudonym that the campaign knows"),
    ("rater", "", "found ''; allowed: a name: text that is not blank"),
    ("excluded", "false", "found False; allowed: True, as the rest"),
    ("excluded", "yes", "found 'yes'; allowed: true or false"),
    ("counts", "true", "found True; allowed: False, as the rest"),
    ("item", "77", "found 77; allowed: the position of an item of the campaign"),
    ("kind", "random", "found 'random'; allowed: 'rated', as the rest"),
    ("kind", "odd", "found 'odd'; allowed: one of rated, random, repeat, bad-reference, tutorial"),
    ("weight", "nan", "found 'nan'; allowed: a finite number, 0 or more"),
    ("weight", "1.0", "found 1.0; allowed: 0.30000000000000004, as the rest"),
    ("output", "Haus", "found 'Haus'; allowed: 'ein Haus', as the rest"),
    ("output", "a\0b", "found 'a\\x00b', with a NUL character; allowed: text without NUL"),
    ("system", "beam 4", "found 'beam 4'; allowed: a system of the item: plain"),
    ("campaign", "other", "found 'other'; allowed: 'bad', as the rest"),
    ("protocol", "da-sqm", "found 'da-sqm'; allowed: 'da', as the rest"),
    ("shown", "2", "found 2; allowed: 1, as the rest"),
    ("shown", "0", "found 0; allowed: 1, as the rest"),
    ("assigned_at", "2026-03-01", "found '2026-03-01'; allowed: a moment with its offset"),
    ("submitted_at", "", "found nothing; allowed: a moment; the row has a score"),
    ("rated_at", "", "found nothing; allowed: a moment; the row has a score"),
    ("active_ms", "-4", "found '-4'; allowed: a whole number from 0 to 2147483647, or none"),
]


@pytest.mark.parametrize(("column", "cell", "message"), CHANGED, ids=[f"{c[0]}={c[1]!r}" for c in CHANGED])
def test_a_wrong_cell(exported: Exported, other: Database, column: str, cell: str, message: str) -> None:
    folder = exported("csv")
    change_csv(folder, lambda rows: rows[0].update({column: cell}))
    assert refused(other, folder, "csv").startswith(f"{FIRST} {column}: {message}")


def change(*rows_at: int, **cells: str) -> Callable[[Rows], None]:
    def apply(rows: Rows) -> None:
        for at in rows_at:
            rows[at].update(cells)

    return apply


def differ(rows: Rows) -> None:
    """Another score of an output that shares its place on the page."""
    row = next(row for row in rows if row["item"] == "1" and row["system"] == "'=SUM(A1)")
    assert (row["shown"], row["step"]) == ("1", "7")
    row.update(step="9", value="9")


@pytest.mark.parametrize(
    ("protocol", "change", "message"),
    [
        # a line for the header and the first row, and three for the second: its comment has two line ends
        ("da", change(2, step="500"), "^ratings.csv, line 6, column step: a score is "),
        ("da", change(2, comment="mine"), "column comment: found 'mine'; allowed: "),
        ("da", lambda rows: rows.append(rows[0]), "column revision: found 1; allowed: another revision:"),
        ("da", differ, "column step: found 9; allowed: 7, as the rest"),
        ("da", change(1, step="", value="", revision="", rated_at="", counts="false"), "column step: found"),
        ("preference", change(0, 1, step="2", value="2"), "a preference says left, same or right"),
        ("contrastive-da", change(0, 1, shown="1"), "column shown: found 1; allowed: 2, as the rest"),
        ("contrastive-da", lambda rows: rows.pop(0), "^ratings.csv, line 2, column system: found 'plain';"),
        ("contrastive-da", lambda rows: rows.pop(3), "column system: found 'beam 4'; allowed: a row for"),
    ],
)
def test_rows_that_contradict_each_other(
    exported: Exported, other: Database, protocol: str, change: Callable[[Rows], None], message: str
) -> None:
    folder = exported("csv", protocol)
    change_csv(folder, change)
    assert re.search(message, refused(other, folder, "csv"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"campaign,", b"campain,", "ratings.csv, line 1, column campain: found an unknown column; allowed:"),
        (b"campaign,protocol", b"campaign,campaign", "ratings.csv, line 1, column campaign: found twice; "),
        (b",active_ms", b"", "ratings.csv, line 1, column active_ms: missing; needed: campaign, "),
        (b"bad,da", b"bad", "ratings.csv, line 2: found 28 cells; allowed: 29, as the first line has"),
        (b"bad,da", b'bad,"d"a', "ratings.csv, line 2: not CSV: "),
        (b"bad,da", b"bad,\xffda", "ratings.csv, line 2: not UTF-8 text: save it as UTF-8 (iconv -t UTF-8)"),
        (None, b"", "ratings.csv: an empty file; its first line names the columns"),
    ],
)
def test_a_damaged_csv(
    exported: Exported, other: Database, old: bytes | None, new: bytes, message: str
) -> None:
    folder = exported("csv")
    path = folder / "ratings.csv"
    before = path.read_bytes()
    path.write_bytes(new if old is None else before.replace(old, new, 1))
    unsealed = refused(other, folder, "csv")
    assert unsealed.startswith(
        "ratings.csv: its sha256 is not the one in campaign.json: the file was changed"
    )
    seal(folder)
    assert refused(other, folder, "csv").startswith(message)
    assert "no ratings.jsonl, but ratings.csv; --format says which" in refused(other, folder, "jsonl")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"rater,segment,system,value\n", mtime=0), "x.csv is a gzip file: unpack it"),
        (b"PK\x03\x04" + bytes(30), "x.csv is a ZIP file, as .xlsx and .ods are: unpack it, or save"),
        ("rater,segment".encode("utf-16"), "x.csv is UTF-16 text: save it as UTF-8"),
        ("rater,segment\r\n".encode("utf-16-le"), "x.csv is UTF-16 text: save it as UTF-8"),
        ("rater,segment\r\n".encode("utf-16-be"), "x.csv is UTF-16 text: save it as UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "x.csv is a pointer of Git LFS: fetch"),
        (b"rater;segment;system;value\nann;0;A;3,4\n", "x.csv, line 1: semicolons between the cells"),
        (b"rater|segment|system|value\nann|0|A|3.4\n", "x.csv, line 1: bars between the cells"),
        (b"rater\tsegment\tsystem\tvalue\nann\t0\tA\t3\n", "x.csv, line 1: tabs between the cells"),
        (b"rater,segment,system,value\rann,0,A,80\r", "x.csv, line 1: a carriage return (CR)"),
        (b"rater,segment,system,value\nann,0,A,\n", "x.csv, line 2, column value: found nothing"),
        (
            b"rater,segment,system,step,value\nann,0,A,10000,0.0\n",  # MQM's step
            "x.csv, line 2, column value: found '0.000000'; allowed: '-999.990000', step 10000 of scores; if",
        ),
        (b"rater,segment,system,valeu\nann,0,A,3\n", "x.csv, line 1, column valeu: found an unknown column"),
    ],
)
def test_a_message_names_the_cause_as_the_file_shows_it(
    other: Database, tmp_path: Path, content: bytes, message: str
) -> None:
    """Not a column that the file does not have, nor "not UTF-8" of what is no text."""
    (tmp_path / "x.csv").write_bytes(content)
    protocol = "scores" if b",step," in content else "da"
    with pytest.raises(InputError) as caught:
        import_campaign(other, tmp_path / "x.csv", "csv", ImportFacts("x", protocol), "test")
    assert str(caught.value).startswith(message)
    assert "payload: " not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "line", "place"),
    [
        ("appraise", "r,A\0,1,TGT,eng,deu,80,d,False,1,9", "line 1, field system"),
        ("appraise", "r,A,1,TGT,eng,deu,80,d\0,False,1,9", "line 1, field document"),
        ("mqm", "A\0\td\t1\t1\tr\ts\tt\tNo-error\tNo-error", "line 1: system"),
        ("mqm", "A\td\t1\t1\tr\0\ts\tt\tNo-error\tNo-error", "line 1: rater"),
        ("mqm", "A\td\0\t1\t1\tr\ts\tt\tNo-error\tNo-error", "line 1: doc"),
    ],
)
def test_a_message_about_a_nul_names_it(
    other: Database, tmp_path: Path, kind: str, line: str, place: str
) -> None:
    (tmp_path / "x").write_text(f"{line}\n")
    protocol = "da" if kind == "appraise" else None
    with pytest.raises(InputError, match=rf"^x, {place}: found .*\\x00'; allowed: .*NUL$"):
        import_campaign(other, tmp_path / "x", kind, ImportFacts("x", protocol, None, "en", "de"), "test")


@pytest.mark.parametrize(
    ("beside", "content", "message"),
    [
        ("sources", "one\nt\0wo\n", "beside, line 2: found a text with a NUL character"),
        ("output_of", "one\nt\0wo\n", "beside, line 2: found a text with a NUL character"),
        ("documents", "news\td\rnews\td\r", "beside: lines that end with CR alone"),
        ("rater_statistics", "r 50 0\n", "x, line 1, field score: z 0.5 of r"),  # no score is 0 · 0.5 from it
    ],
)
def test_a_file_beside_a_campaign_of_appraise(
    other: Database, tmp_path: Path, beside: str, content: str, message: str
) -> None:
    rows = {"documents": "r,A,1,TGT,eng,deu,80,d#A,False,1,9\n", "rater_statistics": ROW.replace("80", "0.5")}
    (tmp_path / "x").write_text(rows.get(beside, ROW + ROW.replace(",1,", ",2,", 1)))
    path = tmp_path / "beside"
    path.write_text(content, newline="")
    facts = ImportFacts("x", "da", **{beside: {"A": path} if beside == "output_of" else path})
    with pytest.raises(InputError) as caught:
        import_campaign(other, tmp_path / "x", "appraise", facts, "test")
    assert str(caught.value).startswith(message)


ROW = "r,A,1,TGT,eng,deu,80,1,9\n"


def test_lines_of_old_macs_are_not_a_header(other: Database, tmp_path: Path) -> None:
    lines = (
        "system doc doc_id seg_id rater source target category severity",
        "A d 1 1 r s t No-error No-error",
    )
    (tmp_path / "x.tsv").write_text("\r".join(lines).replace(" ", "\t"))
    with pytest.raises(InputError, match=r"^x\.tsv: lines that end with CR alone"):
        import_campaign(other, tmp_path / "x.tsv", "mqm", ImportFacts("x", "mqm"), "test")
    (tmp_path / "x.jsonl").write_text('{"rater": "ann"}\r{"rater": "bob"}\r')
    with pytest.raises(InputError, match=r"^x\.jsonl: lines that end with CR alone"):
        recognise(tmp_path / "x.jsonl")
    with pytest.raises(InputError, match=r"^x\.jsonl: lines that end with CR alone"):
        import_campaign(other, tmp_path / "x.jsonl", "pearmut", ImportFacts("x", "da"), "test")


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("ratings.jsonl", '"step": 0', '"step": 0.0', "column step: found 0.0; allowed: a whole"),
        ("ratings.jsonl", '"step": 0', '"step": true', "column step: found True; allowed: a whole"),
        ("ratings.jsonl", '"step": 0', '"step": NaN', "line 1: not JSON: NaN is not a JSON number"),
        ("ratings.jsonl", '"step": 0', '"step": 0, "step": 0', "line 1: not JSON: a key occurs twice"),
        ("ratings.jsonl", '"step": 0, ', "", "column step: missing; needed: campaign, "),
        ("ratings.jsonl", '"step"', '"note": 1, "step"', "column note: found an unknown column; "),
        ("ratings.jsonl", '"ein Haus"', '"ein \\u0000"', "column output: found 'ein \\x00', with a NUL"),
        ("ratings.jsonl", '"ein Haus"', '"ein \\ud800"', "column output: found 'ein \\ud800', with half"),
        ("ratings.jsonl", "{", "", "ratings.jsonl, line 1: not JSON: "),
        ("items.jsonl", '"position": 1', '"position": 0', "line 2, column position: found 0; allowed: each"),
        ("items.jsonl", '"original": 0', '"original": 99', "line 3, column original: found 99; allowed: "),
        ("items.jsonl", '["plain"]', '["plane"]', "line 1, column systems: found ('plane',); allowed: the"),
        ("items.jsonl", '["ein Haus"]', "[]", "line 1, column outputs: found (); allowed: one text for each"),
        ("items.jsonl", '"output_drawn": null', '"output_drawn": [true, false]', "column output_drawn: "),
        (
            "items.jsonl",
            '"block": null',
            '"block": {"systems": ["plain", "beam"], "chances": [[0.5, 0], [0, 0.5]]}',
            "line 1, column block: found {'systems': ['plain', 'beam'], 'chances': [[0.5, 0], ",
        ),
        ("items.jsonl", '"proposals": null', '"proposals": {"plain": [{"start": 1}]}', "column proposals: "),
        ("items.jsonl", '"degraded": "plain"', '"degraded": "x"', "line 4, column degraded: found 'x';"),
        ("campaign.json", "creamtea campaign 4", "creamtea campaign 9", "campaign.json, column format:"),
        ("campaign.json", '"seed"', '"sead"', "campaign.json, campaign, column sead: found an unknown"),
        ("campaign.json", '"protocol": "da"', '"protocol": "stars"', "campaign, column protocol: found"),
        ("campaign.json", '"settings": {', '"settings": {"aims": true, ', "settings of the campaign: aims:"),
        ("campaign.json", '"pseudonym": "anna"', '"pseudonym": "خالد"', "entry 3, column pseudonym: "),
    ],
)
def test_damaged_json(
    exported: Exported, other: Database, file: str, old: str, new: str, message: str
) -> None:
    folder = exported("jsonl")
    path = folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    if file != "campaign.json":
        seal(folder)
    assert message in refused(other, folder, "jsonl")


def test_an_export_refuses_what_an_import_would(database: Database, tmp_path: Path) -> None:
    everything(database, "da")
    with database.transaction() as session:
        session.query(Item).filter(Item.position == 0).update({"weight": float("inf")})
    with pytest.raises(
        InputError, match=r"^items.jsonl, line 1, column weight: found inf; allowed: a finite"
    ):
        export_campaign(database, NAME, "csv", tmp_path / "out", "test")
    assert not (tmp_path / "out").exists()


def without(path: Path, *columns: str) -> None:
    """Take columns out of a file of JSON Lines."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [{name: value for name, value in line.items() if name not in columns} for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in kept))


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_export_of_the_first_format_has_no_payloads(
    exported: Exported, other: Database, kind: str
) -> None:
    """As version 0.1.0 wrote it."""
    folder = exported(kind)
    if kind == "csv":
        change_csv(folder, lambda rows: [row.pop(name) for row in rows for name in ("payload", "warned")])
    else:
        without(folder / "ratings.jsonl", "payload", "warned")
    without(folder / "items.jsonl", "page")
    seal(folder)
    assert "page: missing" in refused(other, folder, kind)
    header = folder / "campaign.json"
    header.write_text(header.read_text().replace("creamtea campaign 4", "creamtea campaign 1"))
    import_campaign(other, folder, kind, ImportFacts("import"), "test")
    with other.session() as session:
        payloads = session.scalars(select(Rating.payload)).all()
    assert payloads
    assert set(payloads) == {None}


# ---------------------------------------------------------------- text in cells


MOMENT, WEIGHT = Column(record.Moment), Column(record.Weight)
NASTY = st.text(st.sampled_from("'=+-@\t\r\n＝＋－＠a"), max_size=6)
STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(STORABLE | NASTY)
def test_a_text_survives_its_cell_and_runs_nothing(text: str) -> None:
    cell = text_to_cell(text)
    assert text_from_cell(cell) == text
    assert not cell.startswith(tuple("=+-@\t\r\n＝＋－＠"))


@pytest.mark.parametrize("text", ["'s morgens", "'", "''", "plain", "1-2", ""])
def test_other_texts_are_written_as_they_are(text: str) -> None:
    assert text_to_cell(text) == text
    assert text_from_cell(text) == text


def test_a_negative_score_stays_a_number() -> None:
    """Else every program that reads MQM's values of our CSV would get text."""
    column = Column(record.Value)
    assert [column.encode_cell(value, "p") for value in ("-25.0", "-5", "-5+3")] == ["-25.0", "-5", "'-5+3"]
    found = [column.decode_cell(cell, "p") for cell in ("-25.0", "'-25.0", "'-5+3")]
    assert found == ["-25.0", "-25.0", "-5+3"]


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_survives_to_the_microsecond(moment: datetime) -> None:
    assert MOMENT.decode_cell(MOMENT.encode_cell(moment, "p"), "p") == moment


@given(st.floats(min_value=0, allow_infinity=False))
def test_a_weight_survives_bit_for_bit(weight: float) -> None:
    assert WEIGHT.decode_cell(WEIGHT.encode_cell(weight, "p"), "p") == weight


WRONG = [
    (record.Integer, ("-1", "1.0", " 1", "٣", "2147483648")),
    (record.Weight, ("nan", "inf", "-0.5", "1_0", " 1 ", "٣", "1e999")),
    (record.Flag, ("",)),
    (record.Moment, ("2026-03-01T09:30:00", "yesterday")),
    (record.Name, (" ",)),
    (record.Text, ("a\0b", "\ud800")),
]


@pytest.mark.parametrize(("annotation", "cell"), [(kind, cell) for kind, cells in WRONG for cell in cells])
def test_what_is_not_allowed_is_said_with_its_place(annotation: Any, cell: str) -> None:
    with pytest.raises(InputError, match=r"^f, line 3: found .*; allowed: "):
        Column(annotation).decode_cell(cell, "f, line 3")


def test_no_plug_in_is_looked_for_at_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking takes a twentieth of a second, an hour for a campaign of 70,000 ratings."""

    def looked(*_: Any) -> None:
        raise AssertionError("the metadata of every distribution was read")

    monkeypatch.setattr("creamtea.plugins.installed", looked)
    assert Column(record.ProtocolName).decode("da", "f") == "da"


@pytest.mark.parametrize("wrong", ["stars", ["da"], None, 1])
def test_an_unknown_protocol_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match=r"^f: found .*; allowed: a protocol of creamtea"):
        Column(record.ProtocolName).decode(wrong, "f")


def test_a_weight_beyond_floats_is_refused() -> None:
    with pytest.raises(InputError, match=r"^f: found 1000.*; allowed: a finite number"):
        WEIGHT.decode(10**400, "f")


# ---------------------------------------------------------------- folders that cannot be written


def full(path: Path, *_: Any) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@pytest.fixture
def full_after_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with room for one file and for the beginning of another."""
    write, written = Path.write_bytes, []

    def write_bytes(path: Path, content: bytes) -> int:
        written.append(path)
        if len(written) == 1:
            return write(path, content)
        write(path, content[:1])
        full(path)

    monkeypatch.setattr(Path, "write_bytes", write_bytes)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "pearmut"])
@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk(
    database: Database, tmp_path: Path, full_after_one: None, kind: str, there: bool
) -> None:
    make_campaign(database, 3, name="c", protocol="da")
    rate_all(database, add_rater(database))
    parent = tmp_path / "new"
    out = parent / "out"
    if there:
        out.mkdir(parents=True)
    with pytest.raises(InputError, match=r"--output .*out: \w+\.(jsonl|csv): No space left"):
        export_campaign(database, "c", kind, out, "test")
    assert parent.exists() == there
    assert list(parent.rglob("*")) == [out] * there
    assert not all_of(database, select(AuditEvent).where(AuditEvent.action == EXPORTED))


def test_a_disk_that_is_full_when_files_beside_sources_are_copied(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, picture, out = ArtefactStore(tmp_path / "artefacts"), tmp_path / "a.png", tmp_path / "out"
    picture.write_bytes(samples.png())
    entry = {"digest": store.put_file(picture), "type": "image/png", "description": ""}
    number = make_campaign(database, [{"media": [entry]}, {}], name="c")
    with database.transaction() as session:
        store_media(session, number, [entry], {entry["digest"]: picture.stat().st_size})
    opened = Path.open

    def open_(path: Path, mode: str = "r", *more: Any, **rest: Any) -> Any:
        return full(path) if path.parent == out / "media" else opened(path, mode, *more, **rest)

    monkeypatch.setattr(Path, "open", open_)
    with pytest.raises(InputError, match=r"--output .*out: media/.*No space left"):
        export_campaign(database, "c", "csv", out, "test", store)
    assert not out.exists()


def test_a_name_that_is_too_long_for_a_file(database: Database, tmp_path: Path) -> None:
    name = everything(database, "mqm")
    with database.transaction() as session:
        session.query(Rater).filter(Rater.pseudonym == "anna").update({"pseudonym": "ж" * 120})
    out = tmp_path / "out"
    with pytest.raises(InputError, match=r"called .*mqm\.ж+… \(\d+ bytes; .* 255\).*csv or jsonl"):
        export_campaign(database, name, "mt-metrics-eval", out, "test")
    assert not out.exists()
