from typing import Any

import pytest
from sqlalchemy import select

from creamtea.errors import InputError
from creamtea.human import campaigns
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, Item, StepRow

GOOD: dict[str, Any] = {"study": "jam", "test_set": "test", "systems": ["plain", "beam", "scones", "entmax"]}


def items_of(database: Database) -> list[Item]:
    with database.session() as session:
        return list(session.scalars(select(Item).order_by(Item.campaign_id, Item.position)))


def test_items_are_the_differing_segments_of_the_first_seed(study_database: Database) -> None:
    summary = campaigns.create_campaign(study_database, "c", **GOOD)
    items = items_of(study_database)
    assert (summary.items, summary.wanted, summary.ratings) == (4, 4, 0)
    assert [item.position for item in items] == [0, 1, 2, 3]
    assert {item.segment_index: item.outputs for item in items} == {
        0: ["ein Haus", "das Haus", "ein Haus", "Haus"],
        1: ["der Hund", "ein Hund", "Hund", ""],
        3: ["<b>rot</b>", "rot", "rot", "*rot*"],
        4: ["eins", "zwei", "drei", "vier"],
    }


def test_items_have_their_own_text_and_the_order_of_systems_asked_for(study_database: Database) -> None:
    campaigns.create_campaign(study_database, "c", study="jam", test_set="test", systems=["entmax", "plain"])
    by_segment = {item.segment_index: item for item in items_of(study_database)}
    assert by_segment[4].source == "source 4"
    assert by_segment[4].outputs == ["vier", "eins"]


def test_the_seed_decides_the_order_and_the_limit_cuts_it(study_database: Database) -> None:
    for name, seed, limit in (("a", 1, None), ("b", 1, None), ("c", 3, None), ("d", 1, 2)):
        campaigns.create_campaign(study_database, name, seed=seed, limit=limit, **GOOD)
    orders: dict[int, list[int]] = {}
    for item in items_of(study_database):
        orders.setdefault(item.campaign_id, []).append(item.segment_index)
    a, b, c, d = orders.values()
    assert a == b
    assert sorted(a) == sorted(c)
    assert a != c
    assert d == a[:2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"study": "tea"}, "no study 'tea'; known studies: jam"),
        ({"test_set": "dev"}, "study 'jam' has no test set 'dev'; it has test"),
        (
            {"systems": ["plain", "nvs"]},
            "study 'jam' has no system 'nvs'; it has beam, entmax, plain, scones",
        ),
        ({"systems": ["plain"]}, "a campaign compares 2 to 8 systems, not 1: name them with --systems a,b"),
        ({"systems": ["plain", "plain"]}, "a system is named twice in --systems: name each once"),
        ({"limit": 0}, "--items must be at least 1, not 0"),
        ({"ratings_per_item": 0}, "--ratings must be at least 1, not 0"),
    ],
)
def test_a_wrong_request_is_one_message(study_database: Database, change: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        campaigns.create_campaign(study_database, "c", **{**GOOD, **change})
    assert str(caught.value) == message
    assert items_of(study_database) == []


def test_a_name_is_used_once(study_database: Database) -> None:
    campaigns.create_campaign(study_database, "c", **GOOD)
    with pytest.raises(InputError, match="campaign 'c' exists already"):
        campaigns.create_campaign(study_database, "c", **GOOD)


def test_outputs_that_are_not_there_yet_are_named(study_database: Database) -> None:
    with study_database.transaction() as session:
        session.get_one(StepRow, "jam/beam/7").state = "running"
    with pytest.raises(InputError, match="system 'beam' has no outputs on 'test' yet"):
        campaigns.create_campaign(study_database, "c", **GOOD)
    with study_database.session() as session:
        assert session.scalars(select(Campaign)).all() == []


def test_a_rater_is_added_once(study_database: Database) -> None:
    campaigns.create_campaign(study_database, "c", **GOOD)
    first = campaigns.add_rater(study_database, "c", "anna")
    assert campaigns.add_rater(study_database, "c", " anna ") == first
    assert campaigns.find_rater(study_database, "c", "anna") == first
    assert campaigns.summary(study_database, "c").raters == 1
    with pytest.raises(InputError, match="no rater 'bert'; it has anna"):
        campaigns.find_rater(study_database, "c", "bert")
    with pytest.raises(InputError, match="no campaign 'd'; known: c"):
        campaigns.add_rater(study_database, "d", "anna")
    with pytest.raises(InputError, match="needs a pseudonym"):
        campaigns.add_rater(study_database, "c", "  ")
