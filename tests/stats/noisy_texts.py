"""Sentences with noise, and scores of them: what the tests against sacreBLEU compare."""

from random import Random

import numpy as np
from numpy.typing import NDArray

from creamtea_workers.metrics.sacrebleu_metrics import bleu_from_sums

Array = NDArray[np.float64]
WORDS = [
    "ein",
    "Hund",
    "läuft",
    "über",
    "die",
    "Straße",
    "und",
    "sieht",
    "eine",
    "Katze",
    "am",
    "Haus",
    "vor",
    "dem",
]


def mean_score(sums: Array) -> Array:
    return np.asarray(sums[..., 0] / sums[..., 1])


def as_statistics(values: Array) -> Array:
    return np.column_stack([values, np.ones(len(values))])


def noisy(lines: list[str], rate: float, seed: int) -> list[str]:
    """Each word is another one with this probability."""
    random = Random(seed)
    return [
        " ".join(random.choice(WORDS) if random.random() < rate else word for word in line.split())
        for line in lines
    ]


def sentences(count: int) -> list[str]:
    random = Random(7)
    return [" ".join(random.choices(WORDS, k=random.randint(4, 20))) for _ in range(count)]


def bleu(sums: Array) -> Array:
    return bleu_from_sums(sums, effective_order=False)
