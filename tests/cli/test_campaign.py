"""`creamtea campaign`: from the draft to the end on the command line, and input that is wrong."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, call
from rated_study import fill_study
from sqlalchemy import select

from creamtea.human import rating as assignment
from creamtea.human.making.campaigns import summaries
from creamtea.human.rating import raters
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import AccessToken, Rater

CREATE = ["--study", "jam", "--test-set", "test", "--systems", "plain, beam ,scones"]
NO_CONTROLS = ["--set", "controls={bad_references: 0, repeats: 0}"]


@pytest.fixture
def database(creamtea: Any) -> Iterator[Database]:
    with creamtea.database() as opened:
        fill_study(opened)
        yield opened


def settings(*given: str) -> list[str]:
    return [word for one in given for word in ("--set", one)]


def create(creamtea: Any, *more: str, name: str = "first") -> Done:
    return creamtea("campaign", "create", name, *CREATE, *NO_CONTROLS, *more)


def make(creamtea: Any, *more: str) -> None:
    assert create(creamtea, *more).returncode == 0


def test_a_file_is_begun_for_what_the_study_has(creamtea: Any, database: Database) -> None:
    for wrong in (["--systems", "plain,nvs"], ["--test-set", "dev"]):
        assert "study 'jam' has no" in creamtea.refused("campaign", "init", "jam", *wrong)
    assert not (creamtea.folder / "campaign.yaml").exists()
    begun = creamtea("campaign", "init", "jam", "--systems", "plain,beam")
    assert (begun.returncode, begun.stderr) == (0, "")
    assert creamtea.json("campaign", "validate", "campaign.yaml")["campaign"]["systems"] == ["plain", "beam"]


def test_documents_on_pages(creamtea: Any, database: Database, tmp_path: Path) -> None:
    documents = tmp_path / "test.docs"
    documents.write_text("x\nx\nx\ny\ny\n")
    given = settings("sample.unit=document", f"documents={documents}", "sample.segments_per_page=2")
    given += ["--protocol", "da", *settings("protocol.document_score=true")]
    made = create(creamtea, *given).stdout
    # two systems say the same on one page, but not in the whole document, which has a score
    assert "15 items of 3 systems (15 rated) on 9 pages, a draft" in made
    previewed = creamtea("campaign", "preview", "first").stdout
    assert "pages       9, 0.8 minutes each on average\n" in previewed
    assert "drawn       2 of 2 documents, 5 of 5 segments; the test set has 5" in previewed
    creamtea("campaign", "launch", "first")
    assert "15 items on 9 pages\n" in creamtea("campaign", "status", "first").stdout
    refused = create(creamtea, *settings("sample.unit=document"), name="other")
    assert (refused.returncode, "sample.unit document needs documents" in refused.stderr) == (2, True)
    refused = create(creamtea, *settings("protocol.show_reference=[a]"), name="other")
    assert 'protocol.show_reference[0]: found "a", allowed a whole number' in refused.stderr


def test_from_the_draft_to_the_end(creamtea: Any, database: Database) -> None:
    """Each command's words and its JSON."""
    made = create(creamtea, "--ratings", "2")
    what, doubt, then = made.stdout.splitlines()
    assert {"first", "4 items", "3 systems"} <= set(re.findall(r"first|\d items|\d systems", what))
    assert "decide little" in doubt
    assert "creamtea campaign preview first" in then
    made = json.loads(create(creamtea, "--json", name="second").stdout)
    assert (made["name"], made["state"], made["items"], made["kinds"]) == ("second", "draft", 4, {"rated": 4})
    previewed = creamtea("campaign", "preview", "first").stdout
    assert "items       4 rated\n" in previewed
    assert "drawn       4 of 4 segments; the test set has 5, the systems differ on 4\n" in previewed
    assert "ratings     8 (2 per item), 1 minute each\n" in previewed
    preview = creamtea.json("campaign", "preview", "first")
    assert (preview["units"], preview["delta"], preview["drawn"]["differing"]) == (4, 0.1, 4)
    launched = creamtea("campaign", "launch", "first").stdout
    assert re.match(r"campaign first is launched; registered as [0-9a-f]{16}\n", launched)
    link = creamtea("campaign", "link", "first", "--rater", "anna", "--url", "https://rate.example/")
    assert re.fullmatch(r"https://rate\.example/enter#[\w-]{43}\n", link.stdout)
    rate_one(database)
    status = creamtea("campaign", "status", "first").stdout
    assert status.startswith("campaign first: launched, contrastive-da, study jam, test\n")
    assert "unchanged since\n" in status
    assert re.search(r"  rated +4 items, 1 of 8 ratings, 0 complete\n", status)
    assert "  anna: 1 rated, 0 skipped, last 2" in status
    status = creamtea.json("campaign", "status", "first")
    assert (status["state"], status["changed"]) == ("launched", [])
    assert status["kinds"] == [
        {"kind": "rated", "items": 4, "passed_over": 0, "wanted": 8, "submitted": 1, "complete": 0}
    ]
    assert [(one["pseudonym"], one["submitted"]) for one in status["raters"]] == [("anna", 1)]
    registered = creamtea.json("campaign", "launch", "second")
    assert creamtea.json("campaign", "status", "second")["registered"] == registered
    assert {one["name"] for one in creamtea.json("campaign", "list")} == {"first", "second"}
    assert creamtea.json("campaign", "raters", "list", "first")[0]["consented_at"].startswith("20")
    closed = creamtea("campaign", "close", "first", "--reason", "enough")
    assert closed.stdout == "campaign first is closed\n"
    log = [line.split("UTC  ")[1] for line in creamtea("campaign", "log", "first").stdout.splitlines()]
    assert log == [
        "command line  campaign created",
        "command line  campaign launched",
        "command line  rater added anna",
        "command line  link created anna",
        "anna  rater consented anna",
        "command line  campaign closed: enough",
    ]
    assert creamtea.json("campaign", "log", "first")[0]["action"] == "campaign created"


def test_commands_to_copy_are_quoted(creamtea: Any, database: Database) -> None:
    name = "tea & jam"
    *_, then = create(creamtea, name=name).stdout.splitlines()
    copied = then.removeprefix("next: ").split(", then ")
    wanted = [["creamtea", "campaign", command, name] for command in ("preview", "launch")]
    assert [shlex.split(command) for command in copied] == wanted
    launched = creamtea("campaign", "launch", name).stdout
    status = creamtea("campaign", "status", name).stdout
    for said in (launched.partition("next: ")[2], status.partition("no raters yet: ")[2]):
        assert shlex.split(said) == ["creamtea", "campaign", "link", name, "--rater", "PSEUDONYM"]


def rate_one(database: Database) -> None:
    rater = raters.find(database, "first", "anna")
    raters.consent(database, rater)
    work = assignment.next_item(database, rater)
    assignment.submit(database, rater, work.assignment_id, [5] * len(work.outputs))


def test_disputes_are_listed_and_given_to_one_more_rater(creamtea: Any, database: Database) -> None:
    make(creamtea, "--set", "raters.ratings_per_item=2")
    creamtea("campaign", "launch", "first")
    for name, step in (("anna", 0), ("ben", 20)):
        creamtea("campaign", "link", "first", "--rater", name)
        rater = raters.find(database, "first", name)
        raters.consent(database, rater)
        while (work := assignment.next_item(database, rater)) is not None:
            assignment.submit(database, rater, work.assignment_id, [step] * len(work.outputs))
    listed = creamtea("campaign", "disputes", "first").stdout
    assert "segment 1, plain: anna 1, ben 5\n" in listed
    assert re.search(r"(\d+) of \1 outputs with two raters or more have ratings 2.5 points apart", listed)
    assert "0 of " in creamtea("campaign", "disputes", "first", "--apart", "4.5").stdout
    asked = creamtea("campaign", "disputes", "first", "--ask", "--reason", "paper").stdout
    assert "4 pages given to one more rater" in asked
    assert "segment 1, plain: anna 1, ben 5; third rating: asked for\n" in asked
    assert re.search(
        r"third ratings +4 items, 0 of 4 ratings", creamtea("campaign", "status", "first").stdout
    )
    assert "have a third rating or wait for one" in creamtea.refused("campaign", "disputes", "first", "--ask")


@pytest.mark.slow
def test_raters_are_excluded_included_revoked_and_forgotten(creamtea: Any, database: Database) -> None:
    make(creamtea)
    creamtea("campaign", "launch", "first")
    creamtea("campaign", "link", "first", "--rater", "anna")
    rate_one(database)
    anna = ["first", "--rater", "anna"]
    reported = creamtea("campaign", "raters", "report", "first").stdout
    assert reported.startswith("anna: too little to judge yet (1 answer)\n")
    reported = creamtea("campaign", "raters", "report", *anna).stdout
    assert "\n  signs of reading: unknown: no controls, and nobody else's scores; flagged if p " in reported
    [one] = creamtea.json("campaign", "raters", "report", "first")
    assert (one["rater"], one["answers"], one["flags"], one["looks"]) == ("anna", 1, [], [])
    assert {"name", "state", "value", "threshold"} < one["checks"][0].keys()
    out = creamtea("campaign", "raters", "exclude", *anna, "--reason", "too fast")
    assert "anna" in out.stdout
    assert "(excluded)" in creamtea("campaign", "raters", "list", "first").stdout
    assert creamtea.json("campaign", "status", "first")["kinds"][0]["submitted"] == 0
    assert "'anna'" in creamtea.refused("campaign", "raters", "exclude", *anna, "--reason", "too fast")
    creamtea.refused("campaign", "raters", "include", *anna, "--reason", " ")
    creamtea("campaign", "raters", "include", *anna, "--reason", "by mistake")
    assert creamtea.json("campaign", "status", "first")["kinds"][0]["submitted"] == 1
    assert creamtea("campaign", "revoke", *anna).stdout == "1 link of anna revoked\n"
    assert creamtea("campaign", "raters", "forget", *anna, "--yes").returncode == 0
    assert "(identity deleted)" in creamtea("campaign", "raters", "list", "first").stdout
    assert "anna" in creamtea.refused("campaign", "link", *anna)


def test_raters_and_organisers_may_sign_in_instead(creamtea: Any, database: Database) -> None:
    make(creamtea)
    anna = ("campaign", "link", "first", "--rater", "anna")
    dora = ("campaign", "link", "first", "--organiser", "--subject", "Dora@example.org")
    url = ("--url", "https://rate.example/")
    for command in ((*anna, "--subject", "Anna@example.org"), dora):
        assert re.fullmatch(r"https://rate\.example/login\?campaign=\d+\n", creamtea(*command, *url).stdout)
    with database.session() as session:
        assert session.scalars(select(Rater.subject)).all() == ["anna@example.org"]
        assert session.scalars(select(AccessToken.subject)).all() == ["dora@example.org"]
    assert "rater's sign-in set anna" in creamtea("campaign", "log", "first").stdout
    assert "verified" in creamtea.refused(*anna, "--subject", "anna")
    facts = "created .*, expires .*, 0 browsers signed in"
    signs_in = rf"1  organiser of first, signs in as dora@example\.org  {facts}\n"
    assert re.fullmatch(signs_in, creamtea("links", "list").stdout)
    assert "`creamtea links revoke 1` ends that" in creamtea.refused(*dora)
    assert creamtea("links", "revoke", "1").stdout == "link 1 revoked\n"
    assert creamtea("links", "list").stdout == "no links\n"
    assert "dora" not in creamtea("campaign", "log", "first").stdout.lower()


def test_many_raters_participants_readers_and_organisers_get_links(creamtea: Any, database: Database) -> None:
    make(creamtea)
    (creamtea.folder / "people.txt").write_text("anna\r\n\nName\u2028Two\n", encoding="utf-8", newline="")
    link = ("campaign", "link", "first")
    named = ["anna", "Name Two"]  # U+2028 ends no line
    for options, who in ((["--raters", "people.txt"], named), (["--count", "1"], ["rater-03"])):
        head, *rows = creamtea(*link, *options).stdout.splitlines()
        assert head == "rater,link"
        assert [row.split(",")[0] for row in rows] == who
        assert all("/enter#" in row for row in rows)
    address = creamtea(*link, "--participants", "--url", "https://x.org").stdout
    assert address.startswith("https://x.org/enter?PROLIFIC_PID={{%PROLIFIC_PID%}}&")
    assert "/enter#" in creamtea(*link, "--organiser").stdout
    assert "/enter#" in creamtea(*link, "--viewer").stdout
    assert "link created reader" in creamtea("campaign", "log", "first").stdout
    listed = creamtea("links", "list").stdout
    assert all(f"{whose} of first" in listed for whose in ("participants", "reader", "organiser"))
    for wrong in ([], ["--organiser", "--rater", "anna"], ["--count", "2", "--participants"]):
        assert "--rater PSEUDONYM" in creamtea.refused(*link, *wrong)


def test_wrong_input_is_one_line_and_exit_code_2(creamtea: Any, database: Database, tmp_path: Path) -> None:
    (tmp_path / "nul.md").write_bytes(b"a\0")
    (tmp_path / "latin.md").write_bytes(b"a\xe4")
    amount = "allowed a number of items, or a share below 1"
    for given, message in {
        "controls.repeats=many": f'controls.repeats: found "many", {amount}',
        "controls.repeats=1.2": f"controls.repeats: found 1.2, {amount}",
        "raters.instructions=none.md": "none.md: no such file",
        "raters.instructions=nul.md": "nul.md: holds a NUL character",
        "raters.instructions=latin.md": "latin.md, line 1: not UTF-8 text: save it",
        "delta=0.0": "delta: found 0.0, allowed more than 0",
        "baseline=nvs": "--set baseline=nvs: baseline: 'nvs' does not take part",
    }.items():
        assert_refused(create(creamtea, "--set", given), message)
    assert_refused(create(creamtea, "--systems", ","), "--systems: give names with commas between them")
    zero = "--set sample.items=0: sample.items: found 0, allowed at least 1"
    assert_refused(create(creamtea, "--items", "0"), zero)
    assert creamtea.json("campaign", "list") == []
    assert create(creamtea, "--set", "controls.repeats=0.5").returncode == 0
    for command in ("status", "launch", "revoke --rater anna"):
        assert "'second'" in creamtea.refused("campaign", *command.split(), "second")
    for arguments in (("status",), ("link", "first", "--rater")):
        assert_refused(creamtea("campaign", *arguments, "caf\udce9"), r"'caf\udce9' is not UTF-8 text")


def assert_refused(done: Done, message: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1 + ("1 mistake in" in done.stderr)


def test_a_campaign_file_without_keys_is_told_those_of_a_campaign(creamtea: Any, tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("- name: x\n")
    assert "a block of keys (name, study, " in creamtea.refused("campaign", "create", tmp_path / "list.yaml")


def test_a_campaign_that_is_removed_is_gone(creamtea: Any) -> None:
    creamtea.draft_campaigns("first")
    creamtea("campaign", "launch", "first")
    assert "creamtea campaign close first" in creamtea.refused("campaign", "rm", "first", "--yes")
    creamtea("campaign", "close", "first", "--reason", "a trial")
    remove = (creamtea.environment, "campaign", "rm", "first", "--json")
    asked = call(*remove, folder=creamtea.folder, given="n\n")
    assert asked.returncode == 1
    assert re.search(
        r"remove campaign first with \d+ items, 0 raters and 0 item ratings for good\?", asked.stderr
    )
    removed = call(*remove, folder=creamtea.folder, given="y\n")  # the question is not part of the JSON
    assert json.loads(removed.stdout)["campaign"] == "first"
    assert "no campaign 'first'" in creamtea("campaign", "status", "first").stderr
    creamtea.refused("campaign", "rm", "first", "--yes")


def test_how_many_outputs_an_item_shows(creamtea: Any, database: Database) -> None:
    for protocol, shown in (("contrastive-da", "× 3"), ("preference", "of 3")):
        made = create(creamtea, "--protocol", protocol, name=protocol)
        assert f" items {shown} systems (" in made.stdout


# ---------------------------------------------------------------- of a study's file


STUDY = """\
name: jam
languages: {source: en, target: de}
test_sets: {test: {kind: files, source: s, target: t}}
systems:
  plain: {outputs: {test: p}}
  beam: {outputs: {test: b}}
  scones: {outputs: {test: s}}
baseline: plain
campaigns:
  first: &campaign
    test_set: test
    systems: [plain, beam]
    protocol: {kind: contrastive-da}
    raters: {instructions: read.md}
    controls: {bad_references: 0, repeats: 0}
  second:
    <<: *campaign
    systems: [plain, scones]
"""


def test_all_campaigns_of_a_study_are_made_or_none(creamtea: Any, database: Database, tmp_path: Path) -> None:
    (tmp_path / "read.md").write_text("Read the source first.")
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    create = ("campaign", "create", str(study))
    said = creamtea.refused(*create, "--set", "campaigns.second.sample.differ_between=[plain, beam]")
    assert "campaigns.second.sample.differ_between=[plain, beam]: " in said
    assert summaries(database) == []
    refused = creamtea(*create, "--items", "3")
    assert "--set campaigns.NAME.sample.items=50" in refused.stderr
    done = creamtea(*create, "--set", "campaigns.second.sample.items=2")
    assert done.stdout.count("a draft\n") == 2
    made = {campaign.name: campaign for campaign in summaries(database)}
    assert {name: (campaign.items, campaign.study) for name, campaign in made.items()} == {
        "first": (4, "jam"),
        "second": (2, "jam"),
    }
    with database.session() as session:
        assert find_campaign(session, "first").instructions == "Read the source first."


def test_a_studys_campaigns_are_checked_with_the_study(creamtea: Any, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY.replace("[plain, scones]", "[plain, scone]").replace("read.md", "gone.md"))
    refused = creamtea("validate", str(study)).stderr
    assert 'study.yaml:18: systems: found "scone", allowed one of plain, beam, scones' in refused
    assert "(did you mean scones?)" in refused
    assert "study.yaml:14: raters.instructions: " in refused
    (tmp_path / "read.md").write_text("Read.")
    study.write_text(f"{STUDY}    documents: gone.docs\n")
    assert "study.yaml:19: documents: " in creamtea("validate", str(study)).stderr
    study.write_text(STUDY.partition("campaigns:")[0])
    assert "is a study without campaigns" in creamtea("campaign", "create", str(study)).stderr
    assert "is a study: `creamtea validate" in creamtea("campaign", "validate", str(study)).stderr
