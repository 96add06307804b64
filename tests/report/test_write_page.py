"""`--html FILE`: a whole page or what was there before."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from limits import ANSWER

from creamtea.cli.report import write_page
from creamtea.errors import InputError


def broken() -> str:
    raise RuntimeError("no such font")


def never() -> str:
    raise AssertionError("the page was made")


def test_a_page_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for there in (None, "yesterday\n"):
        if there is not None:
            path.write_text(there)
        with pytest.raises(RuntimeError):
            write_page(path, broken)
        assert [one.read_text() for one in tmp_path.iterdir()] == ([there] if there else [])


def test_a_page_takes_the_place_of_another_and_keeps_its_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.write_text("yesterday, and longer")
    real.chmod(0o640)
    link.symlink_to(real)
    write_page(link, lambda: "todaÿ")
    assert real.read_text(encoding="utf-8") == "todaÿ"
    assert (link.is_symlink(), real.stat().st_mode & 0o777) == (True, 0o640)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.html", "real.html"]
    new = tmp_path / ("n" * 250 + ".html")  # near the longest name there may be
    write_page(new, lambda: "new")
    assert new.read_text() == "new"


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "no" / "x.html", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(InputError, match=rf"--html .*: {why}"):
            write_page(path, never)
    if os.geteuid() != 0:  # root may write everywhere
        (tmp_path / "fixed.html").touch(0o444)
        with pytest.raises(InputError, match="Permission denied"):
            write_page(tmp_path / "fixed.html", never)


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    path, got = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_text()), daemon=True)
    reader.start()
    write_page(path, lambda: "page")
    reader.join(ANSWER)
    assert got == ["page"]
    assert path.is_fifo()
