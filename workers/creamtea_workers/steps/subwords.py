"""Step `subwords`: one joint SentencePiece model over both sides of the training text."""

from __future__ import annotations

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.steps.texts import SubwordsParams
from creamtea_workers.corpora.subwords import SubwordModel, train_subwords


def run(context: StepContext[SubwordsParams]) -> StepResult:
    spec = context.params.subwords
    corpus = context.input("corpus")
    context.progress(0, 1, f"{spec.kind}, vocabulary {spec.vocabulary}")
    out = context.output / "subwords.model"
    train_subwords([corpus / "train.src", corpus / "train.tgt"], spec, out)
    context.progress(1, 1)
    return StepResult(metrics=[MetricRow("vocabulary_size", SubwordModel.load(out).size)])
