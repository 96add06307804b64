"""The streaming pass over a text file, against reading it whole."""

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
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.errors import InputError
from creamtea.study import data_files
from creamtea.study.comparison import Comparison, comparison
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


BYTES = [b"\n", b"\n", b" ", b"a", b"\x85", b"\xe2", b"\xff", b"\r", codecs.BOM_UTF8]
PIECES = st.sampled_from([*BYTES, "é".encode(), "€".encode(), "𝄞".encode()])


@given(st.lists(PIECES, max_size=30).map(b"".join), st.integers(1, 5), st.booleans())
def test_scan_equals_reading_whole(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, block: int, packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "scanned"
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    expected = slow_scan(content)
    with patch.object(data_files, "BLOCK", block):
        if expected[0] == 1 and content.count(b"\r") > 1:
            with pytest.raises(UnreadableFile, match="as on old Macs"):
                scan(path)
            return
        facts = scan(path)
    assert (facts.lines, facts.blank, facts.invalid_line) == expected
    assert facts.digest == hashlib.sha256(content).hexdigest()


def archived(content: bytes, format: int) -> bytes:
    """Pack a text as a tar archive."""
    packed, member = io.BytesIO(), tarfile.TarInfo("text")
    member.size = len(content)
    with tarfile.open(fileobj=packed, mode="w", format=format) as archive:
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        pytest.param("a\u0085b\u2028c\x0bd\re\n".encode(), 1, id="only a newline ends a line"),
        pytest.param(gzip.compress(b"a\n") + gzip.compress(b"b\n"), 2, id="a gzip of two members"),
        # as in the head of a tar archive, but without its NUL
        pytest.param(f"{'x' * 253} me gustaría un té\n".encode(), 1, id="letters of tar"),
        pytest.param(b"BZh was a code of the post\n", 1, id="letters of bzip2"),
    ],
)
def test_lines_are_counted(tmp_path: Path, content: bytes, lines: int) -> None:
    (tmp_path / "x").write_bytes(content)
    assert scan(tmp_path / "x").lines == lines


@pytest.mark.parametrize(
    ("pack", "what"),
    [
        (lambda text: gzip.compress(text)[:-9], "a damaged gzip file"),
        (bz2.compress, "a bzip2 file"),
        (lambda text: bz2.compress(b""), "a bzip2 file"),
        (lzma.compress, "an xz file"),
        (partial(lzma.compress, format=lzma.FORMAT_ALONE), "an LZMA file"),
        (partial(archived, format=tarfile.GNU_FORMAT), "a tar archive"),
        (partial(archived, format=tarfile.PAX_FORMAT), "a tar archive"),
    ],
)
def test_packed_text_is_told_from_text(tmp_path: Path, pack: Callable[[bytes], bytes], what: str) -> None:
    (tmp_path / "x").write_bytes(pack(b"some text\n" * 100))
    with pytest.raises(UnreadableFile, match=what):
        scan(tmp_path / "x")


def moved_away(name: str) -> Path:
    return Path(name).rename(f"was-{name}").with_name(name)


TEST_TARGET = 'study.yaml:17: test_sets.test.target: found "test.de": '
BAD_FILES = {
    "missing": (
        lambda: Path("dev.de").unlink(),
        'study.yaml:8: corpora.text.dev.target: found "dev.de": no such file at dev.de',
    ),
    "misaligned": (
        lambda: Path("train.de").write_text("one\ntwo\n", encoding="utf-8"),
        "study.yaml:7: corpora.text.train[0].target: found 3 lines in train.en and 2 in train.de",
    ),
    "empty": (
        lambda: Path("test.en").write_bytes(b""),
        'study.yaml:17: test_sets.test.source: found "test.en": a file without text',
    ),
    "invalid UTF-8": (
        lambda: Path("test.de").write_bytes("eins\nzwei\ndrei für\n".encode("latin-1")),
        f"{TEST_TARGET}line 3 is not UTF-8",
    ),
    "NUL": (
        lambda: Path("test.de").write_bytes(b"eins\nzwei\0\ndrei\n"),
        f"{TEST_TARGET}line 2 has a NUL character (U+0000)",
    ),
    "lines of old Macs": (
        lambda: Path("test.de").write_bytes(b"eins\rzwei\rdrei\r"),
        f"{TEST_TARGET}lines that end with CR alone, as on old Macs",
    ),
    "folder": (
        lambda: moved_away("test.de").mkdir(),
        f"{TEST_TARGET}a file that cannot be read (Is a directory) at test.de",
    ),
    "pipe": (
        lambda: os.mkfifo(moved_away("test.de")),
        f"{TEST_TARGET}a file that cannot be read (a pipe or a device, not a file) at test.de",
    ),
}


@pytest.mark.parametrize("spoil, found", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files(write_files: Write, spoil: Callable[[], object], found: str) -> None:
    loaded = load_study(write_files())
    spoil()
    with pytest.raises(InputError) as caught:
        plan(loaded.study, Path(), loaded.errors)
    line, count = str(caught.value).splitlines()
    assert line.startswith(found)
    assert count == "1 mistake in study.yaml"
    assert caught.value.exit_code == 2


def test_lines_without_the_column_are_named(write_files: Write) -> None:
    pairs = "{source: train.en, target: train.de}"
    loaded = load_study(write_files((pairs, "{source: t.tsv, target: t.tsv, columns: [2, 1]}")))
    Path("t.tsv").write_text("eins\tone\nzwei\n\ndrei\tthree\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        plan(loaded.study, Path(), loaded.errors)
    found = 'found "t.tsv", line 2: 1 column, so there is no column 2, allowed text in column 2 of each line'
    assert str(caught.value).splitlines() == [
        f"study.yaml:7: corpora.text.train[0].source: {found}",
        "1 mistake in study.yaml",
    ]


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


# ---------------------------------------------------------------- files that are compared


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def compared(root: Path, *outputs: str | Path, **options: Any) -> Comparison:
    """The comparison of files of these names, each with its name as its text."""
    source, reference = (written(root / name, f"{name}\n") for name in ("src.en", "ref.de"))
    files = [written(root / path, f"{path}\n") if isinstance(path, str) else path for path in outputs]
    return comparison(source, [reference], files, **options)


@pytest.mark.parametrize("name", ["a.jsonl", "a.XML", "a.sgm.gz"])
def test_files_that_are_not_of_text_alone_are_refused(tmp_path: Path, name: str) -> None:
    """WMT's outputs of 2025 are JSON Lines: their braces and keys were scored as words."""
    with pytest.raises(InputError, match=r"not a file of text alone.*jq -r \.hypothesis"):
        compared(tmp_path, name)


def test_files_are_found_behind_a_link_to_the_sources_folder(tmp_path: Path) -> None:
    """Where `..` leads from the folder itself, not from the link."""
    source = written(tmp_path / "disk" / "deep" / "data" / "src.en", "tea\n")
    reference = written(source.with_name("ref.de"), "Tee\n")
    output = written(tmp_path / "work" / "out" / "a.de", "Tee!\n")
    link = tmp_path / "work" / "data"
    link.symlink_to(source.parent)
    assert comparison(link / source.name, [reference], [output]).plan().steps


def test_one_more_file_from_anywhere_computes_only_what_is_new(tmp_path: Path) -> None:
    outputs = ("a.de", "out/b.de", "../elsewhere/c.de")
    plans = [compared(tmp_path / "data", *outputs[:count]).plan() for count in (1, 2, 3)]
    first, second, third = ({step.key for step in planned.steps} for planned in plans)
    assert first < second < third


def test_files_of_one_name_are_told_apart_by_their_endings_or_their_folders(tmp_path: Path) -> None:
    def names(*paths: str) -> list[str]:
        return list(compared(tmp_path, *paths).study.systems)

    assert names("wmt/out.1", "wmt/out.2", "b.de") == ["out.1", "out.2", "b"]
    assert names("one/gpt.de", "two/gpt.de") == ["one-gpt", "two-gpt"]
    assert names("one/gpt.de", "one/gpt.txt.gz", "two/gpt.de") == ["one-gpt.de", "gpt.txt.gz", "two-gpt.de"]


def test_mistakes_name_what_was_given(tmp_path: Path) -> None:
    missing = tmp_path / "elsewhere" / "b.de"
    with pytest.raises(InputError) as told:
        compared(tmp_path / "data", "a.de", missing).plan()
    assert str(told.value).startswith(f'{missing}: found "{str(missing)[:20]}')
    assert ": no such file, allowed a text file" in str(told.value)  # and no path with `..` in it
    with pytest.raises(InputError, match=r'^--name: found "a b", allowed a name of letters, digits and '):
        compared(tmp_path, "a.de", name="a b")
    with pytest.raises(InputError, match=r"^--metrics: a name is missing between the commas"):
        compared(tmp_path, "a.de", metrics=["bleu", ""])
