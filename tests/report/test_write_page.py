"""`--html FILE`: a whole page or what was there before."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from limits import ANSWER

from creamtea.cli.report import Printing, check_page, write_page
from creamtea.errors import InputError


def broken() -> str:
    raise RuntimeError("no such font")


def never() -> str:
    raise AssertionError("the page was made")


def test_a_page_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for there in (None, "<html>yesterday\n"):
        if there is not None:
            path.write_text(there)
        with pytest.raises(RuntimeError):
            write_page(path, broken)
        assert [one.read_text() for one in tmp_path.iterdir()] == ([there] if there else [])


def test_a_page_takes_the_place_of_another_and_keeps_its_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.write_text("<!doctype html>\nyesterday, and longer")
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
    for path, why in ((tmp_path / "no" / "x.html", "there is no folder"), (tmp_path, "Is a directory")):
        with pytest.raises(InputError, match=rf"--html .*: {why}"):
            write_page(path, never)
    if os.geteuid() != 0:  # root may write everywhere
        (tmp_path / "fixed.html").touch(0o444)
        with pytest.raises(InputError, match="Permission denied"):
            write_page(tmp_path / "fixed.html", never)


@pytest.mark.parametrize("there", ["", "\ufeff\n <!DOCTYPE HTML>\n", "<HTML lang=en>"])
def test_a_page_takes_the_place_of_a_page_or_of_nothing(there: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(there, encoding="utf-8")
    write_page(path, lambda: "new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("there", ["das Haus am See\n", "\n", " " * 2000 + "text", "<html5>", "\x1f\x8b"])
def test_what_is_no_page_is_kept(there: str, tmp_path: Path) -> None:
    path = tmp_path / "out.de"
    path.write_text(there)
    for refused in (lambda: write_page(path, never), lambda: Printing(False, False, path, None, None)):
        with pytest.raises(InputError, match=r"--html .*out\.de: .*name another"):
            refused()
    assert path.read_text() == there


def test_a_file_that_is_read_is_kept_even_if_it_is_a_page(tmp_path: Path) -> None:
    path, link = tmp_path / "source.html", tmp_path / "link.html"
    path.write_text("<html>")
    link.symlink_to(path)
    with pytest.raises(InputError, match=r"would overwrite .*source\.html"):
        check_page(link, [tmp_path / "none", path])


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    path, got = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_text()), daemon=True)
    reader.start()
    write_page(path, lambda: "page")
    reader.join(ANSWER)
    assert got == ["page"]
    assert path.is_fifo()
