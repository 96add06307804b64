"""A bundle's rows and files in a database and an artefact store that last as long as it is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from creamtea.bundle.archive import Archive, parse_lines
from creamtea.bundle.differences import Difference
from creamtea.bundle.packing import place_of
from creamtea.bundle.rows import TABLES, file_of, from_values
from creamtea.contract.step import MetricRow, PointRow, StepResult
from creamtea.errors import InputError, StepError
from creamtea.scratch import scratch_folder
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.database import Database, open_database
from creamtea.store.ingest import OF_STEP, ingest
from creamtea.store.ingest import TABLES as TEXT_FILES
from creamtea.store.schema import head
from creamtea.store.tables import Base, Metric, Point, StepFile, StepRow, StudyStep

Rows = dict[type[Base], list[dict[str, Any]]]


@dataclass(frozen=True)
class Opened:
    """`study`: its number. `places`: of each step by its key, the first one. `differences`: files that are
    not those which their steps left."""

    database: Database
    store: ArtefactStore
    study: int
    places: dict[str, str]
    differences: list[Difference]


@contextmanager
def opened_bundle(archive: Archive) -> Iterator[Opened]:
    """InputError for a bundle of another schema, and for rows that are no study's."""
    _check_schema(archive)
    rows: Rows = {
        table: from_values(table, parse_lines(archive.read(file_of(table)), file_of(table)), file_of(table))
        for table in TABLES
    }
    places: dict[str, str] = {
        row["step_key"]: str(row["node"])
        for row in sorted(rows[StudyStep], key=lambda row: (row["position"], row["node"]), reverse=True)
    }
    with scratch_folder("bundle") as folder:
        store = ArtefactStore(Path(folder) / "artefacts")
        database = open_database(f"sqlite:///{folder}/bundle.db")
        try:
            with database.transaction() as session:
                try:
                    differences = _fill(session, store, archive, rows, places, Path(folder) / "files")
                    session.flush()
                except (SQLAlchemyError, StepError, OverflowError) as error:
                    first = str(getattr(error, "orig", error)).splitlines()[0]
                    raise InputError(f"{archive.path}: its rows do not go together: {first}") from None
            yield Opened(database, store, archive.manifest["study"]["number"], places, differences)
        finally:
            database.close()


def _check_schema(archive: Archive) -> None:
    manifest = archive.manifest
    if manifest["schema"] != head():
        raise InputError(
            f"{archive.path}: packed by creamtea {manifest['creamtea']}, whose database is of revision "
            f"{manifest['schema']}; this one's is of {head()}: verify it with the version that packed it"
        )


def _fill(
    session: Session, store: ArtefactStore, archive: Archive, rows: Rows, places: dict[str, str], folder: Path
) -> list[Difference]:
    for table in TABLES:
        if table not in OF_STEP and rows[table]:
            session.execute(insert(table), rows[table])
    of_step = {table: _by_step(rows[table]) for table in (StepFile, Metric, Point)}
    differences: list[Difference] = []
    for number, step in enumerate(rows[StepRow]):
        key = str(step["key"])
        files = []
        for row in of_step[StepFile].get(key, []):
            file = StoredFile(row["name"], row["digest"], row["size"])
            if file.name in TEXT_FILES:
                place = place_of(places.get(key, key), file.name)
                there = _put(store, archive.read(place), folder / str(number), file.name)
                if there != file:
                    differences.append(Difference(f"{place}: SHA-256", file.digest, there.digest))
                file = there
            files.append(file)
        result = StepResult(
            [MetricRow(**row) for row in of_step[Metric].get(key, [])],
            [
                PointRow(row["series"], row["x"], row["y"], row["label"])
                for row in sorted(of_step[Point].get(key, []), key=lambda row: row["position"])
            ],
        )
        ingest(session, key, result, files, store)
    return differences


def _by_step(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each step, without its key."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["step_key"], []).append(
            {name: value for name, value in row.items() if name != "step_key"}
        )
    return found


def _put(store: ArtefactStore, content: bytes, folder: Path, name: str) -> StoredFile:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    (stored,) = store.put_folder(folder)
    (folder / name).unlink()
    return stored
