"""Systems: what their variants must bring, and precisions and baselines that do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from creamtea.document.mistakes import KeyPath, Mistake
from creamtea.document.raw import Block, RawStudy, kind_of, repeated
from creamtea.methods.analysis import ANALYSES
from creamtea.methods.searches import PRECISIONS, SEARCHES
from creamtea.methods.selections import SELECTIONS
from creamtea.methods.texts import needs_joint
from creamtea.steps.systems import DECODE, LATENCY, RECALL
from creamtea.study.checks.outputs import check_origin, outputs_of
from creamtea.study.checks.resources import own_resources, resources_of


def check_systems(study: RawStudy) -> Iterator[Mistake]:
    for name, system in study.blocks("systems"):
        path: KeyPath = ("systems", name)
        yield from check_origin(path, system, study)
        yield from study.unknown_key(path, system, "variant", "variants")
        yield from _check_head((*path, "selection", "kind"), system, study)
        yield from _check_joint((*path, "selection"), system, study)
        yield from _check_ensemble((*path, "ensemble"), system, study)
        yield from SELECTIONS.check((*path, "selection"), system.get("selection"), study)
        yield from SEARCHES.check((*path, "search"), system.get("search"), study)
        yield from _check_precision((*path, "precision"), name, system, study)
        yield from study.unknown_names((*path, "test_sets"), system.get("test_sets") or None, "test_sets")
        yield from study.unknown_key(path, system, "baseline", "systems")
        yield from _check_pairing(path, name, system, study)
        yield from _check_more((*path, "more_baselines"), name, system, study)


def _check_head(path: KeyPath, system: Block, study: RawStudy) -> Iterator[Mistake]:
    selection = SELECTIONS.kind_of(system.get("selection"))
    variant = study.named("variants", system.get("variant"))
    if selection and selection.needs_head and variant is not None and variant.get("nvs") is None:
        without = [kind for kind, other in SELECTIONS.kinds.items() if not other.needs_head]
        found = f"{kind_of(system.get('selection'))}, but the variant has no NVS head"
        yield Mistake(path, found, f"{' or '.join(without)}, or a block `nvs: {{}}` in the variant")


def _check_joint(path: KeyPath, system: Block, study: RawStudy) -> Iterator[Mistake]:
    selection = SELECTIONS.kind_of(system.get("selection"))
    variant = study.named("variants", system.get("variant"))
    if selection and selection.selects and variant is not None:
        yield from needs_joint(path, variant.get("subwords"), study, "a vocabulary selection")


def _check_ensemble(path: KeyPath, system: Block, study: RawStudy) -> Iterator[Mistake]:
    if system.get("ensemble") is not True:
        return
    selection = SELECTIONS.kind_of(system.get("selection"))
    if selection and selection.selects:
        yield Mistake(path, "an ensemble with a vocabulary selection", "an ensemble with the full vocabulary")
    variant = study.named("variants", system.get("variant")) or {"seeds": None}
    seeds = variant.get("seeds", [1])
    if isinstance(seeds, list) and len(seeds) < 2:
        yield Mistake(path, "an ensemble of a variant with one seed", "a variant with several `seeds`")


def _check_precision(path: KeyPath, name: str, system: Block, study: RawStudy) -> Iterator[Mistake]:
    precision = system.get("precision")
    if not isinstance(precision, str) or precision not in PRECISIONS:
        return
    search = SEARCHES.kind_of(system.get("search"))
    if search and precision in search.excluded_precisions:
        reason = search.excluded_precisions[precision]
        yield Mistake(path, f"{precision} with {search.title}", f"another precision: {reason}")
    on_gpu: dict[str, bool] = {}  # by place of its resources: whether a step that runs the system has a GPU
    chosen = system.get("variant")
    for kind in _steps_that_run(name, system, study):
        # one latency step runs several variants, and has the study's resources
        variant = {} if kind == LATENCY.name else study.named("variants", chosen) or {}
        resources = resources_of(kind, variant, study)
        if resources is not None:
            place = f"variants.{chosen}.resources" if own_resources(kind, variant) else "resources"
            on_gpu[f"{place}.{kind}"] = resources.gpus > 0
    for gpu, device in ((False, "cpu"), (True, "gpu")):
        places = " and ".join(place for place, has_gpu in on_gpu.items() if has_gpu == gpu)
        if places and device not in PRECISIONS[precision]:
            others = [other for other, devices in PRECISIONS.items() if device in devices]
            remedy = f"no gpus in {places}" if gpu else f"`gpus: 1` in {places}"
            yield Mistake(path, f"{precision} on a {device.upper()}", f"{', '.join(others)}, or {remedy}")


def _steps_that_run(name: str, system: Block, study: RawStudy) -> Iterator[str]:
    """The kinds of the steps that load a system's model in the system's precision."""
    if "variant" not in system and "model" not in system:
        return
    yield DECODE.name
    selection = SELECTIONS.kind_of(system.get("selection"))
    if selection and selection.needs_model:
        yield RECALL.name
    latency = study.data.get("latency")
    if isinstance(latency, dict) and _names(latency.get("systems"), name, otherwise=True):
        yield LATENCY.name
    for kind in dict.fromkeys(kind_of(block) for _, block in study.blocks("analyses")):
        analysis = ANALYSES.kinds.get(kind)
        if analysis is None or analysis.rows != "system":
            continue
        blocks = [block for _, block in study.blocks("analyses") if kind_of(block) == kind]
        if any(_names(block.get("systems"), name, analysis.fits(system)) for block in blocks):
            yield kind


def _names(chosen: Any, name: str, otherwise: bool) -> bool:
    return name in chosen if isinstance(chosen, list) else otherwise


def _check_pairing(path: KeyPath, name: str, system: Block, study: RawStudy) -> Iterator[Mistake]:
    """What a system is compared with must translate the same test sets, and be no reference."""
    chosen = system.get("baseline")
    own = isinstance(chosen, str)
    baseline = chosen if own else study.data.get("baseline")
    other = study.named("systems", baseline)
    if other is None or baseline == name or system.get("reference") is not None:
        return  # metrics compare no human reference
    place = (*path, "baseline") if own else (*path, "test_sets")
    chain = study.chain("systems", name, "baseline", study.data.get("baseline"))
    if own and len(chain) > 2 and chain[-1] == name:  # a baseline is its own
        yield Mistake(place, f"{baseline}, a cycle", "a system that is not compared with this one in turn")
        return
    if other.get("reference") is not None:
        yield _reference((*path, "baseline") if own else ("baseline",), baseline)
    if missing := _not_translated(system, other, study):
        found = f"{missing}, which {baseline} does not translate"
        yield Mistake(place, found, f"a `baseline` that translates all of {name}'s test sets")


def _check_more(path: KeyPath, name: str, system: Block, study: RawStudy) -> Iterator[Mistake]:
    """The same of what it is compared with beside its baseline."""
    names = system.get("more_baselines")
    if not isinstance(names, list):
        return
    yield from repeated(names, path)
    if names and system.get("reference") is not None:
        yield Mistake(path, "more baselines of a human reference", "none: metrics compare no human reference")
    for index, chosen in enumerate(names):
        place = (*path, index)
        yield from study.unknown_name(place, chosen, "systems")
        other = study.named("systems", chosen)
        if other is None or chosen == name:
            continue
        if other.get("reference") is not None:
            yield _reference(place, chosen)
        elif isinstance(others := other.get("more_baselines"), list) and name in others:
            yield Mistake(place, f"{chosen}, which is compared with {name}", "each pair of systems once")
        elif missing := _not_translated(system, other, study):
            found = f"{chosen}, which does not translate {missing}"
            yield Mistake(place, found, f"systems that translate all of {name}'s test sets")


def _reference(place: KeyPath, name: Any) -> Mistake:
    found = f"{name}, a human reference, which metrics score against fewer references than a system"
    return Mistake(place, found, "a system that translates")


def _not_translated(system: Block, other: Block, study: RawStudy) -> str:
    """The test sets of `system` that `other` does not translate, in words."""
    if not any(key in entry for entry in (system, other) for key in ("outputs", "test_sets")):
        return ""  # both translate all
    every = [test_set for test_set, _ in study.blocks("test_sets")]
    own, others = (outputs_of(entry) or entry.get("test_sets") or every for entry in (system, other))
    if not isinstance(own, list) or not isinstance(others, list):
        return ""
    return ", ".join(str(test_set) for test_set in own if test_set not in others)
