"""docs/reference/measures.md: the columns of a study's report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from creamtea.contract.columns import Column
from creamtea.methods.analysis import ANALYSES, EMPTY, LENGTH
from creamtea.methods.metrics import METRICS
from creamtea.methods.training import SelectBy
from creamtea.reference.markup import GENERATED, cell, table
from creamtea.report.latency import LATENCY, SPEED
from creamtea.report.tables import (
    PAIRS,
    RECALL_IDIOM,
    RECALL_MACRO,
    RECALL_SENTENCE,
    RECALL_WORDS,
    SELECTED,
    training_columns,
)

INTRODUCTION = f"""\
# What reports measure

{GENERATED}

The columns of a study's report, with their units and the better direction. Brackets in a cell are 95 %
intervals; what Δ, p and `*` mean is in the [guide for readers](../guide-reader.md), which also explains
ratings by people. With `--json` values are at full precision, under the name in the last column; shares are
from 0 to 1."""

HEADINGS = ("column", "unit", "better", "meaning", "in JSON")


def markdown() -> str:
    lines = [INTRODUCTION, "", "## Quality", "", "One for each of a study's [metrics](methods.md#metrics)."]
    lines += table(("kind", "column", "better", "meaning"), _metrics())
    recall = (RECALL_WORDS, RECALL_IDIOM, RECALL_MACRO, RECALL_SENTENCE, SELECTED)
    sections: list[tuple[str, str, Iterable[Column]]] = [
        ("Recall and selected size", "Of a vocabulary selection; for a full one recall is 100.", recall),
        ("Outputs", "Of every system.", (LENGTH, EMPTY)),
        ("Latency", "Of the systems that `latency` times.", (*LATENCY, SPEED)),
        ("Trainings", "Below *Provenance*.", training_columns(get_args(SelectBy))),
        ("Corpora", "Below *Provenance*.", PAIRS),
    ]
    for title, about, columns in sections:
        lines += [f"## {title}", "", about, *table(HEADINGS, map(_row, columns))]
    for kind, method in ANALYSES.built_in.items():
        columns = [measure.column for layout in method.tables for measure in layout.measures]
        lines += [f"## {method.title}", "", f"Of [the analysis `{kind}`](methods.md#analysis-{kind})."]
        lines += table(HEADINGS, map(_row, dict.fromkeys(columns)))
    return "\n".join(lines).rstrip() + "\n"


def _metrics() -> Iterable[tuple[str, str, str, str]]:
    for kind, method in METRICS.built_in.items():
        if any(field.is_required() for name, field in method.model_fields.items() if name != "kind"):
            shown = "the `display` says it", "the `display` says it"
        else:
            column = method.model_validate({"kind": kind}).column()
            shown = column.title, column.better
        yield f"`{kind}`", *shown, cell(method.__doc__ or "")


def _row(column: Column) -> tuple[str, str, str, str, str]:
    return cell(column.title), cell(column.unit), column.better, cell(column.note), f"`{column.key}`"
