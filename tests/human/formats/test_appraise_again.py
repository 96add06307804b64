"""An output that one rater rated more than once: what counts where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from appraise_files import MTURK, blocks_of, campaign, options, written
from sqlalchemy import select

from creamtea.human.formats.appraise import SENT_TWICE
from creamtea.human.formats.base import repeats
from creamtea.human.formats.exchange import import_campaign
from creamtea.human.protocols import find_protocol
from creamtea.human.quality import read_answers
from creamtea.human.quality.measures import measure
from creamtea.human.results.ratings import load_ratings
from creamtea.report.export import to_values
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.tables import Campaign


def test_wmt_2024_takes_the_last_score_of_an_output_rated_again(database: Database, tmp_path: Path) -> None:
    """The last by the times in the file, not by its lines; means, as all else, count both."""
    lines = """\
ann,A,1,TGT,eng,deu,80,news.1,False,[],5,6
ann,A,1,TGT,eng,deu,60,news.1,False,[],3,4
ann,B,1,TGT,eng,deu,50,news.1,False,[],3,4
"""
    facts = options(protocol="esa")
    import_campaign(database, written(tmp_path, lines), "appraise", facts, "test")
    found = {}
    for rule in ("esa", "da-sqm", "usual"):
        report = blocks_of(to_values(build_human(database, "wmt", rule)))
        for key, column in (("wmt", "raw"), ("means", "mean")):
            table = next(block for block in report if block.get("key") == key and "rows" in block)
            rows = {row["name"]: row["cells"][column]["value"] for row in table["rows"]}
            found[rule, key] = rows["A"]
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
    report = blocks_of(to_values(build_human(database, "wmt", "da-sqm")))
    table = next(block for block in report if block.get("key") == "wmt" and "rows" in block)
    assert {row["name"]: row["cells"]["raw"]["value"] for row in table["rows"]} == {"A": 74.0, "B": 73.0}


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
    report = blocks_of(to_values(build_human(database, "wmt")))

    def cells(key: str, row: str) -> Any:
        table = next(block for block in report if block.get("key") == key and "rows" in block)
        return next(one for one in table["rows"] if one["name"] == row)["cells"]

    assert cells("means", "A")["mean"]["value"] == (60 + 15 + 40 + 80) / 4
    assert cells("agreement", "all raters")["ratings"]["value"] == 8
    severity = (20 + 10 + 0 + 20) / 4
    assert cells("raters", "ann")["severity"]["value"] == severity
    with database.session() as session:
        answers = read_answers(session, load_ratings(session, session.scalars(select(Campaign)).one()))
    measured = measure(answers, find_protocol("da"), set(answers.rater.tolist()))
    assert sorted((own.severity, own.shared, len(own.values)) for own in measured.values()) == [
        (-severity, 4, 4),
        (severity, 4, 5),  # the scores themselves are all there
    ]
