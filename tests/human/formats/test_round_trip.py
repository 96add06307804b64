"""Database → export → another database → export: the same rows, for every protocol and any text."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import FIXTURES_ARE_SHARED
from rated import NAMES, SYSTEMS, Rated, everything
from small_campaigns import add_rater, make_campaign, work_for
from sqlalchemy import select

from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.rating_rows import RatingRow, rows_of
from creamtea.human.formats.storing import collect
from creamtea.human.protocols import Protocol, find_protocol, protocol_names
from creamtea.store.database import Database
from creamtea.store.tables import AuditEvent, Campaign, Rater, Rating

HOSTILE = [
    "",
    "=HYPERLINK(1)",
    "'=x",
    "مرحبا بالعالم",
    "你好，世界",
    "<script>alert(1)</script>",
    "$x$ *a* :red:",
    'quote " comma , semicolon ;',
    "line\nline\rline\r\nline\u2028line\u0085line",
    "\ttab\t",
    "x" * 1000,
    "\ufeff",
]
# the protocols whose answers are their scores; `test_post_edits_survive` has payloads
SCORED = [
    name
    for name in protocol_names(rated_here=True)
    if type(find_protocol(name)).read_answer is Protocol.read_answer
]
TEXTS = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_folders = itertools.count(1)


def rows(database: Database, name: str) -> list[RatingRow]:
    return list(rows_of(collect(database, name)))


def moved(source: Database, target: Database, name: str, kind: str, folder: Path) -> Path:
    """The folder of an export that was imported under the same name."""
    path = folder / f"export-{next(_folders)}"
    export_campaign(source, name, kind, path, "test")
    import_campaign(target, path, kind, ImportFacts(name), "test")
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("protocol", SCORED)
def test_everything_of_a_campaign_survives(
    database: Database, other: Database, tmp_path: Path, protocol: str, kind: str
) -> None:
    rated = everything(database, protocol)
    first = moved(database, other, rated.name, kind, tmp_path)
    second = tmp_path / "again"
    export_campaign(other, rated.name, kind, second, "test")
    for file in ("items.jsonl", f"ratings.{kind}"):
        assert (first / file).read_bytes() == (second / file).read_bytes()
    before, after = collect(database, rated.name), collect(other, rated.name)
    assert dataclasses.replace(before, state="closed", closed_at=after.closed_at) == after
    assert len(rows(database, rated.name)) > len(before.items)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("text", HOSTILE)
def test_post_edits_survive(
    database: Database, other: Database, tmp_path: Path, kind: str, text: str
) -> None:
    make_campaign(database, [{"outputs": ["ein Haus"]}], protocol="post-edit", baseline="plain", delta=2.0)
    anna = add_rater(database)
    written = text if text.strip() else "="
    work = work_for(database, anna)
    assignment.submit(database, anna, work.assignment_id, [{"text": written}])
    moved(database, other, "c", kind, tmp_path)
    assert rows(other, "c") == rows(database, "c")
    assert rows(other, "c")[0].payload == {"text": written}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_from_sqlite_to_either_database_and_back(
    other: Database, database: Database, tmp_path: Path, kind: str
) -> None:
    rated = everything(other, "contrastive-da")
    moved(other, database, rated.name, kind, tmp_path)
    assert rows(database, rated.name) == rows(other, rated.name)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", SCORED)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@settings(
    max_examples=8,
    suppress_health_check=FIXTURES_ARE_SHARED,
)
@given(data=st.data())
def test_any_text_and_any_score_survive(
    database: Database, other: Database, tmp_path: Path, protocol: str, kind: str, data: st.DataObject
) -> None:
    rated = Rated(database, protocol)
    rated.rater("anna")
    single = protocol in ("da", "da-sqm")
    steps = st.integers(0, find_protocol(protocol).scale.steps - 1)
    output, source, comment = data.draw(TEXTS), data.draw(TEXTS), data.draw(TEXTS)
    outputs = {0: output} if single else {0: output, 1: f"{output}!"}
    rated.item(outputs, source=source, document=data.draw(TEXTS), weight=data.draw(st.floats(0, 1e6)))
    drawn = data.draw(st.lists(st.lists(steps, min_size=2, max_size=2), min_size=1, max_size=3))
    if protocol == "preference":
        drawn = [[step, 2 - step] for step, _ in drawn]
    order = [[0]] if single else data.draw(st.permutations([[0], [1]]))
    rated.answer(0, "anna", order, *[pair[: len(order)] for pair in drawn], comment=comment)
    moved(database, other, rated.name, kind, tmp_path)
    assert rows(other, rated.name) == rows(database, rated.name)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", SCORED)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_every_value_of_the_scale_survives(
    database: Database, other: Database, tmp_path: Path, protocol: str, kind: str
) -> None:
    rated = Rated(database, protocol)
    rated.rater("anna")
    every = range(find_protocol(protocol).scale.steps)
    for step in every:
        if protocol == "preference":
            rated.answer(rated.item({0: "a", 1: "b"}), "anna", [[0], [1]], [step, 2 - step])
        else:
            rated.answer(rated.item({0: "a"}), "anna", [[0]], [step])
    path = moved(database, other, rated.name, kind, tmp_path)
    with other.session() as session:
        stored = session.scalars(select(Rating.step).where(Rating.system == 0).order_by(Rating.assignment_id))
        assert list(stored) == list(every)
    labels = {row.value for row in rows(other, rated.name)}
    assert labels == {find_protocol(protocol).scale.label(step) for step in every}
    assert all(label in (path / f"ratings.{kind}").read_text() for label in labels)


def test_which_ratings_count(database: Database) -> None:
    rated = everything(database, "da")
    found = rows(database, rated.name)
    assert {(row.item, row.rater, row.revision) for row in found if row.counts} == {
        (0, "anna", 2),
        (0, "خالد", 1),
        (1, "anna", 1),
        (2, "anna", 1),
        (3, "anna", 1),
        (4, "anna", 1),
    }
    assert {row.rater for row in found if row.excluded} == {"=1+1"}
    skipped = [row for row in found if row.skipped_at is not None]
    assert [(row.system, row.step, row.skip_reason) for row in skipped] == [
        (SYSTEMS[0], None, "@no idea"),
        (SYSTEMS[2], None, "@no idea"),
    ]
    assert {row.shown for row in skipped} == {1}  # identical outputs share a place


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_no_file_says_who_a_rater_is(database: Database, tmp_path: Path, kind: str) -> None:
    rated = everything(database, "da")
    export_campaign(database, rated.name, kind, tmp_path / "out", "test")
    for file in (tmp_path / "out").iterdir():
        for name in NAMES:
            assert name not in file.read_text()


def test_an_import_belongs_to_no_study_and_is_closed(
    database: Database, other: Database, tmp_path: Path
) -> None:
    rated = everything(database, "da")
    path = tmp_path / "out"
    export_campaign(database, rated.name, "csv", path, "anna's session")
    done = import_campaign(other, path, "csv", ImportFacts("another name"), "command line")
    assert (done.campaign, done.systems, done.items, done.raters) == ("another name", 3, 5, 3)
    with other.session() as session:
        campaign = session.scalars(select(Campaign)).one()
        assert (campaign.study_id, campaign.state) == (None, "closed")
        assert campaign.registered == {"digest": "abc", "items": [1, 2]}
        assert {(rater.name, rater.subject) for rater in session.scalars(select(Rater))} == {(None, None)}
        event = session.scalars(select(AuditEvent)).one()
        assert (event.actor, event.action) == ("command line", "ratings imported")
    with database.session() as session:
        event = session.scalars(select(AuditEvent)).one()
        assert (event.actor, event.action) == ("anna's session", "ratings exported")
    with pytest.raises(InputError, match="already exists: import under another name"):
        import_campaign(other, path, "csv", ImportFacts("another name"), "command line")


def test_the_ratings_alone_give_the_same_rows(database: Database, other: Database, tmp_path: Path) -> None:
    """What the folder adds (contexts, guidance, settings) is no part of a re-analysis."""
    rated = everything(database, "contrastive-da")
    export_campaign(database, rated.name, "csv", tmp_path / "out", "test")
    facts = ImportFacts(rated.name, None, "test", "en", "de")
    import_campaign(other, tmp_path / "out" / "ratings.csv", "csv", facts, "test")
    assert rows(other, rated.name) == rows(database, rated.name)


def test_an_import_of_a_folder_may_choose_its_baseline(
    database: Database, other: Database, tmp_path: Path
) -> None:
    make_campaign(database, 3, name="c", systems=3)
    folder = tmp_path / "folder"
    export_campaign(database, "c", "csv", folder, "test")
    baseline = collect(database, "c").systems[1]
    import_campaign(other, folder, "csv", ImportFacts("own", baseline=baseline, delta=7.0), "test")
    settings_there = collect(other, "own").settings
    assert (settings_there["baseline"], settings_there["delta"]) == (baseline, 7.0)
    with pytest.raises(InputError, match="--baseline nobody: no such system; there are "):
        import_campaign(other, folder, "csv", ImportFacts("more", baseline="nobody"), "test")


@pytest.mark.parametrize("facts", [{"rater_statistics": Path("nowhere.txt")}, {"first_segment": 0}])
def test_what_only_appraise_has_is_refused_elsewhere(
    database: Database, other: Database, tmp_path: Path, facts: dict[str, Any]
) -> None:
    make_campaign(database, 3, name="c")
    export_campaign(database, "c", "csv", tmp_path / "folder", "test")
    with pytest.raises(InputError, match="is only for --format appraise"):
        import_campaign(other, tmp_path / "folder", "csv", ImportFacts("own", **facts), "test")


def test_a_folder_with_something_in_it_is_left_alone(database: Database, tmp_path: Path) -> None:
    rated = everything(database, "da")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "notes").write_text("mine")
    with pytest.raises(InputError, match="it is not empty"):
        export_campaign(database, rated.name, "csv", folder, "test")
    assert [path.name for path in folder.iterdir()] == ["notes"]


def test_the_header_carries_what_was_registered(database: Database, tmp_path: Path) -> None:
    rated = everything(database, "da")
    export_campaign(database, rated.name, "jsonl", tmp_path / "out", "test")
    header = json.loads((tmp_path / "out" / "campaign.json").read_text())
    assert header["campaign"]["registered"] == {"digest": "abc", "items": [1, 2]}
    assert set(header["sha256"]) == {"items.jsonl", "ratings.jsonl"}
