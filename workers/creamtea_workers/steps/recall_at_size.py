"""Step `recall_at_size`: NVS against the lexicon where both select equally many subwords (NVS paper, Figure
3, which draws the curves of both)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.selections import RecallAtSizeParams
from creamtea.methods.selections import NvsSelection
from creamtea_workers.models.interface import EOS, TranslationModel
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.translator import TrainedModel
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.alignment import lexicon_counts
from creamtea_workers.selection.nvs import Logits, nvs_logits
from creamtea_workers.selection.recall import (
    NOTHING,
    Counted,
    Counts,
    Largest,
    RecallInputs,
    distinct_idioms,
    scopes,
)

SCOPES = tuple(NOTHING)
RECALLS = ("recall_lexicon", "recall_nvs", "recall_difference")
Reached = list[NDArray[np.int64]]  # of each segment (2 + idioms,), as `Reference.possible` has them


@dataclass(frozen=True)
class Matched:
    """A lexicon's k and the NVS threshold that selects as much."""

    k: int
    lexicon_size: float  # mean per sentence, </s> counted
    nvs_size: float
    logit: float  # the threshold; -inf selects everything
    lexicon: tuple[Reached, Reached]  # of the sentences, and of the idioms by themselves
    nvs: tuple[Reached, Reached]

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
    inputs, idioms = RecallInputs.load(context), RecallInputs.of_idioms(context)
    trained = TrainedModel.of_step(context)
    trained.require(NvsSelection)
    lexicon = Lexicon.load(context.input("align") / "lexicon.npz")
    matched = match(trained.model, lexicon, inputs, idioms, ks, context)
    result = StepResult()
    for pair in matched:
        result.metrics.extend(sizes(pair))
        compare(pair, inputs, idioms, result)
    return result


# ---------------------------------------------------------------- the threshold for each size


def match(
    model: TranslationModel,
    lexicon: Lexicon,
    inputs: RecallInputs,
    idioms: RecallInputs,
    ks: Sequence[int],
    context: StepContext[RecallAtSizeParams],
) -> list[Matched]:
    n = len(inputs)
    counts, idiom_counts = (_lexicon_counts(lexicon, rows, ks) for rows in (inputs, idioms))
    totals = [int(total) for total in np.sum([of_segment[:, 0] for of_segment in counts], axis=0)]
    pool = Largest(max(totals) - n + 1)
    wanted: list[list[Logits]] = [[] for _ in range(n)]  # of each sentence, the logits of each scope
    for position, logits in nvs_logits(
        model, inputs.sources, progress=lambda done: context.progress(done, n, "sentences")
    ):
        wanted[position] = [logits[ids] for ids in inputs.references[position].scopes()]
        logits[EOS] = -np.inf  # selected beside the threshold
        pool.add(logits)
    wanted_idioms: list[list[Logits]] = [[] for _ in range(len(idioms))]
    for position, logits in nvs_logits(model, idioms.sources) if len(idioms) else ():
        wanted_idioms[position] = [logits[ids] for ids in idioms.references[position].scopes()]
    descending = pool.descending()
    matches = []
    for place, (k, total) in enumerate(zip(ks, totals, strict=True)):
        least, selected = threshold_for(descending, total - n)
        matches.append(
            Matched(
                k,
                lexicon_size=total / n,
                nvs_size=(selected + n) / n,
                logit=least,
                lexicon=(
                    [of_segment[place, 1:] for of_segment in counts],
                    [of_idiom[place, 1:] for of_idiom in idiom_counts],
                ),
                nvs=(_above(least, wanted), _above(least, wanted_idioms)),
            )
        )
    return matches


def _lexicon_counts(lexicon: Lexicon, inputs: RecallInputs, ks: Sequence[int]) -> list[Counts]:
    return [
        lexicon_counts(lexicon, source, reference, ks)
        for source, reference in zip(inputs.sources, inputs.references, strict=True)
    ]


def _above(least: float, wanted: Sequence[Sequence[Logits]]) -> Reached:
    """How many of the logits of each scope exceed `least`, by row."""
    return [np.array([int((logits > least).sum()) for logits in row]) for row in wanted]


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


def compare(pair: Matched, inputs: RecallInputs, idioms: RecallInputs, result: StepResult) -> None:
    """Add the metrics and points of every scope."""

    def by_scope(reached: tuple[Reached, Reached]) -> dict[str, Counted]:
        return scopes(inputs.references, reached[0], idioms.references, reached[1])

    lexicon, nvs = by_scope(pair.lexicon), by_scope(pair.nvs)
    for scope in SCOPES:
        subject = f"k={pair.k}/{scope}"
        of_lexicon, of_nvs = lexicon[scope], nvs[scope]
        if not len(of_lexicon.rows):
            result.metrics.extend(
                MetricRow(name, None, subject=subject, note=NOTHING[scope]) for name in RECALLS
            )
            continue
        detail: dict[str, object] = {"lexicon": f"k={pair.k}", "nvs": pair.threshold}
        if scope != "sentence":
            counted = idioms if "words" in scope else inputs
            detail["idioms"] = len(distinct_idioms(counted.references))
        result.metrics.append(of_lexicon.metric("recall_lexicon", subject, detail))
        result.metrics.append(of_nvs.metric("recall_nvs", subject, detail))
        result.metrics.append(of_nvs.less(of_lexicon, "recall_difference", subject, detail))
        of_both = (("lexicon", pair.lexicon_size, of_lexicon), ("nvs", pair.nvs_size, of_nvs))
        for name, size, recall in of_both:
            result.points.append(PointRow(f"recall_{name}_{scope}", size, recall.value, f"k={pair.k}"))
