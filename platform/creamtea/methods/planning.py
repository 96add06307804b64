"""The interface of a study's plan for methods (`creamtea.study.plan` implements it)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from creamtea.contract.step import P, StepKind
from creamtea.document.mistakes import KeyPath
from creamtea.document.values import Strict
from creamtea.methods.metrics import Bleu, Chrf, Significance
from creamtea.methods.searches import Search
from creamtea.methods.texts import Alignment, Languages, Tokenized

if TYPE_CHECKING:
    from creamtea.methods.corpora import Corpus

Key = str  # key of a step
Inputs = dict[str, list[Key]]  # keys by role
Labels = dict[str, Any]  # labels of a place, by which the report finds it
File = tuple[KeyPath, str]  # place in the study that names a user's file; its path, relative to --data


class HeldOut(Strict):
    """The source side of a test set, whose sentences training text must not contain."""

    source: str
    tokenized: Tokenized


@dataclass(frozen=True)
class CheckedFile:
    """A file whose lines the plan checks: `read` raises ValueError for a wrong line.

    `lines`: number of first lines to check; None: all.
    """

    file: File
    lines: int | None
    read: Callable[[str], object]
    allowed: str


@dataclass
class TextPlan:
    """Inputs and files of the step that prepares a corpus or a test set."""

    inputs: Inputs = field(default_factory=dict)
    aligned: list[list[File]] = field(default_factory=list)  # groups of files whose lines belong together
    checked: list[CheckedFile] = field(default_factory=list)
    held_out: list[HeldOut] | None = None
    corpus: Corpus | None = None  # the corpus that a test set's sentences resemble


class Planner(Protocol):
    """The study's steps. Each is planned once, when it is first requested."""

    @property
    def languages(self) -> Languages: ...

    @property
    def alignment(self) -> Alignment: ...

    @property
    def bleu(self) -> Bleu:
        """The BLEU that scores outputs of analyses: the study's own, if it has one."""

    @property
    def chrf(self) -> Chrf:
        """The chrF that scores outputs of analyses: the study's own, if it has one."""

    @property
    def significance(self) -> Significance: ...

    @property
    def baseline(self) -> str:
        """The study's baseline, a system."""

    # ------------------------------------------------------------ contents of the study

    def corpus_spec(self, name: str) -> Corpus: ...

    def held_out(self, test_set: str) -> HeldOut:
        """Return the source of a test set of files."""

    def variants(self, with_head: bool = False) -> list[str]:
        """Return the names of all variants, or of the variants with an NVS head."""

    def seeds(self, variant: str) -> Sequence[int]: ...

    def seeds_of(self, system: str) -> Sequence[int]:
        """Return the seeds to decode with. An ensemble has one."""

    def variant_of(self, system: str) -> str: ...

    def searching_systems(self, test_set: str) -> list[str]:
        """Return the full-vocabulary systems that search for a high score and translate the test set."""

    def precision_of(self, system: str) -> str: ...

    def training_corpus(self) -> str | None:
        """Return the training corpus of the baseline or the first variant; None if nothing is trained."""

    # ------------------------------------------------------------ steps

    def corpus(self, name: str) -> Key: ...

    def subwords(self, corpus: str, name: str) -> Key: ...

    def encode(self, corpus: str, subwords: str, trained_on: str | None = None) -> Key:
        """Encode a corpus in its own subwords, or in the subwords of the corpus `trained_on`."""

    def lexicon(self, variant: str) -> Key: ...

    def test_set(self, name: str, sentences: int | None = None) -> Key:
        """Add a whole test set, or only its first sentences."""

    def model(self, variant: str, seed: int) -> Inputs:
        """Return the inputs `subwords` and `train` of a step that runs a trained variant."""

    def models_of(self, system: str, seed: int) -> Inputs:
        """Return the inputs `subwords` and `train` for a system; an ensemble has the models of all seeds."""

    def decode_variant(
        self, place: str, variant: str, seed: int, search: Search, test_set: Key, labels: Labels
    ) -> Key:
        """Add translations by a variant with the full vocabulary in fp32."""

    def decode_system(self, place: str, system: str, seed: int, test_set: Key, labels: Labels) -> Key: ...

    def outputs(self, test_set: str) -> list[tuple[Labels, Key]]:
        """Return the outputs of every system (except human references) and seed on a test set.

        An output is its labels (system, test_set; for trained systems also variant and seed) and its step.
        """

    def lines_of(self, test_set: str, file: File) -> tuple[dict[str, str], int | None]:
        """Check that a file has a line for each line of a test set.

        Returns the file's digest by path, and the number of first lines that count (None: all).
        """

    def add(
        self,
        kind: StepKind[P],
        place: str,
        params: P,
        inputs: Inputs,
        labels: Labels,
        paths: Sequence[str] = (),
    ) -> Key:
        """Add a step and its place in the study ("curse/softmax/1"), unless they exist.

        `paths`: the user's files that the step reads.
        """
