"""A study's variants and systems in a few words, as the report shows them."""

from __future__ import annotations

from creamtea.study.spec import Study


def variant(study: Study, name: str) -> str:
    """Objective, architecture where the study's variants differ in it, and adaptation: "SCONES α=0.5, base,
    adapted from news"."""
    spec = study.variants[name]
    words = [spec.objective.describe()]
    if len({other.architecture.describe() for other in study.variants.values()}) > 1:
        words.append(spec.architecture.describe())
    if spec.start_from is not None:
        words.append(f"adapted from {spec.start_from}")
    return ", ".join(filter(None, words))


def system(study: Study, name: str) -> str:
    """Its variant, selection, search and precision: "softmax, NVS λ=0.9, beam 4, int8"; or where outputs that
    are given come from."""
    spec = study.systems[name]
    if spec.outputs:
        return "outputs from a file"
    if spec.reference is not None:
        return "human reference" + ("" if spec.reference == 1 else f" {spec.reference}")
    words = [variant(study, spec.variant)]
    if spec.ensemble:
        words.append(f"ensemble of {len(study.variants[spec.variant].seeds)}")
    if spec.selection.selects:
        words.append(spec.selection.describe())
    words.append(spec.search.describe())
    if spec.precision != "fp32":
        words.append(spec.precision)
    return ", ".join(words)
