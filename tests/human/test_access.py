"""Links and sessions: what a secret opens, what is listed, and what withdrawing a link ends."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from small_campaigns import ON_BOTH, add_rater, make_campaign
from sqlalchemy import select, union_all
from table_rows import all_of

from creamtea.access import audit, rights, sessions
from creamtea.errors import InputError
from creamtea.store.database import Database
from creamtea.store.tables import AccessToken, WebSession

GONE = timedelta(seconds=-1)


def opened(database: Database, role: str = "reader", **link: int) -> sessions.OpenedSession:
    """A session by a new link."""
    return sessions.exchange(database, sessions.create_link(database, role, **link))


def test_a_session_has_the_role_of_its_link_and_what_it_is_bound_to(database: Database) -> None:
    campaign = make_campaign(database)
    rater = add_rater(database)
    bound = {"reader": {}, "organiser": {"campaign_id": campaign}, "rater": {"rater_id": rater}}
    found = {}
    for role, link in bound.items():
        found[role] = sessions.identify(database, opened(database, role, **link).secret)
    assert {role: (who.role, who.campaign_id, who.rater_id) for role, who in found.items()} == {
        "reader": ("reader", None, None),
        "organiser": ("organiser", campaign, None),
        "rater": ("rater", campaign, rater),
    }
    assert rights.may(found["rater"], rights.RATE, campaign)
    assert rights.may(found["organiser"], rights.RUN_CAMPAIGN, campaign)
    assert not rights.may(found["organiser"], rights.READ_STUDIES)
    assert (
        rights.standing(sessions.identify(database, opened(database, "organiser").secret)) == rights.ORGANISER
    )


@ON_BOTH
def test_of_many_exchanges_at_once_one_succeeds(database: Database) -> None:
    link = sessions.create_link(database, "reader")

    def attempt(_: int) -> bool:
        try:
            sessions.exchange(database, link)
        except sessions.AccessRefused:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(16))) == 1
    assert len(all_of(database, select(WebSession))) == 1


@ON_BOTH
def test_only_an_unused_link_and_only_a_session_that_lasts_open_something(database: Database) -> None:
    used = sessions.create_link(database, "reader")
    session = sessions.exchange(database, used).secret
    expired = sessions.create_link(database, "reader", lifetime=GONE)
    for secret in (used, expired, session, "", "nonsense", "ü", "\ud800", "x" * 10_000):
        with pytest.raises(sessions.AccessRefused):
            sessions.exchange(database, secret)
        assert (sessions.identify(database, secret) is None) == (secret != session)
    over = sessions.exchange(database, sessions.create_link(database, "reader"), lifetime=GONE)
    assert sessions.identify(database, over.secret) is None


def test_no_secret_is_stored(database: Database) -> None:
    link = sessions.create_link(database, "reader")
    session = sessions.exchange(database, link).secret
    stored = all_of(database, union_all(select(AccessToken.digest), select(WebSession.digest)))
    assert sorted(stored) == sorted([sessions.digest(link), sessions.digest(session)])
    assert len({*stored, link, session}) == 4


def test_a_person_who_opens_their_link_again_is_recognised(database: Database) -> None:
    mine, other = (sessions.create_link(database, "reader") for _ in range(2))
    session = sessions.exchange(database, mine).secret
    assert sessions.opened_by(database, session, mine)
    assert not sessions.opened_by(database, session, other)


@pytest.mark.parametrize(
    ("role", "bound", "error", "message"),
    [
        ("rater", {}, ValueError, "needs a rater"),
        ("reader", {"rater_id": 1}, ValueError, "needs a rater"),
        ("rater", {"rater_id": 1, "campaign_id": 1}, ValueError, "only an organiser's or a reader's"),
        ("organiser", {"campaign_id": 1}, InputError, "no campaign with id 1"),
        ("rater", {"rater_id": 1}, InputError, "no rater with id 1"),
    ],
)
def test_a_link_is_bound_to_what_there_is_and_its_role_needs(
    database: Database, role: str, bound: dict[str, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sessions.create_link(database, role, **bound)


def test_links_are_listed_with_what_became_of_them(database: Database) -> None:
    campaign = make_campaign(database)
    rater = add_rater(database)
    sessions.create_link(database, "reader")
    opened(database, "organiser", campaign_id=campaign)
    sessions.create_link(database, "rater", rater_id=rater)
    sessions.create_link(database, "reader", lifetime=GONE)
    sessions.exchange(database, sessions.create_link(database, "reader"), lifetime=GONE)
    found = sessions.list_links(database)
    assert [(one.role, one.campaign, one.rater, one.sessions, one.opens) for one in found] == [
        ("reader", None, None, 0, True),
        ("organiser", "c", None, 1, True),
        ("rater", "c", "anna", 0, True),
        ("reader", None, None, 0, False),  # expired unused
        ("reader", None, None, 0, False),  # its session is over
    ]
    assert [one.used_at is not None for one in found] == [False, True, False, False, True]
    assert sessions.list_links(database, opening=True) == found[:3]


def test_a_start_withdraws_the_unused_links_of_earlier_starts(database: Database) -> None:
    given = sessions.create_link(database, "organiser")
    first, second = (sessions.link_at_start(database, for_person=True) for _ in range(2))
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(database, first)
    used = sessions.exchange(database, second)
    sessions.link_at_start(database, for_person=True)
    assert sessions.identify(database, used.secret) is not None, "a link that was used stays"
    sessions.exchange(database, given)  # so does one that somebody asked for


def test_a_log_gets_a_link_only_while_no_organiser_can_come_in(database: Database) -> None:
    opened(database)
    assert sessions.link_at_start(database, for_person=False) is not None
    session = sessions.exchange(database, sessions.link_at_start(database, for_person=False))
    assert sessions.link_at_start(database, for_person=False) is None
    sessions.sign_out(database, session.secret)
    assert sessions.link_at_start(database, for_person=False) is not None
    sessions.create_link(database, "organiser")
    assert sessions.link_at_start(database, for_person=False) is None


@pytest.mark.parametrize("role", ["reader", "organiser"])
def test_withdrawing_ends_the_session_and_nobody_elses(database: Database, role: str) -> None:
    mine, theirs = (opened(database, role) for _ in range(2))
    sessions.revoke(database, sessions.list_links(database)[0].id, "test")
    assert sessions.identify(database, mine.secret) is None
    assert sessions.identify(database, theirs.secret) is not None
    assert [(one.opens, one.sessions) for one in sessions.list_links(database)] == [(False, 0), (True, 1)]


def test_a_link_is_withdrawn_once_and_for_a_reason_only_where_a_log_keeps_it(database: Database) -> None:
    secret = sessions.create_link(database, "reader")
    (link,) = sessions.list_links(database)
    with pytest.raises(InputError, match="belongs to no campaign, so no log would keep the reason"):
        sessions.revoke(database, link.id, "test", "left the team")
    assert sessions.list_links(database)[0].opens
    sessions.revoke(database, link.id, "test")
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(database, secret)
    with pytest.raises(InputError, match=f"link {link.id} is already withdrawn"):
        sessions.revoke(database, link.id, "test")
    with pytest.raises(InputError, match="there is no link 999"):
        sessions.revoke(database, 999, "test")


def test_a_campaigns_log_has_the_links_that_were_made_and_withdrawn(database: Database) -> None:
    campaign = make_campaign(database)
    rater = add_rater(database)
    sessions.create_link(database, "organiser", campaign_id=campaign, actor="organiser 1")
    used, unused, _ = (sessions.create_link(database, "rater", rater_id=rater) for _ in range(3))
    sessions.create_link(database, "reader")
    session = sessions.exchange(database, used)
    organisers, *_, lost, _ = sessions.list_links(database)
    for link in (organisers, lost):
        sessions.revoke(database, link.id, "test", "left")
    assert sessions.revoke_rater(database, rater, reason="lost phone") == 2
    assert sessions.revoke_rater(database, rater) == 0
    assert sessions.identify(database, session.secret) is None
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(database, unused)
    log = audit.read(database, campaign)[1:]
    assert [(one.actor, one.action, one.rater, one.reason) for one in log] == [
        ("organiser 1", audit.LINK_CREATED, None, ""),
        *[(audit.COMMAND_LINE, audit.LINK_CREATED, "anna", "")] * 3,
        ("test", audit.LINKS_WITHDRAWN, None, "left"),
        ("test", audit.LINKS_WITHDRAWN, "anna", "left"),
        (audit.COMMAND_LINE, audit.LINKS_WITHDRAWN, "anna", "lost phone"),
    ]
    roles = [one.detail["role"] for one in log[-3:-1]]
    assert (roles, log[-2].detail["links"]) == (["organiser", "rater"], 1)
