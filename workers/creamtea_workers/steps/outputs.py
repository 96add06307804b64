"""Step `outputs`: what was translated elsewhere, from a text file or a test set's reference."""

from __future__ import annotations

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.steps.systems import OutputsParams
from creamtea.wording import counted
from creamtea_workers.corpora.text import UserFile, plain_line, read_jsonl, write_jsonl
from creamtea_workers.metrics.base import references_of


def run(context: StepContext[OutputsParams]) -> StepResult:
    """Write one hypothesis per segment: line n of the file belongs to segment n.

    Lines end in a line feed only, and stay as they are (`creamtea.words.plain`). There is no model, so score,
    length in subwords and selected size are null. Raises StepError for a NUL character.
    """
    segments = read_jsonl(context.input("test_set") / "segments.jsonl")
    texts = _texts(context.params, context, segments)
    rows = [
        {"index": row["index"], "text": text, "score": None, "length": None, "selected_size": None}
        for row, text in zip(segments, texts, strict=True)
    ]
    write_jsonl(context.output / "hypotheses.jsonl", rows)
    context.progress(1, 1)
    empty, count = sum(not text for text in texts), len(texts)
    return StepResult([MetricRow("empty", empty / count, detail={"count": empty, "of": count})])


def _texts(
    params: OutputsParams, context: StepContext[OutputsParams], segments: list[dict[str, object]]
) -> list[str]:
    if params.reference is not None:
        return references_of(segments)[params.reference - 1]
    assert params.file is not None
    file = UserFile.find(params.file, context.locations, params.digests or {})
    texts = [
        plain_line(line, params.file, number)
        for number, line in enumerate(file.lines(), start=1)
        if params.limit is None or number <= params.limit
    ]
    if len(texts) != len(segments):
        raise StepError(
            f"{params.file} has {counted(len(texts), 'line')} and the test set "
            f"{counted(len(segments), 'segment')}: give a line for each segment, in the same order (a line "
            "ends in a line feed, \\n, and nothing else)"
        )
    return texts
