"""Tables of a study: its systems on a test set, every two systems, trainings, corpora, latency."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from creamtea.contract.step import Column
from creamtea.methods.analysis import EMPTY, LENGTH
from creamtea.methods.metrics import Metric, OfWords
from creamtea.methods.test_sets import WordTestSet
from creamtea.methods.training import SelectBy
from creamtea.report import text
from creamtea.report.cells import (
    NOT_TRANSLATED,
    Measured,
    Pair,
    StudyResults,
    differences,
    idioms_of,
    read_cell,
    score_cell,
    state_of,
    step_title,
    why_no_score,
    with_spread,
)
from creamtea.report.configuration import describe_system
from creamtea.report.model import Cell, Delta, Percent, Row, Table
from creamtea.stats.estimate import Estimate, positive_estimate
from creamtea.stats.resampling import FEW_VALUES, MIN_VALUES
from creamtea.stats.wmt import cluster_numbers
from creamtea.store.queries import MetricValue
from creamtea.study.spec import Study
from creamtea.wording import counted

# for outputs without references
AGREEMENT = (
    Column("agreement", "agreement", 1, note="chrF2 with each other system's outputs, both directions"),
    Column("length_others", "length to others", 3, note="characters, divided by the other systems' mean"),
    Column("length_source", "length to source", 3, note="characters, divided by the source's"),
)
_RECALL = "share of the unique reference subwords{} that the selected vocabulary holds; 100 if it is full"


def _recall_column(key: str, title: str, note: str) -> Column:
    return Column(key, title, 1, "higher", 100.0, "%", note=note, group="recall")


RECALL_WORDS = _recall_column(
    "recall_idiom_words",
    "idiom recall",
    "share of the unique subwords of the idioms' translations that are selected from the idioms' words alone "
    "(NVS paper, section 2.3)",
)
RECALL_IDIOM = _recall_column("recall_idiom", "idiom recall in context", _RECALL.format(" of the idioms"))
RECALL_MACRO = _recall_column(
    "recall_macro", "recall per idiom in context", "mean over distinct idioms of the recall within each"
)
RECALL_SENTENCE = _recall_column("recall_sentence", "recall", _RECALL.format(""))
SELECTED = Column(
    "selected_size", "selected", 0, "lower", note="mean size of a sentence's vocabulary", group="recall"
)
_OF_DEVELOPMENT = "of greedy translations of the development text, by the model that is kept"
_BLEU = Column(
    "dev_bleu", "dev BLEU", 1, "higher", note=f"{_OF_DEVELOPMENT}; of its first 500 lines if the loss selects"
)
DEVELOPMENT: dict[SelectBy, Column] = {
    "loss": _BLEU,
    "perplexity": Column(
        "dev_perplexity", "dev perplexity", 2, "lower", note="per target subword, without label smoothing"
    ),
    "bleu": _BLEU,
    "per": Column("dev_per", "dev PER", 2, "lower", note=_OF_DEVELOPMENT),
    "levenshtein": Column("dev_levenshtein", "dev Levenshtein distance", 2, "lower", note=_OF_DEVELOPMENT),
}
_DEV_LOSS = (
    "mean per target subword (in nats for softmax and SCONES), or per sentence if an NVS head is trained "
    "alone; lower is better within one objective"
)


def training_columns(select_by: Iterable[SelectBy]) -> tuple[Column, ...]:
    """Return the columns of trainings whose models are selected by these metrics.

    BLEU has a column only if a training uses it: it says nothing about single words.
    """
    return (
        Column("updates", "updates", 0, note="updates of the weights until the training ended"),
        Column("dev_loss", "dev loss", 3, note=_DEV_LOSS),
        *dict.fromkeys(DEVELOPMENT[chosen] for chosen in select_by),
        Column("seconds", "seconds", 0, note="spent on updates, over all attempts; without validations"),
        Column("tokens_per_second", "tokens/s", 0, note="target subwords per second spent on updates"),
        Column("parameters", "parameters", 0, note="weights of the model"),
        Column("left_out", "left out", 0, note="training pairs with too many subwords on a side"),
    )


PAIRS = (
    Column("train_read", "training pairs read", 0),
    Column("train_kept", "training pairs kept", 0, note="including repeated and made-up pairs"),
    Column("train_added", "added by repetition", 0),
    Column("train_made_up", "made up", 0),
    Column("dev_read", "development pairs read", 0),
    Column("dev_kept", "development pairs kept", 0),
)


AND = " and "  # between a column's signatures
FURTHER = "further"  # the key of a table


def systems_table(results: StudyResults, test_set: str, campaigns: Sequence[Table] = ()) -> Table:
    """Build the table with one row per system. `campaigns`: tables of campaigns to add."""
    spec = results.spec
    columns = _columns(results, test_set, campaigns)
    metrics = spec.metrics_on(test_set)
    deltas = {metric.name(): differences(results, test_set, metric) for metric in metrics}
    timed = timed_columns(results, test_set)
    latency = latency_cells(results, timed)
    rows = []
    shown = {*spec.systems_on(test_set), *(spec.timed() if is_timed_on(spec, test_set) else ())}
    for system in (name for name in spec.systems if name in shown):
        baseline = spec.baseline_of(system)
        described = describe_system(spec, system)
        if spec.compared(system) and baseline != spec.baseline:
            described += f"; compared with {baseline}"
        cells = {
            metric.name(): replace(
                score_cell(results, system, test_set, metric),
                delta=deltas[metric.name()].get((system, baseline)),
            )
            for metric in metrics
        }
        for campaign in campaigns:
            missing = Cell("absent", f"the system does not take part in campaign {campaign.title}")
            rated = next((row.cells for row in campaign.rows if row.name == system), None)
            cells |= rated or dict.fromkeys((column.key for column in campaign.columns), missing)
        cells |= _output_cells(results, system, test_set)
        cells |= {column.key: latency[system, column.key] for column in timed}
        rows.append(
            Row(
                system,
                {column.key: cells[column.key] for column in columns},
                description=described,
                baseline=baseline == system,
                against=baseline if spec.compared(system) else "",
            )
        )
    return Table("systems", "", "system", columns, tuple(rows))


def ranked(table: Table, references: Collection[str] = ()) -> Table:
    """Sort the rows by the table's first column, the best first.

    Rows without a value come last; before them, human `references`, whose scores are not comparable.
    """
    first = table.columns[0]
    sign = 1 if first.better == "lower" else -1

    def place(row: Row) -> tuple[bool, bool, float]:
        value = row.cells[first.key].value
        return value is None, row.name in references, sign * (value or 0.0)

    return replace(table, rows=tuple(sorted(table.rows, key=place)))


def pairs_table(systems: Table, tested: Mapping[Pair, Delta]) -> Table:
    """Build the table of every two systems of the sorted table: difference, wins and cluster."""
    metric, names = systems.columns[0], {system for system, _ in tested}
    rows = [row for row in systems.rows if row.name in names]
    numbers = clusters([row.name for row in rows], tested, metric)

    def cell(row: Row, other: Row) -> Cell:
        if row is other:
            return Cell("ok", value=0.0, words="·", by_definition=True)
        delta = tested[row.name, other.name]
        words, note = text.change_state(delta, metric) or "–", delta.note if delta.value is None else ""
        return Cell(delta.state, note, delta.value, words=words, delta=delta, by_definition=True)

    columns = (
        Column("cluster", "cluster", 0),
        Column("wins", "wins", 0),
        *(
            replace(metric, key=f"against_{row.name}", title=f"− {row.name}", signature="", group="")
            for row in rows
        ),
    )
    shown = tuple(
        Row(
            row.name,
            {
                "cluster": Cell("ok", value=cluster),
                "wins": Cell("ok", value=sum(wins(row.name, other.name, tested, metric) for other in rows)),
                **{f"against_{other.name}": cell(row, other) for other in rows},
            },
            baseline=row.baseline,
        )
        for row, cluster in zip(rows, numbers, strict=True)
    )
    about = (
        f"Each row's {metric.title} minus each column's, tested as in the table above. Holm's correction is "
        f"over all {len(tested) // 2} pairs, so a difference marked above may be unmarked here. Wins: "
        "systems that the row is significantly better than. A cluster ends where every system above is "
        "significantly better than every one below."
    )
    title = f"All pairs of systems by {metric.title}"
    return Table("pairs", title, "system", columns, shown, about, folded=True)


def agreement_table(results: StudyResults, systems: Table, test_set: str) -> Table | None:
    """Build the table of agreement between every two systems' outputs; None with references."""
    step = next(iter(results.of("agreement", test_set=test_set)), None)
    if step is None:
        return None
    place = {str(name): number for number, name in enumerate(step.node.labels["systems"])}
    names = [row.name for row in ranked(systems).rows if row.name in place]
    columns = tuple(Column(f"with_{name}", name, 1) for name in names)

    def cell(one: str, other: str) -> Cell:
        if one == other:
            return Cell("ok", value=100.0, words="·", by_definition=True)
        subject = "/".join(map(str, sorted((place[one], place[other]))))
        return read_cell([step], lambda measured: measured.find("agreement", subject), "")

    rows = tuple(Row(name, {f"with_{other}": cell(name, other) for other in names}) for name in names)
    about = (
        "chrF2 of the outputs of two systems, the mean of both directions. Agreement is not quality: systems "
        "may share a mistake. Look at a system that stands apart from all others."
    )
    return Table("agreement", "Agreement of every two systems", "system", columns, rows, about, folded=True)


def wins(system: str, other: str, tested: Mapping[Pair, Delta], metric: Column) -> bool:
    """Return whether a system is significantly better than another."""
    delta = tested.get((system, other))
    return delta is not None and text.change_state(delta, metric) == "better"


def clusters(systems: Sequence[str], tested: Mapping[Pair, Delta], metric: Column) -> list[int]:
    """Return the cluster of each system, the best first, from 1.

    As at WMT, a cluster ends where every system above wins against every one below.
    """
    beats = [[wins(system, other, tested, metric) for other in systems] for system in systems]
    return cluster_numbers(np.array(beats))


def group_tables(results: StudyResults, test_set: str) -> list[Table]:
    """Build a table of scores per language, for each metric of words on a test set in several languages."""
    tested = results.spec.test_sets[test_set]
    languages = tested.tested_languages() if isinstance(tested, WordTestSet) else []
    tables = []
    for metric in results.spec.metrics if len(languages) > 1 else ():
        if not isinstance(metric, OfWords):
            continue
        columns = tuple(Column(name, name, metric.digits, metric.better) for name in languages)
        rows = [
            Row(
                system,
                {name: score_cell(results, system, test_set, metric, name) for name in languages},
                baseline=results.spec.baseline_of(system) == system,
            )
            for system in results.spec.systems_on(test_set)
        ]
        title = f"{metric.describe()} by language"
        tables.append(Table(f"groups_{metric.name()}", title, "system", columns, tuple(rows), folded=True))
    return tables


def further_table(results: StudyResults, test_set: str, systems: Table) -> Table | None:
    """Build the table of comparisons with further baselines; None without any."""
    if not any(system.more_baselines for system in results.spec.systems.values()):
        return None
    metrics = {metric.name(): metric for metric in results.spec.metrics_on(test_set)}
    deltas = {key: differences(results, test_set, metric) for key, metric in metrics.items()}
    columns = tuple(column for column in systems.columns if column.key in metrics)
    rows = [
        Row(
            row.name,
            {key: replace(row.cells[key], delta=deltas[key][row.name, other]) for key in metrics},
            setting=f"against {other}",
            description=describe_system(results.spec, row.name),
            against=other,
        )
        for row in systems.rows
        for other in results.spec.comparisons(row.name)
        if other != row.against and test_set in results.spec.test_sets_of(row.name)
    ]
    return Table(FURTHER, "Further comparisons", "system", columns, tuple(rows)) if rows else None


def _columns(results: StudyResults, test_set: str, campaigns: Sequence[Table]) -> tuple[Column, ...]:
    spec, idioms = results.spec, idioms_of(results, test_set)
    columns = []
    for metric in spec.metrics_on(test_set):
        signatures = signatures_of(results, test_set, metric, spec.systems)
        columns.append(metric.column(signature=AND.join(signatures)))
    columns += [column for campaign in campaigns for column in campaign.columns]
    scored = spec.test_sets[test_set].has_references
    systems = [spec.systems[system] for system in spec.systems_on(test_set)]
    if scored and any(system.runs and system.selection.kind != "full" for system in systems):
        columns += [RECALL_WORDS] if idioms.by_words else []
        columns += [RECALL_IDIOM] if idioms.count != 0 else []
        columns += [RECALL_MACRO] if idioms.repeated else []
        columns += [RECALL_SENTENCE, SELECTED]
    about: list[Column] = []
    if scored and (counts := _length_metric(spec)):  # the ratio depends on how the metric splits text
        about.append(replace(LENGTH, note=LENGTH.note.replace("BLEU", counts.describe())))
    about += AGREEMENT if results.of("agreement", test_set=test_set) else ()
    columns += [replace(column, group="outputs") for column in (*about, EMPTY)]
    return (*columns, *timed_columns(results, test_set))


def signatures_of(
    results: StudyResults, test_set: str, metric: Metric, systems: Collection[str]
) -> list[str]:
    """Return the signatures of these systems' scores. A human reference has one reference fewer."""
    signatures = {
        str(score.detail.get("signature", ""))
        for measured in results.of("score", test_set=test_set, metric=metric.name())
        if measured.node.labels["system"] in systems and (score := measured.find(metric.row())) is not None
    }
    return sorted(signatures - {""})


def _length_metric(spec: Study) -> Metric | None:
    """Return the study's first metric that counts the length ratio, as BLEU does."""
    return next((metric for metric in spec.metrics if metric.counts_length), None)


def _output_cells(results: StudyResults, system: str, test_set: str) -> dict[str, Cell]:
    outputs = results.outputs(system, test_set)
    selected = read_cell(outputs, lambda step: step.find("selected_size"), NOT_TRANSLATED)
    cells = {
        RECALL_WORDS.key: _recall(results, system, test_set, "recall", "idiom_words"),
        RECALL_IDIOM.key: _recall(results, system, test_set, "recall", "idiom"),
        RECALL_MACRO.key: _recall(results, system, test_set, "recall_macro", "idiom"),
        RECALL_SENTENCE.key: _recall(results, system, test_set, "recall", "sentence"),
        SELECTED.key: selected if results.spec.systems[system].runs else Cell("absent", NO_MODEL),
        EMPTY.key: read_cell(outputs, lambda step: step.find("empty"), NOT_TRANSLATED),
        **_agreement(results, system, test_set),
    }
    if (metric := _length_metric(results.spec)) is not None:
        measured = results.of("score", system=system, test_set=test_set, metric=metric.name())
        missing = why_no_score(results.spec, system, test_set)
        cells[LENGTH.key] = read_cell(measured, lambda step: step.find("length_ratio"), missing)
    return cells


def _recall(results: StudyResults, system: str, test_set: str, name: str, scope: str) -> Cell:
    if not results.spec.systems[system].runs:
        return Cell("absent", NO_MODEL)
    if not results.spec.systems[system].selection.selects:
        return Cell("ok", value=1.0, seeds=1, by_definition=True)  # nothing is left out
    measured = results.of("recall", system=system, test_set=test_set)
    return with_spread(read_cell(measured, lambda step: step.find(name, scope), NOT_TRANSLATED))


def _agreement(results: StudyResults, system: str, test_set: str) -> dict[str, Cell]:
    measured = [
        step for step in results.of("agreement", test_set=test_set) if system in step.node.labels["systems"]
    ]
    subject = str(measured[0].node.labels["systems"].index(system)) if measured else ""
    return {
        key: with_spread(
            read_cell(measured, partial(Measured.find, name=key, subject=subject), NOT_TRANSLATED)
        )
        for key in (column.key for column in AGREEMENT)
    }


# ---------------------------------------------------------------- trainings and corpora


def trainings_table(results: StudyResults) -> Table:
    """Build the table of trainings: a row per variant and seed."""
    trainings = {name: variant.training for name, variant in results.spec.variants.items()}
    columns = training_columns(training.select_by for training in trainings.values())
    rows = []
    for run in results.of("train"):
        name = str(run.node.labels["variant"])
        select_by = trainings[name].select_by
        cells = {
            column.key: Cell("absent", f"{name} is selected by {select_by}")
            if column in DEVELOPMENT.values() and column != DEVELOPMENT[select_by]
            else _training_cell(run, column.key)
            for column in columns
        }
        rows.append(Row(name, cells, setting=f"seed {run.node.labels['seed']}"))
    return Table("trainings", "Trainings", "training", columns, tuple(rows), folded=True)


def _training_cell(run: Measured, name: str) -> Cell:
    if name != "seconds":
        return read_cell([run], lambda measured: measured.find(name), "")
    state, note = state_of(run.node)
    if state != "ok":
        return Cell(state, note)
    seconds = run.node.facts.get("training_seconds")
    if seconds is None:
        return Cell("absent", f"how long it took is not known ({step_title(run.node)})")
    return Cell("ok", value=float(seconds), seeds=1)


def corpora_table(results: StudyResults) -> Table:
    """Build the table of pairs that were read, kept, and dropped by each filter."""
    measured = results.of("corpus")
    counts = {(row.name, row.subject) for step in measured for row in step.metrics}
    optional = ("train_added", "train_made_up")
    pairs = [column for column in PAIRS if column.key not in optional or ("pairs", column.key) in counts]
    filters = dict.fromkeys(row.subject for step in measured for row in step.metrics if row.name == "dropped")
    dropped = [Column(f"dropped_{name}", f"dropped: {name.replace('_', ' ')}", 0) for name in filters]
    rows = [
        Row(
            str(corpus.node.labels.get("corpus", corpus.node.name)),
            {column.key: _count(corpus, "pairs", column.key) for column in pairs}
            | {f"dropped_{name}": _count(corpus, "dropped", name) for name in filters},
        )
        for corpus in measured
    ]
    return Table("corpora", "Corpora", "corpus", (*pairs, *dropped), tuple(rows), folded=True)


def _count(corpus: Measured, name: str, subject: str) -> Cell:
    if state_of(corpus.node)[0] == "ok" and corpus.find(name, subject) is None:
        return Cell("absent", "not counted for this corpus")
    return read_cell([corpus], lambda measured: measured.find(name, subject), "")


# ---------------------------------------------------------------- latency


def _percentile(percent: int, note: str) -> Column:
    key, title = f"latency_p{percent}", f"p{percent}"
    return Column(key, title, 1, "lower", 1.0, "ms", note=note, group="latency")


P50 = _percentile(50, "median latency of a sentence")
LATENCY = (P50, *(_percentile(percent, f"{percent} % of the sentences take less") for percent in (90, 99)))
SPEED = Column(
    "sentences_per_second", "sentences/s", 2, "higher", note="mean over repetitions", group="latency"
)
LATENCY_MEANS = (
    Column("latency_mean", "mean", 1, "lower", 1.0, "ms"),
    *(replace(column, key=column.key.replace("_p", "_mean_p"), note="") for column in LATENCY),
    SPEED,
)


_MEANS = {column.key for column in LATENCY_MEANS}
_Mean = TypeVar("_Mean", MetricValue, Percent)
NO_MODEL = "its outputs are given: no model of this study translates"


@dataclass(frozen=True)
class Timed:
    """How latencies were measured; before that, how the study asks for it (the test set may be smaller)."""

    batch_size: int  # [sentences]
    sentences: int
    repetitions: int
    threads: int
    capture_seconds: float  # of CUDA graphs, all systems together; 0 without a GPU

    @property
    def unit(self) -> str:
        return "one sentence at a time" if self.batch_size == 1 else f"a batch of {self.batch_size} sentences"


def _timed(results: StudyResults) -> Timed | None:
    """Return what was timed; None for a study without latency."""
    asked = results.spec.latency
    if asked is None:
        return None
    rows = [metric for run in results.of("latency") for metric in run.metrics]
    detail = next((row.detail for row in rows if "sentences" in row.detail), {})
    captures = [row.detail.get("capture_seconds", 0.0) for row in rows if row.name == "latency_p50"]
    # version 0.1.0 timed single sentences; a batch holds at most all sentences
    sentences = detail.get("sentences", asked.sentences)
    return Timed(
        min(detail.get("batch_size", asked.batch_size), sentences),
        sentences,
        detail.get("repetitions", asked.repetitions),
        detail.get("threads", asked.threads),
        sum(captures),
    )


def latency_note(results: StudyResults) -> str:
    spec, timed = results.spec, _timed(results)
    if spec.latency is None or timed is None:
        return "The study measures no latency."
    unit = "sentence, batch 1" if timed.batch_size == 1 else f"batch of {timed.batch_size} sentences"
    note = (
        f"Latency: milliseconds per {unit}, {counted(timed.threads, 'thread')}, {timed.sentences} sentences "
        f"of {spec.latency.test_set} × {timed.repetitions} repetitions, systems interleaved, the first seed "
        f"of each; % of {' / '.join(latency_baselines(spec))}, paired over repetitions"
    )
    if timed.capture_seconds:
        note += f"; capturing CUDA graphs took {timed.capture_seconds:.1f} s, which are not counted"
    for timing in results.of("latency"):
        state, reason = state_of(timing.node)
        if state != "ok":
            note += f" ({state}: {reason})"
    return f"{note}."


def timed_columns(results: StudyResults, test_set: str) -> tuple[Column, ...]:
    """Return the latency columns of the systems' table."""
    timed = _timed(results) if is_timed_on(results.spec, test_set) else None
    if timed is None or timed.batch_size == 1:
        return () if timed is None else LATENCY
    of_batch = f" of {timed.unit}"
    return (*(replace(column, note=f"{column.title}{of_batch}") for column in LATENCY), SPEED)


def is_timed_on(spec: Study, test_set: str) -> bool:
    return spec.latency is not None and spec.latency.test_set == test_set


def latency_table(results: StudyResults) -> Table | None:
    """Build the table of means over repetitions, as papers print them; None if no step measured them."""
    runs, timed = results.of("latency"), _timed(results)
    if timed is None or not any(run.find(LATENCY_MEANS[0].key, "0") for run in runs):
        return None
    cells = latency_cells(results, LATENCY_MEANS)
    rows = [
        Row(name, {column.key: cells[name, column.key] for column in LATENCY_MEANS})
        for name in results.spec.timed()
    ]
    about = (
        f"Of {timed.unit}: means over repetitions with their 95 % t intervals (on the scale of "
        "logarithms). A disturbance of the machine moves a mean, but hardly the median in the systems' "
        "table; the interval of a mean covers only the disturbances that its repetitions have met."
    )
    return Table("latency", "Latency", "system", LATENCY_MEANS, tuple(rows), about, folded=True)


def latency_cells(results: StudyResults, columns: Sequence[Column]) -> dict[tuple[str, str], Cell]:
    """Return the cells by system and column; empty for a study without latency."""
    spec = results.spec
    if spec.latency is None:
        return {}
    runs = results.of("latency")
    timed = spec.timed()

    def cell(system: str, key: str) -> Cell:
        if system not in timed:
            why = "the study does not time this system" if spec.systems[system].runs else NO_MODEL
            return Cell("absent", why)

        def read(run: Measured) -> MetricValue | None:
            metric = run.find(key, str(timed.index(system)))
            if metric is None:
                return None
            metric = _positive(metric) if key in _MEANS else _without_few(metric)
            return _noting_few(metric) if key.endswith("_p99") else metric

        return read_cell(runs, read, "the plan has no latency step")

    cells = {}
    for key in (column.key for column in columns):
        shares = time_shares(results, key)
        for system in spec.systems:
            of_baselines = {name: shares.get((system, name)) for name in latency_baselines(spec)}
            percents = {name: share for name, share in of_baselines.items() if share is not None}
            cells[system, key] = replace(cell(system, key), percents=percents)
    return cells


def time_shares(results: StudyResults, key: str) -> dict[tuple[str, str], Percent]:
    """Return each timed system's time as a percentage of each one's: (system, other) -> percentage.

    `key`: the column, such as `P50`'s.
    """
    timed = results.spec.timed()
    times = {
        name: time
        for run in results.of("latency")
        for place, name in enumerate(timed)
        if (time := run.find(key, str(place))) is not None and time.value is not None
    }
    return {
        (own, other): _percent(times[own], times[other], timed.index(other))
        for own in times
        for other in times
    }


def _percent(own: MetricValue, baseline: MetricValue, position: int) -> Percent:
    """Return a system's time as a percentage of the baseline's, paired over repetitions.

    `position`: the baseline's index among the timed systems. For version 1 of the step, which stored no
    pairs, return the ratio of both medians, without an interval.
    """
    if own.subject == baseline.subject:
        return Percent(100.0)
    if (paired := own.detail.get("percent_of")) is not None:
        percent = Percent(**paired[position])
        if own.name in _MEANS:
            return _positive(percent)
        return percent if _without_few(own).low is not None else Percent(percent.value)
    assert own.value is not None
    assert baseline.value is not None
    return Percent(100.0 * own.value / baseline.value)


def _without_few(median: MetricValue) -> MetricValue:
    """Remove an interval over fewer than `MIN_VALUES` repetitions, which earlier versions stored."""
    if median.detail.get("repetitions", MIN_VALUES) >= MIN_VALUES:
        return median
    return replace(median, low=None, high=None, note=f"{FEW_VALUES} repetitions")


def _noting_few(p99: MetricValue) -> MetricValue:
    size = p99.detail.get("batch_size", 1)
    times = p99.detail.get("sentences", 100 * size) // size
    if times >= 100:
        return p99
    of = counted(times, "sentence") if size == 1 else counted(times, "batch", "batches")
    return replace(p99, note="; ".join(filter(None, (p99.note, f"p99 of {of} is nearly the maximum"))))


def _positive(mean: _Mean) -> _Mean:
    """Put the t interval of a stored mean on a logarithmic scale."""
    interval = positive_estimate(Estimate(mean.value, mean.low, mean.high))
    return replace(mean, low=interval.low, high=interval.high)


def latency_baselines(spec: Study) -> list[str]:
    """Return the systems whose latency is 100 %: the study's latency baselines, or else its baseline."""
    named = spec.latency.baselines if spec.latency else []
    return named or [spec.baseline]
