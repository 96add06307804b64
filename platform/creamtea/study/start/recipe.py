"""Settings that fit the size of a text.

What little text needs in trainings of days is known: a small joint vocabulary, small batches, much dropout
(Sennrich and Zhang 2019). In minutes of a processor, many updates matter most: what was tried
with 5,000 to 20,000 pairs is in docs/results/data/training.yaml. Sizes for more text follow the studies that
ship with creamtea.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from creamtea.study.checks.warnings import MIN_WORDS, least_vocabulary
from creamtea.study.survey import Survey

VOCABULARIES = (200, 500, 1000, 2000, 4000, 8000, 16000, 32000)
UPDATES = 6000  # as many as small texts get, at most
WARMUP = 0.3  # of the updates


@dataclass(frozen=True)
class Size:
    """A model's, for texts of fewer than `below` pairs."""

    below: float
    encoder_layers: int
    decoder_layers: int
    width: int
    heads: int
    feed_forward: int
    dropout: float
    learning_rate: float
    batch_tokens: int


SIZES = (
    Size(50_000, 2, 1, 128, 4, 512, 0.1, 0.003, 512),
    Size(300_000, 4, 4, 256, 4, 1024, 0.2, 0.002, 4096),
    Size(math.inf, 6, 6, 512, 8, 2048, 0.1, 0.001, 4096),
)


@dataclass(frozen=True)
class Recipe:
    size: Size
    vocabulary: int
    character_coverage: float
    warmup: int
    updates: int
    epoch_tokens: int  # target subwords of an epoch, estimated
    epoch_updates: int

    @property
    def epochs(self) -> float:
        return self.updates / self.epoch_updates


def recipe_for(text: Survey) -> Recipe:
    """A function of the text alone: the same files give the same study anywhere."""
    vocabulary = vocabulary_for(text)
    tokens = text.tokens(vocabulary)
    size = next(size for size in SIZES if text.usable < size.below)
    epoch = math.ceil(1.05 * tokens / size.batch_tokens)  # batches are not quite full
    updates = round_to(max(10 * epoch, min(UPDATES, 1000 + 30 * epoch)), 100)
    return Recipe(
        size=size,
        vocabulary=vocabulary,
        character_coverage=0.9995 if text.alphabet > 1000 else 1.0,
        warmup=min(4000, round_to(WARMUP * updates, 50)),
        updates=updates,
        epoch_tokens=round(tokens),
        epoch_updates=epoch,
    )


def vocabulary_for(text: Survey) -> int:
    """Grows with the square root of the words, as a text's distinct words do (Heaps), so that each subword is
    seen often; never less than what the characters need."""
    words = text.source.words + text.target.words
    wanted = 5.5 * math.sqrt(words)
    fitting = [size for size in VOCABULARIES if MIN_WORDS * size <= words] or VOCABULARIES[:1]
    nearest = min(fitting, key=lambda size: abs(math.log(size / max(1.0, wanted))))
    return max(nearest, least_vocabulary(text.alphabet))


def round_to(value: float, step: int) -> int:
    return step * max(1, round(value / step))
