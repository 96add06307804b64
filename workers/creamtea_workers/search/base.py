"""The interface of searches, their hypotheses, and the selection of the best candidates."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from creamtea.contract.step import MetricRow, StepContext
from creamtea_workers.models.interface import Memory, TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.output import OutputLayer

Detokenize = Callable[[Sequence[int]], str]  # subwords of a hypothesis -> text
Rows = Sequence[Mapping[str, Any]]  # lines of a file of JSON


@dataclass(frozen=True)
class SearchInput:
    """B encoded sentences, with everything needed to find and to score their translations."""

    model: TranslationModel
    objective: Objective
    memory: Memory  # the encoder's output for the B sentences
    output: OutputLayer  # the vocabulary of each sentence
    limits: Sequence[int]  # the maximum number of tokens of each hypothesis, </s> included
    sources: Sequence[Sequence[int]] = ()  # subwords of each sentence, which seed its random draws
    with_scores: bool = True  # False: greedy search may leave its scores at NaN, which is faster


class SearchMethod(ABC):
    max_length_ratio: float  # see `length_limit`

    @property
    def rows(self) -> int:
        """Decoder rows per sentence."""
        return self.beam

    @property
    def beam(self) -> int:
        """The width of the beam; 1 if there is none.

        A sentence whose vocabulary offers fewer hypotheses fills less of it.
        """
        return 1

    @abstractmethod
    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """Return one hypothesis per sentence."""

    def best(self, batch: SearchInput, count: int) -> list[list[Hypothesis]]:
        """Return at most `count` distinct hypotheses per sentence, best first; `__call__` finds the first.

        `count`: at most `most_hypotheses` of the search's class in `creamtea.methods.searches`.
        """
        if count > 1:
            raise ValueError(f"{type(self).__name__} finds one hypothesis per sentence, not {count}")
        return [[hypothesis] for hypothesis in self(batch)]

    def rounds(self, batch: SearchInput) -> Iterator[Sequence[tuple[int, Hypothesis]]]:
        """Yield pairs of a sentence's position and its hypothesis, as soon as they are found.

        Empty rounds let the caller report progress and stop.
        """
        yield list(enumerate(self(batch)))

    def settle(
        self, sources: Sequence[str], hypotheses: Sequence[Hypothesis], context: StepContext[Any]
    ) -> tuple[Sequence[Hypothesis], Sequence[MetricRow]]:
        """Choose the outputs of a whole test set; return them and metrics of the choice.

        Only searches whose class has `settles` change the hypotheses.
        """
        return hypotheses, []

    def findings(
        self, indices: Sequence[int], hypotheses: Sequence[Hypothesis]
    ) -> tuple[Mapping[str, Rows], Sequence[MetricRow]]:
        """Return lines of JSON by file name, and metrics, for all hypotheses of a test set.

        `indices`: the segments' numbers. The search's class in `creamtea.methods.searches` declares them.
        """
        return {}, ()


Sources = Sequence[Sequence[int]]  # subwords of each sentence, without </s>


@dataclass(frozen=True)
class Hypothesis:
    """One translation. `score` is NaN if the search was told not to score."""

    tokens: list[int]  # subwords, without </s>
    score: float  # sum of the tokens' log-scores, with </s> if `finished`
    finished: bool  # False: cut at the length limit before </s> ("truncated")


@dataclass(frozen=True)
class Translation:
    hypothesis: Hypothesis
    selected_size: int  # size of the sentence's vocabulary; V without a selection


def length_limit(ratio: float, source_subwords: int) -> int:
    """Return the maximum length of a hypothesis in tokens, </s> included: ceil(ratio × source_subwords) + 10.

    `source_subwords` does not count the source's </s>.
    """
    return math.ceil(ratio * source_subwords) + 10


_SMALLEST_BLOCK = 32
_FEW = 1 << 15  # total candidates; with fewer, one plain search is faster than working with blocks


def top_candidates(ranks: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` best of ranks (n, C), C ≥ count: values and indices (n, count), best first.

    Equal ranks are in order of index (`topk` alone does not define their order). If fewer than `count` ranks
    are above -inf, the remaining indices are undefined. On a GPU ranks must be ≤ 0 and fp32.

    Many candidates are cut into blocks of neighbours. The best candidates all lie in the `count` blocks with
    the highest maxima (of equal maxima, in the first blocks), because these maxima precede every candidate of
    another block. So one pass over all, and two searches in about √(C · count) values, are enough.
    """
    size = ranks.shape[1]
    block = 1 << round(math.log2(size / count) / 2)  # near the root; a power of two is reduced faster
    if block < _SMALLEST_BLOCK or ranks.numel() < _FEW:
        return _top(ranks, count)
    blocks = size // block
    maxima = ranks[:, : blocks * block].unflatten(1, (blocks, block)).amax(2)
    chosen = _top(maxima, count)[1].sort(dim=1).values  # so that their candidates are in order of index
    inside = torch.arange(block, device=ranks.device)
    rest = torch.arange(blocks * block, size, device=ranks.device)
    indices = torch.cat(
        [(chosen.unsqueeze(2) * block + inside).flatten(1), rest.expand(len(ranks), -1)], dim=1
    )
    values, positions = _top(ranks.gather(1, indices), count)
    return values, indices.gather(1, positions)


def _top(ranks: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Do what `top_candidates` does, without blocks."""
    if ranks.is_cuda:  # asking whether there are equal ranks would make the CPU wait
        return top_by_key(ranks, count)
    values, indices = ranks.topk(min(count + 1, ranks.shape[1]), dim=1)
    tied = ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -math.inf)).any(dim=1)
    values, indices = values[:, :count], indices[:, :count]
    if bool(tied.any()):
        for n in tied.nonzero().squeeze(1).tolist():
            level = (ranks[n] >= values[n, -1]).nonzero().squeeze(1)  # in order of index
            order = ranks[n, level].sort(descending=True, stable=True).indices[:count]
            indices[n] = level[order]
    return values, indices


def top_by_key(ranks: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Do the same for ranks ≤ 0 in fp32, by unique keys.

    A key has the bits of the rank's magnitude, which sort like the magnitudes, and in its lower half the
    index.
    """
    magnitudes = ranks.abs().view(torch.int32).long()
    keys = torch.add(torch.arange(ranks.shape[1], device=ranks.device), magnitudes, alpha=1 << 32)
    indices = keys.topk(count, dim=1, largest=False).indices
    return ranks.gather(1, indices), indices


def keep_top(scores: Tensor, count: int) -> Tensor:
    """Replace all but the `count` best scores (..., K) of each row by -inf."""
    rows = scores.flatten(0, -2)
    values, indices = top_candidates(rows, min(count, rows.shape[1]))
    return torch.full_like(rows, -torch.inf).scatter_(1, indices, values).view_as(scores)
