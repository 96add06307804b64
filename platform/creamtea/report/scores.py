"""Scores of the systems on a test set, and the differences that the study has tested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

from creamtea.methods.metrics import Bleu, Chrf, Metric
from creamtea.report.cells import Material, correct, read_cell, read_delta
from creamtea.report.model import Cell, Delta
from creamtea.report.seeds import scores_by_model, with_seeds
from creamtea.store.queries import MetricValue
from creamtea.study.spec import Study

# of BLEU: translations of other sentences of the same text have as much
NEAR_ZERO = 2.0
MUCH_IN_COMMON = 30.0  # of chrF: outputs of models that have learnt nothing have less than 20
NO_MARK = "not marked: BLEU of both systems is near zero, so which one is better means nothing"
NOT_TRANSLATED = "the system does not translate this test set"
ONLY_REFERENCE = "the test set's only reference: there is no other to score it against"

Pair = tuple[str, str]  # a system and what it is compared with


def score_cell(material: Material, system: str, test_set: str, metric: Metric, group: str = "") -> Cell:
    """`group`: of a metric of words, one of the test set's."""
    measured = material.of("score", system=system, test_set=test_set, metric=metric.name())
    missing = why_no_score(material.spec, system, test_set)
    return read_cell(measured, lambda step: step.find(metric.row(), group), missing)


def why_no_score(spec: Study, system: str, test_set: str) -> str:
    """Why a system has no score at all."""
    own = test_set in spec.test_sets_of(system) and spec.systems[system].reference is not None
    return ONLY_REFERENCE if own else NOT_TRANSLATED


def differences(material: Material, test_set: str, metric: Metric) -> dict[Pair, Delta]:
    """All that are tested on a test set by a metric, corrected together."""
    spec, found = material.spec, dict[Pair, Delta]()
    for system in spec.systems_on(test_set):
        for other in spec.comparisons(system):
            labels = {"system": system, "baseline": other, "test_set": test_set, "metric": metric.name()}
            found[system, other] = read_delta(next(iter(material.of("compare", **labels)), None))
    return _corrected_together(material, test_set, metric, found)


def all_differences(material: Material, test_set: str, metric: Metric) -> dict[Pair, Delta]:
    """Those of every two systems, in both directions, corrected over all pairs; empty until they are tested,
    and of two systems alone, whose one pair `differences` has."""
    steps = material.of("pairs", test_set=test_set, metric=metric.name())
    if not steps or steps[0].node.state != "succeeded":
        return {}
    places = enumerate(steps[0].node.labels["systems"])
    found = {
        (system, other): read_delta(steps[0], f"{i}/{j}")
        for (i, other), (j, system) in combinations(places, 2)
    }
    tested = _corrected_together(material, test_set, metric, found)
    return tested | {(other, system): delta.reversed for (system, other), delta in tested.items()}


def _corrected_together(
    material: Material, test_set: str, metric: Metric, found: Mapping[Pair, Delta]
) -> dict[Pair, Delta]:
    """With the error over seeds and Holm's correction; no mark where BLEU of both is near zero."""
    scores = {
        system: scores_by_model(material, system, test_set, metric)
        for system in material.spec.systems_on(test_set)
    }
    deltas = [
        with_seeds(delta, scores[system], scores.get(other, {})) for (system, other), delta in found.items()
    ]
    low = near_zero(material, test_set)
    return {
        pair: replace(delta, significant=False, note=NO_MARK)
        if delta.significant and low.keys() >= set(pair)
        else delta
        for pair, delta in zip(found, correct(deltas), strict=True)
    }


def unfit_bleu(material: Material, test_set: str) -> dict[str, str]:
    """The systems whose outputs the study's BLEU cannot compare with the references, and why: its steps have
    said so, or chrF contradicts a BLEU near zero."""
    low, reasons = near_zero(material, test_set), {}
    for system in material.spec.systems_on(test_set):
        said = [row.detail.get("unfit", "") for row in _rows(material, system, test_set, Bleu)]
        chrf = [row.value or 0.0 for row in _rows(material, system, test_set, Chrf)]
        if said and all(said):
            reasons[system] = said[0]
        elif system in low and min(chrf, default=0.0) >= MUCH_IN_COMMON:
            reasons[system] = (
                f"BLEU is {low[system]:.1f} and chrF {min(chrf):.1f}: the outputs have characters in common "
                "with the references, but other words"
            )
    return reasons


def _rows(material: Material, system: str, test_set: str, kind: type[Metric]) -> list[MetricValue]:
    """The scores of a system by the study's metrics of a kind."""
    steps = (
        (metric, step)
        for metric in material.spec.metrics
        if isinstance(metric, kind)
        for step in material.of("score", system=system, test_set=test_set, metric=metric.name())
    )
    return [row for metric, step in steps if (row := step.find(metric.row())) is not None]


def near_zero(material: Material, test_set: str) -> dict[str, float]:
    """The systems whose outputs have next to nothing in common with the references, with their BLEU: the
    largest one, where a study has several (of tokens, of characters)."""
    largest: dict[str, float] = {}
    for metric in material.spec.metrics:
        for system in material.spec.systems_on(test_set) if isinstance(metric, Bleu) else ():
            score = score_cell(material, system, test_set, metric).value
            if score is not None:
                largest[system] = max(score, largest.get(system, 0.0))
    return {system: score for system, score in largest.items() if score < NEAR_ZERO}
