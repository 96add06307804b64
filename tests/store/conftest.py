"""An artefact store, on a local folder or on a remote file system too; and a database with rows."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from filled_tables import fill

from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(
        str(tmp_path / "root") if request.param == "local" else f"memory://{uuid.uuid4().hex}"
    )


@pytest.fixture
def local(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "root")


@pytest.fixture
def filled(head_url: str) -> Iterator[Database]:
    """The database at `head_url`, with rows in every table."""
    database = open_database(head_url)
    fill(database)
    yield database
    database.close()
