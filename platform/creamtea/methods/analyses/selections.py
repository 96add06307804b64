"""Analyses of vocabulary selections: recall at equal size, and NVS without context."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from creamtea.contract.step import Column, StepKind, StepParams
from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, parsed
from creamtea.document.values import BelowOne, Positive
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
from creamtea.methods.planning import Inputs, Key, Labels, Planner
from creamtea.methods.selections import check_k

RECALL = "share of the unique reference subwords that are selected"
SCOPES = (
    ("sentence", "sentences", ""),
    ("idiom_words", "idioms", "words"),
    ("idiom_words_macro", "mean over idioms", "repeated words"),
    ("idiom", "idioms in context", "idioms"),
    ("idiom_macro", "mean over idioms in context", "repeated idioms"),
)


class RecallAtSizeParams(StepParams):
    k: list[int]


class RecallAtSize(OfVariants):
    """NVS against the lexicon if both select equally many subwords on average (NVS paper, Figure 3)."""

    kind: Literal["recall_at_size"]
    # [subwords] of the lexicon per source subword; for each k, the NVS threshold is chosen to select as many
    k: Annotated[list[Positive], Field(min_length=1)] = [10, 50, 100, 200, 1000]

    title: ClassVar[str] = "Recall at equal size"
    needs_head: ClassVar[bool] = True
    step: ClassVar[StepKind[RecallAtSizeParams]] = StepKind(
        "recall_at_size",
        5,
        "analyse recall at equal size",
        RecallAtSizeParams,
        worker="creamtea_workers.steps.selections:compare_recall",
        inputs={**MODEL_INPUTS, "align": "the lexicon"},
        metrics={
            "selected_size_lexicon": "subject k=200; mean per sentence",
            "selected_size_nvs": "subject k=200; mean per sentence",
            "threshold": "subject k=200; detail.logit",
            "recall_lexicon": "subjects k=200/sentence, /idiom_words, /idiom_words_macro, /idiom, "
            "/idiom_macro",
            "recall_nvs": "likewise",
            "recall_difference": "likewise; paired interval, detail.p_two_sided",
        },
        points={
            f"recall_{name}_{scope}": "over the mean size; label: k=200"
            for scope, _, _ in SCOPES
            for name in ("lexicon", "nvs")
        },
    )
    tables: ClassVar[tuple[TableLayout, ...]] = (
        TableLayout(
            "variant, lexicon",
            (
                Measure(Column("selected_size_lexicon", "lexicon selects", 0, note="mean size"), part=0),
                Measure(Column("selected_size_nvs", "NVS selects", 0, note="mean size"), part=0),
                Measure(Column("threshold", "NVS λ", 5, note="the threshold of that size"), part=0),
                Measure(share("recall_lexicon", "lexicon recall", RECALL, "higher")),
                Measure(share("recall_nvs", "NVS recall", RECALL, "higher")),
                Measure(
                    replace(
                        share(
                            "recall_difference",
                            "Δ",
                            "recall of NVS minus recall of the lexicon; the interval is over segments, and "
                            "over seeds if there are several",
                        ),
                        less=("recall_nvs", "recall_lexicon"),
                    )
                ),
            ),
            lambda spec: [
                RowSetting((f"k={k}", scope), f"k={k}, {words}", k, needs=needs)
                for scope, words, needs in SCOPES
                for k in sorted(set(spec.k))
            ],
        ),
    )
    plots: ClassVar[tuple[CellPlot, ...]] = tuple(
        CellPlot(
            f"Recall at equal size, {words}",
            Column("selected_size_lexicon", "mean selected size (log scale)", 0, unit="subwords"),
            share("recall", "recall", ""),
            {"recall_nvs": "NVS", "recall_lexicon": "lexicon"},
            logarithmic=True,
            only=scope,
        )
        for scope, words, _ in SCOPES
    )

    def more_inputs(self, place: str, test_set: Key, planner: Planner, labels: Labels) -> Inputs:
        return {"align": [planner.lexicon(labels["variant"])]}

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        spec: RecallAtSize | None = parsed(cls, block)
        for index, k in enumerate([] if spec is None else spec.k):
            yield from check_k((*path, "k", index), k, study)


CONTEXTS = {
    "sentence": "in context",
    "word": "word by word",
    "only_sentence": "only in context",
    "only_word": "only word by word",
}
NO_SIZE = "a difference of two selections has no size"


class NvsContextParams(StepParams):
    thresholds: list[float]


class NvsContext(OfVariants):
    """Segments in which NVS selects all subwords of the idioms' translations.

    Selection is from the sentence, from each source word alone, and in one of the two ways only (NVS paper,
    Table 6).
    """

    kind: Literal["nvs_context"]
    # NVS thresholds at which both contexts are measured
    thresholds: Annotated[list[BelowOne], Field(min_length=1)] = [0.9, 0.99]

    title: ClassVar[str] = "NVS without context"
    needs_head: ClassVar[bool] = True
    step: ClassVar[StepKind[NvsContextParams]] = StepKind(
        "nvs_context",
        5,
        "analyse NVS without context",
        NvsContextParams,
        worker="creamtea_workers.steps.selections:compare_contexts",
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
            lambda spec: [
                RowSetting((f"{threshold:g}", context), f"λ={threshold:g}, {words}", threshold)
                for threshold in dict.fromkeys(spec.thresholds)
                for context, words in CONTEXTS.items()
            ],
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
