from collections.abc import Iterator

import pytest
from command_line import Run, runner
from made_once import made_once
from trained_study import Trained, train, trained_in


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    found = trained_in(made_once(tmp_path_factory, "trained", train))
    yield found
    found.database.close()


@pytest.fixture
def run(trained: Trained, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for name, value in trained.environment.items():
        monkeypatch.setenv(name, value)
    return runner(monkeypatch, capsys)
