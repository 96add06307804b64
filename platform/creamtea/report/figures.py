"""Figures of a study: ranking, quality against latency, recall against size, learning curves.

A figure's data have all systems or runs (`creamtea.report.vega`). `analyses` draws the analyses, and `sweeps`
the scores over a parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from creamtea.contract.step import Column
from creamtea.report import text, vega
from creamtea.report.cells import StudyResults, state_of
from creamtea.report.configuration import describe_imported
from creamtea.report.latency import P50, SPEED
from creamtea.report.model import Cell, Choice, Delta, Figure, Spec, Table
from creamtea.report.tables import RECALL_SENTENCE, SELECTED
from creamtea.store.queries import CurvePoint, Node
from creamtea.study.spec import Study, System

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
    """The tables of a test set: systems, comparisons with further baselines, and agreement of outputs.

    `pairs`: the differences of every two systems. `agreement` is set only if there are no references.
    """

    test_set: str
    table: Table
    further: Table | None
    every_style: vega.Styles  # of the study's systems
    pairs: Mapping[tuple[str, str], Delta]
    agreement: Table | None = None

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
    runs: Runs,
    series: str,
    styles: vega.Styles,
    objective: str = "",
    ended: Mapping[str, str] | None = None,
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
    layer = [
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": line},
        vega.points(points, size=35),
    ]
    # perplexity has the same points as the loss, unless it is infinite
    infinite = [run for run in waiting if series == "dev_perplexity" and "dev_loss" in runs[run]]
    why = dict.fromkeys(infinite, "infinite: a reference has probability 0") | dict(ended or {})
    missing = [f"{run} ({why.get(run, 'no points yet')})" for run in waiting]
    words = f"{title[0].upper()}{title[1:]}" + (f": {objective}" if objective else "")
    key = f"{series}-{text.key_of(objective)}" if objective else series
    return vega.figure(key, words, rows, layer, missing, choice=(title,))
