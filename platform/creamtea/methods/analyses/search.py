"""Analyses of searches: beam sizes, search errors, short hypotheses and the empty string."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from creamtea.contract.step import Column, StepKind, StepParams
from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, repeated
from creamtea.document.values import Above0, Name, Positive
from creamtea.methods.analysis import (
    BEAM,
    BLEU,
    EMPTY,
    GAP,
    LENGTH,
    MODEL_INPUTS,
    STATISTICS,
    Analysis,
    CellPlot,
    Measure,
    OfFirstSentences,
    PointPlot,
    RowPlot,
    RowSetting,
    TableLayout,
    Width,
    baseline_or_first,
    deviation_of,
    not_analysed,
    share,
)
from creamtea.methods.metrics import Bleu
from creamtea.methods.planning import Inputs, Key, Labels, Planner
from creamtea.methods.searches import SEARCHES, Beam, Exact, InPrecision
from creamtea.methods.selections import SELECTIONS
from creamtea.methods.texts import Languages
from creamtea.wording import counted


class OutputParams(StepParams):
    """Parameters of steps that score the outputs of beams of these widths."""

    widths: list[int]
    metric: Bleu
    languages: Languages


OUTPUT_METRICS = {
    "bleu": "by width; bootstrap interval over segments, detail.signature",
    "length_ratio": "by width; hypothesis over reference tokens, as BLEU counts them",
    "empty": "by width; share of outputs without text, Wilson interval",
}


class OverBeams(OfFirstSentences):
    """Analyses of beam searches of several widths."""

    widths: Annotated[list[Width], Field(min_length=1)]  # [hypotheses] widths of the beams

    @property
    def base_setting(self) -> str:
        return str(4 if 4 in self.widths else min(self.widths))

    def params(self, planner: Planner) -> StepParams:
        return OutputParams(widths=self.widths, metric=planner.bleu, languages=planner.languages)

    def more_inputs(self, place: str, test_set: Key, planner: Planner, labels: Labels) -> Inputs:
        variant, seed = labels["variant"], labels["seed"]
        decodes = []
        for width in self.widths:
            # without normalisation, which would hide the beam search curse
            beam = Beam(kind="beam", width=width, length_normalization=0.0)
            words = {**labels, "search": f"beam{width}"}
            inner = f"{place}/beam{width}"
            decodes.append(planner.decode_variant(inner, variant, seed, beam, test_set, words))
        return {"decode": decodes}

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        yield from super().check(path, block, study)
        yield from repeated(block.get("widths"), (*path, "widths"))  # each is a row of its own


def beam_settings(spec: OverBeams) -> list[RowSetting]:
    return [RowSetting((str(width),), f"beam {width}", width) for width in spec.widths]


class BeamSizes(OverBeams):
    """The beam-search curse: the effect of a wider beam on quality, length and empty outputs.

    As in the SCONES paper, Figures 3 and 4.
    """

    kind: Literal["beam_sizes"]
    widths: Annotated[list[Width], Field(min_length=1)] = [1, 2, 4, 8, 16, 32, 64, 128]

    title: ClassVar[str] = "Beam sizes"
    step: ClassVar[StepKind[OutputParams]] = StepKind(
        "beam_sizes",
        2,
        "analyse beam sizes",
        OutputParams,
        worker="creamtea_workers.steps.search:compare_beam_sizes",
        inputs={**MODEL_INPUTS, "decode": "translations, one step for each width"},
        files=STATISTICS,
        metrics=OUTPUT_METRICS,
        points={name: f"{name} over the width" for name in OUTPUT_METRICS},
    )
    paired: ClassVar[frozenset[str]] = frozenset(OUTPUT_METRICS)
    tables: ClassVar[tuple[TableLayout, ...]] = (
        TableLayout("variant, beam", (Measure(BLEU), Measure(LENGTH), Measure(EMPTY)), beam_settings),
    )
    plots: ClassVar[tuple[CellPlot, ...]] = (
        CellPlot("BLEU over beam width", BEAM, BLEU, {"bleu": ""}, logarithmic=True),
        CellPlot("Length ratio over beam width", BEAM, LENGTH, {"length_ratio": ""}, logarithmic=True),
    )


AGAINST_EXACT = {"exact": "exact search is what the errors are counted against"}


OUTPUTS = TableLayout(
    "variant, search",
    (
        Measure(
            share("search_errors", "errors", "outputs that are not the best", "lower"),
            undefined=AGAINST_EXACT,
        ),
        Measure(
            share(
                "search_errors_at_least",
                "at least",
                "all sentences with a better one known, proved or not",
                "lower",
            ),
            undefined=AGAINST_EXACT,
        ),
        Measure(BLEU),
        Measure(LENGTH),
        Measure(EMPTY),
    ),
    lambda spec: [
        *beam_settings(spec),
        RowSetting(("exact",), "exact", 2 * max(spec.widths), tick="exact"),
    ],
)
OUTCOMES = TableLayout(
    "variant, exact search",
    (
        Measure(share("proved", "proved", "sentences whose best translation is proved")),
        Measure(share("improved", "improved", "better than the beam's, but not proved best")),
        Measure(share("limit", "limit", "limit reached without a better one")),
        Measure(share("unproved", "unproved", "improved or limit: not proved best")),
        Measure(Column("log_prob_best", "log p best", 2, note="mean log-probability")),
        deviation_of("log_prob_best", "best"),
        Measure(Column("log_prob_empty", "log p empty", 2, note="of the empty string")),
        deviation_of("log_prob_empty", "empty"),
        GAP,
        deviation_of("log_prob_gap", "gap"),
        Measure(Column("expansions", "expansions", 0, note="decoder states, mean per sentence")),
    ),
)


class SearchErrors(OverBeams):
    """How often a beam search misses the best translation, and properties of that translation.

    As in the SCONES paper, sections 4.3 and 4.4, Figures 5 to 7. Errors are counted over the sentences whose
    best translation is proved.
    """

    kind: Literal["search_errors"]
    widths: Annotated[list[Width], Field(min_length=1)] = [1, 4]  # [hypotheses] widths of the beams
    max_states: Positive = 1_000_000  # [decoder states] largest number per sentence
    # [seconds] largest time per sentence; makes results depend on the machine
    max_seconds: Above0 | None = None

    title: ClassVar[str] = "Search errors"
    needs_references: ClassVar[bool] = False
    step: ClassVar[StepKind[OutputParams]] = StepKind(
        "search_errors",
        4,
        "analyse search errors",
        OutputParams,
        worker="creamtea_workers.steps.search:count_search_errors",
        inputs={
            **MODEL_INPUTS,
            "decode": "translations, one step for each width",
            "exact": "translations by exact search",
        },
        files=STATISTICS,
        metrics={
            **OUTPUT_METRICS,
            "search_errors": "by width; share of the sentences with a proved best that the beam misses",
            "search_errors_at_least": "by width; share of all sentences with a better translation known",
            **Exact.metrics,
            "unproved": "improved + limit",
            "log_prob_best": "mean; detail.deviation",
            "log_prob_empty": "mean over sentences where it is possible; detail.deviation, detail.infinite",
            "log_prob_gap": "best less empty, likewise",
        },
        points={"search_errors": "over the width", "bleu": "over the width, the exact search's last"},
    )
    paired: ClassVar[frozenset[str]] = frozenset(
        {
            *OUTPUT_METRICS,
            *("search_errors", "search_errors_at_least", "unproved"),
            *(f"log_prob_{name}" for name in ("best", "empty", "gap")),
            *(f"log_prob_{name}_deviation" for name in ("best", "empty", "gap")),
        }
    )
    tables: ClassVar[tuple[TableLayout, ...]] = (OUTPUTS, OUTCOMES)
    plots: ClassVar[tuple[CellPlot | RowPlot, ...]] = (
        CellPlot(
            "Search errors over beam width",
            BEAM,
            share("search_errors_at_least", "search errors, at least", ""),
            {"search_errors_at_least": ""},  # SCONES also counts translations that are not proved best
            logarithmic=True,
        ),
        CellPlot("BLEU over beam width", BEAM, BLEU, {"bleu": ""}, logarithmic=True),
        CellPlot("Length ratio over beam width", BEAM, LENGTH, {"length_ratio": ""}, logarithmic=True),
        RowPlot(
            "What exact search ends with",
            share("outcome", "sentences", ""),
            {"proved": "proved", "improved": "improved", "limit": "limit"},
            table=1,
        ),
        RowPlot(
            "Log-probability, mean ± standard deviation over sentences",
            Column("log_prob", "log-probability", 2, unit="nats"),
            {"log_prob_best": "best", "log_prob_empty": "empty string", "log_prob_gap": "gap"},
            table=1,
            deviations=True,
        ),
    )
    over: ClassVar[tuple[str, ...]] = ("bleu", "length_ratio", "search_errors")

    def more_inputs(self, place: str, test_set: Key, planner: Planner, labels: Labels) -> Inputs:
        """Add exact search; its limits are parameters of its decode step."""
        search = Exact(kind="exact", max_states=self.max_states, max_seconds=self.max_seconds)
        variant, seed = labels["variant"], labels["seed"]
        words = {**labels, "search": "exact"}
        exact = planner.decode_variant(f"{place}/exact", variant, seed, search, test_set, words)
        return {**super().more_inputs(place, test_set, planner, labels), "exact": [exact]}


class DepthLimitedParams(StepParams):
    lengths: list[int]
    width: int
    max_states: int


class DepthLimited(OfFirstSentences):
    """How often a hypothesis of at most n subwords outscores the beam's.

    As in Peters and Martins (2021), Table 5.
    """

    kind: Literal["depth_limited"]
    # [subwords] lengths up to which hypotheses are searched
    lengths: Annotated[list[Positive], Field(min_length=1)] = [1, 2, 3, 4, 5]
    width: Width = 5  # [hypotheses] of the beam
    max_states: Positive = 100_000  # [decoder states] largest number per sentence

    title: ClassVar[str] = "Short hypotheses"
    needs_references: ClassVar[bool] = False
    step: ClassVar[StepKind[DepthLimitedParams]] = StepKind(
        "depth_limited",
        3,
        "analyse short hypotheses",
        DepthLimitedParams,
        worker="creamtea_workers.steps.search:compare_depths",
        inputs=MODEL_INPUTS,
        files=STATISTICS,
        metrics={
            "shorter_better": "by length; share of sentences with a better hypothesis of at most that length",
            "undecided": "by length; share for which max_states was reached without one",
        },
        points={"shorter_better": "over the length"},
    )
    paired: ClassVar[frozenset[str]] = frozenset({"shorter_better", "undecided"})
    tables: ClassVar[tuple[TableLayout, ...]] = (
        TableLayout(
            "variant, length",
            (
                Measure(share("shorter_better", "outscored", "sentences with a better short one", "lower")),
                Measure(share("undecided", "undecided", "search ended by its limit")),
            ),
            lambda spec: [
                RowSetting((str(length),), f"up to {counted(length, 'subword')}", length)
                for length in dict.fromkeys(spec.lengths)
            ],
        ),
    )
    plots: ClassVar[tuple[CellPlot, ...]] = (
        CellPlot(
            "Sentences whose beam output a short hypothesis outscores",
            Column("setting", "subwords, at most", 0),
            share("shorter_better", "outscored", ""),
            {"shorter_better": ""},
        ),
    )


class EmptyString(Analysis):
    """How often, and by how much, the model prefers the empty string to the system's output.

    Peters and Martins (2021), Table 4, count outputs that are not empty. The SCONES paper, Figure 6, shows
    the same difference for exact search.
    """

    kind: Literal["empty_string"]
    # systems to analyse; none named: all with the full vocabulary that search for a high score
    systems: list[Name] | None = None
    sentences: Positive | None = None  # [segments] only the first of the test set
    # systems to compare the others with, also analysed; none named: the study's baseline, or the first
    baselines: list[Name] | None = None

    title: ClassVar[str] = "Empty string"
    needs_references: ClassVar[bool] = False
    rows: ClassVar[Literal["variant", "system"]] = "system"
    over: ClassVar[tuple[str, ...]] = ("empty_preferred",)
    step: ClassVar[StepKind[InPrecision]] = StepKind(
        "empty_string",
        4,
        "analyse the empty string",
        InPrecision,
        worker="creamtea_workers.steps.search:measure_empty_string",
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
            "Log-probability of the output minus the empty string's",
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
                decode_labels = {"analysis": name, "variant": variant, "seed": seed}
                place = f"{name}/{system}/{seed}"
                decode = planner.decode_system(place, system, seed, test_set, decode_labels)
                models = planner.models_of(system, seed)
                inputs: Inputs = {"test_set": [test_set], "decode": [decode], **models}
                labels = {**decode_labels, "system": system, "test_set": self.test_set}
                params = InPrecision.model_validate({"precision": precision})
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
    """Return True if a raw system selects nothing; a malformed selection counts as the default."""
    selection = SELECTIONS.kind_of(system.get("selection"))
    return selection is None or not selection.selects


def searches(system: Block) -> bool:
    """Return True if a raw system searches for a high score; a malformed search counts as the default."""
    search = SEARCHES.kind_of(system.get("search"))
    return search is None or search.maximises
