"""N-grams that one system's outputs have significantly more often than another's, of the same segments.

Outputs of a segment are a pair: the source decides most of their words. So each n-gram is tested over
segments, by the exact sign test (McNemar 1947) of how many have it in one output only. N-grams that occur in
too few such segments to be significant at all are left out of the correction (Tarone 1990): how many segments
those are says nothing of which system has it more often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import scipy  # scipy.stats is slow to import, and so is imported where it is first used

from creamtea.stats.paired import SIGNIFICANT, holm

LONGEST = 4  # words
NGram = tuple[str, ...]


@dataclass(frozen=True)
class CharacteristicNGram:
    """Counts of segments; `more`: whether the first system has it in more of them."""

    ngram: NGram
    ours: int  # segments whose first output has it
    theirs: int
    p_corrected: float  # Holm's, over the n-grams that could be significant

    @property
    def more(self) -> bool:
        return self.ours > self.theirs


def ngrams_of(words: Sequence[str], longest: int = LONGEST) -> set[NGram]:
    """Return the different n-grams of a text of up to `longest` words."""
    return {
        tuple(words[start : start + length])
        for length in range(1, longest + 1)
        for start in range(len(words) - length + 1)
    }


def characteristic_ngrams(
    ours: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]]
) -> list[CharacteristicNGram]:
    """Test which n-grams tell two systems' outputs apart; the smallest p-values come first.

    `ours` and `theirs`: words, segment by segment. If one n-gram holds another, only the more significant is
    listed; if both are equally significant, the longer one.
    """
    ours_in, theirs_in, only_ours, only_theirs = (Counter[NGram]() for _ in range(4))
    for own_words, other_words in zip(ours, theirs, strict=True):
        own, other = ngrams_of(own_words), ngrams_of(other_words)
        ours_in.update(own)
        theirs_in.update(other)
        only_ours.update(own - other)
        only_theirs.update(other - own)
    tested = _testable(only_ours, only_theirs)
    p_values = {
        pair: float(scipy.stats.binomtest(pair[0], sum(pair)).pvalue)
        for pair in {(only_ours[ngram], only_theirs[ngram]) for ngram in tested}
    }
    corrected = holm([p_values[only_ours[ngram], only_theirs[ngram]] for ngram in tested])
    significant = [
        CharacteristicNGram(ngram, ours_in[ngram], theirs_in[ngram], p)
        for ngram, p in zip(tested, corrected, strict=True)
        if p is not None and p < SIGNIFICANT
    ]
    significant.sort(key=lambda entry: (entry.p_corrected, -len(entry.ngram), entry.ngram))
    listed: dict[NGram, CharacteristicNGram] = {}
    inside_listed: set[NGram] = set()  # every part of a listed n-gram
    for entry in significant:
        parts = ngrams_of(entry.ngram)
        if entry.ngram not in inside_listed and parts.isdisjoint(listed):
            listed[entry.ngram] = entry
            inside_listed |= parts
    return list(listed.values())


def _testable(only_ours: Counter[NGram], only_theirs: Counter[NGram]) -> list[NGram]:
    """Return the n-grams that are in enough segments of one system only to be significant.

    They are in at least k segments, for the smallest k with which a corrected p-value could be significant: 2
    · 0.5^k times the number of such n-grams.
    """
    discordant = only_ours + only_theirs
    at_least = Counter(discordant.values())
    k, count = 1, len(discordant)
    while count and 2 * 0.5**k * count > SIGNIFICANT:
        count -= at_least[k]
        k += 1
    return sorted(ngram for ngram, segments in discordant.items() if segments >= k)
