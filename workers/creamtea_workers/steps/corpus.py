"""Step `corpus`: training and development text, normalised, filtered and counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.study.spec import Corpus, FilesCorpus, Ibm3Corpus, SyntheticCorpus
from creamtea_workers.corpora.counted import Counts, Translator
from creamtea_workers.corpora.files import Files, FilteredCorpus, Pair, read_corpus
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.synthetic import training_and_dev
from creamtea_workers.corpora.text import read_lines, write_lines

_CORPUS: TypeAdapter[Corpus] = TypeAdapter(Corpus)


def run(context: StepContext) -> StepResult:
    spec = _CORPUS.validate_python(context.params["corpus"])
    if isinstance(spec, SyntheticCorpus):
        corpus = _synthetic(spec, context)
    elif isinstance(spec, Ibm3Corpus):
        corpus = _ibm3(spec, context)
    else:
        corpus = _files(spec, context)
    _write(context.output, "train", corpus.train)
    _write(context.output, "dev", corpus.dev)
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


def _files(spec: FilesCorpus, context: StepContext) -> FilteredCorpus:
    context.progress(0, 1, "reading and filtering")
    return read_corpus(spec, Files(context.params, context.locations))


def _synthetic(spec: SyntheticCorpus, context: StepContext) -> FilteredCorpus:
    """What is made to measure needs no filter: no side is empty, no source comes twice."""
    train, dev = training_and_dev(spec, lambda done, total: context.progress(done, total, "sampling"))
    return FilteredCorpus(
        train=[Pair(pair.source, pair.target) for pair in train],
        dev=[Pair(pair.source, pair.target) for pair in dev],
        train_read=len(train),
        dev_read=len(dev),
        dropped=dict.fromkeys(("empty", "too_long", "ratio", "duplicate"), 0),
    )


def _ibm3(spec: Ibm3Corpus, context: StepContext) -> FilteredCorpus:
    """The sources of the base corpus, which was filtered when it was made, with sampled targets. Pairs
    without a translation are left out, of the development set too."""
    translator = Translator(
        Counts.load(context.input("ibm3") / "ibm3.npz"),
        SubwordModel.load(context.input("subwords") / "subwords.model"),
        spec.gamma,
    )
    splits: dict[str, list[Pair]] = {}
    read: dict[str, int] = {}

    def progress(done: int, total: int) -> None:
        context.progress(done, total, "sampling")

    for split in ("train", "dev"):
        sources = read_lines(context.input("corpus") / f"{split}.src")
        targets = translator.translate_all(sources, f"{spec.seed} {split}", progress)
        splits[split] = [Pair(s, t) for s, t in zip(sources, targets, strict=True) if t is not None]
        read[split] = len(sources)
        if not splits[split]:
            raise StepError(
                f"no {split} sentence of corpus {spec.corpus} gets a translation at temperature {spec.gamma}"
            )
    train, dev = splits["train"], splits["dev"]
    dropped = {"no_translation": read["train"] - len(train)}
    return FilteredCorpus(train, dev, read["train"], read["dev"], dropped)


def _write(folder: Path, split: str, pairs: Sequence[Pair]) -> None:
    write_lines(folder / f"{split}.src", (pair.source for pair in pairs))
    write_lines(folder / f"{split}.tgt", (pair.target for pair in pairs))
