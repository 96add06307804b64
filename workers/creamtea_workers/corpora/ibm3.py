"""IBM model 3 as a generator of target sentences (Stahlberg and Kumar 2022, Appendix B; Brown et al. 1993).

What the generative story leaves open is settled as follows:

- *Temperature.* Every table is tempered, p^(1/γ) renormalised (Eq. 10): n, t, d as in the paper, and the
  choice of NULL words, too, so that γ = 0 (the arg max, the first of equals) is fully deterministic.
- *Fertility* has the support of its table: the largest φ listed is the cap.
- *NULL words.* φ₀ is the number of successes in Σφ trials with probability p₁ (Brown et al., Eq. 31).
- *Collisions.* Words are placed in the order of i and k, each by d restricted to the slots that are still
  vacant and renormalised. So no probability is lost to impossible arrangements, and every draw is a sentence.
- *m = 0.* The fertilities are drawn again: the sample is of the model given that the target is not empty.

The tables are written by hand (`language`) or counted in an alignment (`counted`).
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp
from typing import Generic, NamedTuple, Protocol, TypeVar

T = TypeVar("T", bound=Hashable)
_DRAWS = 1000  # of fertilities, before a source is said to have no translation
_COLD = 1e-3  # a temperature below which nearly all draws are the same


class Distribution(Generic[T]):
    """A tempered categorical distribution over `weights` (> 0, any scale)."""

    def __init__(self, weights: Mapping[T, float], gamma: float) -> None:
        self.outcomes = tuple(weights)
        self.probabilities = temper(tuple(weights.values()), gamma)
        self._cumulative = list(accumulate(self.probabilities))

    def shares(self) -> Iterator[tuple[T, float]]:
        return zip(self.outcomes, self.probabilities, strict=True)

    def draw(self, rng: random.Random) -> T:
        place = bisect_right(self._cumulative, rng.random() * self._cumulative[-1])
        return self.outcomes[min(place, len(self.outcomes) - 1)]


def temper(weights: Sequence[float], gamma: float) -> tuple[float, ...]:
    """w^(1/γ), renormalised; γ = 0 gives 1.0 to the first of the largest. Weights ≥ 0, one of them > 0."""
    top = max(weights)
    if gamma == 0:
        first = weights.index(top)
        return tuple(float(place == first) for place in range(len(weights)))
    powers = [(weight / top) ** (1 / gamma) for weight in weights]  # the largest is 1: no overflow
    total = sum(powers)
    return tuple(power / total for power in powers)


class Distortion(Protocol):
    """d(π|i, l, m)."""

    def weights(self, i: int, length: int, m: int) -> Sequence[float]:
        """Of the positions 1 … m, for the source position i of `length`, which counts from 1; all > 0, on
        any scale."""


@dataclass(frozen=True)
class Diagonal:
    """d(π|i, l, m) ∝ exp(-|π - c| / spread) around the diagonal, c = (i - 1/2) m/l + 1/2."""

    spread: float

    def weights(self, i: int, length: int, m: int) -> list[float]:
        centre = (i - 0.5) * m / length + 0.5
        return [exp(-abs(position - centre) / self.spread) for position in range(1, m + 1)]


@dataclass(frozen=True)
class Tables(Generic[T]):
    """The parameters of IBM-3, untempered; T are the words of either language. Weights > 0, on any scale."""

    fertility: Mapping[T, Mapping[int, float]]  # n(φ|x)
    lexical: Mapping[T, Mapping[T, float]]  # t(τ|x); no row where φ is always 0
    null_words: Mapping[T, float]  # t(τ|NULL); empty only if p1 is 0
    p1: float  # probability of a NULL word after each other word
    distortion: Distortion


class Target(NamedTuple, Generic[T]):
    """A target word and the source position, from 1, that it came from; 0 is NULL."""

    word: T
    origin: int


class Ibm3(Generic[T]):
    """`tables` at temperature `gamma`, ready for sampling."""

    def __init__(self, tables: Tables[T], gamma: float) -> None:
        self.tables, self.gamma = tables, gamma
        self._n = {x: Distribution(row, gamma) for x, row in tables.fertility.items()}
        # words that vanish in every draw. Only where it is cold: elsewhere the draws are part of a random
        # stream that stored corpora were sampled from
        cold = self._n if gamma < _COLD else {}
        self._vanish = {x for x, n in cold.items() if dict(n.shares()).get(0) == 1.0}
        self._t = {x: Distribution(row, gamma) for x, row in tables.lexical.items()}
        self._null = Distribution(tables.null_words, gamma) if tables.null_words else None
        self._p1 = temper((1 - tables.p1, tables.p1), gamma)[1]

    def sample(self, source: Sequence[T], rng: random.Random) -> list[Target[T]]:
        """A target sentence of `source`. ValueError if every draw of the fertilities was zero."""
        fertilities = self._fertilities(source, rng)  # step 1
        spurious = sum(rng.random() < self._p1 for _ in range(sum(fertilities)))  # step 2
        m = sum(fertilities) + spurious  # step 3
        slots: list[Target[T] | None] = [None] * m
        for i, (word, fertility) in enumerate(zip(source, fertilities, strict=True), start=1):
            for _ in range(fertility):  # steps 4 and 5
                target = Target(self._t[word].draw(rng), i)
                slots[self._place(slots, i, len(source), rng)] = target
        for _ in range(spurious):  # steps 4 and 6: uniform over the vacant slots
            assert self._null is not None  # p1 > 0
            vacant = [slot for slot, target in enumerate(slots) if target is None]
            slots[vacant[int(rng.random() * len(vacant))]] = Target(self._null.draw(rng), 0)
        return [target for target in slots if target is not None]  # step 7

    def _fertilities(self, source: Sequence[T], rng: random.Random) -> list[int]:
        for _ in range(1 if self._vanish.issuperset(source) else _DRAWS):
            fertilities = [self._n[word].draw(rng) for word in source]
            if any(fertilities):
                return fertilities
        raise ValueError(f"no word of {list(source)} gets a translation at temperature {self.gamma}")

    def _place(self, slots: Sequence[Target[T] | None], i: int, length: int, rng: random.Random) -> int:
        weights = self.tables.distortion.weights(i, length, len(slots))
        vacant = {slot: weights[slot] for slot, target in enumerate(slots) if target is None}
        return Distribution(vacant, self.gamma).draw(rng)
