"""The spec of a stored study, where it cannot be read here."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import pytest
from sqlalchemy import select

from creamtea.orders.submission import UnreadableStudy
from creamtea.report.build import build_report
from creamtea.store.database import Database
from creamtea.store.tables import StepRow, StudyRow

Fill = Callable[..., int]


def message(database: Database, plugins: dict[str, str]) -> str:
    """Of the error, for a study with a search that nobody knows, planned with these plug-ins."""
    with database.transaction() as session:
        (row,) = session.scalars(select(StudyRow))
        system = {**row.spec["systems"]["scones-greedy"], "search": {"kind": "steeped"}}
        row.spec = {**row.spec, "systems": {**row.spec["systems"], "scones-greedy": system}}
        for step in session.scalars(select(StepRow).where(StepRow.kind == "decode")):
            step.resources = {**step.resources, "plugins": plugins}
    with pytest.raises(UnreadableStudy) as error:
        build_report(database, "teatime")
    return str(error.value)


def test_a_plug_in_that_is_not_installed_here_is_named(filled: Database, fill: Fill) -> None:
    fill(filled)
    said = message(filled, {"tea-searches": "1.2"})
    assert said.startswith("study 'teatime' (number 1) was planned with the plug-in tea-searches 1.2")
    assert "it is not installed here" in said


def test_another_version_of_the_plug_in_is_named(filled: Database, fill: Fill) -> None:
    fill(filled)
    assert f"version {version('numpy')} is installed here" in message(filled, {"numpy": "0.1"})


def test_a_study_of_another_version_is_to_be_run_again(filled: Database, fill: Fill) -> None:
    fill(filled)
    for plugins in ({}, {"numpy": version("numpy")}):
        assert "planned by creamtea 0.1" in message(filled, plugins)
