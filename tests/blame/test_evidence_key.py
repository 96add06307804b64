"""What evidence on an output depends on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from creamtea.blame.gathering import Settings, _key, _Work

OUTPUT = (3, 0)


def step(key: str) -> Any:
    return SimpleNamespace(task=SimpleNamespace(key=key))


def key(own: str = "own", **others: str) -> str:
    models = {name: step(model) for name, model in others.items()}
    work = _Work(0, "greedy", step(own), {OUTPUT: "a dog"}, {OUTPUT: {"reference": "ein Hund"}}, models)
    return _key(work, OUTPUT, Settings())


@pytest.mark.parametrize(
    ("own", "others"),
    [
        ("other", {"scones": "first"}),
        ("own", {"scones": "trained anew"}),
        ("own", {}),
        ("own", {"scones": "first", "entmax": "x"}),
    ],
)
def test_evidence_is_gathered_anew_where_a_model_is_another(own: str, others: dict[str, str]) -> None:
    assert key(scones="first") == key(scones="first")
    assert key(own, **others) != key(scones="first")
