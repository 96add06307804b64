"""Bundles of studies that were submitted again, and of those with plug-ins."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select

from creamtea.bundle.archive import columns_of, write_archive
from creamtea.bundle.packing import pack
from creamtea.bundle.verifying import Verification, verify
from creamtea.document.strict_json import digest
from creamtea.report.build import build_report
from creamtea.report.export import to_values
from creamtea.store.tables import Campaign, StudyRow, StudyStep


@pytest.mark.slow
def test_ratings_made_for_another_submission_go_along_if_the_outputs_are_the_same(
    home, tmp_path: Path
) -> None:
    with home.database.transaction() as session:
        taste = session.scalars(select(Campaign).where(Campaign.name == "taste")).one()
        first = session.scalars(select(StudyRow)).one()
        spec = {**first.spec, "description": "with another sentence"}
        values = {column: getattr(first, column) for column in columns_of(StudyRow)}
        again = StudyRow(**{**values, "id": None, "spec": spec, "config_hash": digest(spec)})
        session.add(again)
        session.flush()
        for place in session.scalars(select(StudyStep).where(StudyStep.study_id == first.id)).all():
            row = {column: getattr(place, column) for column in columns_of(StudyStep)}
            session.add(StudyStep(**{**row, "study_id": again.id}))
        other = StudyRow(**{**values, "id": None})  # with other outputs, or none
        session.add(other)
        session.flush()
        row = {column: getattr(taste, column) for column in columns_of(Campaign)}
        session.add(Campaign(**{**row, "id": None, "name": "of others", "study_id": other.id}))
        numbers = [again.id, other.id]
    try:
        files = pack(home.database, home.store, numbers[0])
        told = json.dumps(to_values(build_report(home.database, numbers[0])))
    finally:
        with home.database.transaction() as session:
            session.execute(delete(Campaign).where(Campaign.name == "of others"))
            session.execute(delete(StudyStep).where(StudyStep.study_id.in_(numbers)))
            session.execute(delete(StudyRow).where(StudyRow.id.in_(numbers)))
    assert "Campaign of others is left out: its raters saw other outputs" in told
    assert b"of others" not in files["report.json"]
    write_archive(files, tmp_path / "again.zip")
    checked = verify(tmp_path / "again.zip")
    assert checked.differences == ()
    assert checked.recomputed["ratings"] == 2 * 2 * 2 * 12


@pytest.mark.slow
def test_secrets_of_campaigns_in_the_studys_file_stay_out(home, tmp_path: Path) -> None:
    """A digest that covers them cannot be recomputed; everything else can."""
    raters = {"contact": "jo@example.org", "completion_code": "PROLIFIC-8R", "questions": ["contact?"]}
    written = {"later": {"raters": raters, "attention": {"failing_code": "F4D5"}}}
    with home.database.transaction() as session:
        study = session.scalars(select(StudyRow)).one()
        before = study.spec
        study.spec = {**before, "campaigns": written}
    try:
        files = pack(home.database, home.store, "tea")
    finally:
        with home.database.transaction() as session:
            study = session.scalars(select(StudyRow)).one()
            study.spec = before
    secrets = (b"jo@example.org", b"PROLIFIC-8R", b"F4D5")
    assert [name for name, text in files.items() if any(secret in text for secret in secrets)] == []
    write_archive(files, tmp_path / "tea.zip")
    checked = verify(tmp_path / "tea.zip")
    assert checked.differences == ()
    (left,) = (each for each in checked.not_recomputed if each.what == "digests of the study")
    assert "study 1: campaigns.later.raters.contact" in left.reason


@pytest.mark.slow
def test_a_plug_in_that_an_input_was_made_with_is_in_no_key_and_must_be_here(changed, home) -> None:
    """A step's resources also name the plug-ins of what it reads; its key names its own alone."""

    def made_with(version: str) -> Verification:
        def change(rows: Any) -> None:
            for row in rows:
                row["resources"]["plugins"] = {"pytest": version}

        return changed(("tables/step.jsonl", change))

    assert made_with(importlib.metadata.version("pytest")).differences == ()
    checked = made_with("0.0")
    assert checked.differences == ()
    left = {one.what: one.reason for one in checked.not_recomputed}
    assert "plug-in pytest 0.0" in left["keys of steps"]
    assert "plug-in pytest 0.0" in left["report.json"]
