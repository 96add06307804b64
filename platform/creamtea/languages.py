"""Names of languages for people; studies and campaigns refer to them by their codes."""

from __future__ import annotations

import re
from pathlib import Path

from babel import Locale
from babel.core import get_global

UNKNOWN = "und"  # BCP 47 and ISO 639: undetermined


def language(code: str) -> str:
    """As "German (de)", "Brazilian Portuguese (pt-BR)"; the code alone if the language is unknown.

    Codes are BCP 47's, and ISO 639's of three letters ("ces"), as in WMT's files; the names are CLDR's.
    """
    names, aliases = Locale("en").languages, get_global("language_aliases")
    key = code.replace("-", "_")
    first = key.split("_")[0].lower()
    name = names.get(key) or names.get(first) or names.get(aliases.get(first, ""))
    return f"{name} ({code})" if name else code


def pair(source: str, target: str) -> str:
    """As "English (en) → German (de)"."""
    return f"{language(source)} → {language(target)}"


def ending(path: Path) -> str:
    """The language's code at the end of a file's name (train.en, train.en.gz); empty if there is none."""
    ends = [end[1:].lower() for end in path.suffixes if end != ".gz"]
    return ends[-1] if ends and _known(ends[-1]) else ""


def guessed(source: Path, target: Path) -> tuple[str, str] | None:
    """The languages of two files by their names: by a pair in both (en-de.txt, en-de.refA.txt), or by how
    they end."""
    for named in _pairs(source.name):
        if named in _pairs(target.name):
            return named
    ends = ending(source), ending(target)
    return ends if all(ends) and ends[0] != ends[1] else None


def _pairs(name: str) -> list[tuple[str, str]]:
    """Two codes with a hyphen between, wherever they are: of dev-en-de en-de."""
    found = re.finditer(r"(?<![A-Za-z])(?=([a-z]{2,3})-([a-z]{2,3})(?![A-Za-z]))", name)
    return [(match[1], match[2]) for match in found if _known(match[1]) and _known(match[2])]


def _known(code: str) -> bool:
    return re.fullmatch("[a-z]{2,3}", code) is not None and language(code) != code
