"""Step `test_set`: the segments of a test set with their idioms, never filtered."""

from __future__ import annotations

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.methods.family import implementation
from creamtea.steps.texts import TestSetParams
from creamtea_workers.corpora.segments import Prepared
from creamtea_workers.corpora.text import write_jsonl


def run(context: StepContext[TestSetParams]) -> StepResult:
    spec = context.params.test_set
    prepared: Prepared = implementation(spec).prepare_test_set(spec, context)
    if not prepared.segments:  # later steps rely on it
        raise StepError("the test set has no segments: nothing can be translated or measured")
    lines = [{"index": index, **segment._asdict()} for index, segment in enumerate(prepared.segments)]
    for line, group in zip(lines, prepared.groups, strict=False):  # only words have groups
        line["group"] = group
    for line, references in zip(lines, prepared.more_references, strict=False):
        line["more_references"] = list(references)
    if prepared.detokenised:
        lines = [{**line, "detokenised": True} for line in lines]
    write_jsonl(context.output / "segments.jsonl", lines)
    context.progress(1, 1)
    metrics = {
        "segments": len(prepared.segments),
        "idioms": sum(len({idiom["name"] for idiom in segment.idioms}) for segment in prepared.segments),
        **prepared.counts,
    }
    rows = [MetricRow(name, value) for name, value in metrics.items()]
    return StepResult(rows, facts=dict(prepared.counts))
