"""Vocabulary selection: which target subwords a sentence may use. One file per method, named by the classes
of `creamtea.methods.selections`."""

from __future__ import annotations

from creamtea.methods.family import implementation
from creamtea.methods.selections import Selection
from creamtea_workers.selection.base import SelectionResources, Selector

__all__ = ["SelectionResources", "Selector", "build_selector"]


def build_selector(spec: Selection, resources: SelectionResources) -> Selector:
    return implementation(spec).build(spec, resources)
