"""Training objectives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, shown
from creamtea.document.values import BelowOne, Factor
from creamtea.methods.family import Family, Method

# label smoothing mixes the gold label with the uniform distribution over all V (as in the papers), or with
# the subwords' relative frequencies in the training targets (as in the code of Peters and Martins 2021)
Smoothing = Literal["uniform", "unigram"]


class Objective(Method):
    """The training loss of a variant, which also defines how search scores tokens."""

    # a note on using its largest token score as a confidence; "" if the score is a probability
    confidence_note: ClassVar[str] = ""
    # why perplexity on development text is meaningless; "" if it is not
    perplexity_note: ClassVar[str] = ""

    def initial_logits(self, vocabulary_size: int) -> float:
        """Return the standard deviation of a Transformer's logits before training."""
        return 1.0


class FenchelYoung(Objective):
    """Objectives whose label smoothing may mix in the unigram distribution."""

    label_smoothing: BelowOne = 0.0  # share of `smoothing` in the target distribution
    # the distribution to mix in: uniform, or the frequencies of the training targets
    smoothing: Smoothing = "uniform"

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        """Require a label_smoothing for `smoothing: unigram`, at least in one member of the same grid."""
        if block.get("smoothing") != "unigram":
            return
        section, name = str(path[0]), str(path[1])
        objectives = [
            (study.named(section, member) or {}).get("objective") for member in study.members(section, name)
        ]
        if not any(isinstance(block, dict) and block.get("label_smoothing", 0) != 0 for block in objectives):
            allowed = "a label_smoothing above 0 beside it, or no `smoothing`"
            yield Mistake((*path, "smoothing"), "unigram without label_smoothing", allowed)

    def smoothing_words(self) -> str:
        """Return "" or " ε=0.1 unigram"."""
        if not self.label_smoothing:
            return ""
        return f" ε={self.label_smoothing:g}" + (" unigram" if self.smoothing == "unigram" else "")


class Softmax(FenchelYoung):
    """Cross-entropy; label smoothing mixes the one-hot target with `smoothing`."""

    kind: Literal["softmax"]
    title: ClassVar[str] = "softmax cross-entropy"
    worker: ClassVar[str] = "creamtea_workers.objectives.linear"

    def describe(self) -> str:
        return f"softmax{self.smoothing_words()}"


class Scones(Objective):
    """SCONES (Stahlberg and Kumar 2022, Eq. 6): alpha weighs the negative labels.

    Label smoothing applies to each binary label (Eqs. 11 and 12).
    """

    kind: Literal["scones"]
    alpha: Factor = 0.5  # weight of the negative labels
    label_smoothing: BelowOne = 0.0  # of each binary label
    title: ClassVar[str] = "single-label contrastive objective for non-exclusive sequences"
    worker: ClassVar[str] = "creamtea_workers.objectives.linear"
    confidence_note: ClassVar[str] = (
        "of the largest σ, which SCONES trains as the probability of one binary question: a different "
        "quantity from the largest probability of a distribution"
    )
    perplexity_note: ClassVar[str] = "its scores need not sum to 1: a model that accepts all words is best"

    def describe(self) -> str:
        smoothing = f" λ={self.label_smoothing:g}" if self.label_smoothing else ""
        return f"SCONES α={self.alpha:g}{smoothing}"


MIN_ALPHA, MAX_ALPHA = 1.000001, 50.0  # the range of fp64 (creamtea_workers.objectives.entmax)


class Entmax(FenchelYoung):
    """alpha-entmax Fenchel-Young loss (Peters and Martins 2021), with Fenchel-Young label smoothing."""

    kind: Literal["entmax"]
    # 1 would be softmax, 2 is sparsemax; the larger, the sparser
    alpha: Annotated[float, Field(ge=MIN_ALPHA, le=MAX_ALPHA)] = 1.5
    # standard deviation of a Transformer's logits before training; none: V^(1 - alpha), at least 0.01
    initial_scale: Factor | None = None
    title: ClassVar[str] = "sparse entmax loss"
    worker: ClassVar[str] = "creamtea_workers.objectives.entmax"
    perplexity_note: ClassVar[str] = "one reference token with probability 0 makes it infinite"

    def describe(self) -> str:
        return f"{self.alpha:g}-entmax{self.smoothing_words()}"

    def initial_logits(self, vocabulary_size: int) -> float:
        """Return V^(1 - α), at least 0.01.

        With a deviation of 1, only some ten of 4,000 words have a probability above 0, and only these and the
        gold word get a gradient. Near uniform p, d log p_i / dz_i is p_i^(1 - α) = V^(α - 1), for softmax 1:
        with V^(1 - α), log-probabilities spread like softmax's with 1. Below 0.01 hardly any gradient would
        reach the decoder.
        """
        return self.initial_scale or max(vocabulary_size ** (1 - self.alpha), 0.01)

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        alpha = block.get("alpha")
        if not isinstance(alpha, int | float):
            return
        if 1 <= alpha < MIN_ALPHA:
            allowed = f"at least {MIN_ALPHA}: closer to 1, entmax differs from softmax by less than 0.000001"
            yield Mistake((*path, "alpha"), shown(alpha), f"{allowed} (`kind: softmax`)", settled=True)
        elif alpha > MAX_ALPHA:
            allowed = (
                f"at most {MAX_ALPHA:g}: above that, the threshold of a large vocabulary is too small for a "
                "float, and almost every word already has probability 0"
            )
            yield Mistake((*path, "alpha"), shown(alpha), allowed, settled=True)


OBJECTIVES: Family[Any] = Family("objective", Objective, "creamtea.methods.objectives", ("build",))
