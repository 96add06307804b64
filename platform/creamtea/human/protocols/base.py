"""The interface of a rating protocol, one object with everything that depends on how people rate; and scales.

A plug-in's protocol is a subclass (or an instance of one) under an entry point of the group
`creamtea.protocols` with the protocol's name. Nothing else in creamtea has to know it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal

from creamtea.human.protocols.taxonomy import Taxonomy
from creamtea.store.tables import Payload

Selection = Literal["all", "differing", "stratified", "disagreement"]
SELECTIONS: tuple[Selection, ...] = ("all", "differing", "stratified", "disagreement")

MIN_SYSTEMS, MAX_SYSTEMS = 2, 60
MAX_OUTPUTS = 8  # side by side

MINUTES_PER_SOURCE = 0.25  # to read a source: a rule of thumb for the preview

# ---------------------------------------------------------------- scales
#
# A score is stored as the number of steps above the scale's lowest value. 1 + 0.2·i is not exact in binary,
# so all arithmetic here is with integers or `Fraction`.

MAX_DIGITS = 60  # of a number; also the maximum exponent: Fraction("1e999999999") takes all memory


@dataclass(frozen=True)
class Scale:
    """`steps` equally spaced values from `lowest`, `size` apart; labels have `decimals` decimals."""

    steps: int
    lowest: Fraction
    size: Fraction
    decimals: int

    @property
    def highest(self) -> Fraction:
        return self.lowest + (self.steps - 1) * self.size

    def check(self, step: object) -> int:
        """Return the step if it is a step of the scale; ValueError otherwise (also for True and 3.0)."""
        if type(step) is not int or not 0 <= step < self.steps:
            raise ValueError(f"a score is a whole number of steps from 0 to {self.steps - 1}, not {step!r}")
        return step

    def value(self, step: int) -> Fraction:
        """Return the exact value of a step."""
        return self.lowest + self.check(step) * self.size

    def label(self, step: int) -> str:
        """Return the label that people read: "1.0", "1.2", …, "6.0"; "0", …, "100"."""
        return f"{float(self.value(step)):.{self.decimals}f}"

    def step_of(self, text: str) -> int:
        """Return the step of a written value; ValueError if the text is not a value of the scale."""
        steps = (exact(text) - self.lowest) / self.size
        step = round(steps)
        # tools that compute 1 + 12 · 0.2 write 3.4000000000000004
        if abs(steps - step) > Fraction(1, 10**9) or not 0 <= step < self.steps:
            first, second, last = (self.label(step) for step in (0, 1, self.steps - 1))
            raise ValueError(f"{text!r} is not a value of the scale {first}, {second}, …, {last}")
        return step


def exact(text: str) -> Fraction:
    """Parse a decimal number (-0.1, 3, 1e-05) as a fraction. ValueError for other text and infinity."""
    try:
        if len(text) > MAX_DIGITS or "/" in text or "_" in text:
            raise ValueError
        _, _, exponent = text.lower().partition("e")
        if exponent and abs(int(exponent)) > MAX_DIGITS:
            raise ValueError
        return Fraction(text)
    except ValueError:
        raise ValueError(f"{text[:60]!r} is not a number") from None


# ---------------------------------------------------------------- protocols


@dataclass(frozen=True)
class ScoredAnswer:
    """A rater's answer about one output as it is stored.

    `step` is its score, the number of steps above the scale's lowest value; statistics use only the score.
    `payload` has the rest of an answer that is more than this number, as JSON; None for a score alone.
    """

    step: int
    payload: Payload | None = None

    @property
    def answer(self) -> Any:
        """The rater's answer in the form that the board and `Protocol.read` use."""
        return self.step if self.payload is None else self.payload


@dataclass(frozen=True)
class PointsFormat:
    """How reports write points of the scale: multiplied by `factor`, with `decimals` and a unit."""

    decimals: int
    factor: float = 1.0
    unit: str = ""

    def text(self, value: float) -> str:
        return f"{value * self.factor:g}" + (f" {self.unit}" if self.unit else "")

    def difference(self, value: float) -> str:
        """Write a difference: "0.2 points", "5 %"."""
        return f"{value * self.factor:.3g} {self.unit or 'points'}"


class Protocol:
    """A way to rate. Subclasses define the attributes without a default and override the others."""

    # ------------------------------------------------------------ names and texts
    name: ClassVar[str]  # in campaigns, files and options
    title: ClassVar[str]  # in reports: "contrastive direct assessment"
    summary: ClassVar[str]  # for organisers, in a line
    welcome: ClassVar[str]  # for raters, before they begin
    task: ClassVar[str]  # above the outputs

    # ------------------------------------------------------------ scores
    scale: ClassVar[Scale]
    usual_delta: ClassVar[float]  # the smallest difference that matters, points of the scale
    bin_width: ClassVar[float] = 5.0  # points, for histograms of scores
    # True: a score says which output of an item is better, not how good it is. Each item is then a unit of
    # its own. Reports count wins and losses, without ratios to the baseline, raters' severities or WMT's
    # ranking.
    relative: ClassVar[bool] = False
    scores_documents: ClassVar[bool] = False  # whether a whole document can be given a score on the scale
    takes_scales: ClassVar[bool] = False  # whether the setting `scales` adds further scales
    mean_title: ClassVar[str] = "mean"  # the title of a system's mean in reports
    ratio_note: ClassVar[str]  # how to read a ratio to the baseline, or why there is none

    # ------------------------------------------------------------ items
    min_systems: ClassVar[int] = MIN_SYSTEMS
    max_systems: ClassVar[int] = MAX_SYSTEMS
    min_outputs: ClassVar[int] = 1  # shown at once
    max_outputs: ClassVar[int] = 1
    selections: ClassVar[tuple[Selection, ...]] = SELECTIONS
    usual_selection: ClassVar[Selection] = "differing"
    minutes_per_output: ClassVar[float] = 0.25  # to read and score an output, by rule of thumb
    chooses_pairs: ClassVar[bool] = False  # whether the setting `pairs` chooses what is shown together
    reads_appraise: ClassVar[bool] = False  # whether Appraise can export scores of this protocol
    marks_errors: ClassVar[bool] = False  # whether an answer's payload holds marked errors (`spans`)
    edits_text: ClassVar[bool] = False  # whether an answer's payload holds the corrected output (`post_edit`)
    rated_here: ClassVar[bool] = True  # False: there is no board for it; campaigns of it are imported
    usual_taxonomy: ClassVar[Taxonomy | None] = None  # of marked errors, unless the organiser gives one

    # ------------------------------------------------------------ the board
    widget: ClassVar[str] = "slider"  # registered by one of the board's scripts
    scripts: ClassVar[tuple[Path, ...]] = ()  # JavaScript of the protocol's own widget
    styles: ClassVar[tuple[Path, ...]] = ()  # CSS of that widget
    page_steps: ClassVar[int] = 10  # steps that Page up moves by, and from one mark to the next
    labelled_points: ClassVar[tuple[tuple[int, str], ...]] = ()  # steps and their meanings
    typing_help: ClassVar[str] = "the score: 7, 75, 100"
    page_help: ClassVar[str] = "ten points down or up"

    # ------------------------------------------------------------ items and planning

    def shown_together(self, outputs: Sequence[str], pairs: str, baseline: int) -> list[tuple[int, ...]]:
        """Return the groups of systems (positions) that share an item of a segment with these outputs.

        By default all systems share an item if outputs are shown side by side; otherwise systems share an
        item if their texts are equal.
        """
        if self.max_outputs > 1:
            return [tuple(range(len(outputs)))]
        equal: dict[str, list[int]] = {}
        for system, text in enumerate(outputs):
            equal.setdefault(text, []).append(system)
        return [tuple(systems) for systems in equal.values()]

    def minutes(self, systems: int) -> float:
        """Return the minutes per item of a campaign with this number of systems, by rule of thumb."""
        return MINUTES_PER_SOURCE + min(systems, self.max_outputs) * self.minutes_per_output

    def usual_deviation(self) -> float:
        """Return the standard deviation [points] of differences between two systems to plan with."""
        from creamtea.stats.power import default_deviation  # scipy.stats takes a second to import

        return default_deviation(float(self.scale.lowest), float(self.scale.highest))

    def far_apart(self) -> float:
        """Return the default distance [points] from which ratings of one output are disputed."""
        return float(self.scale.highest - self.scale.lowest) / 2

    # ------------------------------------------------------------ answers

    def with_settings(self, settings: Mapping[str, Any]) -> Protocol:
        """Return the protocol bound to a campaign's settings (`Campaign.settings`).

        Code that reads or shows answers calls `find_protocol(name, settings)`. InputError for settings that
        do not fit.
        """
        return self

    def read(self, answers: Sequence[Any], outputs: Sequence[str]) -> list[ScoredAnswer]:
        """Read the answers about the shown outputs, one for each; ValueError if they do not fit."""
        scored = [self.read_answer(answer, output) for answer, output in zip(answers, outputs, strict=True)]
        self.check_together([answer.step for answer in scored])
        return scored

    @property
    def has_ratio(self) -> bool:
        """Whether a mean can be a percentage of the baseline's mean, which must be above 0."""
        return not self.relative and self.scale.highest > 0

    def read_answer(self, answer: Any, output: str) -> ScoredAnswer:
        """Read a complete answer about one output; by default a step of the scale.

        The answer may be anything; ValueError if it does not fit.
        """
        return ScoredAnswer(self.scale.check(answer))

    def read_value(self, value: str) -> ScoredAnswer:
        """Read an answer that a file of ratings writes as a value of the scale; ValueError for others."""
        return ScoredAnswer(self.scale.step_of(value))

    def value(self, step: int, payload: Payload | None) -> Fraction:
        """Return the exact score of a stored answer; statistics use the step's value, which is close."""
        return self.scale.value(step)

    def in_words(self, answers: Sequence[ScoredAnswer]) -> str:
        """Return a rater's answers to the outputs of an item in words, in the order shown."""
        return " · ".join(map(self.words_of, answers))

    def words_of(self, answer: ScoredAnswer) -> str:
        """Return the answer to one output in words."""
        return self.scale.label(answer.step)

    def check_draft(self, answer: Any, output: str) -> None:
        """Raise ValueError for an impossible draft of an answer; by default, for an incomplete answer."""
        self.read_answer(answer, output)

    def check_together(self, steps: Sequence[int]) -> None:
        """Raise ValueError if scores of one item contradict each other."""

    def check_accepted(self, accepted: Sequence[Sequence[int]]) -> None:
        """Raise ValueError if accepted steps (lowest and highest per output) contradict each other."""

    # ------------------------------------------------------------ pages and reports

    def page_data(self) -> dict[str, Any]:
        """Return the data that the board's widget gets beside the item."""
        return {
            "widget": self.widget,
            "task": self.task,
            "stacked": self.max_outputs == 1,
            "scale": self.scale_data(),
            "help": {"typing": self.typing_help, "page": self.page_help},
        }

    def scale_data(self) -> dict[str, Any] | None:
        """Return the scale as the board draws it; None if raters set no value on it."""
        scale = self.scale
        return {
            "labels": [scale.label(step) for step in range(scale.steps)],
            "marks": list(range(0, scale.steps, self.page_steps)),
            "points": [list(point) for point in self.labelled_points],
            "page": self.page_steps,
        }

    @property
    def scores_each(self) -> int:
        """The number of scores per judgement: a pair has two, which add up to a constant."""
        return 2 if self.relative else 1

    @property
    def judged_one(self) -> str:
        """The noun for the object of a judgement."""
        return "pair" if self.relative else "output"

    @property
    def judged(self) -> str:
        """The plural noun for the objects of judgements."""
        return f"{self.judged_one}s"

    @property
    def points(self) -> PointsFormat:
        return PointsFormat(self.scale.decimals + 1)

    @property
    def scale_range(self) -> str:
        """The scale in words: "1.0 to 6.0 in steps of 0.2"."""
        scale = self.scale
        return f"{scale.label(0)} to {scale.label(scale.steps - 1)} in steps of {float(scale.size):g}"
