"""Systems: what their variants must bring, and combinations that make no sense, with the reason."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from creamtea.document.mistakes import KeyPath, Mistake, one_of, shown
from creamtea.study.checks.reading import Groups, blocks, kind_of, known, known_names, named, parsed
from creamtea.study.spec import Alignment, LexiconSelection, StepResources, Subwords

NO_NORMALISATION = (
    "no length_normalization: exact search prunes by a score that only falls as a hypothesis grows, which a "
    "normalised one does not"
)
NO_INT8 = (
    "fp32: exact search compares prefixes of all lengths, whose scores int8 rounds otherwise in each batch, "
    "so that nothing is proved"
)
SCORED = ("", "greedy", "beam", "exact")  # searches for a high score, of which `empty_string` takes all


def check_systems(data: dict[str, Any], groups: Groups) -> Iterator[Mistake]:
    alignment = parsed(Alignment, data.get("alignment", {}))
    largest = alignment.max_k if alignment else sys.maxsize
    for name, system in blocks(data, "systems"):
        at: tuple[str, ...] = ("systems", name)
        yield from known(data, groups, at, system, "variant", "variants")
        selection = system.get("selection")
        variant = named(data, "variants", system.get("variant"))
        if kind_of(selection) == "nvs" and variant is not None and variant.get("nvs") is None:
            found = "nvs, but the variant has no NVS head"
            allowed = "full or lexicon, or a block `nvs: {}` in the variant"
            yield Mistake((*at, "selection", "kind"), found, allowed)
        lexicon = parsed(LexiconSelection, selection)
        if lexicon and lexicon.k > largest:
            yield Mistake((*at, "selection", "k"), str(lexicon.k), f"at most alignment.max_k = {largest}")
        yield from _check_search((*at, "search"), data, system, variant)
        yield from _check_precision((*at, "precision"), data, name, system)
        yield from known_names(data, groups, (*at, "test_sets"), system.get("test_sets") or None, "test_sets")
        yield from known(data, groups, at, system, "baseline", "systems")
        yield from _check_pairing(at, data, name, system)


def _check_search(
    path: KeyPath, data: dict[str, Any], system: dict[str, Any], variant: dict[str, Any] | None
) -> Iterator[Mistake]:
    search = system.get("search")
    if not isinstance(search, dict):
        return
    if kind_of(search) == "exact" and "length_normalization" in search:
        found = f"{shown(search['length_normalization'])} in an exact search"
        yield Mistake((*path, "length_normalization"), found, NO_NORMALISATION, settled=True)
    size = parsed(Subwords, named(data, "subwords", (variant or {}).get("subwords")) or None)
    for key in ("width", "beam", "top_k"):
        value = search.get(key)
        if size and isinstance(value, int) and value > size.vocabulary:
            found = f"{value:,}, of {size.vocabulary:,} subwords"
            yield Mistake((*path, key), found, "at most the size of the vocabulary")


def _check_precision(
    path: KeyPath, data: dict[str, Any], name: str, system: dict[str, Any]
) -> Iterator[Mistake]:
    precision = system.get("precision")
    if precision == "int8" and kind_of(system.get("search")) == "exact":
        yield Mistake(path, "int8 with exact search", NO_INT8)
    if precision not in ("fp16", "int8"):
        return
    steps: dict[str, bool] = {}  # whether each is given a GPU
    for kind in _steps_that_run(data, name, system):
        resources = parsed(StepResources, named(data, "resources", kind) or {})
        if resources is not None:
            steps[f"resources.{kind}"] = resources.gpus > 0
    places = " and ".join(place for place, gpu in steps.items() if gpu == (precision == "int8"))
    if places and precision == "fp16":
        allowed = f"fp32, bf16 or int8, or `gpus: 1` in {places} (fp16 is for GPUs)"
        yield Mistake(path, "fp16 on a CPU", allowed)
    elif places:
        yield Mistake(path, "int8 on a GPU", f"fp32, bf16 or fp16, or no gpus in {places}")


def _steps_that_run(data: dict[str, Any], name: str, system: dict[str, Any]) -> Iterator[str]:
    """The kinds of the steps that load a system's model in the system's precision."""
    yield "decode"
    latency = data.get("latency")
    if isinstance(latency, dict) and _names(latency.get("systems"), name, otherwise=True):
        yield "latency"
    scored = kind_of(system.get("selection")) in ("", "full") and kind_of(system.get("search")) in SCORED
    for _, analysis in blocks(data, "analyses"):
        if kind_of(analysis) == "empty_string" and _names(analysis.get("systems"), name, otherwise=scored):
            yield "empty_string"
            return


def _names(chosen: Any, name: str, otherwise: bool) -> bool:
    return name in chosen if isinstance(chosen, list) else otherwise


def _check_pairing(at: KeyPath, data: dict[str, Any], name: str, system: dict[str, Any]) -> Iterator[Mistake]:
    """What a system is compared with must translate the same test sets, and be a baseline itself."""
    chosen = system.get("baseline")
    own = isinstance(chosen, str)
    baseline = chosen if own else data.get("baseline")
    other = named(data, "systems", baseline)
    if other is None or baseline == name:
        return
    path = (*at, "baseline") if own else (*at, "test_sets")
    if own and other.get("baseline") not in (None, baseline):
        yield Mistake(path, f"{baseline}, which is compared with {shown(other['baseline'])}", "a baseline")
    every = [test_set for test_set, _ in blocks(data, "test_sets")]
    sets = [entry.get("test_sets") or every for entry in (system, other)]
    if all(isinstance(names, list) for names in sets):
        missing = [test_set for test_set in sets[0] if test_set not in sets[1]]
        if missing:
            found = f"{', '.join(map(str, missing))}, which {baseline} does not translate"
            yield Mistake(path, found, f"a `baseline` that translates all of {name}'s test sets")


def check_baseline(data: dict[str, Any], groups: Groups) -> Iterator[Mistake]:
    baseline, systems = data.get("baseline"), data.get("systems")
    if not isinstance(baseline, str) or not isinstance(systems, dict) or baseline in systems:
        return
    if members := groups["systems"].get(baseline):
        yield Mistake(("baseline",), f"{shown(baseline)}, a grid", one_of(members, what="one of its members"))
    else:
        yield Mistake(("baseline",), shown(baseline), one_of(systems, baseline, "a system"))
