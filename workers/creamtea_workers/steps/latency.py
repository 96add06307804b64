"""Step `latency`: how long one sentence takes, one at a time, system beside system.

The protocol: batch size 1; every system translates every chosen sentence once per repetition, the order of
the systems drawn anew for each sentence, all in one process, so that whatever drifts on the machine hits
all alike; warm-up excluded; a fixed number of threads; the garbage collector off while the clock runs.
What is timed: from the source's subword ids to the output's subword ids as a list, that is encoding,
vocabulary selection and search. Segmentation and detokenisation, the same for all systems, are not; nor
are the scores of greedy search, which its decisions do not need.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.stats.bootstrap import SEED, Array
from creamtea.stats.percentiles import RESAMPLES, median_interval, repetition_percentiles
from creamtea.steps.systems import LatencyParams, TimedSystem
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import write_jsonl
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.systems import TrainedModel, device_name, lexicon_file, step_device
from creamtea_workers.search.translator import Translator, naming_segments

PERCENTILES = (50, 90, 99)
_SEED = 1  # of the order in which systems take turns


def run(context: StepContext[LatencyParams]) -> StepResult:
    """Metrics `latency_p50`, `latency_p90`, `latency_p99` in milliseconds, one of each per system; the
    subject is its position. `creamtea.stats.percentiles` defines value and interval. `percent_of` in the
    detail has, for each system by its position, the median over repetitions of the ratio to that system in
    the same repetition, in per cent, with the 95 % bootstrap interval over repetitions: {"value", "low",
    "high"}.
    """
    protocol = context.params.latency
    prepare_torch(protocol.threads)
    device = step_device(context.gpus)
    test_set = EncodedTestSet.of_step(context)
    sources = test_set.sources
    if not sources:
        raise StepError("latency: the test set has no segments; name another one under latency.test_set")
    chosen = spread_by_length([len(source) for source in sources], protocol.sentences)
    systems = load_systems(context, device, test_set.subwords)
    sentences = [sources[n] for n in chosen]
    indices = [test_set.segments[n]["index"] for n in chosen]
    with naming_segments(sentences, indices):  # a beam that is too wide, before anything is timed
        sizes = [float(np.mean(system.selected_sizes(sentences))) for system in systems]
    warm_up(systems, sentences, protocol.warmup)
    with no_garbage_collection():
        seconds = measure(systems, sentences, protocol.repetitions, context)
    write_jsonl(context.output / "latency.jsonl", rows(seconds, indices))
    common = {
        "batch_size": 1,
        "threads": torch.get_num_threads(),
        "hardware": device_name(device),
        "torch": torch.__version__,
        "sentences": len(sentences),
        "repetitions": protocol.repetitions,
        "warmup": protocol.warmup,
        "interval": f"95 %, bootstrap over repetitions, {RESAMPLES} resamples, seed {SEED}",
    }
    details = [
        {**common, **describe(system, translator, size)}
        for system, translator, size in zip(context.params.systems, systems, sizes, strict=True)
    ]
    return StepResult(metrics=metrics(seconds, details), facts={"segments": indices})


def spread_by_length(lengths: Sequence[int], count: int) -> list[int]:
    """At most `count` positions, evenly spaced over the sentences in order of length."""
    order = sorted(range(len(lengths)), key=lambda n: (lengths[n], n))
    places = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)
    return [order[place] for place in places]


def load_systems(
    context: StepContext[LatencyParams], device: torch.device, subwords: SubwordModel
) -> list[Translator]:
    """Systems with the same model and precision share it."""
    folders, lexicon = context.inputs("models"), lexicon_file(context)
    loaded: dict[tuple[int, str], TrainedModel] = {}
    systems = []
    for system in context.params.systems:
        key = (system.model, system.precision)
        if key not in loaded:
            loaded[key] = TrainedModel.load(folders[system.model], system.precision, device)
        systems.append(loaded[key].translator(system.selection, system.search, lexicon, subwords))
    return systems


def warm_up(systems: Sequence[Translator], sentences: Sequence[Sequence[int]], count: int) -> None:
    """Each system translates `count` sentences, the longest first."""
    for system in systems:
        for n in range(count):
            system.translate([sentences[-1 - n % len(sentences)]], with_scores=False)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def measure(
    systems: Sequence[Translator],
    sentences: Sequence[Sequence[int]],
    repetitions: int,
    context: StepContext[LatencyParams],
) -> Array:
    """Seconds (systems, repetitions, sentences)."""
    turns, order = random.Random(_SEED), list(range(len(systems)))
    seconds = np.zeros((len(systems), repetitions, len(sentences)))
    for repetition in range(repetitions):
        for n, sentence in enumerate(sentences):
            context.progress(repetition + n / len(sentences), repetitions, "repetitions")
            turns.shuffle(order)
            for position in order:
                began = time.perf_counter()
                systems[position].translate([sentence], with_scores=False)  # ends with the ids on the host
                seconds[position, repetition, n] = time.perf_counter() - began
    context.progress(repetitions, repetitions, "repetitions")
    return seconds


def rows(seconds: Array, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
    for (system, repetition, n), value in np.ndenumerate(seconds):
        yield {
            "system": system,
            "sentence": indices[n],
            "repetition": repetition,
            "seconds": round(float(value), 7),
        }


def describe(system: TimedSystem, translator: Translator, selected_size: float) -> dict[str, Any]:
    settings = system.selection.model_dump(mode="json", exclude={"kind"})
    selection = [system.selection.kind, *(f"{name}={value}" for name, value in settings.items())]
    return {
        "beam": translator.search.rows,
        "search": system.search.kind,
        "precision": system.precision,
        "selection": " ".join(selection),
        "selected_size": selected_size,
    }


def metrics(seconds: Array, details: Sequence[dict[str, Any]]) -> list[MetricRow]:
    result = []
    for percent in PERCENTILES:
        times = [repetition_percentiles(system, percent) for system in seconds]
        for position, (own, detail) in enumerate(zip(times, details, strict=True)):
            time_ = median_interval(1000 * own)
            # of every system, since which of them are baselines is a study's to say, not a measurement's
            percents = [asdict(median_interval(100 * own / other)) for other in times]
            result.append(
                MetricRow(
                    f"latency_p{percent}",
                    time_.value,
                    time_.low,
                    time_.high,
                    subject=str(position),
                    detail={**detail, "percent_of": percents},
                )
            )
    return result
