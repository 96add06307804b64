"""Step `corpus`: training and development text, normalised, filtered and counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from creamtea.engine.step import MetricRow, StepContext, StepResult
from creamtea.study.spec import Corpus, SyntheticCorpus
from creamtea_workers.corpora.files import FILTERS, Files, FilteredCorpus, Pair, read_corpus
from creamtea_workers.corpora.synthetic import training_and_dev
from creamtea_workers.corpora.text import write_lines

_CORPUS: TypeAdapter[Corpus] = TypeAdapter(Corpus)


def run(context: StepContext) -> StepResult:
    spec = _CORPUS.validate_python(context.params["corpus"])
    if isinstance(spec, SyntheticCorpus):
        corpus = _synthetic(spec, context)
    else:
        context.progress(0, 1, "reading and filtering")
        corpus = read_corpus(spec, Files(context.params, context.locations))
    _write(context.output, "train", corpus.train)
    _write(context.output, "dev", corpus.dev)
    context.progress(1, 1)
    pairs = {
        "train_read": corpus.train_read,
        "train_kept": len(corpus.train),
        "dev_read": corpus.dev_read,
        "dev_kept": len(corpus.dev),
    }
    return StepResult(
        metrics=[MetricRow("pairs", count, subject=subject) for subject, count in pairs.items()]
        + [MetricRow("dropped", corpus.dropped[name], subject=name) for name in FILTERS]
    )


def _synthetic(spec: SyntheticCorpus, context: StepContext) -> FilteredCorpus:
    """What is made to measure needs no filter: no side is empty, no source comes twice."""
    train, dev = training_and_dev(spec, lambda done, total: context.progress(done, total, "sampling"))
    return FilteredCorpus(
        train=[Pair(pair.source, pair.target) for pair in train],
        dev=[Pair(pair.source, pair.target) for pair in dev],
        train_read=len(train),
        dev_read=len(dev),
    )


def _write(folder: Path, split: str, pairs: Sequence[Pair]) -> None:
    write_lines(folder / f"{split}.src", (pair.source for pair in pairs))
    write_lines(folder / f"{split}.tgt", (pair.target for pair in pairs))
