"""The table of a test set: one row a system, one column a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from creamtea.report import describe
from creamtea.report.cells import Measured, absent, correct, read_cell, read_delta, state_of
from creamtea.report.model import Cell, Column, Delta, Row, TestSetTable
from creamtea.store.queries import MetricValue
from creamtea.study.checks import metric_name
from creamtea.study.spec import Metric, Study

_RECALL = "share of the unique reference subwords{} that the selected vocabulary holds; 100 for a full one"
RECALL_IDIOM = Column(
    "recall_idiom", "idiom recall", 1, "higher", 100.0, "%", note=_RECALL.format(" of the idioms")
)
RECALL_SENTENCE = Column("recall_sentence", "recall", 1, "higher", 100.0, "%", note=_RECALL.format(""))
SELECTED = Column("selected_size", "selected", 0, "lower", note="mean size of the vocabulary of a sentence")
LENGTH = Column("length_ratio", "length", 3, note="hypothesis over reference tokens, as BLEU counts them")
EMPTY = Column("empty", "empty", 1, "lower", 100.0, "%", note="share of empty outputs")
LATENCY = (
    Column("latency_p50", "p50", 1, "lower", 1.0, "ms", note="median latency of a sentence"),
    Column("latency_p90", "p90", 1, "lower", 1.0, "ms", note="latency that 90 % of the sentences stay under"),
)
TRAINING = ("updates", "dev_loss", "dev_bleu", "seconds", "tokens_per_second", "parameters", "left_out")


class Material:
    """A study's spec and its nodes with their metrics, found by kind and labels."""

    def __init__(self, spec: Study, measured: Sequence[Measured]) -> None:
        self.spec = spec
        self._by_kind: dict[str, list[Measured]] = {}
        for one in measured:
            self._by_kind.setdefault(one.node.kind, []).append(one)

    def of(self, kind: str, **labels: object) -> list[Measured]:
        """The nodes of a kind with these labels, in the plan's order."""
        return [
            one
            for one in self._by_kind.get(kind, [])
            if all(one.node.labels.get(name) == value for name, value in labels.items())
        ]


def build_table(material: Material, test_set: str) -> TestSetTable:
    spec = material.spec
    prepared = material.of("test_set", test_set=test_set)
    segments, idioms = (_count(prepared, name) for name in ("segments", "idioms"))
    metrics = {metric_name(metric): metric for metric in spec.metrics}
    columns = [_metric_column(material, test_set, key, metric) for key, metric in metrics.items()]
    columns += [RECALL_SENTENCE] if idioms == 0 else [RECALL_IDIOM, RECALL_SENTENCE]
    columns += [SELECTED, LENGTH, EMPTY]
    if spec.latency is not None and spec.latency.test_set == test_set:
        columns += LATENCY

    deltas = {key: _deltas(material, test_set, key) for key in metrics}
    latency = _latency_cells(material)
    rows = []
    for system in spec.systems:
        cells = {key: _score(material, system, test_set, key, metrics[key]) for key in metrics}
        for key, by_system in deltas.items():
            cells[key] = replace(cells[key], delta=by_system.get(system))
        cells |= _output_cells(material, system, test_set)
        cells |= {column.key: latency[system, column.key] for column in LATENCY if latency}
        rows.append(
            Row(
                system=system,
                variant=spec.systems[system].variant,
                baseline=system == spec.baseline,
                description=describe.system(spec, system),
                cells={column.key: cells[column.key] for column in columns},
            )
        )
    return TestSetTable(test_set, segments, idioms, tuple(columns), tuple(rows))


def _count(prepared: Sequence[Measured], name: str) -> int | None:
    for one in prepared:
        metric = one.find(name)
        if metric is not None and metric.value is not None:
            return int(metric.value)
    return None


# ---------------------------------------------------------------- metrics and differences


def _metric_column(material: Material, test_set: str, key: str, metric: Metric) -> Column:
    signatures = {
        str(found.detail.get("signature", ""))
        for one in material.of("score", test_set=test_set, metric=key)
        if (found := one.find(metric.kind)) is not None
    }
    digits = 4 if metric.kind == "comet" else 1
    return Column(
        key, describe.metric(metric), digits, "higher", signature=" and ".join(sorted(signatures - {""}))
    )


def _score(material: Material, system: str, test_set: str, key: str, metric: Metric) -> Cell:
    measured = material.of("score", system=system, test_set=test_set, metric=key)
    return read_cell(measured, lambda one: one.find(metric.kind), "the plan has no score step for this")


def _deltas(material: Material, test_set: str, key: str) -> dict[str, Delta]:
    """By system, without the baseline."""
    spec = material.spec
    others = [system for system in spec.systems if system != spec.baseline]
    found = [material.of("compare", system=system, test_set=test_set, metric=key) for system in others]
    deltas = [read_delta(measured[0] if measured else None) for measured in found]
    return dict(zip(others, correct(deltas), strict=True))


# ---------------------------------------------------------------- what the outputs are like


def _output_cells(material: Material, system: str, test_set: str) -> dict[str, Cell]:
    decodes = material.of("decode", system=system, test_set=test_set)
    no_decode = "the plan has no decode step for this"
    return {
        RECALL_IDIOM.key: _recall(material, system, test_set, "idiom"),
        RECALL_SENTENCE.key: _recall(material, system, test_set, "sentence"),
        SELECTED.key: read_cell(decodes, lambda one: one.find("selected_size"), no_decode),
        EMPTY.key: read_cell(decodes, lambda one: one.find("empty"), no_decode),
        LENGTH.key: _length_ratio(material, system, test_set),
    }


def _recall(material: Material, system: str, test_set: str, scope: str) -> Cell:
    if material.spec.systems[system].selection.kind == "full":
        return Cell("ok", value=1.0, seeds=1)  # by definition: nothing is left out
    measured = material.of("recall", system=system, test_set=test_set)
    return read_cell(measured, lambda one: one.find("recall", scope), "the plan has no recall step for this")


def _length_ratio(material: Material, system: str, test_set: str) -> Cell:
    """From the study's first BLEU."""
    for metric in material.spec.metrics:
        if metric.kind == "bleu":
            measured = material.of("score", system=system, test_set=test_set, metric=metric_name(metric))
            return read_cell(measured, lambda one: one.find("length_ratio"), "no score step for this")
    return absent("the length ratio is counted by BLEU, which this study does not measure")


# ---------------------------------------------------------------- latency


def _latency_cells(material: Material) -> dict[tuple[str, str], Cell]:
    """By system and column; empty for a study without latency."""
    spec = material.spec
    if spec.latency is None:
        return {}
    runs = material.of("latency")
    timed = spec.latency.systems or list(spec.systems)

    def cell(system: str, key: str) -> Cell:
        if system not in timed:
            return absent("the study does not time this system")

        def read(run: Measured) -> MetricValue | None:
            return run.find(key, str(timed.index(system)))

        return read_cell(runs, read, "the plan has no latency step")

    cells = {(system, column.key): cell(system, column.key) for system in spec.systems for column in LATENCY}
    for column in LATENCY:
        base = cells[spec.baseline, column.key].value
        for system in spec.systems:
            found = cells[system, column.key]
            if base and found.value is not None:
                cells[system, column.key] = replace(found, percent=100.0 * found.value / base)
    return cells


# ---------------------------------------------------------------- training


def training_cells(run: Measured) -> dict[str, Cell]:
    cells = {name: _training_cell(run, name) for name in TRAINING if name != "seconds"}
    return {name: cells.get(name) or _seconds(run) for name in TRAINING}


def _training_cell(run: Measured, name: str) -> Cell:
    return read_cell([run], lambda one: one.find(name), "")


def _seconds(run: Measured) -> Cell:
    state, note = state_of(run.node)
    if state != "ok":
        return Cell(state, note)
    seconds = run.node.facts.get("training_seconds")
    if seconds is None:
        return Cell("unavailable", f"{run.node.name} did not say how long it took")
    return Cell("ok", value=float(seconds), seeds=1)
