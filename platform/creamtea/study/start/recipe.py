"""Settings that fit the size of a text.

What little text needs is known: a small joint vocabulary, small batches, more dropout (Sennrich and Zhang
2019). docs/results/first-studies.md has what came of these settings on 5,000 pairs; those for more text
follow the studies that ship with creamtea.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from creamtea.study.checks.warnings import MIN_WORDS, least_vocabulary
from creamtea.study.survey import Survey

VOCABULARIES = (200, 500, 1000, 2000, 4000, 8000, 16000, 32000)
BATCHES = (512, 1024, 2048, 4096)
BATCHES_PER_EPOCH = 160
UPDATES = 6000  # as many as small texts get, at most


@dataclass(frozen=True)
class Size:
    """A model's, for texts of fewer than `below` pairs."""

    below: float
    layers: int
    width: int
    heads: int
    feed_forward: int
    dropout: float
    learning_rate: float


SIZES = (
    Size(50_000, 3, 128, 4, 512, 0.2, 0.003),
    Size(300_000, 4, 256, 4, 1024, 0.2, 0.002),
    Size(math.inf, 6, 512, 8, 2048, 0.1, 0.001),
)


@dataclass(frozen=True)
class Recipe:
    size: Size
    vocabulary: int
    character_coverage: float
    batch_tokens: int
    warmup: int
    max_epochs: int
    patience: int
    average: int
    epoch_tokens: int  # target subwords of an epoch, estimated
    epoch_updates: int

    @property
    def updates(self) -> int:
        return self.epoch_updates * self.max_epochs


def recipe_for(text: Survey) -> Recipe:
    """A function of the text alone: the same files give the same study anywhere."""
    vocabulary = vocabulary_for(text)
    tokens = text.tokens(vocabulary)
    batch = max(size for size in BATCHES if size <= max(BATCHES[0], 1.2 * tokens / BATCHES_PER_EPOCH))
    updates = math.ceil(1.05 * tokens / batch)  # batches are not quite full
    epochs = min(80, max(10, math.ceil(UPDATES / updates)))
    return Recipe(
        size=next(size for size in SIZES if text.usable < size.below),
        vocabulary=vocabulary,
        character_coverage=0.9995 if text.alphabet > 1000 else 1.0,
        batch_tokens=batch,
        warmup=min(4000, max(50, round_to(0.1 * updates * epochs, 50))),
        max_epochs=epochs,
        patience=8 if epochs > 20 else 4,
        average=3,
        epoch_tokens=round(tokens),
        epoch_updates=updates,
    )


def vocabulary_for(text: Survey) -> int:
    """Grows with the square root of the words, as a text's distinct words do (Heaps), so that each subword is
    seen often; never less than what the characters need."""
    words = text.source.words + text.target.words
    wanted = 3.6 * math.sqrt(words)
    fitting = [size for size in VOCABULARIES if MIN_WORDS * size <= words] or VOCABULARIES[:1]
    nearest = min(fitting, key=lambda size: abs(math.log(size / max(1.0, wanted))))
    return max(nearest, least_vocabulary(text.alphabet))


def round_to(value: float, step: int) -> int:
    return step * max(1, round(value / step))
