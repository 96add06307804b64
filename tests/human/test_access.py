"""Links, sign-ins and sessions: what opens what, what revoking ends, and what each role may do."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_campaigns import ON_BOTH, add_rater, make_campaign
from sqlalchemy import select, union_all
from table_rows import all_of, row_of

from creamtea.access import audit, rights, sessions, sign_in
from creamtea.access.sessions import Identity
from creamtea.access.sign_in import NotRegistered, Person, checked_subject
from creamtea.errors import InputError
from creamtea.human.rating import raters
from creamtea.store.database import Database
from creamtea.store.tables import AccessToken, Rater, WebSession

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


def test_a_start_revokes_the_unused_links_of_earlier_starts(database: Database) -> None:
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
def test_revoking_ends_the_session_and_nobody_elses(database: Database, role: str) -> None:
    mine, theirs = (opened(database, role) for _ in range(2))
    sessions.revoke(database, sessions.list_links(database)[0].id, "test")
    assert sessions.identify(database, mine.secret) is None
    assert sessions.identify(database, theirs.secret) is not None
    assert [(one.opens, one.sessions) for one in sessions.list_links(database)] == [(False, 0), (True, 1)]


def test_a_link_is_revoked_once_and_for_a_reason_only_where_a_log_keeps_it(database: Database) -> None:
    secret = sessions.create_link(database, "reader")
    (link,) = sessions.list_links(database)
    with pytest.raises(InputError, match="belongs to no campaign, so no log would keep the reason"):
        sessions.revoke(database, link.id, "test", "left the team")
    assert sessions.list_links(database)[0].opens
    sessions.revoke(database, link.id, "test")
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(database, secret)
    with pytest.raises(InputError, match=f"link {link.id} is already revoked"):
        sessions.revoke(database, link.id, "test")
    with pytest.raises(InputError, match="there is no link 999"):
        sessions.revoke(database, 999, "test")


def test_a_campaigns_log_has_the_links_that_were_made_and_revoked(database: Database) -> None:
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
        ("test", audit.LINKS_REVOKED, None, "left"),
        ("test", audit.LINKS_REVOKED, "anna", "left"),
        (audit.COMMAND_LINE, audit.LINKS_REVOKED, "anna", "lost phone"),
    ]
    roles = [one.detail["role"] for one in log[-3:-1]]
    assert (roles, log[-2].detail["links"]) == (["organiser", "rater"], 1)


# ---------------------------------------------------------------- signing in


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
        (audit.LINKS_REVOKED, audit.COMMAND_LINE),
        (audit.SIGN_IN_SET, "test"),
        (audit.LINKS_REVOKED, audit.COMMAND_LINE),
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


def test_revoking_ends_an_organisers_sessions_for_good(database: Database) -> None:
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


# ---------------------------------------------------------------- role × action


MINE, OTHER = 7, 8
IDENTITIES = {
    "nobody": None,
    "rater": Identity(1, "rater", rater_id=3, campaign_id=MINE),
    "reader": Identity(1, "reader"),
    "one report": Identity(1, "reader", study_id=MINE),
    "one campaign": Identity(1, "organiser", campaign_id=MINE),
    "organiser": Identity(1, "organiser"),
    "rater without rater": Identity(1, "rater"),
    "viewer": Identity(1, "reader", campaign_id=MINE),
    "reader with a campaign and a study": Identity(1, "reader", campaign_id=MINE, study_id=MINE),
}
# action: who may in their own campaign; who may in any other, and where no campaign is named
TABLE = {
    rights.RATE: ({"rater"}, set()),
    rights.READ_STUDIES: ({"reader", "organiser"}, {"reader", "organiser"}),
    rights.READ_REPORT: ({"reader", "organiser"}, {"reader", "organiser"}),  # see the test below
    rights.SUBMIT_STUDIES: ({"organiser"}, {"organiser"}),
    rights.CONTROL_STUDIES: ({"organiser"}, {"organiser"}),
    rights.SHARE_REPORTS: ({"organiser"}, {"organiser"}),
    rights.READ_LOGS: ({"organiser"}, {"organiser"}),
    rights.SEE_MEDIA: ({"rater", "viewer", "one campaign", "organiser"}, {"organiser"}),
    rights.SEE_CAMPAIGN: ({"viewer", "one campaign", "organiser"}, {"organiser"}),
    rights.CREATE_CAMPAIGN: ({"organiser"}, {"organiser"}),
    rights.RUN_CAMPAIGN: ({"one campaign", "organiser"}, {"organiser"}),
    rights.MANAGE_RATERS: ({"one campaign", "organiser"}, {"organiser"}),
    rights.SEE_RATERS: ({"one campaign", "organiser"}, {"organiser"}),
    rights.READ_LOG: ({"one campaign", "organiser"}, {"organiser"}),
    rights.EXPORT_RATINGS: ({"one campaign", "organiser"}, {"organiser"}),
    rights.IMPORT_RATINGS: ({"organiser"}, {"organiser"}),
}


def test_the_table_is_complete() -> None:
    assert set(TABLE) == set(rights.RIGHTS)


@pytest.mark.parametrize("action", TABLE)
@pytest.mark.parametrize("who", IDENTITIES)
def test_each_role_may_what_the_table_says(who: str, action: str) -> None:
    own, elsewhere = TABLE[action]
    identity = IDENTITIES[who]
    assert rights.may(identity, action, MINE) == (who in own)
    assert rights.may(identity, action, OTHER) == (who in elsewhere)
    assert rights.may(identity, action) == (who in elsewhere)


@pytest.mark.parametrize("action", TABLE)
def test_a_reader_of_one_report_may_read_that_report_and_nothing_else(action: str) -> None:
    who = IDENTITIES["one report"]
    assert rights.may(who, action, study_id=MINE) == (action == rights.READ_REPORT)
    assert not rights.may(who, action, study_id=OTHER)


def test_what_is_of_a_campaign_is_not_of_the_study_with_its_number() -> None:
    assert not rights.may(IDENTITIES["one campaign"], rights.READ_REPORT, study_id=MINE)
    assert not rights.may(IDENTITIES["rater"], rights.READ_REPORT, study_id=MINE)
    assert not rights.may(IDENTITIES["one report"], rights.RATE, MINE)


def test_an_unknown_action_is_an_error() -> None:
    with pytest.raises(KeyError):
        rights.may(IDENTITIES["organiser"], "make tea")
