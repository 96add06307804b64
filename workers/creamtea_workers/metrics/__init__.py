"""Metrics of translations against references.

One file per method; the classes of `creamtea.methods.metrics` name the files.
"""

from __future__ import annotations

from typing import Any

from creamtea.contract.step import StepContext
from creamtea.methods import metrics
from creamtea.methods.family import implementation
from creamtea.methods.texts import Languages
from creamtea_workers.metrics.base import Metric


def build_metric(spec: metrics.Metric, languages: Languages, context: StepContext[Any]) -> Metric:
    return implementation(spec).build(spec, languages, context)
