"""Human scores against metrics: on segments, on systems, and where they disagree most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.human.results.ratings import Array, Ratings
from creamtea.human.results.score_rows import Integers
from creamtea.report.cells import Material
from creamtea.report.human.material import (
    MAX_TEXTS,
    Judged,
    count,
    estimate,
    number,
    output_name,
    passages,
    shown_texts,
    table,
)
from creamtea.report.model import Cell, Entry, Row, Table, Texts
from creamtea.stats.estimate import ROUNDING
from creamtea.stats.human_metric import (
    pairwise_accuracy,
    segment_correlation,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from creamtea.store.tables import SegmentScore

_BY_ITEM = "over the systems of an item, then the mean over items"
_ALL = "over all outputs at once: also rewards telling hard segments from easy"
COLUMNS = (
    Column("outputs", "outputs", 0, note="with both scores"),
    Column("kendall_item", "τ by item", 3, "higher", note=f"Kendall's τ-b, {_BY_ITEM}"),
    Column("kendall", "τ of all", 3, "higher", note=f"Kendall's τ-b, {_ALL}"),
    Column("pearson_item", "r by item", 3, "higher", note=f"Pearson's r, {_BY_ITEM}"),
    Column("pearson", "r of all", 3, "higher", note=f"Pearson's r, {_ALL}"),
    Column("tie_accuracy", "acc*eq", 3, "higher", note="tie-calibrated, by item (Deutsch et al. 2023)"),
    Column(
        "accuracy",
        "pairwise accuracy",
        3,
        "higher",
        note="pairs of systems in the same order (Kocmi et al. 2021)",
    ),
    Column(
        "soft_accuracy",
        "soft accuracy",
        3,
        "higher",
        note="1 − the mean difference of the two p-values of a pair of systems (Thompson et al. 2024)",
    ),
)


@dataclass(frozen=True)
class MetricScores:
    """A metric's scores of the rated outputs: (units, systems), NaN where it has none."""

    column: Column
    scores: Array

    @property
    def quality(self) -> Array:
        """The scores with higher as better: those of an error metric with their sign changed."""
        return -self.scores if self.column.better == "lower" else self.scores


def metric_scores(session: Session, ratings: Ratings, material: Material) -> list[MetricScores]:
    """The study's segment scores of what was rated: the outputs of each variant's first seed. A metric
    without any is omitted."""
    campaign, measured = ratings.campaign, []
    units, of_unit = np.unique(ratings.segment_index, return_inverse=True)
    for metric in material.spec.metrics:
        column = metric.column()
        scores = np.full((len(units), len(campaign.systems)), np.nan)
        for index, system in enumerate(campaign.systems):
            if (step := _score_step(material, system, campaign.test_set, column.key)) is not None:
                _fill(session, step, units, scores[:, index])
        if not np.isnan(scores).all():
            measured.append(MetricScores(column, scores[of_unit]))
    return measured


def _score_step(material: Material, system: str, test_set: str, metric: str) -> str | None:
    """The first in the plan's order: of the variant's first seed, whose outputs people rate
    (human/making/campaigns.py)."""
    measured = material.of("score", system=system, test_set=test_set, metric=metric)
    return measured[0].node.key if measured else None


def _fill(session: Session, step: str, segments: Integers, column: Array) -> None:
    """Scores of a step for ascending segment indices, written into the column (segments,)."""
    if not len(segments):
        return
    query = select(SegmentScore.index, SegmentScore.value).where(
        SegmentScore.step_key == step, SegmentScore.index.between(int(segments[0]), int(segments[-1]))
    )
    # few rows at once: were all of them kept, Python's garbage collector would take twice as long as the rest
    partitions = session.connection().execute(query).partitions(500)
    stored = np.fromiter((number for rows in partitions for row in rows for number in row), dtype=np.float64)
    index, value = stored.reshape(-1, 2).T
    unit = np.searchsorted(segments, index)
    rated = segments[unit] == index
    column[unit[rated]] = value[rated]


def metric_tables(judged: Judged, metrics: Sequence[MetricScores]) -> list[Table]:
    """Nothing for ratings without a study, or a study without segment scores."""
    if not metrics:
        return []
    return [_by_system(judged, metrics), _agreement(judged, metrics)]


def _aimed(judged: Judged) -> bool:
    """Whether the campaign rated some outputs with a chance only."""
    return bool((judged.ratings.chance < 1).any())


def _by_system(judged: Judged, metrics: Sequence[MetricScores]) -> Table:
    """Means of human scores and metrics over the same outputs."""
    columns = [
        judged.points("people", "human score", better="higher"),
        *(metric.column for metric in metrics),
    ]
    rows = []
    for index, system in enumerate(judged.systems):
        rated = ~np.isnan(judged.matrix[:, index])
        own = [judged.matrix[:, index], *(metric.scores[:, index] for metric in metrics)]
        weights = judged.weights_of(index)
        cells = {
            column.key: number(_mean(values[rated], weights[rated]), "no segment scores")
            for column, values in zip(columns, own, strict=True)
        }
        rows.append(Row(system, cells))
    about = "Means over the rated items: of a metric the mean of its segment scores, not its corpus score."
    if _aimed(judged):
        about += (
            " All are weighted by the chances with which outputs were rated, as the campaign's means are."
        )
    return table("people_and_metrics", "Human scores and metrics", about, "system", columns, rows)


def _mean(values: Array, weights: Array) -> float | None:
    known = ~np.isnan(values)
    total = float(weights[known].sum()) if known.any() else 0.0
    return float((values[known] * weights[known]).sum()) / total if total > 0 else None


def _agreement(judged: Judged, metrics: Sequence[MetricScores]) -> Table:
    rows = []
    for metric in metrics:
        matrices = judged.matrix, metric.quality
        cells = {
            "outputs": count(int((~np.isnan(judged.matrix + metric.scores)).sum())),
            "kendall_item": estimate(segment_correlation(*matrices, "kendall", by_item=True)),
            "pearson_item": estimate(segment_correlation(*matrices, "pearson", by_item=True)),
            "kendall": estimate(segment_correlation(*matrices, "kendall", by_item=False)),
            "pearson": estimate(segment_correlation(*matrices, "pearson", by_item=False)),
            "tie_accuracy": estimate(tie_calibrated_accuracy(*matrices)),
            "accuracy": estimate(pairwise_accuracy(*matrices)),
            "soft_accuracy": estimate(soft_pairwise_accuracy(*matrices)),
        }
        rows.append(Row(metric.column.title, cells))
    about = (
        "How far each metric agrees with raters on the rated items. With few systems the accuracies over "
        "pairs of systems take few values."
    )
    if _aimed(judged):
        about += (
            " The chances with which outputs were rated are not considered: settled systems count with fewer "
            "items here, and pairs of systems with the items that both have."
        )
    return table("metrics", "Metrics against human scores", about, "metric", COLUMNS, rows)


# ---------------------------------------------------------------- where they disagree


GAP = Column("gap", "gap", 1, note="standard score of the raters less that of the metric")


def disagreements(session: Session, judged: Judged, metrics: Sequence[MetricScores]) -> Texts:
    """For each metric the outputs whose standard scores differ most, with their texts."""
    largest = []
    for metric in metrics:
        both = ~np.isnan(judged.matrix) & ~np.isnan(metric.scores)
        if both.sum() < 2:
            continue
        rated, scores = _standard(judged.matrix, both), _standard(metric.quality, both)
        if rated is None or scores is None:
            continue
        gap = rated - scores
        cells = np.argwhere(both)
        order = np.lexsort((cells[:, 1], cells[:, 0], -np.abs(gap[both])))[:MAX_TEXTS]
        largest += [
            (metric, int(unit), int(system), float(gap[unit, system])) for unit, system in cells[order]
        ]
    texts = shown_texts(session, judged.ratings, [(unit, system) for _, unit, system, _ in largest])
    people = judged.points("people", "human score")
    entries = tuple(
        Entry(
            output_name(judged, unit, system),
            (
                (people, Cell("ok", value=float(judged.matrix[unit, system]))),
                (metric.column, Cell("ok", value=float(metric.scores[unit, system]))),
                (GAP, Cell("ok", value=gap, words=f"{gap:+.{GAP.digits}f}".replace("-", "−"))),
            ),
            passages(judged, *texts[unit, system]),
        )
        for metric, unit, system, gap in largest
    )
    about = (
        "Standard scores over all rated outputs: the raters' less the metric's. Above 0 raters like the "
        "output better than the metric does."
    )
    title = "Where human scores and metrics disagree most"
    return Texts("disagreements", title, about, entries, folded=True)


def _standard(matrix: Array, known: NDArray[np.bool_]) -> Array | None:
    """Standard scores of the known cells; None where all are equal."""
    values = matrix[known]
    if float(np.ptp(values)) <= ROUNDING * float(np.abs(values).max()):
        return None
    standard: Array = (matrix - values.mean()) / np.std(values, ddof=1)
    return standard
