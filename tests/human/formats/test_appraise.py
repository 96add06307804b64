"""Appraise's exports in the layouts of the WMT releases (docs/exchange.md).

Lines in the tests are made up after these.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from appraise_files import MTURK, NOW, campaign, cells, options, written
from sqlalchemy import func, select

from creamtea.errors import InputError
from creamtea.human.formats.appraise import read_appraise
from creamtea.human.formats.base import ImportFacts, NotKept
from creamtea.human.formats.exchange import export_campaign, find_format, import_campaign
from creamtea.human.formats.ratings import rows_of
from creamtea.human.formats.storing import collect
from creamtea.human.protocols.spans import Mqm
from creamtea.store.database import Database
from creamtea.store.tables import Campaign

BY_SEGMENT = """\
engces01,one.txt,4,TGT,eng,ces,67,1665744151.351,1665744158.765
engces01,two.txt,4,TGT,eng,ces,33,1665744159.453,1665744170.069
engces01,one.txt,4,BAD,eng,ces,5,1665744170.748,1665744180.877
engces01,one.txt,4,CHK,eng,ces,70,1665744181.493,1665744191.397
engces01,two.txt,9,REF,eng,ces,100,1665744192.005,1665744216.414
engces02,two.txt,9,BAD,eng,ces,0,1665744192.005,1665744216.414
engces02,one.txt,4,TGT,eng,ces,50,1665744300,1665744200
engces02,one.txt,4,TGT,eng,ces,40,1665744300,1665744301
"""
BY_DOCUMENT = """\
ann,A,1,TGT,eng,deu,60,news.1,False,1.0,2.5
ann,A,2,TGT,eng,deu,61,news.1,False,3.0,4.0
ann,A,2,TGT,eng,deu,62,news.1,True,5.0,6.0
ann,A,1,TGT,eng,deu,63,news.2,False,7.0,8.0
"""


def test_scores_by_segment(tmp_path: Path) -> None:
    content = campaign(tmp_path, BY_SEGMENT)
    assert content.systems == ("one.txt", "reference", "two.txt")
    assert (content.source_language, content.target_language) == ("eng", "ces")
    items = {(item.kind, item.segment, item.systems[0]): item for item in content.items}
    original = items["rated", 3, "one.txt"]
    assert items["bad-reference", 3, "one.txt"].degraded == "one.txt"
    assert items["repeat", 3, "one.txt"].degraded is None
    # "two.txt" of segment 9 was never rated itself: its bad reference still has an original
    assert items["bad-reference", 8, "two.txt"].original == items["rated", 8, "two.txt"].position
    assert items["rated", 8, "reference"].original is None
    first = [item for item in content.items if (item.kind, item.systems[0]) == ("rated", "one.txt")]
    assert [item.segment for item in first] == [3, 3]  # engces02 rated it twice
    assert {item.original for item in content.items if item.kind in ("repeat", "bad-reference")} == {
        first[0].position,
        items["rated", 8, "two.txt"].position,
    }
    assert content.segment_name(original.segment) == "segment 4", "as the file calls it"
    answers = [answer for answer in content.answers if answer.rater == "engces02"]
    assert [answer.active_ms for answer in answers] == [None, 24409, 1000]
    assert answers[1].scores[0].at == datetime(2022, 10, 14, 10, 43, 36, 414000, tzinfo=UTC)
    assert Counter(score.step for answer in content.answers for score in answer.scores) == Counter(
        [67, 33, 5, 70, 100, 0, 50, 40]
    )


def test_scores_of_documents_are_left_out_and_counted(database: Database, tmp_path: Path) -> None:
    done = import_campaign(database, written(tmp_path, BY_DOCUMENT), "appraise", options(), "test")
    assert (done.items, done.ratings) == (3, 3)
    assert done.not_kept == (NotKept(1, "scores of whole documents"),)
    rows = list(rows_of(collect(database, "wmt")))
    # numbers within documents would be those of other segments, too: they are counted anew
    assert [(row.document, row.segment, row.step, row.active_ms) for row in rows] == [
        ("news.1", 0, 60, 1500),
        ("news.1", 1, 61, 1000),
        ("news.2", 2, 63, 1000),
    ]


ERRORS = (
    '"[{""start_i"": 0, ""end_i"": 1, ""severity"": ""minor"", ""error_type"": null}, '
    '{""start_i"": ""missing"", ""end_i"": ""missing"", ""severity"": ""major"", '
    '""error_type"": [""Accuracy"", ""Omission""]}]"'
)
# ann's part of news ends after its first segment of B, bob's goes on; the tutorial comes first
ESA = """\
ann,tutorial,1,TGT,eng,deu,9,ende-tutorial1,False,[],1,2
ann,A,11,TGT,eng,deu,60,news#A,False,ERRORS,3,4
ann,A,12,TGT,eng,deu,61,news#A,False,[],5,6
ann,A,13,TGT,eng,deu,62,news#A,False,[],7,8
ann,A,20,BAD,eng,deu,5,news#A#bad1,False,ERRORS,7,8
ann,B,30,TGT,eng,deu,70,news#B,False,[],9,10
bob,B,5,TGT,eng,deu,71,news#B,False,[],9,10
bob,B,6,TGT,eng,deu,72,news#B,False,[],11,12
bob,B,7,TGT,eng,deu,85,blog#B,False,[],13,14
""".replace("ERRORS", ERRORS)


def test_marked_errors_and_parts_of_documents(database: Database, tmp_path: Path) -> None:
    (tmp_path / "docs").write_text("d\tnews\n-\nd\tnews\nd\tnews\nd\tblog\n")
    facts = options(protocol="esa", documents=tmp_path / "docs")
    done = import_campaign(database, written(tmp_path, ESA), "appraise", facts, "test")
    assert done.not_kept == (NotKept(1, "scores of practice (tutorials)"),)
    rows = list(rows_of(collect(database, "wmt")))
    places = {(row.system, row.segment, row.kind): (row.rater, row.step) for row in rows}
    assert places == {
        ("A", 0, "rated"): ("ann", 60),
        ("A", 2, "rated"): ("ann", 61),
        ("A", 3, "rated"): ("ann", 62),
        ("A", 0, "bad-reference"): ("ann", 5),
        ("B", 0, "rated"): ("ann", 70),
        ("B", 2, "rated"): ("bob", 71),
        ("B", 3, "rated"): ("bob", 72),
        ("B", 4, "rated"): ("bob", 85),
    }
    [payload] = [row.payload for row in rows if row.step == 60]
    omission = {"severity": "major", "category": ["Accuracy", "Omission"]}
    assert payload == {"score": 60, "spans": [{"start": 0, "end": 1, "severity": "minor"}, omission]}

    found = cells(database, "marked")
    assert found["A"] == {"ratings": 3, "minor": 1 / 3, "major": 1 / 3, "omissions": 1 / 3, "free": 0}
    assert found["B"] == {"ratings": 4, "minor": 0, "major": 0, "omissions": 0, "free": 25}, (
        "one of 85 or more"
    )

    export_campaign(database, "wmt", "csv", tmp_path / "out", "test")
    import_campaign(database, tmp_path / "out", "csv", ImportFacts("again"), "test")
    assert [row.payload for row in rows_of(collect(database, "again"))] == [row.payload for row in rows]


def test_places_are_indices_of_a_javascript_string_without_outer_white_space(
    database: Database, tmp_path: Path
) -> None:
    """As Appraise's page counts: it trims the text and takes it apart by split("")."""
    (tmp_path / "A.txt").write_text("\u2003\ufeff🦊 läuft 🦊.\n", encoding="utf-8")
    errors = ERRORS.replace('""start_i"": 0, ""end_i"": 1', '""start_i"": 9, ""end_i"": 10')
    file = written(tmp_path, f"ann,A,1,TGT,eng,deu,60,news,False,{errors},3,4\n")
    facts = options(protocol="esa", output_of={"A": tmp_path / "A.txt"})
    import_campaign(database, file, "appraise", facts, "test")
    [row] = rows_of(collect(database, "wmt"))
    assert row.payload is not None
    first = row.payload["spans"][0]
    assert row.output[first["start"] : first["end"] + 1] == "🦊"
    assert (first["start"], first["end"]) == (10, 10)
    export_campaign(database, "wmt", "appraise", tmp_path / "out", "test")
    assert '""start_i"": 9, ""end_i"": 10' in (tmp_path / "out/scores.csv").read_text()


def test_errors_make_the_score_of_mqm(tmp_path: Path) -> None:
    zeros = re.sub(r"deu,\d+,", "deu,0,", ESA)
    content = campaign(tmp_path, zeros, protocol="mqm")
    values = {
        (content.items[answer.item].systems[0], answer.rater): float(Mqm.scale.value(answer.scores[0].step))
        for answer in content.answers
    }
    assert values == {("A", "ann"): -6.0, ("B", "ann"): 0.0, ("B", "bob"): 0.0} | values
    with pytest.raises(InputError, match="all scores are 0, and the ratings are 4 marked errors; mqm fits"):
        campaign(tmp_path, zeros)
    kept = find_format("appraise").read(written(tmp_path, ESA), options(), NOW)
    assert kept[1][1] == NotKept(4, "marked errors (--protocol esa keeps them)")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ('{""start_i"": 3, ""severity"": ""minor""}', "field errors"),
        ('{""start_i"": 3, ""end_i"": 2, ""severity"": ""minor""}', "found an error from 3 to 2"),
        ('{""start_i"": 3, ""end_i"": 4.5, ""severity"": ""minor""}', "found an error from 3 to 4.5"),
        ('{""start_i"": 3, ""end_i"": 4, ""severity"": ""awful""}', "errors of unknown severities: 'awful'"),
        ('{""start_i"": ""missing"", ""end_i"": 4, ""severity"": ""minor""}', "an error from 'missing' to 4"),
        ("3", "field errors"),
        ("[" * 100_000, "field errors"),
    ],
)
def test_errors_that_cannot_be(tmp_path: Path, error: str, said: str) -> None:
    line = f'ann,A,1,TGT,eng,deu,60,news#A,False,"[{error}]",1,2\n'
    with pytest.raises(InputError, match=said):
        campaign(tmp_path, line, protocol="esa")


def test_a_header_may_stand_on_top(tmp_path: Path) -> None:
    header = "username,system,itemId,itemType,srcLang,trgLang,score,timeStart,timeEnd\n"
    assert len(read_appraise(written(tmp_path, header + BY_SEGMENT)).ratings) == 8


def test_texts_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("s0\ns1\ns2\n")
    (tmp_path / "a").write_bytes(b"a0\r\na1\r\na2\r\n")  # as Windows ends lines
    (tmp_path / "docs").write_text("news\tnews.2\nnews\tnews.1\nnews\tnews.1\n")
    texts: dict[str, Any] = {"sources": tmp_path / "source", "output_of": {"A": tmp_path / "a"}}
    content = campaign(tmp_path, BY_DOCUMENT, **texts, documents=tmp_path / "docs")
    assert [(item.segment, item.source, item.outputs) for item in content.items] == [
        (1, "s1", ("a1",)),
        (2, "s2", ("a2",)),
        (0, "s0", ("a0",)),
    ]
    plain = campaign(tmp_path, "ann,A,0,BAD,eng,deu,60,1,2\n", **texts, first_segment=0)
    assert [(item.kind, item.source, item.outputs) for item in plain.items] == [
        ("rated", "s0", ("a0",)),
        ("bad-reference", "s0", ("",)),
    ]


def test_one_language_pair_of_several(tmp_path: Path) -> None:
    text = BY_SEGMENT + BY_SEGMENT.replace("eng,ces", "ces,eng")
    with pytest.raises(InputError, match=r"several language pairs \(ces-eng, eng-ces\); choose one"):
        campaign(tmp_path, text)
    assert len(campaign(tmp_path, text, source_language="ces", target_language="eng").answers) == 8
    with pytest.raises(InputError, match="no scores of deu-eng; it has ces-eng, eng-ces"):
        campaign(tmp_path, text, source_language="deu", target_language="eng")


def test_an_import_can_be_exported_and_read_again(
    database: Database, other: Database, tmp_path: Path
) -> None:
    import_campaign(database, written(tmp_path, BY_SEGMENT), "appraise", options(), "test")
    export_campaign(database, "wmt", "csv", tmp_path / "out", "test")
    import_campaign(other, tmp_path / "out", "csv", ImportFacts("wmt"), "test")
    assert list(rows_of(collect(other, "wmt"))) == list(rows_of(collect(database, "wmt")))


LINE = "ann,A,1,TGT,eng,deu,60,1.0,2.5\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "scores.csv: an empty file"),
        (LINE + "ann,A,1,TGT,eng,deu,60\n", "scores.csv, line 2: found 7 fields; allowed: 9 or 11 or 12"),
        (
            LINE.replace("60", "60.5"),
            "line 1, field score: found '60.5'; allowed: a whole number from 0 to 100",
        ),
        (
            LINE.replace("60", "-1.2"),
            "line 1, field score: found '-1.2'; allowed: a whole number from 0 to 100",
        ),
        (
            LINE.replace("60", "101"),
            "line 1, field score: found '101'; allowed: a whole number from 0 to 100",
        ),
        (
            LINE.replace("TGT", "TGTT"),
            "line 1, field type: found 'TGTT'; allowed: one of TGT, REF, BAD, CHK, REP",
        ),
        (LINE.replace(",1,", ",1b,"), "line 1, field segment: found '1b'; allowed: a whole number"),
        (LINE.replace("2.5", "later"), "line 1, field end: found 'later'; allowed: seconds since 1970"),
        (LINE.replace("2.5", "inf"), "line 1, field end: found 'inf'; allowed: seconds since 1970"),
        (LINE.replace("ann", " "), "line 1, field user: found ' '; allowed: text that is not blank"),
        (BY_DOCUMENT.replace("True", "1"), "line 3, field is document: found '1'; allowed: True or False"),
        (BY_DOCUMENT.replace("False", "True"), "scores.csv: no scores of segments in it"),
        (
            MTURK.replace("\t72\t", "\t0.5127\t"),
            "line 2, field score: found '0.5127'; allowed: a whole number",
        ),
        (MTURK.replace("\t1503.0", ""), "scores.csv, line 2: found 11 fields; allowed: 12"),
        (
            MTURK.replace("SYSTEM", "TGT"),
            "line 2, field type: found 'TGT'; allowed: one of SYSTEM, BAD_REF, REPEAT",
        ),
    ],
)
def test_a_mistake_is_named(database: Database, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        import_campaign(database, written(tmp_path, text), "appraise", options(), "test")
    assert message in str(error.value)
    with database.session() as session:
        assert session.scalar(select(func.count()).select_from(Campaign)) == 0


WITHOUT_DOCUMENTS = "ann,A,1,TGT,eng,deu,60,1.0,2.5"
WITH_DOCUMENTS = "ann,A,1,TGT,eng,deu,60,news,False,1.0,2.5"
WITH_ERRORS = "ann,A,1,TGT,eng,deu,60,news,False,[],1.0,2.5"


@pytest.mark.parametrize("more", [",3,1234", ",3,1234,0"])
@pytest.mark.parametrize(
    ("layout", "document"), [(WITHOUT_DOCUMENTS, ""), (WITH_DOCUMENTS, "news"), (WITH_ERRORS, "news")]
)
def test_batch_info(database: Database, tmp_path: Path, layout: str, document: str, more: str) -> None:
    """ExportSystemScoresToCSV --batch-info adds the numbers of batch and item, and of pairs a third."""
    facts = options(protocol="esa" if layout is WITH_ERRORS else "da")
    done = import_campaign(database, written(tmp_path, f"{layout}{more}\n"), "appraise", facts, "test")
    assert done.not_kept == (NotKept(1, "numbers of batches and items (--batch-info)"),)
    [row] = rows_of(collect(database, "wmt"))
    assert (row.value, row.document, row.active_ms) == ("60", document, 1500)


UNTYPED = '"[{""start_i"": 0, ""end_i"": 3, ""severity"": ""major"", ""error_type"": null}]"'
TYPED = UNTYPED.replace("null", '[""Accuracy"", ""Omission""]')


@pytest.mark.parametrize(
    ("protocol", "lines", "said"),
    [
        (
            "mqm",
            ("87,{},[]", "12,{},[]"),
            "it has 2 scores above 0, and no error with a category; esa, da or da-sqm",
        ),
        (
            "mqm",
            (f"87,{{}},{UNTYPED}", "12,{},[]"),
            "2 scores above 0, and no error with a category; esa fits",
        ),
        (
            "esa",
            (f"0,{{}},{TYPED}", "0,{},[]"),
            "all scores are 0, and the ratings are 1 marked error; mqm fits",
        ),
        (
            "da",
            (f"0,{{}},{UNTYPED}", "0,{},[]"),
            "all scores are 0, and the ratings are 1 marked error; mqm fits",
        ),
        ("esa", ("87,{}", "12,{}"), "its lines have no field for marked errors; da or da-sqm fits"),
        ("mqm", ("0,{}", "0,{}"), "its lines have no field for marked errors; da or da-sqm fits"),
    ],
)
def test_a_protocol_that_the_file_contradicts(
    tmp_path: Path, protocol: str, lines: tuple[str, str], said: str
) -> None:
    text = "".join(
        f"r1,{system},{at},TGT,eng,deu,{line.replace('{}', 'd,False')},1711190830.6,1711190870.5\n"
        for at, (system, line) in enumerate(zip("AB", lines, strict=True), start=1)
    )
    with pytest.raises(
        InputError, match=f"--protocol {protocol}: scores.csv contradicts it: .*{re.escape(said)}"
    ):
        campaign(tmp_path, text, protocol=protocol)


def test_scores_beside_errors_of_mqm_are_named(tmp_path: Path) -> None:
    text = f"r1,A,1,TGT,eng,deu,80,d,False,{TYPED},1,2\n"
    content, not_kept = find_format("appraise").read(written(tmp_path, text), options(protocol="mqm"), NOW)
    assert [row.value for row in rows_of(content)] == ["-5.0"]
    assert not_kept == (NotKept(1, "scores beside errors of MQM, from which its score follows"),)


def test_what_is_left_out_is_of_the_language_pair(database: Database, tmp_path: Path) -> None:
    lines = "r1,A,1,TGT,eng,deu,40,d,False,1,9\nr1,A,1,TGT,eng,ces,40,d,True,1,9\n"
    facts = options(source_language="eng", target_language="deu")
    done = import_campaign(database, written(tmp_path, lines), "appraise", facts, "test")
    assert done.not_kept == ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"protocol": "preference"}, "--protocol preference: Appraise's scores are of da or da-sqm"),
        ({"output_of": {"B": "a"}}, "--output-of B: the file has no such system; it has A"),
        (
            {"sources": "two"},
            "segment 1 is not in the test set, of which --sources has 1 line: --first-segment says",
        ),
        ({"sources": "a", "first_segment": 5}, "segment 1 is not in the test set, of which --sources has 1"),
        ({"documents": "docs"}, "--documents: no document '' in it, which the scores name"),
        ({"documents": "a"}, "a, line 1: found 'a0'; allowed: DOMAIN TAB DOC"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    (tmp_path / "a").write_text("a0\n")
    (tmp_path / "two").write_text("a0\n")
    (tmp_path / "docs").write_text("news\tone\n")
    for option in ("sources", "documents"):
        if option in fields:
            fields = {**fields, option: tmp_path / fields[option]}
    if "output_of" in fields:
        fields = {"output_of": {"B": tmp_path / "a"}}
    if fields.get("sources") == tmp_path / "two":
        fields["first_segment"] = 0
    with pytest.raises(InputError) as error:
        campaign(tmp_path, LINE, **fields)
    assert message in str(error.value)
