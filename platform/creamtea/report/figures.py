"""Figures of a study: ranking, quality against latency, recall, learning curves, scores over a parameter.

A figure's data have all systems or runs (`creamtea.report.vega`). `analyses` draws the analyses.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from creamtea.contract.step import Column
from creamtea.report import text, vega
from creamtea.report.analyses import AnalysisResults, curve_layers, mark
from creamtea.report.cells import StudyResults, state_of
from creamtea.report.configuration import describe_imported
from creamtea.report.model import Cell, Choice, Delta, Figure, Percent, Spec, Table
from creamtea.report.tables import P50, RECALL_SENTENCE, SELECTED, SPEED
from creamtea.store.queries import CurvePoint, Node
from creamtea.study.spec import Study, System
from creamtea.words import shared_start

RECALL = ("recall_sentence", "recall_idiom", "recall_idiom_words")


# by series and test set, then by selection
RecallCurves = Mapping[tuple[str, str], Mapping[str, Sequence[CurvePoint]]]


def recall_curves(results: StudyResults) -> RecallCurves:
    """Return the recall sweeps, each once.

    A sweep does not depend on a system's own k or threshold: all lexicon systems over a corpus and its
    subwords share one curve, and so do all NVS systems of a variant, seed and context. If whole batches share
    a selection, each has a second curve.
    """
    curves: dict[tuple[str, str], dict[str, Sequence[CurvePoint]]] = {}
    for step in results.of("recall"):
        if step.node.state != "succeeded":
            continue
        test_set, group = str(step.node.labels["test_set"]), _recall_group(results.spec, step.node)
        recorded = results.points.get(step.node.key, {})
        curves_here = [(series, group, recorded[series]) for series in RECALL if recorded.get(series)]
        if (batch := results.spec.recall.batch) and (points := recorded.get("recall_batch")):
            curves_here.append(("recall_sentence", f"{group}, batches of {batch}", points))
        for series, name, points in curves_here:
            curves.setdefault((series, test_set), {}).setdefault(name, points)
    return curves


def _recall_group(spec: Study, node: Node) -> str:
    system = spec.systems[str(node.labels["system"])]
    selection = system.selection
    if not selection.needs_model:
        several = len({_lexicon(spec, other) for other in spec.systems.values() if other.runs}) > 1
        return f"{selection.curve()}, {_lexicon(spec, system)}" if several else selection.curve()
    name = system.variant
    seed = f", seed {node.labels['seed']}" if len(spec.variants[name].seeds) > 1 else ""
    return f"{selection.curve()}, {name}{seed}"


def _lexicon(spec: Study, system: System) -> str:
    """Name the text of a system's lexicon: "news/bpe", "idioms/bpe of news", "news/model opus-mt".

    The subwords come from the first variant in a chain of adaptations, or from an imported model.
    """
    corpus = spec.alignment_corpus(system)
    if (model := system.model or spec.imported_by(system.variant)) is not None:
        return f"{corpus}/{describe_imported(model)}"
    root = spec.variants[spec.root_of(system.variant)]
    return f"{corpus}/{root.subwords}" + ("" if corpus == root.corpus else f" of {root.corpus}")


LEARNING_TITLES = {
    "dev_loss": "development loss",
    "dev_bleu": "development BLEU",
    "dev_per": "development PER",
    "dev_levenshtein": "development Levenshtein distance",
    "train_loss": "training loss",
    "dev_perplexity": "development perplexity",
    "learning_rate": "learning rate",
}
OBJECTIVE_LOSSES = ("dev_loss", "train_loss")  # series whose scale differs between objectives
RECALL_SCOPES = {"idiom_words": "idiom", "idiom": "idiom in context", "sentence": "sentence"}


Runs = dict[str, Mapping[str, Sequence[CurvePoint]]]  # a training's curves, by its name


class SystemsOn(NamedTuple):
    """The tables of a test set: systems, and comparisons with further baselines.

    `pairs`: the differences of every two systems. `times`: each timed system's time as a percentage of every
    system's, as `speed_of` measures it.
    """

    test_set: str
    table: Table
    further: Table | None
    every_style: vega.Styles  # of the study's systems
    pairs: Mapping[tuple[str, str], Delta]
    times: Mapping[tuple[str, str], Percent] = {}

    @property
    def styles(self) -> vega.Styles:
        return {row.name: self.every_style[row.name] for row in self.table.rows}


def ranking(systems: SystemsOn, metric: Column, references: Collection[str]) -> Figure:
    """Draw each system's score with its 95 % interval, best first, without human `references`."""
    sign = -1 if metric.better == "lower" else 1
    rows, missing = list[dict[str, Any]](), []
    for row in systems.table.rows:
        if row.name in references:
            continue
        cell = row.cells[metric.key]
        name = f"{row.name} (baseline)" if row.baseline else row.name
        if cell.value is None:
            missing.append(text.not_drawn(name, cell.state))
            continue
        own = {"name": name, "system": row.name, "baseline": row.baseline}
        rows.append(own | vega.with_bounds(cell, metric))
    rows.sort(key=lambda row: -sign * row["value"])
    x = vega.quantity("value", text.heading(metric), zero=False)
    names = [row["name"] for row in rows]
    y = vega.named("name", names)
    style = vega.by_style("system", systems.styles, legend={})
    tooltip = vega.tooltip(("name", "system", ""), *vega.with_interval("value", metric))
    of_baseline = {"filter": "datum.baseline"}
    dashed = {"type": "rule", "aria": False, "strokeDash": [4, 4], "color": vega.GREY}
    across = {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y, "color": style["color"]}
    return vega.figure(
        "ranking",
        f"{metric.title} of each system ({systems.test_set})",
        rows,
        [
            {"transform": [of_baseline], "mark": dashed, "encoding": {"x": x}},
            vega.rule(across, strokeWidth=2),
            vega.points({"x": x, "y": y, **style, "tooltip": tooltip}, size=90),
        ],
        missing,
        names=names,
    )


def speed_of(systems: Table) -> Column | None:
    """Return the column of the systems' speed; None if nothing is timed."""
    return next((column for column in (SPEED, P50) if column in systems.columns), None)


def quality_choice(systems: SystemsOn, timed: SystemsOn) -> Choice:
    """Draw quality against latency for each metric."""
    metrics = [column for column in systems.table.columns if column.signature]
    figures = [quality_against_latency(systems, timed, metric) for metric in metrics]
    drawn = tuple(figure for figure in figures if len(figure.missing) < len(figure.rows))
    return Choice(
        "quality", "Quality against latency", ("Metric",), drawn, "no system is both scored and timed"
    )


def quality_against_latency(systems: SystemsOn, timed: SystemsOn, metric: Column) -> Figure:
    """Draw one point per system with 95 % intervals: score over median latency.

    If batches are timed, x is sentences per second. The axis names the test set that was timed, which may be
    another.
    """
    clock = speed_of(timed.table) or P50
    latency = {row.name: row.cells[clock.key] for row in timed.table.rows}
    baselines = list(dict.fromkeys(name for cell in latency.values() for name in cell.percents))
    rows, missing = [], []
    for row in systems.table.rows:
        score, time = row.cells[metric.key], latency.get(row.name, Cell("absent"))
        rows.append(
            {
                "system": row.name,
                "description": row.description,
                **vega.with_bounds(score, metric, "quality"),
                **{"latency": time.value, "latency_low": time.low, "latency_high": time.high},
                **{
                    f"percent{place}": text.percent(time.percents[name]) if name in time.percents else None
                    for place, name in enumerate(baselines)
                },
            }
        )
        missing += [text.not_drawn(row.name, cell.state) for cell in (score, time) if cell.value is None][:1]
    axis = "latency p50, ms per sentence" if clock is P50 else "sentences per second"
    x = vega.quantity("latency", f"{axis} ({timed.test_set})", zero=False, padding=30)
    y = vega.quantity("quality", text.heading(metric), zero=False)
    tooltip = vega.tooltip(
        ("system", "system", ""),
        ("description", "decodes", ""),
        *vega.with_interval("quality", metric),
        *vega.with_interval("latency", clock, "latency_low", "latency_high"),
        *((f"percent{place}", f"of {name}", "") for place, name in enumerate(baselines)),
    )
    up = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}}
    across = {"x": x | {"field": "latency_low"}, "x2": {"field": "latency_high"}, "y": y}
    return vega.figure(
        metric.key,
        f"{metric.title} against latency ({systems.test_set})",
        rows,
        vega.systems_at(x, y, rows, systems.styles, tooltip, (up, across)),
        missing,
        choice=(metric.title,),
    )


def recall_choice(systems: SystemsOn, curves: RecallCurves, idioms: bool) -> Choice:
    """Draw the recall of sentences, and with `idioms` two figures of the recall of idioms."""
    scopes = RECALL_SCOPES if idioms else {"sentence": RECALL_SCOPES["sentence"]}
    figures = (recall_against_size(systems, curves, *scope) for scope in scopes.items())
    return Choice(
        "recall",
        "Recall against size",
        ("Recall of the reference in",),
        tuple(figure for figure in figures if figure is not None),
        "no recall has been measured",
    )


def recall_against_size(systems: SystemsOn, curves: RecallCurves, scope: str, title: str) -> Figure | None:
    """Draw recall of the reference's subwords over the mean selected size (log scale).

    One line per selection; the study's systems are labelled points with 95 % intervals. `scope` is one of
    RECALL_SCOPES. None without a sweep.
    """
    series = f"recall_{scope}"
    by_selection = curves.get((series, systems.test_set))
    if not by_selection:
        return None
    places, missing = _recall_of_systems(systems.table, series)
    of_curve = {"low": None, "high": None, "system": "", "label": ""}
    rows: list[dict[str, Any]] = [
        {"selection": selection, "size": point.x, "recall": point.y, "setting": point.label} | of_curve
        for selection, points in by_selection.items()
        for point in points
    ]
    rows += places
    x: Spec = {
        "field": "size",
        "type": "quantitative",
        "title": "mean selected vocabulary, subwords (log scale)",
        "scale": {"type": "log", "nice": False},
        "axis": {"tickCount": 5, "format": ",.0f", "grid": False},
    }
    y = vega.quantity("recall", f"{title} recall", zero=False) | {"axis": {"format": ".0%"}}
    y["scale"]["nice"] = False  # no tick above 100 %
    return vega.figure(
        scope,
        f"{title.capitalize()} recall against selected size ({systems.test_set})",
        rows,
        _recall_layers(x, y, rows, list(by_selection), systems.styles),
        missing,
        choice=(title,),
    )


def _recall_of_systems(table: Table, series: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each system, and the missing systems. Systems at one point share a label."""
    rows, missing, places = [], [], dict[tuple[float, float], dict[str, Any]]()
    for row in table.rows:
        size, recall = row.cells[SELECTED.key], row.cells.get(series, Cell("absent"))
        point = {"selection": None, "size": size.value, "recall": recall.value, "setting": row.description}
        bounds = {"low": recall.low, "high": recall.high}
        rows.append({**point, **bounds, "system": row.name, "label": row.name})
        if size.value is None or recall.value is None:
            missing += [
                text.not_drawn(row.name, cell.state) for cell in (recall, size) if cell.value is None
            ][:1]
        elif (size.value, recall.value) in places:
            places[size.value, recall.value]["label"] += f", {row.name}"
            rows[-1]["label"] = ""
        else:
            places[size.value, recall.value] = rows[-1]
    return rows, missing


def _recall_layers(
    x: Spec, y: Spec, rows: list[dict[str, Any]], groups: Sequence[str], styles: vega.Styles
) -> list[Spec]:
    """Draw the curves with their points in grey, and the systems with their intervals and labels."""
    labels = vega.labels(x, y, "label", rows, logarithmic=True)
    style = vega.by_style("system", styles, legend={} if labels else None)
    share = f".{RECALL_SENTENCE.digits}%"
    tooltip = vega.tooltip(
        ("selection", "selection", ""),
        ("system", "system", ""),
        ("setting", "setting", ""),
        ("size", "mean size", vega.digits(SELECTED)),
        ("recall", "recall", share),
        ("low", "95 % from", share),
        ("high", "95 % to", share),
    )
    of_curves, of_systems = {"filter": "datum.selection !== null"}, {"filter": "datum.selection === null"}
    line = vega.by_style("selection", vega.greys(groups), "strokeDash")
    line |= {"x": x, "y": y, "order": {"field": "size", "type": "quantitative"}}
    bounds = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": style["color"]}
    return [
        {
            "transform": [of_curves],
            "mark": {"type": "line", "strokeWidth": 2, "color": vega.GREY},
            "encoding": line,
        },
        {
            "transform": [of_curves],
            "mark": {"type": "point", "filled": True, "size": 30, "color": vega.GREY},
            "encoding": {"x": x, "y": y, "tooltip": tooltip},
        },
        {"transform": [of_systems, vega.WITH_BOUNDS], **vega.rule(bounds, strokeWidth=2)},
        {"transform": [of_systems], **vega.points({"x": x, "y": y, **style, "tooltip": tooltip}, size=90)},
        *labels,
    ]


def learning_choice(results: StudyResults) -> Choice:
    """Draw each series of the study's trainings."""
    trainings = [run.node for run in results.of("train")]
    states = {run_name(node.labels): state_of(node)[0] for node in trainings}
    ended = {name: text.STATE_WORDS[state] for name, state in states.items() if state in text.ENDED_WITHOUT}
    return learning_figures(results.spec, trainings, results.points, ended)


def run_name(labels: Mapping[str, Any]) -> str:
    """Name a training: "softmax, seed 1"."""
    return f"{labels['variant']}, seed {labels['seed']}"


def learning_figures(
    spec: Study,
    trainings: Sequence[Node],
    points: Mapping[str, Mapping[str, Sequence[CurvePoint]]],
    ended: Mapping[str, str] | None = None,
) -> Choice:
    """Draw the learning curves; losses once per objective, because their scales differ.

    `points`: by training and series. `ended`: by run without a model, how it ended.
    """
    runs: Runs = {}
    objectives: dict[str, Runs] = {}
    parts: dict[str, tuple[str, str]] = {}  # a run has its variant's colour; seeds differ in their marks
    for node in trainings:
        name, variant = run_name(node.labels), str(node.labels["variant"])
        parts[name] = variant, str(node.labels["seed"])
        objective = spec.variants[variant].objective.describe()
        runs[name] = objectives.setdefault(objective, {})[name] = points.get(node.key, {})
    styles = vega.styles_of_parts(vega.styles_of(spec), parts)
    recorded = {series for curves_of_run in runs.values() for series in curves_of_run}
    figures: list[Figure] = []
    for series in (series for series in LEARNING_TITLES if series in recorded):
        if series in OBJECTIVE_LOSSES and len(objectives) > 1:
            for objective, curves_of_run in objectives.items():
                panel = learning_curves(curves_of_run, series, styles, objective, ended)
                figures += [panel] if panel.rows or panel.missing else []
        else:
            figures.append(learning_curves(runs, series, styles, ended=ended))
    return Choice(
        "learning", "Learning curves", ("Curve",), tuple(figures), "no training has recorded points"
    )


def learning_curves(
    runs: Runs, series: str, styles: vega.Styles, objective: str = "", ended: Mapping[str, str] | None = None
) -> Figure:
    """Draw one line per training over its updates; `series` as in `LEARNING_TITLES`.

    `objective`: the objective of these runs, if other objectives have figures of their own; `ended`: as in
    `learning_figures`.
    """
    waiting = [run for run, recorded in runs.items() if series not in recorded]
    rows: list[dict[str, Any]] = [
        {"run": run, "update": point.x, "value": point.y}
        for run, recorded in runs.items()
        for point in recorded.get(series, ())
    ]
    values = [row["value"] for row in rows if row["value"] is not None]
    rows += [{"run": run, "update": None, "value": None} for run in waiting if values]  # for the legend
    title = LEARNING_TITLES[series]
    run_styles = {run: styles[run] for run in runs}
    encoding = {
        "x": vega.quantity("update", "updates", zero=True, padding=0),
        "y": vega.quantity("value", title, zero=False),
    }
    if values and 0 <= min(values) < max(values) / 10:
        encoding["y"]["scale"]["domainMin"] = 0  # the padding would show values below 0
    tooltip = vega.tooltip(("run", "run", ""), ("update", "update", ",.0f"), ("value", title, ".4~g"))
    line = {**encoding, **vega.by_style("run", run_styles, "color", "strokeDash")}
    points = {**encoding, **vega.by_style("run", run_styles), "tooltip": tooltip}
    layer = [{"mark": {"type": "line", "strokeWidth": 2}, "encoding": line}, vega.points(points, size=35)]
    # perplexity has the same points as the loss, unless it is infinite
    infinite = [run for run in waiting if series == "dev_perplexity" and "dev_loss" in runs[run]]
    why = dict.fromkeys(infinite, "infinite: a reference has probability 0") | dict(ended or {})
    missing = [f"{run} ({why.get(run, 'no points yet')})" for run in waiting]
    words = f"{title[0].upper()}{title[1:]}" + (f": {objective}" if objective else "")
    key = f"{series}-{text.key_of(objective)}" if objective else series
    return vega.figure(key, words, rows, layer, missing, choice=(title,))


# ---------------------------------------------------------------- scores over a parameter


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
                (analysis.spec.kind, over) for analysis in analyses for over in analysis.spec.over
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

    Returns None if there is no point to draw. If the number belongs to the corpora (the sampling
    temperature), each system has a test set of its own. A system that lacks this test set is drawn with its
    score on the only test set that it translates.
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
    sweep: Sweep, curves: Sequence[tuple[str, list[Member]]], y: Column, about: str, key: str, choice: str
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
