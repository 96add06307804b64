"""Captions of sound and video for people who cannot hear them: a WebVTT file (W3C, WebVTT: The Web Video Text
Tracks Format) beside the media file, called as it is: `talk.vtt` of `talk.mp3`.

What is checked is what organisers get wrong: the encoding, the first line, and times as another format has
them. Browsers read the rest, and never as HTML.
"""

from __future__ import annotations

import re
from pathlib import Path

from creamtea.errors import InputError
from creamtea.human.media.files import CheckedFile, inside
from creamtea.human.media.types import CAPTIONS, CAPTIONS_ENDING
from creamtea.regular import read_text

MAX_BYTES = 2_000_000
_FIRST = re.compile(r"WEBVTT(?:[ \t].*)?")
_TIME = r"(?:\d{2,}:)?[0-5]\d:[0-5]\d\.\d{3}"
_TIMES = re.compile(rf"{_TIME}[ \t]+-->[ \t]+{_TIME}(?:[ \t].*)?")
REMEDY = "make it WebVTT"


def captions_of(folder: Path, name: str, place: str) -> CheckedFile | None:
    """The checked captions beside this media file, of a folder; None where there are none. InputError as
    `check_captions`."""
    captions = str(Path(name).with_suffix(CAPTIONS_ENDING))
    path = inside(folder, captions, place)
    return check_captions(path, place) if path.exists() else None


def check_captions(path: Path, place: str) -> CheckedFile:
    """A WebVTT file. InputError with `place`, the line and what to do."""
    where = f"{place}: {path.name}"
    lines = re.split(r"\r\n|\r|\n", read_text(path, where, MAX_BYTES))
    if not _FIRST.fullmatch(lines[0]):
        raise InputError(f"{where}, line 1: found {lines[0][:40]!r}; allowed: WEBVTT: {REMEDY}")
    cues = 0
    for number, line in enumerate(lines, start=1):
        if "-->" in line:
            cues += 1
            if not _TIMES.fullmatch(line.strip(" \t")):
                raise InputError(
                    f"{where}, line {number}: found {line[:60]!r}; allowed: 00:01.000 --> 00:02.500, with a "
                    "point before the milliseconds"
                )
    if not cues:
        raise InputError(f"{where}: no captions (00:01.000 --> 00:02.500): add some, or remove the file")
    return CheckedFile(path, CAPTIONS, path.stat().st_size)
