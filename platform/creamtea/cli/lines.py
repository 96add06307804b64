"""Lines of text that a command is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import BinaryIO

from creamtea.errors import InputError


def iterate_lines(stream: BinaryIO, name: str, before: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Yield strictly UTF-8 lines without their ends, LF or CR LF; a byte-order mark is not text. `before` is
    called before each is read. InputError names the line that is not UTF-8; `name` is what people call the
    stream."""
    for number in count(1):
        before()
        line = stream.readline()
        if not line:
            return
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            yield text.removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise InputError(f"{name}, line {number}: not UTF-8 ({error.reason})") from None
