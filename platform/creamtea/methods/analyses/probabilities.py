"""Analyses of a model's probabilities: calibration, and the density of the support."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from creamtea.contract.step import Column, StepKind, StepParams
from creamtea.methods.analysis import (
    MODEL_INPUTS,
    STATISTICS,
    Measure,
    OfFirstSentences,
    PointPlot,
    TableLayout,
    share,
)

NARROW = "its interval covers 75 to 94 %, least with few sentences"


class CalibrationParams(StepParams):
    bins: int


class Calibration(OfFirstSentences):
    """Expected calibration error of the most likely subword, teacher-forced.

    As in Peters and Martins (2021), Table 7. For SCONES the confidence is the largest σ, which is not
    comparable. Bars of the diagram are Wilson intervals over positions.
    """

    kind: Literal["calibration"]
    bins: Annotated[int, Field(ge=2, le=100)] = 10  # bins of equal width over the confidence

    title: ClassVar[str] = "Calibration"
    over: ClassVar[tuple[str, ...]] = ("ece",)
    step: ClassVar[StepKind[CalibrationParams]] = StepKind(
        "calibration",
        3,
        "analyse calibration",
        CalibrationParams,
        worker="creamtea_workers.steps.probabilities:measure_calibration",
        inputs=MODEL_INPUTS,
        files=STATISTICS,
        metrics={
            "ece": "0 to 1; basic bootstrap interval",
            "accuracy": "0 to 1",
            "confidence": "mean, 0 to 1",
        },
        points={"accuracy": "over a bin's mean confidence; label: its positions"},
    )
    # without the error itself: noise raises it, the more the fewer positions a bin has
    paired: ClassVar[frozenset[str]] = frozenset({"accuracy", "confidence"})
    tables: ClassVar[tuple[TableLayout, ...]] = (
        TableLayout(
            "variant",
            (
                Measure(
                    Column("ece", "ECE", 2, "lower", 100.0, "%", note=f"expected calibration error; {NARROW}")
                ),
                Measure(share("accuracy", "accuracy", "positions with the right subword", "higher")),
                Measure(share("confidence", "confidence", "its mean probability")),
            ),
        ),
    )
    plots: ClassVar[tuple[PointPlot, ...]] = (
        PointPlot(
            "Reliability",
            Column("confidence", "confidence", 1, "", 100.0, "%"),
            share("accuracy", "accuracy", ""),
            {"accuracy": ""},
            "positions",
            diagonal=True,
            counted=True,
        ),
    )


class SupportDensity(OfFirstSentences):
    """Mean share of the vocabulary with a probability above zero, teacher-forced.

    As in Peters and Martins (2021), Table 6.
    """

    kind: Literal["support_density"]

    title: ClassVar[str] = "Density of the support"
    over: ClassVar[tuple[str, ...]] = ("density",)
    step: ClassVar[StepKind[StepParams]] = StepKind(
        "support_density",
        2,
        "analyse the support's density",
        StepParams,
        worker="creamtea_workers.steps.probabilities:measure_support",
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
                Measure(Column("support_size_median", "median", 0, note="of these; the lower of two")),
            ),
        ),
    )
    plots: ClassVar[tuple[PointPlot, ...]] = (
        PointPlot(
            "Support size",
            Column("size", "subwords, at most (log scale)", 0),
            share("positions", "positions", ""),
            {"support_size": ""},
            "subwords",
            logarithmic=True,
        ),
    )
