"""Step `test_set`: the segments of a test set with their idioms, never filtered."""

from __future__ import annotations

from pydantic import TypeAdapter

from creamtea.engine.step import MetricRow, StepContext, StepResult
from creamtea.study.spec import SyntheticCorpus, SyntheticTestSet, TestSet
from creamtea_workers.corpora.files import Files, Segment, read_test_set
from creamtea_workers.corpora.synthetic import unseen_pairs
from creamtea_workers.corpora.text import write_jsonl

_TEST_SET: TypeAdapter[TestSet] = TypeAdapter(TestSet)


def run(context: StepContext) -> StepResult:
    spec = _TEST_SET.validate_python(context.params["test_set"])
    if isinstance(spec, SyntheticTestSet):
        corpus = SyntheticCorpus.model_validate(context.params["corpus"])
        segments = [
            Segment(pair.source, pair.target, [idiom._asdict() for idiom in pair.idioms])
            for pair in unseen_pairs(spec, corpus)
        ]
    else:
        segments = read_test_set(spec, Files(context.params, context.locations))
    write_jsonl(
        context.output / "segments.jsonl",
        ({"index": index, **segment._asdict()} for index, segment in enumerate(segments)),
    )
    context.progress(1, 1)
    idioms = sum(len(segment.idioms) for segment in segments)
    return StepResult(metrics=[MetricRow("segments", len(segments)), MetricRow("idioms", idioms)])
