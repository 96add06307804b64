"""Names of languages for people; studies and campaigns use their codes."""

from __future__ import annotations

import re
from pathlib import Path

from babel import Locale
from babel.core import get_global

UNKNOWN = "und"  # BCP 47 and ISO 639: undetermined
# a language, optionally with a script and a region: zh, zh-CN, zh_Hant_TW, es-419
_CODE = "[a-z]{2,3}(?:[-_][A-Z][a-z]{3})?(?:[-_](?:[A-Z]{2}|[0-9]{3}))?"
_WHOLE_CODE = re.compile(
    r"(?P<main>[a-z]{2,3})(?:[-_][a-z]{4})?(?:[-_](?:[a-z]{2}|[0-9]{3}))?", re.IGNORECASE
)
_PART = re.compile("([-_])([A-Za-z0-9]+)")


def language(code: str) -> str:
    """Name a language: "German (de)", "Brazilian Portuguese (pt-BR)"; the code alone if unknown.

    Codes are BCP 47's, and ISO 639's of three letters ("ces"), as in WMT's files; the names are CLDR's.
    """
    names, aliases = Locale("en").languages, get_global("language_aliases")
    key = code.replace("-", "_")
    first = key.split("_")[0].lower()
    name = names.get(key) or names.get(first) or names.get(aliases.get(first, ""))
    return f"{name} ({code})" if name else code


def pair(source: str, target: str) -> str:
    """Name a pair of languages: "English (en) → German (de)"."""
    return f"{language(source)} → {language(target)}"


def ending(path: Path) -> str:
    """Return the language's code at the end of a file's name (train.en, train.zh-CN.gz), or ""."""
    ends = [end[1:] for end in path.suffixes if end != ".gz"]
    return known_code(ends[-1]) if ends else ""


def known_code(text: str) -> str:
    """Return the text as a known language's code in standard case (zh-CN, sr_Latn), or "".

    A region in small letters that is also a language does not count as a region: en-de is a pair.
    """
    match = _WHOLE_CODE.fullmatch(text)
    if match is None or language(main := match["main"].lower()) == main:
        return ""
    code = main
    for part in _PART.finditer(text):
        subtag = part[2]
        if len(subtag) == 4:
            form, known = subtag.title(), subtag.title() in Locale("en").scripts
        else:
            form, known = subtag.upper(), subtag.upper() in Locale("en").territories
        if not known or (subtag.islower() and language(subtag) != subtag):
            return ""
        code += part[1] + form
    return code


def parted(text: str) -> tuple[str, str] | None:
    """Split a pair of codes (en-de, en-zh-CN, pt_BR-en); None if it is not a pair, or ambiguous."""
    if match := re.fullmatch("([a-z]{2,3})-([a-z]{2,3})", text):
        return match[1], match[2]
    cuts = (match.start() for match in re.finditer("-", text))
    pairs = [(known_code(text[:cut]), known_code(text[cut + 1 :])) for cut in cuts]
    known = [codes for codes in pairs if all(codes)]
    return known[0] if len(known) == 1 else None


def guessed(source: Path, target: Path) -> tuple[str, str] | None:
    """Guess the languages of two files: by a pair in both names (en-de.txt), or by their endings."""
    for named in _pairs(source.name):
        if named in _pairs(target.name):
            return named
    ends = ending(source), ending(target)
    return ends if all(ends) and ends[0] != ends[1] else None


def _pairs(name: str) -> list[tuple[str, str]]:
    """Find two codes with a hyphen between them anywhere in a name: en-de in dev-en-de."""
    matches = re.finditer(rf"(?<![A-Za-z])(?=({_CODE})-({_CODE})(?![A-Za-z]))", name)
    return [(match[1], match[2]) for match in matches if known_code(match[1]) and known_code(match[2])]
