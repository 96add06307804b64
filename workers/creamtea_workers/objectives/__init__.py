"""Training objectives: one file each, named by the classes of `creamtea.methods.objectives`."""

from __future__ import annotations

from torch import Tensor

from creamtea.methods import objectives
from creamtea.methods.family import implementation
from creamtea_workers.objectives.base import Objective


def build_objective(spec: objectives.Objective, unigram: Tensor | None = None) -> Objective:
    """Build the objective of a spec.

    `unigram` (V,): relative frequencies of the training targets (`unigram_frequencies`). Only a loss with
    unigram smoothing needs them; scores never do.
    """
    return implementation(spec).build(spec, unigram)
