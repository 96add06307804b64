"""Recall of a selection: the share of the references' subwords that it contains.

Recall is the share of the *unique* subwords of the reference, without EOS, that are in the selected set.
There are three scopes:

- sentence: selection from the source sentence, recall of the whole reference;
- idiom words: selection from the idiom's words alone, recall of its translation, "the source and target
  idiomatic multiword expressions according to metadata" (`RecallTask`);
- idiom, in its context (not in the paper): selection from the sentence, as in decoding, recall of the
  reference's subwords that overlap the idiom's target spans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.sparse is slow to import, and so is imported where it is first used
from numpy.typing import NDArray

from creamtea.contract.step import MetricRow, StepContext
from creamtea.stats.estimate import cluster_mean, clustered_interval, logit_interval, outweighing_share
from creamtea.stats.resampling import Array, paired_bootstrap
from creamtea_workers.analysis.rows import BOOTSTRAP, ratio_row
from creamtea_workers.corpora.segments import EncodedTestSet, idiom_words
from creamtea_workers.corpora.subwords import SubwordTexts, subword_texts
from creamtea_workers.corpora.text import move_span, normalise
from creamtea_workers.metrics.base import ratio

Ids = NDArray[np.int64]
# (settings, 3 + idioms): number of selected ids; and how many of them are in the reference, in any of its
# idioms, and in each of its idioms (in the order of `Reference.idioms`)
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Reference:
    """Unique subwords of a reference, sorted."""

    sentence: Ids
    idioms: dict[str, Ids]  # by name: the subwords that overlap the idiom, at least one

    @classmethod
    def of(cls, subwords: SubwordTexts, text: str, idioms: Iterable[Mapping[str, Any]]) -> Reference:
        """Return the subwords of a text and of its idioms.

        `idioms`: {"name", "target": [from, to) or []} in characters of the text. Entries of the same name are
        the parts of one idiom; an idiom whose spans cover no subword is omitted.
        """
        offsets = subwords.offsets(normalise(text))
        inside: dict[str, list[int]] = defaultdict(list)
        for idiom in idioms:
            start, end = move_span(text, idiom["target"]) if idiom["target"] else (0, 0)
            inside[idiom["name"]] += [o.id for o in offsets if o.start < end and start < o.end]
        named = {name: unique(ids) for name, ids in inside.items() if ids}
        return cls(unique(offset.id for offset in offsets), named)

    @property
    def idiom(self) -> Ids:
        """The subwords of all idioms; empty if there is none."""
        return unique(id_ for ids in self.idioms.values() for id_ in ids.tolist())

    def scopes(self) -> list[Ids]:
        """Return the subwords of the scopes of `Counts`: sentence, all idioms, each idiom."""
        return [self.sentence, self.idiom, *self.idioms.values()]

    def possible(self) -> Ids:
        """Return the number of subwords in each scope (2 + idioms,)."""
        return np.array([len(ids) for ids in self.scopes()])


def count_reached(selected: Sequence[Ids], reference: Reference) -> Counts:
    """Count the subwords of a reference that are selected: one row for each setting's selected ids."""
    scopes = reference.scopes()
    return np.array([[len(ids), *(int(np.isin(wanted, ids).sum()) for wanted in scopes)] for ids in selected])


def unique(ids: Iterable[int]) -> Ids:
    """Return the distinct ids, ascending."""
    return np.unique(np.fromiter(ids, dtype=np.int64))


@dataclass(frozen=True)
class RecallInputs:
    """A test set, prepared for measuring recall."""

    subwords: SubwordTexts
    sources: list[list[int]]
    references: list[Reference]

    def __len__(self) -> int:
        return len(self.sources)

    def batches(self, size: int) -> list[list[int]]:
        """Return the positions of the sentences in batches of similar length, the shortest first."""
        order = sorted(range(len(self)), key=lambda n: len(self.sources[n]))
        return [order[start : start + size] for start in range(0, len(order), size)]


class RecallTask(NamedTuple):
    """The sentences of a test set, and its idioms by themselves.

    In `idioms`, an idiom's words alone are a source, and its translation is both reference and only idiom.
    """

    sentences: RecallInputs
    idioms: RecallInputs  # a row for each idiom of each segment

    @classmethod
    def load(cls, context: StepContext[Any]) -> RecallTask:
        test_set = EncodedTestSet.of_step(context)
        subwords = subword_texts(test_set.subwords)
        references = [
            Reference.of(subwords, segment["reference"], segment["idioms"]) for segment in test_set.segments
        ]
        idioms = [idiom for segment in test_set.segments for idiom in idiom_words(segment)]
        targets = map(unique, subwords.encode_targets([idiom.target for idiom in idioms]))
        alone = [Reference(ids, {idiom.name: ids}) for ids, idiom in zip(targets, idioms, strict=True)]
        return cls(
            RecallInputs(subwords, test_set.sources, references),
            RecallInputs(subwords, subwords.encode_lines([idiom.source for idiom in idioms]), alone),
        )

    def scopes(self, counts: Sequence[Sequence[Counts]], place: int) -> dict[str, Counted]:
        """Return the scopes at setting number `place`. `counts`: of the sentences and of the idioms."""
        reached, reached_idioms = ([row[place, 1:] for row in rows] for rows in counts)
        sentences, idioms = self.sentences.references, self.idioms.references
        return {
            "sentence": Counted(_counts(sentences, reached, 0), of_idioms=False),
            "idiom": _micro(sentences, reached),
            "idiom_macro": _macro(sentences, reached),
            "idiom_words": _micro(idioms, reached_idioms),
            "idiom_words_macro": _macro(idioms, reached_idioms),
        }

    def distinct(self, scope: str) -> int:
        """Count the idioms in a scope of idioms."""
        return len(distinct_idioms((self.idioms if "words" in scope else self.sentences).references))


# The scopes `sentence`, `idiom` and `idiom_words` are micro-averages: selected over all reference subwords.
# The `_macro` scopes are the mean recall over distinct idioms: if one idiom makes up a third of a test set,
# like "to pass on" in IdiomTranslationDS, the micro-average mostly reflects this idiom.


NO_IDIOM = "no segment of this test set has an annotated idiom"
# reasons for a scope without anything to count
NOTHING = {
    "sentence": "the references of this test set are empty",
    "idiom": NO_IDIOM,
    "idiom_macro": NO_IDIOM,
    "idiom_words": NO_IDIOM,
    "idiom_words_macro": NO_IDIOM,
}


@dataclass(frozen=True)
class Counted:
    """Counts of selected and of wanted subwords in one scope, (m, 2); m is 0 if nothing is wanted.

    A row is a segment. If idioms are counted, a row is a distinct idiom with all of its occurrences, because
    these are not independent observations (and identical if the idiom's words are translated alone). In a
    macro-average a row is an idiom's recall, and 1.
    """

    rows: Array
    of_idioms: bool
    macro: bool = False

    @property
    def value(self) -> float:
        """The recall; m must not be 0."""
        return float(ratio(self.rows.sum(axis=0)))

    def metric(self, name: str, subject: str, detail: Mapping[str, Any]) -> MetricRow:
        """Return the recall with its 95 % interval over segments, or over idioms."""
        if not self.of_idioms:
            return ratio_row(name, self.rows, subject=subject, detail=detail)
        selected, wanted = self.rows.T
        mean = cluster_mean(selected, wanted) if self.macro else None
        if mean is not None and mean.low is not None and mean.high is not None:
            low, high = logit_interval(mean.value, (mean.high - mean.low) / 2)
        else:  # a share; or all idioms are alike, which have no spread although other idioms may differ
            low, high = clustered_interval(selected, wanted)
        return MetricRow(name, self.value, low, high, subject, self._note, {**self._over, **detail})

    def less(self, other: Counted, name: str, subject: str, detail: Mapping[str, Any]) -> MetricRow:
        """Return the paired difference to another recall of the same references, with `p_two_sided`."""
        if not self.of_idioms:
            paired = paired_bootstrap([other.rows], [self.rows], ratio)
            of_test = {"segments": len(self.rows), "bootstrap": BOOTSTRAP, "p_two_sided": paired.p_two_sided}
            interval = paired.delta, paired.low, paired.high
            return MetricRow(name, *interval, subject, paired.reason, {**of_test, **detail})
        mean = cluster_mean(self.rows[:, 0] - other.rows[:, 0], self.rows[:, 1], "idiom")
        low = None if mean.low is None else max(-1.0, mean.low)
        high = None if mean.high is None else min(1.0, mean.high)
        facts = {**self._over, "p_two_sided": mean.p_value, **detail}
        return MetricRow(name, mean.value, low, high, subject, mean.reason, facts)

    @property
    def _note(self) -> str:
        share = outweighing_share(self.rows[:, 1])
        if share is None:
            return ""
        return (
            f"one idiom is {100 * share:.0f} % of the cases: another choice of idioms may give another value"
        )

    @property
    def _over(self) -> dict[str, Any]:
        return {"clusters": len(self.rows), "interval": "over idioms"}


def _counts(references: Sequence[Reference], reached: Sequence[NDArray[np.int64]], position: int) -> Array:
    """Return (selected, wanted) (m, 2) for the references in which anything is wanted."""
    pairs = zip(reached, (reference.possible() for reference in references), strict=True)
    rows = [(own[position], all_[position]) for own, all_ in pairs if all_[position]]
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


def distinct_idioms(references: Sequence[Reference]) -> list[str]:
    return sorted({name for reference in references for name in reference.idioms})


def _micro(references: Sequence[Reference], reached: Sequence[NDArray[np.int64]]) -> Counted:
    """Count the subwords of all idioms; idioms that share a segment form one row."""
    rows = _counts(references, reached, 1)
    cluster = clusters_of([list(reference.idioms) for reference in references if len(reference.idiom)])
    sums = np.zeros((max(cluster, default=-1) + 1, 2))
    np.add.at(sums, cluster, rows)
    return Counted(sums, of_idioms=True)


def clusters_of(names: Sequence[Sequence[str]]) -> list[int]:
    """Number the cluster of each segment by the idioms in it.

    Segments with a common idiom are in one cluster, also if only other segments connect them.
    """
    if not names:
        return []
    column = {name: n for n, name in enumerate(dict.fromkeys(chain.from_iterable(names)))}
    pairs = np.array([(row, column[name]) for row, own in enumerate(names) for name in own])
    nodes = len(names) + len(column)
    edges = scipy.sparse.coo_array(
        (np.ones(len(pairs)), (pairs[:, 0], len(names) + pairs[:, 1])), shape=(nodes, nodes)
    )
    return scipy.sparse.csgraph.connected_components(edges, directed=False)[1][: len(names)].tolist()


def _macro(references: Sequence[Reference], reached: Sequence[NDArray[np.int64]]) -> Counted:
    """Return each idiom's recall over all of its occurrences."""
    column = {name: n for n, name in enumerate(distinct_idioms(references))}
    sums = np.zeros((len(column), 2))
    for reference, own in zip(references, reached, strict=True):
        places = [column[name] for name in reference.idioms]
        sums[places, 0] += own[2:]
        sums[places, 1] += reference.possible()[2:]
    selected, wanted = sums[sums[:, 1] > 0].T
    return Counted(np.stack([selected / wanted, np.ones_like(wanted)], axis=1), of_idioms=True, macro=True)


MAX_LISTED = 100


def most_first(name: str, idioms: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Count the idioms that have subwords under `name`; list those with the most subwords first.

    At most MAX_LISTED are listed (NVS paper, Figures 1 and 5).
    """
    affected = sorted((idiom for idiom in idioms if idiom[name]), key=lambda idiom: -len(idiom[name]))
    return {"count": len(affected), "of": len(idioms), "idioms": affected[:MAX_LISTED]}


_BUFFER = 1 << 20  # numbers kept until the next cut


class Largest:
    """The `count` largest of all added numbers (fp32, with repetitions). Stores about 2 × `count`."""

    def __init__(self, count: int) -> None:
        self.count = count  # 1 or more
        self._parts: list[NDArray[np.float32]] = []
        self._held = 0
        self._threshold = -np.inf  # smaller numbers can no longer be among the largest

    def add(self, values: NDArray[np.float32]) -> None:
        candidates = values[values >= self._threshold]
        self._parts.append(candidates)
        self._held += len(candidates)
        if self._held >= 2 * self.count + _BUFFER:
            self._cut()

    def descending(self) -> NDArray[np.float32]:
        """Return the largest numbers, descending; fewer than `count` if fewer were added."""
        self._cut()
        return np.sort(self._parts[0])[::-1]

    def _cut(self) -> None:
        held = np.concatenate([np.empty(0, dtype=np.float32), *self._parts])
        if len(held) > self.count:
            held = np.partition(held, len(held) - self.count)[len(held) - self.count :]
            self._threshold = float(held[0])
        self._parts, self._held = [held], len(held)
