"""Text whose target side is sampled from an IBM-3 model that was counted in a corpus (SCONES, Appendix B)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.methods.corpora import Ibm3Corpus
from creamtea.methods.test_sets import Ibm3TestSet
from creamtea.steps.texts import CorpusParams, TestSetParams
from creamtea.wording import counted
from creamtea_workers.corpora.counted import Ibm3Counts, Ibm3Translator
from creamtea_workers.corpora.files import Files, FilteredCorpus, Pair
from creamtea_workers.corpora.segments import Prepared, Segment
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import iterate_lines, normalise


def prepare_corpus(spec: Ibm3Corpus, context: StepContext[CorpusParams]) -> FilteredCorpus:
    """The sources of the base corpus, which was filtered when it was made, with sampled targets. Pairs
    without a translation are left out, of the development set too."""
    translator = load_translator(context, spec.gamma)
    corpus = FilteredCorpus((), (), 0, 0, {"no_translation": 0})

    def sampled(split: Literal["train", "dev"]) -> Iterator[Pair]:
        path = context.input("corpus") / f"{split}.src"
        read = kept = 0
        for source, target in translator.translate_all(iterate_lines(path), f"{spec.seed} {split}"):
            if read % 500 == 0:
                context.progress(0, 1, f"sampling: {counted(read, 'sentence')} of {split}")
            read += 1
            if target is not None:
                kept += 1
                yield Pair(source, target)
        if not kept:
            raise StepError(
                f"no {split} sentence of corpus {spec.corpus} gets a translation at temperature {spec.gamma}"
            )
        if split == "train":
            corpus.train_read, corpus.dropped["no_translation"] = read, read - kept
        else:
            corpus.dev_read = read

    corpus.train, corpus.dev = sampled("train"), sampled("dev")
    return corpus


def prepare_test_set(spec: Ibm3TestSet, context: StepContext[TestSetParams]) -> Prepared:
    """Sentences for which nothing can be sampled are left out: a segment needs a reference."""
    corpus = context.params.corpus
    assert isinstance(corpus, Ibm3Corpus)  # its check has seen to it
    lines = list(Files.of(context).text(spec.source, "source", spec.tokenized))
    sources = [normalise(line) for line in lines[: spec.limit]]
    translator = load_translator(context, corpus.gamma)
    segments = []
    for done, (source, reference) in enumerate(translator.translate_all(sources, f"{spec.seed} test")):
        if done % 500 == 0:
            context.progress(done, len(sources), "sampling")
        if reference is not None:
            segments.append(Segment(source, reference, []))
    if not segments:
        raise StepError(f"no line of {spec.source} gets a translation at temperature {corpus.gamma}")
    return Prepared(segments, {"no_translation": len(sources) - len(segments)})


def load_translator(context: StepContext[Any], gamma: float) -> Ibm3Translator:
    """From a step's inputs ibm3 and subwords."""
    counts = Ibm3Counts.load(context.input("ibm3") / "ibm3.npz")
    return Ibm3Translator(counts, SubwordModel.of_step(context), gamma)
