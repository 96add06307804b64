"""Who rates an output twice has one vote on it: in means, in agreement, in rater reports and in exports."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.protocols import find_protocol
from creamtea.human.quality.measures import measure, read_answers
from creamtea.human.results.ratings import by_rater, load_ratings, repeated_scores
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, Rater

# ann rates A of segment 1 twice, which an import of Appraise makes two items of
LINES = """\
ann,A,1,TGT,eng,deu,20,0.0,1.0
ann,A,1,TGT,eng,deu,40,2.0,3.0
bob,A,1,TGT,eng,deu,90,2.0,3.0
ann,A,2,TGT,eng,deu,50,2.0,3.0
bob,A,2,TGT,eng,deu,70,2.0,3.0
"""


def test_a_second_opinion_is_half_a_rating(other: Database, tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text(LINES)
    done = import_campaign(other, tmp_path / "scores.csv", "appraise", ImportFacts("wmt", "da"), "test")
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
    written = (tmp_path / "out/human-scores/eng-deu.da.seg.score").read_text()
    assert written == "A\t60.0\nA\t60.0\n"
