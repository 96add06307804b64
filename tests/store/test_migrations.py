"""The migrations, up and down with rows in every table, on both databases."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from filled_tables import another, change, dump, fill, without
from sqlalchemy import TextClause, inspect, text, update

from creamtea.errors import CreamteaError, InputError
from creamtea.store import schema
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Base, Campaign, Rating, StudyRow


@pytest.fixture
def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the migrations that a test can add a revision to."""
    folder = tmp_path / "migrations"
    shutil.copytree(schema.migrations_folder(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations_folder", lambda: folder)
        yield folder


def add_revision(folder: Path, upgrade: str) -> None:
    (folder / "versions" / "9999_next.py").write_text(
        "from alembic import op\nimport sqlalchemy as sa\n"
        f"revision = '9999'\ndown_revision = {schema.head()!r}\n"
        f"def upgrade():\n{upgrade}\n"
        "def downgrade():\n    pass\n"
    )


# ---------------------------------------------------------------- models = migrations


def described(database: Database) -> dict[str, dict[str, list[str]]]:
    """Columns, keys, constraints and indices with their names, by table, in a form that can be compared."""
    inspector = inspect(database.engine)

    def told(value: Any) -> Any:
        """With the text of a partial index's condition, whose repr is its address."""
        if isinstance(value, dict):
            return sorted((name, told(one)) for name, one in value.items())
        return str(value) if isinstance(value, TextClause) else value

    parts = ("columns", "pk_constraint", "foreign_keys", "unique_constraints", "check_constraints", "indexes")
    found: dict[str, dict[str, list[str]]] = {}
    for part in parts:
        for (_, table), items in getattr(inspector, f"get_multi_{part}")().items():
            listed = [items] if isinstance(items, dict) else items
            # in order: a column that a migration adds stands last
            found.setdefault(table, {})[part] = sorted(repr(told(item)) for item in listed)
    return found


def test_the_migrations_make_the_models_tables(empty_url: str) -> None:
    """So that an empty database may have them at once."""
    schema.upgrade(empty_url, "0001")
    schema.upgrade(empty_url)
    database = open_database(empty_url, migrate=False)
    migrated = described(database)
    assert not any(rows for rows in dump(database).values())
    with database.transaction() as session:
        Base.metadata.drop_all(session.connection())
        session.execute(text("DROP TABLE alembic_version"))
    schema.upgrade(empty_url)
    assert described(open_database(empty_url, migrate=False)) == migrated
    assert set(migrated) == set(Base.metadata.tables) | {"alembic_version"}


def test_every_constraint_has_a_name(head_url: str) -> None:
    """A later migration can only drop what it can name."""
    inspector = inspect(open_database(head_url).engine)
    for table in Base.metadata.tables:
        constraints = [
            inspector.get_pk_constraint(table),
            *inspector.get_foreign_keys(table),
            *inspector.get_unique_constraints(table),
            *inspector.get_check_constraints(table),
        ]
        ours = tuple(f"{prefix}_{table}" for prefix in ("pk", "fk", "uq", "ck"))
        assert [c["name"] for c in constraints if not str(c["name"]).startswith(ours)] == []


def test_files_are_named_in_the_order_of_the_one_line_of_revisions() -> None:
    scripts = ScriptDirectory(str(schema.migrations_folder()))
    assert scripts.get_heads() == [schema.head()]
    assert [script.revision for script in scripts.walk_revisions()] == schema.revisions()[::-1]


# ---------------------------------------------------------------- up, down, up


# what a revision adds; the rows of all other tables survive its undoing
NEW_TABLES = {"0003": {"audit_event"}, "0011": {"blame"}, "0015": {"campaign_media"}}


def test_every_revision_can_be_undone_and_done_again_with_all_rows(head_url: str, filled: Database) -> None:
    rows = dump(filled)
    assert all(rows.values())
    revisions = schema.revisions()
    for lower, upper in zip(revisions[-2:0:-1], revisions[:1:-1], strict=True):
        schema.downgrade(head_url, lower)
        assert schema.current(head_url) == lower
        below = dump(filled)
        assert below == without(rows, below), lower
        assert set(rows) - set(below) == NEW_TABLES.get(upper, set())
        schema.upgrade(head_url, upper)
        again = dump(filled)
        assert without(again, below) == below, upper
        schema.downgrade(head_url, lower)
        assert dump(filled) == below
        rows = below
    schema.downgrade(head_url, "base")
    assert dump(filled) == {}
    schema.upgrade(head_url)
    assert schema.current(head_url) == revisions[-1]
    fill(filled)


def test_campaigns_of_the_first_schema_are_launched_with_their_studys_languages(
    head_url: str, filled: Database
) -> None:
    schema.downgrade(head_url, "0002")
    spec = {"languages": {"source": "en", "target": "de"}}
    change(filled, update(StudyRow).values(spec=spec), text('UPDATE item SET outputs = \'["a", "b", "a"]\''))
    schema.upgrade(head_url, "0003")
    rows = dump(filled)
    for campaign in rows["campaign"]:
        assert campaign["state"] == "launched"
        assert campaign["launched_at"] == campaign["created_at"]
        assert (campaign["source_language"], campaign["target_language"]) == ("en", "de")
    assert [item["systems"] for item in rows["item"]] == [[0, 1, 2]] * 2
    assert {item["kind"] for item in rows["item"]} == {"rated"}


def test_texts_that_no_model_made_go_with_the_schema_that_holds_them(head_url: str, filled: Database) -> None:
    given = {"text": "vier", "score": None, "length": None, "selected_size": None}
    change(filled, another("hypothesis", 1, index=4, **given))
    before = dump(filled)
    schema.downgrade(head_url, "0005")
    assert [row["index"] for row in dump(filled)["hypothesis"]] == [1, 2]
    schema.upgrade(head_url, "0006")
    after = dump(filled)
    kept = before["hypothesis"][0]
    assert after["hypothesis"][0] == kept
    # the step that lacks a text runs again, no other
    states = {row["key"]: row["state"] for row in before["step"]} | {kept["step_key"]: "cancelled"}
    assert {row["key"]: row["state"] for row in after["step"]} == states


def test_what_the_first_schema_cannot_hold_goes_with_its_rows(head_url: str, filled: Database) -> None:
    """A campaign of another protocol, and one of a study that has a repeat."""
    change(
        filled,
        update(Campaign).where(Campaign.id == 1).values(protocol="da"),
        update(Rating).where(Rating.id == 1).values(step=100),
        another("item", 3, campaign_id=2, kind="repeat", original_id=2),
    )
    schema.downgrade(head_url, "0002")
    rows = dump(filled)
    for table in ("campaign", "item", "rater", "rating", "web_session"):
        assert [row["id"] for row in rows[table]] == [2], table


def test_third_ratings_go_with_the_schema_that_holds_them(head_url: str, filled: Database) -> None:
    before = dump(filled)
    change(
        filled,
        another("item", 3, campaign_id=2, kind="third-rating", original_id=2),
        another("assignment", 3, item_id=3, rater_id=2),
        another("rating", 3, assignment_id=3),
    )
    schema.downgrade(head_url, "0019")
    lower = dump(filled)
    assert lower == without(before, lower)
    schema.upgrade(head_url)
    assert without(dump(filled), lower) == lower


# ---------------------------------------------------------------- older, newer, broken


def place_of(url: str) -> str:
    return repr(Database(url)).removeprefix("Database(").removesuffix(")")


def test_an_older_database_asks_for_the_upgrade(head_url: str) -> None:
    schema.downgrade(head_url, "-1")
    with pytest.raises(InputError) as error:
        open_database(head_url)
    assert str(error.value) == (
        f"{place_of(head_url)} has schema revision {schema.revisions()[-2]}, but this creamtea needs "
        f"{schema.head()}; run: creamtea db upgrade"
    )


@pytest.mark.parametrize("action", [open_database, schema.upgrade, lambda url: schema.downgrade(url, "base")])
def test_a_newer_database_is_left_alone(head_url: str, action: Any) -> None:
    database = open_database(head_url)
    change(database, text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InputError) as error:
        action(head_url)
    newer = f"{place_of(head_url)} has schema revision 9999, which is newer than this creamtea"
    assert str(error.value).startswith(newer)
    assert set(dump(database)) == set(Base.metadata.tables)


def test_an_unknown_revision_is_refused(head_url: str) -> None:
    with pytest.raises(InputError, match=r"cannot move .* to revision 'abc': .*abc.*; `creamtea db current`"):
        schema.downgrade(head_url, "abc")
    with pytest.raises(InputError, match=r"to revision '': no such revision; "):
        schema.upgrade(head_url, "")


@pytest.mark.slow
def test_rebuilding_a_parent_table_keeps_its_children(
    head_url: str, filled: Database, extended: Path
) -> None:
    """SQLite rebuilds `step` here; with foreign keys on, dropping the old table would empty its children."""
    before = dump(filled)
    add_revision(
        extended,
        "    with op.batch_alter_table('step') as batch:\n"
        "        batch.add_column(sa.Column('remark', sa.String(), nullable=True))\n"
        "        batch.alter_column('kind', type_=sa.Text())",
    )
    schema.upgrade(head_url)
    assert dump(filled) == before
    assert "remark" in {column["name"] for column in inspect(filled.engine).get_columns("step")}


def test_a_failed_migration_changes_nothing(head_url: str, extended: Path) -> None:
    database = open_database(head_url)
    present = schema.head()
    add_revision(extended, "    op.create_table('t', sa.Column('a', sa.Integer()))\n    raise RuntimeError")
    with pytest.raises(RuntimeError):
        schema.upgrade(head_url)
    assert "t" not in inspect(database.engine).get_table_names()
    assert schema.current(head_url) == present


def test_a_migration_that_leaves_orphans_is_undone(sqlite_url: str, extended: Path) -> None:
    database = open_database(sqlite_url)
    fill(database)
    before = dump(database)
    add_revision(extended, "    op.execute('DELETE FROM study')")
    with pytest.raises(CreamteaError, match="4 rows refer to rows that do not exist"):
        schema.upgrade(sqlite_url)
    assert dump(database) == before


def test_a_foreign_key_names_its_parent(database: Database) -> None:
    """Foreign keys are on again in ordinary use: deleting a step takes its rows with it."""
    fill(database)
    change(database, *(text(f"DELETE FROM {table}") for table in ("study_step", "step_input", "step")))
    after = dump(database)
    assert (after["metric"], after["segment"]) == ([], [])


@pytest.mark.slow
def test_threads_may_migrate_two_databases_at_once(tmp_path: Path, sqlite_template: Path) -> None:
    def migrate(url: str) -> None:
        schema.downgrade(url, "-4")  # an empty database would get all tables at once
        schema.upgrade(url)

    urls = [f"sqlite:///{tmp_path}/{number}.db" for number in range(4)]
    for url in urls:
        shutil.copyfile(sqlite_template, url.removeprefix("sqlite:///"))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(migrate, urls))
    assert [schema.current(url) for url in urls] == [schema.head()] * 4
