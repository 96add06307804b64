"""What must hold between the parts of a study, beyond the shape of each part.

The checks read the expanded raw document, so that they say their part even where another part is
malformed: what they cannot read they pass over, since the validation reports it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from creamtea.study.catalogue import STEP_KINDS
from creamtea.study.mistakes import Mistake, one_of, shown
from creamtea.study.spec import Alignment, Architecture, LexiconSelection, Metric, Recall

T = TypeVar("T")
Groups = dict[str, dict[str, list[str]]]


def metric_name(metric: Metric) -> str:
    """bleu, bleu-intl, chrf, chrf++, comet …: the kind and what is not its default."""
    match metric.kind:
        case "bleu":
            return "bleu" if metric.tokenize == "13a" else f"bleu-{metric.tokenize}"
        case "chrf":
            return "chrf" + "+" * metric.word_order
        case "comet":
            model = metric.model.rstrip("/").rpartition("/")[2]
            return "comet" if metric.model == type(metric).model_fields["model"].default else f"comet-{model}"


def check(data: dict[str, Any], groups: Groups) -> list[Mistake]:
    """All the mistakes between parts. `groups` are the grids' members (`creamtea.study.grid`)."""
    return [
        *_check_variants(data, groups),
        *_check_systems(data, groups),
        *_check_test_sets(data),
        *_check_baseline(data, groups),
        *_check_metrics(data),
        *_check_latency(data, groups),
        *_check_resources(data),
    ]


def _check_variants(data: dict[str, Any], groups: Groups) -> Iterator[Mistake]:
    for name, variant in _blocks(data, "variants"):
        yield from _known(data, groups, ("variants", name), variant, "corpus", "corpora")
        yield from _known(data, groups, ("variants", name), variant, "subwords", "subwords")
        architecture = _parsed(Architecture, variant.get("architecture", {}))
        if architecture and architecture.width % architecture.heads:
            found = f"{architecture.heads} heads for width {architecture.width}"
            allowed = "a number of heads that divides the width"
            yield Mistake(("variants", name, "architecture", "heads"), found, allowed)
        yield from _repeated(variant.get("seeds"), ("variants", name, "seeds"))


def _check_systems(data: dict[str, Any], groups: Groups) -> Iterator[Mistake]:
    alignment = _parsed(Alignment, data.get("alignment", {}))
    largest = alignment.max_k if alignment else sys.maxsize
    has_lexicon = False
    for name, system in _blocks(data, "systems"):
        yield from _known(data, groups, ("systems", name), system, "variant", "variants")
        selection = system.get("selection")
        kind = selection.get("kind") if isinstance(selection, dict) else None
        variant = _named(data, "variants", system.get("variant"))
        if kind == "nvs" and variant is not None and variant.get("nvs") is None:
            found = "nvs, but the variant has no NVS head"
            allowed = "full or lexicon, or a block `nvs: {}` in the variant"
            yield Mistake(("systems", name, "selection", "kind"), found, allowed)
        lexicon = _parsed(LexiconSelection, selection)
        has_lexicon = has_lexicon or lexicon is not None
        if lexicon and lexicon.k > largest:
            yield Mistake(
                ("systems", name, "selection", "k"), str(lexicon.k), f"at most alignment.max_k = {largest}"
            )
    recall = _parsed(Recall, data.get("recall", {}))
    if has_lexicon and recall and max(recall.k, default=0) > largest:
        found = f"{largest}, and recall.k up to {max(recall.k)}"
        yield Mistake(
            ("alignment", "max_k"), found, "at least the largest k of the sweep (list less in recall.k)"
        )


def _check_test_sets(data: dict[str, Any]) -> Iterator[Mistake]:
    synthetic = [name for name, corpus in _blocks(data, "corpora") if corpus.get("kind") == "synthetic"]
    for name, test_set in _blocks(data, "test_sets"):
        corpus = test_set.get("corpus")
        if test_set.get("kind") != "synthetic" or not isinstance(corpus, str) or corpus in synthetic:
            continue
        is_files = (_named(data, "corpora", corpus) or {}).get("kind") == "files"
        found = f"{shown(corpus)}, a corpus of files" if is_files else shown(corpus)
        yield Mistake(("test_sets", name, "corpus"), found, one_of(synthetic, corpus, "a synthetic corpus"))


def _check_baseline(data: dict[str, Any], groups: Groups) -> Iterator[Mistake]:
    baseline, systems = data.get("baseline"), data.get("systems")
    if not isinstance(baseline, str) or not isinstance(systems, dict) or baseline in systems:
        return
    if members := groups["systems"].get(baseline):
        yield Mistake(("baseline",), f"{shown(baseline)}, a grid", one_of(members, what="one of its members"))
    else:
        yield Mistake(("baseline",), shown(baseline), one_of(systems, baseline, "a system"))


def _check_metrics(data: dict[str, Any]) -> Iterator[Mistake]:
    metrics = data.get("metrics")
    seen: dict[str, int] = {}
    for index, value in enumerate(metrics if isinstance(metrics, list) else []):
        metric: Metric | None = _parsed(Metric, value)
        if metric is None:
            continue
        name = metric_name(metric)
        if name in seen:
            found = f"{name} a second time (first: metrics[{seen[name]}])"
            yield Mistake(("metrics", index), found, "each metric once")
        seen.setdefault(name, index)


def _check_latency(data: dict[str, Any], groups: Groups) -> Iterator[Mistake]:
    latency, systems = data.get("latency"), data.get("systems")
    if not isinstance(latency, dict) or not isinstance(systems, dict):
        return
    yield from _known(data, groups, ("latency",), latency, "test_set", "test_sets")
    path: tuple[str, ...] = ("latency",)
    names = list(systems)
    if isinstance(latency.get("systems"), list):
        path, names = ("latency", "systems"), latency["systems"]
        yield from _repeated(names, path)
        for index, name in enumerate(names):
            if isinstance(name, str) and name not in systems:
                yield Mistake(
                    (*path, index),
                    shown(name),
                    one_of(_written_names(systems, groups["systems"]), name, "a system"),
                )
        if not names:
            yield Mistake(path, "an empty list", "names of systems, or no list for all of them")
    texts = set()
    for name in names:
        system = _named(data, "systems", name) or {}
        if variant := _named(data, "variants", system.get("variant")):
            texts.add(f"{variant.get('corpus')} × {variant.get('subwords')}")
    if len(texts) > 1:
        found = f"systems over {len(texts)} subword models ({', '.join(sorted(texts))})"
        yield Mistake(path, found, "systems of one corpus and subwords (list them in latency.systems)")


def _check_resources(data: dict[str, Any]) -> Iterator[Mistake]:
    for kind, _ in _blocks(data, "resources"):
        if kind not in STEP_KINDS:
            yield Mistake(("resources", kind), "an unknown step kind", one_of(STEP_KINDS, kind))


# ---------------------------------------------------------------- reading what may be malformed


def _blocks(data: dict[str, Any], section: str) -> Iterator[tuple[str, dict[str, Any]]]:
    entries = data.get(section)
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        if isinstance(entry, dict):
            yield name, entry


def _named(data: dict[str, Any], section: str, name: Any) -> dict[str, Any] | None:
    return dict(_blocks(data, section)).get(name) if isinstance(name, str) else None


def _parsed(kind: type[T] | Any, value: Any) -> T | None:
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return None


def _known(
    data: dict[str, Any],
    groups: Groups,
    path: tuple[str, ...],
    entry: dict[str, Any],
    key: str,
    section: str,
) -> Iterator[Mistake]:
    """A mistake where `entry[key]` names nothing in the section."""
    value, names = entry.get(key), data.get(section)
    if isinstance(value, str) and isinstance(names, dict) and value not in names:
        what = {
            "corpora": "a corpus",
            "subwords": "subwords",
            "variants": "a variant",
            "test_sets": "a test set",
        }
        yield Mistake(
            (*path, key),
            shown(value),
            one_of(_written_names(names, groups.get(section, {})), value, what[section]),
        )


def _written_names(names: Iterable[str], grids: dict[str, list[str]]) -> list[str]:
    """The names as in the file: a grid by its own name, not by those of its members."""
    grid_of = {member: grid for grid, members in grids.items() for member in members}
    return list(dict.fromkeys(grid_of.get(name, name) for name in names))


def _repeated(values: Any, path: tuple[str, ...]) -> Iterator[Mistake]:
    for index, value in enumerate(values if isinstance(values, list) else []):
        if any(value == other and type(value) is type(other) for other in values[:index]):
            yield Mistake((*path, index), f"{shown(value)} twice", "each once")
