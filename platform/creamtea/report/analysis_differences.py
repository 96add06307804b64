"""Rows of an analysis compared in pairs: with a baseline at the same setting, and over settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from creamtea.methods.analysis import BLEU, DIFFERENCES, Analysis, Measure, RowSetting, TableLayout
from creamtea.report import text
from creamtea.report.cells import Material, Measured, correct, read_delta
from creamtea.report.model import Delta, Notes, Row, Table
from creamtea.report.scores import NEAR_ZERO, NO_MARK
from creamtea.report.seeds import ENSEMBLE, SEEDS_ALLOW, WITH_SEEDS, Scores, model_of, with_seeds

BASELINES, SETTINGS = "baselines", "settings"  # ends of the keys of tables of differences
Rows = Sequence[tuple[RowSetting, Row]]

NOT_COMPARED = (
    "No row of this analysis is compared with another: it was made by an earlier version of creamtea, which "
    "kept no statistics of its sentences. Run the study again to compare them; models and translations are "
    "used again."
)
ABOUT = (
    "Tables of differences have below each value its difference, paired over sentences, with a 95 % "
    "interval. p: paired bootstrap ({samples} resamples), two-sided, after Holm's correction over the rows "
    f"of a column; * marks where it is below 0.05{SEEDS_ALLOW}. What is measured over some sentences only "
    "(those with a proved best, say) is over each row's own. "
    f"{text.sentence(WITH_SEEDS)}"
)


@dataclass(frozen=True)
class _Compared:
    """A row, what it is compared with, and the step that has done it."""

    row: Row
    setting: RowSetting
    against: Row
    step: Measured


def differences(
    material: Material, name: str, spec: Analysis, layouts: Sequence[Rows]
) -> tuple[list[Table], list[Notes]]:
    """The tables of differences of an analysis, whose tables have the rows of `layouts`, and a note on how to
    read them or on why there are none."""
    if not spec.paired:
        return [], []
    steps = material.of(DIFFERENCES.name, analysis=name)
    tables = [
        table
        for layout, rows in zip(spec.tables, layouts, strict=True)
        for table in (
            _against_baselines(material, name, spec, layout, rows, steps),
            _over_settings(material, name, spec, layout, rows, steps),
        )
        if table is not None
    ]
    if tables:
        samples = " or ".join(f"{n:,}" for n in sorted({step.node.params["samples"] for step in steps}))
        return tables, [Notes("differences", (ABOUT.format(samples=samples),))]
    settings = max(len(rows) for rows in layouts) > 1 and spec.base_setting
    several = settings or len({row.name for rows in layouts for _, row in rows}) > 1
    return [], [Notes("differences", (NOT_COMPARED,))] if several else []


def _against_baselines(
    material: Material, name: str, spec: Analysis, layout: TableLayout, rows: Rows, steps: Sequence[Measured]
) -> Table | None:
    by_place = {(row.name, setting.parts): row for setting, row in rows}
    compared = [
        _Compared(row, setting, by_place[step.node.labels["baseline"], setting.parts], step)
        for step in steps
        if "baseline" in step.node.labels
        for setting, row in rows
        if row.name == step.node.labels[spec.rows]
    ]
    baselines = list(dict.fromkeys(pair.against.name for pair in compared))
    title = f"Differences from {' and '.join(baselines)}"
    return _table(material, name, spec, layout, compared, BASELINES, title)


def _over_settings(
    material: Material, name: str, spec: Analysis, layout: TableLayout, rows: Rows, steps: Sequence[Measured]
) -> Table | None:
    base = (spec.base_setting,)
    bases = {row.name: row for setting, row in rows if setting.parts == base}
    compared = [
        _Compared(row, setting, bases[row.name], step)
        for step in steps
        if "baseline" not in step.node.labels
        for setting, row in rows
        if row.name == step.node.labels[spec.rows] and row.name in bases and setting.parts != base
    ]
    title = f"Differences from {compared[0].against.setting}" if compared else ""
    return _table(material, name, spec, layout, compared, SETTINGS, title)


def _table(
    material: Material,
    name: str,
    spec: Analysis,
    layout: TableLayout,
    compared: Sequence[_Compared],
    key: str,
    title: str,
) -> Table | None:
    measures = [measure for measure in layout.measures if measure.column.key in spec.paired]
    if not compared or not measures:
        return None
    models = {
        group: _models(material, name, spec, group)
        for pair in compared
        for group in (pair.row.name, pair.against.name)
    }
    deltas = {measure.column.key: _column(measure, compared, models) for measure in measures}
    rows = [
        Row(
            pair.row.name,
            {column: replace(pair.row.cells[column], delta=own[place]) for column, own in deltas.items()},
            setting=against(pair.row, pair.against),
            against=text.row_name(pair.against),
        )
        for place, pair in enumerate(compared)
    ]
    return Table(
        f"{text.key_of(layout.heading)}-{key}",
        title,
        layout.heading,
        tuple(measure.column for measure in measures),
        tuple(rows),
        folded=True,
    )


def against(row: Row, other: Row) -> str:
    """How a row of such a table is told apart: "beam 4 against softmax", "beam 64 against beam 4"."""
    return f"{row.setting} against {other.setting if row.name == other.name else other.name}".strip()


def _column(
    measure: Measure, compared: Sequence[_Compared], models: Mapping[str, Sequence[str]]
) -> Sequence[Delta | None]:
    """The differences in a column, corrected together; None where a row does not have the measure."""
    there = [not set(pair.setting.parts) & measure.undefined.keys() for pair in compared]
    deltas = []
    for pair, is_there in zip(compared, there, strict=True):
        if is_there:
            subject = "/".join(filter(None, (measure.column.key, measure.subject(pair.setting))))
            delta = read_delta(pair.step, subject)
            metric = pair.step.find("delta", subject)
            scores = metric.detail.get("scores", {}) if metric is not None else {}
            own, other = (
                _by_model(models[row.name], scores.get(role, ()))
                for row, role in ((pair.row, "system"), (pair.against, "baseline"))
            )
            deltas.append(with_seeds(delta, own, other))
    corrected = iter(correct(deltas))
    return [
        _marked(measure, pair, next(corrected)) if is_there else None
        for pair, is_there in zip(compared, there, strict=True)
    ]


def _marked(measure: Measure, pair: _Compared, delta: Delta) -> Delta:
    """As between systems: which of two is better means nothing where BLEU of both is near zero."""
    values = [row.cells[measure.column.key].value for row in (pair.row, pair.against)]
    low = measure.column.key == BLEU.key and all(value is not None and value < NEAR_ZERO for value in values)
    return replace(delta, significant=False, note=NO_MARK) if low and delta.significant else delta


def _models(material: Material, name: str, spec: Analysis, group: str) -> list[str]:
    """What translates, in the order of the analysis' steps: the models of the seeds."""
    if spec.rows == "system" and material.spec.systems[group].ensemble:
        return [ENSEMBLE]
    steps = material.of(spec.step.name, analysis=name, **{spec.rows: group})
    labels = [step.node.labels for step in steps]
    return [model_of(material, own["variant"], own["seed"]) for own in labels]


def _by_model(models: Sequence[str], scores: Sequence[float]) -> Scores:
    return dict(zip(models, scores, strict=True)) if scores else {}
