"""Step `beam_sizes`: the beam-search curse (Koehn and Knowles 2017; SCONES, Figures 3 and 4)."""

from __future__ import annotations

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.analyses.search import OutputParams
from creamtea_workers.analysis.rows import SegmentStatistics, output_rows


def run(context: StepContext[OutputParams]) -> StepResult:
    """Measure the outputs of one decoding per width, in the order of the widths.

    `output_rows` defines the metrics; their subject is the width ("4").
    """
    widths, decodes = context.params.widths, context.inputs("decode")
    kept = SegmentStatistics()
    rows: list[MetricRow] = []
    points: list[PointRow] = []
    for n, (width, decode) in enumerate(zip(widths, decodes, strict=True)):
        context.progress(n, len(widths), f"beam {width}")
        rows_of_width = output_rows(context.params, context.input("test_set"), decode, str(width), kept)
        rows += rows_of_width
        points += [PointRow(row.name, width, row.value) for row in rows_of_width if row.value is not None]
    kept.save(context.output)
    context.progress(len(widths), len(widths), "beams")
    return StepResult(rows, points)
