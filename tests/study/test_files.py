"""The streaming pass over a text file, against reading it whole."""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import io
import lzma
import os
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.errors import InputError
from creamtea.study import data_files
from creamtea.study.data_files import DataFiles, UnreadableFile, scan
from creamtea.study.loader import load_study
from creamtea.study.plan import plan

Write = Callable[..., Path]


def slow_scan(content: bytes) -> tuple[int, bool, int | None]:
    """(lines, blank, first invalid line) of a text, read whole."""
    content = content.removeprefix(codecs.BOM_UTF8)
    rows = content.split(b"\n")
    if rows[-1] == b"":
        rows.pop()
    invalid = None
    for number, row in enumerate(rows, start=1):
        try:
            row.decode("utf-8")
        except UnicodeDecodeError:
            invalid = number
            break
    return len(rows), not content.strip(), invalid


PIECES = st.sampled_from(
    [
        b"\n",
        b"\n",
        b" ",
        b"a",
        "é".encode(),
        "€".encode(),
        "𝄞".encode(),
        b"\x85",
        b"\xe2",
        b"\xff",
        b"\r",
        codecs.BOM_UTF8,
    ]
)


@given(st.lists(PIECES, max_size=30).map(b"".join), st.integers(1, 5), st.booleans())
def test_scan_equals_reading_whole(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, block: int, packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "scanned"
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    with patch.object(data_files, "BLOCK", block):
        facts = scan(path)
    assert (facts.lines, facts.blank, facts.invalid_line) == slow_scan(content)
    assert facts.digest == hashlib.sha256(content).hexdigest()


def archived(content: bytes, format: int) -> bytes:
    """Pack a text as a tar archive."""
    packed, member = io.BytesIO(), tarfile.TarInfo("text")
    member.size = len(content)
    with tarfile.open(fileobj=packed, mode="w", format=format) as archive:
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a\u0085b\u2028c\x0bd\re\n", encoding="utf-8")
    assert scan(tmp_path / "x").lines == 1


def test_a_gzip_of_several_members(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    assert scan(tmp_path / "x").lines == 2


def test_a_damaged_gzip(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(b"some text\n" * 100)[:-9])
    with pytest.raises(UnreadableFile, match="a damaged gzip file"):
        scan(tmp_path / "x")


@pytest.mark.parametrize(
    "text",
    [
        f"{'x' * 253} me gustaría un té\n",  # as in the head of a tar archive, but without its NUL
        "BZh was a code of the post\n",
    ],
)
def test_a_text_with_letters_of_another_format_is_a_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text, encoding="utf-8")
    assert scan(tmp_path / "x").lines == 1


@pytest.mark.parametrize(
    ("pack", "what"),
    [
        (bz2.compress, "a bzip2 file"),
        (lzma.compress, "an xz file"),
        *(
            (partial(archived, format=kind), "a tar archive")
            for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
        ),
    ],
)
def test_packed_text_is_told_from_text(tmp_path: Path, pack: Callable[[bytes], bytes], what: str) -> None:
    (tmp_path / "x").write_bytes(pack(b"some text\n" * 100))
    with pytest.raises(UnreadableFile, match=what):
        scan(tmp_path / "x")


BAD_FILES = {
    "missing": (
        lambda: Path("dev.de").unlink(),
        'study.yaml:8: corpora.text.dev.target: found "dev.de": no such file at dev.de, '
        "allowed a text file, plain or gzip; paths are taken relative to the study or to --data",
    ),
    "misaligned": (
        lambda: Path("train.de").write_text("one\ntwo\n", encoding="utf-8"),
        "study.yaml:7: corpora.text.train[0].target: found 3 lines in train.en and 2 in train.de, "
        "allowed equal counts: line n of one file belongs to line n of the other; align them again",
    ),
    "empty": (
        lambda: Path("test.en").write_bytes(b""),
        'study.yaml:17: test_sets.test.source: found "test.en": a file without text, '
        "allowed at least one sentence",
    ),
    "invalid UTF-8": (
        lambda: Path("test.de").write_bytes("eins\nzwei\ndrei für\n".encode("latin-1")),
        'study.yaml:17: test_sets.test.target: found "test.de": line 3 is not UTF-8, '
        "allowed UTF-8 text; convert the file (iconv -t UTF-8)",
    ),
    "NUL": (
        lambda: Path("test.de").write_bytes(b"eins\nzwei\0\ndrei\n"),
        'study.yaml:17: test_sets.test.target: found "test.de": line 2 has a NUL character (U+0000), '
        "allowed text that a database can hold; take it out",
    ),
    "lines of old Macs": (
        lambda: Path("test.de").write_bytes(b"eins\rzwei\rdrei\r"),
        'study.yaml:17: test_sets.test.target: found "test.de": lines that end with CR alone, as on old Macs '
        "(tr '\\r' '\\n' converts them) at test.de, allowed a text file, plain or gzip; paths are taken "
        "relative to the study or to --data",
    ),
    "folder": (
        lambda: Path("test.de").rename("was-test.de").with_name("test.de").mkdir(),
        'study.yaml:17: test_sets.test.target: found "test.de": a file that cannot be read '
        "(Is a directory) at test.de, allowed a text file, plain or gzip; paths are taken relative to the "
        "study or to --data",
    ),
    "pipe": (
        lambda: os.mkfifo(Path("test.de").rename("was-test.de").with_name("test.de")),
        'study.yaml:17: test_sets.test.target: found "test.de": a file that cannot be read '
        "(a pipe or a device, not a file) at test.de, allowed a text file, plain or gzip; paths are taken "
        "relative to the study or to --data",
    ),
}


@pytest.mark.parametrize("spoil, line", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files(write_files: Write, spoil: Callable[[], object], line: str) -> None:
    loaded = load_study(write_files())
    spoil()
    with pytest.raises(InputError) as caught:
        plan(loaded.study, Path(), loaded.errors)
    assert str(caught.value) == f"{line}\n1 mistake in study.yaml"
    assert caught.value.exit_code == 2


def test_all_bad_files_at_once(write_files: Write) -> None:
    loaded = load_study(write_files(("target: test.de}", "target: test.de, idioms: idioms.jsonl}")))
    Path("idioms.jsonl").write_text("[]\n[]\n", encoding="utf-8")
    Path("train.en").unlink()
    Path("dev.de").write_bytes(b"\n\n\n")
    with pytest.raises(InputError) as caught:
        plan(loaded.study, Path(), loaded.errors)
    assert [line.split(", allowed")[0] for line in str(caught.value).splitlines()] == [
        'study.yaml:7: corpora.text.train[0].source: found "train.en": no such file at train.en',
        'study.yaml:8: corpora.text.dev.target: found "dev.de": a file without text',
        "study.yaml:17: test_sets.test.idioms: found 3 lines in test.en and 2 in idioms.jsonl",
        "3 mistakes in study.yaml",
    ]


def test_no_data_folder(write_files: Write) -> None:
    loaded = load_study(write_files())
    with pytest.raises(InputError, match=r"^--data nowhere: no such folder; give the folder that holds"):
        plan(loaded.study, Path("nowhere"), loaded.errors)


def test_a_data_folder_that_no_database_can_name(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    with pytest.raises(
        InputError, match=r"^--data '.*/caf\\udce9': the path is not UTF-8, .*rename the folder"
    ):
        DataFiles(folder).locations(["train.en"])
