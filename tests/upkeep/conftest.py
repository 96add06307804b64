"""Toy studies that have ended, with their files."""

from collections.abc import Callable
from pathlib import Path

import pytest
from toy_study import ToyStudy

from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import StepFile, StepRow, StudyRow


@pytest.fixture
def store(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "artefacts")


@pytest.fixture
def run_toys(tmp_path: Path, database: Database, store: ArtefactStore) -> Callable[..., ToyStudy]:
    """A study whose steps have these names, each after the one before it; those of equal names are shared.

    Its steps have a file with their name in it, or they have failed.
    """

    def run(name: str, *steps: str, fail: bool = False) -> ToyStudy:
        study = ToyStudy(database, store, tmp_path, name)
        for step in steps:
            study.add(step, before=list(study.keys)[-1:])
        study.submit()
        output = tmp_path / "output"
        output.mkdir(exist_ok=True)
        with database.transaction() as session:
            for step, key in study.keys.items():
                row = session.get_one(StepRow, key)
                if row.state == "succeeded":
                    continue
                row.state = "failed" if fail else "succeeded"
                if not fail:
                    (output / "out.txt").write_text(f"{step} {key}")
                    for file in store.put_folder(output):
                        session.add(
                            StepFile(step_key=key, name=file.name, digest=file.digest, size=file.size)
                        )
            session.get_one(StudyRow, study.id).state = "failed" if fail else "succeeded"
        return study

    return run
