"""Rater reports from stored rows; excluding a rater and including them again."""

from __future__ import annotations

import random
from typing import Any

import pytest
from small_campaigns import add_rater, make_campaign, work_for

from creamtea.access import audit
from creamtea.human import rating as assignment
from creamtea.human.quality import read_answers, reports_of
from creamtea.human.rating import raters
from creamtea.human.results.ratings import load_ratings
from creamtea.store.database import Database
from creamtea.store.tables import Campaign

RATED, CONTROLS = 8, 5


def campaign_with_answers(database: Database) -> tuple[int, list[int]]:
    """Items of two systems, bad references and repeats; three raters answer all of them."""
    items: list[dict[str, Any]] = [{} for _ in range(RATED)]
    items += [
        {"kind": "bad-reference", "original": at, "degraded": at % 2, "segment_index": at}
        for at in range(CONTROLS)
    ]
    items += [
        {"kind": "repeat", "original": at, "segment_index": at, "outputs": [f"o{at}-0", f"o{at}-1"]}
        for at in range(CONTROLS)
    ]
    campaign_id = make_campaign(database, items, k=3, systems=2)
    draw = random.Random(7)
    people = [add_rater(database, name) for name in ("anna", "ben", "cleo")]
    for rater_id in people:
        for _ in items:
            work = work_for(database, rater_id)
            steps = [draw.randrange(26) for _ in work.outputs]
            assignment.submit(database, rater_id, work.assignment_id, steps, active_ms=draw.randrange(60_000))
    return campaign_id, people


@pytest.mark.slow
def test_reports_come_from_what_is_stored(database: Database) -> None:
    campaign_id, people = campaign_with_answers(database)
    reports = reports_of(database, campaign_id)
    assert [one.rater_id for one in reports] == people
    assert {one.answers for one in reports} == {RATED + 2 * CONTROLS}
    for report in reports:
        checks = {check.name: check for check in report.checks}
        assert "of 5 recognised" in checks["bad-references"].shown
        assert "on 16 outputs" in checks["agreement"].shown
        assert "words per minute" in checks["speed"].shown
        assert " clues, " in checks["reading"].shown
        assert len(report.values) == 2 * RATED


def test_the_last_revision_counts_and_is_read_in_the_order_shown(database: Database) -> None:
    campaign_id = make_campaign(database, 1, systems=2)
    rater = add_rater(database)
    work = work_for(database, rater)
    assignment.submit(database, rater, work.assignment_id, [3, 25], active_ms=1)
    assignment.submit(database, rater, work.assignment_id, [9, 1], revision=2)
    with database.session() as session:
        answers = read_answers(session, load_ratings(session, session.get_one(Campaign, campaign_id)))
    shown = [int(text[-1]) for text in work.outputs]  # "o0-1" is the output of system 1
    assert answers.system.tolist() == shown
    assert answers.step.tolist() == [9, 1]
    assert answers.seconds.tolist() == [0.001]
    assert answers.words.tolist() == [2 + 2]  # "source 0", and one word of each output


def test_tutorial_items_are_not_in_the_report(database: Database) -> None:
    campaign_id = make_campaign(
        database, [{"kind": "tutorial", "guidance": {"steps": {}, "explanation": ""}}, {}], systems=2
    )
    rater = add_rater(database)
    for _ in range(2):
        work = work_for(database, rater)
        assignment.submit(database, rater, work.assignment_id, [3, 4])
    (report,) = reports_of(database, campaign_id)
    assert report.answers == 1


@pytest.mark.slow
def test_exclude_and_include_restore_every_report(database: Database) -> None:
    """The ratings themselves: test_results.py."""
    campaign_id, people = campaign_with_answers(database)
    before = reports_of(database, campaign_id)
    raters.exclude(database, people[1], "test", "answers look given at random")
    during = reports_of(database, campaign_id)
    assert {one.rater_id for one in during} == set(people)  # the excluded one has a report too
    assert during[0] != before[0]  # and is no longer among the others
    raters.include(database, people[1], "test", "they had misread the instructions, and did so for all")
    assert reports_of(database, campaign_id) == before
    log = [(entry.action, entry.rater, entry.reason) for entry in audit.read(database, campaign_id)]
    assert log[-2:] == [
        (audit.RATER_EXCLUDED, "ben", "answers look given at random"),
        (audit.RATER_INCLUDED, "ben", "they had misread the instructions, and did so for all"),
    ]
