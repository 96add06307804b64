"""Step `align`: word alignment of the training text and the lexicon for vocabulary selection."""

from __future__ import annotations

from collections.abc import Callable

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.texts import Alignment
from creamtea.steps.texts import AlignParams
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import UserFile, read_lines
from creamtea_workers.selection.aligner import TranslationTable, train_aligner
from creamtea_workers.selection.eflomal import align_with_eflomal
from creamtea_workers.selection.lexicon import Lexicon
from creamtea_workers.selection.table import coverage, read_table


def run(context: StepContext[AlignParams]) -> StepResult:
    """Metrics: `lexicon_entries`; of an imported table also `table_lines`, `table_lines_skipped` (with a
    subword that the study does not have) and `source_coverage` (share of the source subwords of the training
    text, by occurrence, that have a row). Points, of em: `log_likelihood` per iteration.
    """
    spec = context.params.alignment
    table, result = ALIGNERS[spec.aligner](context, spec)
    lexicon = Lexicon.build(table, spec.max_k)
    lexicon.save(context.output / "lexicon.npz")
    result.metrics.insert(0, MetricRow("lexicon_entries", lexicon.entries))
    return result


Aligned = tuple[TranslationTable, StepResult]


def with_em(context: StepContext[AlignParams], spec: Alignment) -> Aligned:
    sources, targets, size = encoded_training_text(context)
    aligner = train_aligner(
        sources,
        targets,
        size,
        spec.iterations,
        lambda iteration, value: context.progress(
            iteration, spec.iterations, f"log-likelihood {value:.3f} per target subword"
        ),
    )
    points = [
        PointRow("log_likelihood", iteration, value)
        for iteration, value in enumerate(aligner.log_likelihoods, start=1)
    ]
    return aligner.table, StepResult(points=points, facts={"tension": round(aligner.tension, 4)})


def with_eflomal(context: StepContext[AlignParams], spec: Alignment) -> Aligned:
    sources, targets, size = encoded_training_text(context)
    watch = lambda: context.progress(0, 1, "eflomal")  # noqa: E731
    return align_with_eflomal(sources, targets, size, context.cpus, watch), StepResult()


def with_table(context: StepContext[AlignParams], spec: Alignment) -> Aligned:
    assert spec.table is not None  # creamtea.study.checks has seen to it
    context.progress(0, 1, f"reading {spec.table}")
    file = UserFile.find(spec.table, context.locations, context.params.digests or {})
    subwords = SubwordModel.of_step(context)
    imported = read_table(file, subwords)
    sources = subwords.encode_lines(read_lines(context.input("corpus") / "train.src"))
    metrics = [
        MetricRow("table_lines", imported.lines),
        MetricRow("table_lines_skipped", imported.skipped),
        MetricRow("source_coverage", coverage(imported.table, sources, file)),
    ]
    return imported.table, StepResult(metrics=metrics)


ALIGNERS: dict[str, Callable[[StepContext[AlignParams], Alignment], Aligned]] = {
    "em": with_em,
    "eflomal": with_eflomal,
    "table": with_table,
}


def encoded_training_text(context: StepContext[AlignParams]) -> tuple[list[list[int]], list[list[int]], int]:
    """Sources, targets, and the number of subwords."""
    context.progress(0, 1, "encoding")
    subwords, corpus = SubwordModel.of_step(context), context.input("corpus")
    sources, targets = (
        subwords.encode_lines(read_lines(corpus / f"train.{side}")) for side in ("src", "tgt")
    )
    return sources, targets, subwords.size
