"""Minimum Bayes risk decoding over samples (Eikema and Aziz 2020).

The result is the sample with the highest expected utility, its mean utility with each of the samples as the
reference: samples are both the candidates and the Monte Carlo estimate of the model's distribution. Samples
with the same text are one candidate, and count as references as often as they were drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from creamtea.methods.searches import Mbr
from creamtea_workers.search.base import Detokenize, SearchInput, SearchMethod
from creamtea_workers.search.hypothesis import Hypothesis
from creamtea_workers.search.sample import Sampler, sampler_of
from creamtea_workers.search.utility import Utility, expected_utilities

_DIGITS = 9  # of expected utilities that are compared: equal ones may differ by the order of summation


@dataclass(frozen=True)
class MbrSearch(SearchMethod):
    """Of equal utilities the sample with the higher score wins, then the first."""

    sampler: Sampler
    samples: int  # per sentence
    utility: Utility
    detokenize: Detokenize
    max_length_ratio: float = 2.0

    @property
    def rows(self) -> int:
        return self.samples

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """One hypothesis per sentence. `Hypothesis.score` is the model's, as in every search."""
        return [self.choose(samples) for samples in self.sampler.draw(batch, self.samples)]

    def choose(self, samples: Sequence[Hypothesis]) -> Hypothesis:
        """The sample with the highest expected utility."""
        groups: dict[str, list[Hypothesis]] = {}
        for sample in samples:
            groups.setdefault(self.detokenize(sample.tokens), []).append(sample)
        counts = [len(group) for group in groups.values()]
        utilities = expected_utilities(list(groups), counts, self.utility).round(_DIGITS).tolist()
        best = [max(group, key=lambda sample: sample.score) for group in groups.values()]
        return max(zip(utilities, best, strict=True), key=lambda pair: (pair[0], pair[1].score))[1]


def build(spec: Mbr, detokenize: Detokenize | None) -> MbrSearch:
    if detokenize is None:
        raise ValueError("MBR compares texts: build_search needs `detokenize`")
    return MbrSearch(sampler_of(spec), spec.samples, spec.utility, detokenize, spec.max_length_ratio)
