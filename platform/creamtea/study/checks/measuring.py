"""Latency runs, analyses and resources: the systems, variants and test sets that they name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from creamtea.document.mistakes import KeyPath, Mistake, one_of
from creamtea.study.catalogue import STEP_KINDS
from creamtea.study.checks.reading import Groups, blocks, kind_of, known, known_names, named, parsed
from creamtea.study.spec import Alignment, RecallAtSize

NEEDS_HEAD = ("recall_at_size", "nvs_context")


def check_latency(data: dict[str, Any], groups: Groups) -> Iterator[Mistake]:
    latency, systems = data.get("latency"), data.get("systems")
    if not isinstance(latency, dict) or not isinstance(systems, dict):
        return
    yield from known(data, groups, ("latency",), latency, "test_set", "test_sets")
    path: KeyPath = ("latency",)
    names = list(systems)
    if isinstance(latency.get("systems"), list):
        path, names = ("latency", "systems"), latency["systems"]
        yield from known_names(data, groups, path, names, "systems")
    baselines = latency.get("baselines")
    yield from known_names(data, groups, ("latency", "baselines"), baselines or None, "systems")
    for index, name in enumerate(baselines if isinstance(baselines, list) else []):
        if isinstance(name, str) and name in systems and name not in names:
            found = f"{name}, which is not timed"
            yield Mistake(("latency", "baselines", index), found, "one of latency.systems")
    for found, allowed in _one_vocabulary(data, names):
        yield Mistake(path, found, allowed)


def _one_vocabulary(data: dict[str, Any], names: list[Any]) -> Iterator[tuple[str, str]]:
    """One process times all the systems on the same subwords, with one lexicon."""
    texts, lexica = set(), set()
    for name in names:
        system = named(data, "systems", name) or {}
        variant = named(data, "variants", system.get("variant"))
        if variant is None:
            continue
        root = _root(data, variant)
        texts.add(f"{root.get('corpus')} × {root.get('subwords')}")
        if kind_of(system.get("selection")) == "lexicon":
            lexica.add(str(variant.get("alignment_corpus") or variant.get("corpus")))
    remedy = "(list them in latency.systems)"
    if len(texts) > 1:
        found = f"systems over {len(texts)} subword models ({', '.join(sorted(texts))})"
        yield found, f"systems of one corpus and subwords {remedy}"
    elif len(lexica) > 1:
        found = f"systems with {len(lexica)} lexica ({', '.join(sorted(lexica))})"
        yield found, f"systems whose lexica are aligned on one corpus {remedy}"


def _root(data: dict[str, Any], variant: dict[str, Any]) -> dict[str, Any]:
    """What a chain of `start_from` begins with; of a circle, which is reported elsewhere, any part."""
    for _ in blocks(data, "variants"):
        variant = named(data, "variants", variant.get("start_from")) or variant
    return variant


def check_analyses(data: dict[str, Any], groups: Groups) -> Iterator[Mistake]:
    alignment = parsed(Alignment, data.get("alignment", {}))
    largest = alignment.max_k if alignment else sys.maxsize
    for name, analysis in blocks(data, "analyses"):
        at: tuple[str, ...] = ("analyses", name)
        yield from known(data, groups, at, analysis, "test_set", "test_sets")
        yield from known_names(data, groups, (*at, "variants"), analysis.get("variants"), "variants")
        yield from known_names(data, groups, (*at, "systems"), analysis.get("systems"), "systems")
        if kind_of(analysis) == "empty_string":
            yield from _check_empty_string(data, (*at, "systems"), analysis.get("systems"))
        if kind_of(analysis) in NEEDS_HEAD:
            yield from _check_heads(data, at, analysis.get("variants"))
        at_size: RecallAtSize | None = parsed(RecallAtSize, analysis)
        for index, k in enumerate([] if at_size is None else at_size.k):
            if k > largest:
                yield Mistake((*at, "k", index), str(k), f"at most alignment.max_k = {largest}")


def _check_heads(data: dict[str, Any], at: KeyPath, variants: Any) -> Iterator[Mistake]:
    with_head = [name for name, variant in blocks(data, "variants") if variant.get("nvs") is not None]
    for index, name in enumerate(variants if isinstance(variants, list) else []):
        if named(data, "variants", name) is not None and name not in with_head:
            found = f"{name}, which has no NVS head"
            yield Mistake((*at, "variants", index), found, one_of(with_head, what="a variant with `nvs: {}`"))
    if variants is None and not with_head:
        yield Mistake(at, "no variant with an NVS head", "a block `nvs: {}` in a variant")


def _check_empty_string(data: dict[str, Any], path: KeyPath, names: Any) -> Iterator[Mistake]:
    for index, name in enumerate(names if isinstance(names, list) else []):
        system = named(data, "systems", name) or {}
        if kind_of(system.get("selection")) in ("lexicon", "nvs"):
            found = f"{name}, which selects its vocabulary"
            yield Mistake((*path, index), found, "a system with the full vocabulary")
        if kind_of(system.get("search")) in ("sample", "mbr"):
            found = f"{name}, which does not search for a high score"
            yield Mistake((*path, index), found, "a system with greedy, beam or exact search")


def check_resources(data: dict[str, Any]) -> Iterator[Mistake]:
    for kind, _ in blocks(data, "resources"):
        if kind not in STEP_KINDS:
            yield Mistake(("resources", kind), "an unknown step kind", one_of(STEP_KINDS, kind))
