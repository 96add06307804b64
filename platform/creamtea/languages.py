"""Names of languages for people; studies and campaigns refer to them by their codes."""

from __future__ import annotations

from babel import Locale
from babel.core import get_global


def language(code: str) -> str:
    """As "German (de)", "Brazilian Portuguese (pt-BR)"; the code alone if the language is unknown.

    Codes are BCP 47's, and ISO 639's of three letters ("ces"), as in WMT's files; the names are CLDR's.
    """
    names, others = Locale("en").languages, get_global("language_aliases")
    key = code.replace("-", "_")
    first = key.split("_")[0].lower()
    name = names.get(key) or names.get(first) or names.get(others.get(first, ""))
    return f"{name} ({code})" if name else code


def pair(source: str, target: str) -> str:
    """As "English (en) → German (de)"."""
    return f"{language(source)} → {language(target)}"
