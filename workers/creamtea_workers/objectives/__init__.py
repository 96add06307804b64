"""Training objectives: one file each; the catalogue of study.spec names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from creamtea.study.spec import Entmax, Objective, Scones, Softmax
from creamtea_workers.objectives import base
from creamtea_workers.objectives.entmax import EntmaxObjective
from creamtea_workers.objectives.scones import SconesObjective
from creamtea_workers.objectives.softmax import SoftmaxObjective


def build_objective(spec: Softmax | Scones | Entmax | Mapping[str, Any]) -> base.Objective:
    """The objective of a spec or of its dumped dictionary."""
    if isinstance(spec, Mapping):
        spec = TypeAdapter(Objective).validate_python(spec)
    if isinstance(spec, Softmax):
        return SoftmaxObjective(spec.label_smoothing)
    if isinstance(spec, Scones):
        return SconesObjective(spec.alpha)
    return EntmaxObjective(spec.label_smoothing)
