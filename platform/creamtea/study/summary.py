"""A study and its plan in short, for people and scripts."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from creamtea.study.plan import Plan
from creamtea.study.spec import Study


def describe(study: Study, plan: Plan) -> dict[str, Any]:
    """Steps by kind, variants and systems, as plain JSON values."""
    return {
        "study": study.name,
        "steps": plan.kinds(),
        "variants": [
            {
                "name": name,
                "objective": in_words(variant.objective),
                "nvs": variant.nvs is not None,
                "corpus": variant.corpus,
                "subwords": variant.subwords,
                "seeds": variant.seeds,
            }
            for name, variant in study.variants.items()
        ],
        "systems": [
            {
                "name": name,
                "variant": system.variant,
                "selection": in_words(system.selection),
                "search": in_words(system.search),
                "precision": system.precision,
                "baseline": name == study.baseline,
            }
            for name, system in study.systems.items()
        ],
        "test_sets": list(study.test_sets),
    }


def in_words(model: BaseModel) -> str:
    """`beam width=4`: the kind, then what the study sets."""
    values = model.model_dump()
    written = [f"{key}={values[key]}" for key in values if key in model.model_fields_set and key != "kind"]
    return " ".join([values["kind"], *written])
