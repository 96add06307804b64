"""The organiser's pages by AppTest: a campaign from its form to its end, raters, reports, exchange."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from filled_study import HOSTILE, SPEC, fill_study, lines
from limits import ANSWER
from ready_campaigns import launched_campaign
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

import creamtea_webapp
from creamtea.human import access, assignment, audit, campaigns, raters
from creamtea.human.access import Identity
from creamtea.human.quality import reports_of
from creamtea.human.settings import CampaignSettings
from creamtea.store.database import Database
from creamtea.store.tables import AccessToken, AuditEvent, Campaign, Item, Rater
from creamtea_webapp import session
from creamtea_webapp.pages.organise import reports as pages_reports

SCRIPT = Path(creamtea_webapp.__file__).parent / "script" / "entry.py"
ORGANISER = Identity(7, "organiser")
HOSTILE_NAME = "<script>x</script> *a* $x$"

Visit = Callable[..., AppTest]


@pytest.fixture
def filled(sqlite_template: Path, tmp_path: Path) -> Any:
    from creamtea.store.database import open_database

    path = tmp_path / "creamtea.db"
    path.write_bytes(sqlite_template.read_bytes())
    database = open_database(f"sqlite:///{path}")
    fill_study(database, HOSTILE + lines(36))
    yield database
    database.close()


@pytest.fixture
def visit(filled: Database, monkeypatch: pytest.MonkeyPatch) -> Visit:
    """`visit(campaign=3, view="log")`: the app at this address, as an organiser."""
    monkeypatch.setattr(session, "database", lambda: filled)
    monkeypatch.setattr(session, "identity", lambda: ORGANISER)

    def open_address(**query: Any) -> AppTest:
        app = AppTest.from_file(str(SCRIPT), default_timeout=ANSWER)
        for name, value in query.items():
            app.query_params[name.rstrip("_")] = str(value)
        return ran(app.run())

    return open_address


def ran(app: AppTest) -> AppTest:
    assert not app.exception, [one.message for one in app.exception]
    return app


def shown(app: AppTest) -> str:
    return "\n".join(element.proto.body for element in app.get("html"))


def press(app: AppTest, key: str) -> AppTest:
    return ran(app.button(key=key).click().run())


def rated_campaign(database: Database) -> tuple[campaigns.CampaignSummary, list[int]]:
    """A launched campaign with two raters who answered twelve items each."""
    made = launched_campaign(
        database,
        "tasting",
        study="quagga",
        test_set="narwhal",
        systems=["tapir-greedy", "tapir-nvs"],
        ratings_per_item=2,
        settings=CampaignSettings(items=10, bad_references=2, repeats=0),
    )
    people = [raters.add(database, "tasting", "test", pseudonym=name) for name in ("anna", HOSTILE_NAME)]
    draw = random.Random(1)
    with database.transaction() as writing:
        for one in people:
            writing.get_one(Rater, one).consented_at = database.now(writing)
    for one in people:
        while (work := assignment.next_item(database, one)) is not None:
            steps = [draw.randrange(26) for _ in work.outputs]
            assignment.submit(database, one, work.assignment_id, steps, active_ms=draw.randrange(50))
    return made, people


def campaign_row(database: Database, name: str) -> Campaign:
    with database.session() as reading:
        return reading.scalars(select(Campaign).where(Campaign.name == name)).one()


def actions(database: Database) -> list[tuple[str, str]]:
    with database.session() as reading:
        return [tuple(row) for row in reading.execute(select(AuditEvent.actor, AuditEvent.action))]


@pytest.mark.slow
def test_a_campaign_from_the_form_to_its_end(filled: Database, visit: Visit) -> None:
    app = visit(campaigns="new")
    app.text_input(key="campaign-name").set_value("scones")
    app.number_input(key="campaign-items").set_value(12)
    app.number_input(key="campaign-ratings_per_item").set_value(2)
    app.text_area(key="campaign-instructions").set_value("*Read* twice.")
    press(app, "make")
    row = campaign_row(filled, "scones")
    assert (row.state, row.ratings_per_item, row.instructions) == ("draft", 2, "*Read* twice.")
    assert row.settings["items"] == 12
    assert app.query_params["campaign"] == str(row.id)  # the draft's page with its preview
    page = shown(app)
    for word in (
        "contrastive direct assessment",
        "rater hours",
        "power",
        "12 rated",
        "The draft has 14 items.",
        "segments",
    ):
        assert word in page, word

    press(app, "launch")
    row = campaign_row(filled, "scones")
    assert row.state == "launched"
    assert row.registered is not None
    assert f"Registered at the launch as <code>{row.registered['digest'][:16]}" in shown(app)
    assert "0 of 28 item ratings" in shown(app)
    assert "launch" not in {one.key for one in app.button}

    app.text_input(key="close-reason").set_value("enough")
    press(app, "close")
    assert campaign_row(filled, "scones").state == "closed"
    who = "organiser, session 7"
    assert actions(filled) == [(who, audit.CREATED), (who, audit.LAUNCHED), (who, audit.CLOSED)]
    assert "enough" in shown(visit(campaign=row.id, view="log"))


def test_a_mistake_in_the_form_is_told_in_its_own_words_and_makes_nothing(
    filled: Database, visit: Visit
) -> None:
    app = visit(campaigns="new")
    app.text_input(key="campaign-name").set_value("scones")
    app.multiselect(key="campaign-systems-quagga").set_value(["tapir-greedy"])
    press(app, "make")
    assert "name them with “Systems”" in shown(app)
    assert campaigns.summaries(filled) == []
    app.multiselect(key="campaign-systems-quagga").set_value(["tapir-nvs", "dugong-greedy"])
    press(app, "make")  # the baseline is still the study's, which does not take part
    assert "“Baseline” is one of tapir-nvs, dugong-greedy" in shown(app)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "select", "fields"),
    [
        ("da-sqm", "stratified", {"campaign-items": 5}),
        ("preference", "differing", {}),
        ("contrastive-da", "disagreement", {"campaign-items": 6}),
    ],
)
def test_the_form_makes_every_kind_of_campaign(
    filled: Database, visit: Visit, protocol: str, select: str, fields: dict[str, int]
) -> None:
    app = visit(campaigns="new")
    app.text_input(key="campaign-name").set_value("kind")
    app.selectbox(key="campaign-protocol").set_value(protocol).run()
    app.selectbox(key=f"campaign-select-{protocol}").set_value(select).run()
    for key, value in fields.items():
        app.number_input(key=key).set_value(value)
    if select == "disagreement":
        app.multiselect(key="campaign-metrics").set_value(["bleu"])
    if protocol == "preference":
        app.selectbox(key="campaign-pairs").set_value("baseline")
        app.multiselect(key="campaign-differ_between-quagga").set_value(["tapir-greedy", "tapir-nvs"])
    press(app, "make")
    assert "The draft has" in shown(app)
    row = campaign_row(filled, "kind")
    assert (row.protocol, row.settings["select"]) == (protocol, select)
    if protocol == "preference":
        assert row.settings["pairs"] == "baseline"
        assert row.settings["differ_between"] == ["tapir-greedy", "tapir-nvs"]


def test_a_draft_is_made_anew_with_what_it_had(filled: Database, visit: Visit) -> None:
    settings = CampaignSettings(items=8, bad_references=3, consent="I agree.", delta=0.4)
    made = campaigns.create_campaign(
        filled,
        "first",
        campaigns.CampaignRequest(
            study="quagga",
            test_set="narwhal",
            systems=["tapir-nvs", "tapir-greedy"],
            settings=settings,
            ratings_per_item=3,
            seed=9,
            instructions="Read.",
        ),
    )
    app = visit(campaigns="new", from_=made.id)
    app.number_input(key="campaign-items").set_value(9)
    press(app, "make")
    row = campaign_row(filled, "first")
    assert row.id == made.id
    assert row.settings["items"] == 9
    assert (row.systems, row.ratings_per_item, row.seed) == (["tapir-nvs", "tapir-greedy"], 3, 9)
    assert (row.settings["bad_references"], row.settings["consent"], row.settings["delta"]) == (
        3,
        "I agree.",
        0.4,
    )


def test_a_draft_keeps_metrics_whose_stored_names_are_not_their_kinds(filled: Database, visit: Visit) -> None:
    metrics = [{"kind": "bleu"}, {"kind": "chrf", "word_order": 2}]
    fill_study(filled, HOSTILE + lines(36), SPEC | {"name": "quince", "metrics": metrics})
    settings = CampaignSettings(select="disagreement", items=8, metrics=["chrf++"])
    made = campaigns.create_campaign(
        filled,
        "first",
        campaigns.CampaignRequest(
            study="quince", test_set="narwhal", systems=["tapir-nvs", "tapir-greedy"], settings=settings
        ),
    )
    app = visit(campaigns="new", from_=made.id)
    field = app.multiselect(key="campaign-metrics")
    assert (field.options, field.value) == (["bleu", "chrf++"], ["chrf++"])
    press(app, "make")
    assert campaign_row(filled, "first").settings["metrics"] == ["chrf++"]


def test_a_draft_without_a_name_says_so_at_the_field_and_the_button(filled: Database, visit: Visit) -> None:
    app = visit(campaigns="new")
    press(app, "make")
    told = [
        element.proto.body for element in app.get("html") if "Enter a campaign name" in element.proto.body
    ]
    assert len(told) == 2
    app.text_input(key="campaign-name").set_value("scones")
    app.text_area(key="campaign-questions").set_value("Language? | German")
    press(app, "make")
    assert "line 1" in shown(app)
    app.text_area(key="campaign-questions").set_value("Language? | German | English")
    app.text_input(key="campaign-completion_url").set_value(
        "https://app.prolific.com/submissions/complete?cc=C"
    )
    press(app, "make")
    settings = campaign_row(filled, "scones").settings
    assert settings["questions"][0]["options"] == ["German", "English"]
    assert settings["completion_url"].endswith("cc=C")


def test_many_raters_get_a_file_of_links_and_participants_one_link(filled: Database, visit: Visit) -> None:
    made = launched_campaign(
        filled, "tasting", study="quagga", test_set="narwhal", systems=["tapir-greedy", "tapir-nvs"]
    )
    app = visit(campaign=made.id, view="raters")
    app.text_area(key="many-pseudonyms").set_value("anna\nben")
    ran(next(one for one in app.button if one.label.startswith("Make links")).click().run())
    assert "2 links made" in shown(app)
    assert app.session_state["organise-links"][1].count("/enter#") == 2
    press(app, "recruit")
    assert "organise-links" not in app.session_state
    assert "PROLIFIC_PID=" in app.code[0].value


def test_a_rater_is_added_and_the_link_is_shown_until_the_next_action(filled: Database, visit: Visit) -> None:
    made = launched_campaign(
        filled, "tasting", study="quagga", test_set="narwhal", systems=["tapir-greedy", "tapir-nvs"]
    )
    app = visit(campaign=made.id, view="raters")
    app.text_input(key="add-name").set_value("Anna Example")
    ran(app.button[0].click().run())
    (link,) = [one.value for one in app.code]
    assert "/enter#" in link
    assert access.exchange(filled, link.split("#")[1]).role == "rater"
    assert "Anna Example" in shown(app)
    with filled.session() as reading:
        secrets = " ".join(reading.scalars(select(AccessToken.digest)))
    assert link.split("#")[1] not in secrets + str(actions(filled))
    ran(app.button[0].click().run())
    assert [one.value for one in app.code] != [link]


def test_a_rater_who_signs_in_gets_an_address_and_no_link(
    filled: Database, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = launched_campaign(
        filled, "tasting", study="quagga", test_set="narwhal", systems=["tapir-greedy", "tapir-nvs"]
    )
    for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET"):
        monkeypatch.setenv(f"CREAMTEA_OIDC_{name}", "https://id.example.org")
    app = visit(campaign=made.id, view="raters")
    app.text_input(key="add-subject").set_value("anna")
    ran(app.button[0].click().run())
    assert "e-mail address" in shown(app)
    app.text_input(key="add-subject").set_value("Anna@example.org")
    ran(app.button[0].click().run())
    assert f"/login?campaign={made.id}" in shown(app)
    with filled.session() as reading:
        assert reading.scalars(select(Rater.subject)).all() == ["anna@example.org"]
        assert reading.scalars(select(AccessToken.id)).all() == []


@pytest.mark.slow
def test_reports_and_decisions_about_a_rater(filled: Database, visit: Visit) -> None:
    made, (anna, hostile) = rated_campaign(filled)
    listed = shown(visit(campaign=made.id, view="raters"))
    assert "look at" in listed
    assert "&lt;script&gt;x&lt;/script&gt; *a* $x$" in listed
    assert "<script>" not in listed

    app = visit(campaign=made.id, view="raters", rater=anna)
    page = shown(app)
    for word in ("bad references", "only 2 pairs, 5 are needed", "agreement", "severity", "words per minute"):
        assert word in page, word
    assert len(app.get("vega_lite_chart")) == 2
    press(app, "decide")  # without a reason
    assert "say why" in shown(app)
    app.text_area(key="reason").set_value("answers at random <b>")
    press(app, "decide")
    assert raters.overview(filled, made.id)[0].excluded_at is not None
    app.text_area(key="reason").set_value("a mistake of mine")
    press(app, "decide")
    assert raters.overview(filled, made.id)[0].excluded_at is None
    log = shown(visit(campaign=made.id, view="log"))
    assert "answers at random &lt;b&gt;" in log
    assert "a mistake of mine" in log

    app = visit(campaign=made.id, view="raters", rater=hostile)
    app.text_input(key="forget-confirmation").set_value("anna")
    press(app, "forget")
    assert raters.overview(filled, made.id)[1].forgotten_at is None
    app.text_input(key="forget-confirmation").set_value(HOSTILE_NAME)
    press(app, "forget")
    assert raters.overview(filled, made.id)[1].forgotten_at is not None
    assert "new-link" not in {one.key for one in app.button}


@pytest.mark.slow
def test_an_export_is_downloaded_and_imported_again(filled: Database, visit: Visit) -> None:
    made, _ = rated_campaign(filled)
    app = visit(campaign=made.id)
    press(app, "export")
    name, data = app.session_state["organise-export"]
    assert name == "tasting-csv.zip"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
    assert audit.EXPORTED in [action for _, action in actions(filled)]

    app = visit(campaigns="import")
    app.text_input(key="import-name").set_value("again")
    app.file_uploader(key="import-file").set_value([(name, data, "application/zip")])
    ran(app.button[0].click().run())
    assert "Campaign again: " in shown(app)
    again = campaign_row(filled, "again")
    assert (again.study_id, again.state) == (None, "closed")
    assert "imported ratings" in shown(visit(campaign=again.id))
    listing = shown(visit(campaigns="all"))
    assert "again" in listing
    assert "tasting" in listing


SCORES = b"""anna,ONLINE-A,1,TGT,eng,ces,60,news.1,False,1.0,2.5
anna,ONLINE-B,1,TGT,eng,ces,70,news.1,False,3.0,4.0
anna,ONLINE-A,1,TGT,eng,ces,80,news.2,False,5.0,6.0
"""
TEXTS = {
    "sources": ("source.txt", b"one\n<b>two</b>\nthree\n"),
    "documents": ("docs.tsv", b"news\tnews.1\nnews\tnews.1\nnews\tnews.2\n"),
}
OUTPUTS = [("ONLINE-A.txt", b"a1\na2\na3\n"), ("ONLINE-B.txt", b"b1\nb2\nb3\n")]


def import_page(visit: Visit, kind: str, outputs: list[tuple[str, bytes]]) -> AppTest:
    """The page with scores of Appraise and their texts, sent off."""
    app = visit(campaigns="import")
    app.text_input(key="import-name").set_value("wmt")
    app.selectbox(key="import-kind").set_value(kind)
    app.file_uploader(key="import-file").set_value([("scores.csv", SCORES, "text/csv")])
    for name, (file, text) in TEXTS.items():
        app.file_uploader(key=f"import-{name}").set_value([(file, text, "text/plain")])
    app.file_uploader(key="import-outputs").set_value([(*one, "text/plain") for one in outputs])
    return ran(app.button[0].click().run())


def test_scores_of_appraise_are_imported_with_their_texts(filled: Database, visit: Visit) -> None:
    app = import_page(visit, "appraise", OUTPUTS)
    assert "Campaign wmt: 3 ratings by 1 rater, 3 items, 2 systems" in shown(app)
    row = campaign_row(filled, "wmt")
    with filled.session() as reading:
        items = reading.scalars(select(Item).where(Item.campaign_id == row.id).order_by(Item.position))
        found = [(one.segment_index, one.source, one.outputs) for one in items]
    assert found == [(0, "one", ["a1"]), (0, "one", ["b1"]), (2, "three", ["a3"])]
    assert "English (eng) → Czech (ces)" in shown(visit(campaign=row.id))


@pytest.mark.parametrize(
    ("kind", "outputs", "told"),
    [
        ("csv", OUTPUTS, "“Sources”, “Outputs” and “Documents” are only for Appraise scores"),
        ("appraise", [("ONLINE-Z.txt", b"z\n")], "“Outputs” ONLINE-Z: the file has no such system"),
        ("appraise", [OUTPUTS[0]] * 2, "“Outputs”: two files for the system"),
        ("appraise", [("ONLINE-A.txt", b"a1\n")], "“Outputs” ONLINE-A: 1 lines in the file"),
    ],
)
def test_texts_that_do_not_fit_store_nothing(
    filled: Database, visit: Visit, kind: str, outputs: list[tuple[str, bytes]], told: str
) -> None:
    assert told in shown(import_page(visit, kind, outputs))
    assert campaigns.summaries(filled) == []


def test_a_zip_with_folders_or_no_zip_is_refused(filled: Database, visit: Visit) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../campaign.json", "{}")
    for data, told in ((packed.getvalue(), "in a folder"), (b"PK nonsense", "not a zip file")):
        app = visit(campaigns="import")
        app.text_input(key="import-name").set_value("again")
        app.file_uploader(key="import-file").set_value([("x.zip", data, "application/zip")])
        ran(app.button[0].click().run())
        assert told in shown(app)
    assert campaigns.summaries(filled) == []


def test_an_unknown_campaign_is_told(visit: Visit) -> None:
    for query in ({"campaign": 99}, {"campaign": "x"}, {"campaign": 99, "view": "log"}):
        assert "No such campaign" in shown(visit(**query))


@pytest.mark.slow
def test_reports_are_kept_until_a_rating_comes(
    filled: Database, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign, people = rated_campaign(filled)
    computed = []

    def counted(database: Database, campaign_id: int) -> Any:
        computed.append(campaign_id)
        return reports_of(database, campaign_id)

    monkeypatch.setattr(pages_reports, "reports_of", counted)
    st.cache_resource.clear()
    first = visit(campaign=campaign.id, view="raters")
    assert "look at" in shown(first) or "nothing to look at" in shown(first)
    assert shown(visit(campaign=campaign.id, view="raters")) == shown(first)
    visit(campaign=campaign.id, view="raters", rater=people[0])
    assert computed == [campaign.id]
    raters.exclude(filled, people[0], "test", "too fast")
    visit(campaign=campaign.id, view="raters", rater=people[0])
    assert computed == [campaign.id] * 2
    other = launched_campaign(
        filled, "other", study="quagga", test_set="narwhal", systems=["tapir-greedy", "tapir-nvs"]
    )
    assert "no answers yet" not in shown(visit(campaign=other.id, view="raters"))  # it has no raters
    raters.add(filled, "other", "test", pseudonym="carl")
    assert "no answers yet" in shown(visit(campaign=other.id, view="raters"))
    assert computed == [campaign.id, campaign.id, other.id]
