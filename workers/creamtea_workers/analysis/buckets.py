"""Buckets of a test set: which of its segments belong together, by length, frequency, idioms or labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from creamtea.words import MARK, WORD, is_unspaced, with_one_mark

MAX_LABELS = 12  # with buckets of their own; rarer ones share one
_WORD = re.compile(WORD)
_CHARACTER = re.compile(rf"\w{MARK}*")


@dataclass(frozen=True)
class Bucket:
    """`members`: positions in the test set, ascending; at least one."""

    kind: str
    words: str  # as people read it
    members: Sequence[int]


def words_of(text: str, language: str) -> list[str]:
    """Runs of letters and digits with their marks, case folded; single ones where the language is written
    without blanks."""
    folded, pattern = text.casefold(), _CHARACTER if is_unspaced(language) else _WORD
    return [folded[slice(*match.span())] for match in pattern.finditer(with_one_mark(folded))]


def count_words(lines: Iterable[str], wanted: Iterable[str], language: str) -> Counter[str]:
    """How often each of the wanted words is in the lines; of the others nothing is kept."""
    known, counts = frozenset(wanted), Counter[str]()
    for line in lines:
        counts.update(word for word in words_of(line, language) if word in known)
    return counts


def by_size(
    kind: str, values: Sequence[float], bounds: Sequence[float], name: Callable[[float, float], str]
) -> list[Bucket]:
    """Bucket n has the values above the bounds before its own, up to its own; the last has no bound. `name`
    is given the lowest and the highest value in a bucket. Without empty buckets."""
    places = np.searchsorted(np.array(bounds), np.array(values), side="left")
    buckets = []
    for place in range(len(bounds) + 1):
        members = np.flatnonzero(places == place).tolist()
        if members:
            own = [values[n] for n in members]
            buckets.append(Bucket(kind, name(min(own), max(own)), members))
    return buckets


def equal_bounds(values: Sequence[float], count: int) -> list[float]:
    """Bounds of buckets of about equal size; fewer where many values are the same, none without values."""
    if not values:
        return []
    quantiles = np.quantile(np.array(values), np.arange(1, count) / count, method="inverted_cdf")
    return [bound for bound in np.unique(quantiles).tolist() if bound < max(values)]


def by_rarest(rarest: Sequence[int], begins: Sequence[int]) -> list[Bucket]:
    """By how often the rarest word of each reference is in the training text; `begins`: the lowest count of
    each bucket but the first."""
    ends = [*begins[1:], None]
    names = [_times(0, begins[0] - 1)] + [
        _times(begin, None if end is None else end - 1) for begin, end in zip(begins, ends, strict=True)
    ]
    places = np.searchsorted(np.array(begins), np.array(rarest), side="right")
    return [
        Bucket("rarest", name, members)
        for place, name in enumerate(names)
        if (members := np.flatnonzero(places == place).tolist())
    ]


def by_idiom(segments: Sequence[Mapping[str, Any]]) -> list[Bucket]:
    """Nothing for a test set without idioms."""
    has = [bool(segment["idioms"]) for segment in segments]
    if not any(has):
        return []
    return [
        Bucket("idiom", words, [n for n, own in enumerate(has) if own == wanted])
        for words, wanted in (("with an idiom", True), ("without", False))
        if wanted in has
    ]


def by_label(labels: Sequence[str]) -> list[Bucket]:
    """In the order of the labels' names; the rarest together if there are more than `MAX_LABELS`."""
    common = [label for label, _ in Counter(labels).most_common()]
    own = common if len(common) <= MAX_LABELS else common[: MAX_LABELS - 1]
    buckets = [
        Bucket("label", label or "(no label)", [n for n, given in enumerate(labels) if given == label])
        for label in sorted(own)
    ]
    rest = [n for n, given in enumerate(labels) if given not in own]
    return [*buckets, Bucket("label", f"{len(common) - len(own)} other labels", rest)] if rest else buckets


def length_name(unit: str) -> Callable[[float, float], str]:
    def name(low: float, high: float) -> str:
        return f"{_range(int(low), int(high))} {unit if high != 1 else unit.removesuffix('s')}"

    return name


def frequency_name(low: float, high: float) -> str:
    return _times(round(low), round(high))


def _times(low: int, high: int | None) -> str:
    alone = {0: "never", 1: "once"}
    return alone[low] if low == high and low in alone else f"{_range(low, high)} times"


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,} or more"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
