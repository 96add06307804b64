"""From steps and their metrics to the cells of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, stdev

from sqlalchemy.orm import Session

from creamtea.document.warning import StudyWarning
from creamtea.report.model import UNMARKED, Cell, Delta, PValue, Warnings
from creamtea.report.step_titles import step_title
from creamtea.stats.paired import SIGNIFICANT, holm
from creamtea.stats.resampling import MIN_SEGMENTS
from creamtea.store.queries import (
    OUTPUTS,
    CurvePoint,
    MetricValue,
    Node,
    inputs_of,
    metrics_of,
    points_of,
    study_nodes,
)
from creamtea.store.tables import StepInput
from creamtea.study.spec import Study
from creamtea.wording import counted

# which state a cell without a value takes from several seeds: the one that most needs looking at
_GRAVITY = ("failed", "unavailable", "cancelled", "running", "pending", "absent")


@dataclass(frozen=True)
class Measured:
    """A node with the metrics that its step has left."""

    node: Node
    metrics: Sequence[MetricValue]

    def find(self, name: str, subject: str = "") -> MetricValue | None:
        for metric in self.metrics:
            if metric.name == name and metric.subject == subject:
                return metric
        return None


class Material:
    """A study's spec and its nodes with their metrics, found by kind and labels; within its session."""

    def __init__(self, session: Session, study: int, spec: Study) -> None:
        self._session = session
        self.spec = spec
        self.nodes = study_nodes(session, study)
        metrics = metrics_of(session, [node.key for node in self.nodes])
        self._by_kind: dict[str, list[Measured]] = {}
        for node in self.nodes:
            self._by_kind.setdefault(node.kind, []).append(Measured(node, metrics.get(node.key, [])))

    def of(self, kind: str, **labels: object) -> list[Measured]:
        """The nodes of a kind with these labels, in the plan's order."""
        return [
            step
            for step in self._by_kind.get(kind, [])
            if all(step.node.labels.get(name) == value for name, value in labels.items())
        ]

    @cached_property
    def inputs(self) -> dict[str, list[StepInput]]:
        """What its steps are made from: step key → inputs, in order."""
        return inputs_of(self._session, [node.key for node in self.nodes])

    def outputs(self, system: str, test_set: str) -> list[Measured]:
        """Where a system's outputs on a test set come from, of each seed."""
        return [step for kind in OUTPUTS for step in self.of(kind, system=system, test_set=test_set)]

    @cached_property
    def points(self) -> dict[str, dict[str, list[CurvePoint]]]:
        """The points of its steps: step key → series → points."""
        return points_of(self._session, [node.key for node in self.nodes])


@dataclass(frozen=True)
class Idioms:
    count: int | None  # of all occurrences; None until the test set has been prepared
    distinct: int | None  # None until a recall has been measured
    by_words: bool  # asked by their own words, too, which version 0.1.0 did not do

    @property
    def repeated(self) -> bool:
        """An idiom occurs several times: a mean over distinct idioms differs."""
        return self.count is not None and self.distinct is not None and self.distinct < self.count

    @property
    def needs(self) -> set[str]:
        """What settings of an analysis may need (`RowSetting.needs`)."""
        there = {"idioms": True, "words": self.by_words}
        there |= {f"repeated {name}": self.repeated and given for name, given in there.items()}
        return {"", *(name for name, given in there.items() if given and self.count != 0)}


def idioms_of(material: Material, test_set: str) -> Idioms:
    """What the steps report of a test set's idioms; recall's details have how many are distinct."""
    count = known_count(material.of("test_set", test_set=test_set), "idioms")
    measured = [
        *material.of("recall", test_set=test_set),
        *material.of("recall_at_size", test_set=test_set),
    ]
    distinct = [
        metric.detail["idioms"] for step in measured for metric in step.metrics if "idioms" in metric.detail
    ]
    return Idioms(
        count,
        distinct=max(distinct, default=None),  # an aligner finds some of them nowhere in the references
        by_words=count != 0
        and any("idiom_words" in metric.subject for step in measured for metric in step.metrics),
    )


def few_segments(place: str, segments: int | None) -> tuple[Warnings, ...]:
    """A warning beside a table whose intervals are over so few segments that they are too narrow. None of a
    single segment, which has no intervals."""
    if segments is None or not 1 < segments < MIN_SEGMENTS:
        return ()
    found = (
        f"{segments} segments: 95 % intervals of corpus scores and of their differences over fewer than "
        f"{MIN_SEGMENTS} segments hold the true value in 80 to 93 % of cases"
    )
    remedy = "Read these intervals as too narrow, or measure on more segments."
    return (Warnings("few-segments", (StudyWarning("few-segments", place, found, remedy),)),)


def known_count(measured: Sequence[Measured], name: str) -> int | None:
    """A count, from the first step that has it."""
    for step in measured:
        metric = step.find(name)
        if metric is not None and metric.value is not None:
            return int(metric.value)
    return None


Read = Callable[[Measured], MetricValue | None]


def absent(note: str) -> Cell:
    return Cell("absent", note)


def state_of(node: Node) -> tuple[str, str]:
    """The cell state of a node's step, and why it has no value."""
    if node.state == "succeeded":
        return "ok", ""
    if node.state == "failed":
        state = "unavailable" if node.error_kind == "unavailable" else "failed"
        return state, node.error or f"failed without a message ({step_title(node)})"
    if node.state == "cancelled":
        return "cancelled", f"cancelled ({step_title(node)})"
    if node.state == "running":
        return "running", f"running ({step_title(node)})"
    return "pending", f"not run yet ({step_title(node)})"


def read_cell(measured: Sequence[Measured], read: Read, missing: str) -> Cell:
    """One cell from the nodes of a system's seeds; `missing` says why there would be no node at all."""
    if not measured:
        return absent(missing)
    values: list[MetricValue] = []
    gaps: list[tuple[str, str, str]] = []  # state, note, seed
    for step in measured:
        state, note = state_of(step.node)
        metric = read(step) if state == "ok" else None
        if metric is not None and metric.value is not None:
            values.append(metric)
            continue
        if state == "ok":
            state, note = "unavailable", metric.note if metric else f"not measured ({step_title(step.node)})"
        gaps.append((state, note, str(step.node.labels.get("seed", ""))))
    if not values:
        state = min((state for state, _, _ in gaps), key=_GRAVITY.index)
        return Cell(state, _join(gaps, named=len(measured) > 1))
    cell = _mean(values)
    if gaps:
        return replace(
            cell,
            state="partial",
            note=f"{len(values)} of {counted(len(measured), 'seed')}; {_join(gaps, named=True)}",
        )
    return cell


def _mean(metrics: Sequence[MetricValue]) -> Cell:
    values = [metric.value for metric in metrics if metric.value is not None]
    lows = [metric.low for metric in metrics if metric.low is not None]
    highs = [metric.high for metric in metrics if metric.high is not None]
    bounded = len(lows) == len(highs) == len(metrics)
    return Cell(
        "ok",
        "; ".join(dict.fromkeys(metric.note for metric in metrics if metric.note)),
        value=fmean(values),
        low=fmean(lows) if bounded else None,
        high=fmean(highs) if bounded else None,
        deviation=stdev(values) if len(values) > 1 else None,
        seeds=len(values),
    )


def _join(gaps: Sequence[tuple[str, str, str]], named: bool) -> str:
    """The distinct reasons, each with the seeds that it concerns if there are several."""
    seeds: dict[str, list[str]] = {}
    for _, note, seed in gaps:
        seeds.setdefault(note, []).append(seed)
    if not named:
        return "; ".join(seeds)
    return "; ".join(f"seed{'s' * (len(of) > 1)} {', '.join(of)}: {note}" for note, of in seeds.items())


def read_delta(measured: Measured | None, subject: str | None = None) -> Delta:
    """The comparison with the baseline, not yet corrected; of a step with several that of this subject."""
    if measured is None:
        return Delta("absent", "the plan has no comparison for this metric")
    state, note = state_of(measured.node)
    if state != "ok":
        return Delta(state, note)
    rows = (metric for metric in measured.metrics if subject in (None, metric.subject))
    row = next((metric for metric in rows if metric.name == "delta"), None)
    if row is None or row.value is None:
        return Delta("unavailable", row.note if row else f"no difference ({step_title(measured.node)})")
    return tested_delta(row)


def tested_delta(row: MetricValue) -> Delta:
    """What a comparison has left."""
    return Delta(
        "ok",
        row.note,
        value=row.value,
        low=row.low,
        high=row.high,
        p_values={
            test: PValue(row.detail[key])
            for test, key in (("bootstrap", "p_two_sided"), ("randomization", "p_randomization"))
            if key in row.detail  # the second since version 2 of the step
        },
        p_sacrebleu=row.detail["p_value"],
    )


# states of a comparison whose step has not ended for good: a study that is run again makes it
COMING = ("pending", "running", "failed", "cancelled")


def correct(deltas: Sequence[Delta]) -> list[Delta]:
    """Holm's correction over the comparisons of one metric on one test set, each test by itself. One that is
    still to come counts as p = 1, so that no mark goes away when it is there. A difference is significant if
    both tests say so: neither can be chosen after seeing the other. Where there is a p with seeds, it must
    say so, too: the tests are over segments alone."""

    def corrected(p_values: Iterable[float | None]) -> list[float | None]:
        return holm([1.0 if delta.state in COMING else p for delta, p in zip(deltas, p_values, strict=True)])

    tests = dict.fromkeys(test for delta in deltas for test in delta.p_values)
    of_tests = {
        test: corrected(delta.p_values.get(test, PValue()).value for delta in deltas) for test in tests
    }
    of_seeds = corrected(delta.p_seeds for delta in deltas)
    return [
        _corrected(delta, {test: p_values[place] for test, p_values in of_tests.items()}, of_seeds[place])
        for place, delta in enumerate(deltas)
    ]


def _corrected(delta: Delta, p_values: Mapping[str, float | None], with_seeds: float | None) -> Delta:
    own = {test: replace(p, corrected=p_values[test]) for test, p in delta.p_values.items()}
    seeds = None if delta.p_seeds is None else with_seeds
    decisive = [p for p in (*(p.corrected for p in own.values()), seeds) if p is not None]
    significant = bool(own) and max(decisive) < SIGNIFICANT and delta.note not in UNMARKED
    return replace(delta, p_values=own, p_seeds_corrected=seeds, significant=significant)
