"""Step `decode`: translate a test set with one system."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import torch

from creamtea.engine.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import write_jsonl
from creamtea_workers.metrics.texts import read_jsonl
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.systems import TrainedModel, device_name, lexicon_file, step_device
from creamtea_workers.search.translator import Translation, Translator

# decoder rows × vocabulary of a batch: 256 MB of fp32 logits; a wide beam takes fewer sentences at a time
_BATCH_CELLS = 1 << 26


def run(context: StepContext) -> StepResult:
    """One hypothesis a segment, in the segments' order. An empty source line is translated like any other:
    the model sees only </s>. The batch size changes no output in fp32; in bf16 a kernel may round otherwise
    for another shape, which can decide between near-equal tokens.

    Metrics: `selected_size` (mean a sentence; V without selection), `empty` (share of outputs without
    text), `truncated` (share cut at the length limit; its detail has the counts), `sentences_per_second`
    (search with selection; loading, subwords and files not counted).
    """
    prepare_torch(context.cpus)
    device = step_device(context.gpus)
    segments = read_jsonl(context.input("test_set") / "segments.jsonl")
    subwords = SubwordModel.load(context.input("subwords") / "subwords.model")
    trained = TrainedModel.load(context.input("train"), context.params["precision"], device)
    translator = trained.translator(context.params, lexicon_file(context))
    sources = [subwords.encode(segment["source"]) for segment in segments]

    began = time.perf_counter()
    translations = translate(translator, sources, context.params["batch_size"], context)
    seconds = time.perf_counter() - began
    rows = [
        hypothesis_row(segment["index"], translation, subwords)
        for segment, translation in zip(segments, translations, strict=True)
    ]
    write_jsonl(context.output / "hypotheses.jsonl", rows)
    facts = {
        "device": device_name(device),
        "threads": torch.get_num_threads(),
        "decoding_seconds": round(seconds, 2),
    }
    return StepResult(metrics=metrics(rows, translations, seconds), facts=facts)


def translate(
    translator: Translator, sources: Sequence[Sequence[int]], batch_size: int, context: StepContext
) -> list[Translation]:
    """Batches of sentences of similar length, the longest first, so that memory runs out at once if at all;
    the translations come in the order of `sources`."""
    most = _BATCH_CELLS // (translator.search.width * translator.model.vocabulary_size)
    size = max(1, min(batch_size, most))
    order = sorted(range(len(sources)), key=lambda n: -len(sources[n]))
    found: dict[int, Translation] = {}
    for start in range(0, len(order), size):
        context.progress(start, len(order), "sentences")
        batch = order[start : start + size]
        found.update(zip(batch, translator.translate([sources[n] for n in batch]), strict=True))
    context.progress(len(order), len(order), "sentences")
    return [found[n] for n in range(len(sources))]


def hypothesis_row(index: int, translation: Translation, subwords: SubwordModel) -> dict[str, Any]:
    hypothesis = translation.hypothesis
    if not math.isfinite(hypothesis.score):
        raise StepError(
            f"segment {index}: the score of its translation is {hypothesis.score}, so the model is broken: "
            "train the variant again with a lower learning_rate"
        )
    return {
        "index": index,
        "text": subwords.decode(hypothesis.tokens),
        "score": hypothesis.score,
        "length": len(hypothesis.tokens),
        "selected_size": translation.selected_size,
    }


def metrics(
    rows: Sequence[dict[str, Any]], translations: Sequence[Translation], seconds: float
) -> list[MetricRow]:
    count = len(rows)
    if count == 0:
        names = ("selected_size", "empty", "truncated", "sentences_per_second")
        return [MetricRow(name, None, note="the test set has no segments") for name in names]
    empty = sum(not row["text"] for row in rows)
    truncated = sum(not translation.hypothesis.finished for translation in translations)
    return [
        MetricRow("selected_size", sum(row["selected_size"] for row in rows) / count),
        MetricRow("empty", empty / count, detail={"count": empty, "of": count}),
        MetricRow("truncated", truncated / count, detail={"count": truncated, "of": count}),
        MetricRow("sentences_per_second", count / max(seconds, 1e-9)),
    ]
