"""An output that one rater rated more than once: what counts where, in the files of WMT 2024 too."""

from __future__ import annotations

from pathlib import Path

import pytest
from appraise_files import MTURK, block, campaign, cells, options, written
from sqlalchemy import select

from creamtea.human.formats.appraise import SENT_TWICE
from creamtea.human.formats.base import ImportFacts, NotKept, repeats
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.protocols import find_protocol
from creamtea.human.quality.measures import measure, read_answers
from creamtea.human.results.ratings import by_rater, load_ratings, repeated_scores
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, Rater


def test_wmt_2024_takes_the_last_score_of_an_output_rated_again(database: Database, tmp_path: Path) -> None:
    """The last by the times in the file, not by its lines; means, as all else, count both."""
    lines = """\
ann,A,1,TGT,eng,deu,80,news.1,False,[],5,6
ann,A,1,TGT,eng,deu,60,news.1,False,[],3,4
ann,B,1,TGT,eng,deu,50,news.1,False,[],3,4
"""
    facts = options(protocol="esa")
    import_campaign(database, written(tmp_path, lines), "appraise", facts, "test")
    found = {
        (rule, key): cells(database, key, rule)["A"][column]
        for rule in ("esa", "da-sqm", "usual")
        for key, column in (("wmt", "raw"), ("means", "mean"))
    }
    assert found == {
        ("esa", "wmt"): 80,
        ("da-sqm", "wmt"): 70,
        ("usual", "wmt"): 70,
        **{(rule, "means"): 70 for rule in ("esa", "da-sqm", "usual")},
    }


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
    done = import_campaign(database, written(tmp_path, lines), "appraise", options(), "test")
    assert (done.items, done.ratings) == (10, 20)
    assert done.not_kept == repeats([2], SENT_TWICE)
    found = cells(database, rule="da-sqm")
    assert {name: row["raw"] for name, row in found.items()} == {"A": 74.0, "B": 73.0}


def test_what_differs_in_more_than_its_end_is_another_rating(tmp_path: Path) -> None:
    """Another start (opened again), score or error; the crowd's lines have seconds instead of moments."""
    first = "ann,A,1,TGT,eng,deu,20,d1,False,[],3,4"
    error = '"[{""start_i"": 0, ""end_i"": 1, ""severity"": ""minor""}]"'
    others = ["20,d1,False,[],3.1,4", "21,d1,False,[],3,4", f"20,d1,False,{error},3,4"]
    lines = "\n".join([first, *(f"ann,A,1,TGT,eng,deu,{other}" for other in others), first, ""])
    content = campaign(tmp_path, lines, protocol="esa")
    assert sorted(score.step for answer in content.answers for score in answer.scores) == [20, 20, 20, 21]
    header, rated, *controls = MTURK.splitlines()
    again = "\n".join([header, rated, rated, rated.replace("1503.0", "12.0"), *controls, ""])
    assert [answer.scores[0].step for answer in campaign(tmp_path, again).answers].count(72) == 2


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
    import_campaign(database, written(tmp_path, lines), "appraise", options(protocol="esa"), "test")
    assert cells(database, "means")["A"]["mean"] == (60 + 15 + 40 + 80) / 4
    assert cells(database, "agreement")["all raters"]["ratings"] == 8
    severity = (20 + 10 + 0 + 20) / 4
    assert cells(database, "raters")["ann"]["severity"] == severity
    with database.session() as session:
        answers = read_answers(session, load_ratings(session, session.scalars(select(Campaign)).one()))
    measured = measure(answers, find_protocol("da"), set(answers.rater.tolist()))
    assert sorted((own.severity, own.shared, len(own.values)) for own in measured.values()) == [
        (-severity, 4, 4),
        (severity, 4, 5),  # the scores themselves are all there
    ]


def test_wmt_2024_numbers_segments_as_the_test_set_does_and_fills_tasks_up(
    database: Database, tmp_path: Path
) -> None:
    """As esa_generalMT2024_wave2.csv: DOCUMENT#bad1 of any system, #incomplete and #dup to fill a task up."""
    lines = """\
ann,A,1,TGT,eng,deu,60,news.1,False,[],3,4
ann,A,2,TGT,eng,deu,61,news.1,False,[],3,4
ann,B,3,TGT,eng,deu,62,chat.1,False,[],3,4
ann,A,3,BAD,eng,deu,5,chat.1#bad1,False,[],3,4
ann,A,2,TGT,eng,deu,63,news.1#dup,False,[],3,4
ann,B,1,TGT,eng,deu,64,news.1#incomplete,False,[],3,4
"""
    (tmp_path / "docs").write_text("canary\tcanary\nnews\tnews.1\nnews\tnews.1\nchat\tchat.1\n")
    facts = options(protocol="esa", documents=tmp_path / "docs", first_segment=0)
    done = import_campaign(database, written(tmp_path, lines), "appraise", facts, "test")
    assert done.not_kept == (NotKept(2, "scores of documents that fill a task up (#incomplete, #dup)"),)
    content = collect(database, "wmt")
    assert [(item.kind, item.document, item.segment) for item in content.items] == [
        ("rated", "news.1", 1),
        ("rated", "news.1", 2),
        ("rated", "chat.1", 3),
        ("rated", "chat.1", 3),
        ("bad-reference", "chat.1", 3),
    ]
    assert content.settings["domains"] == {"canary": "canary", "news.1": "news", "chat.1": "chat"}
    assert "means over 2 domains" in block(database)["about"]
    assert {name: row["raw"] for name, row in cells(database).items()} == {"A": 60.5, "B": 62.0}


# ann rates A of segment 1 twice, which an import of Appraise makes two items of
LINES = """\
ann,A,1,TGT,eng,deu,20,0.0,1.0
ann,A,1,TGT,eng,deu,40,2.0,3.0
bob,A,1,TGT,eng,deu,90,2.0,3.0
ann,A,2,TGT,eng,deu,50,2.0,3.0
bob,A,2,TGT,eng,deu,70,2.0,3.0
"""


def test_a_second_opinion_is_half_a_rating(other: Database, tmp_path: Path) -> None:
    done = import_campaign(other, written(tmp_path, LINES), "appraise", ImportFacts("wmt", "da"), "test")
    assert (done.items, done.ratings) == (3, 5)
    assert [(note.count, note.what.split(":")[0]) for note in done.notices] == [
        (1, "outputs that a rater has rated again")
    ]
    with other.session() as session:
        ratings = load_ratings(session, session.scalars(select(Campaign)).one())
        answers = read_answers(session, ratings)
        names = {rater.id: rater.pseudonym for rater in session.scalars(select(Rater))}
        repeated = repeated_scores(session, ratings)
    assert ratings.matrix().tolist() == [[60.0], [60.0]], "(30 + 90)/2, not (20 + 40 + 90)/3"
    assert ratings.side_by_side()[2].tolist() == [[30.0], [90.0], [50.0], [70.0]]
    assert by_rater(ratings, repeated).scores.tolist() == [[30.0, 90.0], [50.0, 70.0]]
    measures = {
        names[rater]: found for rater, found in measure(answers, find_protocol("da"), set(names)).items()
    }
    assert measures["ann"].shared == measures["bob"].shared == 2
    assert measures["ann"].severity == pytest.approx(-40.0), "30 − 90 and 50 − 70"
    assert measures["ann"].answers == 3

    export_campaign(other, "wmt", "mt-metrics-eval", tmp_path / "out", "test")
    scores = (tmp_path / "out/human-scores/eng-deu.da.seg.score").read_text()
    assert scores == "A\t60.0\nA\t60.0\n"
