"""A paper's table says what its studies trained here: by its name a smaller study is the same."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from sqlalchemy import delete, select, update

from creamtea.papers.catalogue import settings_of
from creamtea.report.model import Document, Facts, Warnings
from creamtea.report.papers.build import build_exhibit, settings_apart
from creamtea.store.database import Database
from creamtea.store.tables import Metric, StepRow, StudyRow, StudyStep


def ran(document: Document) -> list[tuple[str, str]]:
    return [
        (path.split("/")[0], f"{fact.label}: {fact.value}")
        for path, block in document.walk()
        if isinstance(block, Facts) and block.key == "ran"
        for fact in block.facts
    ]


def test_each_study_says_what_it_trained_below_its_size(new_store: Callable[..., Database]) -> None:
    document = build_exhibit(new_store("entmax-g2p", "g2p"), "entmax", "table", 1)
    models = "1,000 updates, 60,600,000 parameters; 30,000 training pairs"
    assert ran(document) == [
        ("paper", f"trained here by entmax-g2p, number 1: 30 models, {models}"),
        ("ours", f"trained here by g2p, number 2: 31 models, {models}"),
    ]


def test_models_of_several_sizes_are_a_range(new_store: Callable[..., Database]) -> None:
    database = new_store("entmax-g2p-half")
    with database.transaction() as writing:
        train = writing.scalars(select(StudyStep).where(StudyStep.node.like("train/%"))).first()
        assert train is not None
        mine = (Metric.step_key == train.step_key, Metric.name == "updates")
        writing.execute(update(Metric).where(*mine).values(value=90.0))
    (only,) = ran(build_exhibit(database, "entmax", "table", 1))
    assert only[1].split(": ")[1].startswith("6 models, 90 to 1,000 updates, 60,600,000 parameters")


def test_a_study_that_trained_nothing_yet_says_so(new_store: Callable[..., Database]) -> None:
    database = new_store("entmax-g2p-half")
    with database.transaction() as writing:
        steps = select(StudyStep.step_key)
        writing.execute(delete(Metric).where(Metric.step_key.in_(steps)))
        writing.execute(update(StepRow).where(StepRow.key.in_(steps)).values(state="pending"))
        writing.scalars(select(StudyRow)).one().state = "queued"
    (only,) = ran(build_exhibit(database, "entmax", "table", 1))
    assert only == ("ours", "trained here by entmax-g2p-half, number 1: none has finished")


def test_no_study_here_needs_no_line(no_studies: Database) -> None:
    assert ran(build_exhibit(no_studies, "entmax", "table", 1)) == []


def warned(document: Document) -> list[str]:
    return [
        warning.line()
        for _, block in document.walk()
        if isinstance(block, Warnings)
        for warning in block.warnings
    ]


def test_a_study_with_other_settings_than_the_published_one_is_warned_of(
    new_store: Callable[..., Database],
) -> None:
    database = new_store("entmax-g2p-half")
    assert warned(build_exhibit(database, "entmax", "table", 1)) == []
    with database.transaction() as writing:
        study = writing.scalars(select(StudyRow)).one()
        spec = json.loads(json.dumps(study.spec))
        spec["variants"]["softmax"]["training"]["max_epochs"] = 1
        spec["description"] = "smaller"
        study.spec = spec
    [line] = warned(build_exhibit(database, "entmax", "table", 1))
    assert line == (
        "entmax-g2p-half, number 1: it is not as in studies/entmax-g2p-half.yaml: "
        "variants.softmax.training.max_epochs. Its values may be of another size. `creamtea run "
        "studies/entmax-g2p-half.yaml --data DIR` runs ours."
    )


def test_settings_apart_are_those_of_what_both_studies_have() -> None:
    other = {"name": "a", "systems": {"x": {"width": 1}, "y": {"width": 1}}, "analyses": {"z": {"k": [1]}}}
    assert settings_apart({**other, "name": "b", "resources": {"train": {"cpus": 2}}}, other) == []
    own = {"name": "a", "systems": {"x": {"width": 2, "depth": 1}, "new": {}}, "analyses": None}
    assert settings_apart(own, other) == ["systems.x.width", "systems.x.depth"]


@pytest.mark.parametrize("file", ["studies/g2p.yaml", "studies/none.yaml"])
def test_where_studies_are_not_installed_nothing_is_compared(file: str) -> None:
    assert (settings_of(file, ()) is None) == file.endswith("none.yaml")
