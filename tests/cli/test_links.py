"""Links of readers and organisers, and those of raters in each state of a campaign."""

import re
from typing import Any

import pytest
from sqlalchemy import update

from creamtea.store.tables import Rater

LINK = ("campaign", "link", "first")
LIST = ["raters", "list"]
TWO = ("--rater", "anna", "--rater", "ben")
SIGN_IN = ("--rater", "carl", "--subject", "c@b.org")


@pytest.fixture
def campaign(creamtea: Any) -> None:
    creamtea.draft_campaigns("first")


def test_links_for_raters_of_a_draft_and_of_a_closed_campaign(creamtea: Any, campaign: None) -> None:
    kinds = (("--rater", "anna"), ("--count", "2"), ("--participants",), SIGN_IN)
    for whom in kinds:
        draft = creamtea(*LINK, *whom)
        assert (draft.returncode, "http://" in draft.stdout) == (0, True), whom
        assert "`creamtea campaign launch first`" in draft.stderr
    creamtea("campaign", "launch", "first")
    for whom in (("--rater", "ben"), ("--participants",), SIGN_IN[:2]):
        launched = creamtea(*LINK, *whom)
        assert (launched.returncode, launched.stderr) == (0, ""), whom
    creamtea("campaign", "close", "first", "--reason", "enough")
    before = creamtea("links", "list").stdout
    for whom in kinds:
        assert "'first' is closed" in creamtea.refused(*LINK, *whom)
    assert creamtea("links", "list").stdout == before
    assert "/enter#" in creamtea(*LINK, "--organiser").stdout
    # a table is of links of raters
    for whom in (("--participants",), SIGN_IN):
        assert "--csv is for links of raters" in creamtea.refused(*LINK, *whom, "--csv")


# ---------------------------------------------------------------- several raters


def test_each_rater_that_is_named_gets_a_link(creamtea: Any, campaign: None) -> None:
    head, *rows = creamtea(*LINK, *TWO).stdout.splitlines()
    assert head == "rater,link"
    assert [row.split(",")[0] for row in rows] == ["anna", "ben"]
    for wrong in (("--rater", "ben"), ("--subject", "anna@example.org"), ("--count", "2"), ("--rater", "")):
        creamtea.refused(*LINK, *TWO, *wrong)


def test_none_of_several_raters_is_left_out(creamtea: Any, campaign: None) -> None:
    creamtea(*LINK, *TWO)
    for command, more, said in (
        (["revoke"], [], "1 link of {} revoked"),
        (["raters", "exclude"], ["--reason", "too fast"], "the ratings of {} no longer count"),
        (["raters", "forget"], ["--yes"], "the identity of {} is deleted"),
    ):
        unknown = creamtea("campaign", *command, "first", *TWO, "--rater", "carl", *more)
        assert (unknown.returncode, unknown.stdout) == (2, ""), "nothing was done"
        done = creamtea("campaign", *command, "first", *TWO, *more)
        assert done.stdout.splitlines() == [said.format("anna"), said.format("ben")]


def test_progress_does_not_say_who_raters_are(creamtea: Any, campaign: None) -> None:
    creamtea(*LINK, "--rater", "anna")
    who = {"name": "Annika Tee", "participant": "prolific-7", "answers": {"age?": "thirty-one"}}
    with creamtea.database() as database, database.transaction() as session:
        session.execute(update(Rater).values(**who))
    status, listed = (creamtea("campaign", *words, "first", "--json").stdout for words in (["status"], LIST))
    private = ("Annika", "prolific-7", "thirty-one")
    assert [words in status for words in private] == [False] * 3
    assert [words in listed for words in private] == [True] * 3
    assert '"pseudonym": "anna"' in status


# ---------------------------------------------------------------- links of readers and organisers


def test_links_are_listed_and_revoked(creamtea: Any) -> None:
    assert creamtea("links", "list").stdout == "no links\n"
    link = creamtea("link").stdout
    assert re.fullmatch(r"http://127\.0\.0\.1:8501/enter#[\w-]{43}\n", link)
    said = creamtea.refused("link", "--role", "rater")
    assert "--role must be reader or organiser, not 'rater'" in said
    secret = link.strip().split("#")[1]
    creamtea("link", "--role", "organiser")
    out = creamtea("links", "list").stdout
    minute = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
    assert re.fullmatch(
        rf"1  reader  created {minute}, expires {minute}\n2  organiser  created {minute}, expires {minute}\n",
        out,
    )
    assert secret not in out + creamtea("links", "list", "--json").stdout
    assert creamtea("links", "revoke", "1").stdout == "link 1 revoked\n"
    assert [one["role"] for one in creamtea.json("links", "list")] == ["organiser"]
    every = creamtea.json("links", "list", "--all")
    assert [one["revoked_at"] is None for one in every] == [False, True]
    assert f"revoked {every[0]['revoked_at'][:10]}" in creamtea("links", "list", "--all").stdout
    for number, why in (("1", "link 1 is already revoked"), ("7", "there is no link 7")):
        assert creamtea.refused("links", "revoke", number).startswith(f"creamtea: {why}")


def test_a_link_to_one_report_names_its_study(creamtea: Any) -> None:
    assert "no study" in creamtea.refused("link", "--study", "none")
    creamtea.refused("link", "--study", "none", "--role", "organiser")
    creamtea.refused("link", "--days", "0")
    assert creamtea("links", "list").stdout == "no links\n"
