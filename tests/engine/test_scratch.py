"""Temporary folders of killed processes are cleared away; those of living ones stay. Files are replaced."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from creamtea.files import clear_abandoned, host_id, replacing, scratch_folder

MAKE = """
import sys
from creamtea.files import scratch_folder
folder = scratch_folder("step")
print(folder.name, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_killed_process_leaves_nothing_for_long() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", MAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        folder = Path(process.stdout.readline().strip())
        (folder / "file").write_text("x")
        clear_abandoned()
        assert (folder / "file").exists()  # its process is running
        process.kill()
    assert folder.exists()  # as kill -9 leaves it
    clear_abandoned()
    assert not folder.exists()


@pytest.mark.parametrize("name", ["x", "字" * 84])  # 252 bytes, and file systems allow 255
def test_a_file_of_any_name_is_replaced_whole(tmp_path: Path, name: str) -> None:
    for text in ("first", "second"):
        with replacing(tmp_path / name) as partial:
            partial.write_text(text)
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, text)]


def test_others_folders_stay(tmp_path: Path) -> None:
    with scratch_folder("step") as own:
        others = [
            tmp_path / "creamtea-step-abc",
            tmp_path / "creamtea-step-00000000-999999999-x",
            tmp_path / f"creamtea-step-{host_id()}-{'9' * 30}-x",  # no number of a process
            tmp_path / "x",
        ]
        for folder in others:
            folder.mkdir()
        clear_abandoned()
        assert Path(own).exists()
        assert all(folder.exists() for folder in others)
