"""Steps that align the training text: `align`, `shortlist` and `ibm3`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepParams, StepResult
from creamtea.errors import StepError
from creamtea.methods.corpora import Ibm3Params
from creamtea.steps.texts import AlignParams
from creamtea_workers.corpora.ibm3 import count
from creamtea_workers.corpora.subwords import SubwordModel, load_text_model, subword_texts, vocabulary_sizes
from creamtea_workers.corpora.text import UserFile
from creamtea_workers.corpora.tokens import Rows, Shards
from creamtea_workers.models.interface import BOS, EOS, PAD, UNK
from creamtea_workers.objectives.base import unigram_frequencies
from creamtea_workers.selection.aligner import MAX_CELLS, Aligner, Lexicon, train_aligner, viterbi
from creamtea_workers.selection.external_aligners import align_with_eflomal, coverage, read_table


def align(context: StepContext[AlignParams]) -> StepResult:
    """Align the words of the training text and write the lexicon for vocabulary selection."""
    spec = context.params.alignment
    if spec.aligner == "table":
        assert spec.table is not None  # the study's check ensures it
        context.progress(0, 1, f"reading {spec.table}")
        file = UserFile.find(spec.table, context.locations, context.params.digests or {})
        table, lines, skipped = read_table(file, subword_texts(load_text_model(context)))
        sources = Rows.load(context.input("encode"), "train", "src")
        metrics = {
            "table_lines": lines,
            "table_lines_skipped": skipped,
            "source_coverage": coverage(table, sources, file),
        }
        result = StepResult([MetricRow(name, value) for name, value in metrics.items()])
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


def make_shortlist(context: StepContext[StepParams]) -> StepResult:
    """Add the most frequent target subwords to the lexicon, as in Marian's shortlists.

    Subwords of the training targets are sorted by frequency, then by id.
    """
    context.progress(0, 1, "counting subwords")
    targets = Rows.load(context.input("encode"), "train", "tgt")
    frequencies = unigram_frequencies(targets, load_text_model(context).size).numpy()
    frequencies[[PAD, BOS, EOS, UNK]] = 0.0
    order = np.argsort(-frequencies, kind="stable")
    frequent = order[frequencies[order] > 0].astype(np.int32)
    lexicon = Lexicon.load(context.input("align") / "lexicon.npz")
    replace(lexicon, frequent=frequent).save(context.output / "lexicon.npz")
    return StepResult(metrics=[MetricRow("frequent", len(frequent))])


def count_ibm3(context: StepContext[Ibm3Params]) -> StepResult:
    """Count IBM-3's tables in the most probable alignment of every pair, by the built-in aligner."""
    size = SubwordModel.of_step(context).size
    shards = Shards(context.input("encode"), without=UNK)
    try:
        aligner, result = train_in_step(context, shards, size, context.params.iterations)
        aligned = (
            (source.tolist(), target.tolist(), alignment.tolist())
            for shard in shards
            for source, target, alignment in zip(*shard, viterbi(aligner, shard), strict=True)
            if len(source) * len(target) <= MAX_CELLS  # longer pairs are not aligned
        )
        counts = count(aligned, size, context.params.max_fertility)
    except ValueError as error:
        raise StepError(f"IBM-3 cannot be counted in this corpus: {error}") from error
    counts.save(context.output / "ibm3.npz")
    metrics = {
        "mean_fertility": counts.mean_fertility,
        "p1": counts.p1,
        "entries": len(counts.links),
        "entropy": counts.entropy,
    }
    result.metrics.extend(MetricRow(name, value) for name, value in metrics.items())
    result.facts["pairs"] = shards.pairs
    return result
