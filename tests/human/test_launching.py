"""Draft, launched, closed; what is registered, and whether it still holds."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rated_campaigns import rated_campaign, side_by_side
from ready_campaigns import PLAIN, draft_campaign
from small_campaigns import ON_BOTH, add_rater
from sqlalchemy import update

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


def row_and_changes(database: Database, name: str = "c") -> tuple[Campaign, list[str]]:
    with database.session() as session:
        row = find_campaign(session, name)
        return row, launching.changes(session, row)


def test_a_launch_registers_what_was_chosen(draft: Database) -> None:
    registered = launching.launch(draft, "c", "olga")
    row, _ = row_and_changes(draft)
    assert (row.state, row.registered) == ("launched", registered)
    assert row.launched_at is not None
    content = {part: value for part, value in registered.items() if part != "digest"}
    assert registered["digest"] == digest(content)
    assert content["analysis"]["correction"].startswith("Holm")
    expected = {
        "systems": ["beam", "plain"],
        **{"baseline": "plain", "delta": 0.3, "seed": 11, "protocol": "contrastive-da", "test_set": "test"},
        "study": {"name": "jam", "number": row.study_id, "config_hash": "h"},
        "settings": row.settings,
        "instructions": digest("Read *both*."),
    }
    assert {part: registered[part] for part in expected} == expected
    assert registered["items"]["kinds"] == {"rated": 4}
    (*_, event) = audit.read(draft, row.id)
    found = (event.actor, event.action, event.detail)
    assert found == ("olga", audit.LAUNCHED, {"digest": registered["digest"]})


@ON_BOTH
def test_the_states_follow_each_other_and_what_was_registered_holds(draft: Database) -> None:
    assert row_and_changes(draft)[1] == []  # a draft has nothing registered
    with pytest.raises(InputError, match="campaign 'c' is a draft: only a launched campaign can be closed"):
        launching.close(draft, "c")
    launching.launch(draft, "c")
    add_rater(draft)
    with pytest.raises(InputError, match="campaign 'c' is launched: only a draft can be launched"):
        launching.launch(draft, "c")
    with pytest.raises(InputError, match="only a closed campaign can be opened again"):
        launching.reopen(draft, "c", "dora", "too early")
    assert row_and_changes(draft)[1] == []
    launching.close(draft, "c", reason="enough")
    row, changes = row_and_changes(draft)
    assert (row.state, changes) == ("closed", [])
    assert row.closed_at is not None
    assert audit.read(draft, row.id)[-1].reason == "enough"
    for step in (launching.launch, launching.close):
        with pytest.raises(InputError, match="campaign 'c' is closed"):
            step(draft, "c")
    with pytest.raises(InputError, match="give a reason to open campaign 'c' again"):
        launching.reopen(draft, "c", "dora", " ")
    launching.reopen(draft, "c", "dora", "a late rater")
    row, changes = row_and_changes(draft)
    assert (row.state, row.closed_at, changes) == ("launched", None, [])
    with draft.session() as session:
        assert load_ratings(session, find_campaign(session, "c")).campaign.reopened == 1
    entry = audit.read(draft, row.id)[-1]
    assert (entry.actor, entry.action, entry.reason) == ("dora", audit.REOPENED, "a late rater")


def test_there_is_nothing_to_launch_or_to_open_again(draft: Database) -> None:
    with pytest.raises(InputError, match="no campaign 'd'; known: c"):
        launching.launch(draft, "d")
    rated_campaign(draft, side_by_side([[[1], [2]]]), state="closed")
    with pytest.raises(InputError, match="was rated elsewhere"):
        launching.reopen(draft, "tasting", "dora", "why not")
    assert row_and_changes(draft, "tasting")[0].state == "closed"


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
    log = audit.read(draft, row_and_changes(draft)[0].id)
    assert [entry.action for entry in log].count(audit.LAUNCHED) == 1


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
    assert row_and_changes(draft)[1] == [part]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_export_carries_what_was_registered(draft: Database, tmp_path: Path, kind: str) -> None:
    registered = launching.launch(draft, "c")
    exchange.export_campaign(draft, "c", kind, tmp_path / "out", "olga")
    exchange.import_campaign(draft, tmp_path / "out", kind, ImportFacts("copy"), "olga")
    copy, changes = row_and_changes(draft, "copy")
    assert (copy.study_id, copy.registered, changes) == (None, registered, [])
