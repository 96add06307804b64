"""The organiser's pages by AppTest: raters and their reports, export and import."""

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from filled_study import QUAGGA
from organiser_app import HOSTILE_NAME, Visit, actions, campaign_row, press, ran, rated_campaign, shown
from ready_campaigns import launched_campaign
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from table_rows import all_of

from creamtea.access import audit, sessions
from creamtea.human import rating as assignment
from creamtea.human.making import campaigns, launching
from creamtea.human.protocols import find_protocol
from creamtea.human.quality import reports_of
from creamtea.human.rating import raters
from creamtea.human.results.disputes import list_disputes
from creamtea.store.database import Database
from creamtea.store.tables import AccessToken, Item, Rater, Rating
from creamtea_webapp.pages.organise import raters as pages_reports
from creamtea_webapp.pages.organise import shared as pressing
from creamtea_webapp.pages.organise.raters import score_axis


def test_many_raters_get_a_file_of_links_and_participants_one_link(ready: Database, visit: Visit) -> None:
    made = launched_campaign(ready, "tasting", **QUAGGA)
    app = visit(campaign=made.id, view="raters")
    app.text_area(key="many-pseudonyms").set_value("anna\nben\u2028two")
    ran(next(one for one in app.button if one.label.startswith("Make links")).click().run())
    assert "2 links made" in shown(app)
    assert app.session_state["organise-links"][1].count("/enter#") == 2
    press(app, "recruit")
    assert "organise-links" not in app.session_state
    assert "PROLIFIC_PID=" in app.code[0].value


def test_nobody_is_invited_to_a_closed_campaign(ready: Database, visit: Visit) -> None:
    made = launched_campaign(ready, "tasting", **QUAGGA)
    anna = raters.add(ready, "tasting", "test", pseudonym="anna")
    address = {"campaign": made.id, "view": "raters"}
    adding, recruiting, inviting = visit(**address), visit(**address), visit(**address, rater=anna)
    launching.close(ready, "tasting", "test", "enough")
    ran(adding.button[0].click().run())
    press(recruiting, "recruit")
    press(inviting, "new-link")
    assert all_of(ready, select(AccessToken.id)) == []
    assert "Add and make a link" not in [one.label for one in visit(**address).button]
    assert "New link" not in [one.label for one in visit(**address, rater=anna).button]


def test_a_rater_is_added_and_the_link_is_shown_until_the_next_action(
    ready: Database, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = launched_campaign(ready, "tasting", **QUAGGA)
    app = visit(campaign=made.id, view="raters")
    app.text_input(key="add-name").set_value("Anna Example")
    ran(app.button[0].click().run())
    (link,) = [one.value for one in app.code]
    assert "/enter#" in link
    assert sessions.exchange(ready, link.split("#")[1]).role == "rater"
    assert "Anna Example" in shown(app)
    secrets = " ".join(all_of(ready, select(AccessToken.digest)))
    assert link.split("#")[1] not in secrets + str(actions(ready))
    monkeypatch.setattr(pressing, "DOUBLE_CLICK", 3600)
    ran(app.button[0].click().run())
    assert [one.value for one in app.code] == [link]
    monkeypatch.setattr(pressing, "DOUBLE_CLICK", 0)
    ran(app.button[0].click().run())
    assert [one.value for one in app.code] != [link]


def test_a_rater_who_signs_in_gets_an_address_and_no_link(
    ready: Database, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = launched_campaign(ready, "tasting", **QUAGGA)
    for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET"):
        monkeypatch.setenv(f"CREAMTEA_OIDC_{name}", "https://id.example.org")
    app = visit(campaign=made.id, view="raters")
    app.text_input(key="add-subject").set_value("anna")
    ran(app.button[0].click().run())
    assert "e-mail address" in shown(app)
    app.text_input(key="add-subject").set_value("Anna@example.org")
    ran(app.button[0].click().run())
    assert f"/login?campaign={made.id}" in shown(app)
    with ready.session() as reading:
        assert reading.scalars(select(Rater.subject)).all() == ["anna@example.org"]
        assert reading.scalars(select(AccessToken.id)).all() == []


@pytest.mark.slow
def test_reports_and_decisions_about_a_rater(ready: Database, visit: Visit) -> None:
    made, (anna, hostile) = rated_campaign(ready)
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
    assert "give a reason" in shown(app)
    app.text_area(key="reason").set_value("answers at random <b>")
    press(app, "decide")
    assert raters.overview(ready, made.id)[0].excluded_at is not None
    app.text_area(key="reason").set_value("a mistake of mine")
    press(app, "decide")
    assert raters.overview(ready, made.id)[0].excluded_at is None
    log = shown(visit(campaign=made.id, view="log"))
    assert "answers at random &lt;b&gt;" in log
    assert "a mistake of mine" in log

    app = visit(campaign=made.id, view="raters", rater=hostile)
    app.text_input(key="forget-confirmation").set_value("anna")
    press(app, "forget")
    assert raters.overview(ready, made.id)[1].forgotten_at is None
    app.text_input(key="forget-confirmation").set_value(HOSTILE_NAME)
    press(app, "forget")
    assert raters.overview(ready, made.id)[1].forgotten_at is not None
    assert "new-link" not in {one.key for one in app.button}


def test_a_rater_gets_skipped_items_again(ready: Database, visit: Visit) -> None:
    made = launched_campaign(ready, "tasting", **QUAGGA)
    rater = raters.add(ready, "tasting", "test")
    raters.consent(ready, rater)
    app = visit(campaign=made.id, view="raters", rater=rater)
    assert "reopen" not in {one.key for one in app.button}  # nothing is skipped
    work = assignment.next_item(ready, rater)
    assignment.skip(ready, rater, work.assignment_id, "too long")
    app = visit(campaign=made.id, view="raters", rater=rater)
    press(app, "reopen")
    assert "give a reason" in shown(app)
    app.text_area(key="reopen-reason").set_value("she asked")
    press(app, "reopen")
    assert "The rater gets 1 skipped page again." in shown(app)
    assert raters.overview(ready, made.id)[0].skipped == 0
    assert "reopen" not in {one.key for one in app.button}
    assert actions(ready)[-1] == ("organiser, session 7", audit.RATER_REOPENED)


@pytest.mark.slow
def test_an_export_is_downloaded_and_imported_again(ready: Database, visit: Visit) -> None:
    made, _ = rated_campaign(ready)
    app = visit(campaign=made.id)
    press(app, "export")
    name, data = app.session_state["organise-export"]
    assert name == "tasting-csv.zip"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
    assert audit.EXPORTED in [action for _, action in actions(ready)]

    assert "Campaign again: " in shown(imported(visit, {"file": [(name.upper(), data)]}))
    again = campaign_row(ready, "again")
    assert (again.study_id, again.state) == (None, "closed")
    assert "no study" in shown(visit(campaign=again.id))
    listing = shown(visit(campaigns="all"))
    assert "again" in listing
    assert "tasting" in listing


Files = dict[str, list[tuple[str, bytes]]]
WMT: Files = {
    "file": [
        (
            "scores.csv",
            b"anna,ONLINE-A,1,TGT,eng,ces,60,news.1,False,1.0,2.5\n"
            b"anna,ONLINE-B,1,TGT,eng,ces,70,news.1,False,3.0,4.0\n"
            b"anna,ONLINE-A,1,TGT,eng,ces,80,news.2,False,5.0,6.0\n",
        )
    ],
    "sources": [("source.txt", b"one\n<b>two</b>\nthree\n")],
    "documents": [("docs.tsv", b"news\tnews.1\n-\nnews\tnews.2\n")],
    "output_of": [("ONLINE-A.txt", b"a1\na2\na3\n"), ("ONLINE-B.txt", b"b1\nb2\nb3\n")],
}
MARKED = (
    b"system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\n"
    b"A\tnews\t1\t1\tanna\tone\t<v>eins</v> zwei\tother\tminor\n"
)
TAXONOMY = b"severities: [{name: minor, weight: 3}, {name: major, weight: 7}]\ncategories: [{name: other}]\n"
PEARMUT = Path(__file__).parents[1] / "human/formats/pearmut/1.1.6-esa"


def imported(visit: Visit, files: Files, **chosen: str) -> AppTest:
    """The page of imports after files and choices of these fields were sent off."""
    app = visit(campaigns="import")
    app.text_input(key="import-name").set_value("again")
    for field, choice in chosen.items():
        app.selectbox(key=f"import-{field}").set_value(choice)
    for field, given in files.items():
        app.file_uploader(key=f"import-{field}").set_value([(*one, "text/plain") for one in given])
    return ran(app.button[0].click().run())


def packed(files: dict[str, str]) -> bytes:
    """A zip of these texts."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def test_scores_of_appraise_are_imported_with_their_texts(ready: Database, visit: Visit) -> None:
    app = imported(visit, WMT, kind="appraise")
    assert "Campaign again: 3 ratings by 1 rater, 3 items, 2 systems" in shown(app)
    row = campaign_row(ready, "again")
    with ready.session() as reading:
        items = reading.scalars(select(Item).where(Item.campaign_id == row.id).order_by(Item.position))
        found = [(one.segment_index, one.source, one.outputs) for one in items]
    assert found == [(0, "one", ["a1"]), (0, "one", ["b1"]), (2, "three", ["a3"])]
    assert "English (eng) → Czech (ces)" in shown(visit(campaign=row.id))


def test_errors_count_by_the_taxonomy_that_is_given(ready: Database, visit: Visit) -> None:
    files = {"file": [("marked.tsv", MARKED)], "taxonomy": [("own.yaml", TAXONOMY)]}
    assert "Campaign again: 1 rating by 1 rater" in shown(imported(visit, files, kind="mqm", protocol="mqm"))
    (step,) = all_of(ready, select(Rating.step))
    assert float(find_protocol("mqm").scale.value(step)) == -3


def test_pearmuts_download_is_imported_with_its_campaign(ready: Database, visit: Visit) -> None:
    names = {"file": "annotations.json", "campaign_file": "campaign.json"}
    files = {field: [(name, (PEARMUT / name).read_bytes())] for field, name in names.items()}
    assert "Campaign again: " in shown(imported(visit, files, kind="pearmut", protocol="esa"))
    assert [campaign.name for campaign in campaigns.summaries(ready)] == ["again"]


def test_files_that_do_not_fit_store_nothing(ready: Database, visit: Visit) -> None:
    for kind, files, told in (
        (
            "appraise",
            WMT | {"output_of": [("ONLINE-Z.txt", b"z\n")]},
            "“Outputs” ONLINE-Z: the file has no such",
        ),
        ("appraise", WMT | {"output_of": WMT["output_of"][:1] * 2}, "“Outputs”: two files for the system"),
        (
            "appraise",
            WMT | {"output_of": [("ONLINE-A.txt", b"a1\n")]},
            "ONLINE-A.txt has 1 line, and “Documents” has 3",
        ),
        ("", {"file": [("x.zip", b"PK nonsense")]}, "not a zip file"),
    ):
        assert told in shown(imported(visit, files, **({"kind": kind} if kind else {})))
    assert campaigns.summaries(ready) == []


def test_a_zip_of_a_folder_of_mt_metrics_eval_is_imported(ready: Database, visit: Visit) -> None:
    files = {
        "wmt/sources/en-de.txt": "one\ntwo\n",
        "wmt/documents/en-de.docs": "news\td1\nnews\td1\n",
        "wmt/system-outputs/en-de/A.txt": "eins\nzwei\n",
        "wmt/human-scores/en-de.mine.seg.score": "A\t70\nA\tNone\n",
        "wmt/human-scores/en-de.other.seg.score": "A\t1\nA\t2\n",
    }
    app = imported(visit, {"file": [("wmt.zip", packed(files))]}, kind="mt-metrics-eval")
    assert "“Human scores”" in shown(app)
    assert campaigns.summaries(ready) == []
    app.text_input(key="import-scores").set_value("mine")
    app.file_uploader(key="import-file").set_value([("wmt.zip", packed(files), "application/zip")])
    ran(app.button[0].click().run())
    assert "Campaign again: 1 rating by 1 rater, 2 items, 1 system" in shown(app)


@pytest.mark.slow
def test_reports_are_kept_until_a_rating_comes(
    ready: Database, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign, people = rated_campaign(ready)
    computed = []

    def counted(database: Database, campaign_id: int) -> Any:
        computed.append(campaign_id)
        return reports_of(database, campaign_id)

    monkeypatch.setattr(pages_reports, "reports_of", counted)
    st.cache_resource.clear()
    first = visit(campaign=campaign.id, view="raters")
    assert "look at" in shown(first) or "nothing flagged" in shown(first)
    assert shown(visit(campaign=campaign.id, view="raters")) == shown(first)
    visit(campaign=campaign.id, view="raters", rater=people[0])
    assert computed == [campaign.id]
    raters.exclude(ready, people[0], "test", "too fast")
    visit(campaign=campaign.id, view="raters", rater=people[0])
    assert computed == [campaign.id] * 2
    other = launched_campaign(ready, "other", **QUAGGA)
    assert "no answers yet" not in shown(visit(campaign=other.id, view="raters"))  # it has no raters
    raters.add(ready, "other", "test", pseudonym="carl")
    assert "no answers yet" in shown(visit(campaign=other.id, view="raters"))
    assert computed == [campaign.id, campaign.id, other.id]


@pytest.mark.parametrize(
    ("protocol", "values", "width", "domain"),
    [
        ("da", [40.0], 5.0, (-2.5, 102.5)),
        ("contrastive-da", [], 0.2, (0.9, 6.1)),
        ("mqm", [-25.0, -1.0, 0.0], 1.0, (-25.5, 0.5)),
        ("mqm", [-110.0, 0.0], 5.0, (-112.5, 2.5)),
        ("mqm", [-1.1], 0.1, (-1.15, -1.05)),
        ("mqm", [], 0.1, (-0.05, 0.05)),
    ],
)
def test_an_axis_spans_the_scale_or_what_was_given(
    protocol: str, values: list[float], width: float, domain: tuple[float, float]
) -> None:
    assert score_axis(find_protocol(protocol), values) == (width, pytest.approx(domain))


def test_a_third_rating_is_asked_for_on_the_page(ready: Database, visit: Visit) -> None:
    made, _ = rated_campaign(ready)
    app = visit(campaign=made.id, view="disputes")
    listed = list_disputes(ready, made.name)
    page = shown(app)
    assert f"{len(listed.listed)} of {listed.outputs} outputs with two or more raters" in page
    assert "<script>x" not in page
    press(app, "ask")
    assert "will be given to one more rater" in shown(app)
    assert all(each.asked for each in list_disputes(ready, made.name).listed)
    assert "ask" not in {button.key for button in app.button}
    app.number_input(key="disputes-bound").set_value(5.0)
    assert "lie so far apart" in shown(ran(app.run()))
    assert actions(ready)[-1] == ("organiser, session 7", audit.THIRD_ASKED)


def test_a_viewer_looks_at_a_campaign_and_changes_nothing(ready: Database, visit: Visit) -> None:
    made, _ = rated_campaign(ready)
    app = visit(campaign=made.id)
    press(app, "share")
    opened = sessions.exchange(ready, app.code[0].value.partition("#")[2])
    assert opened.lifetime <= sessions.LINK_LIFETIME
    who = sessions.identify(ready, opened.secret)
    assert who is not None
    app = visit(who)  # the link leads to the one campaign
    page = shown(app)
    assert "item ratings" in page
    assert not re.search("view=(raters|log|disputes)", page)
    assert [*app.button, *app.text_input] == []
    assert "Where raters disagree most" in shown(visit(who, campaign=made.id, view="results"))
    assert not visit(who, campaign=made.id, view="ahead").error
    for closed in ("raters", "log", "disputes"):
        refused = visit(who, campaign=made.id, view=closed)
        assert refused.error[0].value.startswith("Your link does not open this page")
    assert visit(who, campaign=made.id + 1).error
