"""Draft, launched, closed; what is registered, and whether it still holds."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rated_campaigns import rated_campaign, side_by_side
from ready_campaigns import PLAIN, add_rater, draft_campaign
from sqlalchemy import select, update

from creamtea.access import audit
from creamtea.document.values import digest
from creamtea.errors import InputError
from creamtea.human.formats import exchange
from creamtea.human.formats.base import ImportFacts
from creamtea.human.making import launching
from creamtea.human.results.ratings import load_ratings
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Campaign, Item

ON_BOTH = pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)


@pytest.fixture
def draft(study_database: Database) -> Database:
    draft_campaign(
        study_database,
        "c",
        systems=["beam", "plain"],
        settings=PLAIN.model_copy(update={"delta": 0.3}),
        ratings_per_item=2,
        seed=11,
        instructions="Read *both*.",
    )
    return study_database


def row_of(database: Database) -> Campaign:
    with database.session() as session:
        return find_campaign(session, "c")


def changes(database: Database) -> list[str]:
    with database.session() as session:
        return launching.changes(session, find_campaign(session, "c"))


def test_a_launch_registers_what_was_chosen(draft: Database) -> None:
    registered = launching.launch(draft, "c", "olga")
    row = row_of(draft)
    assert row.state == "launched"
    assert row.launched_at is not None
    assert row.registered == registered
    assert registered["systems"] == ["beam", "plain"]
    assert (registered["baseline"], registered["delta"], registered["seed"]) == ("plain", 0.3, 11)
    assert (registered["protocol"], registered["test_set"]) == ("contrastive-da", "test")
    assert registered["study"] == {"name": "jam", "number": row.study_id, "config_hash": "h"}
    assert registered["settings"] == row.settings
    assert registered["items"]["kinds"] == {"rated": 4}
    assert registered["instructions"] == digest("Read *both*.")
    assert registered["analysis"]["correction"].startswith("Holm")
    content = {part: value for part, value in registered.items() if part != "digest"}
    assert registered["digest"] == digest(content)
    (*_, event) = audit.read(draft, row.id)
    found = (event.actor, event.action, event.detail)
    assert found == ("olga", audit.LAUNCHED, {"digest": registered["digest"]})


def test_the_states_follow_each_other(draft: Database) -> None:
    with pytest.raises(InputError, match="campaign 'c' is a draft: only a launched campaign can be closed"):
        launching.close(draft, "c")
    launching.launch(draft, "c")
    with pytest.raises(InputError, match="campaign 'c' is launched: only a draft can be launched"):
        launching.launch(draft, "c")
    launching.close(draft, "c", reason="enough")
    row = row_of(draft)
    assert row.state == "closed"
    assert row.closed_at is not None
    assert audit.read(draft, row.id)[-1].reason == "enough"
    for step in (launching.launch, launching.close):
        with pytest.raises(InputError, match="campaign 'c' is closed"):
            step(draft, "c")
    with pytest.raises(InputError, match="no campaign 'd'; known: c"):
        launching.launch(draft, "d")


@ON_BOTH
def test_of_two_launches_at_once_one_is_refused(draft: Database) -> None:
    def launch(_: int) -> str:
        try:
            return str(launching.launch(draft, "c")["digest"])
        except InputError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(launch, range(4)))
    assert sorted(len(answer) == 64 for answer in answers) == [False, False, False, True]
    log = audit.read(draft, row_of(draft).id)
    assert [entry.action for entry in log].count(audit.LAUNCHED) == 1


@ON_BOTH
def test_an_untouched_campaign_holds_what_was_registered(draft: Database) -> None:
    assert changes(draft) == []  # a draft has nothing registered
    launching.launch(draft, "c")
    add_rater(draft, "c", "anna")
    assert changes(draft) == []
    launching.close(draft, "c")
    assert changes(draft) == []


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (update(Item).where(Item.position == 1).values(weight=2.0), "items"),
        (update(Item).where(Item.position == 0).values(source="other"), "items"),
        (update(Campaign).values(ratings_per_item=3), "ratings_per_item"),
        (update(Campaign).values(systems=["plain", "beam"]), "systems"),
        (update(Campaign).values(instructions=""), "instructions"),
        (update(Campaign).values(registered={"digest": "0"}), "registration"),
    ],
)
def test_what_was_changed_behind_its_back_is_named(draft: Database, change: Any, part: str) -> None:
    launching.launch(draft, "c")
    with draft.transaction() as session:
        session.execute(change)
    assert changes(draft) == [part]


def test_the_same_request_has_the_same_items_digest(draft: Database) -> None:
    with draft.transaction() as session:
        (first,) = session.scalars(select(Campaign.id))
        before = launching.items_digest(session, first)
    again = draft_campaign(draft, "again", seed=11, systems=["beam", "plain"])
    other = draft_campaign(draft, "other", seed=12, systems=["beam", "plain"])
    with draft.session() as session:
        assert launching.items_digest(session, again.id) == before
        assert launching.items_digest(session, other.id) != before


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_export_carries_what_was_registered(draft: Database, tmp_path: Path, kind: str) -> None:
    launching.launch(draft, "c")
    exchange.export_campaign(draft, "c", kind, tmp_path / "out", "olga")
    exchange.import_campaign(draft, tmp_path / "out", kind, ImportFacts("copy"), "olga")
    with draft.session() as session:
        copy = find_campaign(session, "copy")
        assert copy.study_id is None
        assert copy.registered == row_of(draft).registered
        assert launching.changes(session, copy) == []


def test_a_closed_campaign_is_opened_again_with_a_trace(draft: Database) -> None:
    launching.launch(draft, "c")
    with pytest.raises(InputError, match="only a closed campaign can be opened again"):
        launching.reopen(draft, "c", "dora", "too early")
    launching.close(draft, "c")
    with pytest.raises(InputError, match="give a reason to open campaign 'c' again"):
        launching.reopen(draft, "c", "dora", " ")
    launching.reopen(draft, "c", "dora", "a late rater")
    with draft.session() as session:
        row = find_campaign(session, "c")
        assert (row.state, row.closed_at) == ("launched", None)
        assert launching.changes(session, row) == []
        assert load_ratings(session, row).campaign.reopened == 1
    entry = audit.read(draft, row.id)[-1]
    assert (entry.actor, entry.action, entry.reason) == ("dora", audit.REOPENED, "a late rater")


def test_ratings_made_elsewhere_are_not_opened(database: Database) -> None:
    rated_campaign(database, side_by_side([[[1], [2]]]), state="closed")
    with pytest.raises(InputError, match="was rated elsewhere"):
        launching.reopen(database, "tasting", "dora", "why not")
    with database.session() as session:
        assert find_campaign(session, "tasting").state == "closed"
