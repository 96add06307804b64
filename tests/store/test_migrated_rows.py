"""Rows that a revision changes or drops, up and down, on both databases; and what the new columns allow."""

import json
from typing import Any

import pytest
from filled_tables import another, change, dump, fill
from sqlalchemy import select, text, update
from sqlalchemy.exc import IntegrityError
from table_rows import NOON, all_of

from creamtea.access import sessions
from creamtea.store import schema
from creamtea.store.database import Database
from creamtea.store.tables import Assignment, Campaign, Item, Rater, Rating

# ---------------------------------------------------------------- organisers who sign in (0004)


def tokens(database: Database, column: str) -> dict[int, Any]:
    with database.session() as session:
        found = session.execute(text(f"SELECT id, {column} FROM access_token")).all()
    return {row[0]: row[1] for row in found}


def test_an_organisers_sign_in_moves_into_its_column_and_back(head_url: str, filled: Database) -> None:
    """Beside it: a link, another campaign's right of the same person, one with the separators in it."""
    schema.downgrade(head_url, "0003")
    names = {3: "dora@example.org", 4: "dora@example.org", 5: "https://id.example.org:1|sign-in:2:%"}
    of = {3: 1, 4: 2, 5: 2}
    digests = {number: f"sign-in:{of[number]}:{name}" for number, name in names.items()}
    columns = "id, digest, role, campaign_id, created_at, expires_at"
    for number, digest in digests.items():
        moment = f"'2026-01-0{number} 12:00:00.000000'"
        values = f"{number}, :digest, 'organiser', {of[number]}, {moment}, {moment}"
        change(
            filled, text(f"INSERT INTO access_token ({columns}) VALUES ({values})").bindparams(digest=digest)
        )
    change(filled, text("UPDATE access_token SET revoked_at = created_at WHERE id = 4"))
    before = dump(filled)
    schema.upgrade(head_url, "0004")
    assert tokens(filled, "subject") == {1: None, 2: None} | names
    after = tokens(filled, "digest")
    assert [after.pop(number) for number in names] == [None] * 3
    assert after == {1: "Zeile 1 – ∂", 2: "Zeile 2 – ∂"}
    schema.downgrade(head_url, "0003")
    assert dump(filled) == before


def test_tokens_that_the_third_schema_cannot_tell_apart_stay(head_url: str, filled: Database) -> None:
    """A right that was revoked and given again, one revoked twice, a rater's sign-in."""
    organiser = {"digest": None, "role": "organiser", "rater_id": None}
    dora, eve = (organiser | {"subject": f"{name}@example.org"} for name in ("dora", "eve"))
    rows = [dora | {"revoked_at": None}, dora, eve, eve, {"digest": None}]
    change(
        filled, *(another("access_token", 1, **row | {"id": number}) for number, row in enumerate(rows, 3))
    )
    before = dump(filled)
    schema.downgrade(head_url, "0003")
    after = dump(filled)  # without the tables that the third schema has not
    assert {name: len(rows) for name, rows in after.items()} == {name: len(before[name]) for name in after}
    assert "access_token" in after
    digests = tokens(filled, "digest")
    assert digests[3] == "sign-in:1:dora@example.org"
    assert digests[6] == "sign-in:1:eve@example.org"
    assert [len(bytes.fromhex(digests[number])) for number in (4, 5, 7)] == [32] * 3
    schema.upgrade(head_url, "0004")
    subjects = tokens(filled, "subject")
    assert (subjects.pop(3), subjects.pop(6)) == ("dora@example.org", "eve@example.org")
    assert set(subjects.values()) == {None}


@pytest.mark.parametrize(
    "wrong",
    [
        {"digest": "of a secret too"},
        {"role": "rater"},
        {"campaign_id": None},
        {"revoked_at": None},  # the same person's second
    ],
)
def test_a_right_to_sign_in_is_an_organisers_and_stands_once(
    database: Database, wrong: dict[str, Any]
) -> None:
    fill(database)
    right = {"digest": None, "role": "organiser", "subject": "dora@example.org"}
    change(database, another("access_token", 1, **right | {"id": 3, "revoked_at": None}))
    change(database, another("access_token", 1, **right | {"id": 4}))
    with pytest.raises(IntegrityError):
        change(database, another("access_token", 1, **right | {"id": 5} | wrong))


# ---------------------------------------------------------------- answers that are more than a score (0005)


STEPS = {"steps": [3, None], "comment": "schön", "revision": 1}
ANSWERS = {"answers": [3, None], "comment": "schön", "revision": 1}


def drafts_of(database: Database) -> dict[int, Any]:
    with database.session() as session:
        return dict(session.execute(select(Assignment.id, Assignment.draft)).all())


def test_drafts_and_scores_come_up_and_go_back(head_url: str, filled: Database) -> None:
    change(filled, update(Rating).values(payload=None))
    schema.downgrade(head_url, "0004")
    for number, draft in ((1, STEPS), (2, None)):
        change(filled, update(Assignment).where(Assignment.id == number).values(draft=draft))
    before = dump(filled)
    schema.upgrade(head_url, "0005")
    assert drafts_of(filled) == {1: ANSWERS, 2: None}
    after = dump(filled)
    assert [(row["step"], row["payload"]) for row in after["rating"]] == [(25, None), (25, None)]
    schema.downgrade(head_url, "0004")
    assert dump(filled) == before


def test_campaigns_of_a_plug_in_go_with_all_their_rows(head_url: str, filled: Database) -> None:
    """The fourth schema allows neither their protocol nor scores above 100; other campaigns stay whole."""
    kept = {name: rows for name, rows in dump(filled).items() if name not in ("item", "web_session")}
    change(
        filled,
        update(Campaign).where(Campaign.id == 1).values(protocol="toy-mqm"),
        update(Rating).where(Rating.id == 1).values(step=4000, payload={"spans": []}),
    )
    schema.downgrade(head_url, "0004")
    rows = dump(filled)
    for table in ("campaign", "item", "rater", "assignment", "rating", "access_token", "audit_event"):
        assert [row["id"] for row in rows[table]] == [2], table
    assert rows["campaign"] == [
        {name: value for name, value in kept["campaign"][1].items() if name != "programme"}
    ]
    assert len(rows["study"]) == len(kept["study"])


def test_a_score_may_be_any_number_of_steps_but_none_below_the_lowest(database: Database) -> None:
    fill(database)
    payload = {"spans": [[0, 3, "major"]]}
    change(database, another("rating", 1, id=3, revision=3, step=5000, payload=payload))
    with database.session() as session:
        stored = session.get_one(Rating, 3)
        assert (stored.step, stored.payload) == (5000, payload)
    with pytest.raises(IntegrityError):
        change(database, another("rating", 1, id=4, revision=4, step=-1))


def test_no_payload_is_null_in_the_database(database: Database) -> None:
    """Not JSON's null: a query for answers that are more than a score finds no others."""
    fill(database)
    change(database, update(Rating).where(Rating.id == 1).values(payload=None))
    assert all_of(database, select(Rating.id).where(Rating.payload.is_(None))) == [1]


# ---------------------------------------------------------------- links to one report (0007)


def test_a_link_to_one_report_never_becomes_one_to_all(head_url: str, filled: Database) -> None:
    reader = {"role": "reader", "rater_id": None}
    for number, digest in ((3, "lent"), (4, "all")):
        right = {"id": number, "digest": digest, "campaign_id": None, "study_id": 1 if number == 3 else None}
        opened = {"id": number, "token_id": number, "digest": f"of {number}"}
        change(filled, another("access_token", 1, **reader | right))
        change(filled, another("web_session", 1, **reader | opened))
    schema.downgrade(head_url, "0007")
    before = dump(filled)
    schema.downgrade(head_url, "0006")
    schema.upgrade(head_url, "0007")
    after = dump(filled)
    for name, gone in (("access_token", 3), ("web_session", 3)):
        assert after.pop(name) == [row for row in before.pop(name) if row["id"] != gone]
    assert after == before


def test_only_a_readers_link_is_for_one_report(database: Database) -> None:
    with pytest.raises(ValueError, match="only a reader's"):
        sessions.create_link(database, "organiser", study_id=1)
    sessions.create_link(database, "organiser")
    with pytest.raises(IntegrityError):
        change(database, text("UPDATE access_token SET study_id = 1"))


# ---------------------------------------------------------------- attention checks (0009)


def test_checks_go_with_their_answers_and_all_else_stays(head_url: str, filled: Database) -> None:
    whole = dump(filled)
    schema.downgrade(head_url, "0008")
    before = dump(filled)
    assert len(before["item"]) == len(whole["item"])
    schema.upgrade(head_url, "0009")
    assert {row["warned"] for row in dump(filled)["assignment"]} == {0}
    with filled.transaction() as session:
        session.execute(update(Item).where(Item.id == 1).values(kind="attention-check"))
        session.execute(update(Assignment).values(warned=2))
        answered = set(session.scalars(select(Assignment.id).where(Assignment.item_id == 1)))
    assert answered
    schema.downgrade(head_url, "0008")
    after = dump(filled)
    assert after["item"] == [row for row in before["item"] if row["id"] != 1]
    assert after["assignment"] == [row for row in before["assignment"] if row["id"] not in answered]
    assert after["rating"] == [row for row in before["rating"] if row["assignment_id"] not in answered]


# ---------------------------------------------------------------- items that are full (0021)


@pytest.mark.parametrize("excluded", [False, True])
def test_an_item_is_full_with_the_answers_of_raters_who_count(
    head_url: str, filled: Database, excluded: bool
) -> None:
    change(
        filled,
        update(Campaign).values(ratings_per_item=1),
        update(Item).values(original_id=None, full=False),
        update(Item).where(Item.id == 2).values(original_id=1),
        update(Assignment).values(item_id=1, submitted_at=NOON, skipped_at=None),
        update(Rater).values(excluded_at=NOON if excluded else None),
    )
    schema.downgrade(head_url, "0020")
    schema.upgrade(head_url)
    with filled.session() as session:
        assert dict(session.execute(select(Item.id, Item.full)).all()) == {1: not excluded, 2: not excluded}


# ---------------------------------------------------------------- campaigns that aimed (0022)


def test_what_aimed_campaigns_drew_is_a_block_and_back(head_url: str, filled: Database) -> None:
    bare = {"page": None, "original_id": None, "drawn": True, "outputs": ["a", "b", "c"]}
    low = [[1.0, 0.05, 1.0], [0.05, 0.05, 0.05], [1.0, 0.05, 1.0]]  # the second system was settled
    sure = {"systems": [0, 2], "chances": [[1.0, 1.0], [1.0, 1.0]]}
    side_by_side = bare | {"systems": [0, 1, 2]}
    alone = bare | {"segment_index": 7, "outputs": ["a"], "systems": [0]}
    rows = [
        side_by_side
        | {"segment_index": 5, "output_drawn": [True] * 3, "block": {"systems": [0, 1, 2], "chances": low}},
        side_by_side | {"segment_index": 6, "output_drawn": [True, False, True], "block": sure},
        alone | {"output_drawn": [True], "block": {"systems": [0], "chances": [[1.0]]}},
        alone | {"systems": [1], "drawn": False, "output_drawn": None, "block": None},
    ]
    change(
        filled,
        update(Campaign).where(Campaign.id == 1).values(settings={"aim": True}),
        update(Item).values(drawn=None),
        *(another("item", 1, **row | {"id": at, "position": at}) for at, row in enumerate(rows, 3)),
    )
    before = dump(filled)
    schema.downgrade(head_url, "0021")
    with filled.session() as session:
        columns = text("chance"), text("output_chances"), text("block")
        stored = session.execute(select(Item.id, *columns).where(Item.id > 2).order_by(Item.id)).all()
    lists = [json.loads(row[2]) if isinstance(row[2], str) else row[2] for row in stored]
    assert [row[1] for row in stored] == [1.0, 1.0, 1.0, 0.05]
    assert lists == [[1.0, 0.05, 1.0], [1.0, 0.05, 1.0], None, None]
    assert {row[3] for row in stored} == {None}
    schema.upgrade(head_url)
    assert dump(filled) == before
