"""A bundle's rows and files in a database and an artefact store that last as long as it is open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import insert, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from creamtea.bundle.archive import Archive, parse_lines
from creamtea.bundle.differences import Difference
from creamtea.bundle.packing import place_of, places_of
from creamtea.bundle.rows import TABLES, file_of, from_values
from creamtea.contract.step import MetricRow, PointRow, StepResult
from creamtea.errors import InputError, StepError
from creamtea.scratch import scratch_folder
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.database import Database, open_database
from creamtea.store.ingest import OF_STEP, ingest
from creamtea.store.ingest import TABLES as TEXT_FILES
from creamtea.store.rows import from_row
from creamtea.store.schema import head
from creamtea.store.tables import Base, Metric, Point, StepFile, StepRow

Row = TypeVar("Row", bound=Base)


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
    with scratch_folder("bundle") as folder:
        store = ArtefactStore(Path(folder) / "artefacts")
        database = open_database(f"sqlite:///{folder}/bundle.db")
        try:
            with database.transaction() as session:
                try:
                    places = _insert(session, archive)
                    differences = _ingest(session, store, archive, places, Path(folder) / "files")
                    session.flush()
                except (SQLAlchemyError, StepError, OverflowError) as error:
                    first = str(getattr(error, "orig", error)).splitlines()[0]
                    raise InputError(f"{archive.path}: its rows are inconsistent: {first}") from None
            yield Opened(database, store, archive.manifest.study.number, places, differences)
        finally:
            database.close()


def _check_schema(archive: Archive) -> None:
    manifest = archive.manifest
    if manifest.schema != head():
        raise InputError(
            f"{archive.path}: packed by creamtea {manifest.creamtea}, whose database is of revision "
            f"{manifest.schema}; this one's is of {head()}: verify it with the version that packed it"
        )


def _insert(session: Session, archive: Archive) -> dict[str, str]:
    """The rows that are not a step's results; the steps' places, by their keys."""
    for table in TABLES:
        if table not in OF_STEP and (values := _values(archive, table)):
            session.execute(insert(table), values)
    return places_of(session, archive.manifest.study.number)


def _ingest(
    session: Session, store: ArtefactStore, archive: Archive, places: dict[str, str], folder: Path
) -> list[Difference]:
    step_files, metrics = _by_step(archive, StepFile), _by_step(archive, Metric)
    points = _by_step(archive, Point)
    differences: list[Difference] = []
    for number, key in enumerate(session.scalars(select(StepRow.key).order_by(StepRow.key)).all()):
        files, texts = [], {}
        for row in step_files[key]:
            file = from_row(StoredFile, row)
            if file.name in TEXT_FILES:
                place = place_of(places.get(key, key), file.name)
                texts[file.name] = archive.read(place)
                there = _put(store, texts[file.name], folder / str(number), file.name)
                if there != file:
                    differences.append(Difference(f"{place}: SHA-256", file.digest, there.digest))
                file = there
            files.append(file)
        curves = sorted(points[key], key=lambda point: point.position)
        result = StepResult(
            [from_row(MetricRow, row) for row in metrics[key]], [from_row(PointRow, row) for row in curves]
        )
        ingest(session, key, result, files, texts)
    return differences


def _values(archive: Archive, table: type[Base]) -> list[dict[str, Any]]:
    """Of an INSERT."""
    file = file_of(table)
    return from_values(table, parse_lines(archive.read(file), file), file)


def _by_step(archive: Archive, table: type[Row]) -> dict[str, list[Row]]:
    """The rows of each step by its key."""
    found = defaultdict(list)
    for values in _values(archive, table):
        found[str(values["step_key"])].append(table(**values))
    return found


def _put(store: ArtefactStore, content: bytes, folder: Path, name: str) -> StoredFile:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    (stored,) = store.put_folder(folder)
    (folder / name).unlink()
    return stored
