"""Step `ibm3`: IBM-3's tables, counted in an alignment of a corpus's subwords."""

from __future__ import annotations

from creamtea.contract.step import MetricRow, PointRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.methods.corpora import Ibm3Params
from creamtea_workers.corpora.counted import count, known
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import read_lines
from creamtea_workers.selection.aligner import train_aligner
from creamtea_workers.selection.viterbi import viterbi


def run(context: StepContext[Ibm3Params]) -> StepResult:
    """The built-in aligner gives the most probable alignment of every pair; its counts are the tables."""
    iterations = context.params.iterations
    corpus = context.input("corpus")
    subwords = SubwordModel.of_step(context)
    context.progress(0, iterations + 1, "encoding")
    sources, targets = (
        [known(ids) for ids in subwords.encode_lines(read_lines(corpus / f"train.{side}"))]
        for side in ("src", "tgt")
    )
    try:
        aligner = train_aligner(
            sources,
            targets,
            subwords.size,
            iterations,
            lambda iteration, value: context.progress(
                iteration, iterations + 1, f"log-likelihood {value:.3f} per target subword"
            ),
        )
        alignments = viterbi(aligner, sources, targets)
        counts = count(sources, targets, alignments, subwords.size, context.params.max_fertility)
    except ValueError as error:
        raise StepError(f"IBM-3 cannot be counted in this corpus: {error}") from error
    counts.save(context.output / "ibm3.npz")
    metrics = {
        "mean_fertility": counts.mean_fertility,
        "p1": counts.p1,
        "entries": len(counts.links),
        "entropy": counts.entropy,
    }
    return StepResult(
        metrics=[MetricRow(name, value) for name, value in metrics.items()],
        points=[
            PointRow("log_likelihood", iteration, value)
            for iteration, value in enumerate(aligner.log_likelihoods, start=1)
        ],
        facts={"tension": round(aligner.tension, 4), "pairs": len(sources)},
    )
