"""Campaigns written straight into the tables, and a few steps that many tests of rating take."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from table_rows import all_of, campaign_row, item_row, row_of

from creamtea.human import rating as assignment
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.making import launching
from creamtea.human.rating import raters
from creamtea.human.record import Content
from creamtea.human.results.ratings import Ratings, load_ratings
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Assignment, Campaign, Item, Rater, Rating

# of single tests in files that run on SQLite alone (tests/conftest.py)
ON_BOTH = pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
LAPSED = timedelta(seconds=-1)
SYSTEMS = ["plain", "beam", "scones", "entmax"]


def make_campaign(
    database: Database,
    items: int | Sequence[dict[str, Any]] = 4,
    *,
    name: str = "c",
    k: int = 1,
    protocol: str = "contrastive-da",
    systems: int | None = None,
    state: str = "launched",
    row: Mapping[str, Any] | None = None,
    **settings: Any,
) -> int:
    """The id of a new campaign, with these columns in its `row`. An item may say any field; `original` is the
    index of its original.

    Item i has the source "source i" and the outputs "o<i>-<system>" unless it says otherwise.
    """
    shown = systems or {"contrastive-da": 4, "preference": 2}.get(protocol, 1)
    specs = [{} for _ in range(items)] if isinstance(items, int) else items
    with database.transaction() as session:
        usual: dict[str, Any] = {"name": name, "protocol": protocol, "systems": SYSTEMS[:shown]}
        usual |= {"ratings_per_item": k, "instructions": "*Read* twice.", "settings": settings}
        usual |= {"state": state, "created_at": database.now(session), "launched_at": None}
        campaign = campaign_row(**usual | dict(row or {}))
        session.add(campaign)
        session.flush()
        rows: list[Item] = []
        for position, spec in enumerate(specs):
            outputs = [f"o{position}-{system}" for system in range(shown)]
            fields = {"systems": list(range(shown)), "outputs": outputs, **spec}
            original = fields.pop("original", None)
            if original is not None:
                fields["original_id"] = rows[original].id
            rows.append(item_row(campaign.id, position, **fields))
            session.add(rows[-1])
            session.flush()
        return campaign.id


def add_rater(
    database: Database, pseudonym: str = "anna", campaign: str = "c", consented: bool = True
) -> int:
    rater_id = raters.add(database, campaign, "test", pseudonym=pseudonym)
    if consented:
        with database.transaction() as session:
            session.get_one(Rater, rater_id).consented_at = database.now(session)
    return rater_id


def work_for(database: Database, rater_id: int, **options: timedelta) -> assignment.Work:
    work = assignment.next_item(database, rater_id, **options)
    assert work is not None
    return work


def rate(database: Database, rater_id: int, work: assignment.Work, step: int = 3) -> assignment.Submitted:
    return assignment.submit(database, rater_id, work.assignment_id, [step] * len(work.outputs))


def rate_all(
    database: Database, rater_id: int, answer: Callable[[assignment.Work], list[Any]] | None = None
) -> list[str]:
    """The sources that the rater gets until nothing is left, each rated, with what `answer` says of it."""
    sources = []
    while (work := assignment.next_item(database, rater_id)) is not None:
        sources.append(work.source)
        given = [1] * len(work.outputs) if answer is None else answer(work)
        assignment.submit(database, rater_id, work.assignment_id, given)
    return sources


def ratings(database: Database) -> list[Rating]:
    return all_of(database, select(Rating).order_by(Rating.id))


def items_of(database: Database, name: str = "c") -> list[Item]:
    of_campaign = select(Item).join(Campaign).where(Campaign.name == name)
    return all_of(database, of_campaign.order_by(Item.position))


def changes_of(database: Database, name: str = "c") -> list[str]:
    """What differs from what the launch registered."""
    with database.session() as session:
        return launching.changes(session, find_campaign(session, name))


def results_of(database: Database, name: str = "c") -> Ratings:
    with database.session() as session:
        return load_ratings(session, find_campaign(session, name))


def exchanged(database: Database, folder: Path, kind: str = "csv", name: str = "c") -> Content:
    """The campaign as an export and an import, as campaign `again`, bring it back."""
    export_campaign(database, name, kind, folder / f"out-{kind}", "test")
    import_campaign(database, folder / f"out-{kind}", kind, ImportFacts("again"), "test")
    return collect(database, "again")


def stored(database: Database, assignment_id: int) -> Assignment:
    return row_of(database, Assignment, assignment_id)


def set_state(database: Database, campaign_id: int, state: str) -> None:
    with database.transaction() as session:
        session.get_one(Campaign, campaign_id).state = state


def system_of(text: str) -> int:
    """The system that says "o3-1 …"; 0 of a spoilt text without its first word."""
    first = text.split(" ")[0]
    return int(first.split("-")[1]) if "-" in first else 0


def rate_in_turns(
    database: Database,
    people: Sequence[int],
    answer: Callable[[list[int]], list[Any]],
    stop: int | None = None,
) -> list[tuple[int, list[int]]]:
    """Raters take turns until nothing is left, or `stop` pages are rated, with what `answer` says of a page's
    systems; who rated which systems, in time."""
    rated: list[tuple[int, list[int]]] = []
    working = list(people)
    while working:
        for rater in list(working):
            work = assignment.next_item(database, rater)
            if work is None:
                working.remove(rater)
                continue
            systems = [system_of(text) for text in work.outputs]
            assignment.submit(database, rater, work.assignment_id, answer(systems))
            rated.append((rater, systems))
            if len(rated) == stop:
                return rated
    return rated
