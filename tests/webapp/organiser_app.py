"""Pages by AppTest: what tests of them share."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filled_study import QUAGGA
from limits import ANSWER
from ready_campaigns import launched_campaign
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from table_rows import one_of

import creamtea_webapp
from creamtea.access.sessions import Identity
from creamtea.human import rating as assignment
from creamtea.human.making import campaigns
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.rating import raters
from creamtea.store.database import Database
from creamtea.store.tables import AuditEvent, Campaign, Rater
from creamtea_webapp import session

SCRIPT = Path(creamtea_webapp.__file__).parent / "script" / "entry.py"
ORGANISER = Identity(7, "organiser")
READER = Identity(8, "reader")
HOSTILE_NAME = "<script>x</script> *a* $x$"

Visit = Callable[..., AppTest]


def visits(database: Database, monkeypatch: pytest.MonkeyPatch, who: Identity | None = ORGANISER) -> Visit:
    """`visit(campaign=3, view="log")`: that address as an organiser; `visit(READER)`: the app as a reader."""
    monkeypatch.setattr(session, "database", lambda: database)

    def open_address(who: Identity | None = who, **query: Any) -> AppTest:
        monkeypatch.setattr(session, "identity", lambda: who)
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


def order(app: AppTest) -> list[str]:
    """Keys of widgets, and the texts of errors, as they stand on the page."""
    found: list[str] = []

    def walk(block: Any) -> None:
        for element in block.children.values():
            if hasattr(element, "children"):
                walk(element)
            elif element.type == "html":
                body = element.proto.body
                if 'role="alert"' in body or 'class="notice error"' in body:
                    found.append(body)
            elif getattr(element, "key", None):
                found.append(str(element.key))

    walk(app.main)
    return found


def place_of_error(app: AppTest, words: str) -> str:
    """The key of the widget before the first error of these words."""
    shown = order(app)
    at = next(number for number, one in enumerate(shown) if "<" in one and words in one)
    return next(one for one in reversed(shown[:at]) if "<" not in one)


def press(app: AppTest, key: str) -> AppTest:
    return ran(app.button(key=key).click().run())


def rated_campaign(database: Database) -> tuple[campaigns.CampaignSummary, list[int]]:
    """A launched campaign with two raters of twelve items each: one answers at random, one always alike."""
    made = launched_campaign(
        database,
        "tasting",
        ratings_per_item=2,
        settings=CampaignSettings(items=10, bad_references=2, repeats=0),
        **QUAGGA,
    )
    people = [raters.add(database, "tasting", "test", pseudonym=name) for name in ("anna", HOSTILE_NAME)]
    draw = random.Random(1)
    with database.transaction() as writing:
        for one in people:
            writing.get_one(Rater, one).consented_at = database.now(writing)
    for one in people:
        while (work := assignment.next_item(database, one)) is not None:
            steps = [draw.randrange(26) if one == people[0] else 20 for _ in work.outputs]
            assignment.submit(database, one, work.assignment_id, steps, active_ms=draw.randrange(50))
    return made, people


def campaign_row(database: Database, name: str) -> Campaign:
    return one_of(database, select(Campaign).where(Campaign.name == name))


def actions(database: Database) -> list[tuple[str, str]]:
    with database.session() as reading:
        return [tuple(row) for row in reading.execute(select(AuditEvent.actor, AuditEvent.action))]
