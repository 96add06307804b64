"""Links: what is listed, and what withdrawing one ends."""

from datetime import timedelta

import pytest
from ready_campaigns import add_rater, launched_campaign

from creamtea.access import audit, sessions
from creamtea.errors import InputError
from creamtea.store.database import Database


def test_links_are_listed_with_what_became_of_them(study_database: Database) -> None:
    made = launched_campaign(study_database, systems=["plain", "beam"])
    rater = add_rater(study_database, "c", "anna")
    sessions.create_link(study_database, "reader")
    sessions.exchange(study_database, sessions.create_link(study_database, "organiser", campaign_id=made.id))
    sessions.create_link(study_database, "rater", rater_id=rater)
    sessions.create_link(study_database, "reader", lifetime=timedelta(seconds=-1))
    over = sessions.create_link(study_database, "reader")
    sessions.exchange(study_database, over, lifetime=timedelta(seconds=-1))
    found = sessions.listed(study_database)
    assert [(one.role, one.campaign, one.rater, one.sessions, one.opens) for one in found] == [
        ("reader", None, None, 0, True),
        ("organiser", "c", None, 1, True),
        ("rater", "c", "anna", 0, True),
        ("reader", None, None, 0, False),  # expired unused
        ("reader", None, None, 0, False),  # its session is over
    ]
    assert [one.used_at is not None for one in found] == [False, True, False, False, True]
    assert sessions.listed(study_database, opening=True) == found[:3]


def test_a_start_withdraws_the_unused_links_of_earlier_starts(database: Database) -> None:
    given = sessions.create_link(database, "organiser")
    first, second = (sessions.link_at_start(database, for_person=True) for _ in range(2))
    assert first is not None
    assert second is not None
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(database, first)
    used = sessions.exchange(database, second)
    sessions.link_at_start(database, for_person=True)
    assert sessions.identify(database, used.secret) is not None, "a link that was used stays"
    sessions.exchange(database, given)  # so does one that somebody asked for


def test_a_log_gets_a_link_only_while_no_organiser_can_come_in(database: Database) -> None:
    sessions.exchange(database, sessions.create_link(database, "reader"))
    first = sessions.link_at_start(database, for_person=False)
    second = sessions.link_at_start(database, for_person=False)
    assert first is not None
    assert second is not None
    session = sessions.exchange(database, second)
    assert sessions.link_at_start(database, for_person=False) is None
    sessions.sign_out(database, session.secret)
    assert sessions.link_at_start(database, for_person=False) is not None
    sessions.create_link(database, "organiser")
    assert sessions.link_at_start(database, for_person=False) is None


@pytest.mark.parametrize("role", ["reader", "organiser"])
def test_withdrawing_ends_the_session_and_nobody_elses(database: Database, role: str) -> None:
    mine, theirs = (sessions.exchange(database, sessions.create_link(database, role)) for _ in range(2))
    sessions.revoke(database, sessions.listed(database)[0].id, "test")
    assert sessions.identify(database, mine.secret) is None
    assert sessions.identify(database, theirs.secret) is not None
    assert [one.opens for one in sessions.listed(database)] == [False, True]
    assert sessions.listed(database)[0].sessions == 0


def test_an_unused_link_that_is_withdrawn_opens_nothing(database: Database) -> None:
    secret = sessions.create_link(database, "reader")
    (link,) = sessions.listed(database)
    sessions.revoke(database, link.id, "test")
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(database, secret)
    with pytest.raises(InputError, match=f"link {link.id} was withdrawn before"):
        sessions.revoke(database, link.id, "test")
    with pytest.raises(InputError, match="link 999 is not there"):
        sessions.revoke(database, 999, "test")


def test_a_reason_that_no_log_would_keep_is_refused(database: Database) -> None:
    sessions.create_link(database, "reader")
    (link,) = sessions.listed(database)
    with pytest.raises(InputError, match="belongs to no campaign, and so no log would keep the reason"):
        sessions.revoke(database, link.id, "test", "left the team")
    assert sessions.listed(database)[0].opens
    sessions.revoke(database, link.id, "test")


def test_a_campaigns_log_has_the_withdrawal(study_database: Database) -> None:
    made = launched_campaign(study_database, systems=["plain", "beam"])
    rater = add_rater(study_database, "c", "anna")
    sessions.create_link(study_database, "organiser", campaign_id=made.id)
    sessions.create_link(study_database, "rater", rater_id=rater)
    for link in sessions.listed(study_database):
        sessions.revoke(study_database, link.id, "test", "left")
    lines = [one for one in audit.read(study_database, made.id) if one.action == audit.LINKS_WITHDRAWN]
    assert [(one.actor, one.rater, one.reason, one.detail) for one in lines] == [
        ("test", None, "left", {"links": 1, "role": "organiser"}),
        ("test", "anna", "left", {"links": 1, "role": "rater"}),
    ]
