"""Step `align`: word alignment of the training text and the lexicon for vocabulary selection."""

from __future__ import annotations

from creamtea.engine.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.study.spec import Alignment
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import read_lines
from creamtea_workers.selection.aligner import train_aligner
from creamtea_workers.selection.lexicon import Lexicon


def run(context: StepContext) -> StepResult:
    spec = Alignment.model_validate(context.params["alignment"])
    corpus = context.input("corpus")
    subwords = SubwordModel.load(context.input("subwords") / "subwords.model")
    context.progress(0, spec.iterations, "encoding")
    aligner = train_aligner(
        subwords.encode_lines(read_lines(corpus / "train.src")),
        subwords.encode_lines(read_lines(corpus / "train.tgt")),
        subwords.size,
        spec.iterations,
        lambda iteration, value: context.progress(
            iteration, spec.iterations, f"log-likelihood {value:.3f} a target subword"
        ),
    )
    lexicon = Lexicon.build(aligner.table, spec.max_k)
    lexicon.save(context.output / "lexicon.npz")
    points = [
        PointRow("log_likelihood", iteration, value)
        for iteration, value in enumerate(aligner.log_likelihoods, start=1)
    ]
    return StepResult(
        metrics=[MetricRow("lexicon_entries", lexicon.entries)],
        points=points,
        facts={"tension": round(aligner.tension, 4)},
    )
