"""Parameter sweeps: systems that differ in one number, and figures over that number."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from creamtea.contract.step import Column
from creamtea.report import text, vega
from creamtea.report.analyses import AnalysisResults, curve_layers, mark
from creamtea.report.figures import SystemsOn
from creamtea.report.model import Cell, Choice, Figure
from creamtea.study.spec import Study
from creamtea.words import shared_start

Path = tuple[str, ...]
_SEPARATORS = re.compile("([-+=])")  # between the words of a name


@dataclass(frozen=True)
class Sweep:
    """Groups of systems that differ in one number only, each sorted by it.

    A group's name is what the systems' names have in common: "nvs+positive_weight=…".
    """

    parameter: str  # "variant.nvs.positive_weight"
    title: str  # "nvs positive weight"
    groups: dict[str, list[tuple[float, str]]]


def sweeps(study: Study) -> tuple[Sweep, ...]:
    """Return each numeric setting that takes several values in otherwise equal systems."""
    settings = {name: _settings(study, name) for name, system in study.systems.items() if system.runs}
    numbers = {name: dict(_numbers(setting)) for name, setting in settings.items()}
    varied_parameters = []
    for path in dict.fromkeys(path for numbers_of_system in numbers.values() for path in numbers_of_system):
        by_rest: dict[str, list[tuple[float, str]]] = {}
        for name, setting in settings.items():
            value = numbers[name].get(path)
            if value is not None:
                by_rest.setdefault(_without(setting, path), []).append((value, name))
        varied = [members for members in by_rest.values() if len({value for value, _ in members}) > 1]
        names = [in_common([name for _, name in members]) for members in varied]
        groups = {}
        for name, members in zip(names, map(sorted, varied), strict=True):
            listed = ", ".join(system for _, system in members)  # tells groups of one name apart
            groups[name if names.count(name) == 1 else listed] = members
        if groups:
            title = " ".join(path[-2:]).replace("_", " ")
            varied_parameters.append(Sweep(".".join(path), title, groups))
    return tuple(varied_parameters)


def _settings(study: Study, name: str) -> dict[str, Any]:
    """Return all settings that an output may depend on, with names of variants resolved."""
    no_effect = {"batch_size", "test_sets", "baseline", "more_baselines"}
    system = study.systems[name].model_dump(mode="json", exclude=no_effect)
    chosen = study.systems[name].variant
    return {**system, "variant": _variant(study, chosen) if chosen else None}


def _variant(study: Study, name: str) -> dict[str, Any]:
    variant = study.variants[name]
    start: Any = variant.start_from
    start = _variant(study, start) if isinstance(start, str) else start and start.model_dump()
    corpus = study.corpora[variant.corpus]
    return {
        **variant.model_dump(mode="json", exclude={"seeds"}),
        "start_from": start,
        # a sampled corpus also has a number: the temperature
        "corpus": corpus.model_dump(mode="json") if corpus.sampled else variant.corpus,
    }


def _numbers(value: Any, path: Path = ()) -> Iterator[tuple[Path, float]]:
    """Yield the numbers in nested dictionaries, each with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def _without(setting: dict[str, Any], path: Path) -> str:
    """Return a setting without the value at `path`, as a string to compare."""
    rest = json.loads(json.dumps(setting, sort_keys=True))
    inner = rest
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return json.dumps(rest, sort_keys=True)


def in_common(names: list[str]) -> str:
    """Return the words that all names begin and end with: "nvs+beam=…". List the names if there are none."""
    words = [_SEPARATORS.split(name) for name in names]
    start = shared_start(words)
    end = shared_start([name[len(start) :][::-1] for name in words])[::-1]
    return f"{''.join(start)}…{''.join(end)}" if start or end else ", ".join(names)


OF_A_CORPUS = "variant.corpus."
LOGARITHMIC_FROM = 30.0  # ratio of the largest to the smallest value, both above 0
Member = tuple[float, str, Cell]  # number, name of the system or variant, cell


def sweep_choice(
    systems: SystemsOn,
    everywhere: Sequence[SystemsOn],
    analyses: Sequence[AnalysisResults],
    sweeps: Sequence[Sweep],
    variants: Mapping[str, str],
) -> Choice | None:
    """Draw each column of the systems' table and measure of the analyses over each parameter.

    None if no systems differ in one number only. `variants`: by system.
    """
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
        "no parameter sweep",
    )


def score_over_parameter(
    systems: SystemsOn, everywhere: Sequence[SystemsOn], column: Column, sweep: Sweep
) -> Figure | None:
    """Draw a column of a test set's table over a number, one curve per group of systems.

    None without a point. If systems differ in a number of their corpora (the sampling temperature), each has
    a test set of its own: a system that does not translate this test set is drawn with the score of the only
    test set that it translates.
    """
    cells = {row.name: row.cells[column.key] for row in systems.table.rows}
    place = systems.test_set
    if sweep.parameter.startswith(OF_A_CORPUS):
        elsewhere = _own_test_sets(everywhere, column.key)
        place = systems.test_set if elsewhere.keys() <= cells.keys() else "each on the test set of its corpus"
        cells = {**elsewhere, **cells}
    members = [
        (group, [(value, system, cells.get(system, Cell("absent"))) for value, system in swept])
        for group, swept in sweep.groups.items()
    ]
    return _over(sweep, members, column, place, column.key, column.title)


def analysis_over_parameter(
    analyses: Sequence[AnalysisResults], kind: str, key: str, sweep: Sweep, variants: Mapping[str, str]
) -> Figure | None:
    """Draw a column of an analysis over a number in which systems differ by their variants.

    One curve for each group of systems and setting of the analysis ("beam 4", "exact"). None without a point.
    All analyses of a kind count as one, since variants with different corpora are analysed on different test
    sets. A variant that is analysed several times is not drawn.
    """
    of_kind = [analysis for analysis in analyses if analysis.spec.kind == kind]
    measured: dict[tuple[str, str], list[Cell]] = {}  # by variant or system, and setting
    for row in (row for analysis in of_kind for row in analysis.tables[0].rows):
        measured.setdefault((row.name, row.setting), []).append(row.cells[key])
    cells = {
        place: cells_of_curve[0] for place, cells_of_curve in measured.items() if len(cells_of_curve) == 1
    }
    if not cells:
        return None
    # curve by its variants or systems: a variant is drawn once, even if several systems decode with it
    members: dict[tuple[str, ...], tuple[str, list[Member]]] = {}
    for swept in sweep.groups.values():
        for setting in dict.fromkeys(setting for _, setting in cells):
            named = [
                (value, system if of_kind[0].spec.rows == "system" else variants.get(system, system))
                for value, system in swept
            ]
            cells_of_curve = [
                (value, name, cells.get((name, setting), Cell("absent"))) for value, name in named
            ]
            names = tuple(name for _, name in named)
            if len(set(names)) == len(names) and any(cell.state != "absent" for *_, cell in cells_of_curve):
                curve = ", ".join(filter(None, [in_common(list(names)), setting]))
                members.setdefault((*names, setting), (curve, cells_of_curve))
    uses = Counter(curve for curve, _ in members.values())
    curves = [
        (curve if uses[curve] == 1 else ", ".join(filter(None, names)), cells_of_curve)
        for names, (curve, cells_of_curve) in members.items()
    ]
    column = next(column for column in of_kind[0].tables[0].columns if column.key == key)
    title = of_kind[0].spec.title
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
    chosen_by = (sweep.title, choice)
    return vega.figure(f"{sweep.parameter}-{key}", title, rows, layer, list(missing), choice=chosen_by)


def _own_test_sets(everywhere: Sequence[SystemsOn], key: str) -> dict[str, Cell]:
    """Return a column's cell for each system that translates exactly one test set."""
    measured: dict[str, list[Cell]] = {}
    for systems in everywhere:
        if key in {column.key for column in systems.table.columns}:
            for row in systems.table.rows:
                measured.setdefault(row.name, []).append(row.cells[key])
    return {system: cells[0] for system, cells in measured.items() if len(cells) == 1}
