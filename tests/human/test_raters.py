"""Raters: added, invited and recruited, asked about themselves, excluded and forgotten."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_campaigns import (
    ON_BOTH,
    add_rater,
    make_campaign,
    rate,
    rate_all,
    ratings,
    results_of,
    set_state,
    work_for,
)
from sqlalchemy import select
from table_rows import all_of, one_of, row_of

from creamtea.access import audit, sessions
from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.exchange import export_campaign
from creamtea.human.making import campaigns
from creamtea.human.making.campaigns import progress_by_kind
from creamtea.human.making.questions import (
    Question,
    WrongAnswers,
    checked_answers,
    read_questions,
    write_questions,
)
from creamtea.human.making.settings import settings_of
from creamtea.human.rating import RatingRefused, raters
from creamtea.human.results.ratings import fingerprint
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import AccessToken, AuditEvent, Base, Campaign, Item, ItemKind, Rater


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


def results_key(database: Database) -> tuple[Any, ...]:
    """By which pages know that results have changed."""
    with database.session() as session:
        return fingerprint(session, 1)


def log(database: Database) -> list[tuple[str, str, str | None, str]]:
    (campaign_id,) = all_of(database, select(AuditEvent.campaign_id).distinct())
    return [(e.actor, e.action, e.rater, e.reason) for e in audit.read(database, campaign_id)]


def test_a_rater_is_welcomed_consents_and_begins(campaign: Database) -> None:
    anna = add_rater(campaign, consented=False)
    welcome = raters.welcome(campaign, anna)
    found = (welcome.pseudonym, welcome.protocol.name, welcome.languages)
    assert found == ("anna", "contrastive-da", ("en", "de"))
    assert (welcome.instructions, welcome.consent) == ("*Read* twice.", "My ratings may be published.")
    assert (welcome.consented, welcome.state, welcome.excluded) == (False, "launched", False)
    with pytest.raises(RatingRefused, match="agree to take part"):
        assignment.next_item(campaign, anna)
    for state in ("draft", "closed"):
        set_state(campaign, 1, state)
        with pytest.raises(RatingRefused):
            raters.consent(campaign, anna)
        assert not raters.welcome(campaign, anna).consented
    set_state(campaign, 1, "launched")
    for _ in range(2):
        raters.consent(campaign, anna)
    assert raters.welcome(campaign, anna).consented
    assert work_for(campaign, anna).source == "source 0"
    assert log(campaign) == [
        ("test", audit.RATER_ADDED, "anna", ""),
        ("anna", audit.RATER_CONSENTED, "anna", ""),
    ]
    with campaign.transaction() as session, pytest.raises(ValueError, match="needs an actor"):
        audit.record(session, 1, " ", audit.CLOSED)


def test_a_rater_is_added_once_with_a_pseudonym_that_is_given_or_drawn(campaign: Database) -> None:
    add_rater(campaign, "rater-02")
    anna = raters.find_or_add(campaign, "c", "test", "anna")
    assert raters.find_or_add(campaign, "c", "test", " anna ") == anna == raters.find(campaign, "c", "anna")
    raters.add(campaign, "c", "test", name="Ada Lovelace", subject="https://issuer|7")
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
    with pytest.raises(InputError, match="no rater 'bert'; there are: anna, rater-02, rater-03"):
        raters.find(campaign, "c", "bert")
    shown = [(row.pseudonym, row.name) for row in raters.overview(campaign, 1)]
    assert shown == [("rater-02", None), ("anna", None), ("rater-03", "Ada Lovelace")]


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
    campaign = make_campaign(database, [{"kind": "tutorial"}, {}, {}, {}])
    anna, _ = add_rater(database), add_rater(database, "bert", consented=False)
    rate(database, anna, work_for(database, anna))
    assignment.skip(database, anna, work_for(database, anna).assignment_id, "unclear")
    rate_all(database, anna)
    found = raters.overview(database, campaign)
    rows = [(row.pseudonym, row.submitted, row.skipped, row.tutorial) for row in found]
    assert rows == [("anna", 2, 1, 1), ("bert", 0, 0, 0)]
    set_state(database, campaign, "closed")
    found = raters.overview(database, campaign)
    assert [row.standing for row in found] == ["took part", "never started"]


@ON_BOTH
def test_excluding_and_including_leaves_every_row_as_it_was(campaign: Database) -> None:
    anna, bert = add_rater(campaign), add_rater(campaign, "bert")
    rate(campaign, anna, work_for(campaign, anna))
    work_for(campaign, anna)
    rate_all(campaign, bert)
    rows, key = everything(campaign), results_key(campaign)
    raters.exclude(campaign, anna, "organiser 3", "always six")
    assert everything(campaign) != rows
    assert results_key(campaign) != key
    assert results_of(campaign).raters == ("bert",)
    raters.include(campaign, anna, "organiser 4", "they were right")
    assert (everything(campaign), results_key(campaign)) == (rows, key)
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
        kinds = progress_by_kind(session, find_campaign(session, "c"))
    listed, results = campaigns.summary(database, "c"), results_of(database)
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
    for _ in range(2):
        rate(database, anna, work_for(database, anna))
    repeat = work_for(database, anna)
    assert repeat.source == "source 2"
    assignment.skip(database, anna, repeat.assignment_id, "seen before")
    assert progress_of(database) == [(2, 2)] * 3
    raters.reopen(database, anna, "test", "please answer it")
    assert progress_of(database) == [(2, 3), (2, 3), (2, 2)]
    rate_all(database, anna)
    assert progress_of(database) == [(3, 3), (3, 3), (2, 2)]


@pytest.mark.parametrize(
    ("decide", "before", "message"),
    [(raters.exclude, [raters.exclude], "excluded already"), (raters.include, [], "not")],
)
def test_a_decision_has_a_reason_and_changes_something(
    campaign: Database, decide: Callable[..., None], before: list[Callable[..., None]], message: str
) -> None:
    anna = add_rater(campaign)
    for earlier in before:
        earlier(campaign, anna, "test", "first")
    lines = log(campaign)
    for rater, reason, said in (
        (anna, " ", "give a reason"),
        (anna, "again", message),
        (99, "who", "no rater with id 99"),
    ):
        with pytest.raises(InputError, match=said):
            decide(campaign, rater, "test", reason)
    assert log(campaign) == lines


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


# ---------------------------------------------------------------- many links, and one for everybody


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
    with pytest.raises(sessions.AccessRefused, match="was revoked"):
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


# ---------------------------------------------------------------- questions about the rater


TEXT = "First language? | German | English\n\nYears of translating | number\n=Else? | optional\n"
QUESTIONS = [
    Question(ask="First language?", options=["German", "English"]),
    Question(ask="Years of translating", number=True),
    Question(ask="=Else?", optional=True),
]


def test_a_line_ends_with_lf_or_cr_lf_alone() -> None:
    """U+2028 and its like are characters of a question."""
    asked = read_questions("A\u2028B? | x | y\r\nC\x85D\x0bE?\n")
    assert [question.ask for question in asked] == ["A\u2028B?", "C\x85D\x0bE?"]
    assert asked[0].options == ["x", "y"]


def test_lines_of_old_macs_are_not_one_line() -> None:
    with pytest.raises(InputError, match="questions: lines that end with CR alone"):
        read_questions("A? | x | y\rB?\r")


def test_questions_are_read_and_written_by_the_line() -> None:
    assert read_questions(TEXT) == QUESTIONS
    assert read_questions(write_questions(QUESTIONS)) == QUESTIONS
    assert read_questions("") == []


@pytest.mark.parametrize(
    "text", ["| a | b", "x | a", "x | a | a", "x | number | a | b", "x\nx", "x |  | a", "x" * 301]
)
def test_what_is_no_question_is_told_with_its_line(text: str) -> None:
    with pytest.raises(InputError, match="line"):
        read_questions(text)


def test_answers_are_checked_one_by_one() -> None:
    for text, number in (("3,5", 3.5), ("0.125", 0.125)):  # no thousand begins with 0
        assert checked_answers(QUESTIONS, ["German", text, ""]) == {
            "First language?": "German",
            "Years of translating": number,
        }
    for answers, places in (
        (["French", "nan", "x" * 501], {0, 1, 2}),
        ([], {0, 1}),
        *((["German", number, ""], {1}) for number in ("1,000", "1.000", "12,500")),  # thousands or a point?
    ):
        with pytest.raises(WrongAnswers) as wrong:
            checked_answers(QUESTIONS, answers)
        assert set(wrong.value.messages) == places


def test_answers_come_with_the_consent_go_into_exports_and_are_forgotten_where_in_own_words(
    database: Database, tmp_path: Path
) -> None:
    make_campaign(database, questions=[question.model_dump() for question in QUESTIONS])
    rater = add_rater(database, consented=False)
    add_rater(database, "ben", consented=False)
    with pytest.raises(WrongAnswers):
        raters.consent(database, rater)
    assert not raters.welcome(database, rater).consented
    raters.consent(database, rater, ["English", "4", "=1+1"])
    answers = select(Rater.answers).where(Rater.id == rater)
    chosen = {"First language?": "English", "Years of translating": 4.0}
    assert one_of(database, answers) == {**chosen, "=Else?": "=1+1"}
    export_campaign(database, "c", "csv", tmp_path / "export", "test")
    with (tmp_path / "export" / "raters.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["rater", "First language?", "Years of translating", "'=Else?"],
            ["anna", "English", "4.0", "'=1+1"],
            ["ben", "", "", ""],
        ]
    raters.forget(database, rater, "test")
    assert one_of(database, answers) == chosen


@pytest.mark.parametrize("address", ["http://x.org", "javascript:alert(1)", "https://", "https://a b"])
def test_the_return_address_is_one_with_https(address: str) -> None:
    with pytest.raises(InputError, match="completion_url"):
        settings_of({"completion_url": address})
    assert settings_of(
        {"completion_url": "https://app.prolific.com/submissions/complete?cc=C1"}
    ).completion_url
