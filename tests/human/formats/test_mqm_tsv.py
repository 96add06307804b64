"""Error annotations in the layout of Google's releases. The lines are made up after these."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts, NotKept, repeats
from creamtea.human.formats.exchange import export_campaign, find_format, import_campaign
from creamtea.human.formats.losses import repeats_kept
from creamtea.human.formats.mqm_tsv import FIELDS
from creamtea.human.formats.ratings import rows_of
from creamtea.human.formats.storing import collect
from creamtea.store.database import Database

NOW = datetime(2026, 5, 1, tzinfo=UTC)
LINES = """\
A|talk|1|84|ann|Er ging heim.|He <v>goed</v> home.|Fluency/Grammar|Major
A|talk|1|84|ann|Er <v>ging</v> heim.|He goed home.|Accuracy/Omission|Minor
A|talk|1|84|bob|Er ging heim.|He goed home|No-error|No-error
B|talk|1|84|ann|Er ging heim.|<v>He|Fluency/Punctuation|Minor|a comment
B|talk|2|85|ann|Gut.|Good.|No-error|No-error
"""
FACTS = ImportFacts("ted", None, "ted", "de", "en")


def written(folder: Path, lines: str, header: str = "\t".join(FIELDS)) -> Path:
    path = folder / "mqm.tsv"
    path.write_text(header + "\n" + lines.replace("|", "\t"), encoding="utf-8")
    return path


def test_a_line_that_repeats_another_is_one_error(tmp_path: Path) -> None:
    """Where something stands behind the severity, such as the moment: without it two equal lines may be two
    omissions."""
    omission = "A|talk|1|84|ann|Gut so.|Good.|Accuracy/Omission|Major"
    lines = f"{omission}|12:01\n{omission}|12:01\n{omission}|12:02\n"
    content, not_kept = find_format("mqm").read(written(tmp_path, lines), FACTS, NOW)
    assert [score.step for answer in content.answers for score in answer.scores] == [10000 - 100]
    assert repeats([3])[0] in not_kept
    content, not_kept = find_format("mqm").read(written(tmp_path, f"{omission}\n{omission}\n"), FACTS, NOW)
    assert [score.step for answer in content.answers for score in answer.scores] == [10000 - 100]
    assert not_kept == ()
    (note,) = repeats_kept(content)
    assert (note.count, note.what.split()[0]) == (1, "errors")


def test_errors_become_scores_and_stay_where_they_are(database: Database, tmp_path: Path) -> None:
    path = written(tmp_path, LINES.replace("home|No", "home.|No"))
    done = import_campaign(database, path, "mqm", FACTS, "test")
    assert (done.items, done.ratings, done.systems, done.raters) == (3, 4, 2, 2)
    content = collect(database, "ted")
    rows = {(row.system, row.segment, row.rater): row for row in rows_of(content)}
    assert {key: float(row.value) for key, row in rows.items()} == {
        ("A", 83, "ann"): -6.0,
        ("A", 83, "bob"): 0.0,
        ("B", 83, "ann"): -0.1,
        ("B", 84, "ann"): 0.0,
    }
    verb, omission = rows["A", 83, "ann"].payload["spans"]
    assert verb == {"start": 3, "end": 6, "severity": "major", "category": ["Fluency", "Grammar"]}
    assert (omission["start"], omission["end"], omission["in_source"]) == (3, 6, True)
    assert rows["B", 83, "ann"].payload["spans"][0]["end"] == 1, "a mark that is not closed goes to the end"
    assert {row.document for row in rows.values()} == {"talk"}
    assert content.items[0].outputs == ("He goed home.",)

    export_campaign(database, "ted", "jsonl", tmp_path / "out", "test")
    import_campaign(database, tmp_path / "out", "jsonl", ImportFacts("again"), "test")
    again = {(row.system, row.segment, row.rater): row for row in rows_of(collect(database, "again"))}
    assert {key: row.payload for key, row in again.items()} == {key: row.payload for key, row in rows.items()}


def test_side_by_side_files(tmp_path: Path) -> None:
    """Of 2023: other names of two fields, planted errors, white space that some raters' lines lack."""
    lines = (
        "A|t|1|5|ann|Gut.|<v>Goood</v>.|Fluency/Spelling|Major|{}\n"
        "A|t|1|5|ann|Gut.|Bad<v>.</v>|Accuracy|HOTW-test|{}\n"
        "A|t|1|5|bob|Gut. |Goood<v>. </v>|Fluency/Punctuation|Minor|{}\n"
        "A|t|1|5|cy|Gut. |Goood.<v> </v>|Fluency/Punctuation|Minor|{}\n"
        "A|t|1|6|ann|Nein.|No.|Accuracy|HOTW-test|{}\n"
    )
    header = "\t".join(FIELDS).replace("doc_id\tseg_id", "docSegId\tglobalSegId") + "\tmetadata"
    content, not_kept = find_format("mqm").read(written(tmp_path, lines, header), FACTS, NOW)
    assert [(item.segment, item.outputs) for item in content.items] == [(4, ("Goood.",))]
    assert {row.rater: row.payload["spans"] for row in rows_of(content)} == {
        "ann": [{"start": 0, "end": 4, "severity": "major", "category": ["Fluency", "Spelling"]}],
        "bob": [{"start": 5, "end": 5, "severity": "minor", "category": ["Fluency", "Punctuation"]}],
        "cy": [{"severity": "minor", "category": ["Fluency", "Punctuation"]}],
    }
    assert {(one.count, one.what) for one in not_kept} == {
        (3, "values of the column 'metadata'"),
        (2, "errors planted to test raters"),
        (1, "numbers of segments within documents"),
        (2, "texts with other white space at their ends than in an earlier line, which counts"),
        (2, "places of errors in white space that an earlier line does not have"),
    }


def test_names_in_other_spellings(database: Database, tmp_path: Path) -> None:
    """Right values by hand: three non-translations of 25, and nothing marked."""
    lines = (
        "A|d|1|1|r1|One 1.|<v>Eins</v> 1.|Non-translation!|Major\n"
        "A|d|2|2|r1|One 2.|<v>Eins</v> 2.|Non_translation!|major\n"
        "A|d|3|3|r1|One 3.|<v>Eins</v> 3.|Non translation|MAJOR\n"
        "A|d|4|4|r1|One 4.|Eins 4.|No error|No error\n"
        "A|d|5|5|r1|One 5.|Eins <v>5</v>.|Fluency/Wobble|Minor\n"
        "A|d|5|5|r2|One 5.|Eins <v>5</v>.|Fluency/Wobble|Minor\n"
    )
    done = import_campaign(database, written(tmp_path, lines), "mqm", FACTS, "test")
    rows = {(row.segment, row.rater): row.value for row in rows_of(collect(database, "ted"))}
    assert [rows[segment, "r1"] for segment in range(5)] == ["-25.0", "-25.0", "-25.0", "0.0", "-1.0"]
    assert done.notices == (
        NotKept(
            2,
            "errors of categories that the usual weights do not name (they cost what their severity says; "
            "--taxonomy FILE gives others): Fluency/Wobble (2)",
        ),
    )


HEADER = "system|doc|docSegId|globalSegId|rater|source|target|category|severity|metadata".replace("|", "\t")


def test_segments_that_are_counted_within_documents(tmp_path: Path) -> None:
    """ "If you do not have such numbering available, set this to a constant value" (README of Marot)."""
    lines = (
        "A|d|10|0|r1|Ten.|Zehn.|No-error|No-error\n"
        "A|d|2|0|r1|Two.|Zwei.|No-error|No-error\n"
        "A|e|1|0|r1|One.|Eins.|No-error|No-error\n"
    )
    content, not_kept = find_format("mqm").read(written(tmp_path, lines, HEADER), FACTS, NOW)
    found = {item.segment: (item.document, item.source) for item in content.items}
    assert found == {0: ("d", "Two."), 1: ("d", "Ten."), 2: ("e", "One.")}
    assert [(part.count, part.what, part.note) for part in not_kept] == [
        (2, "numbers of segments within documents", False),
        (3, "segments numbered anew, document after document: the file counts them within documents", True),
    ]
    zero, _ = find_format("mqm").read(written(tmp_path, lines[: lines.index("\n") + 1], HEADER), FACTS, NOW)
    assert (zero.items[0].segment, zero.segment_name(0)) == (0, "segment 0")


def test_lines_without_a_rater_have_metadata_of_a_segment(tmp_path: Path) -> None:
    lines = "A|d|1|1|r1|One.|Eins.|No-error|No-error|\nA|d|1|1||One.|Eins.|||{}\nB|d|1|1||One.|Ein.|||\n"
    content, not_kept = find_format("mqm").read(written(tmp_path, lines, HEADER), FACTS, NOW)
    assert [(item.systems, item.outputs) for item in content.items] == [
        (("A",), ("Eins.",)),
        (("B",), ("Ein.",)),
    ]
    assert len(content.answers) == 1
    assert [(part.count, part.what) for part in not_kept] == [
        (1, "values of the column 'metadata'"),
        (2, "lines of metadata, without a rater"),
    ]


@pytest.mark.parametrize(
    "header",
    [
        "",
        HEADER,
        HEADER.replace("docSegId", "doc_seg_id").replace("globalSegId", "global_seg_id"),
        HEADER.upper(),
    ],
)
def test_headers_that_files_have(tmp_path: Path, header: str) -> None:
    path = written(tmp_path, "A|d|1|7|r1|One.|<v>Eins</v>.|Other|Minor\n", header)
    path.write_text(path.read_text().removeprefix("\n"))
    content, not_kept = find_format("mqm").read(path, FACTS, NOW)
    assert (content.items[0].outputs, content.segment_name(content.items[0].segment)) == (
        ("Eins.",),
        "segment 7",
    )
    assert not_kept == ()


def test_fields_in_another_order(tmp_path: Path) -> None:
    names = ["system", "doc", *reversed(FIELDS[2:]), "note"]
    path = written(tmp_path, "A|d|Minor|Other|<v>Eins</v>.|One.|r1|7|1|so\n", "\t".join(names))
    content, not_kept = find_format("mqm").read(path, FACTS, NOW)
    [row] = rows_of(content)
    assert (row.rater, row.value, row.document, row.source, row.output) == (
        "r1",
        "-1.0",
        "d",
        "One.",
        "Eins.",
    )
    assert [part.count for part in not_kept] == [1]
    with pytest.raises(InputError, match="line 1: the header has no rater; allowed: system doc"):
        find_format("mqm").read(
            written(tmp_path, LINES, "\t".join(FIELDS).replace("rater", "who")), FACTS, NOW
        )


@pytest.mark.parametrize("plain", [True, False])
def test_cells_in_csv_quotes(tmp_path: Path, plain: bool) -> None:
    """As 542 lines of mqm_newstest2020_ende.source-errors.tsv; a text that is just in quotes keeps them."""
    quoted = 'S|d|1|1|r2|"He said ""yes"" to it."|"Er sagte <v>""ja""</v> dazu."|Other|Major\n'
    lines = 'S|d|1|1|r1|He said "yes" to it.|Er sagte <v>"ja"</v> dazu.|Other|Major\n' if plain else ""
    lines += quoted + 'S|d|2|2|r1|"Yes."|"Ja", "nein"|No-error|No-error\n'
    content, not_kept = find_format("mqm").read(written(tmp_path, lines), FACTS, NOW)
    assert [(item.source, item.outputs[0]) for item in content.items] == [
        ('He said "yes" to it.', 'Er sagte "ja" dazu.'),
        ('"Yes."', '"Ja", "nein"'),
    ]
    spans = {row.rater: (row.payload or {})["spans"] for row in rows_of(content) if row.segment == 0}
    mark = {"start": 9, "end": 12, "severity": "major", "category": ["Other"]}
    assert spans == {"r2": [mark], **({"r1": [mark]} if plain else {})}
    assert NotKept(2, "texts in CSV quotes, read without them", note=True) in not_kept


def test_what_lines_say_and_nobody_keeps_is_named(tmp_path: Path) -> None:
    lines = (
        "A|d|1|1|r1|<v>On</v>e.|<v>Eins</v>.|Other|Minor\n"
        "A|d|1|1|r1|One.|Eins.<v></v>|Other|Minor\n"
        "A|d|1|1|r1|One.|Ein<v>s.|Other|Minor\n"
        "A|d|1|1|r1|One. |<v>Eins.</v>|No-error|No-error\n"
    )
    _, not_kept = find_format("mqm").read(written(tmp_path, lines), FACTS, NOW)
    assert {(part.count, part.what, part.note) for part in not_kept} == {
        (1, "marks in the source beside one in the target", False),
        (1, "marks around nothing", False),
        (1, "marks in lines that say no-error", False),
        (1, "marks without </v>, which go to the end of the text", True),
        (1, "texts with other white space at their ends than in an earlier line, which counts", True),
        (1, "lines that say no-error beside errors of their rater, which count", True),
    }


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (LINES, "line 4: segment 84 of A has another text than in line 2"),
        ("A|t|1|x|ann|s|t|No-error|No-error\n", "line 2: seg_id: found 'x'; allowed: a whole number"),
        ("A|t|1|-1|ann|s|t|No-error|No-error\n", "line 2: seg_id: found '-1'"),
        ("A|t|1|9999999999|ann|s|t|No-error|No-error\n", "line 2: seg_id: found '9999999999'"),
        ("", "mqm.tsv: no ratings in it"),
        ("A|t|1|1|ann|s|t|No-error\n", "line 2: found 8 fields"),
        ("A|t|1|1|ann|s|<v>a</v> <v>b</v>|Style|Minor\n", "line 2: several marks"),
        ("A|t|1|1|ann|s|a</v> b|Style|Minor\n", "line 2: </v> without <v> before it"),
        (
            "A|t|1|1|ann|s|t|Style|Awful\nA|t|1|1|ann|s|t|Style|Bad\nA|t|1|2|ann|s|t|Style|Awful\n",
            r"line 2: errors of unknown severities: 'Awful' \(2\), 'Bad' \(1\); allowed: undecided, neutral, "
            "minor, major, critical, or no-error",
        ),
        ("A|t|1|1||s|t|Style|Minor\n", "line 2: rater: found ''; allowed: text that is not blank"),
    ],
)
def test_a_line_that_cannot_be_read(tmp_path: Path, lines: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        find_format("mqm").read(written(tmp_path, lines), FACTS, NOW)


def test_another_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 1: found 1 field; allowed: system doc"):
        find_format("mqm").read(written(tmp_path, LINES, "rater,score"), FACTS, NOW)
    with pytest.raises(InputError, match="--format mqm are of mqm"):
        find_format("mqm").read(written(tmp_path, LINES), ImportFacts("ted", "da"), NOW)


@pytest.mark.parametrize(
    ("name", "rater", "said"),
    [("c" * 301, "ann", "campaign name of at most 300"), ("c", "ann" * 101, "'annann.*at most 300")],
)
def test_names_that_are_too_long_for_an_index(
    database: Database, tmp_path: Path, name: str, rater: str, said: str
) -> None:
    path = written(tmp_path, f"A|t|1|1|{rater}|s|t|Style|Minor\n")
    with pytest.raises(InputError, match=said):
        import_campaign(database, path, "mqm", replace(FACTS, name=name), "test", dry_run=True)
