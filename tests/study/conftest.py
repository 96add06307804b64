"""A small valid study as text, and a way to write variations of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

TEXTS = Path(__file__).with_name("texts")
SMALL, FILES = ((TEXTS / f"{name}.yaml").read_text(encoding="utf-8") for name in ("small", "files"))
Write = Callable[..., Path]

LINES = {"en": "one\ntwo\nthree\n", "de": "eins\nzwei\ndrei\n"}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes `study.yaml` into the (new) current folder, each `old` replaced by its `new`."""
    monkeypatch.chdir(tmp_path)

    def write_study(*replacements: tuple[str, str], text: str = SMALL) -> Path:
        for old, new in replacements:
            assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
            text = text.replace(old, new)
        path = Path("study.yaml")
        path.write_text(text, encoding="utf-8")
        return path

    return write_study


@pytest.fixture
def write_files(write: Write) -> Write:
    """The same for a study over files, with good files of three lines each beside it."""
    for name in ("train", "dev", "test"):
        for side in ("en", "de"):
            Path(f"{name}.{side}").write_text(LINES[side], encoding="utf-8")

    def write_study(*replacements: tuple[str, str]) -> Path:
        return write(*replacements, text=FILES)

    return write_study
