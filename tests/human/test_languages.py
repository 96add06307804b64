"""Languages are shown by their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.languages import language, pair


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("de", "German (de)"),
        ("ces", "Czech (ces)"),  # ISO 639-2, as in WMT's files
        ("pt-BR", "Brazilian Portuguese (pt-BR)"),
        ("zh-Hant", "Traditional Chinese (zh-Hant)"),
        ("sr-Latn", "Serbian (sr-Latn)"),
        ("tlh", "Klingon (tlh)"),
        ("und", "Unknown language (und)"),
        ("qzz", "qzz"),
        ("", ""),
        ("../de", "../de"),
    ],
)
def test_a_known_code_has_a_name(code: str, shown: str) -> None:
    assert language(code) == shown


@given(st.text(max_size=20))
def test_the_code_is_always_there(code: str) -> None:
    assert language(code) == code or language(code).endswith(f" ({code})")


def test_a_pair() -> None:
    assert pair("en", "de") == "English (en) → German (de)"
