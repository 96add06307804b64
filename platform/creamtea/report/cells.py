"""A study's results: its steps with their metrics; scores and differences as table cells.

Differences of one metric on one test set are corrected together; where variants have several seeds, they
also cover the choice of seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from statistics import fmean, stdev

from sqlalchemy.orm import Session

from creamtea.document.mistakes import StudyWarning
from creamtea.document.values import digest
from creamtea.methods.metrics import Bleu, Chrf, Metric
from creamtea.report.model import ONE_SEED, SEEDS_MISSING, UNMARKED, Cell, Delta, PValue, Warnings
from creamtea.stats.estimate import one_against_several, spread_of_difference
from creamtea.stats.paired import SIGNIFICANT, holm
from creamtea.stats.resampling import MIN_SEGMENTS, MIN_VALUES
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

BEFORE = {"seed": "seed", "baseline": "against"}  # words before a label's value


def step_title(node: Node) -> str:
    """Name a step: "train: softmax, seed 1", "compare: scones, against softmax, test, bleu"."""
    of_system = next((name for name in ("system", "variant") if name in node.labels), None)
    names = (
        [of_system, "baseline", "seed", "test_set", "metric", "analysis"] if of_system else list(node.labels)
    )
    words = [
        f"{BEFORE[name]} {node.labels[name]}" if name in BEFORE else str(node.labels[name])
        for name in names
        if name is not None
        and isinstance(node.labels.get(name), str | int)
        and node.labels[name] != node.kind  # an analysis named like its kind
    ]
    return ": ".join(filter(None, [node.kind.replace("_", " "), ", ".join(words)]))


# if seeds have no value for different reasons, the cell takes the first of these states
_GRAVITY = ("failed", "unavailable", "cancelled", "running", "pending", "absent")


@dataclass(frozen=True)
class Measured:
    """A node and the metrics that its step stored."""

    node: Node
    metrics: Sequence[MetricValue]

    def find(self, name: str, subject: str = "") -> MetricValue | None:
        return self._by_place.get((name, subject))

    @cached_property
    def _by_place(self) -> dict[tuple[str, str], MetricValue]:
        """The metrics by name and subject; the first of two with the same."""
        return {(metric.name, metric.subject): metric for metric in reversed(self.metrics)}


class StudyResults:
    """A study's spec and its nodes with their metrics, found by kind and labels. Valid in its session."""

    def __init__(self, session: Session, study: int, spec: Study) -> None:
        self._session = session
        self.spec = spec
        self.nodes = study_nodes(session, study)
        metrics = metrics_of(session, [node.key for node in self.nodes])
        self._by_kind: dict[str, list[Measured]] = {}
        for node in self.nodes:
            self._by_kind.setdefault(node.kind, []).append(Measured(node, metrics.get(node.key, [])))
        # (kind, *names of labels) -> values of these labels -> nodes
        self._indices: dict[tuple[str, ...], dict[tuple[object, ...], list[Measured]]] = {}

    def of(self, kind: str, **labels: object) -> list[Measured]:
        """Return the nodes of a kind with these labels, in the plan's order."""
        if (kind, *labels) not in self._indices:
            index = self._indices[kind, *labels] = {}
            for step in self._by_kind.get(kind, []):
                index.setdefault(tuple(map(step.node.labels.get, labels)), []).append(step)
        return list(self._indices[kind, *labels].get(tuple(labels.values()), ()))

    @cached_property
    def inputs(self) -> dict[str, list[StepInput]]:
        """The inputs of the study's steps, in order: step key → inputs."""
        return inputs_of(self._session, [node.key for node in self.nodes])

    def outputs(self, system: str, test_set: str) -> list[Measured]:
        """Return the steps that made a system's outputs on a test set, one for each seed."""
        return [step for kind in OUTPUTS for step in self.of(kind, system=system, test_set=test_set)]

    @cached_property
    def points(self) -> dict[str, dict[str, list[CurvePoint]]]:
        """The points of the study's steps: step key → series → points."""
        return points_of(self._session, [node.key for node in self.nodes])


@dataclass(frozen=True)
class Idioms:
    """The idioms of a test set."""

    count: int | None  # occurrences; None until the test set is prepared
    distinct: int | None  # None until a recall has been measured
    by_words: bool  # recall is also measured from the idioms' own words (not in version 0.1.0)

    @property
    def repeated(self) -> bool:
        """Whether an idiom occurs several times, so that a mean over distinct idioms differs."""
        return self.count is not None and self.distinct is not None and self.distinct < self.count

    @property
    def needs(self) -> set[str]:
        """The values of `RowSetting.needs` that the test set satisfies."""
        available = {"idioms": True, "words": self.by_words}
        available |= {f"repeated {name}": self.repeated and has for name, has in available.items()}
        return {"", *(name for name, has in available.items() if has and self.count != 0)}


def idioms_of(results: StudyResults, test_set: str) -> Idioms:
    """Count a test set's idioms as its steps report them; steps of recall count distinct idioms."""
    count = known_count(results.of("test_set", test_set=test_set), "idioms")
    measured = [*results.of("recall", test_set=test_set), *results.of("recall_at_size", test_set=test_set)]
    distinct = [
        metric.detail["idioms"] for step in measured for metric in step.metrics if "idioms" in metric.detail
    ]
    return Idioms(
        count,
        distinct=max(distinct, default=None),  # an aligner does not find all idioms in the references
        by_words=count != 0
        and any("idiom_words" in metric.subject for step in measured for metric in step.metrics),
    )


def few_segments(place: str, segments: int | None) -> tuple[Warnings, ...]:
    """Warn beside a table with so few segments that its intervals are too narrow.

    A single segment has no intervals, and no warning.
    """
    if segments is None or not 1 < segments < MIN_SEGMENTS:
        return ()
    fewer, cases = (MIN_VALUES, "48 to 85 %") if segments < MIN_VALUES else (MIN_SEGMENTS, "80 to 93 %")
    problem = (
        f"{segments} segments: 95 % intervals of corpus scores and of their differences over fewer than "
        f"{fewer} segments hold the true value in {cases} of cases"
    )
    remedy = "Read these intervals as too narrow, or measure on more segments."
    return (Warnings("few-segments", (StudyWarning("few-segments", place, problem, remedy),)),)


def known_count(measured: Sequence[Measured], name: str) -> int | None:
    """Return a count from the first step that has it."""
    metrics = (step.find(name) for step in measured)
    return next((int(metric.value) for metric in metrics if metric and metric.value is not None), None)


Read = Callable[[Measured], MetricValue | None]


def state_of(node: Node) -> tuple[str, str]:
    """Return the cell state of a node's step, and why it has no value."""
    if node.state == "succeeded":
        return "ok", ""
    if node.state == "failed":
        state = "unavailable" if node.error_kind == "unavailable" else "failed"
        return state, node.error or f"failed without a message ({step_title(node)})"
    if node.state == "cancelled":
        return "cancelled", "cancelled before it had a result"  # one note for all cells of a study
    if node.state == "running":
        return "running", f"running ({step_title(node)})"
    return "pending", f"not run yet ({step_title(node)})"


def read_cell(measured: Sequence[Measured], read: Read, missing: str) -> Cell:
    """Return one cell from the nodes of a system's seeds. `missing`: the note if there are no nodes."""
    if not measured:
        return Cell("absent", missing)
    values: list[MetricValue] = []
    gaps: list[tuple[str, str, str]] = []  # state, note, seed
    for step in measured:
        state, note = state_of(step.node)
        metric = read(step) if state == "ok" else None
        if metric is not None and metric.value is not None:
            values.append(metric)
            continue
        if state == "ok":
            state, note = "absent", metric.note if metric else f"not measured ({step_title(step.node)})"
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
    """Join the distinct reasons, each with its seeds if `named`."""
    seeds: dict[str, list[str]] = {}
    for _, note, seed in gaps:
        seeds.setdefault(note, []).append(seed)
    if not named:
        return "; ".join(seeds)
    return "; ".join(
        f"seed{'s' * (len(names) > 1)} {', '.join(names)}: {note}" for note, names in seeds.items()
    )


def read_delta(measured: Measured | None, subject: str | None = None) -> Delta:
    """Return the stored comparison, not yet corrected. `subject` chooses one if the step has several."""
    if measured is None:
        return Delta("absent", "the plan has no comparison for this metric")
    state, note = state_of(measured.node)
    if state != "ok":
        return Delta(state, note)
    if subject is None:
        row = next((metric for metric in measured.metrics if metric.name == "delta"), None)
    else:
        row = measured.find("delta", subject)
    if row is None or row.value is None:
        return Delta("absent", row.note if row else f"no difference ({step_title(measured.node)})")
    return tested_delta(row)


def tested_delta(row: MetricValue) -> Delta:
    """Return the difference that a comparison stored."""
    return Delta(
        "ok",
        row.note,
        value=row.value,
        low=row.low,
        high=row.high,
        p_values={
            test: PValue(row.detail[key])
            for test, key in (("bootstrap", "p_two_sided"), ("randomization", "p_randomization"))
            if key in row.detail  # randomisation exists since version 2 of the step
        },
        p_sacrebleu=row.detail["p_value"],
    )


# states of comparisons that a later run of the study can still make
COMING = ("pending", "running", "failed", "cancelled")


def correct(deltas: Sequence[Delta], low: Sequence[bool] | None = None) -> list[Delta]:
    """Apply Holm's correction over the comparisons of one metric on one test set, for each test separately.

    A difference is significant if both tests agree, so that nobody can choose a test afterwards. A p with
    seeds must also agree, because the tests cover segments alone. `low`: whether BLEU of both systems is near
    zero; such a difference is not marked.
    """

    def corrected(p_values: Iterable[float | None]) -> list[float | None]:
        # a comparison that has not run yet counts as p = 1, so that its result removes no mark
        return holm([1.0 if delta.state in COMING else p for delta, p in zip(deltas, p_values, strict=True)])

    tests = dict.fromkeys(test for delta in deltas for test in delta.p_values)
    of_tests = {
        test: corrected(delta.p_values.get(test, PValue()).value for delta in deltas) for test in tests
    }
    of_seeds = corrected(delta.p_seeds for delta in deltas)
    marked = []
    for place, delta in enumerate(deltas):
        tested = {test: replace(p, corrected=of_tests[test][place]) for test, p in delta.p_values.items()}
        seeds = None if delta.p_seeds is None else of_seeds[place]
        decisive = [p for p in (*(test.corrected for test in tested.values()), seeds) if p is not None]
        significant = bool(tested) and max(decisive) < SIGNIFICANT and delta.note not in UNMARKED
        delta = replace(delta, p_values=tested, p_seeds_corrected=seeds, significant=significant)
        if significant and low is not None and low[place]:
            delta = replace(delta, significant=False, note=NO_MARK)
        marked.append(_with_spread(delta))
    return marked


def _with_spread(delta: Delta) -> Delta:
    """Remove intervals without width, as `with_spread` does; the tests and the mark stay."""
    if not _has_no_width(delta.low, delta.high):
        return delta
    if _has_no_width(delta.seeds_low, delta.seeds_high):
        delta = replace(delta, seeds_low=None, seeds_high=None)
    return replace(delta, note=delta.note or NO_SPREAD, low=None, high=None)


def _has_no_width(low: float | None, high: float | None) -> bool:
    """Return True if the limits of an interval are equal but for rounding."""
    return low is not None and high is not None and math.isclose(low, high, rel_tol=1e-9, abs_tol=1e-12)


Scores = Mapping[str, float]

# phrases in the notes that explain differences
WITH_SEEDS = (
    "if either system has several seeds, the interval and the p “with seeds” cover the choice of segments "
    "and of seeds; a difference between a system with one seed and one with several is never marked"
)
SEEDS_ALLOW = ", and so is p “with seeds”"


def scores_by_model(results: StudyResults, system: str, test_set: str, metric: Metric) -> Scores | None:
    """Return a system's scores by the digest of its model, or of the model that it was fine-tuned from.

    An ensemble has one score, by the name of `ensemble_of`; given outputs have none. Returns None if one of
    several seeds has no score.
    """
    spec = results.spec.systems[system]
    measured = results.of("score", system=system, test_set=test_set, metric=metric.name())
    scores: dict[str, float] = {}
    for step in measured if spec.variant else ():
        score = step.find(metric.row())
        if score is None or score.value is None:
            return None if len(measured) > 1 else {}
        scores[models_of(results, system, [step.node.labels["seed"]])[0]] = score.value
    return scores


def models_of(results: StudyResults, system: str, seeds: Sequence[int]) -> list[str]:
    """Return the digest of each seed's model; for an ensemble, its name."""
    spec = results.spec.systems[system]
    if spec.ensemble:
        seeds = results.spec.variants[spec.variant].seeds
    models = [model_of(results, spec.variant, seed) for seed in seeds]
    return [ensemble_of(models)] if spec.ensemble else models


def ensemble_of(models: Iterable[str]) -> str:
    return " ".join(["ensemble", *sorted(models)])


def model_of(results: StudyResults, variant: str, seed: int) -> str:
    """Return a digest of the training that made a variant's model, or the model that it was fine-tuned from.

    A detached NVS head does not count: its gradient reaches no other weight, so variants with and without it
    have the same translation model for each seed.
    """
    trained = results.of("train", variant=results.spec.root_of(variant), seed=seed)[0].node
    params = dict(trained.params)
    if (params["nvs"] or {}).get("detach", True):
        params["nvs"] = None
    inputs = [(row.role, row.position, row.input_key) for row in results.inputs.get(trained.key, ())]
    return digest([params, inputs])


def with_seeds(delta: Delta, system: Scores | None, baseline: Scores | None) -> Delta:
    """Add the interval and p over segments and seeds to a difference, if either side has several seeds.

    If a score is missing, or one side has a single seed or is an ensemble, a note keeps the difference from
    being marked.
    """
    if delta.value is None:
        return delta
    if system is None or baseline is None:
        return replace(delta, note=SEEDS_MISSING)
    if system.keys() == {ensemble_of(baseline)} or baseline.keys() == {ensemble_of(system)}:
        # An ensemble shares the luck of its models' seeds. For 60 ensembles of five small classifiers, such a
        # difference had a standard deviation of 0.8 points, as much as its standard error over segments; from
        # the mean of other models 1.4, where the standard error over segments was 1.0.
        return delta
    if one_against_several(system, baseline):
        return replace(delta, note=ONE_SEED)
    spread = spread_of_difference(system, baseline)
    return delta if spread is None else delta.with_seeds(spread)


# the BLEU of references that are paired with wrong sentences of the same text
NEAR_ZERO = 2.0
MUCH_IN_COMMON = 30.0  # chrF; untrained models reach less than 20
NO_MARK = "not marked: BLEU of both systems is near zero, so which one is better means nothing"
NOT_TRANSLATED = "the system does not translate this test set"
ONLY_REFERENCE = "the test set's only reference: there is no other to score it against"

Pair = tuple[str, str]  # a system and what it is compared with


NO_SPREAD = "the same in every resample of the segments: no spread to judge by"


def with_spread(cell: Cell) -> Cell:
    """Remove an interval without width: 100 % of 50 words does not say that all words are right."""
    if not _has_no_width(cell.low, cell.high):
        return cell
    return replace(cell, note="; ".join(filter(None, [cell.note, NO_SPREAD])), low=None, high=None)


def score_cell(results: StudyResults, system: str, test_set: str, metric: Metric, group: str = "") -> Cell:
    """Return a system's score. `group`: for a metric of words, a group of words of the test set."""
    measured = results.of("score", system=system, test_set=test_set, metric=metric.name())
    missing = why_no_score(results.spec, system, test_set)
    return with_spread(read_cell(measured, lambda step: step.find(metric.row(), group), missing))


def why_no_score(spec: Study, system: str, test_set: str) -> str:
    """Say why a system has no score at all."""
    is_reference = test_set in spec.test_sets_of(system) and spec.systems[system].reference is not None
    return ONLY_REFERENCE if is_reference else NOT_TRANSLATED


def differences(results: StudyResults, test_set: str, metric: Metric) -> dict[Pair, Delta]:
    """Return all tested differences on a test set by a metric, corrected together."""
    spec, stored = results.spec, dict[Pair, Delta]()
    for system in spec.systems_on(test_set):
        for other in spec.comparisons(system):
            labels = {"system": system, "baseline": other, "test_set": test_set, "metric": metric.name()}
            stored[system, other] = read_delta(next(iter(results.of("compare", **labels)), None))
    return _corrected_together(results, test_set, metric, stored)


def all_differences(results: StudyResults, test_set: str, metric: Metric) -> dict[Pair, Delta]:
    """Return the differences of every two systems, in both directions, corrected over all pairs.

    Empty until the pairs are tested, and with only two systems: `differences` has their one pair.
    """
    steps = results.of("pairs", test_set=test_set, metric=metric.name())
    if not steps or steps[0].node.state != "succeeded":
        return {}
    places = enumerate(steps[0].node.labels["systems"])
    stored = {
        (system, other): read_delta(steps[0], f"{i}/{j}")
        for (i, other), (j, system) in combinations(places, 2)
    }
    tested = _corrected_together(results, test_set, metric, stored)
    return tested | {(other, system): delta.scaled(-1) for (system, other), delta in tested.items()}


def _corrected_together(
    results: StudyResults, test_set: str, metric: Metric, stored: Mapping[Pair, Delta]
) -> dict[Pair, Delta]:
    """Add the error over seeds and Holm's correction; remove the mark if BLEU of both is near zero."""
    scores = {
        system: scores_by_model(results, system, test_set, metric)
        for system in results.spec.systems_on(test_set)
    }
    deltas = [
        with_seeds(delta, scores[system], scores.get(other, {})) for (system, other), delta in stored.items()
    ]
    # BLEU near zero says nothing even where it is not the systems' fault
    low = (_low_bleu if isinstance(metric, Bleu) else near_zero)(results, test_set)
    corrected = correct(deltas, [low.keys() >= set(pair) for pair in stored])
    return dict(zip(stored, corrected, strict=True))


def unfit_bleu(results: StudyResults, test_set: str) -> dict[str, str]:
    """Return the systems whose outputs BLEU cannot compare with the references, and why.

    Either the score's steps say so, or chrF contradicts a BLEU near zero.
    """
    low, reasons = _low_bleu(results, test_set), {}
    for system in results.spec.systems_on(test_set):
        reasons_of_steps = [row.detail.get("unfit", "") for row in _rows(results, system, test_set, Bleu)]
        chrf = [row.value or 0.0 for row in _rows(results, system, test_set, Chrf)]
        if reasons_of_steps and all(reasons_of_steps):
            reasons[system] = reasons_of_steps[0]
        elif system in low and min(chrf, default=0.0) >= MUCH_IN_COMMON:
            reasons[system] = (
                f"BLEU is {low[system]:.1f} and chrF {min(chrf):.1f}: the outputs have characters in common "
                "with the references, but other words"
            )
    return reasons


def _rows(results: StudyResults, system: str, test_set: str, kind: type[Metric]) -> list[MetricValue]:
    """Return the scores of a system by the study's metrics of a kind."""
    steps = (
        (metric, step)
        for metric in results.spec.metrics
        if isinstance(metric, kind)
        for step in results.of("score", system=system, test_set=test_set, metric=metric.name())
    )
    return [row for metric, step in steps if (row := step.find(metric.row())) is not None]


def near_zero(results: StudyResults, test_set: str) -> dict[str, float]:
    """Return the systems with a BLEU near zero that BLEU can compare with the references."""
    unfit = unfit_bleu(results, test_set)
    return {system: score for system, score in _low_bleu(results, test_set).items() if system not in unfit}


def _low_bleu(results: StudyResults, test_set: str) -> dict[str, float]:
    """Return the systems with a BLEU near zero; of several kinds of BLEU, the largest counts."""
    largest: dict[str, float] = {}
    for metric in results.spec.metrics:
        for system in results.spec.systems_on(test_set) if isinstance(metric, Bleu) else ():
            score = score_cell(results, system, test_set, metric).value
            if score is not None:
                largest[system] = max(score, largest.get(system, 0.0))
    return {system: score for system, score in largest.items() if score < NEAR_ZERO}
