"""An artefact store, on a local folder or on a remote file system too."""

import uuid
from pathlib import Path

import pytest

from creamtea.store.artefacts import ArtefactStore


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(
        str(tmp_path / "root") if request.param == "local" else f"memory://{uuid.uuid4().hex}"
    )


@pytest.fixture
def local(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "root")
