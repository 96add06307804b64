"""Toy studies that have ended, with their files."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from toy_study import ToyStudy

from creamtea.store.areas import Entry
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import StepFile, StepRow, StudyRow
from creamtea.upkeep import unneeded


@dataclass
class Toys:
    folder: Path
    database: Database
    store: ArtefactStore

    def run(self, name: str, *steps: str, fail: bool = False) -> ToyStudy:
        """A study of these steps, each after the one before it. Steps of equal names are shared.

        They have a file with their name in it, or they have failed.
        """
        study = ToyStudy(self.database, self.store, self.folder, name)
        for step in steps:
            study.add(step, before=list(study.keys)[-1:])
        study.submit()
        output = self.folder / "output"
        output.mkdir(exist_ok=True)
        with self.database.transaction() as session:
            for step, key in study.keys.items():
                row = session.get_one(StepRow, key)
                if row.state == "succeeded":
                    continue
                row.state = "failed" if fail else "succeeded"
                if not fail:
                    (output / "out.txt").write_text(f"{step} {key}")
                    for file in self.store.put_folder(output):
                        stored = {"name": file.name, "digest": file.digest, "size": file.size}
                        session.add(StepFile(step_key=key, **stored))
            session.get_one(StudyRow, study.id).state = "failed" if fail else "succeeded"
        return study

    def write(self, *places: str) -> None:
        for place in places:
            path = Path(self.store.root) / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("left behind")

    def age(self) -> None:
        """Make all files old enough to be deleted."""
        for path in Path(self.store.root).rglob("*"):
            if path.is_file():
                os.utime(path, (1, 1))

    def garbage(self) -> list[Entry]:
        return unneeded(self.database, self.store)


@pytest.fixture
def toys(tmp_path: Path, database: Database) -> Toys:
    return Toys(tmp_path, database, ArtefactStore(tmp_path / "artefacts"))
