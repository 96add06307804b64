"""Analysis `beam_sizes`: what a wider beam does to quality, length and empty outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from creamtea.contract.step import StepKind, StepParams
from creamtea.document.mistakes import KeyPath, Mistake
from creamtea.document.raw import Block, RawStudy, repeated
from creamtea.methods.analysis import (
    BEAM,
    BLEU,
    EMPTY,
    LENGTH,
    MODEL_INPUTS,
    STATISTICS,
    CellPlot,
    Measure,
    OfFirstSentences,
    RowSetting,
    TableLayout,
    Width,
)
from creamtea.methods.metrics import Bleu
from creamtea.methods.planning import Inputs, Key, Labels, Planner
from creamtea.methods.searches import Beam
from creamtea.methods.texts import Languages


class OutputParams(StepParams):
    """Of steps that score the outputs of beams of these widths."""

    widths: list[int]
    metric: Bleu
    languages: Languages


OUTPUT_METRICS = {
    "bleu": "by width; bootstrap interval over segments, detail.signature",
    "length_ratio": "by width; hypothesis over reference tokens, as BLEU counts them",
    "empty": "by width; share of outputs without text, Wilson interval",
}


class OverBeams(OfFirstSentences):
    """Analyses of beam searches of several widths."""

    widths: Annotated[list[Width], Field(min_length=1)]  # [hypotheses] widths of the beams

    @property
    def base_setting(self) -> str:
        return str(4 if 4 in self.widths else min(self.widths))

    def params(self, planner: Planner) -> StepParams:
        return OutputParams(widths=self.widths, metric=planner.bleu, languages=planner.languages)

    def more_inputs(self, place: str, test_set: Key, planner: Planner, labels: Labels) -> Inputs:
        variant, seed = labels["variant"], labels["seed"]
        decodes = []
        for width in self.widths:
            # without normalisation, whose lack is what the beam search curse comes from
            beam = Beam(kind="beam", width=width, length_normalization=0.0)
            words = {**labels, "search": f"beam{width}"}
            inner = f"{place}/beam{width}"
            decodes.append(planner.decode_variant(inner, variant, seed, beam, test_set, words))
        return {"decode": decodes}

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        yield from repeated(block.get("widths"), (*path, "widths"))  # each is a row of its own


def beam_settings(spec: OverBeams) -> list[RowSetting]:
    return [RowSetting((str(width),), f"beam {width}", width) for width in spec.widths]


class BeamSizes(OverBeams):
    """The beam-search curse: what a wider beam does to quality, length and empty outputs (SCONES, Figures 3
    and 4)."""

    kind: Literal["beam_sizes"]
    widths: Annotated[list[Width], Field(min_length=1)] = [1, 2, 4, 8, 16, 32, 64, 128]

    title: ClassVar[str] = "Beam sizes"
    step: ClassVar[StepKind[OutputParams]] = StepKind(
        "beam_sizes",
        2,
        "analyse beam sizes",
        OutputParams,
        inputs={**MODEL_INPUTS, "decode": "translations, one step for each width"},
        files=STATISTICS,
        metrics=OUTPUT_METRICS,
        points={name: f"{name} over the width" for name in OUTPUT_METRICS},
    )
    paired: ClassVar[frozenset[str]] = frozenset(OUTPUT_METRICS)
    tables: ClassVar[tuple[TableLayout, ...]] = (
        TableLayout("variant, beam", (Measure(BLEU), Measure(LENGTH), Measure(EMPTY)), beam_settings),
    )
    plots: ClassVar[tuple[CellPlot, ...]] = (
        CellPlot("BLEU over beam width", BEAM, BLEU, {"bleu": ""}, logarithmic=True),
        CellPlot("Length ratio over beam width", BEAM, LENGTH, {"length_ratio": ""}, logarithmic=True),
    )
