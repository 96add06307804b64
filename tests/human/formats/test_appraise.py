"""What reports make of Appraise's files; `read.txt` and `refused.txt` have what an import makes of them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from creamtea.blame.labels import Mark, marks_of
from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, find_format, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.protocols import find_protocol
from creamtea.human.quality import measure, read_answers
from creamtea.human.results.ratings import by_rater, load_ratings, repeated_scores
from creamtea.report.export import to_values
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, Rater

OMISSION = '{""start_i"": ""missing"", ""end_i"": ""missing"", ""severity"": ""major"", ""error_type"": null}'
MINOR = '{""start_i"": 0, ""end_i"": 1, ""severity"": ""minor"", ""error_type"": null}'


def imported(database: Database, folder: Path, lines: str, name: str = "wmt", **facts: Any) -> None:
    """The campaign of these lines; of ESA unless `facts` say otherwise."""
    path = folder / "scores.csv"
    path.write_text(lines, encoding="utf-8")
    facts = {"protocol": "esa", "test_set": "general", **facts}
    import_campaign(database, path, "appraise", ImportFacts(name, **facts), "test")


def block(database: Database, key: str = "wmt", rule: str | None = None) -> dict[str, Any]:
    """The report's table or list of this key, of the campaign `wmt`."""
    report = to_values(build_human(database, "wmt", rule))
    [found] = [
        each for each in _blocks(report) if each.get("key") == key and each.keys() & {"rows", "entries"}
    ]
    return found


def cells(database: Database, key: str = "wmt", rule: str | None = None) -> dict[str, dict[str, Any]]:
    """The values of a table by row and column."""
    return {
        row["name"]: {name: cell["value"] for name, cell in row["cells"].items()}
        for row in block(database, key, rule)["rows"]
    }


def _blocks(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) else []
    return [*own, *(found for each in inner for found in _blocks(each))]


def test_marked_errors_are_counted_by_system(database: Database, tmp_path: Path) -> None:
    lines = f"""\
ann,A,1,TGT,eng,deu,60,news,False,"[{MINOR}, {OMISSION}]",3,4
ann,A,2,TGT,eng,deu,61,news,False,[],5,6
ann,A,3,TGT,eng,deu,62,news,False,[],7,8
ann,B,1,TGT,eng,deu,70,news,False,[],9,10
ann,B,2,TGT,eng,deu,71,news,False,[],9,10
bob,B,3,TGT,eng,deu,72,news,False,[],11,12
bob,B,4,TGT,eng,deu,85,news,False,[],13,14
"""
    imported(database, tmp_path, lines)
    found = cells(database, "marked")
    assert found["A"] == {"ratings": 3, "minor": 1 / 3, "major": 1 / 3, "omissions": 1 / 3, "free": 0}
    free = 25  # one of four has 85 or more
    assert found["B"] == {"ratings": 4, "minor": 0, "major": 0, "omissions": 0, "free": free}
    told = [
        each for each in _blocks(to_values(build_human(database, "wmt"))) if each.get("key") == "sentences"
    ]
    (answer,) = told
    assert answer["paragraphs"][-1].endswith("25 % of the ratings call its output free of errors.")


def test_special_marks_are_counted_by_name_and_are_no_omissions(database: Database, tmp_path: Path) -> None:
    omission = {"severity": "minor"}
    fault, odd = ({**omission, "special_mark": mark} for mark in ("fault", "odd"))
    lines = [
        {"rater": "ann", "segment": 0, "system": system, "payload": {"score": 9, "spans": spans}}
        for system, spans in (("A", [omission, odd]), ("B", [omission, fault, fault]))
    ]
    path = tmp_path / "ratings.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    import_campaign(database, path, "jsonl", ImportFacts("wmt", "esa"), "test")
    found = cells(database, "marked")
    shown = {name: cell for name, cell in found["B"].items() if name not in ("major", "free", "ratings")}
    assert shown == {"minor": 3, "omissions": 1, "special mark fault": 2, "special mark odd": 0}
    assert (found["A"]["omissions"], found["A"]["special mark odd"]) == (1, 1)
    with database.session() as session:  # and none has a cause that could be looked for
        marked = marks_of(session, load_ratings(session, session.query(Campaign).one()))
    assert dict(marked.marks) == {(0, 0): [Mark()], (0, 1): [Mark()]}


def test_errors_that_were_marked_beforehand(database: Database, tmp_path: Path) -> None:
    """As in ESA with AI: what raters left has no error_type."""
    left = MINOR.replace(', ""error_type"": null', "")
    lines = f'ann,A,1,TGT,eng,deu,40,d,False,"[{left}, {OMISSION}]",1,5\n'
    imported(database, tmp_path, lines + f'ben,A,1,TGT,eng,deu,40,d,False,"[{left}]",1,5\n')
    assert "nobody knows how many they deleted" in block(database, "proposed")["about"]
    assert list(cells(database, "proposed").values()) == [{"answers": 2, "left": 2, "added": 1}]


def test_an_error_marked_beforehand_around_nothing_is_an_omission(tmp_path: Path) -> None:
    """The end of such an error is one past its last character."""
    errors = (
        '{""start_i"":2,""end_i"":2,""severity"":""minor""}',
        '{""start_i"":2,""end_i"":3,""severity"":""minor""}',
    )
    lines = f'ann,A,1,TGT,eng,deu,40,d,False,"[{", ".join(errors)}]",1,5\n'
    (tmp_path / "scores.csv").write_text(lines)
    content, notices = find_format("appraise").read(
        tmp_path / "scores.csv", ImportFacts("wmt", "esa"), datetime.now(UTC)
    )
    spans = content.answers[0].scores[0].payload["spans"]
    assert [(span.get("start"), span.get("end")) for span in spans] == [(None, None), (2, 2)]
    assert any("around nothing" in notice.what and notice.count == 1 for notice in notices)


def test_errors_nested_beyond_all_depth_are_refused(database: Database, tmp_path: Path) -> None:
    lines = f'ann,A,1,TGT,eng,deu,60,news#A,False,"{"[" * 100_000}",1,2\n'
    with pytest.raises(InputError, match="line 1, field errors: found"):
        imported(database, tmp_path, lines)


@pytest.mark.parametrize(("first", "numbers"), [(None, (1, 2)), (None, (0, 1)), (1, (1, 2)), (0, (1, 2))])
def test_a_report_names_segments_as_the_file_does(
    database: Database, tmp_path: Path, first: int | None, numbers: tuple[int, int]
) -> None:
    """Raters disagree on the segment with the lower number, whose line depends on how the file counts."""
    given = [("r1", numbers[0], 100), ("r2", numbers[0], 0), ("r1", numbers[1], 80), ("r2", numbers[1], 80)]
    lines = "".join(
        f"{rater},A,{number},TGT,eng,deu,{score},{at}1,{at}5\n"
        for at, (rater, number, score) in enumerate(given, start=1)
    )
    (tmp_path / "src").write_text("one\ntwo\nthree\n")
    imported(database, tmp_path, lines, protocol="da-sqm", first_segment=first, sources=tmp_path / "src")
    assert block(database, "disputes")["entries"][0]["name"] == f"segment {numbers[0]}, A"
    lowest = collect(database, "wmt").items[0]
    index = numbers[0] - (0 if first == 0 or 0 in numbers else 1)
    assert (lowest.segment, lowest.source) == (index, ("one", "two")[index])

    export_campaign(database, "wmt", "csv", tmp_path / "out", "test")
    import_campaign(database, tmp_path / "out", "csv", ImportFacts("again"), "test")
    assert collect(database, "again").segment_name(lowest.segment) == f"segment {numbers[0]}"


def test_names_are_found_however_a_keyboard_writes_them(tmp_path: Path) -> None:
    """ "é" is one character or two."""
    composed, decomposed = "Jos\u00e9", "Jose\u0301"
    (tmp_path / "out.txt").write_text("Haus\n")
    (tmp_path / "scores.csv").write_text(f"ann,{decomposed},1,TGT,eng,deu,70,d,False,0.0,9.0\n")
    facts = ImportFacts("wmt", "da", output_of={composed: tmp_path / "out.txt"}, baseline=composed)
    content, _ = find_format("appraise").read(tmp_path / "scores.csv", facts, datetime.now(UTC))
    assert content.systems == (decomposed,)
    assert content.settings["baseline"] == decomposed
    assert content.items[0].outputs == ("Haus",)


def test_wmt_2024_takes_the_last_score_of_an_output_rated_again(database: Database, tmp_path: Path) -> None:
    """The last by the times in the file, not by its lines; means, as all else, count both."""
    lines = """\
ann,A,1,TGT,eng,deu,80,news.1,False,[],5,6
ann,A,1,TGT,eng,deu,60,news.1,False,[],3,4
ann,B,1,TGT,eng,deu,50,news.1,False,[],3,4
"""
    imported(database, tmp_path, lines)
    for rule, raw in (("esa", 80), ("da-sqm", 70), ("usual", 70)):
        assert cells(database, "wmt", rule)["A"]["raw"] == raw
        assert cells(database, "means", rule)["A"]["mean"] == 70


def test_a_page_that_was_sent_twice_is_one_rating(database: Database, tmp_path: Path) -> None:
    """One press counted twice (AppraiseDev/Appraise#10): the ends are 20 ms apart. Both would pull segment 1
    down to (20 + 20 + 80)/3, and A to 72.0."""
    lines = "ann,A,1,TGT,eng,deu,20,d1,False,100.0,110.655\nann,A,1,TGT,eng,deu,20,d1,False,100.0,110.675\n"
    lines += "ben,A,1,TGT,eng,deu,80,d1,False,100.0,130.0\n"
    for rater in ("ann", "ben"):
        for segment in range(2, 6):
            lines += f"{rater},A,{segment},TGT,eng,deu,80,d1,False,{segment}00.0,{segment}10.0\n"
        for segment in range(1, 6):
            lines += f"{rater},B,{segment},TGT,eng,deu,{70 + segment},d1,False,{segment}40.0,{segment}50.0\n"
    imported(database, tmp_path, lines, protocol="da-sqm")
    found = cells(database, rule="da-sqm")
    assert {name: row["raw"] for name, row in found.items()} == {"A": 74.0, "B": 73.0}


def test_a_repeated_rating_is_one_vote_in_means_agreement_and_rater_reports(
    database: Database, tmp_path: Path
) -> None:
    """ann: 80 and 60 for A, so 70; ben 50. Three more outputs, so that there are correlations."""
    lines = """\
ann,A,1,TGT,eng,deu,80,news.1,False,[],5,6
ann,A,1,TGT,eng,deu,60,news.1,False,[],3,4
ben,A,1,TGT,eng,deu,50,news.1,False,[],3,4
"""
    for number, (first, second) in enumerate([(20, 10), (40, 40), (90, 70)], 2):
        lines += f"ann,A,{number},TGT,eng,deu,{first},news.1,False,[],3,4\n"
        lines += f"ben,A,{number},TGT,eng,deu,{second},news.1,False,[],3,4\n"
    imported(database, tmp_path, lines)
    assert cells(database, "means")["A"]["mean"] == (60 + 15 + 40 + 80) / 4
    assert cells(database, "agreement")["all raters"]["ratings"] == 8
    severity = (20 + 10 + 0 + 20) / 4
    assert cells(database, "raters")["ann"]["severity"] == severity
    with database.session() as session:
        ratings = load_ratings(session, session.scalars(select(Campaign)).one())
        answers = read_answers(session, ratings)
        names = {rater.id: rater.pseudonym for rater in session.scalars(select(Rater))}
        repeated = repeated_scores(session, ratings)
    measured = {names[rater]: own for rater, own in measure(answers, find_protocol("da"), set(names)).items()}
    found = {name: (own.severity, own.shared, own.answers) for name, own in measured.items()}
    assert found == {"ann": (severity, 4, 5), "ben": (-severity, 4, 4)}, "the scores themselves are all there"
    assert ratings.matrix().tolist() == [[60.0], [15.0], [40.0], [80.0]]
    assert by_rater(ratings, repeated).scores.tolist() == [[70, 50], [20, 10], [40, 40], [90, 70]]
    export_campaign(database, "wmt", "mt-metrics-eval", tmp_path / "out", "test")
    scores = (tmp_path / "out/human-scores/eng-deu.esa.seg.score").read_text()
    assert scores == "A\t60.0\nA\t15.0\nA\t40.0\nA\t80.0\n"


def test_standardised_scores_of_the_crowd(database: Database, tmp_path: Path) -> None:
    """WMT's release: z, tabs and blanks mixed, and the raters' means and deviations beside it."""
    given = {"M01": [72, 10, 71, 99], "M02": [50, 60, 40, 100]}
    statistics = []
    lines = ["HITId WorkerId Input.src Input.trg Input.item hit sys_id rid type sid score time"]
    for rater, scores in given.items():
        mean, deviation = float(np.mean(scores)), float(np.std(scores, ddof=1))
        statistics += [f'[1] "{rater}"', f"[1] {mean:.5f}", f"[1] {deviation:.5f}"]
        for kind, score in zip(("SYSTEM", "BAD_REF", "REPEAT", "REF"), scores, strict=True):
            z = (score - mean) / deviation
            lines.append(f'3ABC\t{rater} lv\ten ad 13 "A.0"\t1003221 {kind} 121 {z:.14f} 1503.0')
    statistics += ['[1] "M03"', "[1] 1", "[1] NA"] * 2
    trk = tmp_path / "trk.txt"
    trk.write_text("\n".join(statistics).replace("M02", "M02\u200b"))  # looks alike
    facts = {"rater_statistics": trk, "baseline": "A.0", "delta": 3.0}
    imported(database, tmp_path, "\n".join(lines), protocol="da", **facts)
    content = collect(database, "wmt")
    steps = {
        rater: [answer.scores[0].step for answer in content.answers if answer.rater == rater]
        for rater in given
    }
    assert {rater: sorted(own) for rater, own in steps.items()} == {
        rater: sorted(scores) for rater, scores in given.items()
    }
    zs = [(np.mean(scores[0:3:2]) - np.mean(scores)) / np.std(scores, ddof=1) for scores in given.values()]
    found = cells(database)
    assert list(found) == ["A.0"], "the reference is no competitor"
    assert found["A.0"]["z"] == pytest.approx(np.mean(zs), abs=1e-4)
    usual = block(database, rule="usual")["rows"][0]["cells"]
    assert usual["z"]["value"] != found["A.0"]["z"]
