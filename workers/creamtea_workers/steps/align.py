"""Step `align`: word alignment of the training text and the lexicon for vocabulary selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.texts import Alignment
from creamtea.steps.texts import AlignParams
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import UserFile
from creamtea_workers.corpora.tokens import SIDES, Rows
from creamtea_workers.selection.aligner import Aligner, TranslationTable, train_aligner
from creamtea_workers.selection.eflomal import align_with_eflomal
from creamtea_workers.selection.lexicon import Lexicon
from creamtea_workers.selection.table import coverage, read_table


def run(context: StepContext[AlignParams]) -> StepResult:
    spec = context.params.alignment
    table, result = ALIGNERS[spec.aligner](context, spec)
    lexicon = Lexicon.build(table, spec.max_k)
    lexicon.save(context.output / "lexicon.npz")
    result.metrics.insert(0, MetricRow("lexicon_entries", lexicon.entries))
    return result


Aligned = tuple[TranslationTable, StepResult]


def with_em(context: StepContext[AlignParams], spec: Alignment) -> Aligned:
    context.progress(0, spec.iterations, "encoding")
    subwords = SubwordModel.of_step(context)
    sources, targets = lists_of(context)
    aligner, result = train_in_step(context, sources, targets, subwords.size, spec.iterations)
    return aligner.table, result


def train_in_step(
    context: StepContext[Any],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    vocabulary_size: int,
    iterations: int,
) -> tuple[Aligner, StepResult]:
    """The built-in aligner, and a result with its learning curve and tension."""
    aligner = train_aligner(
        sources,
        targets,
        vocabulary_size,
        iterations,
        lambda iteration, value: context.progress(
            iteration, iterations, f"log-likelihood {value:.3f} per target subword"
        ),
    )
    points = [
        PointRow("log_likelihood", iteration, value)
        for iteration, value in enumerate(aligner.log_likelihoods, start=1)
    ]
    return aligner, StepResult(points=points, facts={"tension": round(aligner.tension, 4)})


def lists_of(context: StepContext[Any]) -> list[list[list[int]]]:
    return [[row.tolist() for row in Rows.load(context.input("encode"), "train", side)] for side in SIDES]


def with_eflomal(context: StepContext[AlignParams], spec: Alignment) -> Aligned:
    context.progress(0, 1, "encoding")
    subwords = SubwordModel.of_step(context)
    sources, targets = lists_of(context)
    watch = partial(context.progress, 0, 1, "eflomal")
    return align_with_eflomal(sources, targets, subwords.size, context.cpus, watch), StepResult()


def with_table(context: StepContext[AlignParams], spec: Alignment) -> Aligned:
    assert spec.table is not None  # creamtea.study.checks has seen to it
    context.progress(0, 1, f"reading {spec.table}")
    file = UserFile.find(spec.table, context.locations, context.params.digests or {})
    subwords = SubwordModel.of_step(context)
    imported = read_table(file, subwords)
    metrics = [
        MetricRow("table_lines", imported.lines),
        MetricRow("table_lines_skipped", imported.skipped),
        MetricRow("source_coverage", coverage(imported.table, lists_of(context)[0], file)),
    ]
    return imported.table, StepResult(metrics=metrics)


ALIGNERS: dict[str, Callable[[StepContext[AlignParams], Alignment], Aligned]] = {
    "em": with_em,
    "eflomal": with_eflomal,
    "table": with_table,
}
