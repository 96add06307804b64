"""Step `corpus`: training and development text, normalised, filtered and counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.methods.family import implementation
from creamtea.steps.texts import CorpusParams
from creamtea_workers.corpora.files import FilteredCorpus, Pair
from creamtea_workers.corpora.text import write_lines


def run(context: StepContext[CorpusParams]) -> StepResult:
    spec = context.params.corpus
    corpus: FilteredCorpus = implementation(spec).prepare_corpus(spec, context)
    _write(context.output, "train", corpus.train)
    _write(context.output, "dev", corpus.dev)
    if corpus.dev_groups:
        write_lines(context.output / "dev.groups", corpus.dev_groups)
    context.progress(1, 1)
    pairs = {
        "train_read": corpus.train_read,
        "train_kept": len(corpus.train),
        "dev_read": corpus.dev_read,
        "dev_kept": len(corpus.dev),
    }
    if corpus.train_added:
        pairs["train_added"] = corpus.train_added
    return StepResult(
        metrics=[MetricRow("pairs", count, subject=subject) for subject, count in pairs.items()]
        + [MetricRow("dropped", count, subject=name) for name, count in corpus.dropped.items()]
    )


def _write(folder: Path, split: str, pairs: Sequence[Pair]) -> None:
    write_lines(folder / f"{split}.src", (pair.source for pair in pairs))
    write_lines(folder / f"{split}.tgt", (pair.target for pair in pairs))
