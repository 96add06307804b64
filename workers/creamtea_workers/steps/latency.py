"""Step `latency`: measure how long each system takes for a sentence or a batch, side by side.

Every system translates every chosen sentence once per repetition, in whole batches of one size, by default 1.
All systems run in one process, and take turns in a new random order for each batch, so that drifts of the
machine affect all alike. Warm-up is excluded, the number of threads is fixed, and the garbage collector is
off while the clock runs. A batch holds sentences of neighbouring lengths, as in the decode step.

The clock covers the way from the source's subword ids to a list of the output's subword ids: encoding,
vocabulary selection and search. Segmentation and detokenisation, which are the same for all systems, are not
timed, nor are the scores of greedy search, which its decisions do not need. On a GPU the clock stops when the
ids are on the host. Capturing CUDA graphs, once per shape of a batch, is not timed but reported.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.stats.estimate import Estimate, baseline_ratio, mean_estimate
from creamtea.stats.resampling import FEW_VALUES, RESAMPLES, SEED, Array, MedianInterval, median_interval
from creamtea.steps.systems import LatencyParams, TimedSystem
from creamtea_workers.corpora.segments import EncodedTestSet, encode_sources
from creamtea_workers.corpora.subwords import TextModel
from creamtea_workers.corpora.text import write_jsonl
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.shipped import ShippedModel, ShippedTranslator
from creamtea_workers.search.translator import (
    TrainedModel,
    Translator,
    device_name,
    lexicon_file,
    load_system,
    step_device,
)

Sentence = Sequence[int]  # ids of its subwords
Detail = Mapping[str, Any]
PERCENTILES = (50, 90, 99)
_SEED = 1  # seed of the order in which systems take turns


def run(context: StepContext[LatencyParams]) -> StepResult:
    """Time the systems. The subject of a metric is the position of its system.

    Means over repetitions are as in the NVS paper, Table 5; the SCONES paper, Figure 2, has medians of five
    runs. `percent_of` in the detail has, for each system by position, the ratio to this system in per cent
    with its 95 % interval: {"value", "low", "high"}. For percentiles it is the median over repetitions of the
    ratio within a repetition, for means the ratio of the means (`creamtea.stats.estimate`).

    If a test set has fewer sentences than the protocol asks for, only whole batches are timed. Raises
    StepError if there is none.
    """
    protocol = context.params.latency
    size = protocol.batch_size
    prepare_torch(protocol.threads)
    device = step_device(context.gpus)
    test_set = EncodedTestSet.of_step(context)
    sources = test_set.sources
    if len(sources) < size:
        raise StepError(
            f"the test set has {len(sources)} sentences, fewer than a batch of {size} (latency.batch_size)"
        )
    count = min(len(sources), protocol.sentences) // size * size  # a smaller last batch would take less time
    chosen = spread_by_length([len(source) for source in sources], count)
    systems = load_systems(context, device, test_set.subwords)
    segments = [test_set.segments[n]["source"] for n in chosen]
    # a CTranslate2 model reads the same sentences in its own subwords
    own = [None if isinstance(system, Translator) else system.subwords for system in systems]
    sentences = [
        [sources[n] for n in chosen] if texts is None else encode_sources(texts, segments) for texts in own
    ]
    batches = [[encoded[first : first + size] for first in range(0, count, size)] for encoded in sentences]
    indices = [test_set.segments[n]["index"] for n in chosen]
    sizes = [
        float(np.mean(system.selected_sizes(encoded)))
        for system, encoded in zip(systems, sentences, strict=True)
    ]
    captures = warm_up(systems, batches, protocol.warmup, device)
    gc.collect()
    gc.disable()
    try:
        seconds = measure(systems, batches, protocol.repetitions, context)
    finally:
        gc.enable()
    write_jsonl(context.output / "latency.jsonl", rows(seconds, indices[::size]))
    common = {
        "batch_size": size,
        "threads": torch.get_num_threads(),
        "hardware": device_name(device),
        "torch": torch.__version__,
        "sentences": count,
        "repetitions": protocol.repetitions,
        "warmup": protocol.warmup,
    }
    timed = zip(context.params.systems, systems, sizes, strict=True)
    details = [{**common, **describe(*own)} for own in timed]
    if device.type == "cuda":
        for detail, captured in zip(details, captures, strict=True):
            detail["capture_seconds"] = round(captured, 3)
    metrics = [*percentiles(seconds, details), *means(seconds, count, details)]
    return StepResult(metrics=metrics, facts={"segments": indices})


def spread_by_length(lengths: Sequence[int], count: int) -> list[int]:
    """Choose at most `count` positions, evenly spaced over the sentences in order of length."""
    order = sorted(range(len(lengths)), key=lambda n: (lengths[n], n))
    places = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)
    return [order[place] for place in places]


def load_systems(
    context: StepContext[LatencyParams], device: torch.device, subwords: TextModel
) -> list[Translator | ShippedTranslator]:
    """Load the systems. Those with the same model and precision share it."""
    folders, lexicon = context.inputs("models"), lexicon_file(context)
    loaded: dict[tuple[int, str], TrainedModel | ShippedModel] = {}
    systems, threads = [], context.params.latency.threads
    for system in context.params.systems:
        key = (system.model, system.precision)
        if key not in loaded:
            loaded[key] = load_system([folders[system.model]], system.precision, device, threads)
        systems.append(loaded[key].translator(system.selection, system.search, lexicon, subwords))
    return systems


def warm_up(
    systems: Sequence[Translator | ShippedTranslator],
    batches: Sequence[Sequence[Sequence[Sentence]]],
    count: int,
    device: torch.device,
) -> list[float]:
    """Let each system translate `count` batches, the longest first; return its seconds of capturing.

    On a GPU each batch is translated at least once, so that its CUDA graphs are captured. `batches`: per
    system.
    """
    if device.type == "cuda":
        count = max(count, len(batches[0]))
    seconds = []
    for system, own in zip(systems, batches, strict=True):
        before = system.capture_seconds
        for n in range(count):
            system.translate(own[-1 - n % len(own)], with_scores=False)
        seconds.append(system.capture_seconds - before)
    return seconds


def measure(
    systems: Sequence[Translator | ShippedTranslator],
    batches: Sequence[Sequence[Sequence[Sentence]]],
    repetitions: int,
    context: StepContext[LatencyParams],
) -> Array:
    """Time every system on every batch: seconds (systems, repetitions, batches)."""
    turns, order = random.Random(_SEED), list(range(len(systems)))
    count = len(batches[0])
    seconds = np.zeros((len(systems), repetitions, count))
    for repetition in range(repetitions):
        for n in range(count):
            context.progress(repetition + n / count, repetitions, "repetitions")
            turns.shuffle(order)
            for position in order:
                system = systems[position]
                began, captured = time.perf_counter(), system.capture_seconds
                system.translate(batches[position][n], with_scores=False)  # ends with the ids on the host
                captured = system.capture_seconds - captured  # graphs are captured again if memory was short
                seconds[position, repetition, n] = time.perf_counter() - began - captured
    context.progress(repetitions, repetitions, "repetitions")
    return seconds


def rows(seconds: Array, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the lines of latency.jsonl. `indices`: the first segment of each batch."""
    for (system, repetition, n), value in np.ndenumerate(seconds):
        yield {
            "system": system,
            "sentence": indices[n],
            "repetition": repetition,
            "seconds": round(float(value), 7),
        }


def describe(
    system: TimedSystem, translator: Translator | ShippedTranslator, selected_size: float
) -> dict[str, Any]:
    settings = system.selection.model_dump(mode="json", exclude={"kind"})
    selection = [system.selection.kind, *(f"{name}={value}" for name, value in settings.items())]
    return {
        "beam": translator.search.beam,  # not `rows`, which are nodes in exact search and samples in MBR
        "search": system.search.kind,
        "precision": system.precision,
        "selection": " ".join(selection),
        "selected_size": selected_size,
    }


def percentiles(seconds: Array, details: Sequence[Detail]) -> Iterator[MetricRow]:
    """Yield medians over repetitions of percentiles of seconds (systems, repetitions, batches)."""
    interval = f"95 %, bootstrap over repetitions, {RESAMPLES} resamples, seed {SEED}"
    for percent in PERCENTILES:
        times = np.percentile(1000 * seconds, percent, axis=2)  # (systems, repetitions)
        for position, times_of_system in enumerate(times):
            # ratios to every system, because the study, not the measurement, chooses the baselines
            percents = [asdict(median_interval(100 * times_of_system / other)) for other in times]
            detail = {**details[position], "interval": interval, "percent_of": percents}
            median = median_interval(times_of_system)
            note = f"{FEW_VALUES} repetitions" if median.low is None else ""
            yield row(f"latency_p{percent}", position, median, detail, note)


def means(seconds: Array, sentences: int, details: Sequence[Detail]) -> Iterator[MetricRow]:
    """Yield means over repetitions of seconds (systems, repetitions, batches).

    `sentences`: number of timed sentences.
    """
    measures = {"latency_mean": 1000 * seconds.mean(axis=2)}
    for percent in PERCENTILES:
        measures[f"latency_mean_p{percent}"] = np.percentile(1000 * seconds, percent, axis=2)
    measures["sentences_per_second"] = sentences / seconds.sum(axis=2)
    for name, values in measures.items():
        for position, values_of_system in enumerate(values):
            percents = [baseline_ratio(other, values_of_system).delta for other in values]
            detail = {
                **details[position],
                "interval": "95 %, t over repetitions",
                "percent_of": [{"value": of.value, "low": of.low, "high": of.high} for of in percents],
            }
            yield row(name, position, mean_estimate(values_of_system), detail)


def row(
    name: str, position: int, value: MedianInterval | Estimate, detail: Detail, note: str = ""
) -> MetricRow:
    return MetricRow(name, value.value, value.low, value.high, str(position), note, detail)
