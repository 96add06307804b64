"""Many links at once, and one link for everybody whom a recruiting platform sends."""

import csv
import io

import pytest
from small_campaigns import add_rater, rate, work_for
from sqlalchemy import select
from table_rows import all_of

from creamtea.access import sessions
from creamtea.errors import InputError
from creamtea.human.rating import raters
from creamtea.store.database import Database
from creamtea.store.tables import AccessToken, Campaign, Item, Rater

PROLIFIC = {"PROLIFIC_PID": "5f3c1a", "STUDY_ID": "s-1", "SESSION_ID": "<b>"}


def people(database: Database) -> list[Rater]:
    return all_of(database, select(Rater).order_by(Rater.id))


def invite(database: Database, wanted: list[str] | int, *, surplus: bool = False) -> list[raters.Invitation]:
    with database.transaction() as session:
        return raters.invite(session, "c", "test", wanted, surplus=surplus)


def test_links_for_named_and_for_new_raters(campaign: Database) -> None:
    known = raters.add(campaign, "c", "test", pseudonym="anna")
    made = invite(campaign, ["anna", " =ben "])
    made += invite(campaign, 2)
    assert [one.rater for one in made] == ["anna", "=ben", "rater-03", "rater-04"]
    rows = list(csv.reader(io.StringIO(raters.links_csv(made, "https://rate.example.org"))))
    assert rows[0] == ["rater", "link"]
    assert rows[2][0] == "'=ben"  # no formula
    assert rows[1][1] == f"https://rate.example.org/enter#{made[0].secret}"
    opened = sessions.exchange(campaign, made[0].secret)
    who = sessions.identify(campaign, opened.secret)
    assert who.rater_id == known
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(campaign, made[0].secret)


@pytest.mark.parametrize("wanted", [[], 0, -1, 1001, ["anna", "anna"], ["anna", "x" * 300]])
def test_all_links_or_none(campaign: Database, wanted: list[str] | int) -> None:
    with pytest.raises(InputError):
        invite(campaign, wanted)
    assert people(campaign) == []


def test_more_raters_than_there_is_to_rate_are_told_before(campaign: Database) -> None:
    """Four items, one rating each."""
    raters.add(campaign, "c", "test", pseudonym="anna")
    with pytest.raises(InputError, match="for 3 more raters, so 1 of 4 new raters would find nothing"):
        invite(campaign, 4)
    assert [one.pseudonym for one in people(campaign)] == ["anna"]
    assert len(invite(campaign, ["anna", "b", "c", "d"])) == 4
    assert len(invite(campaign, 2, surplus=True)) == 2


def test_room_is_what_nobody_has_rated_or_was_passed_over(campaign: Database) -> None:
    anna = add_rater(campaign)
    rate(campaign, anna, work_for(campaign, anna))  # one of four items; she goes on
    raters.add(campaign, "c", "test", pseudonym="waits")
    with campaign.transaction() as session:
        row, now = session.scalars(select(Campaign)).one(), campaign.now(session)
        assert raters.additional_raters(session, row, now) == 2
        session.scalars(select(Item).order_by(Item.position.desc())).first().drawn = False
        session.flush()
        assert raters.additional_raters(session, row, now) == 1


def test_a_participant_becomes_a_rater_and_comes_back(campaign: Database) -> None:
    secret = raters.recruit(campaign, "c", "test")
    opened = [raters.join(campaign, secret, PROLIFIC) for _ in range(2)]
    assert raters.join(campaign, secret, {"participant": "zoe"}) is not None
    first, second = people(campaign)
    assert (first.participant, first.arrival) == ("5f3c1a", {"STUDY_ID": "s-1"})
    assert second.participant == "zoe"
    for session in opened:
        who = sessions.identify(campaign, session.secret)
        assert (who.role, who.rater_id) == ("rater", first.id)
    sessions.revoke_rater(campaign, first.id)
    assert sessions.identify(campaign, opened[0].secret) is None
    with pytest.raises(sessions.AccessRefused, match="was withdrawn"):
        raters.join(campaign, secret, PROLIFIC)
    assert raters.join(campaign, secret, {"participant": "zoe"}) is not None
    sessions.create_link(campaign, "rater", rater_id=first.id)
    assert raters.join(campaign, secret, PROLIFIC) is not None
    raters.forget(campaign, first.id, "test")
    assert (people(campaign)[0].participant, people(campaign)[0].arrival) == (None, None)
    sessions.revoke(campaign, min(all_of(campaign, select(AccessToken.id))), "test")
    for link in (secret, sessions.create_link(campaign, "reader")):
        assert raters.join(campaign, link, {"participant": "yves"}) is None


@pytest.mark.parametrize(
    "query",
    [
        *({}, {"PROLIFIC_PID": ""}, {"PROLIFIC_PID": "a b"}, {"participant": "x" * 101}),
        *({"PROLIFIC_PID": "5f3c1a"}, {"PROLIFIC_PID": "5f3c1a", "SESSION_ID": "s-8"}),  # another's
    ],
)
def test_nobody_comes_in_without_a_number_of_their_own(campaign: Database, query: dict[str, str]) -> None:
    secret = raters.recruit(campaign, "c", "test")
    own = {"PROLIFIC_PID": "5f3c1a", "SESSION_ID": "s-7"}
    assert raters.join(campaign, secret, own) is not None
    with pytest.raises(sessions.AccessRefused):
        raters.join(campaign, secret, query)
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(campaign, secret)  # nor as by a link of one rater
    assert raters.join(campaign, secret, own) is not None
    (rater,) = people(campaign)
    assert rater.arrival == {"SESSION_ID": "s-7"}


def test_a_campaign_takes_no_more_participants_than_it_can(
    campaign: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raters, "MAX_PARTICIPANTS", 1)
    secret = raters.recruit(campaign, "c", "test")
    raters.join(campaign, secret, PROLIFIC)
    with pytest.raises(sessions.AccessRefused, match="evaluation is full"):
        raters.join(campaign, secret, {"participant": "zoe"})
    assert raters.join(campaign, secret, PROLIFIC) is not None
