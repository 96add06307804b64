"""Words that messages share: counts with their nouns, durations, and the names of options and files.

A message is written once, in its reader's words. On the command line an option is `--select` and a file has
its path; on a page the option is a field with a label, and the file has the name of the upload. `on_page` and
`uploaded_to` choose between the two before a message is made. (Rewriting a message afterwards could change
the names of systems, raters and files in it, which may look like an option or a path.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_labels: ContextVar[Mapping[str, str] | None] = ContextVar("labels", default=None)
_uploads: ContextVar[Path | None] = ContextVar("uploads", default=None)


@contextmanager
def on_page(labels: Mapping[str, str]) -> Iterator[None]:
    """Name options by the labels of a page's fields."""
    token = _labels.set(labels)
    try:
        yield
    finally:
        _labels.reset(token)


@contextmanager
def uploaded_to(folder: Path) -> Iterator[None]:
    """Name files in this temporary folder by their names when uploaded."""
    token = _uploads.set(folder)
    try:
        yield
    finally:
        _uploads.reset(token)


def option(name: str) -> str:
    """Name an option for its reader: "--select", or on a page its field, "“Segments”"."""
    labels = _labels.get()
    return f"--{name}" if labels is None else f"“{labels.get(name, name)}”"


def key_name(name: str) -> str:
    """Name a key of a campaign file for its reader: "sample.kind", or on a page its field, "“Segments”"."""
    labels = _labels.get()
    return name if labels is None else f"“{labels.get(name, name)}”"


def file_name(path: Path) -> str:
    """Name a file for its reader: by its path, or by its name when uploaded."""
    folder = _uploads.get()
    inside = folder is not None and path.is_relative_to(folder)
    return str(path.relative_to(folder) if folder is not None and inside else path)


def counted(number: float, noun: str, plural: str | None = None) -> str:
    """Write a count with its noun: "1 rater", "2,000 raters". `plural`: unless noun + s."""
    words = noun if number == 1 else plural or f"{noun}s"
    return f"{number:,} {words}" if isinstance(number, int) else f"{number:,g} {words}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def with_minus(number: str) -> str:
    """Write a formatted number as people read it: "−0.28" for "-0.28", "0.00" for "-0.00"."""
    unsigned = number.lstrip("+-")
    return number.replace("-", "−") if unsigned.strip("0.") else unsigned


def describe_progress(done: float, total: float, message: str) -> str:
    """Describe progress for people: "60/6,000 updates, epoch 1"; the message may begin with the unit."""
    counts = "/".join(f"{number:,.0f}" if number >= 100 else f"{number:.3g}" for number in (done, total))
    return f"{counts} {message}".rstrip() if total else message


def duration(seconds: float) -> str:
    """Write a duration: "12 s", "4 min", "3 h 05 min"."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
