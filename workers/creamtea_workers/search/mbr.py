"""Minimum Bayes risk decoding over samples (Eikema and Aziz 2020).

Of the samples of a sentence the one is returned whose expected utility, its mean utility with each of the
samples as the reference, is the highest: samples are at once the candidates and the Monte Carlo estimate
of the model's distribution. Those with the same text are counted as one candidate, and stand for it as
references as often as they were drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from creamtea.methods.searches import Mbr
from creamtea_workers.models.interface import Memory, TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import Detokenize, SearchMethod
from creamtea_workers.search.hypothesis import Hypothesis
from creamtea_workers.search.output import OutputLayer
from creamtea_workers.search.sample import Sampler, sampler_of
from creamtea_workers.search.utility import Utility, expected_utilities

_DIGITS = 9  # of expected utilities that count: equal ones may be summed up differently


@dataclass(frozen=True)
class MbrSearch(SearchMethod):
    """`width` samples per sentence; of equal utilities the sample with the higher score, then the first."""

    sampler: Sampler
    width: int
    utility: Utility
    detokenize: Detokenize
    max_length_ratio: float = 2.0

    @property
    def rows(self) -> int:
        return self.width

    def __call__(
        self,
        model: TranslationModel,
        objective: Objective,
        memory: Memory,
        output: OutputLayer,
        limits: Sequence[int],
        with_scores: bool = True,
        sources: Sequence[Sequence[int]] = (),
    ) -> list[Hypothesis]:
        """See `SearchMethod`. `Hypothesis.score` is the model's, as in every search."""
        drawn = self.sampler.draw(model, objective, memory, output, limits, sources, self.width)
        return [self.choose(samples) for samples in drawn]

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
