"""Raters: welcome, consent, exclusion that can be undone, identities that can be deleted, the log."""

from collections.abc import Callable
from typing import Any

import pytest
from small_campaigns import add_rater, make_campaign, rate, rate_all, ratings, set_state, work_for
from sqlalchemy import select
from sqlalchemy.orm import Session
from table_rows import all_of, row_of

from creamtea.access import audit, sessions
from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.making import campaigns
from creamtea.human.making.campaigns import progress_by_kind
from creamtea.human.rating import RatingRefused, raters
from creamtea.human.results.ratings import load_ratings
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Assignment, AuditEvent, Base, Item, ItemKind, Rater


@pytest.fixture
def campaign(database: Database) -> Database:
    make_campaign(database, consent="My ratings may be published.")
    return database


def everything(database: Database) -> dict[str, list[Any]]:
    """Every row of every table but the log."""
    with database.session() as session:
        return {
            table.name: sorted(map(repr, session.execute(select(table))))
            for table in Base.metadata.sorted_tables
            if table.name != "audit_event"
        }


def log(database: Database) -> list[tuple[str, str, str | None, str]]:
    (campaign_id,) = all_of(database, select(AuditEvent.campaign_id).distinct())
    return [(e.actor, e.action, e.rater, e.reason) for e in audit.read(database, campaign_id)]


# ---------------------------------------------------------------- welcome and consent


def test_a_rater_is_welcomed_consents_and_begins(campaign: Database) -> None:
    anna = add_rater(campaign, consented=False)
    welcome = raters.welcome(campaign, anna)
    found = (welcome.pseudonym, welcome.protocol.name, welcome.languages)
    assert found == ("anna", "contrastive-da", ("en", "de"))
    assert (welcome.instructions, welcome.consent) == ("*Read* twice.", "My ratings may be published.")
    assert (welcome.consented, welcome.state, welcome.excluded) == (False, "launched", False)
    with pytest.raises(RatingRefused, match="agree to take part"):
        assignment.next_item(campaign, anna)
    for _ in range(2):
        raters.consent(campaign, anna)
    assert raters.welcome(campaign, anna).consented
    assert work_for(campaign, anna).source == "source 0"
    assert log(campaign) == [
        ("test", audit.RATER_ADDED, "anna", ""),
        ("anna", audit.RATER_CONSENTED, "anna", ""),
    ]


@pytest.mark.parametrize("state", ["draft", "closed"])
def test_nobody_consents_outside_a_launched_campaign(campaign: Database, state: str) -> None:
    anna = add_rater(campaign, consented=False)
    set_state(campaign, 1, state)
    with pytest.raises(RatingRefused):
        raters.consent(campaign, anna)
    assert not raters.welcome(campaign, anna).consented


# ---------------------------------------------------------------- adding


def test_pseudonyms_are_drawn_where_none_is_given(campaign: Database) -> None:
    add_rater(campaign, "rater-02")
    for _ in range(2):
        raters.add(campaign, "c", "test", name="Ada Lovelace")
    shown = [(row.pseudonym, row.name) for row in raters.overview(campaign, 1)]
    assert shown == [("rater-02", None), ("rater-03", "Ada Lovelace"), ("rater-04", "Ada Lovelace")]


def test_a_rater_is_added_once(campaign: Database) -> None:
    anna = raters.find_or_add(campaign, "c", "test", "anna")
    assert raters.find_or_add(campaign, "c", "test", " anna ") == anna == raters.find(campaign, "c", "anna")
    raters.add(campaign, "c", "test", subject="https://issuer|7")
    for wrong, message in (
        ({"pseudonym": "anna"}, "has a rater 'anna' already"),
        ({"subject": "https://issuer|7"}, "has a rater with this sign-in already"),
        ({"pseudonym": " "}, "needs a pseudonym"),
        ({"pseudonym": "x\ny"}, "one line"),
        ({"pseudonym": "x" * 201}, "at most 200"),
        ({"name": ""}, "needs a name"),
    ):
        with pytest.raises(InputError, match=message):
            raters.add(campaign, "c", "test", **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no campaign 'd'; known: c"):
        raters.add(campaign, "d", "test")
    with pytest.raises(InputError, match="no rater 'bert'; there are: anna, rater-02"):
        raters.find(campaign, "c", "bert")
    assert len(raters.overview(campaign, 1)) == 2


def test_names_that_look_alike_are_one(campaign: Database) -> None:
    """As files have them that were written on other machines: composed, decomposed, with another blank."""
    jose = raters.find_or_add(campaign, "c", "test", "Jos\u00e9 Two")
    for written in ("Jose\u0301 Two", "Jos\u00e9\u2028Two", " Jos\u00e9\u00a0Two "):
        assert raters.find_or_add(campaign, "c", "test", written) == jose
        assert raters.find(campaign, "c", written) == jose
    for written in ("Jos\u00e9 \uff34wo", "jos\u00e9 two"):  # from a list that somebody typed anew
        with pytest.raises(InputError, match="which looks like"):
            raters.add(campaign, "c", "test", pseudonym=written)


def test_the_overview_counts_what_raters_did(database: Database) -> None:
    campaign_id = make_campaign(database, [{"kind": "tutorial"}, {}, {}, {}])
    anna, _ = add_rater(database), add_rater(database, "bert")
    rate(database, anna, work_for(database, anna))
    assignment.skip(database, anna, work_for(database, anna).assignment_id, "unclear")
    rate(database, anna, work_for(database, anna))
    work_for(database, anna)
    rows = [
        (row.pseudonym, row.submitted, row.skipped, row.tutorial)
        for row in raters.overview(database, campaign_id)
    ]
    assert rows == [("anna", 1, 1, 1), ("bert", 0, 0, 0)]


# ---------------------------------------------------------------- excluding and including again


def test_excluding_and_including_leaves_every_row_as_it_was(campaign: Database) -> None:
    anna, bert = add_rater(campaign), add_rater(campaign, "bert")
    rate(campaign, anna, work_for(campaign, anna))
    work_for(campaign, anna)
    rate_all(campaign, bert)
    before = everything(campaign)
    raters.exclude(campaign, anna, "organiser 3", "always six")
    assert everything(campaign) != before
    raters.include(campaign, anna, "organiser 4", "they were right")
    assert everything(campaign) == before
    assert log(campaign)[2:] == [
        ("organiser 3", audit.RATER_EXCLUDED, "anna", "always six"),
        ("organiser 4", audit.RATER_INCLUDED, "anna", "they were right"),
    ]


def test_an_excluded_raters_places_go_to_others_and_the_ratings_stay(campaign: Database) -> None:
    anna, bert = add_rater(campaign), add_rater(campaign, "bert")
    mine = work_for(campaign, anna)
    rate(campaign, anna, mine)
    held = work_for(campaign, anna)
    raters.exclude(campaign, anna, "test", "too fast")
    for act in (
        lambda: assignment.next_item(campaign, anna),
        lambda: rate(campaign, anna, held),
        lambda: assignment.submit(campaign, anna, mine.assignment_id, [9] * 4, revision=2),
        lambda: assignment.save_draft(campaign, anna, held.assignment_id, [9] * 4),
        lambda: assignment.skip(campaign, anna, held.assignment_id, "sad"),
    ):
        with pytest.raises(RatingRefused, match="ended your part"):
            act()
    assert raters.welcome(campaign, anna).excluded
    assert len(ratings(campaign)) == 4
    assert rate_all(campaign, bert) == ["source 0", "source 1", "source 2", "source 3"]
    raters.include(campaign, anna, "test", "a mistake")
    with pytest.raises(RatingRefused, match="given to someone else"):
        rate(campaign, anna, held)
    assert assignment.next_item(campaign, anna) is None


def progress_of(database: Database) -> list[tuple[int, int]]:
    """Ratings that there are and that are wanted: of the rows by kind, of lists, and of the results."""
    with database.session() as session:
        row = find_campaign(session, "c")
        kinds = progress_by_kind(session, row)
        results = load_ratings(session, row)
    listed = campaigns.summary(database, "c")
    return [
        (sum(kind.submitted for kind in kinds), sum(kind.wanted for kind in kinds)),
        (listed.ratings, listed.wanted),
        (results.submitted, results.wanted),
    ]


def test_an_item_with_more_ratings_than_planned_makes_up_for_no_other(campaign: Database) -> None:
    anna, bert = add_rater(campaign), add_rater(campaign, "bert")
    rate(campaign, anna, work_for(campaign, anna))
    raters.exclude(campaign, anna, "test", "too fast")
    rate(campaign, bert, work_for(campaign, bert))
    raters.include(campaign, anna, "test", "a mistake")
    assert progress_of(campaign) == [(2, 5)] * 3
    rate_all(campaign, bert)
    assert progress_of(campaign) == [(5, 5)] * 3


def test_a_control_that_its_rater_skipped_is_not_waited_for(database: Database) -> None:
    make_campaign(database, [{}, {}, {"kind": ItemKind.REPEAT, "original": 0}])
    anna = add_rater(database)
    while (work := assignment.next_item(database, anna)) is not None:
        with database.session() as session:
            repeat = stored_kind(session, work.assignment_id) == ItemKind.REPEAT
        if repeat:
            assignment.skip(database, anna, work.assignment_id, "seen before")
        else:
            rate(database, anna, work)
    assert progress_of(database) == [(2, 2)] * 3
    raters.reopen(database, anna, "test", "please answer it")
    assert progress_of(database) == [(2, 3), (2, 3), (2, 2)]
    rate_all(database, anna)
    assert progress_of(database) == [(3, 3), (3, 3), (2, 2)]


def stored_kind(session: Session, assignment_id: int) -> str:
    return session.get_one(Item, session.get_one(Assignment, assignment_id).item_id).kind


@pytest.mark.parametrize(
    ("decide", "message"), [(raters.exclude, "excluded already"), (raters.include, "not")]
)
def test_a_decision_has_a_reason_and_changes_something(
    campaign: Database, decide: Callable[..., None], message: str
) -> None:
    anna = add_rater(campaign)
    if decide is raters.exclude:
        raters.exclude(campaign, anna, "test", "first")
    lines = len(log(campaign))
    with pytest.raises(InputError, match="give a reason"):
        decide(campaign, anna, "test", " ")
    with pytest.raises(InputError, match=message):
        decide(campaign, anna, "test", "again")
    with pytest.raises(InputError, match="no rater with id 99"):
        decide(campaign, 99, "test", "who")
    assert len(log(campaign)) == lines


# ---------------------------------------------------------------- forgetting


def test_forgetting_deletes_the_identity_and_keeps_the_ratings(campaign: Database) -> None:
    anna = raters.add(campaign, "c", "test", name="Anna Meier", subject="https://issuer|7")
    raters.consent(campaign, anna)
    rate(campaign, anna, work_for(campaign, anna))
    unused = sessions.create_link(campaign, "rater", rater_id=anna)
    opened = sessions.exchange(campaign, sessions.create_link(campaign, "rater", rater_id=anna))
    raters.forget(campaign, anna, "test", "asked by mail")
    row = row_of(campaign, Rater, anna)
    assert (row.name, row.subject, row.pseudonym) == (None, None, "rater-01")
    assert row.forgotten_at is not None
    assert sessions.identify(campaign, opened.secret) is None
    with pytest.raises(sessions.AccessRefused):
        sessions.exchange(campaign, unused)
    with pytest.raises(InputError, match="identity of rater 'rater-01' was deleted"):
        sessions.create_link(campaign, "rater", rater_id=anna)
    with pytest.raises(RatingRefused, match="have left"):
        assignment.next_item(campaign, anna)
    with pytest.raises(InputError, match="already deleted"):
        raters.forget(campaign, anna, "test")
    assert len(ratings(campaign)) == 4
    with campaign.session() as session:
        words = " ".join(map(repr, session.execute(select(AuditEvent.__table__))))
    assert "Meier" not in words
    assert "issuer" not in words
    bert = add_rater(campaign, "bert")
    assert rate_all(campaign, bert) == ["source 1", "source 2", "source 3"]


# ---------------------------------------------------------------- the log


def test_the_log_takes_actions_of_somebody(campaign: Database) -> None:
    with campaign.transaction() as session:
        with pytest.raises(ValueError, match="needs an actor"):
            audit.record(session, 1, " ", audit.CLOSED)
        audit.record(session, 1, "test", audit.EXPORTED, detail={"format": "csv"})
    (entry,) = audit.read(campaign, 1)
    seen = (entry.actor, entry.action, entry.rater, entry.detail)
    assert seen == ("test", audit.EXPORTED, None, {"format": "csv"})


def test_links_are_logged(campaign: Database) -> None:
    anna = add_rater(campaign)
    sessions.create_link(campaign, "rater", rater_id=anna)
    sessions.create_link(campaign, "organiser", campaign_id=1, actor="organiser 1")
    sessions.create_link(campaign, "reader")
    sessions.revoke_rater(campaign, anna, reason="lost phone")
    sessions.revoke_rater(campaign, anna)
    assert log(campaign)[1:] == [
        (audit.COMMAND_LINE, audit.LINK_CREATED, "anna", ""),
        ("organiser 1", audit.LINK_CREATED, None, ""),
        (audit.COMMAND_LINE, audit.LINKS_WITHDRAWN, "anna", "lost phone"),
    ]


def test_a_rater_gets_skipped_items_again_that_have_a_place(database: Database) -> None:
    campaign = make_campaign(database, 3)
    anna, ben = add_rater(database, "anna"), add_rater(database, "ben")
    for _ in range(2):
        assignment.skip(database, anna, work_for(database, anna).assignment_id, "too long")
    rate(database, anna, work_for(database, anna))
    assert assignment.next_item(database, anna) is None
    rate(database, ben, work_for(database, ben))  # takes the place of the first one
    with pytest.raises(InputError, match="give a reason"):
        raters.reopen(database, anna, "test", " ")
    assert raters.reopen(database, anna, "test", "she asked") == 1
    work = work_for(database, anna)
    assert work.source == "source 1"
    rate(database, anna, work)
    with pytest.raises(InputError, match="skipped nothing that still has a place"):
        raters.reopen(database, anna, "test", "again")
    entry = audit.read(database, campaign)[-1]
    assert (entry.action, entry.rater, entry.reason) == (audit.RATER_REOPENED, "anna", "she asked")
    assert entry.detail == {"pages": 1}
    set_state(database, campaign, "closed")
    with pytest.raises(InputError, match="cannot rate: this evaluation is closed"):
        raters.reopen(database, anna, "test", "again")


def test_nobody_takes_part_in_a_closed_campaign(database: Database) -> None:
    campaign_id = make_campaign(database, 1)
    rate_all(database, add_rater(database, "anna"))
    add_rater(database, "ben", consented=False)
    set_state(database, campaign_id, "closed")
    assert [person.standing for person in raters.overview(database, campaign_id)] == [
        "took part",
        "never started",
    ]
