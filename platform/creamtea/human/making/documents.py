"""The file that says of each segment of a test set which document it belongs to, as WMT and mt-metrics-eval
have it: `DOMAIN TAB DOCUMENT` a line, or `DOCUMENT` alone. Instead of the tab there may be blanks, as
mt-metrics-eval allows, where each line has two words: of other lines, blanks are part of the name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from creamtea.errors import InputError
from creamtea.store.storable import check_text

ABSENT = "-"  # the line of a segment that a campaign made elsewhere does not have
WITH_DOMAIN = "DOMAIN TAB DOCUMENT"


@dataclass(frozen=True)
class Documents:
    names: tuple[str, ...]  # of each segment's document; "" where the line is `ABSENT`
    domains: Mapping[str, str] = field(default_factory=dict)  # document → domain; empty without domains

    @property
    def lines(self) -> dict[str, list[int]]:
        """Document → the numbers of its lines, 0 for the first."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, name in enumerate(self.names):
            if name:
                found[name].append(number)
        return dict(found)


def read_documents(text: str, place: str, *, with_domains: bool = False) -> Documents:
    """The documents of a file's text; `place` is what messages call the file.

    InputError with the line for one that names no document, that gives a document a second domain, or that
    has a domain where other lines have none. `with_domains`: all must have one.
    """
    names: list[str] = []
    domains: dict[str, str] = {}
    alone = False  # whether documents stand without a domain
    lines = text.removeprefix("\ufeff").removesuffix("\n").split("\n")
    by_blanks = all(len(line.split()) == 2 or line.strip() == ABSENT for line in lines)
    for number, line in enumerate(lines, start=1):
        words = line.split() if by_blanks else [word.strip() for word in re.split(r"\t+", line.strip(" \r"))]
        if words == [ABSENT]:
            names.append("")
            continue
        *before, document = _checked(words, line, f"{place}, line {number}", with_domains=with_domains)
        if before and domains.setdefault(document, before[0]) != before[0]:
            raise InputError(
                f"{place}, line {number}: document {document!r} is of domain {before[0]!r} here and of "
                f"{domains[document]!r} before: a document has one"
            )
        alone |= not before
        if alone and domains:
            raise InputError(
                f"{place}, line {number}: some lines have a domain and some have none: give all of them one "
                f"({WITH_DOMAIN}), or none"
            )
        names.append(document)
    return Documents(tuple(names), domains)


def domain_settings(domains: Mapping[str, str], test_set: str) -> dict[str, dict[str, str]]:
    """A campaign's settings with the domain of each document; none where all are called as the test set."""
    return {"domains": dict(domains)} if set(domains.values()) - {test_set} else {}


def _checked(words: list[str], line: str, place: str, *, with_domains: bool) -> list[str]:
    fields = (2,) if with_domains else (1, 2)
    if len(words) not in fields or not all(words):
        allowed = WITH_DOMAIN if with_domains else f"DOCUMENT, or {WITH_DOMAIN}"
        raise InputError(f"{place}: found {line[:60]!r}; allowed: {allowed}")
    try:
        return [check_text(word) for word in words]
    except ValueError as error:
        raise InputError(f"{place}: found a name {error}") from None
