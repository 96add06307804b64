"""Vocabulary selections: which target subwords a sentence may use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, parsed
from creamtea.document.values import BelowOne, Positive, unstated
from creamtea.methods.family import Family, Method
from creamtea.methods.metrics import Latency, Recall
from creamtea.methods.texts import Alignment, check_within_vocabulary

SweepPoint = tuple[str, float]  # "k=200", 200.0


class Selection(Method):
    """How a system selects each sentence's vocabulary."""

    needs_head: ClassVar[bool] = False  # the variant's model must have an NVS head
    needs_lexicon: ClassVar[bool] = False  # the step reads the lexicon of an align step
    needs_model: ClassVar[bool] = True  # the selection depends on the trained model
    selects: ClassVar[bool] = True  # False: every subword of the vocabulary is allowed

    @property
    def needs_frequencies(self) -> bool:
        """True if the lexicon must also list the target subwords by frequency."""
        return False

    def sweep(self, recall: Recall) -> Sequence[SweepPoint]:
        """Return the settings for the recall step to measure, the system's own first."""
        raise NotImplementedError(f"{type(self).__name__} has no settings to sweep over")

    def curve(self) -> str:
        """Name the curve in recall plots; systems that differ only in the swept setting share a curve."""
        raise NotImplementedError(f"{type(self).__name__} does not name its recall curve")

    def allowing(self, limit: float | None) -> str:
        """Say which setting would allow a subword. `limit`: the selector's `limits` for this subword."""
        raise NotImplementedError(f"{type(self).__name__} does not say what would allow a subword")


class FullVocabulary(Selection):
    """No selection: every sentence may use the whole vocabulary."""

    kind: Literal["full"] = "full"
    title: ClassVar[str] = "full vocabulary"
    worker: ClassVar[str] = "creamtea_workers.selection.tables"
    selects: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False

    def describe(self) -> str:
        return "full vocabulary"

    def sweep(self, recall: Recall) -> Sequence[SweepPoint]:
        return [("full", 0.0)]


class LexiconSelection(Selection):
    """The k most probable target subwords of each source subword, by the alignment lexicon.

    `frequent` adds the most frequent subwords of the training targets, as in Marian's shortlists.
    """

    kind: Literal["lexicon"]
    k: Positive = 200  # [subwords] of the target per source subword
    # [subwords] that every sentence may use: the most frequent ones of the training targets
    frequent: Annotated[int, Field(ge=0, le=10**9)] = unstated(0)
    title: ClassVar[str] = "alignment lexicon"
    worker: ClassVar[str] = "creamtea_workers.selection.tables"
    needs_lexicon: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False

    @property
    def needs_frequencies(self) -> bool:
        return self.frequent > 0

    def describe(self) -> str:
        return f"lexicon k={self.k}{self._frequent()}"

    def sweep(self, recall: Recall) -> Sequence[SweepPoint]:
        return [(f"k={k}", k) for k in (self.k, *recall.k)]

    def curve(self) -> str:
        return f"lexicon{self._frequent()}"

    def _frequent(self) -> str:
        return f" + {self.frequent:,} frequent" if self.frequent else ""

    def allowing(self, limit: float | None) -> str:
        return "no k: the lexicon does not have it" if limit is None else f"k of {limit:.0f} or more"

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        if selection := parsed(cls, block):
            yield from check_k((*path, "k"), selection.k, study)
            yield from check_within_vocabulary(path, block, ("frequent",), study)


def check_k(path: KeyPath, k: int, study: RawStudy) -> Iterator[Mistake]:
    """Report k if the lexicon does not hold k candidates."""
    alignment = parsed(Alignment, study.data.get("alignment", {}))
    if alignment and k > alignment.max_k:
        yield Mistake(path, str(k), f"at most alignment.max_k = {alignment.max_k}")


class NvsSelection(Selection):
    """Target subwords whose NVS probability exceeds the threshold (λ in Domhan et al. 2022).

    With `context: word`, the head predicts from each source word alone (the paper's "no context", Table 6).
    """

    kind: Literal["nvs"]
    threshold: BelowOne = 0.9  # subwords with a probability above this are allowed
    # input of the head: the sentence, or each word alone (then the union over words is allowed)
    context: Literal["sentence", "word"] = "sentence"
    title: ClassVar[str] = "neural vocabulary selection"
    worker: ClassVar[str] = "creamtea_workers.selection.nvs"
    needs_head: ClassVar[bool] = True

    def describe(self) -> str:
        return f"NVS λ={self.threshold:g}{self._words()}"

    def sweep(self, recall: Recall) -> Sequence[SweepPoint]:
        return [(f"threshold={value:g}", value) for value in (self.threshold, *recall.thresholds)]

    def curve(self) -> str:
        return f"NVS{self._words()}"

    def allowing(self, limit: float | None) -> str:
        if not limit:
            return "no threshold: its probability is 0"
        digits = 2 - math.floor(math.log10(limit))  # three significant digits
        return f"a threshold below {math.floor(limit * 10**digits) / 10**digits:.3g}"  # rounded down

    def _words(self) -> str:
        return " word by word" if self.context == "word" else ""


class MapSelection(Selection):
    """Target subwords that the vmap.txt of a CTranslate2 folder allows, applied as in CTranslate2.

    Sentences are translated one at a time, because CTranslate2 takes the union of a batch.
    """

    kind: Literal["vmap"]
    title: ClassVar[str] = "vocabulary map"
    worker: ClassVar[str] = "creamtea_workers.selection.tables"

    def describe(self) -> str:
        return "vmap.txt"

    def sweep(self, recall: Recall) -> Sequence[SweepPoint]:
        return [("vmap.txt", 0.0)]

    def curve(self) -> str:
        return "vmap.txt"

    def allowing(self, limit: float | None) -> str:
        return "another vmap.txt: it has no setting"

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        model = (study.named("systems", path[1]) or {}).get("model")
        if not isinstance(model, dict) or "ctranslate2" not in model:
            misplaced = "the vocabulary map of a system that CTranslate2 does not translate"
            yield Mistake(
                (*path, "kind"), misplaced, "a system of `model: {ctranslate2: FOLDER}`, or lexicon"
            )
        latency = parsed(Latency, study.data.get("latency"))
        timed = latency is not None and (latency.systems is None or path[1] in latency.systems)
        if latency is not None and timed and latency.batch_size > 1:
            batched = f"{path[1]} with its vocabulary map, which CTranslate2 applies to a batch as a whole"
            yield Mistake(("latency", "batch_size"), batched, "1, or latency.systems without it")


SELECTIONS: Family[Any] = Family("selection", Selection, "creamtea.methods.selections", ("build", "count"))
