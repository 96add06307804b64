"""Protocols in which raters give each output a score, choose the better of two, or correct one."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Self

from rapidfuzz.distance import Levenshtein

from creamtea.human.protocols.base import (
    MAX_OUTPUTS,
    MIN_SYSTEMS,
    PointsFormat,
    Protocol,
    Scale,
    ScoredAnswer,
    exact,
)
from creamtea.store.tables import Payload
from creamtea.words import split_words

MAX_TEXT = 10_000  # characters of a corrected output
MINUTES_PER_SCALE = 0.1  # per output and further scale, by rule of thumb
WORSE, SAME, BETTER = range(3)  # steps of a preference


class OnScale(Protocol):
    """A protocol in which raters answer with a value of the scale.

    A campaign may ask for values on further `scales` beside the score. An answer is then
    `{"score": step, "scales": {name: step}}`.
    """

    takes_scales = True
    scales: tuple[str, ...] = ()

    def with_settings(self, settings: Mapping[str, Any]) -> Self:
        if not settings.get("scales"):
            return self
        bound = copy.copy(self)
        bound.scales = tuple(settings["scales"])
        return bound

    def minutes(self, systems: int) -> float:
        further = len(self.scales) * MINUTES_PER_SCALE
        return super().minutes(systems) + min(systems, self.max_outputs) * further

    def read_answer(self, answer: Any, output: str) -> ScoredAnswer:
        if not self.scales:
            return super().read_answer(answer, output)
        score, further = self._parts(answer)
        missing = [name for name in self.scales if name not in further]
        if score is None or missing:
            raise ValueError(f"a value is missing: {', '.join(missing) or 'the score'}")
        return ScoredAnswer(score, {"score": score, "scales": {name: further[name] for name in self.scales}})

    def check_draft(self, answer: Any, output: str) -> None:
        if self.scales:
            self._parts(answer)
        else:
            super().check_draft(answer, output)

    def _parts(self, answer: Any) -> tuple[int | None, dict[str, int]]:
        """Read the parts of an answer, complete or not: the score, and values of further scales by name."""
        if not isinstance(answer, dict) or not {*answer} <= {"score", "scales"}:
            raise ValueError(f"an answer is an object with score and scales, not {str(answer)[:80]!r}")
        further = answer.get("scales", {})
        if not isinstance(further, dict) or not {*further} <= {*self.scales}:
            raise ValueError(f"the scales are {', '.join(self.scales)}, not {str(further)[:80]!r}")
        score = self.scale.check(answer["score"]) if "score" in answer else None
        return score, {name: self.scale.check(step) for name, step in further.items()}

    def words_of(self, answer: ScoredAnswer) -> str:
        further = (answer.payload or {}).get("scales", {})
        named = ", ".join(f"{name} {self.scale.label(step)}" for name, step in further.items())
        return self.scale.label(answer.step) + (f" ({named})" if named else "")

    def page_data(self) -> dict[str, Any]:
        return super().page_data() | {"scales": list(self.scales)}


class Da(OnScale):
    """One output at a time, 0 to 100 (WMT 2017 to 2022)."""

    name = "da"
    title = "direct assessment"
    summary = "DA: one output, 0 to 100"
    welcome = (
        "You will see a sentence and a translation of it, and give the translation a score from 0 to 100."
    )
    task = "How well does the translation say what the source says? 0 is worst, 100 is best."
    scale = Scale(101, Fraction(0), Fraction(1), decimals=0)
    usual_delta = 2.0  # by convention
    ratio_note = (
        "A ratio depends on where the scale has its zero, which is a convention: read the points too."
    )
    usual_selection = "all"
    scores_documents = True
    reads_appraise = True


class DaSqm(Da):
    """DA+SQM: with the labelled points of scalar quality metrics (WMT 2022, 2023)."""

    name = "da-sqm"
    title = "direct assessment with labelled points (DA+SQM)"
    summary = "DA+SQM: one output, 0 to 100 with labelled points"
    task = "How well does the translation say what the source says? Any score from 0 to 100."
    labelled_points: ClassVar[tuple[tuple[int, str], ...]] = (  # on a scale of 0 to 6 in WMT 2022
        (0, "No meaning preserved"),
        (33, "Some meaning preserved"),
        (67, "Most meaning preserved and few grammar mistakes"),
        (100, "Perfect meaning and grammar"),
    )


class ContrastiveDa(OnScale):
    """All outputs side by side, each from 1 to 6 by 0.2 (Domhan et al. 2022)."""

    name = "contrastive-da"
    title = "contrastive direct assessment"
    summary = "contrastive DA: 2 to 8 outputs at once, 1 to 6 by 0.2"
    welcome = "You will see a sentence and several translations of it, and give each a score from 1 to 6."
    task = "How good is each translation of the source? 1 is worst, 6 is best."
    scale = Scale(26, Fraction(1), Fraction(1, 5), decimals=1)
    # half a step: about 2 % of a mean of 4.5 to 5, the half-width of the intervals in their Table 5
    usual_delta = 0.1
    bin_width = 0.2
    scores_documents = True
    ratio_note = (
        "A ratio on a scale from 1 to 6 depends on its zero point: the worst score counts as 1 of 6, so that "
        "a difference in points gives a smaller percentage than it would on 0 to 5. Read the points beside "
        "it."
    )
    min_outputs, max_outputs = MIN_SYSTEMS, MAX_OUTPUTS
    page_steps = 5
    typing_help = "the score: 4, or 4.6"
    page_help = "a whole point down or up"


class Preference(Protocol):
    """One of two outputs is better, or both are the same.

    The worse output gets 0 and the better one 2; if they are the same, both get 1.
    """

    name = "preference"
    title = "pairwise preference"
    summary = "preference: two outputs, the better one or the same"
    welcome = "You will see a sentence and two translations of it, and say which is better."
    task = "Which translation of the source is better?"
    scale = Scale(3, Fraction(0), Fraction(1), decimals=0)
    usual_delta = 0.1  # by convention: five more wins than losses in a hundred pairs
    bin_width = 1.0
    relative = True
    mean_title = "preferred"
    ratio_note = "Preferences have no % of baseline: shares are of ratings, a tie counts half."
    min_outputs = max_outputs = 2
    selections = ("differing", "stratified", "disagreement")  # nobody can prefer one of two equal texts
    chooses_pairs = True
    widget = "choice"
    page_steps = 1

    def shown_together(self, outputs: Sequence[str], pairs: str, baseline: int) -> list[tuple[int, ...]]:
        """Return each pair whose texts differ; with `pairs` "baseline", only pairs with the baseline."""
        return [
            pair
            for pair in combinations(range(len(outputs)), 2)
            if outputs[pair[0]] != outputs[pair[1]] and (pairs == "all" or baseline in pair)
        ]

    def usual_deviation(self) -> float:
        return math.sqrt(2)  # of −2, 0 and 2, if neither side wins and half of the items are judged the same

    def in_words(self, answers: Sequence[ScoredAnswer]) -> str:
        return ("B is better", "the same", "A is better")[answers[0].step]

    def check_together(self, steps: Sequence[int]) -> None:
        if sum(steps) != SAME * len(steps):
            raise ValueError("a preference says left, same or right: 2 and 0, 1 and 1, or 0 and 2")

    def check_accepted(self, accepted: Sequence[Sequence[int]]) -> None:
        (low, high), other = accepted
        if list(other) != [BETTER - high, BETTER - low]:
            raise ValueError(
                "one output's answer decides the other's: [2, 2] goes with [0, 0], [1, 2] with [0, 1], "
                "[1, 1] with [1, 1]"
            )

    @property
    def points(self) -> PointsFormat:
        """As a share: a win is all, a tie half."""
        return PointsFormat(1, 50.0, "%")


class PostEdit(Protocol):
    """The rater corrects the output, and the score says how much of it could stay.

    The score is 100 less the edit rate in per cent: word edits (insertions, deletions, replacements) per word
    of the corrected text, at most 100. This is the human-targeted edit rate (HTER, Snover et al. 2006)
    without shifts of whole phrases: a moved word costs two edits. In Chinese and Japanese, characters count
    as words.
    """

    name = "post-edit"
    title = "post-editing"
    summary = "post-edit: one output, which the rater corrects"
    welcome = "You will see a sentence and a translation of it, and correct the translation."
    task = "Change as little as needed for the translation to say, in good style, what the source says."
    scale = Scale(1001, Fraction(0), Fraction(1, 10), decimals=1)  # 100 − edit rate, %
    usual_delta = 2.0  # by convention
    ratio_note = "A ratio of the shares of words kept: read the points too."
    mean_title = "kept, %"
    usual_selection = "all"
    edits_text = True
    widget = "edit"
    page_steps = 100

    def read_answer(self, answer: Any, output: str) -> ScoredAnswer:
        """`{"text": the corrected output}`."""
        text = _text_of(answer, output)
        if not text.strip() and output.strip():
            raise ValueError("the corrected translation is empty: write it as it should be")
        corrected = split_words(text)
        changes = Levenshtein.distance(split_words(output), corrected)
        last = self.scale.steps - 1
        kept = last - min(last, round(last * changes / max(len(corrected), 1)))
        return ScoredAnswer(kept, {"text": text})

    def words_of(self, answer: ScoredAnswer) -> str:
        return "unchanged" if answer.step == self.scale.steps - 1 else "corrected"

    def check_draft(self, answer: Any, output: str) -> None:
        _text_of(answer, output)


def _text_of(answer: Any, output: str) -> str:
    """Return the text of a post-edit; ValueError if it is longer than MAX_TEXT and than the output."""
    text = answer.get("text") if isinstance(answer, dict) and set(answer) == {"text"} else None
    if not isinstance(text, str):
        raise ValueError(f"a post-edit is an object with a text, not {str(answer)[:80]!r}")
    most = max(MAX_TEXT, len(output))
    if len(text) > most:
        raise ValueError(f"the corrected translation has {len(text):,} characters; allowed: {most:,}")
    return text


class SegmentScores(Protocol):
    """Imported scores on any scale: z-scores, means over raters, penalties.

    The payload has the number as it was written: `{"score": "-1.6666666666666667"}`. Its step is the nearest
    millionth, which statistics use.
    """

    name = "scores"
    title = "scores of segments"
    summary = "scores: of segments, on any scale (imported)"
    welcome = "You will see a sentence and a translation of it."
    task = "How good is the translation?"
    scale = Scale(2 * 10**9 + 1, Fraction(-1000), Fraction(1, 10**6), decimals=6)
    usual_delta = 1.0  # by convention; the right `delta` depends on the scale of the scores
    ratio_note = "Where the scale has its zero is not known here: read the points."
    usual_selection = "all"
    rated_here = False

    @property
    def scale_range(self) -> str:
        return "on any scale"

    def read_value(self, value: str) -> ScoredAnswer:
        """Read a value as it is written: the scale's millionths cannot hold every number."""
        return self.read_answer({"score": value}, "")

    def read_answer(self, answer: Any, output: str) -> ScoredAnswer:
        """`{"score": "a decimal number"}`, or a step; ValueError for others, and beyond ±1000."""
        if type(answer) is int:
            return ScoredAnswer(self.scale.check(answer))
        if not isinstance(answer, dict) or set(answer) != {"score"} or not isinstance(answer["score"], str):
            raise ValueError(f"a score is an object with a number as text under score, not {answer!r}")
        score = exact(answer["score"])
        if not self.scale.lowest <= score <= self.scale.highest:
            raise ValueError(f"{float(score):g} is beyond the scores that can be kept, -1000 to 1000")
        return ScoredAnswer(round((score - self.scale.lowest) / self.scale.size), dict(answer))

    def value(self, step: int, payload: Payload | None) -> Fraction:
        return self.scale.value(step) if payload is None else exact(payload["score"])

    @property
    def points(self) -> PointsFormat:
        return PointsFormat(3)
