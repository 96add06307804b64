"""Text whose target side is sampled from an IBM-3 model that was counted in a corpus (SCONES, Appendix B)."""

from __future__ import annotations

from typing import Any

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.methods.corpora import Ibm3Corpus
from creamtea.methods.test_sets import Ibm3TestSet
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea_workers.corpora.counted import Ibm3Counts, Ibm3Translator
from creamtea_workers.corpora.files import Files, FilteredCorpus, Pair
from creamtea_workers.corpora.segments import Prepared, Segment
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import normalise, read_split


def prepare_corpus(spec: Ibm3Corpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    """The sources of the base corpus, which was filtered when it was made, with sampled targets. Pairs
    without a translation are left out, of the development set too."""
    translator = load_translator(context, spec.gamma)
    splits: dict[str, list[Pair]] = {}
    read: dict[str, int] = {}

    def progress(done: int, total: int) -> None:
        context.progress(done, total, "sampling")

    for split in ("train", "dev"):
        sources, _ = read_split(context.input("corpus"), split)
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


def prepare_test_set(spec: Ibm3TestSet, context: StepContext[TestSetParams]) -> Prepared:
    """Sentences for which nothing can be sampled are left out: a segment needs a reference."""
    corpus = context.params.corpus
    assert isinstance(corpus, Ibm3Corpus)  # its check has seen to it
    lines = Files.of(context).text(spec.source, "source", spec.tokenized)
    sources = [normalise(line) for line in lines[: spec.limit]]
    translator = load_translator(context, corpus.gamma)
    references = translator.translate_all(
        sources, f"{spec.seed} test", lambda done, total: context.progress(done, total, "sampling")
    )
    segments = [Segment(s, r, []) for s, r in zip(sources, references, strict=True) if r is not None]
    if not segments:
        raise StepError(f"no line of {spec.source} gets a translation at temperature {corpus.gamma}")
    return Prepared(segments, {"no_translation": len(sources) - len(segments)})


def load_translator(context: StepContext[Any], gamma: float) -> Ibm3Translator:
    """From a step's inputs ibm3 and subwords."""
    counts = Ibm3Counts.load(context.input("ibm3") / "ibm3.npz")
    return Ibm3Translator(counts, SubwordModel.of_step(context), gamma)
