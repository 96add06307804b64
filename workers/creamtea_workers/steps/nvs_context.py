"""Step `nvs_context`: what NVS selects from the whole sentence, and from its words alone (NVS paper, Table
6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.selections import NvsContextParams
from creamtea.methods.selections import NvsSelection
from creamtea.stats.estimate import clustered_interval
from creamtea_workers.corpora.segments import EncodedTestSet, idiom_words
from creamtea_workers.corpora.subwords import SubwordTexts, subword_texts, word_starts
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import TrainedModel
from creamtea_workers.selection.nvs import WordVotes, logit, nvs_logits
from creamtea_workers.selection.recall import Ids, Reference, clusters_of, most_first

CONTEXTS = ("sentence", "word")
SHARES = (*CONTEXTS, "only_sentence", "only_word")
WORDS = "all_words_selected"
NO_IDIOMS = "no segment of this test set has an annotated idiom"
# by context and sentence, (thresholds, wanted ids): whether each is selected
Selected = list[list[NDArray[np.bool_]]]


def run(context: StepContext[NvsContextParams]) -> StepResult:
    """Compare what NVS selects from whole sentences and from their words alone.

    Only segments with an idiom count, at each threshold: `all_words_selected` is the share of segments of
    which all subwords of the idioms' translations are selected (those of the metadata, where the test set has
    them), `all_selected` that of segments of which all subwords of the idioms' part of the reference are.
    Subjects: `0.9/sentence` (with context), `0.9/word` (each word alone, united), `0.9/only_sentence`,
    `0.9/only_word` (in that way and not in the other: "All excl" of Table 6). The detail of
    `all_words_selected`, `0.9/only_sentence` lists the subwords of translations that only the context selects
    (Figure 5). Sizes and points are means over the segments of `all_selected`.
    """
    prepare_torch(context.cpus)
    thresholds = list(dict.fromkeys(context.params.thresholds))
    wanted = Wanted.of(EncodedTestSet.of_step(context))
    sizes, selected = count(context, wanted, thresholds)
    result = StepResult()
    for name, ids in wanted.ids.items():
        there = [len(of_segment) > 0 for of_segment in ids]
        cluster = clusters_of([names for names, known in zip(wanted.names, there, strict=True) if known])
        everything = np.array([[hits.all(axis=1) for hits in of_context] for of_context in selected[name]])
        for place, threshold in enumerate(thresholds):
            if not any(there):
                result.metrics.extend(nothing(name, f"{threshold:g}"))
                continue
            hits = everything[:, there, place]
            listed = only_in_context(wanted, selected[name], place) if name == WORDS else {}
            result.metrics.extend(shares(name, f"{threshold:g}", hits, cluster, listed))
            if name == "all_selected":
                add_sizes(result, f"{threshold:g}", sizes[:, there, place], hits)
    return result


@dataclass(frozen=True)
class Wanted:
    """The sentences with an idiom, and by metric the subwords that should be selected from each; none of a
    sentence whose idiom the metric does not know."""

    subwords: SubwordTexts
    sources: list[list[int]]
    ids: dict[str, list[Ids]]
    idioms: list[dict[str, Any]]  # of each sentence: its segment's index, their words, their translations
    names: list[list[str]]  # of the idioms of each sentence

    @classmethod
    def of(cls, test_set: EncodedTestSet) -> Wanted:
        subwords = subword_texts(test_set.subwords)
        sources: list[list[int]] = []
        ids: dict[str, list[Ids]] = {WORDS: [], "all_selected": []}
        listed: list[dict[str, Any]] = []
        names: list[list[str]] = []
        for source, segment in zip(test_set.sources, test_set.segments, strict=True):
            idioms = idiom_words(segment)
            targets = subwords.encode_targets([idiom.target for idiom in idioms])
            in_order = dict.fromkeys(id_ for ids_of in targets for id_ in ids_of)
            words = np.fromiter(in_order, dtype=np.int64)
            reference = Reference.of(subwords, segment["reference"], segment["idioms"])
            if len(words) or len(reference.idiom):
                sides = {side: "; ".join(getattr(i, side) for i in idioms) for side in ("source", "target")}
                sources.append(source)
                ids[WORDS].append(words)
                ids["all_selected"].append(reference.idiom)
                listed.append({"segment": segment["index"], **sides})
                names.append([idiom["name"] for idiom in segment["idioms"]])
        return cls(subwords, sources, ids, listed, names)


def nothing(name: str, threshold: str) -> list[MetricRow]:
    names = [(name, share) for share in SHARES]
    names += [("selected_size", context) for context in CONTEXTS if name == "all_selected"]
    return [MetricRow(name, None, subject=f"{threshold}/{kind}", note=NO_IDIOMS) for name, kind in names]


def count(
    context: StepContext[NvsContextParams], wanted: Wanted, thresholds: Sequence[float]
) -> tuple[NDArray[np.int64], dict[str, Selected]]:
    """Count the selected ids (contexts, segments, thresholds), and list by metric which wanted ones are."""
    trained = TrainedModel.of_step(context)
    trained.require(NvsSelection)
    alone = WordVotes(trained.model, word_starts(wanted.subwords))
    n = len(wanted.sources)
    least = np.array([logit(threshold) for threshold in thresholds])[:, None]
    sizes = np.zeros((len(CONTEXTS), n, len(thresholds)), dtype=np.int64)
    none = np.zeros((len(thresholds), 0), dtype=np.bool_)  # until its sentence is done
    selected: dict[str, Selected] = {name: [[none] * n for _ in CONTEXTS] for name in wanted.ids}
    for place, words in enumerate((None, alone)):

        def progress(done: int, before: int = place * n) -> None:
            context.progress(before + done, len(CONTEXTS) * n, "sentences")

        for position, row in nvs_logits(trained.model, wanted.sources, words, progress):
            sizes[place, position] = (row > least).sum(axis=1)
            for name, ids in wanted.ids.items():
                selected[name][place][position] = row[ids[position]] > least
    return sizes, selected


def add_sizes(
    result: StepResult, threshold: str, sizes: NDArray[np.int64], everything: NDArray[np.bool_]
) -> None:
    """Add sizes, and whether everything is selected, to the result; both are (contexts, segments)."""
    for name, own, hits in zip(CONTEXTS, sizes, everything, strict=True):
        size = float(own.mean())
        result.metrics.append(MetricRow("selected_size", size, subject=f"{threshold}/{name}"))
        point = PointRow(f"all_selected_{name}", size, float(hits.mean()), f"threshold={threshold}")
        result.points.append(point)


def only_in_context(wanted: Wanted, selected: Selected, place: int) -> dict[str, Any]:
    """List the sentences with subwords that are selected from the sentence and from none of its words alone.

    `place`: that of the threshold.
    """
    sentence, word = selected
    idioms = []
    for idiom, ids, inside, alone in zip(wanted.idioms, wanted.ids[WORDS], sentence, word, strict=True):
        if len(ids):
            only = ids[inside[place] & ~alone[place]]
            idioms.append({**idiom, "only_in_context": wanted.subwords.pieces(only.tolist())})
    return {"only_in_context": most_first("only_in_context", idioms)}


def shares(
    name: str,
    threshold: str,
    everything: NDArray[np.bool_],
    cluster: Sequence[int],
    listed: dict[str, Any],
) -> list[MetricRow]:
    """Return the shares of segments all of whose wanted subwords are selected.

    `everything` (contexts, segments) is True for these. Segments of one idiom are one `cluster` of the
    interval. `listed` is of the detail of those in context only.
    """
    sentence, word = everything
    sizes = np.bincount(cluster)
    rows = []
    for kind, hits in zip(SHARES, (sentence, word, sentence & ~word, word & ~sentence), strict=True):
        low, high = clustered_interval(np.bincount(cluster, weights=hits), sizes)
        count, segments = int(hits.sum()), len(hits)
        detail = {"count": count, "of": segments, "clusters": len(sizes), "interval": "over idioms"}
        detail |= {"segments": segments} | (listed if kind == "only_sentence" else {})
        rows.append(MetricRow(name, count / segments, low, high, f"{threshold}/{kind}", detail=detail))
    return rows
