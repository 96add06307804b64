"""Analyses: what the papers measure beyond the main table. Each is a kind of step of the same name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from creamtea.contract.kind import StepKind, StepParams
from creamtea.document.mistakes import KeyPath, Mistake, one_of
from creamtea.document.raw import Block, RawStudy
from creamtea.document.values import Name, Positive
from creamtea.methods.displays import CellPlot, IdiomList, PointPlot, RowPlot, TableLayout
from creamtea.methods.family import Family, Method
from creamtea.methods.planning import Inputs, Key, Labels, Planner

Width = Annotated[int, Field(ge=1, le=1000)]  # of a beam

# the inputs of every step that runs a trained variant over a test set
MODEL_INPUTS = {"test_set": "segments", "subwords": "subwords", "train": "the trained variant"}


class Analysis(Method):
    """Something measured over a test set, by steps of its own kind. The docstring of an analysis says what is
    measured, and where in the papers: reports show it."""

    test_set: Name  # a test set of the study
    step: ClassVar[StepKind[Any]]
    tables: ClassVar[tuple[TableLayout, ...]]
    plots: ClassVar[tuple[CellPlot | RowPlot | PointPlot, ...]] = ()
    lists: ClassVar[tuple[IdiomList, ...]] = ()
    over: ClassVar[tuple[str, ...]] = ()  # columns of the first table that plots draw over a number
    rows: ClassVar[Literal["variant", "system"]] = "variant"  # what the rows of its tables are
    of_models: ClassVar[bool] = True  # it needs a model that the study trains, not only outputs

    def describe(self) -> str:
        return self.title

    @classmethod
    def about(cls) -> str:
        return " ".join((cls.__doc__ or "").split())

    @property
    def first_sentences(self) -> int | None:
        """How many of the test set's first sentences are analysed; None: all."""
        return None

    @classmethod
    def fits(cls, system: Block) -> bool:
        """Of an analysis of systems that names none: whether it includes a raw system."""
        return True

    def plan(self, name: str, planner: Planner) -> None:
        """Add the steps of the analysis that the study calls `name`."""
        raise NotImplementedError(f"{type(self).__name__} plans no steps")

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from study.unknown_key(path, block, "test_set", "test_sets")


class OfVariants(Analysis):
    """Analyses of trained variants, one step for each variant and seed."""

    variants: list[Name] | None = None  # variants that are analysed; none named: every one that it fits
    needs_head: ClassVar[bool] = False  # only variants with an NVS head fit

    def plan(self, name: str, planner: Planner) -> None:
        test_set = planner.test_set(self.test_set, self.first_sentences)
        for variant in self.variants if self.variants is not None else planner.variants(self.needs_head):
            for seed in planner.seeds(variant):
                labels = {"analysis": name, "variant": variant, "seed": seed}
                place = f"{name}/{variant}/{seed}"
                inputs: Inputs = {"test_set": [test_set], **planner.model(variant, seed)}
                inputs |= self.more_inputs(place, test_set, planner, labels)
                labels = {**labels, "test_set": self.test_set}
                planner.add(self.step, place, self.params(planner), inputs, labels)

    def params(self, planner: Planner) -> StepParams:
        """The parameters of its steps: the settings of the same names."""
        model = self.step.params
        params: StepParams = model.model_validate({name: getattr(self, name) for name in model.model_fields})
        return params

    def more_inputs(self, place: str, test_set: Key, planner: Planner, labels: Labels) -> Inputs:
        """What a step reads beside test set and trained variant; `labels` name the variant and seed."""
        return {}

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        yield from study.unknown_names((*path, "variants"), block.get("variants"), "variants")
        if cls.needs_head:
            yield from _check_heads(path, block.get("variants"), study)


class OfFirstSentences(OfVariants):
    """Analyses of variants that may take only the first sentences of their test set."""

    sentences: Positive | None = None  # [segments] only the first of the test set

    @property
    def first_sentences(self) -> int | None:
        return self.sentences


def _check_heads(path: KeyPath, variants: Any, study: RawStudy) -> Iterator[Mistake]:
    with_head = [name for name, variant in study.blocks("variants") if variant.get("nvs") is not None]
    for index, name in enumerate(variants if isinstance(variants, list) else []):
        if study.named("variants", name) is not None and name not in with_head:
            found = f"{name}, which has no NVS head"
            allowed = one_of(with_head, what="a variant with `nvs: {}`")
            yield Mistake((*path, "variants", index), found, allowed)
    if variants is None and not with_head:
        yield Mistake(path, "no variant with an NVS head", "a block `nvs: {}` in a variant")


ANALYSES: Family[Any] = Family("analysis", Analysis, "creamtea.methods.analyses", ())
