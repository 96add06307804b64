"""Steps that measure vocabulary selections: `recall`, and the analyses `recall_at_size` and `nvs_context`.

`recall`: the share of the references that a selection reaches, and its number of subwords. `recall_at_size`:
NVS and the lexicon compared at equal sizes (NVS paper, Figure 3, shows both curves). `nvs_context`: the
selections of NVS from whole sentences and from single words (NVS paper, Figure 5 and Table 6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.selections import NvsContextParams, RecallAtSizeParams
from creamtea.methods.family import implementation
from creamtea.methods.selections import NvsSelection, SweepPoint
from creamtea.stats.estimate import clustered_interval
from creamtea.steps.systems import RecallParams
from creamtea_workers.analysis.rows import ratio_row
from creamtea_workers.corpora.segments import EncodedTestSet, idiom_words
from creamtea_workers.corpora.subwords import SubwordTexts, subword_texts, word_starts
from creamtea_workers.models.interface import EOS, TranslationModel
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import TrainedModel
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.nvs import Logits, WordVotes, counts_above, logit, nvs_logits, wanted_of
from creamtea_workers.selection.recall import (
    NO_IDIOM,
    NOTHING,
    Counts,
    Ids,
    Largest,
    RecallInputs,
    RecallTask,
    Reference,
    clusters_of,
    count_reached,
    most_first,
    unique,
)

# name and subject of the metric of each scope
ROWS = {
    "sentence": ("recall", "sentence"),
    "idiom": ("recall", "idiom"),
    "idiom_macro": ("recall_macro", "idiom"),
    "idiom_words": ("recall", "idiom_words"),
    "idiom_words_macro": ("recall_macro", "idiom_words"),
}
CURVES = ("sentence", "idiom", "idiom_words")


BothCounts = list[list[Counts]]  # counts of the sentences and of the idioms alone, at each setting


def measure_recall(context: StepContext[RecallParams]) -> StepResult:
    """Measure recall of unique reference subwords (`selection.recall` defines recall and its scopes).

    Metrics are at the system's own setting, with intervals over segments (for idioms, over distinct idioms).
    Points show every setting of the sweep: recall over the mean size of the sentences' sets, and the same if
    all sentences of a batch share their selection.
    """
    prepare_torch(context.cpus)
    selection = context.params.selection
    settings = selection.sweep(context.params.sweep)  # the system's own first
    values = [value for _, value in settings]
    task, count = RecallTask.load(context), implementation(selection).count
    counts = [count(selection, context, values, inputs) if len(inputs) else [] for inputs in task]
    batch = context.params.sweep.batch if len(settings) > 1 else None
    shared = count(selection, context, values, task.sentences, batch) if batch else []
    own_missed = missed(context, values[0]) if len(task.idioms) else {}
    rows = recall_rows(settings[0], task, counts, own_missed)
    return StepResult(rows, sweep_points(settings, task, counts, shared))


def sizes_at(counts: Sequence[Counts], place: int) -> NDArray[np.int64]:
    """Return the selected size of each sentence (n,) at setting number `place`."""
    return np.array([of_segment[place, 0] for of_segment in counts])


def missed(context: StepContext[RecallParams], own: float) -> dict[str, Any]:
    """List distinct idioms with the subwords of their translations that their words do not select.

    Each subword is passed as its own idiom, so that any selection's `count` tells if it selects the subword.
    """
    test_set = EncodedTestSet.of_step(context)
    subwords, selection = subword_texts(test_set.subwords), context.params.selection
    in_segments = (idiom for segment in test_set.segments for idiom in idiom_words(segment))
    words = list(dict.fromkeys((idiom.source, idiom.target) for idiom in in_segments))
    targets = subwords.encode_targets([target for _, target in words])
    single = [Reference(unique(ids), {str(id_): unique([id_]) for id_ in ids}) for ids in targets]
    inputs = RecallInputs(subwords, subwords.encode_lines([source for source, _ in words]), single)
    counts = implementation(selection).count(selection, context, [own], inputs)
    idioms = []
    for (source, target), ids, reached in zip(words, targets, counts, strict=True):
        absent = [id_ for id_, hit in zip(dict.fromkeys(ids), reached[0, 3:], strict=True) if not hit]
        idiom = {"source": source, "target": target, "subwords": subwords.pieces(ids)}
        idioms.append({**idiom, "missed": subwords.pieces(absent)})
    return most_first("missed", idioms)


def recall_rows(
    own: SweepPoint, task: RecallTask, counts: BothCounts, missed: dict[str, Any]
) -> list[MetricRow]:
    """Return the recall at the system's own setting. `missed`: its idioms with missed subwords."""
    setting = {"setting": own[0]}
    own_sizes = sizes_at(counts[0], 0)
    rows = [
        ratio_row("selected_size", np.stack([own_sizes, np.ones_like(own_sizes)], axis=1), detail=setting)
    ]
    for scope, counted in task.scopes(counts, 0).items():
        name, subject = ROWS[scope]
        if not len(counted.rows):
            rows.append(MetricRow(name, None, subject=subject, note=NOTHING[scope]))
            continue
        detail: dict[str, object] = {**setting, "average": "macro"}
        if name == "recall":
            detail |= {"average": "micro", "unique_subwords": int(counted.rows[:, 1].sum())}
        if scope == "idiom_words":
            detail["missed"] = missed
        if scope != "sentence":
            detail["idioms"] = task.distinct(scope)
        rows.append(counted.metric(name, subject, detail))
    return rows


def sweep_points(
    settings: Sequence[SweepPoint], task: RecallTask, counts: BothCounts, shared: list[Counts]
) -> list[PointRow]:
    """Return the points of the sweep for each scope, in order of size.

    The first of `settings` is the system's own; the sweep has it again. `shared`: counts of the sentences if
    a batch shares its selection; empty: not requested.
    """
    curves: dict[str, list[tuple[float, float, str]]] = {scope: [] for scope in (*CURVES, "batch")}
    for place, (label, _) in enumerate(settings[1:], start=1):
        statistics, size = task.scopes(counts, place), sizes_at(counts[0], place)
        for scope in CURVES:
            if len(statistics[scope].rows):
                curves[scope].append((float(size.mean()), statistics[scope].value, label))
        if shared and len(statistics["sentence"].rows):
            counted = task.scopes([shared, counts[1]], place)["sentence"]
            curves["batch"].append((float(sizes_at(shared, place).mean()), counted.value, label))
    return [
        PointRow(f"recall_{scope}", x, y, label)
        for scope, curve in curves.items()
        for x, y, label in sorted(curve, key=lambda point: point[0])
    ]


# ---------------------------------------------------------------- NVS and the lexicon at the same size


RECALLS = ("recall_lexicon", "recall_nvs", "recall_difference")


def compare_recall(context: StepContext[RecallAtSizeParams]) -> StepResult:
    """Compare the recall of NVS and lexicon selection at the same mean size.

    For each k, the NVS threshold is chosen so that the mean selected size over this test set is the largest
    that does not exceed the lexicon's; </s> is always selected. The threshold comes from the sorted logits of
    all sentences, so the two sizes differ only by ties. Resamples do not change the threshold; idioms alone
    use the sentences' threshold. `selection.recall` has the scopes; intervals are over segments, for idioms
    over distinct idioms.
    """
    prepare_torch(context.cpus)
    ks = sorted(set(context.params.k))
    task, trained = RecallTask.load(context), TrainedModel.of_step(context)
    trained.require(NvsSelection)
    lexicon = Lexicon.load(context.input("align") / "lexicon.npz")
    metrics: list[MetricRow] = []
    points: list[PointRow] = []
    matches, of_lexicon, of_nvs = match(trained.model, lexicon, task, ks, context)
    for place, (k, lexicon_size, nvs_size, least) in enumerate(matches):
        label = f"k={k}"
        threshold = 1 / (1 + math.exp(-least)) if least > -700 else 0.0  # as a probability
        of_threshold = {"logit": least if math.isfinite(least) else None}
        metrics += [
            MetricRow("selected_size_lexicon", lexicon_size, subject=label),
            MetricRow("selected_size_nvs", nvs_size, subject=label),
            MetricRow("threshold", threshold, subject=label, detail=of_threshold),
        ]
        by_nvs = task.scopes(of_nvs, place)
        for scope, lexicon_recall in task.scopes(of_lexicon, place).items():
            subject, nvs_recall = f"{label}/{scope}", by_nvs[scope]
            if not len(lexicon_recall.rows):
                note = NOTHING[scope]
                metrics += [MetricRow(name, None, subject=subject, note=note) for name in RECALLS]
                continue
            detail: dict[str, object] = {"lexicon": label, "nvs": threshold}
            if scope != "sentence":
                detail["idioms"] = task.distinct(scope)
            metrics += [
                lexicon_recall.metric("recall_lexicon", subject, detail),
                nvs_recall.metric("recall_nvs", subject, detail),
                nvs_recall.less(lexicon_recall, "recall_difference", subject, detail),
            ]
            points += [
                PointRow(f"recall_lexicon_{scope}", lexicon_size, lexicon_recall.value, label),
                PointRow(f"recall_nvs_{scope}", nvs_size, nvs_recall.value, label),
            ]
    return StepResult(metrics, points)


def match(
    model: TranslationModel,
    lexicon: Lexicon,
    task: RecallTask,
    ks: Sequence[int],
    context: StepContext[RecallAtSizeParams],
) -> tuple[list[tuple[int, float, float, float]], BothCounts, BothCounts]:
    """Match NVS thresholds to sizes of the lexicon.

    Returns, for each k, the mean sizes that lexicon and NVS select per sentence, </s> counted, and the
    threshold as a logit (-inf selects everything); then the counts of both.
    """
    n = len(task.sentences)
    of_lexicon = [
        [
            count_reached([lexicon.select(source, k) for k in ks], reference)
            for source, reference in zip(inputs.sources, inputs.references, strict=True)
        ]
        for inputs in task
    ]
    totals = [int(total) for total in np.sum([of_segment[:, 0] for of_segment in of_lexicon[0]], axis=0)]
    pool = Largest(max(totals) - n + 1)
    wanted: list[dict[int, list[Logits]]] = [{}, {}]  # by row, the logits of each scope
    for own, inputs, before in zip(wanted, task, (0, n), strict=True):

        def progress(done: int, before: int = before) -> None:
            context.progress(before + done, sum(map(len, task)), "sentences and idioms")

        for position, logits in nvs_logits(model, inputs.sources, progress=progress):
            own[position] = [
                logits[:0],
                *wanted_of(logits, inputs.references[position]),
            ]  # `thresholds` have the sizes
            if inputs is task.sentences:
                logits[EOS] = -np.inf  # selected regardless of the threshold
                pool.add(logits)
    descending = pool.descending()
    thresholds = [threshold_for(descending, total - n) for total in totals]
    least = [logit for logit, _ in thresholds]
    of_nvs = [[counts_above(least, own[position]) for position in range(len(own))] for own in wanted]
    matches = [
        (k, total / n, (selected + n) / n, logit)
        for k, total, (logit, selected) in zip(ks, totals, thresholds, strict=True)
    ]
    return matches, of_lexicon, of_nvs


def threshold_for(descending: Logits, budget: int) -> tuple[float, int]:
    """Return the lowest logit that at most `budget` logits exceed, and the number that exceed it.

    `descending`: at least the `budget` + 1 largest logits.
    """
    least = descending[budget]
    return float(least), int(np.searchsorted(-descending, -least, side="left"))


# ---------------------------------------------------------------- NVS with and without context


CONTEXTS = ("sentence", "word")
SHARES = (*CONTEXTS, "only_sentence", "only_word")
WORDS = "all_words_selected"
# by context and sentence: bool (thresholds, wanted ids), True if selected
Selected = list[list[NDArray[np.bool_]]]


def compare_contexts(context: StepContext[NvsContextParams]) -> StepResult:
    """Compare the selections of NVS from whole sentences and from single words.

    Only segments with an idiom count. At each threshold, `all_words_selected` is the share of segments in
    which all subwords of the idioms' translations are selected (from the metadata, if the test set has them);
    `all_selected` is the share in which all subwords of the idioms' part of the reference are selected.
    Subjects: `0.9/sentence` (with context), `0.9/word` (union over single words), `0.9/only_sentence`,
    `0.9/only_word` (in one way and not in the other: "All excl" of Table 6). Sizes and points are means over
    the segments of `all_selected`.
    """
    prepare_torch(context.cpus)
    thresholds = list(dict.fromkeys(context.params.thresholds))
    wanted = Wanted.of(EncodedTestSet.of_step(context))
    sizes, selected = count(context, wanted, thresholds)
    result = StepResult()
    for name, ids in wanted.ids.items():
        relevant = [len(of_segment) > 0 for of_segment in ids]
        cluster = clusters_of([names for names, used in zip(wanted.names, relevant, strict=True) if used])
        everything = np.array([[hits.all(axis=1) for hits in of_context] for of_context in selected[name]])
        for place, threshold in enumerate(thresholds):
            if not any(relevant):
                result.metrics.extend(nothing(name, f"{threshold:g}"))
                continue
            hits = everything[:, relevant, place]
            listed = only_in_context(wanted, selected[name], place) if name == WORDS else {}
            result.metrics.extend(shares(name, f"{threshold:g}", hits, cluster, listed))
            if name == "all_selected":
                for way, own, own_hits in zip(CONTEXTS, sizes[:, relevant, place], hits, strict=True):
                    size, share = float(own.mean()), float(own_hits.mean())
                    result.metrics.append(MetricRow("selected_size", size, subject=f"{threshold:g}/{way}"))
                    label = f"threshold={threshold:g}"
                    result.points.append(PointRow(f"all_selected_{way}", size, share, label))
    return result


@dataclass(frozen=True)
class Wanted:
    """The sentences with an idiom, and for each metric the subwords that should be selected.

    A sentence has no subwords if the metric does not know its idiom.
    """

    subwords: SubwordTexts
    sources: list[list[int]]
    ids: dict[str, list[Ids]]
    idioms: list[dict[str, Any]]  # by sentence: its segment's index, its idioms' words and translations
    names: list[list[str]]  # by sentence: the names of its idioms

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
    return [MetricRow(name, None, subject=f"{threshold}/{kind}", note=NO_IDIOM) for name, kind in names]


def count(
    context: StepContext[NvsContextParams], wanted: Wanted, thresholds: Sequence[float]
) -> tuple[NDArray[np.int64], dict[str, Selected]]:
    """Count the selected ids (contexts, segments, thresholds); return also `Selected` for each metric."""
    trained = TrainedModel.of_step(context)
    trained.require(NvsSelection)
    alone = WordVotes(trained.model, word_starts(wanted.subwords))
    n = len(wanted.sources)
    least = np.array([logit(threshold) for threshold in thresholds])[:, None]
    sizes = np.zeros((len(CONTEXTS), n, len(thresholds)), dtype=np.int64)
    none = np.zeros((len(thresholds), 0), dtype=np.bool_)  # a placeholder for each sentence
    selected: dict[str, Selected] = {name: [[none] * n for _ in CONTEXTS] for name in wanted.ids}
    for place, words in enumerate((None, alone)):

        def progress(done: int, before: int = place * n) -> None:
            context.progress(before + done, len(CONTEXTS) * n, "sentences")

        for position, row in nvs_logits(trained.model, wanted.sources, words, progress):
            sizes[place, position] = (row > least).sum(axis=1)
            for name, ids in wanted.ids.items():
                selected[name][place][position] = row[ids[position]] > least
    return sizes, selected


def only_in_context(wanted: Wanted, selected: Selected, place: int) -> dict[str, Any]:
    """List sentences with subwords that the whole sentence selects, but that no single word selects.

    `place`: the threshold's position.
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
    """Return the shares of segments in which all wanted subwords are selected.

    `everything` (contexts, segments) is True for these segments. Segments of one idiom form one `cluster` of
    the interval. `listed`: added to the detail of `only_sentence`.
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
