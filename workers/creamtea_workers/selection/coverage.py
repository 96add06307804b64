"""Which subwords of a reference a selection contains (NVS paper, section 2.3).

Recall is the share of the *unique* subwords of the reference that are in the selected set, EOS on neither
side. Three scopes:
- sentence: selected from the source sentence, looked for in the whole reference;
- idiom words: selected from the idiom's words alone, looked for in its translation, "the source and target
  idiomatic multiword expressions according to metadata" (`Material.of_idioms`);
- idiom, in its context, which the paper does not have: selected from the sentence, as in decoding, looked for
  in the subwords of the reference that overlap the idiom's target spans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from creamtea.contract.step import StepContext
from creamtea_workers.corpora.segments import EncodedTestSet, idiom_words
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import move_span, normalise

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
        """`idioms`: {"name", "target": [from, to) or []} in characters of the text. Entries of the same name
        are the parts of one idiom; an idiom whose spans cover no subword is omitted."""
        offsets = subwords.offsets(normalise(text))
        inside: dict[str, list[int]] = defaultdict(list)
        for idiom in idioms:
            start, end = move_span(text, idiom["target"]) if idiom["target"] else (0, 0)
            inside[idiom["name"]] += [o.id for o in offsets if o.start < end and start < o.end]
        named = {name: unique(ids) for name, ids in inside.items() if ids}
        return cls(unique(offset.id for offset in offsets), named)

    @property
    def idiom(self) -> Ids:
        """Those of any idiom; empty where there is none."""
        return unique(id_ for ids in self.idioms.values() for id_ in ids.tolist())

    def scopes(self) -> list[Ids]:
        """What `Counts` counts: the sentence, any idiom, each idiom."""
        return [self.sentence, self.idiom, *self.idioms.values()]

    def possible(self) -> Ids:
        """(2 + idioms,): the number of subwords in each scope."""
        return np.array([len(ids) for ids in self.scopes()])


def unique(ids: Iterable[int]) -> Ids:
    """Ascending."""
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
        subwords = test_set.joint
        references = [
            Reference.of(subwords, segment["reference"], segment["idioms"]) for segment in test_set.segments
        ]
        return cls(subwords, test_set.sources, references)

    @classmethod
    def of_idioms(cls, context: StepContext[Any]) -> Material:
        """A row for each idiom of each segment: its words alone are the source, those of its translation are
        the reference and its only idiom."""
        test_set = EncodedTestSet.of_step(context)
        idioms = [idiom for segment in test_set.segments for idiom in idiom_words(segment)]
        targets = [unique(ids) for ids in test_set.joint.encode_lines([idiom.target for idiom in idioms])]
        return cls(
            test_set.joint,
            test_set.joint.encode_lines([idiom.source for idiom in idioms]),
            [Reference(ids, {idiom.name: ids}) for ids, idiom in zip(targets, idioms, strict=True)],
        )

    def __len__(self) -> int:
        return len(self.sources)
