"""What the report shows of each kind of analysis: one entry a kind, declared, nothing computed.

An entry's tables have a row for each variant (or system) and setting, and a column for each measure; its
plots draw cells of a table over the settings or row by row, or a series of the step's points
(`analysis_kinds`). `analysis_tables` fills them.
"""

from __future__ import annotations

from creamtea.contract.columns import Column
from creamtea.report.analysis_kinds import (
    AnalysisKind,
    CellPlot,
    Measure,
    PointPlot,
    RowPlot,
    Setting,
    TableOf,
)
from creamtea.study.spec import BeamSizes, SearchErrors

# ---------------------------------------------------------------- columns that several kinds have

BLEU = Column("bleu", "BLEU", 1, "higher")
LENGTH = Column("length_ratio", "length", 3, note="hypothesis over reference tokens, as BLEU counts them")
EMPTY = Column("empty", "empty", 1, "lower", 100.0, "%", note="share of empty outputs")
BEAM = Column("setting", "beam width (log scale)", 0)
GAP = Measure(
    Column("log_prob_gap", "gap", 2, note="mean log-probability of the output less that of the empty string")
)


def deviation_of(name: str, words: str) -> Measure:
    """Of a mean log-probability."""
    column = Column(f"{name}_deviation", f"± {words}", 2, note="standard deviation over sentences")
    return Measure(column, metric=name, detail="deviation")


def share(key: str, title: str, note: str, better: str = "") -> Column:
    return Column(key, title, 1, better, 100.0, "%", note=note)


AGAINST_EXACT = "exact search is what the errors are counted against"


def beams(spec: BeamSizes | SearchErrors) -> list[Setting]:
    return [Setting((str(width),), f"beam {width}", width) for width in spec.widths]


def beams_and_exact(spec: SearchErrors) -> list[Setting]:
    return [*beams(spec), Setting(("exact",), "exact", 2 * max(spec.widths), tick="exact")]


RECALL = "share of the unique reference subwords that are selected"
SCOPES = (
    ("sentence", "sentences", ""),
    ("idiom", "idioms", "idioms"),
    ("idiom_macro", "mean over idioms", "repeated"),
)
CONTEXTS = {
    "sentence": "in context",
    "word": "word by word",
    "only_sentence": "only in context",
    "only_word": "only word by word",
}
ONE_WAY = "a difference of two selections has no size"

# ---------------------------------------------------------------- the kinds

ANALYSES: dict[str, AnalysisKind] = {
    "beam_sizes": AnalysisKind(
        "Beam sizes",
        "The beam-search curse: what a wider beam does to quality, length and empty outputs "
        "(SCONES, Figures 3 and 4).",
        tables=(TableOf("variant, beam", (Measure(BLEU), Measure(LENGTH), Measure(EMPTY)), beams),),
        plots=(
            CellPlot("BLEU over beam width", BEAM, BLEU, {"bleu": ""}, logarithmic=True),
            CellPlot("Length ratio over beam width", BEAM, LENGTH, {"length_ratio": ""}, logarithmic=True),
        ),
    ),
    "search_errors": AnalysisKind(
        "Search errors",
        "How often a beam search misses the best translation of all, and what that translation is like "
        "(SCONES, sections 4.3 and 4.4, Figures 5 to 7). Errors are counted over the sentences whose best is "
        "proved.",
        tables=(
            TableOf(
                "variant, search",
                (
                    Measure(
                        share("search_errors", "errors", "outputs that are not the best", "lower"),
                        undefined={"exact": AGAINST_EXACT},
                    ),
                    Measure(
                        share(
                            "search_errors_at_least",
                            "at least",
                            "sentences for which a better one is known, of all, proved or not",
                            "lower",
                        ),
                        undefined={"exact": AGAINST_EXACT},
                    ),
                    Measure(BLEU),
                    Measure(LENGTH),
                    Measure(EMPTY),
                ),
                beams_and_exact,
            ),
            TableOf(
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
                    Measure(Column("expansions", "expansions", 0, note="decoder states, mean a sentence")),
                ),
            ),
        ),
        plots=(
            CellPlot(
                "Search errors over beam width",
                BEAM,
                share("search_errors", "search errors", ""),
                {"search_errors": ""},
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
        ),
        over=("bleu", "length_ratio", "search_errors"),
    ),
    "empty_string": AnalysisKind(
        "Empty string",
        "How often the model prefers the empty string to the system's output (Peters and Martins 2021, "
        "Table 4), and by how much (SCONES, Figure 6).",
        tables=(
            TableOf(
                "system",
                (
                    Measure(
                        share("empty_preferred", "preferred", "sentences that it is better for", "lower")
                    ),
                    Measure(share("empty_impossible", "impossible", "sentences where its probability is 0")),
                    GAP,
                    deviation_of("log_prob_gap", "gap"),
                    Measure(Column("log_prob_output", "log p output", 2, note="mean log-probability")),
                    Measure(Column("log_prob_empty", "log p empty", 2, note="of the empty string")),
                ),
            ),
        ),
        plots=(
            PointPlot(
                "Log-probability of the output less that of the empty string",
                Column("gap", "gap in log-probability", 2, unit="nats"),
                share("sentences", "sentences", ""),
                {"log_prob_gap": ""},
                "gap",
            ),
        ),
        over=("empty_preferred",),
        rows="system",
    ),
    "depth_limited": AnalysisKind(
        "Short hypotheses",
        "How often a hypothesis of at most so many subwords outscores the beam's (Peters and Martins 2021, "
        "Table 5).",
        tables=(
            TableOf(
                "variant, length",
                (
                    Measure(
                        share("shorter_better", "outscored", "sentences with a better short one", "lower")
                    ),
                    Measure(share("undecided", "undecided", "search ended by its limit")),
                ),
                lambda spec: [
                    Setting((str(most),), f"up to {most} subword{'s' * (most > 1)}", most)
                    for most in spec.lengths
                ],
            ),
        ),
        plots=(
            CellPlot(
                "Sentences whose beam output a short hypothesis outscores",
                Column("setting", "at most so many subwords", 0),
                share("shorter_better", "outscored", ""),
                {"shorter_better": ""},
            ),
        ),
    ),
    "support_density": AnalysisKind(
        "Density of the support",
        "Mean share of the vocabulary with a probability above zero, teacher-forced (Peters and Martins "
        "2021, Table 6).",
        tables=(
            TableOf(
                "variant",
                (
                    Measure(Column("density", "density", 3, "", 100.0, "%")),
                    Measure(Column("support_size", "subwords", 1, note="mean support size")),
                    Measure(Column("support_size_median", "median", 0, note="of the support sizes")),
                ),
            ),
        ),
        plots=(
            PointPlot(
                "Support size",
                Column("size", "at most so many subwords (log scale)", 0),
                share("positions", "positions", ""),
                {"support_size": ""},
                "subwords",
                logarithmic=True,
            ),
        ),
        over=("density",),
    ),
    "calibration": AnalysisKind(
        "Calibration",
        "Expected calibration error of the most likely subword, teacher-forced (Peters and Martins 2021, "
        "Table 7). For SCONES of the largest σ, which is another quantity. Bars of the diagram are Wilson "
        "intervals over positions.",
        tables=(
            TableOf(
                "variant",
                (
                    Measure(Column("ece", "ECE", 2, "lower", 100.0, "%")),
                    Measure(share("accuracy", "accuracy", "positions with the right subword", "higher")),
                    Measure(share("confidence", "confidence", "its mean probability")),
                ),
            ),
        ),
        plots=(
            PointPlot(
                "Reliability",
                Column("confidence", "confidence", 1, "", 100.0, "%"),
                share("accuracy", "accuracy", ""),
                {"accuracy": ""},
                "positions",
                diagonal=True,
                counted=True,
            ),
        ),
        over=("ece",),
    ),
    "recall_at_size": AnalysisKind(
        "Recall at equal size",
        "NVS against the lexicon where both select equally many subwords on average (NVS paper, Figure 3).",
        tables=(
            TableOf(
                "variant, lexicon",
                (
                    Measure(Column("selected_size_lexicon", "lexicon selects", 0, note="mean size"), part=0),
                    Measure(Column("selected_size_nvs", "NVS selects", 0, note="mean size"), part=0),
                    Measure(Column("threshold", "NVS λ", 5, note="the threshold of that size"), part=0),
                    Measure(share("recall_lexicon", "lexicon recall", RECALL, "higher")),
                    Measure(share("recall_nvs", "NVS recall", RECALL, "higher")),
                    Measure(share("recall_difference", "Δ", "recall of NVS less that of the lexicon")),
                ),
                lambda spec: [
                    Setting((f"k={k}", scope), f"k={k}, {words}", k, needs=needs)
                    for scope, words, needs in SCOPES
                    for k in sorted(set(spec.k))
                ],
            ),
        ),
        plots=tuple(
            CellPlot(
                f"Recall at equal size, {words}",
                Column("selected_size_lexicon", "mean selected vocabulary (log scale)", 0, unit="subwords"),
                share("recall", "recall", ""),
                {"recall_nvs": "NVS", "recall_lexicon": "lexicon"},
                logarithmic=True,
                only=scope,
            )
            for scope, words, _ in SCOPES
        ),
    ),
    "nvs_context": AnalysisKind(
        "NVS without context",
        "Segments of which all subwords of the idioms' references are selected: from the sentence, from each "
        "source word alone, and in one way only (NVS paper, Table 6).",
        tables=(
            TableOf(
                "variant, threshold",
                (
                    Measure(share("all_selected", "all selected", "share of the segments", "higher")),
                    Measure(
                        Column("selected_size", "selected", 0, note="mean size over the same segments"),
                        undefined={"only_sentence": ONE_WAY, "only_word": ONE_WAY},
                    ),
                ),
                lambda spec: [
                    Setting((f"{threshold:g}", context), f"λ={threshold:g}, {words}", threshold)
                    for threshold in dict.fromkeys(spec.thresholds)
                    for context, words in CONTEXTS.items()
                ],
            ),
        ),
        plots=(
            CellPlot(
                "Segments with all of their idioms' subwords",
                Column("selected_size", "mean selected vocabulary", 0, unit="subwords"),
                share("all_selected", "all selected", ""),
                {"all_selected": ""},
                apart={context: CONTEXTS[context] for context in ("sentence", "word")},
            ),
        ),
    ),
}
