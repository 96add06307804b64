"""Analysis `support_density`: how much of the vocabulary has a probability above zero."""

from __future__ import annotations

from typing import ClassVar, Literal

from creamtea.contract.columns import Column
from creamtea.contract.step import StepKind, StepParams
from creamtea.methods.analysis import (
    MODEL_INPUTS,
    STATISTICS,
    Measure,
    OfFirstSentences,
    PointPlot,
    TableLayout,
    share,
)


class SupportDensityParams(StepParams):
    """It has none."""


class SupportDensity(OfFirstSentences):
    """Mean share of the vocabulary with a probability above zero, teacher-forced (Peters and Martins 2021,
    Table 6)."""

    kind: Literal["support_density"]

    title: ClassVar[str] = "Density of the support"
    over: ClassVar[tuple[str, ...]] = ("density",)
    step: ClassVar[StepKind[SupportDensityParams]] = StepKind(
        "support_density",
        2,
        "analyse the support's density",
        SupportDensityParams,
        inputs=MODEL_INPUTS,
        files=STATISTICS,
        metrics={
            "density": "mean share of the vocabulary, 0 to 1",
            "support_size": "mean, subwords",
            "support_size_median": "subwords",
        },
        points={"support_size": "histogram over powers of two: the largest size, its share of the positions"},
    )
    paired: ClassVar[frozenset[str]] = frozenset({"density", "support_size"})
    tables: ClassVar[tuple[TableLayout, ...]] = (
        TableLayout(
            "variant",
            (
                Measure(Column("density", "density", 3, "", 100.0, "%", note="mean share of the vocabulary")),
                Measure(
                    Column(
                        "support_size",
                        "subwords",
                        1,
                        note="mean number of subwords with a probability above zero",
                    )
                ),
                Measure(Column("support_size_median", "median", 0, note="of these numbers")),
            ),
        ),
    )
    plots: ClassVar[tuple[PointPlot, ...]] = (
        PointPlot(
            "Support size",
            Column("size", "at most so many subwords (log scale)", 0),
            share("positions", "positions", ""),
            {"support_size": ""},
            "subwords",
            logarithmic=True,
        ),
    )
