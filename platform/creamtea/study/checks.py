"""What must hold between the parts of a study, beyond the shape of each part.

The checks read the expanded raw document, so that they say their part even where another part is
malformed: what they cannot read they pass over, since the validation reports it.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        *_check_variants(data),
        *_check_systems(data),
        *_check_test_sets(data),
        *_check_baseline(data, groups),
        *_check_metrics(data),
        *_check_latency(data),
        *_check_resources(data),
    ]


def _check_variants(data: dict[str, Any]) -> Iterator[Mistake]:
    for name, variant in _blocks(data, "variants"):
        yield from _known(data, ("variants", name), variant, "corpus", "corpora")
        yield from _known(data, ("variants", name), variant, "subwords", "subwords")
        architecture = _parsed(Architecture, variant.get("architecture", {}))
        if architecture and architecture.width % architecture.heads:
            found = f"{architecture.heads} heads for width {architecture.width}"
            allowed = "a number of heads that divides the width"
            yield Mistake(("variants", name, "architecture"), found, allowed)
        yield from _repeated(variant.get("seeds"), ("variants", name, "seeds"))


def _check_systems(data: dict[str, Any]) -> Iterator[Mistake]:
    variants = dict(_blocks(data, "variants"))
    alignment = _parsed(Alignment, data.get("alignment", {}))
    has_lexicon = False
    for name, system in _blocks(data, "systems"):
        yield from _known(data, ("systems", name), system, "variant", "variants")
        selection = system.get("selection")
        variant = variants.get(system.get("variant")) if isinstance(system.get("variant"), str) else None
        if not isinstance(selection, dict):
            continue
        if selection.get("kind") == "nvs" and variant is not None and variant.get("nvs") is None:
            found = f"nvs with variant {system['variant']}, which has no NVS head"
            allowed = f"full or lexicon, or an `nvs: {{}}` block in variant {system['variant']}"
            yield Mistake(("systems", name, "selection", "kind"), found, allowed)
        lexicon = _parsed(LexiconSelection, selection)
        has_lexicon = has_lexicon or lexicon is not None
        if lexicon and alignment and lexicon.k > alignment.max_k:
            allowed = f"at most alignment.max_k = {alignment.max_k}"
            yield Mistake(("systems", name, "selection", "k"), str(lexicon.k), allowed)
    recall = _parsed(Recall, data.get("recall", {}))
    if has_lexicon and recall and alignment and recall.k and max(recall.k) > alignment.max_k:
        path = ("recall", "k") if "k" in data.get("recall", {}) else ("alignment", "max_k")
        found = f"alignment.max_k = {alignment.max_k} and recall.k up to {max(recall.k)}"
        yield Mistake(path, found, "a sweep of at most alignment.max_k")


def _check_test_sets(data: dict[str, Any]) -> Iterator[Mistake]:
    corpora = dict(_blocks(data, "corpora"))
    synthetic = [name for name, corpus in corpora.items() if corpus.get("kind") == "synthetic"]
    for name, test_set in _blocks(data, "test_sets"):
        corpus = test_set.get("corpus")
        if test_set.get("kind") != "synthetic" or not isinstance(corpus, str) or corpus in synthetic:
            continue
        if isinstance(corpora.get(corpus, {}).get("kind", "synthetic"), str):
            found = f"{shown(corpus)}, a corpus of files" if corpus in corpora else shown(corpus)
            yield Mistake(
                ("test_sets", name, "corpus"), found, one_of(synthetic, corpus, "a synthetic corpus")
            )


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


def _check_latency(data: dict[str, Any]) -> Iterator[Mistake]:
    latency = data.get("latency")
    if not isinstance(latency, dict):
        return
    yield from _known(data, ("latency",), latency, "test_set", "test_sets")
    systems, variants = dict(_blocks(data, "systems")), dict(_blocks(data, "variants"))
    named = latency.get("systems")
    if named is None:
        named, path = list(systems), ("latency",)
    else:
        path = ("latency", "systems")
        named = named if isinstance(named, list) else []
        yield from _repeated(named, path)
        for index, name in enumerate(named):
            if (
                isinstance(name, str)
                and isinstance(data.get("systems"), dict)
                and name not in data["systems"]
            ):
                yield Mistake((*path, index), shown(name), one_of(systems, name, "a system"))
        if latency.get("systems") == []:
            yield Mistake(path, "an empty list", "systems, or no such key for all of them")
    texts = set()
    for name in named:
        system = systems.get(name) if isinstance(name, str) else None
        variant = (
            variants.get(system["variant"]) if system and isinstance(system.get("variant"), str) else None
        )
        if variant:
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


def _parsed(kind: type[T] | Any, value: Any) -> T | None:
    try:
        return TypeAdapter(kind).validate_python(value)  # type: ignore[no-any-return]
    except ValidationError:
        return None


def _known(
    data: dict[str, Any], path: tuple[str, ...], entry: dict[str, Any], key: str, section: str
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
        yield Mistake((*path, key), shown(value), one_of(names, value, what[section]))


def _repeated(values: Any, path: tuple[str, ...]) -> Iterator[Mistake]:
    for index, value in enumerate(values if isinstance(values, list) else []):
        if any(value == other and type(value) is type(other) for other in values[:index]):
            yield Mistake((*path, index), f"{shown(value)} twice", "each once")
