"""The alignment, and the sweep of recall over its lexicon."""

from __future__ import annotations

from collections.abc import Iterator

from creamtea.document.mistakes import Mistake
from creamtea.document.raw import RawStudy, parsed
from creamtea.methods.metrics import Recall
from creamtea.methods.selections import SELECTIONS
from creamtea.methods.texts import Alignment

SENTENCEPIECE, SYMBOLS = ("vocabulary", "character_coverage"), ("source", "target")


def check_subwords(study: RawStudy) -> Iterator[Mistake]:
    for name, block in study.blocks("subwords"):
        characters = block.get("kind") == "characters"
        for key in SENTENCEPIECE if characters else SYMBOLS:
            if key in block:
                kinds = "bpe or unigram" if characters else "characters"
                yield Mistake(("subwords", name, key), "an unknown key of this kind", f"kind {kinds} with it")


def check_alignment(study: RawStudy) -> Iterator[Mistake]:
    alignment = parsed(Alignment, study.data.get("alignment", {}))
    if alignment is None:
        return
    if alignment.aligner == "table" and alignment.table is None:
        yield Mistake(("alignment", "table"), "nothing", "the path of a table, for `aligner: table`")
    if alignment.aligner != "table" and alignment.table is not None:
        found = f"a table beside `aligner: {alignment.aligner}`"
        yield Mistake(("alignment", "table"), found, "`aligner: table`, or no table")
    recall = parsed(Recall, study.data.get("recall", {}))
    if recall and max(recall.k, default=0) > alignment.max_k and _has_lexicon(study):
        found = f"{alignment.max_k}, and recall.k up to {max(recall.k)}"
        allowed = "at least the largest k of the sweep (list less in recall.k)"
        yield Mistake(("alignment", "max_k"), found, allowed)


def _has_lexicon(study: RawStudy) -> bool:
    selections = [SELECTIONS.kind_of(system.get("selection")) for _, system in study.blocks("systems")]
    return any(selection and selection.needs_lexicon for selection in selections)
