"""Step `recall_at_size`: NVS against the lexicon where both select equally many subwords (NVS paper, Figure
3, which draws the curves of both)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.selections import RecallAtSizeParams
from creamtea.methods.selections import NvsSelection
from creamtea_workers.models.interface import EOS, TranslationModel
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import TrainedModel
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.nvs import Logits, counts_above, nvs_logits, wanted_of
from creamtea_workers.selection.recall import NOTHING, Counted, Counts, Largest, RecallTask, count_reached

RECALLS = ("recall_lexicon", "recall_nvs", "recall_difference")
BothCounts = list[list[Counts]]  # of the sentences and of the idioms by themselves, at each size


@dataclass(frozen=True)
class Matched:
    """A lexicon's k and the NVS threshold that selects as much."""

    k: int
    lexicon_size: float  # mean per sentence, </s> counted
    nvs_size: float
    logit: float  # the threshold; -inf selects everything

    @property
    def threshold(self) -> float:
        """The threshold as a probability."""
        return 1 / (1 + math.exp(-self.logit)) if self.logit > -700 else 0.0


def run(context: StepContext[RecallAtSizeParams]) -> StepResult:
    """Compare the recall of NVS and lexicon selection at the same mean size.

    For each k the NVS threshold is the one whose mean selected size over this test set is the closest that
    does not exceed the lexicon's; </s> is always selected. It is found in the sorted logits of all sentences,
    so nothing lies between the two sizes but equal logits.

    Metrics, subject `k=200`: `selected_size_lexicon`, `selected_size_nvs`, `threshold` (a probability; its
    logit in the detail). Subjects `k=200/sentence`, `k=200/idiom` and so on (the scopes of
    `creamtea_workers.selection.recall`): `recall_lexicon`, `recall_nvs` with intervals over segments, of
    idioms over distinct idioms, and `recall_difference` (NVS less lexicon) with a paired one and its
    two-sided p. The threshold stays where it is in the resamples, and is that of the sentences for idioms by
    themselves, too. Points `recall_lexicon_sentence`, `recall_nvs_sentence` and the same of the other scopes:
    recall over mean size of the sentences' sets, labelled by k.
    """
    prepare_torch(context.cpus)
    ks = sorted(set(context.params.k))
    task, trained = RecallTask.load(context), TrainedModel.of_step(context)
    trained.require(NvsSelection)
    lexicon = Lexicon.load(context.input("align") / "lexicon.npz")
    result = StepResult()
    matches, of_lexicon, of_nvs = match(trained.model, lexicon, task, ks, context)
    for place, pair in enumerate(matches):
        result.metrics.extend(sizes(pair))
        compare(pair, task, task.scopes(of_lexicon, place), task.scopes(of_nvs, place), result)
    return result


# ---------------------------------------------------------------- the threshold for each size


def match(
    model: TranslationModel,
    lexicon: Lexicon,
    task: RecallTask,
    ks: Sequence[int],
    context: StepContext[RecallAtSizeParams],
) -> tuple[list[Matched], BothCounts, BothCounts]:
    """Return the thresholds, and what the lexicon and NVS select."""
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
    wanted: list[dict[int, list[Logits]]] = [{}, {}]  # of each row, the logits of each scope
    for own, inputs, before in zip(wanted, task, (0, n), strict=True):

        def progress(done: int, before: int = before) -> None:
            context.progress(before + done, sum(map(len, task)), "sentences and idioms")

        for position, logits in nvs_logits(model, inputs.sources, progress=progress):
            own[position] = [
                logits[:0],
                *wanted_of(logits, inputs.references[position]),
            ]  # `thresholds` have the sizes
            if inputs is task.sentences:
                logits[EOS] = -np.inf  # selected beside the threshold
                pool.add(logits)
    descending = pool.descending()
    thresholds = [threshold_for(descending, total - n) for total in totals]
    least = [logit for logit, _ in thresholds]
    of_nvs = [[counts_above(least, own[position]) for position in range(len(own))] for own in wanted]
    matches = [
        Matched(k, lexicon_size=total / n, nvs_size=(selected + n) / n, logit=logit)
        for k, total, (logit, selected) in zip(ks, totals, thresholds, strict=True)
    ]
    return matches, of_lexicon, of_nvs


def threshold_for(descending: Logits, budget: int) -> tuple[float, int]:
    """Return the lowest of the logits that at most `budget` logits exceed, and how many do.

    `descending`: at least the `budget` + 1 largest of all.
    """
    least = descending[budget]
    return float(least), int(np.searchsorted(-descending, -least, side="left"))


# ---------------------------------------------------------------- the rows


def sizes(pair: Matched) -> list[MetricRow]:
    subject = f"k={pair.k}"
    detail = {"logit": pair.logit if math.isfinite(pair.logit) else None}
    return [
        MetricRow("selected_size_lexicon", pair.lexicon_size, subject=subject),
        MetricRow("selected_size_nvs", pair.nvs_size, subject=subject),
        MetricRow("threshold", pair.threshold, subject=subject, detail=detail),
    ]


def compare(
    pair: Matched,
    task: RecallTask,
    lexicon: Mapping[str, Counted],
    nvs: Mapping[str, Counted],
    result: StepResult,
) -> None:
    """Add the metrics and points of every scope."""
    for scope, of_lexicon in lexicon.items():
        subject = f"k={pair.k}/{scope}"
        of_nvs = nvs[scope]
        if not len(of_lexicon.rows):
            result.metrics.extend(
                MetricRow(name, None, subject=subject, note=NOTHING[scope]) for name in RECALLS
            )
            continue
        detail: dict[str, object] = {"lexicon": f"k={pair.k}", "nvs": pair.threshold}
        if scope != "sentence":
            detail["idioms"] = task.distinct(scope)
        result.metrics.append(of_lexicon.metric("recall_lexicon", subject, detail))
        result.metrics.append(of_nvs.metric("recall_nvs", subject, detail))
        result.metrics.append(of_nvs.less(of_lexicon, "recall_difference", subject, detail))
        of_both = (("lexicon", pair.lexicon_size, of_lexicon), ("nvs", pair.nvs_size, of_nvs))
        for name, size, recall in of_both:
            result.points.append(PointRow(f"recall_{name}_{scope}", size, recall.value, f"k={pair.k}"))
