from __future__ import annotations

from collections.abc import Iterator

import pytest
from command_line import Run, runner
from faulty_study import Trained, trained_in


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    found = trained_in(tmp_path_factory.mktemp("trained"))
    yield found
    found.database.close()


@pytest.fixture
def run(trained: Trained, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for name, value in trained.environment.items():
        monkeypatch.setenv(name, value)
    return runner(monkeypatch, capsys)
