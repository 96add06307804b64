"""Neural vocabulary selection (Domhan et al. 2022, Eq. 3): the ids with σ(max_t (W h_t + b)) > λ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from creamtea.contract.step import StepContext
from creamtea.methods.selections import NvsSelection
from creamtea.steps.systems import RecallParams
from creamtea_workers.corpora.batches import parts
from creamtea_workers.corpora.subwords import word_starts
from creamtea_workers.models.interface import EOS, Memory, TranslationModel
from creamtea_workers.search.translator import TrainedModel, source_batch
from creamtea_workers.selection.base import SelectionResources
from creamtea_workers.selection.recall import Counts, RecallInputs, Reference

Logits = NDArray[np.float32]
Word = tuple[int, ...]

_CELLS = 1 << 24  # logits (words × vocabulary) held at once: 64 MB


@dataclass(frozen=True)
class NvsSelector:
    """Selects by the NVS head. `words` None: it predicts from the sentence's encoding, like the decoder."""

    model: TranslationModel
    threshold: float
    words: WordVotes | None = None

    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor]:
        logits = self.model.nvs_logits(memory) if self.words is None else self.words(sources)  # (B, V)
        chosen = above(logits, self.threshold)
        return list(chosen.nonzero()[:, 1].split(chosen.sum(1).tolist()))

    def limits(self, source: Sequence[int], memory: Memory, ids: Sequence[int]) -> list[float | None]:
        """Return the head's probability of each id."""
        logits = self.model.nvs_logits(memory) if self.words is None else self.words([source])  # (1, V)
        return [float(torch.sigmoid(logits[0, id_].double())) for id_ in ids]


@dataclass(frozen=True)
class WordVotes:
    """NVS logits without context (Domhan et al. 2022, section 4.3 and Table 6).

    The model encodes each source word (one or more subwords) alone with </s>, and predicts from the encoding.
    The maximum over a sentence's words is, at every threshold, the union of the words' sets; a sentence
    without words has the empty union.
    """

    model: TranslationModel
    starts: frozenset[int]  # the subwords that begin a word

    def __call__(self, sources: Sequence[Sequence[int]]) -> Tensor:
        """Return logits (B, V) in fp32, -inf for a sentence without words. Each distinct word is encoded
        once, in a batch of words of the same length, so that nothing is padded."""
        sentences: dict[Word, set[int]] = defaultdict(set)  # the sentences that have each word
        for n, source in enumerate(sources):
            for word in words_of(source, self.starts):
                sentences[word].add(n)
        device = self.model.output_weight.device
        votes = torch.full((len(sources), self.model.vocabulary_size), -math.inf, device=device)
        for words in self._batches(sentences):
            rows = torch.tensor([[*word, EOS] for word in words], device=device)
            for word, row in zip(words, self.model.nvs_logits(self.model.encode(rows)), strict=True):
                for n in sentences[word]:
                    torch.maximum(votes[n], row, out=votes[n])
        return votes

    def _batches(self, words: Collection[Word]) -> Iterator[list[Word]]:
        size = max(1, _CELLS // self.model.vocabulary_size)
        for _, group in groupby(sorted(words, key=len), key=len):
            same = list(group)
            yield from (same[first : first + size] for first in range(0, len(same), size))


def words_of(source: Sequence[int], starts: Collection[int]) -> list[Word]:
    """Split a source into words, each a tuple of subwords.

    In a script without blanks, the text between two blanks is one word.
    """
    words: list[list[int]] = []
    for id_ in source:
        if id_ in starts or not words:
            words.append([])
        words[-1].append(id_)
    return [tuple(word) for word in words]


def above(logits: Tensor, threshold: float) -> Tensor:
    """Map NVS logits (..., V) -> (..., V) bool: σ(logit) > threshold, and always </s>.

    Logits are compared, because σ in fp32 is exactly 1 from 17 on, where logits still differ.
    """
    chosen = logits > logit(threshold)
    chosen[..., EOS] = True
    return chosen


def logit(probability: float) -> float:
    """Return log(p / (1 - p)); -inf at 0, inf at 1."""
    if probability in (0.0, 1.0):
        return math.inf if probability else -math.inf
    return math.log(probability) - math.log1p(-probability)


def build(spec: NvsSelection, resources: SelectionResources) -> NvsSelector:
    """Build the selector. The model must have an NVS head; selection without context needs the subwords."""
    if spec.context == "sentence":
        return NvsSelector(resources.model, spec.threshold)
    if resources.subwords is None:
        raise ValueError("NVS without context needs the subwords")
    return NvsSelector(
        resources.model, spec.threshold, WordVotes(resources.model, word_starts(resources.subwords))
    )


# ---------------------------------------------------------------- recall


def count(
    spec: NvsSelection,
    context: StepContext[RecallParams],
    settings: Sequence[float],
    inputs: RecallInputs,
    batch: int = 1,
) -> list[Counts]:
    """Count the selected subwords of each segment, at each threshold, in the system's precision.

    All segments of a batch use the union of their selections.
    """
    trained = TrainedModel.of_step(context, context.params.precision)
    trained.require(NvsSelection)
    words = WordVotes(trained.model, word_starts(inputs.subwords)) if spec.context == "word" else None
    logits = nvs_logits(
        trained.model,
        inputs.sources,
        words,
        lambda done: context.progress(done, len(inputs), "sentences"),
    )
    least = [logit(threshold) for threshold in settings]
    counts: dict[int, Counts] = {}
    for together in inputs.batches(batch):  # in the order of the logits
        rows = dict(islice(logits, len(together)))
        union = np.max([rows[n] for n in together], axis=0)
        counts |= {n: counts_above(least, [union, *wanted_of(union, inputs.references[n])]) for n in rows}
    return [counts[n] for n in range(len(inputs))]


def wanted_of(row: Logits, reference: Reference) -> list[Logits]:
    """Return the logits of a sentence (V,) for the subwords in each scope of its reference."""
    return [row[ids] for ids in reference.scopes()]


def counts_above(least: Sequence[float], logits: Sequence[Logits]) -> Counts:
    """Count, for each bound in `least` (rows), the logits of each array (columns) that exceed it."""
    bounds = np.array(least)[:, None]
    return np.stack([(own > bounds).sum(axis=1) for own in logits], axis=1)


def nvs_logits(
    model: TranslationModel,
    sources: Sequence[Sequence[int]],
    words: WordVotes | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[tuple[int, Logits]]:
    """Yield (position, logits (V,)) of every sentence, in batches of similar length, the shortest first.

    The logit of </s>, which is always selected, is infinite. `words` predicts without context.
    """
    size = max(1, min(64, _CELLS // model.vocabulary_size))
    order = sorted(range(len(sources)), key=lambda n: len(sources[n]))
    done = 0
    for batch in parts(order, [len(source) for source in sources], size, model.may_pad):
        progress(done)
        done += len(batch)
        in_batch = [sources[n] for n in batch]
        with torch.inference_mode():
            if words is None:
                votes = model.nvs_logits(model.encode(source_batch(in_batch, model.output_weight.device)))
            else:
                votes = words(in_batch)
        logits: Logits = votes.float().cpu().numpy()  # (B, V)
        logits[:, EOS] = np.inf
        yield from zip(batch, logits, strict=True)
