"""People against metrics: on segments, on systems, and where they disagree most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.columns import Column
from creamtea.human.results import Array, Integers, Ratings
from creamtea.report.cells import Material
from creamtea.report.human.material import MOST_TEXTS, Judged, count, plain, shown_texts, table
from creamtea.report.model import AnalysisRow, Disagreement, HumanTable
from creamtea.stats.human_metric import (
    Grouping,
    Kind,
    pairwise_accuracy,
    segment_correlation,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from creamtea.store.tables import SegmentScore

_CORRELATIONS: dict[str, tuple[Kind, Grouping]] = {
    "kendall_item": ("kendall", "group-by-item"),
    "pearson_item": ("pearson", "group-by-item"),
    "kendall": ("kendall", "no-grouping"),
    "pearson": ("pearson", "no-grouping"),
}
_BY_ITEM = "over the systems of an item, then the mean over items"
_ALL = "over all outputs at once: counts too whether the metric knows hard segments"
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

    key: str
    title: str
    digits: int
    scores: Array


def metric_scores(session: Session, ratings: Ratings, material: Material) -> list[MetricScores]:
    """The study's segment scores of what was rated: the outputs of each variant's first seed. A metric
    without any is left away."""
    campaign, found = ratings.campaign, []
    units, of_unit = np.unique(ratings.segment_index, return_inverse=True)
    for metric in material.spec.metrics:
        key = metric.name()
        scores = np.full((len(units), len(campaign.systems)), np.nan)
        for at, system in enumerate(campaign.systems):
            if (step := _score_step(material, system, campaign.test_set, key)) is not None:
                _fill(session, step, units, scores[:, at])
        if not np.isnan(scores).all():
            found.append(MetricScores(key, metric.describe(), metric.digits, scores[of_unit]))
    return found


def _score_step(material: Material, system: str, test_set: str, metric: str) -> str | None:
    """Of the variant's first seed, whose outputs people rate (human/campaigns.py)."""
    spec = material.spec
    if system not in spec.systems:
        return None
    seed = spec.variants[spec.systems[system].variant].seeds[0]
    measured = material.of("score", system=system, test_set=test_set, metric=metric, seed=seed)
    return measured[0].node.key if measured else None


def _fill(session: Session, step: str, segments: Integers, column: Array) -> None:
    """Scores of a step for ascending segment indices, written into the column (segments,)."""
    if not len(segments):
        return
    query = select(SegmentScore.index, SegmentScore.value).where(
        SegmentScore.step_key == step, SegmentScore.index.between(int(segments[0]), int(segments[-1]))
    )
    # few rows at once: were all of them kept, Python's garbage collector would take twice as long as the rest
    some_rows = session.connection().execute(query).partitions(500)
    stored = np.fromiter((number for rows in some_rows for row in rows for number in row), dtype=np.float64)
    index, value = stored.reshape(-1, 2).T
    at = np.searchsorted(segments, index)
    rated = segments[at] == index
    column[at[rated]] = value[rated]


def metric_tables(judged: Judged, metrics: Sequence[MetricScores]) -> list[HumanTable]:
    """Nothing for ratings without a study, or a study without segment scores."""
    if not metrics:
        return []
    return [_by_system(judged, metrics), _agreement(judged, metrics)]


def _by_system(judged: Judged, metrics: Sequence[MetricScores]) -> HumanTable:
    """Means of people and metrics over the same outputs."""
    columns = [
        judged.points("people", "people", better="higher"),
        *(Column(one.key, one.title, one.digits, "higher") for one in metrics),
    ]
    rows = []
    for at, system in enumerate(judged.systems):
        rated = ~np.isnan(judged.matrix[:, at])
        own = [judged.matrix[:, at], *(one.scores[:, at] for one in metrics)]
        cells = {
            column.key: plain(_mean(values[rated], judged.weights[rated]), "no segment scores")
            for column, values in zip(columns, own, strict=True)
        }
        rows.append(AnalysisRow(system, "", cells))
    about = "Means over the rated items: of a metric the mean of its segment scores, not its corpus score."
    return table("people_and_metrics", "People and metrics", about, "system", columns, rows)


def _mean(values: Array, weights: Array) -> float | None:
    known = ~np.isnan(values)
    total = float(weights[known].sum()) if known.any() else 0.0
    return float((values[known] * weights[known]).sum()) / total if total > 0 else None


def _agreement(judged: Judged, metrics: Sequence[MetricScores]) -> HumanTable:
    rows = []
    for one in metrics:
        found = {
            name: segment_correlation(judged.matrix, one.scores, kind, grouping)
            for name, (kind, grouping) in _CORRELATIONS.items()
        }
        shares = {
            "tie_accuracy": tie_calibrated_accuracy(judged.matrix, one.scores),
            "accuracy": pairwise_accuracy(judged.matrix, one.scores),
            "soft_accuracy": soft_pairwise_accuracy(judged.matrix, one.scores),
        }
        cells = {"outputs": count(found["kendall"].cells)}
        cells |= {name: plain(value.value, value.reason) for name, value in found.items()}
        cells |= {name: plain(value.value, value.reason) for name, value in shares.items()}
        rows.append(AnalysisRow(one.title, "", cells))
    about = (
        "How far each metric agrees with people on the rated items. With few systems the accuracies over "
        "pairs of systems take few values."
    )
    return table("metrics", "Metrics against people", about, "metric", COLUMNS, rows)


# ---------------------------------------------------------------- where they disagree


def disagreements(
    session: Session, judged: Judged, metrics: Sequence[MetricScores]
) -> tuple[Disagreement, ...]:
    """For each metric the outputs whose standard scores differ most, with their texts."""
    found = []
    for one in metrics:
        both = ~np.isnan(judged.matrix) & ~np.isnan(one.scores)
        if both.sum() < 2:
            continue
        people, metric = _standard(judged.matrix, both), _standard(one.scores, both)
        if people is None or metric is None:
            continue
        gap = people - metric
        cells = np.argwhere(both)
        order = np.lexsort((cells[:, 1], cells[:, 0], -np.abs(gap[both])))[:MOST_TEXTS]
        found += [(one, int(unit), int(at), float(gap[unit, at])) for unit, at in cells[order]]
    texts = shown_texts(session, judged.ratings, [(unit, at) for _, unit, at, _ in found])
    return tuple(
        Disagreement(
            segment=int(judged.ratings.segment_index[unit]),
            system=judged.systems[at],
            source=texts[unit, at][0],
            output=texts[unit, at][1],
            people=float(judged.matrix[unit, at]),
            metric=one.title,
            score=float(one.scores[unit, at]),
            gap=gap,
        )
        for one, unit, at, gap in found
    )


def _standard(matrix: Array, known: NDArray[np.bool_]) -> Array | None:
    """Standard scores of the known cells; None where all are equal."""
    values = matrix[known]
    deviation = float(np.std(values, ddof=1))
    return (matrix - values.mean()) / deviation if deviation > 0 else None
