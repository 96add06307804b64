"""Where things are: from the environment, with defaults that need no set-up."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    home: Path  # CREAMTEA_HOME: the embedded database, artefacts and logs
    database_url: str  # CREAMTEA_DATABASE_URL
    artefacts: str  # CREAMTEA_ARTEFACTS: fsspec URL or folder, visible to every worker
    comet_python: Path  # CREAMTEA_COMET_PYTHON: the interpreter of COMET's own environment

    @classmethod
    def load(cls) -> Settings:
        home = Path(os.environ.get("CREAMTEA_HOME", "creamtea-data")).absolute()
        # .venv-comet lies beside the environment that runs this, as `make install-comet` puts it
        beside = Path(sys.prefix).absolute().parent / ".venv-comet" / "bin" / "python"
        return cls(
            home=home,
            database_url=os.environ.get("CREAMTEA_DATABASE_URL") or f"sqlite:///{home / 'creamtea.db'}",
            artefacts=os.environ.get("CREAMTEA_ARTEFACTS") or str(home / "artefacts"),
            comet_python=Path(os.environ.get("CREAMTEA_COMET_PYTHON") or beside),
        )
