"""Texts beside Appraise's scores: which line a segment is of, what reports call it, where its errors are."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from appraise_files import block, campaign, cells, options, written

from creamtea.errors import InputError
from creamtea.human.formats.base import NotKept
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.ratings import rows_of
from creamtea.human.formats.record import Content
from creamtea.human.formats.storing import collect
from creamtea.store.database import Database

# the campaign has two of the four lines of its document
TWO_OF_FOUR = """\
ann,A,1,TGT,eng,deu,87,d#A,False,[],1,5
ann,A,2,TGT,eng,deu,80,d#A,False,[],6,9
ann,B,3,TGT,eng,deu,12,d#B,False,[],10,15
ann,B,4,TGT,eng,deu,12,d#B,False,[],16,25
"""


def texts(folder: Path, docs: str | None, **files: str) -> dict[str, Any]:
    """Options with these files in the folder; of systems by their names in capitals."""
    found: dict[str, Any] = {"protocol": "esa", "output_of": {}}
    for name, text in {**files, **({"documents": docs} if docs else {})}.items():
        (folder / name).write_text(text, encoding="utf-8")
        if name.isupper():
            found["output_of"][name] = folder / name
        else:
            found[name] = folder / name
    return found


def sources(content: Content) -> dict[tuple[str, int], str]:
    return {(item.systems[0], item.segment): item.source for item in content.items}


@pytest.mark.parametrize(
    ("docs", "said"),
    [
        (
            "news\td\n" * 4,
            r"1 document with another number .*: d \(4 lines, 2 segments\).*: write - in the line",
        ),
        ("news\td\n-\n-\n-\n", r": d \(1 line, 2 segments\)"),
        ("news\tx\n" * 4, "no document 'd' in it"),
    ],
)
def test_a_document_has_a_line_for_each_of_its_segments(tmp_path: Path, docs: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        campaign(tmp_path, TWO_OF_FOUR, **texts(tmp_path, docs, sources="one\ntwo\nthree\nfour\n"))


def test_documents_whose_names_only_look_alike(tmp_path: Path) -> None:
    """A document that the scores name in NFC is the file's in NFD, unless two of the file's look like it."""
    scores = TWO_OF_FOUR.replace("d#", unicodedata.normalize("NFC", "café#"))
    nfd = unicodedata.normalize("NFD", "café")
    docs = f"news\t{nfd}\n-\nnews\t{nfd}\n-\n"
    content = campaign(tmp_path, scores, **texts(tmp_path, docs, sources="one\ntwo\nthree\nfour\n"))
    assert sources(content) == {("A", 0): "one", ("A", 2): "three", ("B", 0): "one", ("B", 2): "three"}
    assert content.settings["domains"] == {unicodedata.normalize("NFC", "café"): "news"}
    docs = f"news\t{nfd}\nnews\t{nfd}\u200b\n-\n-\n"
    with pytest.raises(InputError, match="no document 'café' in it"):
        campaign(tmp_path, scores, **texts(tmp_path, docs, sources="one\ntwo\nthree\nfour\n"))


def test_lines_that_the_campaign_does_not_have(tmp_path: Path) -> None:
    """By hand in the file of documents, or as the published segment scores have them."""
    wanted = {("A", 0): "one", ("A", 2): "three", ("B", 0): "one", ("B", 2): "three"}
    four = "one\ntwo\nthree\nfour\n"
    marked = campaign(tmp_path, TWO_OF_FOUR, **texts(tmp_path, "news\td\n-\nnews\td\n-\n", sources=four))
    assert sources(marked) == wanted
    published = "A\t87\nA\tNone\nA\tNone\nA\tNone\nB\tNone\nB\tNone\nB\t12\nB\tNone\n"
    given = texts(tmp_path, "news\td\n" * 4, sources=four, segment_scores=published)
    assert sources(campaign(tmp_path, TWO_OF_FOUR, **given)) == wanted
    given = texts(tmp_path, "news\td\n" * 4, segment_scores=published.removesuffix("B\tNone\n"))
    with pytest.raises(InputError, match="found 3 scores of B; allowed: 4, one for each line of --documents"):
        campaign(tmp_path, TWO_OF_FOUR, **given)
    with pytest.raises(InputError, match=r"--segment-scores says which lines of --documents .*: give both"):
        campaign(tmp_path, TWO_OF_FOUR, **texts(tmp_path, None, segment_scores=published))


def test_texts_of_other_lengths_and_without_documents(tmp_path: Path) -> None:
    two = "news\td\nnews\td\n"
    with pytest.raises(InputError, match="--output-of A: A has 3 lines, and --documents has 2"):
        campaign(tmp_path, TWO_OF_FOUR, **texts(tmp_path, two, A="1\n2\n3\n"))
    with pytest.raises(
        InputError, match=r"--sources: scores\.csv counts segments within documents: give --docu"
    ):
        campaign(tmp_path, TWO_OF_FOUR, **texts(tmp_path, None, sources="one\ntwo\nthree\nfour\n"))
    alone = campaign(tmp_path, TWO_OF_FOUR, **texts(tmp_path, None, sources="one\ntwo\n"))
    assert set(sources(alone).values()) == {"one", "two"}


def test_a_part_of_a_document_that_may_not_be_its_beginning_is_named(
    database: Database, tmp_path: Path
) -> None:
    """ben's items begin with the last two of B's three segments, or with its first two: nobody knows."""
    lines = "".join(f"ann,A,{at},TGT,eng,deu,9,d#A,False,[],1,{at}\n" for at in (1, 2, 3))
    lines += "".join(f"ben,B,{at},TGT,eng,deu,9,d#B,False,[],1,{at}\n" for at in (1, 2))
    done = import_campaign(database, written(tmp_path, lines), "appraise", options(protocol="esa"), "test")
    assert done.notices == (
        NotKept(2, "ratings of incomplete documents, read as the documents' beginnings", note=True),
    )


# ---------------------------------------------------------------- what a segment is called


def worst(database: Database) -> str:
    """What the report calls the output on which raters disagree most."""
    return str(block(database, "disputes")["entries"][0]["name"])


@pytest.mark.parametrize(("first", "numbers"), [(None, (1, 2)), (None, (0, 1)), (1, (1, 2)), (0, (1, 2))])
def test_a_report_names_segments_as_the_file_does(
    database: Database, tmp_path: Path, first: int | None, numbers: tuple[int, int]
) -> None:
    """Raters disagree on the segment with the lower number, whose line depends on how the file counts."""
    lines = "".join(
        f"{rater},A,{number},TGT,eng,deu,{score},{at}1,{at}5\n"
        for at, (rater, number, score) in enumerate(
            [("r1", numbers[0], 100), ("r2", numbers[0], 0), ("r1", numbers[1], 80), ("r2", numbers[1], 80)],
            1,
        )
    )
    (tmp_path / "src").write_text("one\ntwo\nthree\n")
    facts = options(first_segment=first, sources=tmp_path / "src")
    import_campaign(database, written(tmp_path, lines), "appraise", facts, "test")
    assert worst(database) == f"segment {numbers[0]}, A"
    lowest = collect(database, "wmt").items[0]
    zero_based = first == 0 or 0 in numbers
    assert lowest.source == ("one", "two")[numbers[0] - (0 if zero_based else 1)]
    assert lowest.segment == numbers[0] - (0 if zero_based else 1)

    export_campaign(database, "wmt", "csv", tmp_path / "out", "test")
    import_campaign(
        database, tmp_path / "out", "csv", options(name="again", protocol=None, test_set=None), "test"
    )
    assert collect(database, "again").segment_name(lowest.segment) == f"segment {numbers[0]}"


def test_files_of_lines_tell_their_first_number(tmp_path: Path) -> None:
    """Of WMT 2024: numbers of the test set's lines from 0, of which this campaign has no 0."""
    lines = "ann,A,1,TGT,eng,deu,60,b,False,[],1,2\nann,A,2,TGT,eng,deu,61,b,False,[],3,4\n"
    content = campaign(tmp_path, lines, **texts(tmp_path, "x\ta\nx\tb\nx\tb\n", sources="0\n1\n2\n"))
    assert sources(content) == {("A", 1): "1", ("A", 2): "2"}
    assert content.segment_name(1) == "segment 1"


# ---------------------------------------------------------------- errors


def line(errors: list[dict[str, Any]], rater: str = "ann", score: int = 40) -> str:
    written = json.dumps(errors).replace('"', '""')
    return f'{rater},A,1,TGT,eng,deu,{score},d#A,False,"{written}",1,5\n'


def error(start: Any, end: Any, severity: str = "minor", **more: Any) -> dict[str, Any]:
    return {"start_i": start, "end_i": end, "severity": severity, **more}


def test_errors_marked_beforehand_become_proposals(database: Database, tmp_path: Path) -> None:
    """As in ESA with AI: what raters left has no error_type, and its end is one past the last character."""
    ann = [
        error(0, 4),
        error(5, 7, "major", error_type=None),
        error(9, 16, "major"),
        error("missing", "missing"),
    ]
    ben = [error(0, 4, "major"), error(5, 12)]
    given = texts(tmp_path, "news\td\n", A="Das Haus.\n")
    file = written(tmp_path, line(ann) + line(ben, "ben"))
    done = import_campaign(database, file, "appraise", options(**given), "test")
    assert done.notices == (
        NotKept(5, "errors that were marked beforehand, read as proposals", note=True),
        NotKept(1, "errors marked after the end of the text: read as omissions", note=True),
        NotKept(1, "errors that end after the end of the text: they end with it here", note=True),
    )
    content = collect(database, "wmt")
    assert content.items[0].proposals == {
        "A": [
            {"start": 0, "end": 3, "severity": "minor"},
            {"severity": "major"},
            {"severity": "minor"},
            {"start": 5, "end": 8, "severity": "minor"},
        ]
    }
    assert {row.rater: (row.payload or {})["spans"] for row in rows_of(content)} == {
        "ann": [
            {"start": 0, "end": 3, "severity": "minor", "proposed": 0},
            {"start": 5, "end": 7, "severity": "major"},
            {"severity": "major", "proposed": 1},
            {"severity": "minor", "proposed": 2},
        ],
        "ben": [
            {"start": 0, "end": 3, "severity": "major", "proposed": 0},
            {"start": 5, "end": 8, "severity": "minor", "proposed": 3},
        ],
    }
    assert "nobody knows how many they deleted" in block(database, "proposed")["about"]
    assert list(cells(database, "proposed").values()) == [{"answers": 2, "left": 5, "added": 1}]


def test_one_mark_beyond_the_text_does_not_refuse_the_file(database: Database, tmp_path: Path) -> None:
    given = texts(tmp_path, "news\td\n", A=" Haus\n")
    file = written(tmp_path, line([error(1, 9, error_type=None), error(5, 9, error_type=None)]))
    done = import_campaign(database, file, "appraise", options(**given), "test")
    assert [part.count for part in done.notices] == [1, 1]
    [row] = rows_of(collect(database, "wmt"))
    assert (row.payload or {})["spans"] == [
        {"start": 2, "end": 4, "severity": "minor"},
        {"severity": "minor"},
    ]


def test_places_in_a_text_that_nobody_has_stay(tmp_path: Path) -> None:
    content = campaign(tmp_path, line([error(3, 9)]), protocol="esa")
    assert (content.answers[0].scores[0].payload or {})["spans"] == [
        {"start": 3, "end": 8, "severity": "minor", "proposed": 0}
    ]


def test_names_are_found_however_a_keyboard_writes_them(tmp_path: Path) -> None:
    """ "é" is one character or two."""
    composed, decomposed = "Jos\u00e9", "Jose\u0301"
    line = f"ann,{decomposed},1,TGT,eng,deu,70,d,False,0.0,9.0"
    (tmp_path / "out.txt").write_text("Haus\n")
    content = campaign(
        tmp_path, f"{line}\n", output_of={composed: tmp_path / "out.txt"}, baseline=composed, protocol="da"
    )
    assert content.systems == (decomposed,)
    assert content.settings["baseline"] == decomposed
    assert content.items[0].outputs == ("Haus",)
