"""Analysis `empty_string`: how often a system's model prefers the empty string to the system's output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from creamtea.contract.columns import Column
from creamtea.contract.step import StepKind
from creamtea.document.mistakes import KeyPath, Mistake
from creamtea.document.raw import Block, RawStudy
from creamtea.document.values import Name, Positive
from creamtea.methods.analysis import (
    GAP,
    MODEL_INPUTS,
    STATISTICS,
    Analysis,
    Measure,
    PointPlot,
    TableLayout,
    baseline_or_first,
    deviation_of,
    not_analysed,
    share,
)
from creamtea.methods.planning import Inputs, Key, Planner
from creamtea.methods.searches import SEARCHES, InPrecision
from creamtea.methods.selections import SELECTIONS


class EmptyStringParams(InPrecision):
    pass


class EmptyString(Analysis):
    """How often the model prefers the empty string to the system's output (Peters and Martins 2021, Table 4,
    which is of outputs that are not empty), and by how much (as SCONES, Figure 6, of exact search)."""

    kind: Literal["empty_string"]
    # systems that are analysed; none named: every one with the full vocabulary that searches
    systems: list[Name] | None = None
    sentences: Positive | None = None  # [segments] only the first of the test set
    # systems that the others are compared with, analysed too; none named: the study's baseline, or the first
    baselines: list[Name] | None = None

    title: ClassVar[str] = "Empty string"
    needs_references: ClassVar[bool] = False
    rows: ClassVar[Literal["variant", "system"]] = "system"
    over: ClassVar[tuple[str, ...]] = ("empty_preferred",)
    step: ClassVar[StepKind[EmptyStringParams]] = StepKind(
        "empty_string",
        3,
        "analyse the empty string",
        EmptyStringParams,
        inputs={**MODEL_INPUTS, "decode": "the system's translations"},
        files={
            "empty_string.jsonl": "index, output and empty: log-probabilities; null: minus infinity",
            **STATISTICS,
        },
        metrics={
            "empty_preferred": "share; detail.output_empty",
            "empty_impossible": "share of sentences for which its probability is 0",
            "log_prob_gap": "output less empty where finite; detail.deviation, detail.infinite",
            "log_prob_output": "mean",
            "log_prob_empty": "mean",
        },
        points={"log_prob_gap": "histogram: the middle of a bar, its share of the sentences"},
    )
    paired: ClassVar[frozenset[str]] = frozenset(
        {
            *("empty_higher", "empty_preferred", "empty_impossible"),
            *("log_prob_gap", "log_prob_gap_deviation", "log_prob_output", "log_prob_empty"),
        }
    )
    tables: ClassVar[tuple[TableLayout, ...]] = (
        TableLayout(
            "system",
            (
                Measure(
                    share(
                        "empty_higher",
                        "more probable",
                        "sentences whose output is less probable than the empty string",
                        "lower",
                    ),
                    metric="empty_preferred",
                    counts=lambda detail: (detail["count"] - detail["output_empty"], detail["of"]),
                ),
                Measure(
                    share("empty_preferred", "preferred", "these, and those whose output is empty", "lower")
                ),
                Measure(share("empty_impossible", "impossible", "sentences where its probability is 0")),
                GAP,
                deviation_of("log_prob_gap", "gap"),
                Measure(Column("log_prob_output", "log p output", 2, note="mean log-probability")),
                Measure(Column("log_prob_empty", "log p empty", 2, note="of the empty string")),
            ),
        ),
    )
    plots: ClassVar[tuple[PointPlot, ...]] = (
        PointPlot(
            "Log-probability of the output less that of the empty string",
            Column("gap", "gap in log-probability", 2, unit="nats"),
            share("sentences", "sentences", ""),
            {"log_prob_gap": ""},
            "gap",
        ),
    )

    @property
    def first_sentences(self) -> int | None:
        return self.sentences

    @classmethod
    def fits(cls, system: Block) -> bool:
        return has_full_vocabulary(system) and searches(system)

    def plan(self, name: str, planner: Planner) -> None:
        test_set = planner.test_set(self.test_set, self.sentences)
        names = self.systems if self.systems is not None else planner.searching_systems(self.test_set)
        steps: dict[str, list[Key]] = {}
        for system in dict.fromkeys([*names, *(self.baselines or [])]):
            variant, precision = planner.variant_of(system), planner.precision_of(system)
            for seed in planner.seeds_of(system):
                own = {"analysis": name, "variant": variant, "seed": seed}
                place = f"{name}/{system}/{seed}"
                decode = planner.decode_system(place, system, seed, test_set, own)
                models = planner.models_of(system, seed)
                inputs: Inputs = {"test_set": [test_set], "decode": [decode], **models}
                labels = {**own, "system": system, "test_set": self.test_set}
                params = EmptyStringParams.model_validate({"precision": precision})
                step = planner.add(self.step, place, params, inputs, labels)
                steps.setdefault(system, []).append(step)
        baselines = self.baselines or baseline_or_first(planner.baseline, list(steps))
        self.plan_differences(name, planner, steps, baselines)

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        systems = block.get("systems")
        yield from study.unknown_names((*path, "systems"), systems, "systems")
        yield from study.unknown_names((*path, "baselines"), block.get("baselines"), "systems")
        yield from not_analysed((*path, "baselines"), block.get("baselines"), systems)
        named = [
            ((*path, key, index), name)
            for key in ("systems", "baselines")
            for index, name in enumerate(block[key] if isinstance(block.get(key), list) else [])
        ]
        for place, name in named:
            system = study.named("systems", name) or {}
            if "outputs" in system or "reference" in system:
                yield Mistake(place, f"{name}, which runs no model", "a system with a variant")
            if not has_full_vocabulary(system):
                found = f"{name}, which selects its vocabulary"
                yield Mistake(place, found, "a system with the full vocabulary")
            if not searches(system):
                found = f"{name}, which does not search for a high score"
                yield Mistake(place, found, "a system with greedy, beam or exact search")


def has_full_vocabulary(system: Block) -> bool:
    """Whether a raw system selects nothing; what is malformed counts as the default."""
    selection = SELECTIONS.kind_of(system.get("selection"))
    return selection is None or not selection.selects


def searches(system: Block) -> bool:
    """Whether a raw system searches for a high score; what is malformed counts as the default."""
    search = SEARCHES.kind_of(system.get("search"))
    return search is None or search.maximises
