"""Differences between systems whose variants were trained with several seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from creamtea.methods.metrics import Metric
from creamtea.report.cells import Material
from creamtea.report.model import SEEDS_MISSING, Delta
from creamtea.stats.seeds import spread_of_difference, widened

Scores = Mapping[str, float]

# what a reader has to know, in notes on differences
WITH_SEEDS = (
    "an interval “with seeds”, where both systems have several seeds, covers the choice of segments and of "
    "seeds"
)
SEEDS_ALLOW = ", and an interval “with seeds” excludes 0"


def scores_by_model(material: Material, system: str, test_set: str, metric: Metric) -> Scores | None:
    """A system's scores by the step that trained the model, or what it was fine-tuned from. An ensemble has
    one, outputs from elsewhere have none. None where one of several seeds has no score."""
    spec = material.spec.systems[system]
    measured = material.of("score", system=system, test_set=test_set, metric=metric.name())
    scores: dict[str, float] = {}
    for step in measured if spec.runs else ():
        score = step.find(metric.row())
        if score is None or score.value is None:
            return None if len(measured) > 1 else {}
        seed = step.node.labels["seed"]
        model = material.of("train", variant=material.spec.root_of(spec.variant), seed=seed)[0].node.key
        scores["ensemble" if spec.ensemble else model] = score.value
    return scores


def with_seeds(delta: Delta, system: Scores | None, baseline: Scores | None) -> Delta:
    """The difference with its interval over segments and seeds, where both have several; where a score is
    missing for it, with a note that keeps it from being marked."""
    if delta.value is None or delta.low is None or delta.high is None:
        return delta
    if system is None or baseline is None:
        several = all(scores is None or len(scores) > 1 for scores in (system, baseline))
        return replace(delta, note=SEEDS_MISSING) if several else delta
    spread = spread_of_difference(system, baseline)
    if spread is None:
        return delta
    low, high = widened(delta.value, delta.low, delta.high, spread)
    return replace(delta, seeds_low=low, seeds_high=high, spread=spread)
