"""Trainings and decodings at the bounds of every number: they end, or say why not, without an overflow."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import step_files
from pydantic import BaseModel, TypeAdapter
from small_trainings import parameters, reversals, trainer

from creamtea.errors import StepError
from creamtea.methods.architectures import Nvs, RnnArchitecture, TransformerArchitecture
from creamtea.methods.objectives import Entmax, Scones, Softmax
from creamtea.methods.searches import SEARCHES
from creamtea.methods.training import Training
from creamtea_workers.corpora.ibm3 import temper
from creamtea_workers.objectives import build_objective
from creamtea_workers.search import build_search
from creamtea_workers.search.translator import Translator
from creamtea_workers.selection.tables import FullSelector

SIZES = {"layers", "encoder_layers", "decoder_layers", "width", "heads", "feed_forward", "embedding"}
SIZES |= {"language_embedding"}  # what they cost is memory
TINY = {"encoder_layers": 1, "decoder_layers": 1, "width": 16, "heads": 2, "feed_forward": 16}
Case = tuple[str, str, float]


def extremes(model: type[BaseModel]) -> Iterator[tuple[str, float]]:
    """The numbers of a model, each at its lowest and at its highest."""
    for name, schema in TypeAdapter(model).json_schema()["properties"].items():
        for part in schema.get("anyOf", [schema]):
            if part.get("type") not in ("number", "integer") or name in SIZES:
                continue
            one: Any = 1 if part["type"] == "integer" else None
            for bound, exclusive, towards in (
                ("minimum", "exclusiveMinimum", math.inf),
                ("maximum", "exclusiveMaximum", -math.inf),
            ):
                if bound in part:
                    yield name, part[bound]
                elif one is not None:
                    yield name, part[exclusive] + (1 if towards > 0 else -1)
                else:
                    yield name, math.nextafter(part[exclusive], towards)


def cases(models: dict[str, type[BaseModel]]) -> list[Any]:
    found = [(key, *extreme) for key, model in models.items() for extreme in extremes(model)]
    return [pytest.param(case, id=" ".join(map(str, case))) for case in found]


TRAININGS = {
    "training": Training,
    "softmax": Softmax,
    "scones": Scones,
    "entmax": Entmax,
    "nvs": Nvs,
    "transformer": TransformerArchitecture,
    "rnn": RnnArchitecture,
}


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(TRAININGS))
def test_a_training_at_a_bound_ends_with_numbers_or_says_why_not(case: Case, tmp_path: Path) -> None:
    key, name, value = case
    training: dict[str, Any] = {"batch_tokens": 40, "max_updates": 2, "warmup": 1}
    own: dict[str, Any] = {name: value}
    if key == "training":
        schedule = {"plateau_patience": "plateau", "min_learning_rate": "plateau"}.get(name)
        training |= {"schedule": schedule, "learning_rate": 100.0} if schedule else {}
        training |= {"max_epochs": 2, "optimizer": "lamb", **own}
    changes: dict[str, Any] = {}
    if key in ("softmax", "scones", "entmax"):
        changes["objective"] = {"kind": key, **own}
    if key == "nvs":
        changes["nvs"] = own
    architectures = {"transformer": TINY, "rnn": {"kind": "rnn", "width": 8}}
    architecture = {**architectures[key], **own} if key in architectures else None
    given = parameters(training, architecture, **changes)
    try:
        result = trainer(given, reversals(12, 4, seed=1), tmp_path, dev=reversals(3, 3, seed=9)).run()
    except StepError:  # which names what to change
        return
    assert all(weight.isfinite().all() for weight in result.model.parameters())
    assert math.isfinite(result.evaluation.loss)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(dict(SEARCHES.kinds)))
def test_a_search_at_a_bound_finds_something_with_a_score(case: Case) -> None:
    kind, name, value = case
    limits: dict[str, dict[str, Any]] = {
        "exact": {"max_states": 20},
        "mbr": {"samples": 3},
        "rerank": {"metric": {"kind": "chrf"}, "candidates": 3},
    }
    spec = SEARCHES.kinds[kind].model_validate({"kind": kind, **limits.get(kind, {}), name: value})
    search = build_search(spec, lambda ids: " ".join(map(str, ids)))
    model = step_files.random_model(14)
    system = Translator(model, build_objective(Softmax(kind="softmax")), FullSelector(), search)
    for translation in system.translate([[5, 6, 7], [4]]):
        assert math.isfinite(translation.hypothesis.score)
        assert translation.hypothesis.score <= 0


@pytest.mark.parametrize("gamma", [0.0, 5e-324, 1e-300, 1e-6, 1e6])
def test_a_temperature_of_ibm3_at_its_bounds_gives_probabilities(gamma: float) -> None:
    found = temper((0.5, 0.25, 0.25, 0.0), gamma)
    assert sum(found) == pytest.approx(1.0)
    assert all(0.0 <= share <= 1.0 for share in found)
