"""From source subwords to hypotheses: encode, select the vocabulary, search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from creamtea_workers.corpora.batches import parts
from creamtea_workers.models.base import Model
from creamtea_workers.models.interface import EOS, PAD, Memory, TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import SearchInput, SearchMethod
from creamtea_workers.search.fixed import encode_fixed
from creamtea_workers.search.hypothesis import Hypothesis, length_limit
from creamtea_workers.search.output import output_layer
from creamtea_workers.selection.base import LimitedSelector, Selector

Sources = Sequence[Sequence[int]]  # subwords of each sentence, without </s>
Result = TypeVar("Result")
_BATCH = 64  # sentences
_BATCH_ON_GPU = 512  # for which it takes hardly longer than for a few
# of a batch: decoder rows × vocabulary (256 MB of fp32 logits), rows, for small vocabularies, and numbers
# that the rows keep (2 GB of fp32, twice while beams are reordered): a wide beam takes fewer sentences
_CELLS, _ROWS, _KEPT = 1 << 26, 1 << 13, 1 << 29


@dataclass(frozen=True)
class Translation:
    hypothesis: Hypothesis
    selected_size: int  # of the sentence's vocabulary; V where nothing is selected


@dataclass(frozen=True)
class Translator:
    """A system: model × selection × search. A source without subwords has one translation, the empty one:
    only </s> may follow it, whatever the model has learnt.

    In fp32 and int8 an output does not depend on what else is in the batch; in bf16 and fp16, and in int8
    behind an LSTM, a batch of another shape may be rounded differently, so that one of two nearly equal words
    wins instead of the other."""

    model: TranslationModel
    objective: Objective
    selector: Selector
    search: SearchMethod

    def batches(self, sources: Sources, size: int) -> Iterator[list[int]]:
        """Positions of at most `size` sentences of similar length, as many as memory has room for, the
        longest first, so that memory runs out at once if at all."""
        lengths = [len(source) for source in sources]
        order = sorted(range(len(sources)), key=lambda n: -lengths[n])
        first = 0
        while first < len(order):
            most = min(size, self._room(lengths[order[first]]))
            batch = next(parts(order[first : first + most], lengths))
            yield batch
            first += len(batch)

    def _room(self, longest: int) -> int:
        """How many sentences of at most `longest` subwords memory has room for; at least one."""
        rows = self.search.rows
        places = longest + 1 + length_limit(self.search.max_length_ratio, longest)
        kept = max(1, rows * places * self.model.kept)
        return max(1, min(_ROWS // rows, _CELLS // (rows * self.model.vocabulary_size), _KEPT // kept))

    @property
    def capture_seconds(self) -> float:
        """How long the model's CUDA graphs have taken to capture so far."""
        graphs = self.model.graphs if isinstance(self.model, Model) else None
        return 0.0 if graphs is None else graphs.seconds

    @torch.inference_mode()
    def translate(self, sources: Sources, with_scores: bool = True) -> list[Translation]:
        """`with_scores` False saves greedy search the activation; the hypotheses are the same."""
        return self._in_parts(lambda part: self._translate(part, with_scores), sources)

    def _translate(self, sources: Sources, with_scores: bool) -> list[Translation]:
        batch, sizes = self._batch(sources, with_scores)
        return [Translation(*pair) for pair in zip(self.search(batch), sizes, strict=True)]

    @torch.inference_mode()
    def translate_best(self, sources: Sources, count: int) -> list[list[Translation]]:
        """For each source at most `count` translations, best first (`SearchMethod.best`)."""

        def part(some: Sources) -> list[list[Translation]]:
            batch, sizes = self._batch(some)
            hypotheses = self.search.best(batch, count)
            return [
                [Translation(best, size) for best in row] for row, size in zip(hypotheses, sizes, strict=True)
            ]

        return self._in_parts(part, sources)

    @torch.inference_mode()
    def translate_gradually(self, sources: Sources) -> Iterator[list[tuple[int, Translation]]]:
        """What `translate` returns, by position, as it is found: an exact search may take an hour. Empty
        lists in between let the caller report progress and stop."""
        if not self.model.may_pad or not all(sources):
            texts = [n for n, source in enumerate(sources) if source] if self.model.may_pad else []
            rest = [n for n in range(len(sources)) if n not in texts]
            yield list(zip(rest, self.translate([sources[n] for n in rest]), strict=True))
            for found in self.translate_gradually([sources[n] for n in texts]) if texts else ():
                yield [(texts[n], translation) for n, translation in found]
            return
        batch, sizes = self._batch(sources)
        for hypotheses in self.search.rounds(batch):
            yield [(n, Translation(hypothesis, sizes[n])) for n, hypothesis in hypotheses]

    @torch.inference_mode()
    def selected_sizes(self, sources: Sources) -> list[int]:
        """How many ids each sentence may use; V where nothing is selected."""
        return self._in_parts(lambda part: self._sizes(part, self._encode(part)[1]), sources)

    @torch.inference_mode()
    def selected(self, sources: Sources) -> list[list[int]] | None:
        """The ids that each sentence may use; None where nothing is selected."""

        def part(some: Sources) -> list[list[int] | None]:
            selection = self._encode(some)[1]
            return [None] * len(some) if selection is None else [ids.tolist() for ids in selection]

        selections = [ids for ids in self._in_parts(part, sources) if ids is not None]
        return selections or None

    @torch.inference_mode()
    def limits(self, source: Sequence[int], ids: Sequence[int]) -> list[float | None] | None:
        """What would allow each of the ids (`LimitedSelector.limits`); None if the selector cannot say."""
        if not isinstance(self.selector, LimitedSelector):
            return None
        return self.selector.limits(source, self._encode([source])[0], ids)

    def _batch(self, sources: Sources, with_scores: bool = True) -> tuple[SearchInput, list[int]]:
        """What the search is given, and how many ids each sentence may use."""
        memory, selection = self._encode(sources)
        sizes = self._sizes(sources, selection)
        if not any(sources):  # batches are of empty sources alone, or have none
            selection = [torch.tensor([EOS], device=memory.hidden.device)] * len(sources)
        output = output_layer(self.model, selection)
        limits = [length_limit(self.search.max_length_ratio, len(source)) for source in sources]
        batch = SearchInput(self.model, self.objective, memory, output, limits, sources, with_scores)
        return batch, sizes

    def _encode(self, sources: Sources) -> tuple[Memory, list[Tensor] | None]:
        memory = encode_fixed(self.model, source_batch(sources, self.model.output_weight.device))
        return memory, self.selector.select(sources, memory)

    def _in_parts(self, work: Callable[[Sources], list[Result]], sources: Sources) -> list[Result]:
        """`work` on all sources at once, empty ones by themselves; if the model's batches may not be padded,
        on those of each length. The results are in the order of the sources."""
        lengths = [len(source) for source in sources]
        order = sorted(range(len(sources)), key=lengths.__getitem__)
        empty = lengths.count(0)
        groups = [order[:empty]] if empty else []
        groups += parts(order[empty:], lengths, may_pad=self.model.may_pad)
        if len(groups) == 1:
            return work(sources)
        results: dict[int, Result] = {}
        for group in groups:
            results.update(zip(group, work([sources[n] for n in group]), strict=True))
        return [results[n] for n in range(len(sources))]

    def _sizes(self, sources: Sources, selection: list[Tensor] | None) -> list[int]:
        """How many ids each sentence may use."""
        if selection is None:
            return [self.model.vocabulary_size] * len(sources)
        return [len(ids) for ids in selection]


def translate_all(translator: Translator, sources: Sources) -> list[list[int]]:
    """The subwords of a hypothesis for each source, in their order."""
    tokens: list[list[int]] = [[] for _ in sources]
    most = _BATCH if translator.model.output_weight.device.type == "cpu" else _BATCH_ON_GPU
    for part in translator.batches(sources, most):
        translations = translator.translate([sources[n] for n in part], with_scores=False)
        for n, translation in zip(part, translations, strict=True):
            tokens[n] = translation.hypothesis.tokens
    return tokens


def source_batch(sources: Sources, device: torch.device) -> Tensor:
    """(B, S): subwords + </s>, then pads."""
    lengths = np.array([len(source) for source in sources])
    places = np.arange(lengths.max() + 1)
    rows = np.where(places == lengths[:, None], EOS, PAD)
    rows[places < lengths[:, None]] = np.fromiter(chain.from_iterable(sources), np.int64, lengths.sum())
    return torch.from_numpy(rows).to(device)
