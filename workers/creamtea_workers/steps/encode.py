"""Step `encode`: training and development text as arrays of tokens, for all steps that read it."""

from __future__ import annotations

from itertools import islice

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.steps.texts import EncodeParams
from creamtea.wording import counted
from creamtea_workers.corpora.subwords import load_text_model, vocabulary_sizes
from creamtea_workers.corpora.text import iterate_lines
from creamtea_workers.corpora.tokens import SPLITS, RowWriter

PART = 1 << 14  # lines that are encoded at a time


def run(context: StepContext[EncodeParams]) -> StepResult:
    corpus, model = context.input("corpus"), load_text_model(context)
    sizes = vocabulary_sizes(model)
    metrics = []
    for split in SPLITS:
        for side, encode, size in (
            ("src", model.encode_lines, sizes[0]),
            ("tgt", model.encode_targets, sizes[1]),
        ):
            name = f"{split}.{side}"
            writer = RowWriter(context.output, name, size)
            lines, done = iterate_lines(corpus / name), 0
            while part := list(islice(lines, PART)):
                context.progress(0, 1, f"{name}: {counted(done, 'line')}")
                writer.write(encode(part, context.cpus))
                done += len(part)
            writer.close()
            metrics.append(MetricRow("tokens", writer.written, subject=name))
    context.progress(1, 1)
    return StepResult(metrics=metrics)
