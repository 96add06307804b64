"""IBM-3: samples against the tables, and against the whole story spelled out."""

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from creamtea_workers.corpora.ibm3 import Diagonal, Ibm3, Tables, Target, temper

SPREAD = 0.8
TABLES = Tables(
    fertility={"a": {0: 0.3, 1: 0.5, 2: 0.2}, "b": {0: 0.1, 1: 0.9}, "never": {0: 1.0}},
    lexical={"a": {"x": 0.7, "y": 0.3}, "b": {"y": 0.4, "z": 0.6}, "never": {"x": 1.0}},
    null_words={"o": 1.0},
    p1=0.3,
    distortion=Diagonal(SPREAD),
)
Sentence = tuple[Target[str], ...]
T = TypeVar("T")


def matches(samples: Counter[Sentence], expected: dict[Sentence, float]) -> bool:
    """Chi-square at one in a thousand; sentences expected fewer than five times count together."""
    total = sum(samples.values())
    assert set(samples) <= set(expected)
    common = [sentence for sentence in expected if expected[sentence] * total >= 5]
    observed = [samples[sentence] for sentence in common]
    theory = [expected[sentence] * total for sentence in common]
    rest = sum(theory) - total
    if rest < -1e-6:
        observed, theory = [*observed, total - sum(observed)], [*theory, -rest]
    return bool(chisquare(observed, theory).pvalue > 0.001)


def power(row: Mapping[T, float], gamma: float) -> dict[T, float]:
    total = sum(p ** (1 / gamma) for p in row.values())
    return {outcome: p ** (1 / gamma) / total for outcome, p in row.items()}


def story(tables: Tables[str], source: Sequence[str], gamma: float) -> dict[Sentence, float]:
    """The probability of every target, by going through all draws of Appendix B."""
    result: dict[Sentence, float] = defaultdict(float)
    n = [power(tables.fertility[word], gamma) for word in source]
    p1 = power({0: 1 - tables.p1, 1: tables.p1}, gamma)[1]
    for fertilities in itertools.product(*n):
        sigma = sum(fertilities)
        if sigma == 0:
            continue  # drawn again: the rest is renormalised below
        chance = math.prod(row[phi] for row, phi in zip(n, fertilities, strict=True))
        origins = [i for i, phi in enumerate(fertilities, start=1) for _ in range(phi)]
        for spurious in range(sigma + 1):
            binomial = math.comb(sigma, spurious) * p1**spurious * (1 - p1) ** (sigma - spurious)
            for sentence, p in arrangements(tables, source, origins, spurious, gamma).items():
                result[sentence] += chance * binomial * p
    total = sum(result.values())
    return {sentence: p / total for sentence, p in result.items()}


def arrangements(
    tables: Tables[str], source: Sequence[str], origins: list[int], spurious: int, gamma: float
) -> dict[Sentence, float]:
    m = len(origins) + spurious
    result: dict[Sentence, float] = defaultdict(float)
    for slots in itertools.permutations(range(m)):
        place = 1.0 / math.factorial(spurious)
        for done, (i, slot) in enumerate(zip(origins, slots, strict=False)):
            centre = (i - 0.5) * m / len(source) + 0.5
            d = [math.exp(-abs(pi - centre) / SPREAD / gamma) for pi in range(1, m + 1)]
            place *= d[slot] / sum(d[other] for other in range(m) if other not in slots[:done])
        rows = [power(tables.lexical[source[i - 1]], gamma) for i in origins]
        rows += [power(tables.null_words, gamma)] * spurious
        for words in itertools.product(*rows):
            t = math.prod(row[word] for row, word in zip(rows, words, strict=True))
            sentence: list[Target[str]] = [Target("", 0)] * m
            for word, origin, slot in zip(words, [*origins, *[0] * spurious], slots, strict=True):
                sentence[slot] = Target(word, origin)
            result[tuple(sentence)] += place * t
    return result


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_samples_follow_the_whole_story(gamma: float) -> None:
    model, rng = Ibm3(TABLES, gamma), random.Random(7)
    samples = Counter(tuple(model.sample(["a", "b"], rng)) for _ in range(20000))
    assert matches(samples, story(TABLES, ["a", "b"], gamma))


def test_the_comparison_can_fail() -> None:
    model, rng = Ibm3(TABLES, 1.0), random.Random(7)
    samples = Counter(tuple(model.sample(["a", "b"], rng)) for _ in range(20000))
    assert not matches(samples, story(TABLES, ["a", "b"], 0.9))


def test_a_sentence_without_a_word_is_drawn_again() -> None:
    model, rng = Ibm3(TABLES, 1.0), random.Random(1)
    fertilities = Counter(sum(origin == 1 for _, origin in model.sample(["a"], rng)) for _ in range(7000))
    assert set(fertilities) == {1, 2}
    assert chisquare([fertilities[1], fertilities[2]], [5000, 2000]).pvalue > 0.001


def test_temperature_zero_is_the_arg_max_whatever_the_seed() -> None:
    targets = [Ibm3(TABLES, 0).sample(["a", "b", "a"], random.Random(seed)) for seed in range(20)]
    assert all(target == [("x", 1), ("z", 2), ("x", 3)] for target in targets)


def test_a_source_that_can_have_no_translation_is_refused() -> None:
    with pytest.raises(ValueError, match="no word of"):
        Ibm3(TABLES, 1.0).sample(["never"], random.Random(1))


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=6), st.floats(0.05, 5.0))
def test_tempering_is_a_renormalised_power(weights: list[float], gamma: float) -> None:
    powers = [math.exp(math.log(weight) / gamma - max(map(math.log, weights)) / gamma) for weight in weights]
    assert temper(weights, gamma) == pytest.approx([p / sum(powers) for p in powers])


def test_the_first_of_equals_is_the_arg_max() -> None:
    assert temper((0.2, 0.4, 0.4), 0) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize("gamma", [0.0, 1e-300, 1e-6])
def test_where_it_is_cold_a_source_that_vanishes_is_not_drawn_again_and_again(gamma: float) -> None:
    """Where most words vanish, a thousand draws of each sentence took minutes for nothing."""
    rows = {"a": {0: 0.6, 1: 0.4}, "b": {0: 0.1, 1: 0.9}}
    model = Ibm3(Tables(rows, TABLES.lexical, TABLES.null_words, 0.3, TABLES.distortion), gamma)
    drawn = 0

    class Counting(random.Random):
        def random(self) -> float:
            nonlocal drawn
            drawn += 1
            return super().random()

    with pytest.raises(ValueError, match="no word of"):
        model.sample(["a"] * 7, Counting(1))
    assert drawn == 7
    assert [word for word, _ in model.sample(["a", "b"], Counting(1))] == ["z"]
