"""Lines of text that a command is given."""

from __future__ import annotations

import io

import pytest

from creamtea.cli.models import iterate_lines
from creamtea.errors import InputError


def test_a_byte_order_mark_before_the_first_line_is_not_text() -> None:
    given = io.BytesIO("\ufeffein Haus\r\n\ufeffein Baum".encode())
    assert list(iterate_lines(given, "standard input")) == ["ein Haus", "\ufeffein Baum"]


def test_a_line_that_is_not_utf_8_is_named() -> None:
    with pytest.raises(InputError, match="standard input, line 2: not UTF-8"):
        list(iterate_lines(io.BytesIO(b"\xef\xbb\xbfeins\n\xff\n"), "standard input"))
