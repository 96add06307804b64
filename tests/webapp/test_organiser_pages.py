"""The organiser's pages by AppTest: campaigns, from the form to their end."""

import html
import json
from pathlib import Path

import pytest
import yaml
from filled_study import HOSTILE, QUAGGA, SPEC, fill_study, lines
from found_errors import MINOR, add_scores
from markupsafe import escape
from media_files import png
from organiser_app import (
    READER,
    Visit,
    actions,
    campaign_row,
    place_of_error,
    press,
    ran,
    rated_campaign,
    shown,
)
from ready_campaigns import draft_campaign
from small_campaigns import add_rater, make_campaign, rate, rate_all, work_for
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from table_rows import all_of

from creamtea.access import audit
from creamtea.access.sessions import Identity
from creamtea.document.document import YamlDocument
from creamtea.human.making import campaigns, launching
from creamtea.human.making.campaign_file import (
    Folder,
    as_yaml,
    check_campaign,
    create_campaigns,
    document_of,
    load_campaign,
)
from creamtea.human.making.campaigns import CampaignRequest
from creamtea.human.making.programme import load_programme
from creamtea.human.making.settings import CampaignDocument, CampaignSettings, settings_of
from creamtea.human.making.texts import Documents
from creamtea.report.human.build import build_human
from creamtea.report.model import Notes
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.rows import from_row
from creamtea.store.tables import Campaign, CampaignMedia, Item


@pytest.mark.slow
def test_a_campaign_from_the_form_to_its_end(ready: Database, visit: Visit) -> None:
    app = visit(campaigns="new")
    app.text_input(key="campaign-name").set_value("scones")
    app.number_input(key="campaign-sample.items").set_value(12)
    app.number_input(key="campaign-raters.ratings_per_item").set_value(2)
    app.text_area(key="campaign-raters.instructions").set_value("*Read* twice.")
    app.text_area(key="campaign-raters.questions").set_value("Language? | German | English")
    app.text_input(key="campaign-raters.completion_url").set_value("https://example.org/complete?cc=C")
    press(app, "make")
    row = campaign_row(ready, "scones")
    assert (row.state, row.ratings_per_item, row.instructions) == ("draft", 2, "*Read* twice.")
    assert (row.settings["items"], row.settings["completion_url"][-4:]) == (12, "cc=C")
    assert row.settings["questions"][0]["options"] == ["German", "English"]
    assert app.query_params["campaign"] == str(row.id)  # the draft's page with its preview
    page = shown(app)
    for word in ("contrastive direct assessment", "rater hours", "power", "12 rated", "segments"):
        assert word in page, word
    assert "The draft has 14 items." in page
    press(app, "launch")
    row = campaign_row(ready, "scones")
    assert row.state == "launched"
    assert f"Registered at the launch as <code>{row.registered['digest'][:16]}" in shown(app)
    assert "0 of 28 item ratings" in shown(app)
    assert "launch" not in {one.key for one in app.button}

    app.text_input(key="close-reason").set_value("enough")
    press(app, "close")
    assert campaign_row(ready, "scones").state == "closed"
    press(app, "reopen")
    assert "give a reason to open campaign" in shown(app)
    app.text_input(key="reopen-reason").set_value("a late rater")
    press(app, "reopen")
    assert campaign_row(ready, "scones").state == "launched"
    who = "organiser, session 7"
    assert actions(ready) == [
        *((who, audit.CREATED), (who, audit.LAUNCHED), (who, audit.CLOSED), (who, audit.REOPENED))
    ]
    assert "enough" in shown(visit(campaign=row.id, view="log"))


@pytest.mark.slow
def test_fields_of_a_protocol_and_of_a_sample(ready: Database, visit: Visit) -> None:
    app = visit(campaigns="new")
    placeholders = {
        field.key: field.proto.placeholder
        for field in (*app.number_input, *app.selectbox)
        if field.value is None
    }
    for key, words in {  # what an empty field stands for
        "delta": "0.1",
        "raters.disputed_from": "2.5",
        "sample.items": "all that the kind allows",
        "sample.kind-contrastive-da": "those on which the outputs differ",
    }.items():
        assert placeholders[f"campaign-{key}"] == words
    assert not [words for words in placeholders.values() if "default" in words]
    app.text_input(key="campaign-name").set_value("kind")
    app.selectbox(key="campaign-protocol.kind").set_value("preference").run()
    app.selectbox(key="campaign-sample.kind-preference").set_value("differing").run()
    app.selectbox(key="campaign-protocol.pairs").set_value("baseline")
    app.multiselect(key="campaign-sample.differ_between-quagga").set_value(["tapir-greedy", "tapir-nvs"])
    press(app, "make")
    assert "The draft has" in shown(app)
    row = campaign_row(ready, "kind")
    assert (row.protocol, row.settings["select"]) == ("preference", "differing")
    assert row.settings["pairs"] == "baseline"
    assert row.settings["differ_between"] == ["tapir-greedy", "tapir-nvs"]


def test_a_draft_is_made_anew_with_what_it_had_and_does_not_lose_its_documents(
    ready: Database, visit: Visit
) -> None:
    settings = CampaignSettings(items=8, bad_references=3, consent="I agree.", delta=0.4)
    request = CampaignRequest(
        **QUAGGA | {"systems": ["tapir-nvs", "tapir-greedy"]},
        **{"settings": settings, "ratings_per_item": 3, "seed": 9, "instructions": "Read."},
        documents=Documents(tuple(f"d{segment // 4}" for segment in range(40))),
    )
    made = draft_campaign(ready, "first", request)
    app = visit(campaigns="new", from_=made.id)
    app.number_input(key="campaign-sample.items").set_value(9)
    press(app, "make")
    assert "the draft has documents, whose file is not kept: give it again" in shown(app)
    assert campaign_row(ready, "first").settings["items"] == 8
    documents = "".join(f"e{segment // 4}\n" for segment in range(40)).encode()
    app.file_uploader(key="campaign-documents").set_value([("docs.txt", documents, "text/plain")])
    press(app, "make")
    row = campaign_row(ready, "first")
    assert (row.id, row.settings["items"]) == (made.id, 9)
    assert (row.systems, row.ratings_per_item, row.seed) == (["tapir-nvs", "tapir-greedy"], 3, 9)
    found = (row.settings["bad_references"], row.settings["consent"], row.settings["delta"])
    assert found == (3, "I agree.", 0.4)


def test_a_draft_keeps_metrics_whose_stored_names_are_not_their_kinds(ready: Database, visit: Visit) -> None:
    metrics = [{"kind": "bleu"}, {"kind": "chrf", "word_order": 2}]
    fill_study(ready, HOSTILE + lines(36), SPEC | {"name": "quince", "metrics": metrics})
    settings = CampaignSettings(select="disagreement", items=8, metrics=["chrf++"])
    made = draft_campaign(
        ready, "first", CampaignRequest(**QUAGGA | {"study": "quince", "settings": settings})
    )
    app = visit(campaigns="new", from_=made.id)
    field = app.multiselect(key="campaign-sample.metrics-quince")
    assert (field.options, field.value) == (["bleu", "chrf++"], ["chrf++"])
    press(app, "make")
    assert campaign_row(ready, "first").settings["metrics"] == ["chrf++"]


def test_results_are_those_of_the_command_also_without_a_study(ready: Database, visit: Visit) -> None:
    made, _ = rated_campaign(ready)
    with ready.transaction() as writing:
        row = writing.get_one(Campaign, made.id)
        row.study_id = None  # as of ratings made elsewhere
    report = build_human(ready, "tasting")
    page = shown(visit(campaign=made.id, view="results"))
    [answer] = [one for one in report.sections[0].blocks if isinstance(one, Notes)]
    for sentence in answer.paragraphs:
        assert escape(sentence) in page
    assert "Systems" in page
    with ready.transaction() as writing:
        writing.get_one(Campaign, made.id).state = "draft"
    assert "launch it with" in shown(visit(campaign=made.id, view="results"))


def test_an_unknown_campaign_is_told(visit: Visit) -> None:
    for query in ({"campaign": 99}, {"campaign": "x"}, {"campaign": 99, "view": "log"}):
        app = visit(**query)
        assert "No such campaign" in shown(app)
        assert "Sign out" in shown(app)


def test_a_draft_on_files_is_changed_with_its_files_uploaded_again(
    ready: Database, visit: Visit, tmp_path: Path
) -> None:
    texts = {"sources/de-en_GB.txt": "eins\n\ndrei\n"}
    for system in ("b", "a"):
        texts[f"system-outputs/de-en_GB/{system}.txt"] = f"{system} one\n{system} two\n{system} three\n"
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    file = tmp_path / "c.yaml"
    file.write_text(
        "name: tea\ntexts: {folder: ., languages: de-en_GB}\nprotocol: {kind: da}\n"
        "controls: {bad_references: 0, repeats: 0}\n"
    )
    request = load_campaign(file).request(ready, None)  # type: ignore[arg-type]
    made = draft_campaign(ready, "tea", request)
    with ready.transaction() as session:
        session.get_one(Campaign, made.id).programme = "meal"
    assert "Change the draft" in shown(visit(campaign=made.id))
    app = visit(campaigns="new", from_=made.id)
    assert app.text_input(key="campaign-texts.languages").value == "de-en_GB"
    app.number_input(key="campaign-sample.items").set_value(2)
    press(app, "make")
    assert "“Sources”: name it" in shown(app)
    upload = {name: (Path(name).name, text.encode(), "text/plain") for name, text in texts.items()}
    sources, *outputs = upload.values()
    app.file_uploader(key="campaign-texts.sources").set_value([sources])
    ran(app.file_uploader(key="campaign-texts.outputs").set_value(outputs).run())
    assert app.multiselect(key="campaign-systems").options == ["b", "a"]
    press(app, "make")
    row = campaign_row(ready, "tea")
    assert (row.id, row.study_id, row.programme, row.settings["items"]) == (made.id, None, "meal", 2)
    assert (row.systems, row.target_language) == (["a", "b"], "en-GB")
    assert "Note: 1 segment without a source text (2)." in shown(app)
    hostile = ("c.yaml", b"name: x\ntexts: {folder: /etc, languages: de-en, sources: ../x}\n", "text/yaml")
    app = visit(campaigns="new")
    ran(app.file_uploader(key="campaign-file").set_value([hostile]).run())
    press(app, "fill")
    assert "Upload its sources and outputs and sources below." in shown(app)


def test_a_campaign_file_goes_into_the_form_and_comes_out_equal(ready: Database, visit: Visit) -> None:
    practice = [{"source": "Tag", "outputs": [{"text": "Hi", "accepted": [50, 100]}], "explanation": "why"}]
    written = {
        "name": "scones", "study": "quagga", "test_set": "narwhal", "systems": ["tapir-nvs", "tapir-greedy"],
        "delta": 5.0, "practice": practice, "protocol": {"kind": "da", "context": 2},
        "sample": {"kind": "stratified", "items": 9}, "controls": {"bad_references": 0.2, "repeats": 3},
        "raters": {"questions": [{"ask": "Years", "number": True}], "contact": "Jo"},
    }  # fmt: skip
    app = visit(campaigns="new")
    file = ("c.yaml", yaml.safe_dump({**written, "media": "m.jsonl"}).encode(), "application/yaml")
    ran(app.file_uploader(key="campaign-file").set_value([file]).run())
    press(app, "fill")
    assert "Upload its media files below." in shown(app)
    assert app.text_input(key="campaign-name-1").value == "scones"
    press(app, "make")
    row = campaign_row(ready, "scones")
    app = visit(campaigns="new", from_=row.id)  # as the draft's form downloads it
    settings = settings_of(row.settings)
    files = dict.fromkeys(("documents", "proposals", "media", "texts"))
    request = from_row(CampaignRequest, row, study="quagga", settings=settings, **files)
    document = document_of("scones", request)
    expected = CampaignDocument.model_validate(written)
    again = check_campaign(YamlDocument("again", yaml.safe_load(as_yaml(document))), Folder(Path(), ()))
    assert again.campaign.sample == expected.sample
    assert again.campaign.raters == expected.raters
    assert again.campaign.tutorial == expected.tutorial
    assert again.campaign.controls == expected.controls
    assert again.campaign.protocol == expected.protocol
    for change, message in (
        ({"sistems": ["a"]}, "sistems: found an unknown key"),
        ({"sample": {"kind": "disagreement", "items": 9, "metrics": ["blue"]}}, "“Metrics”: 'blue': allowed"),
    ):
        file = ("c.yaml", yaml.safe_dump({**written, **change}).encode(), "application/yaml")
        ran(app.file_uploader(key="campaign-file").set_value([file]).run())
        press(app, "fill")
        assert message in html.unescape(shown(app))


def test_a_campaign_file_that_names_files_goes_into_the_form(ready: Database, visit: Visit) -> None:
    """What other settings need, an attention check, is uploaded afterwards, and their values are kept."""
    written = (
        "name: a\nstudy: quagga\ntest_set: narwhal\nsystems: [tapir-nvs, tapir-greedy]\npractice: p.yaml\n"
        "attention: {items: checks.yaml, failing_code: F}\n"
        "raters: {instructions: read.md, questions: q.txt}\n"
    )
    app = visit(campaigns="new")
    ran(app.file_uploader(key="campaign-file").set_value([("c.yaml", written.encode(), "text/yaml")]).run())
    press(app, "fill")
    assert "Upload its practice items and attention checks below." in shown(app)
    assert "Paste its instructions and questions about the rater below." in shown(app)
    check = b"checks: [{source: a, outputs: [{text: b, accepted: [1, 2]}, {text: c, accepted: [1, 2]}]}]"
    app.file_uploader(key="campaign-attention.items-1").set_value([("checks.yaml", check, "text/yaml")])
    press(app, "make")
    assert campaign_row(ready, "a").settings["failing_code"] == "F"


# ---------------------------------------------------------------- files that an organiser uploads


TAXONOMY = b"""
severities: [{name: minor, weight: 2}, {name: critical, weight: 9}]
categories: [{name: Accuracy, kinds: [Omission]}, {name: Style}]
"""
SYSTEMS = ("tapir-greedy", "tapir-lexicon", "tapir-nvs", "dugong-greedy")
SPAN = {"start": 0, "end": 1, "severity": "minor", "category": ["Style"]}


def form(visit: Visit, name: str, protocol: str) -> AppTest:
    """The form of a new campaign without controls."""
    app = visit(campaigns="new")
    app.text_input(key="campaign-name").set_value(name)
    ran(app.selectbox(key="campaign-protocol.kind").set_value(protocol).run())
    for field in ("bad_references", "repeats"):
        app.number_input(key=f"campaign-controls.{field}").set_value(0)
    return app


def upload(app: AppTest, key: str, name: str, content: bytes) -> None:
    app.file_uploader(key=f"campaign-{key}").set_value([(name, content, "text/plain")])


def stored_items(database: Database, name: str) -> list[Item]:
    number = campaign_row(database, name).id
    return all_of(database, select(Item).where(Item.campaign_id == number))


def marked(database: Database, name: str) -> set[int | None]:
    """The segments with errors that were marked beforehand."""
    return {one.segment_index for one in stored_items(database, name) if any((one.proposals or {}).values())}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CREAMTEA_HOME", str(tmp_path))
    return tmp_path


def test_taxonomy_proposals_and_files_beside_sources(ready: Database, visit: Visit, home: Path) -> None:
    line = {"system": "tapir-greedy", "segment": 5, "spans": [SPAN]}
    wrong = {**line, "spans": [SPAN | {"severity": "major"}]}
    app = form(visit, "uploaded", "mqm")
    upload(app, "protocol.taxonomy", "own.yaml", TAXONOMY)
    upload(app, "protocol.proposals", "found.jsonl", json.dumps(wrong).encode())
    media = {"segment": 5, "file": "tea.png", "description": "Tee"}
    upload(app, "media", "beside.jsonl", json.dumps(media).encode())
    upload(app, "media_files", "tea.png", png())
    press(app, "make")
    assert place_of_error(app, "found.jsonl, line 1") == "campaign-protocol.proposals"
    assert "minor or critical, not major" in shown(app)
    assert campaigns.summaries(ready) == []
    upload(app, "protocol.proposals", "mended.jsonl", json.dumps(line).encode())
    press(app, "make")
    assert "Media files" in [one.value for one in app.header]
    made = campaign_row(ready, "uploaded")
    assert [level["name"] for level in made.settings["taxonomy"]["severities"]] == ["minor", "critical"]
    assert marked(ready, "uploaded") == {4}
    beside = [item for item in stored_items(ready, "uploaded") if item.media]
    assert {item.segment_index for item in beside} == {4}
    assert {item.media[0]["description"] for item in beside} == {"Tee"}
    kept = all_of(ready, select(CampaignMedia))
    assert [(file.type, file.size) for file in kept] == [("image/png", len(png()))]


def test_errors_that_a_metric_has_found(ready: Database, visit: Visit, home: Path) -> None:
    field = "campaign-protocol.proposals_from-quagga"
    assert form(visit, "none", "esa").selectbox(key=field).disabled
    store = ArtefactStore(str(home / "artefacts"))
    for number, system in enumerate(SYSTEMS):
        spans = [[], [], [], []] + [[MINOR] if number == 0 else []] + [[]] * 35
        add_scores(ready, store, home, system, spans, study="quagga", test_set="narwhal")
    assert field not in {one.key for one in visit(campaigns="new").selectbox}  # nothing is marked
    app = form(visit, "proposed", "esa")
    app.selectbox(key=field).set_value("finder")
    line = {"system": SYSTEMS[0], "segment": 5, "spans": [MINOR]}
    upload(app, "protocol.proposals", "found.jsonl", json.dumps(line).encode())
    press(app, "make")
    assert place_of_error(app, "give one of the two") == field
    assert "“Errors that a metric has found”" in shown(app)
    app.file_uploader(key="campaign-protocol.proposals").set_value([])
    press(app, "make")
    made = campaign_row(ready, "proposed")
    assert made.settings["proposed_by"]["metric"] == "finder"
    assert marked(ready, "proposed") == {4}
    # a draft that is changed keeps the metric
    assert visit(campaigns="new", from_=made.id).selectbox(key=field).value == "finder"


# ---------------------------------------------------------------- what raters see


def rater_of(campaign: int, rater: int) -> Identity:
    return Identity(9, "rater", rater_id=rater, campaign_id=campaign)


def test_raters_and_organisers_see_what_is_written_for_a_domain_above_the_items(
    ready: Database, visit: Visit
) -> None:
    settings = {
        "domains": {"d1": "chat", "d2": "news"},
        "domain_instructions": {"chat": "As *friends* talk. <script>x</script>"},
    }
    for document in ("d1", "d2"):
        items = [{"document": document}]
        campaign = make_campaign(ready, items, name=document, protocol="da", bad_references=0, **settings)
        rater = rater_of(campaign, add_rater(ready, "anna", document))
        for page in (shown(visit(rater)), shown(visit(campaign=campaign, view="ahead", item=1))):
            assert ("As <em>friends</em> talk." in page) == (document == "d1")
            assert "<script>" not in page


def test_who_has_rated_nothing_gets_no_completion_code(ready: Database, visit: Visit) -> None:
    """The last item may come back while somebody else is on it."""
    campaign = make_campaign(ready, 1, completion_code="C0DE")
    first, second = (add_rater(ready, name) for name in ("anna", "ben"))
    work = work_for(ready, first)
    late = shown(visit(rater_of(campaign, second)))
    assert "Nothing to rate at the moment" in late
    assert "try again in two hours" in late
    rate(ready, first, work)
    assert "C0DE" in shown(visit(rater_of(campaign, first)))
    late = shown(visit(rater_of(campaign, second)))
    assert "Nothing is left to rate." in late
    assert "C0DE" not in late
    third = shown(visit(rater_of(campaign, add_rater(ready, "<i>carl</i>", consented=False))))
    assert "<strong>&lt;i&gt;carl&lt;/i&gt;</strong>" in third  # who has to consent first


# ---------------------------------------------------------------- the page of a programme


PROGRAMME = """
name: <i>spring</i>
texts: {folder: .}
protocol: {kind: da}
controls: {bad_references: 0, repeats: 0}
directions: {en-de: {}, en-nl: {sample: {items: 1}}}
"""


@pytest.fixture
def programme(ready: Database, tmp_path: Path) -> Database:
    for pair in ("en-de", "en-nl"):
        outputs = tmp_path / "system-outputs" / pair
        outputs.mkdir(parents=True)
        (tmp_path / "sources").mkdir(exist_ok=True)
        (tmp_path / "sources" / f"{pair}.txt").write_text("one\ntwo\n")
        for system in ("A", "B"):
            (outputs / f"{system}.txt").write_text(f"{system} 1\n{system} 2\n")
    (tmp_path / "p.yaml").write_text(PROGRAMME)
    found = load_programme(tmp_path / "p.yaml")
    store = ArtefactStore(str(tmp_path / "store"))
    create_campaigns(ready, list(found.directions.values()), store, programme=found.name)
    launching.launch(ready, "<i>spring</i>-en-nl")
    rate_all(ready, add_rater(ready, "<b>anna</b>", "<i>spring</i>-en-nl"))
    return ready


def test_progress_by_direction_and_rater(programme: Database, visit: Visit) -> None:
    assert "?programme=%3Ci%3Espring%3C/i%3E" in shown(visit(campaigns="all"))
    app = visit(programme="<i>spring</i>")
    page = shown(app)
    for words in ("Programme of 2 directions", "&lt;i&gt;spring&lt;/i&gt;", "2 of 6 item ratings"):
        assert words in page, words
    for words in ("0 of 4", "2 of 2", ">en-de</a>", "&lt;b&gt;anna&lt;/b&gt;", "1 finished"):
        assert words in page, words
    assert "<b>" not in page
    for view in ("", "results"):
        assert "No such programme" in shown(visit(programme="autumn", view=view))


def test_results_over_directions(programme: Database, visit: Visit) -> None:
    page = shown(visit(programme="<i>spring</i>", view="results"))
    for words in ("Systems over directions", "mean over directions", "en-de: a draft", "en-nl: launched"):
        assert words in page, words
    assert "<i>" not in page


@pytest.mark.parametrize("who", [READER, Identity(9, "organiser", campaign_id=1)])
def test_others_do_not_see_it(programme: Database, visit: Visit, who: Identity) -> None:
    for view in ("", "results"):
        page = shown(visit(who, programme="<i>spring</i>", view=view))
        assert "Programme of" not in page
