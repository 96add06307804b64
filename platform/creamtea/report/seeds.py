"""Differences between systems whose variants were trained with several seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from creamtea.document.canonical import digest
from creamtea.methods.metrics import Metric
from creamtea.report.cells import Material
from creamtea.report.model import ONE_SEED, SEEDS_MISSING, Delta
from creamtea.stats.seeds import one_against_several, spread_of_difference

Scores = Mapping[str, float]

# what a reader has to know, in notes on differences
WITH_SEEDS = (
    "where either system has several seeds, the interval and the p “with seeds” cover the choice of segments "
    "and of seeds; of a system with one seed and one with several, no difference is marked"
)
SEEDS_ALLOW = ", and so is p “with seeds”"

ENSEMBLE = "ensemble"  # in the place of a model


def scores_by_model(material: Material, system: str, test_set: str, metric: Metric) -> Scores | None:
    """A system's scores by the model, or by what it was fine-tuned from. An ensemble has one, outputs from
    elsewhere have none. None where one of several seeds has no score."""
    spec = material.spec.systems[system]
    measured = material.of("score", system=system, test_set=test_set, metric=metric.name())
    scores: dict[str, float] = {}
    for step in measured if spec.variant else ():
        score = step.find(metric.row())
        if score is None or score.value is None:
            return None if len(measured) > 1 else {}
        seed = step.node.labels["seed"]
        scores[ENSEMBLE if spec.ensemble else model_of(material, spec.variant, seed)] = score.value
    return scores


def model_of(material: Material, variant: str, seed: int) -> str:
    """What the training of a variant makes, or of what it was fine-tuned from, but for an NVS head: its
    gradient reaches no other weight, so that variants with and without it translate with the same model of
    each seed."""
    trained = material.of("train", variant=material.spec.root_of(variant), seed=seed)[0].node
    params = {name: value for name, value in trained.params.items() if name != "nvs"}
    inputs = [(row.role, row.position, row.input_key) for row in material.inputs.get(trained.key, ())]
    return digest([params, inputs])


def with_seeds(delta: Delta, system: Scores | None, baseline: Scores | None) -> Delta:
    """The difference with its interval and p over segments and seeds, where either has several; where a score
    is missing for it, or one side has a single seed, with a note that keeps it from being marked. That of an
    ensemble has none: how much ensembles of other seeds would differ is not known."""
    if delta.value is None or ENSEMBLE in (*(system or ()), *(baseline or ())):
        return delta
    if system is None or baseline is None:
        return replace(delta, note=SEEDS_MISSING)
    if one_against_several(system, baseline):
        return replace(delta, note=ONE_SEED)
    spread = spread_of_difference(system, baseline)
    return delta if spread is None else delta.with_seeds(spread)
