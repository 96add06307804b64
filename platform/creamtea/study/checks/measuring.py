"""Metrics and latency runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from creamtea.document.mistakes import KeyPath, Mistake
from creamtea.document.raw import Block, RawStudy, parsed, target_language
from creamtea.methods.metrics import METRICS, Latency, Metric, OfWords
from creamtea.methods.selections import SELECTIONS
from creamtea.methods.test_sets import TEST_SETS, WordTestSet, is_without_references


def check_metrics(study: RawStudy) -> Iterator[Mistake]:
    metrics = study.data.get("metrics")
    seen: dict[str, int] = {}
    for index, block in enumerate(metrics if isinstance(metrics, list) else []):
        yield from METRICS.check(("metrics", index), block, study)
        metric: Metric | None = parsed(Metric, block)
        if metric is None:
            continue
        name = metric.for_target(target_language(study)).name()
        if name in seen:
            found = f"{name} a second time (first: metrics[{seen[name]}])"
            yield Mistake(("metrics", index), found, "each metric once")
        seen.setdefault(name, index)
        test_sets = dict(study.blocks("test_sets"))
        if metric.needs_references and test_sets and all(map(is_without_references, test_sets.values())):
            found = f"{name}, which needs references, and no test set has any"
            allowed = "`target` in a test set, or metrics without references (`metrics: []` for none)"
            yield Mistake(("metrics", index), found, allowed)
        if isinstance(metric, OfWords):
            yield from _check_word_metric(("metrics", index), metric, study)


def _check_word_metric(path: KeyPath, metric: OfWords, study: RawStudy) -> Iterator[Mistake]:
    """Of sentences it would be the share of wrong lines under a name that means something else."""
    kinds = {name: TEST_SETS.kind_of(block) for name, block in study.blocks("test_sets")}
    others = [name for name, kind in kinds.items() if kind is not None and not issubclass(kind, WordTestSet)]
    if others:
        of_words = [name for name, kind in TEST_SETS.kinds.items() if issubclass(kind, WordTestSet)]
        found = f"{metric.name()}, a metric of words, with sentences to translate ({', '.join(others)})"
        allowed = f"it where every test set is of words ({', '.join(of_words)}); for sentences bleu or chrf"
        yield Mistake(path, found, allowed)


def check_latency(study: RawStudy) -> Iterator[Mistake]:
    latency, systems = study.data.get("latency"), study.data.get("systems")
    if not isinstance(latency, dict) or not isinstance(systems, dict):
        return
    yield from study.unknown_key(("latency",), latency, "test_set", "test_sets")
    timed = parsed(Latency, latency)
    if timed is not None and timed.sentences % timed.batch_size:
        found = f"{timed.batch_size}, and {timed.sentences} sentences"
        fitting = max(1, round(timed.sentences / timed.batch_size)) * timed.batch_size
        allowed = f"a size that divides latency.sentences ({fitting}, say), for batches of one size"
        yield Mistake(("latency", "batch_size"), found, allowed)
    path: KeyPath = ("latency",)
    given = [name for name, system in study.blocks("systems") if "outputs" in system or "reference" in system]
    names = [name for name in systems if name not in given]
    if isinstance(latency.get("systems"), list):
        path, names = ("latency", "systems"), latency["systems"]
        yield from study.unknown_names(path, names, "systems")
    for index, name in enumerate(names):
        if name in given:
            yield Mistake((*path, index), f"{name}, which runs no model", "systems with a variant")
        if (study.named("systems", name) or {}).get("ensemble") is True:
            place = (*path, index) if path != ("latency",) else path
            yield Mistake(
                place, f"{name}, an ensemble", "systems of one model (list them in latency.systems)"
            )
    if not names:
        yield Mistake(("latency",), "a study without a system to time", "no latency run, or a variant")
    baselines = latency.get("baselines")
    if not baselines and study.data.get("baseline") in given:
        found = f"nothing, and the study's baseline {study.data['baseline']} runs no model"
        yield Mistake(("latency", "baselines"), found, "systems with a variant")
    yield from study.unknown_names(("latency", "baselines"), baselines or None, "systems")
    for index, name in enumerate(baselines if isinstance(baselines, list) else []):
        if isinstance(name, str) and name in systems and name not in names:
            found = f"{name}, which is not timed"
            yield Mistake(("latency", "baselines", index), found, "one of latency.systems")
    for found, allowed in _several_vocabularies(names, study):
        yield Mistake(path, found, allowed)


def _several_vocabularies(names: list[Any], study: RawStudy) -> Iterator[tuple[str, str]]:
    """One process times all the systems on the same subwords, with one lexicon."""
    texts, lexica = set(), set()
    for name in names:
        system = study.named("systems", name) or {}
        variant = study.named("variants", system.get("variant"))
        root = {} if variant is None else _root(variant, study)
        if isinstance(model := system.get("model", root.get("start_from")), dict):
            texts.add(f"those of {model.get('marian')}")
        elif all(isinstance(root.get(key), str) for key in ("corpus", "subwords")):
            texts.add(f"{root.get('corpus')} × {root.get('subwords')}")
        else:
            continue  # the validation reports it
        selection = SELECTIONS.kind_of(system.get("selection"))
        if selection and selection.needs_lexicon:
            owner = system if variant is None else variant
            lexica.add(str(owner.get("alignment_corpus") or owner.get("corpus")))
    remedy = "(list them in latency.systems)"
    if len(texts) > 1:
        found = f"systems over {len(texts)} subword models ({', '.join(sorted(texts))})"
        yield found, f"systems of one corpus and subwords {remedy}"
    elif len(lexica) > 1:
        found = f"systems with {len(lexica)} lexica ({', '.join(sorted(lexica))})"
        yield found, f"systems whose lexica are aligned on one corpus {remedy}"


def _root(variant: Block, study: RawStudy) -> Block:
    """What a chain of `start_from` begins with; of a cycle, which is reported elsewhere, any part."""
    for _ in study.blocks("variants"):
        variant = study.named("variants", variant.get("start_from")) or variant
    return variant
