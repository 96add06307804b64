"""Files that an organiser uploads with a new campaign, in a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from found_errors import MINOR, add_scores
from media_files import png
from playwright.sync_api import expect
from sqlalchemy import select
from watched import at_rest, press

from creamtea.store.artefacts import ArtefactStore
from creamtea.store.tables import Campaign, CampaignMedia, Item

pytestmark = pytest.mark.browser

TAXONOMY = """
severities: [{name: minor, weight: 2}, {name: critical, weight: 9}]
categories: [{name: Accuracy, kinds: [Omission]}, {name: Style}]
"""
SYSTEMS = ("tapir-greedy", "tapir-lexicon", "tapir-nvs", "dugong-greedy")
SPAN = {"start": 0, "end": 1, "severity": "minor", "category": ["Style"]}


def upload(page: Any, label: str, *files: Path) -> None:
    """Choose files, and wait until the page shows that it has them."""
    field = page.get_by_test_id("stFileUploader").filter(has_text=label)
    field.locator("input[type=file]").set_input_files([str(file) for file in files])
    for file in files:
        expect(field.get_by_text(file.name)).to_be_visible()
    at_rest(page)


def choose(page: Any, label: str, option: str) -> None:
    press(page.get_by_label(label, exact=True))
    page.get_by_role("option", name=option).click()
    at_rest(page)


def campaign(site: Any, name: str) -> Campaign:
    with site.database.session() as session:
        return session.scalars(select(Campaign).where(Campaign.name == name)).one()


def test_taxonomy_proposals_and_files_beside_sources(site, open_page, tmp_path: Path) -> None:
    taxonomy, proposals, media, picture = (
        tmp_path / name for name in ("own.yaml", "found.jsonl", "beside.jsonl", "tea.png")
    )
    taxonomy.write_text(TAXONOMY)
    line = {"system": "tapir-greedy", "segment": 5, "spans": [SPAN]}
    proposals.write_text(json.dumps({**line, "spans": [SPAN | {"severity": "major"}]}))
    media.write_text(json.dumps({"segment": 5, "file": "tea.png", "description": "Tee"}))
    picture.write_bytes(png())
    page = open_page(site.new_link("organiser").replace("/enter#", "/enter?campaigns=new#"))
    page.get_by_label("Name", exact=True).fill("uploaded")
    expect(page.get_by_text("Taxonomy", exact=True)).to_have_count(0)  # nothing is marked in other protocols
    choose(page, "Protocol", "MQM")
    for field in ("Bad references", "Repeats"):
        page.get_by_label(field, exact=True).fill("0")
    upload(page, "Taxonomy", taxonomy)
    upload(page, "Errors marked beforehand", proposals)
    press(page.get_by_text("More settings").first)
    upload(page, "Files beside sources", media)
    upload(page, "The files of this list", picture)
    press(page.get_by_role("button", name="Create a draft"))
    told = page.get_by_text("minor or critical, not major").first
    expect(told).to_be_visible()
    expect(told).to_contain_text(re.compile("^found.jsonl, line 1"))
    at_rest(page)
    assert (
        told.bounding_box()["y"]
        < page.get_by_label("Instructions (Markdown)", exact=True).bounding_box()["y"]
    )
    with site.database.session() as session:
        assert session.scalars(select(Campaign).where(Campaign.name == "uploaded")).first() is None

    mended = tmp_path / "mended.jsonl"
    mended.write_text(json.dumps(line))
    upload(page, "Errors marked beforehand", mended)  # takes the other's place
    expect(told).to_be_visible()  # until the next press: without it the button would move up under this one
    page.get_by_role("button", name="Create a draft").click()
    expect(page.get_by_role("heading", name="uploaded")).to_be_visible()
    expect(page.get_by_role("heading", name="Files beside sources")).to_be_visible()
    made = campaign(site, "uploaded")
    assert [level["name"] for level in made.settings["taxonomy"]["severities"]] == ["minor", "critical"]
    with site.database.session() as session:
        items = session.scalars(select(Item).where(Item.campaign_id == made.id)).all()
        kept = session.scalars(select(CampaignMedia).where(CampaignMedia.campaign_id == made.id)).all()
    proposed = [item for item in items if item.proposals]
    assert {item.segment_index for item in proposed} == {4}
    assert all(spans == [SPAN] for item in proposed for spans in item.proposals.values())
    beside = [item for item in items if item.media]
    assert {item.segment_index for item in beside} == {4}
    assert {item.media[0]["description"] for item in beside} == {"Tee"}
    assert [(file.type, file.size) for file in kept] == [("image/png", len(png()))]


def test_errors_that_a_metric_has_found(site, open_page, tmp_path: Path) -> None:
    page = open_page(site.new_link("organiser").replace("/enter#", "/enter?campaigns=new#"))
    choose(page, "Protocol", "ESA: one output")
    field = page.get_by_label("Errors that a metric has found", exact=True)
    expect(field).to_be_disabled()

    store = ArtefactStore(str(Path(site.environment["CREAMTEA_HOME"]) / "artefacts"))
    for number, system in enumerate(SYSTEMS):
        spans = [[], [], [], []] + [[MINOR] if number == 0 else []] + [[]] * 35
        add_scores(site.database, store, tmp_path, system, spans, study="quagga", test_set="narwhal")
    page = open_page(site.new_link("organiser").replace("/enter#", "/enter?campaigns=new#"))
    expect(page.get_by_text("Errors that a metric has found")).to_have_count(0)
    page.get_by_label("Name", exact=True).fill("proposed")
    choose(page, "Protocol", "ESA: one output")
    for control in ("Bad references", "Repeats"):
        page.get_by_label(control, exact=True).fill("0")
    choose(page, "Errors that a metric has found", "finder")
    proposals = tmp_path / "found.jsonl"
    proposals.write_text(json.dumps({"system": SYSTEMS[0], "segment": 5, "spans": [MINOR]}))
    upload(page, "Errors marked beforehand", proposals)
    press(page.get_by_role("button", name="Create a draft"))
    told = page.get_by_text("give one of the two").first
    expect(told).to_contain_text("“Errors that a metric has found”")
    at_rest(page)
    above = page.get_by_label("Errors that a metric has found", exact=True).bounding_box()
    assert 0 < told.bounding_box()["y"] - above["y"] < 120  # just below the field

    uploader = page.get_by_test_id("stFileUploader").filter(has_text="Errors marked beforehand")
    press(uploader.get_by_role("button", name="Remove"))
    expect(uploader.get_by_text(proposals.name)).to_have_count(0)
    press(page.get_by_role("button", name="Create a draft"))
    expect(page.get_by_role("heading", name="proposed")).to_be_visible()
    made = campaign(site, "proposed")
    assert made.settings["proposed_by"]["metric"] == "finder"
    with site.database.session() as session:
        items = session.scalars(select(Item).where(Item.campaign_id == made.id)).all()
    assert {item.segment_index for item in items if any((item.proposals or {}).values())} == {4}

    # a draft that is changed keeps the metric
    page = open_page(site.new_link("organiser").replace("/enter#", f"/enter?campaigns=new&from={made.id}#"))
    expect(page.get_by_text("Change a draft")).to_be_visible()
    expect(page.get_by_label("Errors that a metric has found", exact=True)).to_have_value("finder")
