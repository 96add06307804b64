"""A study that runs, watched in a real browser from its start to its end."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")

from filled_study import HOSTILE, SPEC, fill_study, lines
from playwright.sync_api import expect
from sqlalchemy import select
from watched import at_rest, press

from creamtea.contract.step import LiveExample, LiveView, PointRow
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.tables import StepRow, StudyRow, StudyStep

pytestmark = pytest.mark.browser
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
