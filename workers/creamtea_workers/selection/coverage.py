"""Which subwords of a reference a selection contains (NVS paper, section 2.3).

Recall is the share of the *unique* subwords of the reference that are in the sentence's selected set, EOS
on neither side. Two scopes: the whole reference, and only its subwords that overlap the target spans of
an idiom. In both the set is the one that decoding uses, selected from the whole source sentence. (In
idiom scope the paper gives the lexicon the idiom's source words only, which can only lower its recall.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from creamtea.contract.step import StepContext
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.corpora.subwords import SubwordModel

Ids = NDArray[np.int64]
# (settings, 3 + idioms): how many ids are selected, how many of those are in the reference, in any of its
# idioms, and in each of its idioms, in the order of `Reference.idioms`
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Reference:
    """Unique subwords of a reference, sorted."""

    sentence: Ids
    idioms: dict[str, Ids]  # by name: those that overlap the idiom; at least one each

    @classmethod
    def of(cls, subwords: SubwordModel, text: str, idioms: Iterable[Mapping[str, Any]]) -> Reference:
        """`idioms`: {"name", "target": [from, to)} in characters of the text. Entries of the same name are
        the parts of one idiom; an idiom whose spans cover no subword is omitted."""
        offsets = subwords.offsets(text)
        inside: dict[str, list[int]] = defaultdict(list)
        for idiom in idioms:
            start, end = idiom["target"]
            inside[idiom["name"]] += [o.id for o in offsets if o.start < end and start < o.end]
        named = {name: _unique(ids) for name, ids in inside.items() if ids}
        return cls(_unique(offset.id for offset in offsets), named)

    @property
    def idiom(self) -> Ids:
        """Those of any idiom; empty where there is none."""
        return _unique(id_ for ids in self.idioms.values() for id_ in ids.tolist())

    def scopes(self) -> list[Ids]:
        """What `Counts` counts: the sentence, any idiom, each idiom."""
        return [self.sentence, self.idiom, *self.idioms.values()]

    def possible(self) -> Ids:
        """(2 + idioms,): the number of subwords in each scope."""
        return np.array([len(ids) for ids in self.scopes()])


def _unique(ids: Iterable[int]) -> Ids:
    return np.unique(np.fromiter(ids, dtype=np.int64))


@dataclass(frozen=True)
class Material:
    """A test set, prepared for measuring recall."""

    subwords: SubwordModel
    sources: list[list[int]]
    references: list[Reference]

    @classmethod
    def load(cls, context: StepContext[Any]) -> Material:
        """From a step's inputs test_set and subwords."""
        test_set = EncodedTestSet.of_step(context)
        references = [
            Reference.of(test_set.subwords, segment["reference"], segment["idioms"])
            for segment in test_set.segments
        ]
        return cls(test_set.subwords, test_set.sources, references)

    def __len__(self) -> int:
        return len(self.sources)
