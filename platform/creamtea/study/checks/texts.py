"""Corpora, test sets and the alignment: what they say of each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from creamtea.document.mistakes import KeyPath, Mistake, one_of, shown
from creamtea.study.checks.reading import Groups, blocks, kind_of, known, named, parsed
from creamtea.study.spec import Alignment, Recall


def check_corpora(data: dict[str, Any], groups: Groups) -> Iterator[Mistake]:
    for name, corpus in blocks(data, "corpora"):
        at: KeyPath = ("corpora", name)
        if kind_of(corpus) == "ibm3":
            yield from _corpus_of_kind(data, (*at, "corpus"), corpus.get("corpus"), "files")
            yield from known(data, groups, ("corpora", name), corpus, "subwords", "subwords")
        filters = corpus.get("filters")
        held_out = filters.get("held_out") if isinstance(filters, dict) else None
        files = [test for test, test_set in blocks(data, "test_sets") if kind_of(test_set) == "files"]
        for index, held in enumerate(held_out if isinstance(held_out, list) else []):
            if isinstance(held, str) and held not in files:
                path = (*at, "filters", "held_out", index)
                yield Mistake(path, shown(held), one_of(files, held, "a test set of files"))


def check_test_sets(data: dict[str, Any], groups: Groups) -> Iterator[Mistake]:
    for name, test_set in blocks(data, "test_sets"):
        at: KeyPath = ("test_sets", name)
        kind = kind_of(test_set)
        if kind in ("synthetic", "ibm3"):
            yield from _corpus_of_kind(data, (*at, "corpus"), test_set.get("corpus"), kind)
        itds = test_set.get("itds")
        if isinstance(itds, dict):
            yield from _corpus_of_kind(data, (*at, "itds", "corpus"), itds.get("corpus"), "files")
            if test_set.get("idioms") is not None:
                yield Mistake((*at, "idioms"), "idioms beside itds", "one of the two")


KINDS = {"files": "a corpus of files", "synthetic": "a synthetic corpus", "ibm3": "an IBM-3 corpus"}


def _corpus_of_kind(data: dict[str, Any], path: KeyPath, name: Any, kind: str) -> Iterator[Mistake]:
    """A mistake where `name` is no corpus of that kind."""
    fitting = [corpus for corpus, entry in blocks(data, "corpora") if kind_of(entry) == kind]
    if not isinstance(name, str) or name in fitting:
        return
    other = kind_of(named(data, "corpora", name))
    found = f"{shown(name)}, {KINDS[other]}" if other in KINDS else shown(name)
    yield Mistake(path, found, one_of(fitting, name, KINDS[kind]))


def check_alignment(data: dict[str, Any]) -> Iterator[Mistake]:
    alignment = parsed(Alignment, data.get("alignment", {}))
    if alignment is None:
        return
    if alignment.aligner == "table" and alignment.table is None:
        yield Mistake(("alignment", "table"), "nothing", "the path of a table, for `aligner: table`")
    if alignment.aligner != "table" and alignment.table is not None:
        found = f"a table beside `aligner: {alignment.aligner}`"
        yield Mistake(("alignment", "table"), found, "`aligner: table`, or no table")
    recall = parsed(Recall, data.get("recall", {}))
    lexicon = any(kind_of(system.get("selection")) == "lexicon" for _, system in blocks(data, "systems"))
    if lexicon and recall and max(recall.k, default=0) > alignment.max_k:
        found = f"{alignment.max_k}, and recall.k up to {max(recall.k)}"
        allowed = "at least the largest k of the sweep (list less in recall.k)"
        yield Mistake(("alignment", "max_k"), found, allowed)
