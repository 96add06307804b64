"""Analysis `calibration`: expected calibration error and its reliability diagram."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

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

NARROW = "its interval covers 75 to 94 %, least with few sentences"


class CalibrationParams(StepParams):
    bins: int


class Calibration(OfFirstSentences):
    """Expected calibration error of the most likely subword, teacher-forced (Peters and Martins 2021, Table
    7). For SCONES of the largest σ, which is another quantity. Bars of the diagram are Wilson intervals over
    positions."""

    kind: Literal["calibration"]
    bins: Annotated[int, Field(ge=2, le=100)] = 10  # of equal width, over the confidence

    title: ClassVar[str] = "Calibration"
    over: ClassVar[tuple[str, ...]] = ("ece",)
    step: ClassVar[StepKind[CalibrationParams]] = StepKind(
        "calibration",
        3,
        "analyse calibration",
        CalibrationParams,
        inputs=MODEL_INPUTS,
        files=STATISTICS,
        metrics={
            "ece": "0 to 1; basic bootstrap interval",
            "accuracy": "0 to 1",
            "confidence": "mean, 0 to 1",
        },
        points={"accuracy": "over a bin's mean confidence; label: its positions"},
    )
    # not the error itself: noise adds to it, and adds more to the one with fewer positions in a bin
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
