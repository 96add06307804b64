"""Many links at once, and one link for everybody whom a recruiting platform sends."""

import csv
import io

import pytest
from small_campaigns import add_rater, make_campaign, rate, work_for
from sqlalchemy import select
from table_rows import all_of, one_of, row_of

from creamtea.access import sessions
from creamtea.errors import InputError
from creamtea.human.rating import raters
from creamtea.store.database import Database
from creamtea.store.tables import AccessToken, Campaign, Item, Rater

PROLIFIC = {"PROLIFIC_PID": "5f3c1a", "STUDY_ID": "s-1", "SESSION_ID": "<b>"}


@pytest.fixture
def campaign(database: Database) -> str:
    """The name of a launched campaign."""
    campaign_id = make_campaign(database)
    return row_of(database, Campaign, campaign_id).name


def people(database: Database) -> list[Rater]:
    return all_of(database, select(Rater).order_by(Rater.id))


def invite(
    database: Database, campaign: str, wanted: list[str] | int, *, surplus: bool = False
) -> list[raters.Invitation]:
    with database.transaction() as session:
        return raters.invite(session, campaign, "test", wanted, surplus=surplus)


def test_links_for_named_and_for_new_raters(database: Database, campaign: str) -> None:
    known = raters.add(database, campaign, "test", pseudonym="anna")
    made = invite(database, campaign, ["anna", " =ben "])
    made += invite(database, campaign, 2)
    assert [one.rater for one in made] == ["anna", "=ben", "rater-03", "rater-04"]
    rows = list(csv.reader(io.StringIO(raters.links_csv(made, "https://rate.example.org"))))
    assert rows[0] == ["rater", "link"]
    assert rows[2][0] == "'=ben"  # no formula
    assert rows[1][1] == f"https://rate.example.org/enter#{made[0].secret}"
    opened = sessions.exchange(database, made[0].secret)
    who = sessions.identify(database, opened.secret)
    assert who.rater_id == known
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(database, made[0].secret)


@pytest.mark.parametrize("wanted", [[], 0, 1001, ["anna", "anna"], ["anna", "x" * 300]])
def test_all_links_or_none(database: Database, campaign: str, wanted: list[str] | int) -> None:
    with pytest.raises(InputError):
        invite(database, campaign, wanted)
    assert people(database) == []


def test_more_raters_than_there_is_to_rate_are_told_before(database: Database, campaign: str) -> None:
    """Four items, one rating each."""
    raters.add(database, campaign, "test", pseudonym="anna")
    with pytest.raises(InputError, match="for 3 more raters: of 4 new ones 1 would find nothing"):
        invite(database, campaign, 4)
    assert [one.pseudonym for one in people(database)] == ["anna"]
    assert len(invite(database, campaign, ["anna", "b", "c", "d"])) == 4
    assert len(invite(database, campaign, 2, surplus=True)) == 2


def test_room_is_what_nobody_has_rated_or_was_passed_over(database: Database, campaign: str) -> None:
    anna = add_rater(database)
    rate(database, anna, work_for(database, anna))  # one of four items; she goes on
    raters.add(database, campaign, "test", pseudonym="waits")
    with database.transaction() as session:
        row, now = session.scalars(select(Campaign)).one(), database.now(session)
        assert raters.room(session, row, now) == 2
        session.scalars(select(Item).order_by(Item.position.desc())).first().drawn = False
        session.flush()
        assert raters.room(session, row, now) == 1


def test_a_count_below_zero_is_told_as_it_was_given(database: Database, campaign: str) -> None:
    with pytest.raises(InputError, match="not for -1"):
        invite(database, campaign, -1)


def test_a_participant_becomes_a_rater_and_comes_back(database: Database, campaign: str) -> None:
    secret = raters.recruit(database, campaign, "test")
    opened = [raters.join(database, secret, PROLIFIC) for _ in range(2)]
    other = raters.join(database, secret, {"participant": "zoe"})
    assert other is not None
    first, second = people(database)
    assert (first.participant, first.arrival) == ("5f3c1a", {"STUDY_ID": "s-1"})
    assert second.participant == "zoe"
    for session in opened:
        who = sessions.identify(database, session.secret)
        assert (who.role, who.rater_id) == ("rater", first.id)
    sessions.revoke_rater(database, first.id)
    assert sessions.identify(database, opened[0].secret) is None
    with pytest.raises(sessions.AccessRefused, match="was withdrawn"):
        raters.join(database, secret, PROLIFIC)
    assert raters.join(database, secret, {"participant": "zoe"}) is not None
    sessions.create_link(database, "rater", rater_id=first.id)
    assert raters.join(database, secret, PROLIFIC) is not None


@pytest.mark.parametrize("visit", [{}, {"SESSION_ID": "s-8"}])
def test_with_anothers_number_nobody_comes_in(
    database: Database, campaign: str, visit: dict[str, str]
) -> None:
    secret = raters.recruit(database, campaign, "test")
    own = {"PROLIFIC_PID": "5f3c1a", "SESSION_ID": "s-7"}
    assert raters.join(database, secret, own) is not None
    with pytest.raises(sessions.AccessRefused, match="has begun with this"):
        raters.join(database, secret, {"PROLIFIC_PID": "5f3c1a", **visit})
    assert raters.join(database, secret, own) is not None
    (rater,) = people(database)
    assert rater.arrival == {"SESSION_ID": "s-7"}


@pytest.mark.parametrize(
    "query", [{}, {"PROLIFIC_PID": ""}, {"PROLIFIC_PID": "a b"}, {"participant": "x" * 101}]
)
def test_nobody_comes_in_without_a_number(database: Database, campaign: str, query: dict[str, str]) -> None:
    secret = raters.recruit(database, campaign, "test")
    with pytest.raises(sessions.AccessRefused):
        raters.join(database, secret, query)
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(database, secret)  # nor as by a link of one rater
    assert people(database) == []


def test_a_withdrawn_or_another_link_recruits_nobody(database: Database, campaign: str) -> None:
    secret = raters.recruit(database, campaign, "test")
    assert raters.join(database, sessions.create_link(database, "reader"), PROLIFIC) is None
    number = one_of(database, select(AccessToken.id).where(AccessToken.campaign_id.is_not(None)))
    sessions.revoke(database, number, "test")
    assert raters.join(database, secret, PROLIFIC) is None


def test_a_campaign_takes_no_more_participants_than_it_can(
    database: Database, campaign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raters, "MAX_PARTICIPANTS", 1)
    secret = raters.recruit(database, campaign, "test")
    raters.join(database, secret, PROLIFIC)
    with pytest.raises(sessions.AccessRefused, match="evaluation is full"):
        raters.join(database, secret, {"participant": "zoe"})
    assert raters.join(database, secret, PROLIFIC) is not None


def test_who_a_participant_is_can_be_deleted(database: Database, campaign: str) -> None:
    raters.join(database, raters.recruit(database, campaign, "test"), PROLIFIC)
    raters.forget(database, people(database)[0].id, "test")
    assert (people(database)[0].participant, people(database)[0].arrival) == (None, None)
