"""Where the outputs of a system come from: a variant, an imported model, text files, or a reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from creamtea.document.mistakes import REQUIRED, KeyPath, Mistake, one_of
from creamtea.document.raw import Block, RawStudy, kind_of
from creamtea.methods.analysis import ANALYSES
from creamtea.methods.selections import SELECTIONS
from creamtea.methods.test_sets import is_without_references

ORIGINS = ("variant", "model", "outputs", "reference")
OF_MODELS = ("selection", "search", "precision", "ensemble", "batch_size", "alignment_corpus")
TRAINED = ("corpora", "subwords", "variants")
OF_OWN_SUBWORDS = ("subwords", "architecture")  # keys that a variant of an imported model lacks


def outputs_of(system: Block) -> list[str]:
    """The test sets that a raw system has files for; empty where it has none, or is malformed."""
    outputs = system.get("outputs")
    return list(outputs) if isinstance(outputs, dict) else []


def check_origin(path: KeyPath, system: Block, study: RawStudy) -> Iterator[Mistake]:
    origins = [key for key in ORIGINS if key in system]
    if not origins:
        others = "`model`, one trained elsewhere, `outputs`, text files, or `reference`"
        yield Mistake((*path, "variant"), "", f"{REQUIRED} (or {others})")
        return
    for key in origins[1:]:
        yield Mistake((*path, key), f"{key} beside {origins[0]}", f"one of {', '.join(ORIGINS)}")
    if origins[0] == "variant":
        if "alignment_corpus" in system:
            yield Mistake(
                (*path, "alignment_corpus"), "one beside a variant", "`alignment_corpus` of the variant"
            )
        return
    if origins[0] == "model":
        yield from _check_imported(path, system, study)
        return
    for key in OF_MODELS:
        if key in system:
            found = f"{key} of a system that no model of the study runs"
            yield Mistake((*path, key), found, "no such key: the outputs are given")
    if origins[0] == "outputs":
        yield from _check_files(path, system, study)
    elif isinstance(number := system["reference"], int):
        yield from _check_reference(path, number, system, study)


def _check_imported(path: KeyPath, system: Block, study: RawStudy) -> Iterator[Mistake]:
    """What a model that was trained elsewhere lacks: seeds, a head, and a corpus to align a lexicon on."""
    yield from study.unknown_key(path, system, "alignment_corpus", "corpora")
    if system.get("ensemble") is True:
        yield Mistake((*path, "ensemble"), "an ensemble of one model", "a variant with several `seeds`")
    selection = SELECTIONS.kind_of(system.get("selection"))
    if selection is not None and selection.needs_head:
        found = f"{selection.title} of a model that was trained elsewhere, which has no NVS head"
        allowed = "a variant with `start_from` this model, `nvs: {}` and `training: {freeze: translation}`"
        yield Mistake((*path, "selection"), found, allowed)
    if selection is not None and selection.needs_lexicon and "alignment_corpus" not in system:
        yield Mistake((*path, "alignment_corpus"), "", f"{REQUIRED} (a corpus to align the lexicon on)")


def imports(study: RawStudy, variant: Any) -> bool:
    """Whether a chain of `start_from` begins with a model that was trained elsewhere."""
    chain = study.chain("variants", variant, "start_from")
    block = study.named("variants", chain[-1]) if chain else None
    return block is not None and isinstance(block.get("start_from"), dict)


def check_trained(study: RawStudy) -> Iterator[Mistake]:
    """Only a study of given outputs needs no corpora, subwords and variants."""
    trained = any("variant" in system for _, system in study.blocks("systems"))
    aligned = any("alignment_corpus" in system for _, system in study.blocks("systems"))
    for section in TRAINED:
        entries = study.data.get(section)
        names = [name for name, _ in study.blocks("variants")] if section == "subwords" else []
        if names and all(imports(study, name) for name in names):
            continue
        if section not in study.data and trained:
            yield Mistake((section,), "", f"{REQUIRED} (a system has a variant)")
        elif section == "corpora" and section not in study.data and aligned:
            yield Mistake((section,), "", f"{REQUIRED} (a system has an alignment_corpus)")
        elif entries == {}:
            yield Mistake((section,), "a block of keys", "at least 1 entry")
    if not study.data.get("variants"):
        for name, analysis in study.blocks("analyses"):
            kind = ANALYSES.kind_of(analysis)
            if kind is not None and kind.of_models:
                found = f"{kind_of(analysis)} in a study without variants"
                yield Mistake(("analyses", name), found, "variants, or an analysis of outputs (buckets)")


def _check_files(path: KeyPath, system: Block, study: RawStudy) -> Iterator[Mistake]:
    if system["outputs"] == {}:
        yield Mistake((*path, "outputs"), "a block of keys", "at least 1 entry (`TEST_SET: FILE`)")
    for test_set in outputs_of(system):
        yield from study.unknown_name((*path, "outputs", test_set), test_set, "test_sets")
    if "test_sets" in system:
        yield Mistake((*path, "test_sets"), "test_sets beside outputs", "no such key: outputs names them")


def _check_reference(path: KeyPath, number: int, system: Block, study: RawStudy) -> Iterator[Mistake]:
    chosen = system.get("test_sets")
    for name, test_set in study.blocks("test_sets"):
        if isinstance(chosen, list) and name not in chosen:
            continue
        more = test_set.get("more_references")
        first = 0 if is_without_references(test_set) else 1
        references = first + (len(more) if isinstance(more, list) else 0)
        if test_set.get("kind") != "files":
            found = f"a reference of {name}, whose references nobody has written"
            yield Mistake((*path, "reference"), found, "`test_sets` of kind files for this system")
        elif number > references:
            allowed = one_of([str(n + 1) for n in range(references)]) if references else "a `target` of it"
            yield Mistake((*path, "reference"), f"{number}, and {name} has {references}", allowed)
