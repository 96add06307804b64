"""Selection by the vocabulary map of a CTranslate2 folder (vmap.txt), which its library applies.

A line has source subwords, a tab, and the target subwords that they allow; the line of no source subword has
those of every sentence. The library adds the special ones (CTranslate2's src/vocabulary_map.cc).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from creamtea.contract.step import StepContext
from creamtea.marian import CONFIG
from creamtea.methods.selections import MapSelection
from creamtea.shipped import MAP
from creamtea.steps.systems import RecallParams
from creamtea_workers.corpora.subwords import EOS, UNK, SubwordTexts
from creamtea_workers.selection.base import SelectionResources, Selector
from creamtea_workers.selection.recall import Counts, RecallInputs, count_reached


@dataclass(frozen=True)
class VocabularyMap:
    """`always`: the target ids of every sentence; `rules`: those that source subwords allow."""

    subwords: SubwordTexts
    always: frozenset[int]
    rules: Mapping[tuple[str, ...], Sequence[int]]
    longest: int  # [subwords] of a rule's source

    @classmethod
    def load(cls, folder: Path, subwords: SubwordTexts) -> VocabularyMap:
        """Read the map of a folder. The library takes a target that it does not know for the unknown one."""
        ids = {piece: id_ for id_, piece in enumerate(subwords.pieces(range(subwords.size)))}
        rules: dict[tuple[str, ...], list[int]] = {}
        with (folder / MAP).open(encoding="utf-8", newline="\n") as file:
            for line in file:
                source, _, targets = line.rstrip("\n").partition("\t")
                rules[tuple(source.split(" "))] = [ids.get(name, UNK) for name in targets.split(" ") if name]
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        special = {UNK, EOS, ids.get(config.get("bos_token"), UNK)}
        return cls(
            subwords, frozenset(special.union(rules.pop(("",), []))), rules, max(map(len, rules), default=1)
        )

    def ids(self, source: Sequence[int]) -> NDArray[np.int64]:
        """Return what a sentence may use: sorted ids, each once."""
        names, chosen = self.subwords.source_pieces(source), set(self.always)
        for start in range(len(names)):
            for length in range(1, self.longest + 1):
                chosen.update(self.rules.get(tuple(names[start : start + length]), ()))
        return np.array(sorted(chosen))


def build(spec: MapSelection, resources: SelectionResources) -> Selector:
    raise ValueError("the map of a CTranslate2 folder is applied by its library")


def count(
    spec: MapSelection, context: StepContext[RecallParams], settings: Sequence[float], inputs: RecallInputs
) -> list[Counts]:
    """Count the selected subwords of each segment."""
    map_ = VocabularyMap.load(context.input("train"), inputs.subwords)
    pairs = zip(inputs.sources, inputs.references, strict=True)
    return [count_reached([map_.ids(source)], reference) for source, reference in pairs]
