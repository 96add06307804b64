"""Selections without a model: the full vocabulary, the alignment lexicon (Jean et al. 2015; NVS paper,
section 2.1), and the vocabulary map of a CTranslate2 folder (vmap.txt), which its library applies.

A line of the map has source subwords, a tab, and the target subwords that they allow; the line without a
source lists the subwords that every sentence may use. The library adds its special tokens (CTranslate2's
src/vocabulary_map.cc).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from creamtea.contract.step import StepContext
from creamtea.marian import CONFIG
from creamtea.methods.selections import FullVocabulary, LexiconSelection, MapSelection
from creamtea.shipped import MAP, ends_of
from creamtea.steps.systems import RecallParams
from creamtea_workers.corpora.subwords import EOS, UNK, SubwordTexts
from creamtea_workers.models.interface import Memory
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.base import SelectionResources
from creamtea_workers.selection.recall import Counts, RecallInputs, count_reached


class FullSelector:
    """No selection: every sentence may use the whole vocabulary."""

    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> None:
        return None


@dataclass(frozen=True)
class LexiconSelector:
    """Selects the top-k target subwords of every source subword in the sentence.

    `frequent`: number of most frequent target subwords to add (Marian's shortlist).
    """

    lexicon: Lexicon
    k: int
    frequent: int = 0

    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor]:
        chosen = [self.lexicon.select(source, self.k, self.frequent) for source in sources]
        ids = torch.from_numpy(np.concatenate(chosen)).to(memory.hidden.device)
        return list(ids.split([len(own) for own in chosen]))

    def limits(self, source: Sequence[int], memory: Memory, ids: Sequence[int]) -> list[float | None]:
        """Return the best rank of each id among the candidates of the source's subwords, from 1."""
        return [self.lexicon.rank(source, id_) for id_ in ids]


@dataclass(frozen=True)
class VocabularyMap:
    """A vocabulary map. `always`: target subwords of every sentence; `rules`: by source subwords."""

    subwords: SubwordTexts
    always: frozenset[int]
    rules: Mapping[tuple[str, ...], Sequence[int]]
    longest: int  # largest number of source subwords in a rule
    ends: Sequence[str]  # subwords after the source's own

    @classmethod
    def load(cls, folder: Path, subwords: SubwordTexts) -> VocabularyMap:
        """Read the map of a folder. Like the library, read an unknown target as the unknown subword."""
        ids = {piece: id_ for id_, piece in enumerate(subwords.pieces(range(subwords.size)))}
        rules: dict[tuple[str, ...], list[int]] = {}
        with (folder / MAP).open(encoding="utf-8", newline="\n") as file:
            for line in file:
                source, _, targets = line.removesuffix("\n").removesuffix("\r").partition("\t")
                rules[tuple(source.split(" "))] = [ids.get(name, UNK) for name in targets.split(" ") if name]
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        special = {UNK, EOS, ids.get(config.get("bos_token"), UNK)}
        always = frozenset(special.union(rules.pop(("",), [])))
        return cls(subwords, always, rules, max(map(len, rules), default=1), ends_of(config))

    def ids(self, source: Sequence[int]) -> NDArray[np.int64]:
        """Return the ids that a sentence may use, sorted and unique."""
        names, chosen = [*self.subwords.source_pieces(source), *self.ends], set(self.always)
        for start in range(len(names)):
            for length in range(1, self.longest + 1):
                chosen.update(self.rules.get(tuple(names[start : start + length]), ()))
        return np.array(sorted(chosen))


def build(
    spec: FullVocabulary | LexiconSelection | MapSelection, resources: SelectionResources
) -> FullSelector | LexiconSelector:
    if isinstance(spec, FullVocabulary):
        return FullSelector()
    if isinstance(spec, MapSelection):
        raise ValueError("the map of a CTranslate2 folder is applied by its library")
    if resources.lexicon is None:
        raise ValueError("lexicon selection needs a lexicon")
    lexicon = Lexicon.load(resources.lexicon)
    if spec.frequent and not len(lexicon.frequent):
        raise ValueError("a lexicon selection with `frequent` needs a lexicon with frequencies")
    return LexiconSelector(lexicon, spec.k, spec.frequent)


def count(
    spec: FullVocabulary | LexiconSelection | MapSelection,
    context: StepContext[RecallParams],
    settings: Sequence[float],
    inputs: RecallInputs,
    batch: int = 1,
) -> list[Counts]:
    """Count the selected subwords of each segment; for a lexicon, at each k.

    The full vocabulary reaches all subwords. With a lexicon, all segments of a batch use the union of their
    selections.
    """
    if isinstance(spec, FullVocabulary):
        return [np.array([[inputs.subwords.size, *own.possible()]]) for own in inputs.references]
    if isinstance(spec, MapSelection):
        map_ = VocabularyMap.load(context.input("train"), inputs.subwords)
        pairs = zip(inputs.sources, inputs.references, strict=True)
        return [count_reached([map_.ids(source)], reference) for source, reference in pairs]
    lexicon = Lexicon.load(context.input("align") / "lexicon.npz")
    ks, counts = [int(k) for k in settings], dict[int, Counts]()
    for together in inputs.batches(batch):
        context.progress(len(counts), len(inputs), "sentences")
        source = [id_ for n in together for id_ in inputs.sources[n]]
        selected = [lexicon.select(source, k, spec.frequent) for k in ks]
        counts |= {n: count_reached(selected, inputs.references[n]) for n in together}
    return [counts[n] for n in range(len(inputs))]
