"""The file of a bundle, as it is written."""

from __future__ import annotations

import errno
import zipfile
from pathlib import Path

import pytest

from creamtea.bundle import archive
from creamtea.errors import InputError


def test_a_bundle_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.zip"
    monkeypatch.setattr(archive, "MAX_BYTES", 5)
    with pytest.raises(InputError, match="1 files and 6 bytes unpacked, more than a bundle may have"):
        archive.write_archive({"a": b"123456"}, path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(InputError, match="No space left"):
        archive.write_archive({"a": b"123"}, path)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_in_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("tea")
    with pytest.raises(InputError, match="Not a directory"):
        archive.write_archive({"a": b"123"}, tmp_path / "file" / "new.zip")


def test_two_that_write_one_file_at_once_leave_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.zip"
    real, others = zipfile.ZipFile.writestr, [{"a": b"the other's"}]

    def beside_another(self: zipfile.ZipFile, info: zipfile.ZipInfo, content: bytes) -> None:
        if others:
            archive.write_archive(others.pop(), path)
        real(self, info, content)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", beside_another)
    archive.write_archive({"a": b"ours"}, path)
    with zipfile.ZipFile(path) as written:
        assert written.read("a") == b"ours"
    assert list(tmp_path.iterdir()) == [path]
