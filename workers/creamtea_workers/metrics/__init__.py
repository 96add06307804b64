"""Metrics of translations against references: one file a method."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from creamtea.contract.step import StepContext
from creamtea.settings import Settings
from creamtea.study import spec
from creamtea_workers.metrics.bleu import BleuMetric
from creamtea_workers.metrics.chrf import ChrfMetric
from creamtea_workers.metrics.comet import CometMetric

_METRIC: TypeAdapter[spec.Metric] = TypeAdapter(spec.Metric)
AnyMetric = BleuMetric | ChrfMetric | CometMetric


def build_metric(params: dict[str, Any], context: StepContext) -> AnyMetric:
    """The metric of a step's parameters {"metric", "languages"}."""
    metric = _METRIC.validate_python(params["metric"])
    if isinstance(metric, spec.Bleu):
        return BleuMetric(metric, spec.Languages.model_validate(params["languages"]))
    if isinstance(metric, spec.Chrf):
        return ChrfMetric(metric)
    return CometMetric(
        metric,
        python=Settings.load().comet_python,
        model=context.locations.get(metric.model, metric.model),
        progress=context.progress,
        cpus=context.cpus,
        gpus=context.gpus,
    )
