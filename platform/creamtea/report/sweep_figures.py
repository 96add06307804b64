"""Figures of a score or a measure over a number in which systems differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from creamtea.contract.columns import Column
from creamtea.report import text, vega
from creamtea.report.analysis_figures import curve_layers, mark
from creamtea.report.analysis_tables import AnalysisResults
from creamtea.report.figures import SystemsOn
from creamtea.report.model import Cell, Choice, Figure
from creamtea.report.parameters import Sweep, in_common

OF_A_CORPUS = "variant.corpus."
LOGARITHMIC_FROM = 30.0  # the largest value over the smallest, both above 0
Member = tuple[float, str, Cell]  # the number, what it is of, and what is drawn


def sweep_choice(
    systems: SystemsOn,
    everywhere: Sequence[SystemsOn],
    analyses: Sequence[AnalysisResults],
    sweeps: Sequence[Sweep],
    variants: Mapping[str, str],
) -> Choice | None:
    """A figure for each parameter and each column of the systems' table or measure of an analysis. None for
    a study in which no systems differ in one number only. `variants`: by system."""
    if not sweeps:
        return None
    figures: list[Figure | None] = []
    for sweep in sweeps:
        figures += [
            score_over_parameter(systems, everywhere, column, sweep) for column in systems.table.columns
        ]
        figures += [
            analysis_over_parameter(analyses, kind, key, sweep, variants)
            for kind, key in dict.fromkeys(
                (analysis.spec.kind, key) for analysis in analyses for key in analysis.spec.over
            )
        ]
    return Choice(
        "parameters",
        "Parameter sweeps",
        ("Parameter", "Value"),
        tuple(figure for figure in figures if figure is not None),
        "no parameter sweep yet",
    )


def score_over_parameter(
    systems: SystemsOn, everywhere: Sequence[SystemsOn], column: Column, sweep: Sweep
) -> Figure | None:
    """A column of a test set's table over a number in which systems differ: one curve for each group of
    systems. None without a point.

    Systems that differ in a number of their corpus (the temperature of a sampled one) have a test set
    each: those that do not translate this one are drawn by the only test set that they translate.
    """
    cells = {row.name: row.cells[column.key] for row in systems.table.rows}
    place = systems.test_set
    if sweep.parameter.startswith(OF_A_CORPUS):
        elsewhere = _own_test_sets(everywhere, column.key)
        place = systems.test_set if elsewhere.keys() <= cells.keys() else "each on the test set of its corpus"
        cells = {**elsewhere, **cells}
    members = [
        (group.name, [(value, system, cells.get(system, Cell("absent"))) for value, system in group.systems])
        for group in sweep.groups
    ]
    return _over(sweep, members, column, place, column.key, column.title)


def analysis_over_parameter(
    analyses: Sequence[AnalysisResults], kind: str, key: str, sweep: Sweep, variants: Mapping[str, str]
) -> Figure | None:
    """A column of an analysis over a number in which systems differ by their variants: one curve for each
    group of systems and setting of the analysis ("beam 4", "exact"). None without a point.

    All analyses of a kind are one: variants that differ in their corpus are analysed on a test set each. What
    is analysed several times is not drawn.
    """
    alike = [analysis for analysis in analyses if analysis.spec.kind == kind]
    measured: dict[tuple[str, str], list[Cell]] = {}  # by variant or system, and setting
    for row in (row for analysis in alike for row in analysis.tables[0].rows):
        measured.setdefault((row.name, row.setting), []).append(row.cells[key])
    cells = {place: own[0] for place, own in measured.items() if len(own) == 1}
    if not cells:
        return None
    # by what is analysed: each once, however many systems decode with it
    members: dict[tuple[str, ...], tuple[str, list[Member]]] = {}
    for group in sweep.groups:
        for setting in dict.fromkeys(setting for _, setting in cells):
            named = [
                (value, system if alike[0].spec.rows == "system" else variants.get(system, system))
                for value, system in group.systems
            ]
            own = [(value, name, cells.get((name, setting), Cell("absent"))) for value, name in named]
            names = tuple(name for _, name in named)
            if len(set(names)) == len(names) and any(cell.state != "absent" for *_, cell in own):
                curve = ", ".join(filter(None, [in_common(list(names)), setting]))
                members.setdefault((*names, setting), (curve, own))
    often = Counter(curve for curve, _ in members.values())
    curves = [
        (curve if often[curve] == 1 else ", ".join(filter(None, names)), own)
        for names, (curve, own) in members.items()
    ]
    column = next(column for column in alike[0].tables[0].columns if column.key == key)
    title = alike[0].spec.title
    words = f"{title}: {column.title}"
    return _over(sweep, curves, column, title.lower(), f"{kind}-{key}", words)


def _over(
    sweep: Sweep,
    curves: Sequence[tuple[str, list[Member]]],
    y: Column,
    about: str,
    key: str,
    choice: str,
) -> Figure | None:
    rows = [
        mark(curve, value, cell, y, name)
        for curve, members in curves
        for value, name, cell in members
        if cell.value is not None
    ]
    if not rows:
        return None
    missing = dict.fromkeys(
        text.not_drawn(name, cell.state)
        for _, members in curves
        for _, name, cell in members
        if cell.value is None
    )
    values = [value for _, members in curves for value, *_ in members]
    logarithmic = min(values) > 0 and max(values) / min(values) >= LOGARITHMIC_FROM
    x = Column("x", f"{sweep.title} (log scale)" if logarithmic else sweep.title, 2)
    layer = curve_layers(vega.styles(curve for curve, _ in curves), x, y, "system", rows, logarithmic)
    title = f"{y.title} over {sweep.title} ({about})"
    drawn = vega.figure(f"{sweep.parameter}-{key}", title, rows, layer, list(missing))
    return replace(drawn, choice=(sweep.title, choice))


def _own_test_sets(everywhere: Sequence[SystemsOn], key: str) -> dict[str, Cell]:
    """A column's cell of each system that translates one test set."""
    measured: dict[str, list[Cell]] = {}
    for systems in everywhere:
        if key in {column.key for column in systems.table.columns}:
            for row in systems.table.rows:
                measured.setdefault(row.name, []).append(row.cells[key])
    return {system: cells[0] for system, cells in measured.items() if len(cells) == 1}
