"""Step `subwords`: a joint SentencePiece model of the training text, or a vocabulary of each side."""

from __future__ import annotations

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.steps.texts import SubwordsParams
from creamtea_workers.corpora.subwords import (
    SUBWORDS_FILE,
    VOCABULARIES_FILE,
    SubwordModel,
    Vocabularies,
    train_subwords,
)


def run(context: StepContext[SubwordsParams]) -> StepResult:
    spec = context.params.subwords
    corpus = context.input("corpus")
    if not spec.joint:
        both = Vocabularies.of_corpus(corpus, spec)
        both.save(context.output / VOCABULARIES_FILE)
        sizes = {"vocabulary_size": both.size, "source_vocabulary_size": both.source_vocabulary.size}
        return StepResult(metrics=[MetricRow(name, size) for name, size in sizes.items()])
    context.progress(0, 1, f"{spec.kind}, vocabulary {spec.vocabulary}")
    out = context.output / SUBWORDS_FILE
    lines = train_subwords([corpus / "train.src", corpus / "train.tgt"], spec, out)
    context.progress(1, 1)
    model = SubwordModel.load(out)
    sizes = {"vocabulary_size": model.size, "sampled_pairs": lines // 2}
    characters = sum(len(piece) == 1 for piece in model.pieces(range(model.size)))
    return StepResult(
        metrics=[MetricRow(name, size) for name, size in sizes.items()], facts={"characters": characters}
    )
