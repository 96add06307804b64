"""Analysis `search_errors`: what exact search finds and proves, and how often a beam misses it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from creamtea.contract.columns import Column
from creamtea.contract.step import StepKind
from creamtea.document.values import Above0, Positive
from creamtea.methods.analyses.beam_sizes import OUTPUT_METRICS, OutputParams, OverBeams, beam_settings
from creamtea.methods.analysis import (
    BEAM,
    BLEU,
    EMPTY,
    GAP,
    LENGTH,
    MODEL_INPUTS,
    STATISTICS,
    CellPlot,
    Measure,
    RowPlot,
    RowSetting,
    TableLayout,
    Width,
    deviation_of,
    share,
)
from creamtea.methods.planning import Inputs, Key, Labels, Planner
from creamtea.methods.searches import Exact

AGAINST_EXACT = {"exact": "exact search is what the errors are counted against"}


def beams_and_exact(spec: SearchErrors) -> list[RowSetting]:
    exact = RowSetting(("exact",), "exact", 2 * max(spec.widths), tick="exact")
    return [*beam_settings(spec), exact]


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
    beams_and_exact,
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
    """How often a beam search misses the best translation of all, and what that translation is like (SCONES,
    sections 4.3 and 4.4, Figures 5 to 7). Errors are counted over the sentences whose best is proved."""

    kind: Literal["search_errors"]
    widths: Annotated[list[Width], Field(min_length=1)] = [1, 4]  # [hypotheses] widths of the beams
    max_states: Positive = 1_000_000  # [decoder states] per sentence at most
    # [seconds] per sentence at most; makes results depend on the machine
    max_seconds: Above0 | None = None

    title: ClassVar[str] = "Search errors"
    needs_references: ClassVar[bool] = False
    step: ClassVar[StepKind[OutputParams]] = StepKind(
        "search_errors",
        3,
        "analyse search errors",
        OutputParams,
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
            {"search_errors_at_least": ""},  # as SCONES counts them where a best translation is not proved
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
        """The limits of the exact search are parameters of its decode step."""
        search = Exact(kind="exact", max_states=self.max_states, max_seconds=self.max_seconds)
        variant, seed = labels["variant"], labels["seed"]
        words = {**labels, "search": "exact"}
        exact = planner.decode_variant(f"{place}/exact", variant, seed, search, test_set, words)
        return {**super().more_inputs(place, test_set, planner, labels), "exact": [exact]}
