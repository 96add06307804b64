"""Analysis `depth_limited`: how often a short hypothesis outscores the beam's."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from creamtea.contract.columns import Column
from creamtea.contract.step import StepKind, StepParams
from creamtea.document.values import Positive
from creamtea.methods.analysis import (
    MODEL_INPUTS,
    STATISTICS,
    CellPlot,
    Measure,
    OfFirstSentences,
    RowSetting,
    TableLayout,
    Width,
    share,
)
from creamtea.wording import counted


class DepthLimitedParams(StepParams):
    lengths: list[int]
    width: int
    max_states: int


def length_settings(spec: DepthLimited) -> list[RowSetting]:
    return [
        RowSetting((str(length),), f"up to {counted(length, 'subword')}", length)
        for length in dict.fromkeys(spec.lengths)
    ]


class DepthLimited(OfFirstSentences):
    """How often a hypothesis of at most so many subwords outscores the beam's (Peters and Martins 2021, Table
    5)."""

    kind: Literal["depth_limited"]
    # [subwords] lengths up to which hypotheses are searched
    lengths: Annotated[list[Positive], Field(min_length=1)] = [1, 2, 3, 4, 5]
    width: Width = 5  # [hypotheses] of the beam
    max_states: Positive = 100_000  # [decoder states] per sentence at most

    title: ClassVar[str] = "Short hypotheses"
    needs_references: ClassVar[bool] = False
    step: ClassVar[StepKind[DepthLimitedParams]] = StepKind(
        "depth_limited",
        3,
        "analyse short hypotheses",
        DepthLimitedParams,
        inputs=MODEL_INPUTS,
        files=STATISTICS,
        metrics={
            "shorter_better": "by length; share of sentences with a better hypothesis of at most that length",
            "undecided": "by length; share for which max_states was reached without one",
        },
        points={"shorter_better": "over the length"},
    )
    paired: ClassVar[frozenset[str]] = frozenset({"shorter_better", "undecided"})
    tables: ClassVar[tuple[TableLayout, ...]] = (
        TableLayout(
            "variant, length",
            (
                Measure(share("shorter_better", "outscored", "sentences with a better short one", "lower")),
                Measure(share("undecided", "undecided", "search ended by its limit")),
            ),
            length_settings,
        ),
    )
    plots: ClassVar[tuple[CellPlot, ...]] = (
        CellPlot(
            "Sentences whose beam output a short hypothesis outscores",
            Column("setting", "at most so many subwords", 0),
            share("shorter_better", "outscored", ""),
            {"shorter_better": ""},
        ),
    )
