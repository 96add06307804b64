"""Selection by alignment lexicon (Jean et al. 2015; NVS paper, section 2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from creamtea.contract.step import StepContext
from creamtea.methods.selections import LexiconSelection
from creamtea.steps.systems import RecallParams
from creamtea_workers.models.interface import Memory
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.base import SelectionResources
from creamtea_workers.selection.recall import Counts, RecallInputs, count_reached


@dataclass(frozen=True)
class LexiconSelector:
    """The top-k target subwords of every source subword, union over the sentence's source subwords; with
    `frequent` also as many of the most frequent target subwords (Marian's shortlist)."""

    lexicon: Lexicon
    k: int
    frequent: int = 0

    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor]:
        chosen = [self.lexicon.select(source, self.k, self.frequent) for source in sources]
        ids = torch.from_numpy(np.concatenate(chosen)).to(memory.hidden.device)
        return list(ids.split([len(own) for own in chosen]))

    def limits(self, source: Sequence[int], memory: Memory, ids: Sequence[int]) -> list[float | None]:
        """Return the best rank of each among the candidates of the source's subwords, from 1."""
        return [self.lexicon.rank(source, id_) for id_ in ids]


def build(spec: LexiconSelection, resources: SelectionResources) -> LexiconSelector:
    if resources.lexicon is None:
        raise ValueError("lexicon selection needs a lexicon")
    lexicon = Lexicon.load(resources.lexicon)
    if spec.frequent and not len(lexicon.frequent):
        raise ValueError("a lexicon selection with `frequent` needs a lexicon with frequencies")
    return LexiconSelector(lexicon, spec.k, spec.frequent)


def count(
    spec: LexiconSelection,
    context: StepContext[RecallParams],
    settings: Sequence[float],
    inputs: RecallInputs,
    batch: int = 1,
) -> list[Counts]:
    """Count the selected subwords of each segment, at each k. Segments of a batch share what is selected."""
    lexicon = Lexicon.load(context.input("align") / "lexicon.npz")
    ks, counts = [int(k) for k in settings], dict[int, Counts]()
    for together in inputs.batches(batch):
        context.progress(len(counts), len(inputs), "sentences")
        source = [id_ for n in together for id_ in inputs.sources[n]]
        selected = [lexicon.select(source, k, spec.frequent) for k in ks]
        counts |= {n: count_reached(selected, inputs.references[n]) for n in together}
    return [counts[n] for n in range(len(inputs))]
