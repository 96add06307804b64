"""Recipes of training that cannot be meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from creamtea.errors import InputError
from creamtea.study.loader import load_study

Write = Callable[..., Path]

# the recipe, the key that is wrong, what is said of it
BAD = {
    "a decay that Adam has not": (
        "weight_decay: 0.1",
        "weight_decay",
        "found 0.1, allowed 0 with `optimizer: adam`, which has no decay; adamw and lamb have one",
    ),
    "a training that has ended before it begins": (
        "schedule: plateau, learning_rate: 0.1, min_learning_rate: 0.2",
        "min_learning_rate",
        "found 0.2, allowed at most the learning rate, 0.1",
    ),
    "a rate that falls to 0 who knows when": (
        "schedule: linear",
        "max_updates",
        "found nothing, allowed with `schedule: linear` the number of updates, after which the rate is 0",
    ),
    "a rate that falls to 0 before it has risen": (
        "schedule: linear, max_updates: 9, warmup: 9",
        "max_updates",
        "found 9, allowed more than the 9 updates of `warmup`",
    ),
    "two ends of a rate that falls to 0": (
        "schedule: linear, max_updates: 900, max_epochs: 9",
        "max_epochs",
        "found 9, allowed `max_updates` alone with `schedule: linear`, whose rate is 0 after them",
    ),
}


@pytest.mark.parametrize("recipe, key, said", BAD.values(), ids=BAD.keys())
def test_one_mistake_is_one_line(write: Write, recipe: str, key: str, said: str) -> None:
    path = write(("    nvs: {}\n", f"    nvs: {{}}\n    training: {{{recipe}}}\n"))
    with pytest.raises(InputError) as caught:
        load_study(path)
    place = f"study.yaml:13: variants.softmax.training.{key}"
    assert str(caught.value).split("\n") == [f"{place}: {said}", "1 mistake in study.yaml"]
