"""Step `decode`: translate a test set with one system."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import torch

from creamtea.contract.step import GaveWay, MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.steps.systems import DecodeParams
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.corpora.text import write_jsonl
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.base import Hypothesis
from creamtea_workers.search.shipped import ShippedTranslator
from creamtea_workers.search.translator import (
    SAVE_EVERY,
    SavedTranslations,
    Translator,
    described,
    device_name,
    lexicon_file,
    load_system,
    step_device,
)
from creamtea_workers.training.group import Group, current_group


def run(context: StepContext[DecodeParams]) -> StepResult:
    """Decode one hypothesis per segment, in the segments' order.

    A source line without visible text has an empty output; `blank_sources` counts these lines. The batch size
    changes no output in fp32. In bf16 a kernel may round differently for another shape, which can decide
    between nearly equal tokens.

    Translations are saved every `SAVE_EVERY` seconds: an attempt continues where the last one stopped, with
    any number of workers (`resources.decode.workers`), which share the batches. A search may add files and
    metrics (`SearchMethod.findings`).
    """
    prepare_torch(context.cpus)
    params = context.params
    test_set = EncodedTestSet.of_step(context)
    subwords, indices = test_set.subwords, test_set.indices
    device = step_device(context.gpus)
    loaded = load_system(context.inputs("train"), params.precision, device, context.cpus)
    translator = loaded.translator(params.selection, params.search, lexicon_file(context), subwords, True)

    group = current_group()
    saved = translate(translator, test_set.sources, context, group)
    if group.rank > 0:
        return StepResult()
    unsettled = [saved.translations[n] for n in range(len(saved.translations))]
    sources = [segment["source"] for segment in test_set.segments]
    hypotheses, chosen_by = translator.search.settle(
        sources, [translation.hypothesis for translation in unsettled], context
    )
    rows: list[dict[str, Any]] = []
    for index, translation, hypothesis in zip(indices, unsettled, hypotheses, strict=True):
        if not math.isfinite(hypothesis.score):
            raise StepError(
                f"segment {index}: the score of its translation is {hypothesis.score}, so the model is "
                "broken: train the variant again with a lower learning_rate"
            )
        size = {"selected_size": translation.selected_size}
        rows.append({"index": index, **described(hypothesis, subwords), **size})
    write_jsonl(context.output / "hypotheses.jsonl", rows)
    files, search_metrics = translator.search.findings(indices, hypotheses)
    for name, lines in files.items():
        write_jsonl(context.output / name, lines)
    blank = sum(not source for source in test_set.sources)
    result = [*metrics(rows, hypotheses, saved.seconds, blank), *search_metrics, *chosen_by]
    facts = {
        "device": device_name(device),
        "threads": torch.get_num_threads(),
        "decoding_seconds": round(saved.seconds, 2),
    }
    return StepResult(metrics=result, facts=facts)


def translate(
    translator: Translator | ShippedTranslator,
    sources: Sequence[Sequence[int]],
    context: StepContext[DecodeParams],
    group: Group,
) -> SavedTranslations:
    """Translate the remaining batches; return all translations on every worker.

    Batches have sentences of similar length, the longest first, so that memory runs out at once if at all.
    The number of workers changes neither batches nor scores: worker r of n takes every n-th batch, from the
    r-th on. If a batch was interrupted, its remaining sentences form a smaller batch.
    """
    saved = group.share(lambda: SavedTranslations.load(context.checkpoints))
    batches = list(translator.batches(sources, context.params.batch_size))
    remaining = ([n for n in batch if n not in saved.translations] for batch in batches)
    unfinished = [batch for batch in remaining if batch]
    share = unfinished[group.rank :: group.size] if group.rank < group.size else []  # this worker's
    total = len(saved.translations) + sum(len(batch) for batch in share)
    context.progress(len(saved.translations), total, "sentences")
    if group.size > 1:
        saved.save(context.checkpoints, group.rank)  # so that every worker has a file
    seconds_before, began, last_save = saved.seconds, time.perf_counter(), time.monotonic()
    for batch in share:
        for finished in translator.translate_gradually([sources[n] for n in batch]):
            saved.translations.update((batch[n], translation) for n, translation in finished)
            saved.seconds = seconds_before + time.perf_counter() - began
            context.progress(len(saved.translations), total, "sentences")
            if time.monotonic() - last_save > SAVE_EVERY:
                saved.save(context.checkpoints, group.rank)
                last_save = time.monotonic()
                if context.has_more_room():  # the next attempt repeats what others have not saved
                    raise GaveWay
    return SavedTranslations.of_workers(group.gather(saved))


def metrics(
    rows: Sequence[dict[str, Any]], hypotheses: Sequence[Hypothesis], seconds: float, blank: int
) -> list[MetricRow]:
    """Return the metrics of the decoding; `blank` is the number of blank source lines."""
    count = len(rows)
    empty = sum(not row["text"] for row in rows)
    truncated = sum(not hypothesis.finished for hypothesis in hypotheses)
    return [
        MetricRow("selected_size", sum(row["selected_size"] for row in rows) / count),
        MetricRow(
            "empty",
            empty / count,
            note=f"{blank:,} of {count:,} source lines are empty, and so are their outputs" if blank else "",
            detail={"count": empty, "of": count},
        ),
        MetricRow("blank_sources", blank / count, detail={"count": blank, "of": count}),
        MetricRow("truncated", truncated / count, detail={"count": truncated, "of": count}),
        MetricRow("sentences_per_second", count / max(seconds, 1e-9)),
    ]
