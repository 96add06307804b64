"""People's judgements on a study's page, by AppTest: for readers, and escaped whatever they hold."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from filled_study import HOSTILE, fill_study, lines
from limits import ANSWER
from markupsafe import escape
from organiser_app import shown as html
from organiser_app import visits
from rated_campaigns import drawn_steps, rated_campaign, side_by_side
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

from creamtea.access.sessions import Identity
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Campaign, Rater
from creamtea_webapp import session

SYSTEMS = ["tapir-greedy", "tapir-lexicon", "tapir-nvs"]
CAMPAIGN, ANNA = "<b>tasting</b> *a* $x$", "<img src=x onerror=x>"
TEXTS = HOSTILE + lines(36)


@pytest.fixture(scope="module")
def judged(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The lexicon is worse, and people like the hostile outputs of NVS best, which its metrics do not."""
    path = tmp_path_factory.mktemp("judged") / "creamtea.db"
    path.write_bytes(sqlite_template.read_bytes())
    database = open_database(f"sqlite:///{path}")
    study = fill_study(database, TEXTS)
    steps = drawn_steps(40, [16, 9, 14], raters=2)
    steps[:4, 2] = 25
    items = side_by_side(steps, [ANNA, "ben"])
    for item, (source, outputs) in zip(items, TEXTS, strict=True):
        # an output is shown once, whichever systems made it: these are all different
        item |= {"source": source, "outputs": [f"{text}{'.' * at}" for at, text in enumerate(outputs[:3])]}
    rated_campaign(
        database,
        items,
        name=CAMPAIGN,
        study_id=study,
        test_set="narwhal",
        systems=SYSTEMS,
        raters=[ANNA, "ben"],
        ratings_per_item=2,
        settings={"baseline": "tapir-greedy", "delta": 0.3},
    )
    yield database
    database.close()


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


def rows(app: AppTest, label: str) -> dict[str, list[str]]:
    """The values of the rows of the first table with this label, by their names as they stand in the page."""
    table, *_ = re.findall(
        rf'<table [^>]*aria-label="{re.escape(label)}">(.*?)</table>', html(app), re.DOTALL
    )
    return {
        re.findall(r'class="name"[^>]*>(.*?)</span>', row)[0]: re.findall(
            r'class="value[^>]*>(.*?)</span>', row, re.DOTALL
        )
        for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)[1:]
    }


@pytest.mark.slow
def test_tables_have_the_verdicts_in_words(page: AppTest) -> None:
    compared = rows(page, "Against tapir-greedy")
    assert compared["tapir-lexicon, against tapir-greedy"][-1] == "worse"
    nvs = compared["tapir-nvs, against tapir-greedy"][-1]
    assert nvs.removesuffix(" (1)") in ("undecided", "no difference &gt; 0.3")
    means = rows(page, "Systems")
    assert means["tapir-greedy"][-1] == "100.0"
    assert len(means) == 3
    assert "worse" in rows(page, "table by system")["tapir-lexicon"]


def test_its_plots_are_there(page: AppTest) -> None:
    titles = re.findall(r'plot-title">(.*?)</p>', html(page))
    assert {
        f"Human scores: tapir-greedy = 100 % ({escape(CAMPAIGN)})",
        f"Rank ranges, WMT mode ({escape(CAMPAIGN)})",
    } <= set(titles)
    assert ">Human scores against a metric</a></h3>" in html(page)
    charts = [json.loads(one.proto.spec) for one in walked(page.main) if one.type == "vega_lite_chart"]
    fields = [str(chart) for chart in charts]
    for axis in ("% of tapir-greedy", "human score, points", "'rank'"):
        assert any(axis in field for field in fields), axis


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


def test_the_outputs_that_are_judged_differently_are_listed(page: AppTest) -> None:
    titles = re.findall("<summary>(.*?)</summary>", html(page))
    assert {"Where human scores and metrics disagree most", "Where raters disagree most"} <= set(titles)
    assert (
        len(re.findall(r"ratings 2, lowest \d\.\d\d, highest \d\.\d\d, deviation \d\.\d\d<", html(page))) == 8
    )


def test_few_raters_are_told(page: AppTest) -> None:
    assert "2 raters are too few to show how raters differ" in html(page)


def test_whoever_rates_sees_none_of_it(judged: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rater's page is another one; the report itself refuses raters, and organisers of one campaign."""
    with judged.session() as reading:
        campaign = reading.scalars(select(Campaign.id)).one()
        rater = reading.scalars(select(Rater.id).where(Rater.pseudonym == "ben")).one()
    anna = visit(judged, monkeypatch, Identity(1, "rater", rater_id=rater, campaign_id=campaign))
    shown = html(anna)
    assert "Rating translations" in shown or "done" in shown.lower()
    for word in ("verdict", "Human evaluation", "human score", *SYSTEMS):
        assert word not in shown
    assert "<table" not in shown
    for who in (
        Identity(1, "rater", rater_id=rater, campaign_id=campaign),
        Identity(1, "organiser", campaign_id=campaign),
    ):
        monkeypatch.setattr(session, "identity", lambda who=who: who)
        source = "from creamtea_webapp.pages import report\nreport.page()"
        app = AppTest.from_string(source, default_timeout=ANSWER).run()
        assert [error.value[:33] for error in app.error] == ["Your link does not open this page"]
        assert re.sub(r"<[^>]*>", "", html(app)).strip() == "What your link opens"
