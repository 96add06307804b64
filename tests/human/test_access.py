from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from ready_campaigns import add_rater, launched_campaign
from sqlalchemy import select, union_all

from creamtea.human import access, rights
from creamtea.store.database import Database
from creamtea.store.tables import AccessToken, WebSession

GONE = timedelta(seconds=-1)


def test_a_link_opens_one_session_with_its_role(database: Database) -> None:
    opened = access.exchange(database, access.create_link(database, "organiser"))
    identity = access.identify(database, opened.secret)
    assert identity is not None
    assert (identity.role, rights.standing(identity)) == ("organiser", rights.ORGANISER)


def test_a_rater_is_bound_to_rater_and_campaign(study_database: Database) -> None:
    campaign = launched_campaign(study_database, "c", study="jam", test_set="test", systems=["plain", "beam"])
    rater = add_rater(study_database, "c", "anna")
    link = access.create_link(study_database, "rater", rater_id=rater)
    identity = access.identify(study_database, access.exchange(study_database, link).secret)
    assert identity is not None
    assert (identity.rater_id, identity.campaign_id) == (rater, campaign.id)
    assert rights.may(identity, rights.RATE, campaign.id)


def test_a_replayed_link_is_refused(database: Database) -> None:
    link = access.create_link(database, "reader")
    access.exchange(database, link)
    with pytest.raises(access.AccessRefused):
        access.exchange(database, link)


def test_of_many_exchanges_at_once_one_succeeds(database: Database) -> None:
    link = access.create_link(database, "reader")

    def attempt(_: int) -> bool:
        try:
            access.exchange(database, link)
        except access.AccessRefused:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(16))) == 1
    with database.session() as session:
        assert len(session.scalars(select(WebSession)).all()) == 1


def test_an_expired_link_is_refused(database: Database) -> None:
    link = access.create_link(database, "reader", lifetime=GONE)
    with pytest.raises(access.AccessRefused):
        access.exchange(database, link)


@pytest.mark.parametrize("secret", ["", "nonsense", "ü", "\ud800", "x" * 10_000])
def test_an_unknown_secret_is_refused(database: Database, secret: str) -> None:
    access.create_link(database, "reader")
    with pytest.raises(access.AccessRefused):
        access.exchange(database, secret)
    assert access.identify(database, secret) is None


def test_an_expired_session_opens_nothing(database: Database) -> None:
    opened = access.exchange(database, access.create_link(database, "reader"), lifetime=GONE)
    assert access.identify(database, opened.secret) is None


def test_revoking_a_rater_ends_used_and_unused_links(study_database: Database) -> None:
    launched_campaign(study_database, "c", study="jam", test_set="test", systems=["plain", "beam"])
    rater = add_rater(study_database, "c", "anna")
    used, unused = (access.create_link(study_database, "rater", rater_id=rater) for _ in range(2))
    opened = access.exchange(study_database, used)
    assert access.revoke_rater(study_database, rater) == 2
    assert access.identify(study_database, opened.secret) is None
    with pytest.raises(access.AccessRefused):
        access.exchange(study_database, unused)


def test_a_link_is_no_session_and_a_session_no_link(database: Database) -> None:
    link = access.create_link(database, "reader")
    opened = access.exchange(database, link)
    assert access.identify(database, link) is None
    with pytest.raises(access.AccessRefused):
        access.exchange(database, opened.secret)


def test_no_secret_is_stored(database: Database) -> None:
    link = access.create_link(database, "reader")
    opened = access.exchange(database, link)
    with database.session() as session:
        stored = list(session.scalars(union_all(select(AccessToken.digest), select(WebSession.digest))))
    assert sorted(stored) == sorted([access.digest(link), access.digest(opened.secret)])
    assert len({*stored, link, opened.secret}) == 4


def test_a_person_who_opens_their_link_again_is_recognised(database: Database) -> None:
    mine, other = (access.create_link(database, "reader") for _ in range(2))
    opened = access.exchange(database, mine)
    assert access.opened_by(database, opened.secret, mine)
    assert not access.opened_by(database, opened.secret, other)


@pytest.mark.parametrize(("role", "rater_id"), [("rater", None), ("reader", 1)])
def test_only_a_rater_link_has_a_rater(database: Database, role: str, rater_id: int | None) -> None:
    with pytest.raises(ValueError, match="needs a rater"):
        access.create_link(database, role, rater_id=rater_id)
