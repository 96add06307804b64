"""People's judgements on a study's page, by AppTest: for readers, and escaped whatever they hold."""

import json
import re
from typing import Any

import pytest
from filled_study import HOSTILE, fill_study, lines
from markupsafe import escape
from organiser_app import shown as html
from organiser_app import visits
from rated_campaigns import drawn_steps, rated_campaign, side_by_side
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

from creamtea.access.sessions import Identity
from creamtea.store.database import Database
from creamtea.store.tables import Campaign, Rater

SYSTEMS = ["tapir-greedy", "tapir-lexicon", "tapir-nvs"]
CAMPAIGN, ANNA = "<b>tasting</b> *a* $x$", "<img src=x onerror=x>"
TEXTS = HOSTILE + lines(36)


@pytest.fixture(scope="module")
def judged(module_database: Database) -> Database:
    """The lexicon is worse, and people like the hostile outputs of NVS best, which its metrics do not."""
    study = fill_study(module_database, TEXTS)
    steps = drawn_steps(40, [16, 9, 14], raters=2)
    steps[:4, 2] = 25
    items = side_by_side(steps, [ANNA, "ben"])
    for item, (source, outputs) in zip(items, TEXTS, strict=True):
        # an output is shown once, whichever systems made it: these are all different
        item |= {"source": source, "outputs": [f"{text}{'.' * at}" for at, text in enumerate(outputs[:3])]}
    rated_campaign(
        module_database,
        items,
        name=CAMPAIGN,
        study_id=study,
        test_set="narwhal",
        systems=SYSTEMS,
        raters=[ANNA, "ben"],
        ratings_per_item=2,
        settings={"baseline": "tapir-greedy", "delta": 0.3},
    )
    return module_database


def visit(judged: Database, monkeypatch: pytest.MonkeyPatch, who: Identity) -> AppTest:
    return visits(judged, monkeypatch)(who, study="quagga")


@pytest.fixture(scope="module")
def page(judged: Database) -> AppTest:
    """A reader's page, drawn once: nothing here presses anything."""
    with pytest.MonkeyPatch.context() as patch:
        return visit(judged, patch, Identity(1, "reader"))


def walked(block: Any) -> list[Any]:
    """Everything on the page, in its order."""
    found = []
    for child in block.children.values():
        found.append(child)
        if hasattr(child, "children"):
            found += walked(child)
    return found


@pytest.mark.slow
def test_its_tables_lists_and_plots_are_there(page: AppTest) -> None:
    shown = html(page)
    assert shown.count('aria-label="Against tapir-greedy"') >= 1
    assert "2 raters are too few to show how raters differ" in shown
    summaries = re.findall("<summary>(.*?)</summary>", shown)
    assert {"Where human scores and metrics disagree most", "Where raters disagree most"} <= set(summaries)
    titles = re.findall(r'plot-title">(.*?)</p>', shown)
    assert {
        f"Human scores: tapir-greedy = 100 % ({escape(CAMPAIGN)})",
        f"Rank ranges, WMT mode ({escape(CAMPAIGN)})",
    } <= set(titles)
    assert ">Human scores against a metric</a></h3>" in shown
    charts = [json.loads(one.proto.spec) for one in walked(page.main) if one.type == "vega_lite_chart"]
    for axis in ("% of tapir-greedy", "human score, points", "'rank'"):
        assert any(axis in str(chart) for chart in charts), axis


def test_texts_and_names_are_never_markup(page: AppTest) -> None:
    shown = html(page)
    assert "&lt;b&gt;tasting&lt;/b&gt; *a* $x$" in shown
    assert "<b>tasting" not in shown
    for source, outputs in HOSTILE[:2]:  # where people and metrics disagree most, and in the outputs
        for text in (source, f"{outputs[2]}.."):
            assert escape(text) in shown
    assert not re.search(r"<(script|img|b)\b", shown)
    assert escape(ANNA) in shown
    markdown = [one.value for one in page.markdown] + [one.value for one in page.caption]
    assert not [text for text in markdown if "tasting" in text or "img" in text]


def test_whoever_rates_sees_none_of_it(judged: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rater's page is another one; that the report itself refuses raters is in test_rights.py."""
    with judged.session() as reading:
        campaign = reading.scalars(select(Campaign.id)).one()
        rater = reading.scalars(select(Rater.id).where(Rater.pseudonym == "ben")).one()
    anna = visit(judged, monkeypatch, Identity(1, "rater", rater_id=rater, campaign_id=campaign))
    shown = html(anna)
    assert "Rating translations" in shown or "done" in shown.lower()
    for word in ("verdict", "Human evaluation", "human score", *SYSTEMS):
        assert word not in shown
    assert "<table" not in shown
