"""Analyses: what the papers measure beyond the main table. One step kind each, of the same name."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from creamtea.document.values import Above0, Name, Positive, Share, Strict

Width = Annotated[int, Field(ge=1, le=1000)]


class BeamSizes(Strict):
    """The beam-search curse (SCONES, Figures 3 and 4): BLEU, length ratio and empty outputs over the beam."""

    kind: Literal["beam_sizes"]
    test_set: Name
    variants: list[Name] | None = None  # None: every variant
    widths: Annotated[list[Width], Field(min_length=1)] = [1, 2, 4, 8, 16, 32, 64, 128]
    sentences: Positive | None = None  # only the first of the test set


class SearchErrors(Strict):
    """Exact search (SCONES, sections 4.3 and 4.4; Figures 5 to 7): what it finds and proves, and how often a
    beam misses it."""

    kind: Literal["search_errors"]
    test_set: Name
    variants: list[Name] | None = None
    widths: Annotated[list[Width], Field(min_length=1)] = [1, 4]
    max_states: Positive = 1_000_000  # expansions a sentence
    max_seconds: Above0 | None = None  # a sentence
    sentences: Positive | None = None


class EmptyString(Strict):
    """How often a system's model prefers the empty string to the system's output (Stahlberg and Byrne 2019;
    Peters and Martins 2021, Table 4), and by how much (SCONES, Figure 6)."""

    kind: Literal["empty_string"]
    test_set: Name
    systems: list[Name] | None = None  # None: every system with the full vocabulary that searches
    sentences: Positive | None = None


class DepthLimited(Strict):
    """How often a hypothesis of at most so many subwords outscores the beam's (Peters and Martins 2021,
    Table 5)."""

    kind: Literal["depth_limited"]
    test_set: Name
    variants: list[Name] | None = None
    lengths: Annotated[list[Positive], Field(min_length=1)] = [1, 2, 3, 4, 5]
    width: Width = 5  # of the beam
    max_states: Positive = 100_000
    sentences: Positive | None = None


class SupportDensity(Strict):
    """Mean share of the vocabulary with a probability above zero, teacher-forced (Peters and Martins 2021,
    Table 6)."""

    kind: Literal["support_density"]
    test_set: Name
    variants: list[Name] | None = None
    sentences: Positive | None = None


class Calibration(Strict):
    """Expected calibration error, teacher-forced (Peters and Martins 2021, Table 7), and its reliability
    diagram. For SCONES of the largest σ, another quantity."""

    kind: Literal["calibration"]
    test_set: Name
    variants: list[Name] | None = None
    bins: Annotated[int, Field(ge=2, le=100)] = 10
    sentences: Positive | None = None


class RecallAtSize(Strict):
    """NVS against the lexicon at equal mean size (NVS paper, Figure 3), on sentences and idioms: for each k
    the NVS threshold is the one that selects as much as the lexicon does."""

    kind: Literal["recall_at_size"]
    test_set: Name
    variants: list[Name] | None = None  # None: every variant with an NVS head
    k: Annotated[list[Positive], Field(min_length=1)] = [10, 50, 100, 200, 1000]


class NvsContext(Strict):
    """How often all of an idiom's reference subwords are selected, with the sentence as context and from
    each source word alone (NVS paper, Table 6)."""

    kind: Literal["nvs_context"]
    test_set: Name  # with annotated idioms
    variants: list[Name] | None = None  # None: every variant with an NVS head
    thresholds: Annotated[list[Share], Field(min_length=1)] = [0.9, 0.99]


Analysis = Annotated[
    BeamSizes
    | SearchErrors
    | EmptyString
    | DepthLimited
    | SupportDensity
    | Calibration
    | RecallAtSize
    | NvsContext,
    Field(discriminator="kind"),
]
