"""Recall of a selection over a test set, by scope.

The scopes are those of `creamtea_workers.selection.coverage`. `sentence`, `idiom` and `idiom_words` are
micro-averages: selected over all reference subwords. Those that end in `_macro` are the mean over distinct
idioms of the recall of each: if one idiom is a third of a test set, as "to pass on" is in
IdiomTranslationDS, the micro-average is mostly about that idiom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from creamtea.contract.step import MetricRow
from creamtea.stats.bootstrap import Array, paired_bootstrap
from creamtea.stats.clusters import cluster_mean, outweighing_share
from creamtea.stats.proportion import clustered_interval, logit_interval
from creamtea_workers.analysis.rows import BOOTSTRAP, ratio_row
from creamtea_workers.metrics.base import ratio
from creamtea_workers.selection.coverage import Reference

_NO_IDIOM = "no segment of this test set has an annotated idiom"
# why a scope may have nothing to count
NOTHING = {
    "sentence": "the references of this test set are empty",
    "idiom": _NO_IDIOM,
    "idiom_macro": _NO_IDIOM,
    "idiom_words": _NO_IDIOM,
    "idiom_words_macro": _NO_IDIOM,
}


@dataclass(frozen=True)
class Counted:
    """What is selected of what is wanted in one scope, (m, 2); m is 0 where nothing is wanted.

    A row is a segment, or where idioms are counted a distinct idiom with all of its occurrences: these are no
    new observations, least of all where the idiom's words are asked by themselves. In a macro-average it is
    an idiom's recall, of 1.
    """

    rows: Array
    of_idioms: bool
    macro: bool = False

    @property
    def value(self) -> float:
        """m must not be 0."""
        return float(ratio(self.rows.sum(axis=0)))

    def metric(self, name: str, subject: str, detail: Mapping[str, Any]) -> MetricRow:
        """The recall with its 95 % interval over segments, or over idioms."""
        if not self.of_idioms:
            return ratio_row(name, self.rows, subject=subject, detail=detail)
        selected, wanted = self.rows.T
        mean = cluster_mean(selected, wanted) if self.macro else None
        if mean is not None and mean.low is not None and mean.high is not None:
            low, high = logit_interval(mean.value, (mean.high - mean.low) / 2)
        else:  # a share, or idioms that are all alike: these have no spread, and yet others may differ
            low, high = clustered_interval(selected, wanted)
        return MetricRow(name, self.value, low, high, subject, self._note, {**self._over, **detail})

    def less(self, other: Counted, name: str, subject: str, detail: Mapping[str, Any]) -> MetricRow:
        """This recall less the other's of the same references, paired, with `p_two_sided` in the detail."""
        if not self.of_idioms:
            paired = paired_bootstrap([other.rows], [self.rows], ratio)
            found = {"segments": len(self.rows), "bootstrap": BOOTSTRAP, "p_two_sided": paired.p_two_sided}
            interval = paired.delta, paired.low, paired.high
            return MetricRow(name, *interval, subject, paired.reason, {**found, **detail})
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


def scopes(
    sentences: Sequence[Reference],
    reached: Sequence[NDArray[np.int64]],
    idioms: Sequence[Reference],
    reached_idioms: Sequence[NDArray[np.int64]],
) -> dict[str, Counted]:
    """By scope.

    `reached`: of each of `sentences` the counts (2 + idioms,), as `Reference.possible` has them;
    `reached_idioms`: the same of each of `idioms` (`Material.of_idioms`).
    """
    return {
        "sentence": Counted(_counts(sentences, reached, 0), of_idioms=False),
        "idiom": _micro(sentences, reached),
        "idiom_macro": _macro(sentences, reached),
        "idiom_words": _micro(idioms, reached_idioms),
        "idiom_words_macro": _macro(idioms, reached_idioms),
    }


def _counts(references: Sequence[Reference], reached: Sequence[NDArray[np.int64]], position: int) -> Array:
    """(m, 2) of the references in which anything is wanted."""
    pairs = zip(reached, (reference.possible() for reference in references), strict=True)
    rows = [(own[position], all_[position]) for own, all_ in pairs if all_[position]]
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


def distinct_idioms(references: Sequence[Reference]) -> list[str]:
    return sorted({name for reference in references for name in reference.idioms})


def _micro(references: Sequence[Reference], reached: Sequence[NDArray[np.int64]]) -> Counted:
    """Any idiom's subwords; idioms that share a segment are one row."""
    rows = _counts(references, reached, 1)
    cluster = clusters_of([list(reference.idioms) for reference in references if len(reference.idiom)])
    sums = np.zeros((max(cluster, default=-1) + 1, 2))
    np.add.at(sums, cluster, rows)
    return Counted(sums, of_idioms=True)


def clusters_of(names: Sequence[Sequence[str]]) -> list[int]:
    """Of each segment, given the idioms in it, the number of its cluster: segments with an idiom in common
    are together, and so are those that others join."""
    if not names:
        return []
    column = {name: n for n, name in enumerate(dict.fromkeys(name for own in names for name in own))}
    pairs = np.array([(row, column[name]) for row, own in enumerate(names) for name in own])
    nodes = len(names) + len(column)
    edges = coo_array((np.ones(len(pairs)), (pairs[:, 0], len(names) + pairs[:, 1])), shape=(nodes, nodes))
    labels: list[int] = connected_components(edges, directed=False)[1][: len(names)].tolist()
    return labels


def _macro(references: Sequence[Reference], reached: Sequence[NDArray[np.int64]]) -> Counted:
    """Each idiom's own subwords, over all of its occurrences."""
    column = {name: n for n, name in enumerate(distinct_idioms(references))}
    sums = np.zeros((len(column), 2))
    for reference, own in zip(references, reached, strict=True):
        places = [column[name] for name in reference.idioms]
        sums[places, 0] += own[2:]
        sums[places, 1] += reference.possible()[2:]
    selected, wanted = sums[sums[:, 1] > 0].T
    return Counted(np.stack([selected / wanted, np.ones_like(wanted)], axis=1), of_idioms=True, macro=True)
