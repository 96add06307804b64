"""The pages of organisers in a real browser: links, presses, uploads, and a study that is watched."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from filled_study import HOSTILE, QUAGGA, SPEC, fill_study, lines
from playwright.sync_api import expect
from rating_board import draft_on, item_on, own_campaign, save
from ready_campaigns import PLAIN, draft_campaign
from sqlalchemy import select
from table_rows import all_of, one_of
from watched import at_rest, press

from creamtea.contract.step import LiveExample, LiveView, PointRow
from creamtea.human import rating as assignment
from creamtea.human.making.campaigns import CampaignRequest
from creamtea.human.rating import raters
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.tables import Campaign, Rater, StepRow, StudyRow, StudyStep

pytestmark = pytest.mark.browser


def test_a_draft_is_tried_launched_and_rated(site, open_page) -> None:
    """By double clicks, too: Streamlit begins with the second press before it has ended the first."""
    made = draft_campaign(site.database, "ibis", CampaignRequest(**QUAGGA, settings=PLAIN))
    page = open_page(site.new_link("organiser"))
    page.get_by_role("link", name="Campaigns").click()
    page.get_by_role("link", name="ibis").click()
    page.get_by_role("link", name="As raters see it").click()
    page.get_by_role("button", name="I agree, begin").click()
    item_on(page, 1, made.items)
    for slider in page.get_by_role("slider").all():
        slider.press("3")
    draft_on(page, "saved")
    save(page)
    item_on(page, 2, made.items)
    assert all_of(site.database, select(Rater.id).where(Rater.campaign_id == made.id)) == []

    page.goto(f"{site.url}/?campaign={made.id}")
    page.get_by_role("button", name="Launch").dblclick()
    expect(page.get_by_text("The campaign has been launched and registered as").first).to_be_visible()
    at_rest(page)
    expect(page.locator(".notice.error")).to_have_count(0)

    page.get_by_role("link", name=re.compile("Raters")).click()
    name = page.get_by_label("Pseudonym", exact=True)
    expect(name).to_be_visible()
    at_rest(page)
    name.fill("anna")
    page.get_by_role("button", name="Add and make a link").dblclick()  # the field is left by this click
    expect(page.get_by_text("The rater has been added.").first).to_be_visible()
    at_rest(page)
    link = page.locator("code").filter(has_text="/enter#")
    expect(link).to_have_count(1)
    expect(page.get_by_role("link", name="anna")).to_have_count(1)
    expect(page.get_by_role("link", name="rater-")).to_have_count(0)
    address = link.inner_text().strip()
    assert address.startswith(f"{site.url}/enter#")

    rater = open_page(address)
    rater.get_by_role("button", name="I agree, begin").wait_for()

    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_text(f"0 of {made.wanted} item ratings")).to_be_visible()
    (rater_id,) = all_of(site.database, select(Rater.id).where(Rater.campaign_id == made.id))
    raters.consent(site.database, rater_id)
    work = assignment.next_item(site.database, rater_id)
    assignment.submit(site.database, rater_id, work.assignment_id, [3] * len(work.outputs))
    expect(page.get_by_text(f"1 of {made.wanted} item ratings")).to_be_visible()


def test_a_file_is_uploaded_and_a_press_that_leaves_a_field_is_not_lost(
    site, open_page, tmp_path: Path
) -> None:
    taxonomy = tmp_path / "own.yaml"
    taxonomy.write_text("severities: [{name: critical, weight: 9}]\ncategories: [{name: Style}]\n")
    page = open_page(site.new_link("organiser").replace("/enter#", "/enter?campaigns=new#"))
    page.get_by_label("Name", exact=True).fill("okapi-uploaded")
    press(page.get_by_label("Protocol", exact=True))
    page.get_by_role("option", name="MQM").click()
    field = page.get_by_test_id("stFileUploader").filter(has_text="Taxonomy")
    field.locator("input[type=file]").set_input_files(str(taxonomy))
    expect(field.get_by_text(taxonomy.name)).to_be_visible()
    press(page.get_by_role("button", name="Create a draft"))
    expect(page.get_by_role("heading", name="okapi-uploaded")).to_be_visible()
    made = one_of(site.database, select(Campaign).where(Campaign.name == "okapi-uploaded"))
    assert [level["name"] for level in made.settings["taxonomy"]["severities"]] == ["critical"]

    number = own_campaign(site.database, "okapi-decided", [("source", ["output"])])
    rater_id = raters.add(site.database, "okapi-decided", "test")
    page.goto(f"{site.url}/?campaign={number}&view=raters&rater={rater_id}")
    press(page.get_by_role("button", name="Exclude"))
    decide = page.get_by_role("button", name="Exclude this rater")
    press(decide)
    # what the last press said stays above the button: it does not move from under the next one
    expect(page.locator(".notice.error")).to_be_visible()  # the reason is missing
    at_rest(page)
    page.get_by_label("Reason").fill("no answers")
    decide.click(delay=1500)  # a slow press, which leaves the field at its beginning
    expect(page.get_by_role("button", name="Include again")).to_be_visible()


# ---------------------------------------------------------------- a study that runs


KEEPS = "box => { box.scrollTop = 900; }"


def unstarted(site: Any, study: int) -> str:
    """The key of the study's second training, which runs; what needs it waits."""
    later = ("decode/dugong", "score/dugong", "compare/dugong", "latency")
    with site.database.transaction() as session:
        for node, step in session.execute(
            select(StudyStep.node, StepRow)
            .join(StepRow, StepRow.key == StudyStep.step_key)
            .where(StudyStep.study_id == study)
        ):
            if node.startswith(later):
                step.state, step.finished_at, step.error_kind, step.error = "pending", None, None, None
            if node == "train/dugong/1":
                step.state, step.finished_at, step.fence, key = "running", None, 5, step.key
                step.started_at = site.database.now(session) - timedelta(seconds=60)
        row = session.get_one(StudyRow, study)
        row.state, row.finished_at = "running", None
    return key


def test_a_training_is_watched_without_losing_the_place_or_the_choices(site, open_page) -> None:
    own = SPEC | {  # no step in common with the site's study
        "name": "okapi-watched",
        "test_sets": {"other": SPEC["test_sets"]["narwhal"] | {"lines": 41}},
        "latency": {"test_set": "other"},
        "variants": {
            name: variant | {"training": {"max_epochs": 7}} for name, variant in SPEC["variants"].items()
        },
    }
    study = fill_study(site.database, HOSTILE + lines(36), own)
    key = unstarted(site, study)
    store = ArtefactStore(str(Path(site.environment["CREAMTEA_HOME"]) / "artefacts"))
    store.write_progress(key, 5, 50, 200, "epoch 1", 300.0)
    page = open_page(site.new_link("organiser"))
    page.get_by_role("link", name="okapi-watched").click()
    running = page.locator(".steps li").filter(has_text="train: dugong, seed 1")
    expect(running.first).to_contain_text("25 %")
    expect(running.first).to_contain_text(re.compile(r"about \d min left"))
    expect(page.get_by_text("after train: dugong, seed 1").first).to_be_visible()
    page.get_by_text("Versions, seeds, hardware").wait_for()
    at_rest(page)
    # a reader far down, with a choice of columns
    page.locator(".table").first.get_by_label("recall", exact=True).uncheck()
    heads = page.locator(".table").first.locator("thead button").filter(visible=True)
    chosen = heads.count()
    main = page.locator("[data-testid=stMain]")
    main.evaluate(KEEPS)
    view = LiveView(
        points=[PointRow("train_loss_now", x, 9 - x / 20) for x in (20, 40, 60)],
        examples=[LiveExample("a <b>cup</b>", "b", [(60, "eine <i>Tasse</i>")])],
    )
    store.write_live(key, 5, view)
    store.write_progress(key, 5, 150, 200, "updates, epoch 2, 1,234 tokens/s")
    expect(running.first).to_contain_text("75 %")
    expect(running.first).to_contain_text("1,234 tokens/s")
    assert main.evaluate("box => box.scrollTop") >= 900  # what came above it moved nothing out of sight
    assert heads.count() == chosen
    press(page.get_by_text("How translations of development sentences change"))
    expect(page.get_by_text("eine <i>Tasse</i>")).to_be_visible()
    # its end: the rest of the page follows
    with site.database.transaction() as session:
        step = session.get_one(StepRow, key)
        step.state, step.finished_at = "succeeded", site.database.now(session)
    expect(page.get_by_role("button", name="finished since the results below were drawn")).to_be_visible()
    with site.database.transaction() as session:
        row = session.get_one(StudyRow, study)
        row.state, row.finished_at = "cancelled", site.database.now(session)
    expect(page.get_by_role("heading", name="Progress")).to_have_count(0)
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
