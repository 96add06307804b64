"""Who a rater is at a provider: written down, found again, and ended like a link."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_campaigns import add_rater, make_campaign
from sqlalchemy import select
from table_rows import all_of, row_of

from creamtea.access import audit, sessions, sign_in
from creamtea.access.sign_in import NotRegistered, Person, checked_subject
from creamtea.errors import InputError
from creamtea.human.rating import raters
from creamtea.store.database import Database
from creamtea.store.tables import AccessToken, Rater

ISSUER = "https://id.example.org"


def person(email: str | None = None, subject: str = "7") -> Person:
    return Person(ISSUER, subject, email)


@pytest.mark.parametrize(
    "wrong",
    [
        *("", "anna", "@example.org", "anna@", "an na@example.org", "a|b@example.org", "7", "|7", "x|7"),
        *("a\nb@example.org", f"{ISSUER}|", f"{ISSUER}|7\0", f"{'a' * 500}@example.org"),
    ],
)
def test_a_sign_in_is_an_address_or_issuer_and_subject(wrong: str) -> None:
    with pytest.raises(InputError, match=r"anna@example\.org, or by issuer and subject"):
        checked_subject(wrong)


def test_an_address_is_kept_in_lower_case_and_a_subject_as_it_is() -> None:
    assert checked_subject(" Anna@Example.ORG ") == "anna@example.org"
    assert checked_subject(f"{ISSUER}|aB@x.org") == f"{ISSUER}|aB@x.org"
    kelvin = "\N{KELVIN SIGN}im@example.org"  # lower() makes a k of it
    assert checked_subject(kelvin) == kelvin


@given(st.text(), st.text(min_size=1))
def test_nobody_passes_for_somebody_else_by_an_address(email: str, subject: str) -> None:
    """An address that looks like issuer and subject matches neither."""
    others = person(email, subject).subjects
    assert f"{ISSUER}|{subject}" in others
    assert [one for one in others if one.startswith(f"{ISSUER}|")] == [f"{ISSUER}|{subject}"]


def test_a_session_is_opened_for_the_rater_and_ends_with_the_links(database: Database) -> None:
    campaign_id = make_campaign(database)
    anna = add_rater(database)
    with pytest.raises(NotRegistered):
        sign_in.open_session(database, person("anna@example.org"))
    sign_in.set_subject(database, anna, "test", "anna@example.org")
    for known in (person("Anna@example.org"), person("anna@EXAMPLE.org", "other")):
        opened = sign_in.open_session(database, known, campaign_id)
        identity = sessions.identify(database, opened.secret)
        assert (identity.role, identity.rater_id, identity.campaign_id) == ("rater", anna, campaign_id)
    for unknown in (person(), person("ben@example.org"), person(subject="anna@example.org")):
        with pytest.raises(NotRegistered):
            sign_in.open_session(database, unknown)
    with pytest.raises(NotRegistered):
        sign_in.open_session(database, person("anna@example.org"), campaign_id + 1)
    gone = sign_in.open_session(database, person("anna@example.org"), lifetime=timedelta(seconds=-1))
    assert sessions.identify(database, gone.secret) is None
    assert sessions.revoke_rater(database, anna) == 3
    assert sessions.identify(database, opened.secret) is None
    with pytest.raises(NotRegistered):
        sign_in.open_session(database, person("anna@example.org"))


def test_the_log_tells_of_the_sign_in_and_not_who_it_is(database: Database) -> None:
    campaign_id = make_campaign(database)
    anna = add_rater(database)
    for subject in ("anna@example.org", "anna@example.org", f"{ISSUER}|7"):
        sign_in.set_subject(database, anna, "test", subject)
    sign_in.open_session(database, person())
    sessions.revoke_rater(database, anna)
    sign_in.set_subject(database, anna, "test", "anna@example.org")
    assert sessions.revoke_rater(database, anna) == 0  # no link, and still something to write down
    entries: list[Any] = audit.read(database, campaign_id)
    assert [(e.action, e.actor) for e in entries if e.action != audit.RATER_ADDED] == [
        (audit.SIGN_IN_SET, "test"),
        (audit.SIGN_IN_SET, "test"),
        (audit.SIGNED_IN, "anna"),
        (audit.LINKS_WITHDRAWN, audit.COMMAND_LINE),
        (audit.SIGN_IN_SET, "test"),
        (audit.LINKS_WITHDRAWN, audit.COMMAND_LINE),
    ]
    assert entries[-1].detail == {"links": 0, "sign-in": True}
    assert "example.org" not in str(entries)


def test_a_sign_in_is_one_raters_and_goes_with_the_identity(database: Database) -> None:
    make_campaign(database)
    anna, ben = add_rater(database), add_rater(database, "ben")
    sign_in.set_subject(database, anna, "test", "anna@example.org")
    with pytest.raises(InputError, match="has a rater with this sign-in already"):
        sign_in.set_subject(database, ben, "test", "ANNA@example.org")
    with pytest.raises(InputError, match="has a rater with this sign-in already"):
        raters.add(database, "c", "test", subject="Anna@Example.org")
    raters.forget(database, anna, "test")
    assert row_of(database, Rater, anna).subject is None
    with pytest.raises(InputError, match="was deleted"):
        sign_in.set_subject(database, anna, "test", "anna@example.org")
    sign_in.set_subject(database, ben, "test", "anna@example.org")


def organiser_of(database: Database, opened: sessions.OpenedSession) -> int | None:
    """The campaign that this session organises, and no other; None for a session that is over."""
    who = sessions.identify(database, opened.secret)
    assert who is None or (who.role, who.rater_id) == ("organiser", None)
    return None if who is None else who.campaign_id


DORA = person("dora@example.org")


def test_an_organiser_signs_in_to_one_campaign(database: Database) -> None:
    mine, other = (make_campaign(database, name=name) for name in ("mine", "other"))
    sign_in.add_organiser(database, "mine", "test", " Dora@Example.org")
    for asked in (mine, None):
        assert organiser_of(database, sign_in.open_session(database, DORA, asked)) == mine
    eve, evil = person("eve@example.org"), person("dora@example.org.evil.example")
    for stranger, campaign in ((DORA, other), (eve, mine), (person(), mine), (evil, mine)):
        with pytest.raises(NotRegistered):
            sign_in.open_session(database, stranger, campaign)
    lines = [(one.action, one.detail) for one in audit.read(database, mine)]
    assert [action for action, _ in lines][-2:] == [audit.ORGANISER_SIGNED_IN] * 2
    assert (audit.LINK_CREATED, {"role": "organiser", "sign-in": True}) in lines
    assert "dora" not in str(audit.read(database, mine)).lower()


def test_no_secret_opens_the_right_to_sign_in(database: Database) -> None:
    mine = make_campaign(database)
    sign_in.add_organiser(database, "c", "test", "dora@example.org")
    assert all_of(database, select(AccessToken.digest)) == [None]
    for secret in ("", "None", "dora@example.org", f"sign-in:{mine}:dora@example.org"):
        with pytest.raises(sessions.AccessRefused):
            sessions.exchange(database, secret)
        assert sessions.identify(database, secret) is None


def test_withdrawing_ends_an_organisers_sessions_for_good(database: Database) -> None:
    mine = make_campaign(database)
    sign_in.add_organiser(database, "c", "test", "dora@example.org")
    opened = sign_in.open_session(database, DORA)
    (link,) = sessions.list_links(database)
    assert (link.sign_in, link.opens, link.sessions) == ("dora@example.org", True, 1)
    sessions.revoke(database, link.id, "test", "left")
    assert organiser_of(database, opened) is None
    with pytest.raises(NotRegistered):
        sign_in.open_session(database, DORA, mine)
    assert sessions.list_links(database, opening=True) == []
    sign_in.add_organiser(database, "c", "test", "dora@example.org")
    assert organiser_of(database, sign_in.open_session(database, DORA)) == mine
    assert organiser_of(database, opened) is None  # what was ended stays so
    told = [(one.sign_in, one.opens) for one in sessions.list_links(database)]
    assert told == [("dora@example.org", False), ("dora@example.org", True)]


def test_the_right_is_over_after_its_time_and_so_are_its_sessions(database: Database) -> None:
    make_campaign(database)
    sign_in.add_organiser(database, "c", "test", "dora@example.org", timedelta(days=1))
    assert sign_in.open_session(database, DORA).lifetime <= timedelta(days=1)
    make_campaign(database, name="over")
    sign_in.add_organiser(database, "over", "test", "ed@example.org", timedelta(seconds=-1))
    with pytest.raises(NotRegistered):
        sign_in.open_session(database, person("ed@example.org"))
    sign_in.add_organiser(database, "over", "test", "ed@example.org")
    assert sign_in.open_session(database, person("ed@example.org")).role == "organiser"
    told = [(one.sign_in, one.opens) for one in sessions.list_links(database)]
    assert told == [("dora@example.org", True), ("ed@example.org", False), ("ed@example.org", True)]


def test_nobody_rates_and_organises_one_campaign(database: Database) -> None:
    make_campaign(database)
    raters.add(database, "c", "test", pseudonym="anna", subject="anna@example.org")
    sign_in.add_organiser(database, "c", "test", "dora@example.org")
    for campaign, subject, said in (
        ("c", "anna@example.org", "has a rater with this sign-in already"),
        ("c", "dora@example.org", "has an organiser with this sign-in, who does not rate"),
        ("c", "dora", "people sign in by an e-mail address"),
        ("nothing", "dora@example.org", "no campaign"),
    ):
        with pytest.raises(InputError, match=said):
            sign_in.add_organiser(database, campaign, "test", subject)
    with pytest.raises(InputError, match="has an organiser with this sign-in, who does not rate"):
        raters.add(database, "c", "test", pseudonym="dora", subject="dora@example.org")


def test_the_same_person_by_two_names_rates(database: Database) -> None:
    """Known by address and by issuer and subject: of one campaign the lesser right is the one."""
    mine = make_campaign(database)
    rater = raters.add(database, "c", "test", subject=f"{ISSUER}|7")
    sign_in.add_organiser(database, "c", "test", "dora@example.org")
    opened = sign_in.open_session(database, DORA, mine)
    who = sessions.identify(database, opened.secret)
    assert (who.role, who.rater_id) == ("rater", rater)
