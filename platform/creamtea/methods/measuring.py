"""Significance tests, the sweep of recall, and the latency run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from creamtea.document.values import BelowOne, Count, Name, Positive, Seed, Strict


class Significance(Strict):
    """Against the baseline: the paired bootstrap (Koehn 2004) and paired approximate randomisation (Riezler
    and Maxwell 2005), both as in sacreBLEU."""

    samples: Annotated[int, Field(ge=100, le=10**6)] = 1000  # [samples] of the bootstrap
    trials: Annotated[int, Field(ge=100, le=10**7)] = 10000  # [trials] of the randomisation
    seed: Seed = 12345  # of both


class Recall(Strict):
    """The sweep of the recall-against-size plot (NVS paper, Figure 3)."""

    # [subwords] per source subword, of the lexicon: points of its curve
    k: list[Positive] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    # points of NVS' curve
    thresholds: list[BelowOne] = [0.99, 0.9, 0.5, 0.1, 0.01, 0.001, 0.0001, 0.00001, 0.000001]


class LatencyProtocol(Strict):
    """How a latency run measures."""

    # [segments] timed, evenly spaced over the test set in order of length; a multiple of `batch_size`
    sentences: Positive = 20
    repetitions: Annotated[int, Field(ge=2, le=10**4)] = 30  # how many times each is timed; all are kept
    warmup: Annotated[int, Field(ge=0, le=10**6)] = 3  # [batches] per system before the clock starts
    threads: Count = 1  # [threads] of the processor
    # [segments] at a time, of similar length; 1 is what a person waits for, more is what a server does
    batch_size: Positive = Field(default=1, exclude_if=lambda value: value == 1)


class Latency(LatencyProtocol):
    """Latency of systems, interleaved in one process. Every system's time is also given as a
    percentage of each of `baselines`: name the full vocabulary in fp32 and in int8 there, since a speed-up
    over fp32 alone may be one that int8 gives for nothing."""

    test_set: Name  # a test set of the study
    systems: list[Name] | None = None  # systems that are timed; none named: every one
    baselines: list[Name] = []  # systems whose time is 100 %; none named: the study's baseline

    def protocol(self) -> LatencyProtocol:
        names = LatencyProtocol.model_fields
        return LatencyProtocol.model_validate({name: getattr(self, name) for name in names})
