"""Systems of a study that differ in one number: what a figure of a metric over that number can draw."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from creamtea.study.spec import Study

Path = tuple[str, ...]
_WORDS = re.compile("([-+=])")  # between the words of a name


@dataclass(frozen=True)
class SweepGroup:
    """Systems that differ in one number only, by that number."""

    name: str  # what their names have in common: "nvs+positive_weight=…"
    systems: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Sweep:
    parameter: str  # "variant.nvs.positive_weight"
    title: str  # "nvs positive weight"
    groups: tuple[SweepGroup, ...]


def sweeps(study: Study) -> tuple[Sweep, ...]:
    """One for each number of a variant, a selection or a search that takes several values while all else
    of a system stays the same; in the study's order. Empty where there is none."""
    settings = {name: _settings(study, name) for name, system in study.systems.items() if system.runs}
    groups: dict[Path, list[SweepGroup]] = {}
    numbers = {name: dict(_numbers(setting)) for name, setting in settings.items()}
    for path in dict.fromkeys(path for own in numbers.values() for path in own):
        alike: dict[str, list[tuple[float, str]]] = {}
        for name, setting in settings.items():
            value = numbers[name].get(path)
            if value is not None:
                alike.setdefault(_without(setting, path), []).append((value, name))
        for members in alike.values():
            if len({value for value, _ in members}) > 1:
                names = in_common([name for _, name in members])
                groups.setdefault(path, []).append(SweepGroup(names, tuple(sorted(members))))
    return tuple(
        Sweep(".".join(path), " ".join(path[-2:]).replace("_", " "), tuple(_distinct(alike)))
        for path, alike in groups.items()
    )


def _distinct(groups: list[SweepGroup]) -> Iterator[SweepGroup]:
    """With names that tell them apart: those of all their systems, where others have as much in common."""
    often = Counter(group.name for group in groups)
    for group in groups:
        listed = ", ".join(system for _, system in group.systems)
        yield group if often[group.name] == 1 else replace(group, name=listed)


def _settings(study: Study, name: str) -> dict[str, Any]:
    """All that an output may depend on, names of variants resolved."""
    about_others = {"batch_size", "test_sets", "baseline", "more_baselines"}
    system = study.systems[name].model_dump(mode="json", exclude=about_others)
    chosen = study.systems[name].variant
    return {**system, "variant": _variant(study, chosen) if chosen else None}


def _variant(study: Study, name: str) -> dict[str, Any]:
    variant = study.variants[name]
    start: Any = variant.start_from
    start = _variant(study, start) if isinstance(start, str) else start and start.model_dump()
    corpus = study.corpora[variant.corpus]
    return {
        **variant.model_dump(mode="json", exclude={"seeds"}),
        "start_from": start,
        # texts that are sampled have numbers of their own: the temperature
        "corpus": corpus.model_dump(mode="json") if corpus.sampled else variant.corpus,
    }


def _numbers(value: Any, path: Path = ()) -> Iterator[tuple[Path, float]]:
    """The numbers in nested dictionaries, each with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def _without(setting: dict[str, Any], path: Path) -> str:
    """The rest of a setting, to compare."""
    rest = json.loads(json.dumps(setting, sort_keys=True))
    inner = rest
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return json.dumps(rest, sort_keys=True)


def in_common(names: list[str]) -> str:
    """The words that all names begin and end with: "nvs+positive_weight=…"; all names if none."""
    words = [_WORDS.split(name) for name in names]
    start = _shared(words)
    end = _shared([name[len(start) :][::-1] for name in words])[::-1]
    return f"{''.join(start)}…{''.join(end)}" if start or end else ", ".join(names)


def _shared(sequences: list[list[str]]) -> list[str]:
    """What all sequences begin with."""
    together = itertools.takewhile(lambda items: len(set(items)) == 1, zip(*sequences, strict=False))
    return [items[0] for items in together]
