from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from ready_campaigns import add_rater, launched_campaign
from sqlalchemy import select, union_all
from table_rows import all_of

from creamtea.access import rights, sessions
from creamtea.store.database import Database
from creamtea.store.tables import AccessToken, WebSession

GONE = timedelta(seconds=-1)


def test_a_link_opens_one_session_with_its_role(database: Database) -> None:
    opened = sessions.exchange(database, sessions.create_link(database, "organiser"))
    identity = sessions.identify(database, opened.secret)
    assert (identity.role, rights.standing(identity)) == ("organiser", rights.ORGANISER)


def test_a_rater_is_bound_to_rater_and_campaign(study_database: Database) -> None:
    campaign = launched_campaign(study_database, systems=["plain", "beam"])
    rater = add_rater(study_database, "c", "anna")
    link = sessions.create_link(study_database, "rater", rater_id=rater)
    identity = sessions.identify(study_database, sessions.exchange(study_database, link).secret)
    assert (identity.rater_id, identity.campaign_id) == (rater, campaign.id)
    assert rights.may(identity, rights.RATE, campaign.id)


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


def test_an_unknown_a_used_and_an_expired_link_are_refused(database: Database) -> None:
    used = sessions.create_link(database, "reader")
    sessions.exchange(database, used)
    expired = sessions.create_link(database, "reader", lifetime=GONE)
    for secret in (used, expired, "", "nonsense", "ü", "\ud800", "x" * 10_000):
        with pytest.raises(sessions.AccessRefused):
            sessions.exchange(database, secret)
        assert sessions.identify(database, secret) is None


def test_an_expired_session_opens_nothing(database: Database) -> None:
    opened = sessions.exchange(database, sessions.create_link(database, "reader"), lifetime=GONE)
    assert sessions.identify(database, opened.secret) is None


def test_revoking_a_rater_ends_used_and_unused_links(study_database: Database) -> None:
    launched_campaign(study_database, systems=["plain", "beam"])
    rater = add_rater(study_database, "c", "anna")
    used, unused = (sessions.create_link(study_database, "rater", rater_id=rater) for _ in range(2))
    opened = sessions.exchange(study_database, used)
    assert sessions.revoke_rater(study_database, rater) == 2
    assert sessions.identify(study_database, opened.secret) is None
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(study_database, unused)


def test_a_link_is_no_session_and_a_session_no_link(database: Database) -> None:
    link = sessions.create_link(database, "reader")
    opened = sessions.exchange(database, link)
    assert sessions.identify(database, link) is None
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(database, opened.secret)


def test_no_secret_is_stored(database: Database) -> None:
    link = sessions.create_link(database, "reader")
    opened = sessions.exchange(database, link)
    stored = all_of(database, union_all(select(AccessToken.digest), select(WebSession.digest)))
    assert sorted(stored) == sorted([sessions.digest(link), sessions.digest(opened.secret)])
    assert len({*stored, link, opened.secret}) == 4


def test_a_person_who_opens_their_link_again_is_recognised(database: Database) -> None:
    mine, other = (sessions.create_link(database, "reader") for _ in range(2))
    opened = sessions.exchange(database, mine)
    assert sessions.opened_by(database, opened.secret, mine)
    assert not sessions.opened_by(database, opened.secret, other)


@pytest.mark.parametrize(("role", "rater_id"), [("rater", None), ("reader", 1)])
def test_only_a_rater_link_has_a_rater(database: Database, role: str, rater_id: int | None) -> None:
    with pytest.raises(ValueError, match="needs a rater"):
        sessions.create_link(database, role, rater_id=rater_id)
