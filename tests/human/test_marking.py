"""A campaign whose raters mark errors, from its settings through drafts and revisions to exports and back."""

from __future__ import annotations

import pytest
from small_campaigns import add_rater, make_campaign, work_for

from creamtea.human import rating as assignment
from creamtea.human.protocols.taxonomy import Taxonomy
from creamtea.human.rating import RatingRefused
from creamtea.human.results.ratings import load_ratings
from creamtea.store.database import Database
from creamtea.store.tables import Campaign

OWN = Taxonomy.model_validate(
    {
        "severities": [{"name": "minor", "weight": 2.0}],
        "categories": [{"name": "Meaning"}],
        "at_most": 2,
    }
)
TEXT = "👍🏽 ein Haus"
HOUSE = {"start": 7, "end": 10, "severity": "minor"}  # code points: the thumb has two
NAMED = HOUSE | {"category": ["Meaning"]}


def campaign(database: Database, protocol: str, taxonomy: Taxonomy, outputs: list[str]) -> int:
    fields = {"outputs": outputs, "systems": list(range(len(outputs)))}
    return make_campaign(
        database,
        [fields, {**fields}],
        protocol=protocol,
        systems=len(outputs),
        taxonomy=taxonomy.model_dump(mode="json"),
    )


def test_the_campaigns_taxonomy_decides_what_is_shown_stored_and_scored(database: Database) -> None:
    number = campaign(database, "mqm", OWN, [TEXT])
    anna = add_rater(database)
    work = work_for(database, anna)
    shown = work.protocol.page_data()["marking"]
    assert (shown["severities"], shown["at_most"]) == (["minor"], 2)
    assert [one["name"] for one in shown["categories"]] == ["Meaning"]
    for wrong, said in (
        ([HOUSE], "Meaning, not nothing"),
        ([NAMED | {"severity": "major"}], "minor, not major"),
        ([NAMED] * 3, "at most 2"),
        ([NAMED | {"end": 11}], "ends at character 11 of an output of 11"),
    ):
        with pytest.raises(RatingRefused, match=said):
            assignment.submit(database, anna, work.assignment_id, [{"spans": wrong}])
    assignment.save_draft(database, anna, work.assignment_id, [{"spans": [HOUSE]}])
    assert work_for(database, anna).draft == [{"spans": [HOUSE]}]
    assignment.submit(database, anna, work.assignment_id, [{"spans": [NAMED, NAMED]}])
    with database.session() as session:
        found = load_ratings(session, session.get_one(Campaign, number))
    assert found.value.tolist() == [-4.0], "twice the taxonomy's 2 points"
    assert assignment.reopen(database, anna, work.assignment_id).draft == [{"spans": [NAMED, NAMED]}]
