"""Step `align`: word alignment of the training text and the lexicon for vocabulary selection."""

from __future__ import annotations

from functools import partial
from typing import Any

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.methods.texts import Alignment
from creamtea.steps.texts import AlignParams
from creamtea_workers.corpora.subwords import load_text_model, subword_texts, vocabulary_sizes
from creamtea_workers.corpora.text import UserFile
from creamtea_workers.corpora.tokens import Rows, Shards
from creamtea_workers.selection.aligner import Aligner, Lexicon, TranslationTable, train_aligner
from creamtea_workers.selection.external_aligners import align_with_eflomal, coverage, read_table


def run(context: StepContext[AlignParams]) -> StepResult:
    spec = context.params.alignment
    if spec.aligner == "table":
        table, result = read_in_step(context, spec)
    else:
        shards, size = Shards(context.input("encode")), max(vocabulary_sizes(load_text_model(context)))
        if spec.aligner == "em":
            aligner, result = train_in_step(context, shards, size, spec.iterations)
            table = aligner.table
        else:
            watch = partial(context.progress, 0, 1, "eflomal")
            table, result = align_with_eflomal(shards, size, context.cpus, watch), StepResult()
    lexicon = Lexicon.build(table, spec.max_k)
    lexicon.save(context.output / "lexicon.npz")
    result.metrics.insert(0, MetricRow("lexicon_entries", lexicon.entries))
    return result


def train_in_step(
    context: StepContext[Any], shards: Shards, vocabulary_size: int, iterations: int
) -> tuple[Aligner, StepResult]:
    """Train the built-in aligner; return it, and a result with its learning curve and tension."""
    done, message = 0, "finding subwords that occur together"

    def report(iteration: int, value: float) -> None:
        nonlocal done, message
        done, message = iteration, f"log-likelihood {value:.3f} per target subword"
        shards.watch()

    shards.watch = lambda: context.progress(done, iterations, message)
    aligner = train_aligner(shards, vocabulary_size, iterations, report, context.cpus)
    points = [
        PointRow("log_likelihood", iteration, value)
        for iteration, value in enumerate(aligner.log_likelihoods, start=1)
    ]
    facts = {"tension": round(aligner.tension, 4), "pairs_too_long_to_align": aligner.left_out}
    return aligner, StepResult(points=points, facts=facts)


def read_in_step(context: StepContext[AlignParams], spec: Alignment) -> tuple[TranslationTable, StepResult]:
    """Read the table of another program; return it, and a result with what it has."""
    assert spec.table is not None  # creamtea.study.checks has seen to it
    context.progress(0, 1, f"reading {spec.table}")
    file = UserFile.find(spec.table, context.locations, context.params.digests or {})
    subwords = subword_texts(load_text_model(context))
    imported = read_table(file, subwords)
    sources = Rows.load(context.input("encode"), "train", "src")
    metrics = [
        MetricRow("table_lines", imported.lines),
        MetricRow("table_lines_skipped", imported.skipped),
        MetricRow("source_coverage", coverage(imported.table, sources, file)),
    ]
    return imported.table, StepResult(metrics=metrics)
