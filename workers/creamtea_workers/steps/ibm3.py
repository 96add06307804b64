"""Step `ibm3`: IBM-3's tables, counted in an alignment of a corpus's subwords."""

from __future__ import annotations

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.methods.corpora import Ibm3Params
from creamtea_workers.corpora.ibm3 import count
from creamtea_workers.corpora.subwords import UNK, SubwordModel
from creamtea_workers.corpora.tokens import Shards
from creamtea_workers.selection.aligner import MAX_CELLS, viterbi
from creamtea_workers.steps.align import train_in_step


def run(context: StepContext[Ibm3Params]) -> StepResult:
    """Count IBM-3's tables in the most probable alignment of every pair, by the built-in aligner."""
    size = SubwordModel.of_step(context).size
    shards = Shards(context.input("encode"), without=UNK)
    try:
        aligner, result = train_in_step(context, shards, size, context.params.iterations)
        aligned = (
            (source.tolist(), target.tolist(), alignment.tolist())
            for shard in shards
            for source, target, alignment in zip(*shard, viterbi(aligner, shard), strict=True)
            if len(source) * len(target) <= MAX_CELLS  # longer ones are not aligned
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
