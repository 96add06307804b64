"""Analysis `nvs_context`: what NVS selects from the whole sentence, and from its words alone."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from creamtea.contract.columns import Column
from creamtea.contract.step import StepKind, StepParams
from creamtea.document.values import BelowOne
from creamtea.methods.analysis import (
    MODEL_INPUTS,
    CellPlot,
    IdiomList,
    Measure,
    OfVariants,
    RowSetting,
    TableLayout,
    share,
)

CONTEXTS = {
    "sentence": "in context",
    "word": "word by word",
    "only_sentence": "only in context",
    "only_word": "only word by word",
}
NO_SIZE = "a difference of two selections has no size"


class NvsContextParams(StepParams):
    thresholds: list[float]


def context_settings(spec: NvsContext) -> list[RowSetting]:
    return [
        RowSetting((f"{threshold:g}", context), f"λ={threshold:g}, {words}", threshold)
        for threshold in dict.fromkeys(spec.thresholds)
        for context, words in CONTEXTS.items()
    ]


class NvsContext(OfVariants):
    """Segments of which all subwords of the idioms' translations are selected: from the sentence, from each
    source word alone, and in one way only (NVS paper, Table 6)."""

    kind: Literal["nvs_context"]
    # of NVS, at which both contexts are measured
    thresholds: Annotated[list[BelowOne], Field(min_length=1)] = [0.9, 0.99]

    title: ClassVar[str] = "NVS without context"
    needs_head: ClassVar[bool] = True
    step: ClassVar[StepKind[NvsContextParams]] = StepKind(
        "nvs_context",
        5,
        "analyse NVS without context",
        NvsContextParams,
        inputs=MODEL_INPUTS,
        metrics={
            "all_words_selected": "all subwords of the idioms' translations; subjects 0.9/sentence, /word, "
            "/only_sentence, /only_word; intervals over idioms; the detail of /only_sentence has "
            "`only_in_context`: the `count` of `of` segments with subwords that only the context selects, at "
            "most 100 of them listed",
            "all_selected": "likewise, of the idioms' part of the reference",
            "selected_size": "subjects 0.9/sentence, /word; mean per segment",
        },
        points={
            f"all_selected_{context}": "over the mean size; label: threshold=0.9"
            for context in ("sentence", "word")
        },
    )
    tables: ClassVar[tuple[TableLayout, ...]] = (
        TableLayout(
            "variant, threshold",
            (
                Measure(
                    share("all_words_selected", "translation selected", "share of the segments", "higher")
                ),
                Measure(
                    share(
                        "all_selected", "in reference selected", "the idiom's part of the reference", "higher"
                    )
                ),
                Measure(
                    Column("selected_size", "selected", 0, note="mean size over the same segments"),
                    undefined={"only_sentence": NO_SIZE, "only_word": NO_SIZE},
                ),
            ),
            context_settings,
        ),
    )
    lists: ClassVar[tuple[IdiomList, ...]] = (
        IdiomList(
            "Subwords that only the context selects",
            "all_words_selected",
            "only_in_context",
            "Subwords of the idiom's translation that NVS selects from the sentence, and from none of its "
            "words alone (NVS paper, Figure 5).",
        ),
    )
    plots: ClassVar[tuple[CellPlot, ...]] = (
        CellPlot(
            "Segments with all of their idioms' subwords",
            Column("selected_size", "mean selected vocabulary", 0, unit="subwords"),
            share("all_selected", "all selected", ""),
            {"all_selected": ""},
            apart={context: CONTEXTS[context] for context in ("sentence", "word")},
        ),
    )
