"""What came out: a report's first block, in sentences made of the numbers of its tables.

Sentences rank only systems that a test has compared, and only as the test says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from creamtea.contract.step import Column
from creamtea.document.mistakes import StudyWarning
from creamtea.methods.analyses.buckets import Buckets
from creamtea.report import text
from creamtea.report.analyses import AnalysisResults
from creamtea.report.cells import Pair
from creamtea.report.figures import SystemsOn, quality_choice, ranking, speed_of
from creamtea.report.human.campaign import CampaignReport, progress
from creamtea.report.human.verdicts import verdict_cell
from creamtea.report.model import Block, Delta, Notes, Row, Section, Table
from creamtea.report.tables import AGREEMENT, P50, RECALL_IDIOM, RECALL_WORDS, SPEED, clusters, ranked
from creamtea.study.spec import Study

TITLE = "What came out"
ALL = 100.0  # percent
REVERSIBLE = "One training each: another may reverse this."
LISTED, SHOWN = 8, 6  # names that a sentence lists at most; of more names, how many it shows


def answer_section(
    spec: Study,
    tables: Sequence[SystemsOn],
    campaigns: Sequence[CampaignReport],
    warnings: Sequence[StudyWarning],
    failed: Sequence[str],
    analyses: Sequence[AnalysisResults],
) -> Section:
    """Write one block per test set: what came out in sentences, then pictures.

    The pictures show the systems' scores, if there are several, and quality against latency, if it is
    measured. `failed`: sentences that come first.
    """
    timed = next((systems for systems in tables if speed_of(systems.table) is not None), None)
    blocks: list[Section] = []
    more = f" {len(warnings) - 1} more below." if len(warnings) > 1 else ""
    first_look = [f"Look first at: {warning.place}: {warning.found}.{more}" for warning in warnings[:1]]
    for systems in tables:
        people = [
            report for report in campaigns if report.judged.ratings.campaign.test_set == systems.test_set
        ]
        keys = [metric.name() for metric in spec.metrics_on(systems.test_set)]
        metric = next((column for column in systems.table.columns if column.key in keys[:1]), None)
        competing = [name for name, system in spec.systems.items() if system.reference is None]
        quality = metric if metric is None else _Quality(systems.table, systems.pairs, metric, competing)
        sentences = (
            *(() if blocks else failed),
            *_scores(spec, systems, quality),
            *(sentence for report in people for sentence in _people(report, len(people) > 1)),
            *_speed(systems, quality),
            *(() if quality is None else _hardest(quality, systems.test_set, analyses)),
            *_idioms(systems.table),
            *first_look,
        )
        of_test_set: list[Block] = [Notes("sentences", sentences, lead=True)]
        if quality is not None and len(quality.scored) > 1:
            references = {name for name, system in spec.systems.items() if system.reference is not None}
            of_test_set.append(ranking(systems, quality.metric, references))
        of_test_set += [] if timed is None else [quality_choice(systems, timed)]
        title = systems.test_set if len(tables) > 1 else ""
        blocks.append(Section(systems.test_set, title, tuple(of_test_set), test_set=systems.test_set))
    return Section("answer", TITLE, tuple(blocks))


def comparison_answer(
    table: Table, pairs: Mapping[str, Mapping[Pair, Delta]], competing: Collection[str]
) -> Notes | None:
    """Write what came out of tested differences, without human references; None if no metric is in common.

    `pairs`: by column, tested differences that the table does not show.
    """
    metric = next((column for column in table.columns if column.group == "quality"), None)
    if metric is None:
        return None
    tested = _Quality(table, pairs.get(metric.key, {}), metric, competing)
    return Notes("sentences", tuple(tested.sentences()), lead=True)


class _Quality:
    """The sentences that compare systems by one metric, as far as tests have compared them.

    `competing`: all systems but human references, which are scored against the other references only.
    """

    def __init__(
        self, table: Table, pairs: Mapping[Pair, Delta], metric: Column, competing: Collection[str]
    ) -> None:
        self.table, self.pairs, self.metric, self.competing = table, pairs, metric, competing
        self.scored = [
            row
            for row in ranked(table).rows
            if row.cells[metric.key].value is not None and row.name in competing
        ]

    def delta(self, row: Row, other: Row) -> Delta | None:
        """Return the tested difference of two systems: the table's if one is the baseline, else the pair's.

        The test of all pairs has more resamples and its own correction: the same difference may have another
        interval there, or no mark.
        """
        of_row, of_other = row.cells[self.metric.key].delta, other.cells[self.metric.key].delta
        candidates = (
            of_row if row.against == other.name else None,
            of_other.scaled(-1) if of_other is not None and other.against == row.name else None,
            self.pairs.get((row.name, other.name)),
        )
        return next((delta for delta in candidates if delta is not None and delta.value is not None), None)

    def sentences(self) -> Iterator[str]:
        """Name the best system, and say which others the tests tell apart from it."""
        column = self.metric
        if not self.scored:
            states = {row.cells[column.key].state for row in self.table.rows if row.name in self.competing}
            yield f"No system has a {column.title} score{' yet' * bool(states & {'pending', 'running'})}."
            return
        best, *rest = self.scored
        shown, to_compare = _score(best, column), rest
        tied = [row.name for row in rest if row.cells[column.key].value == best.cells[column.key].value]
        like = f", like {_listed(tied, len(rest), ' and ')}," if tied else ""
        has = f"has{like} the {'lowest' if column.better == 'lower' else 'highest'} score:"
        baseline = next((row for row in self.scored if row.name == best.against), None)
        if not rest:
            yield f"{best.name}: {shown}."
        elif baseline is None:
            yield f"{'The baseline ' * best.baseline}{best.name} {has} {shown}."
        else:
            delta, against = self.delta(best, baseline), f" against the baseline {baseline.name}"
            tested = "" if delta is None else f"; {_tested(delta, column)}{against}"
            yield f"{best.name} {has} {shown}{tested}."
            if rest == [baseline] and delta is not None and not delta.note:
                to_compare = []  # this sentence has compared it with the only other system
        yield from self._others(best, to_compare)
        if baseline is not None:
            better = [row.name for row in rest if self._is_better(row, baseline)]
            best_is_better = self._is_better(best, baseline)
            if better:
                words = f"{'Also better' if best_is_better else 'Better'} than the baseline {baseline.name}"
                yield f"{words}: {_listed(better, len(rest) - 1)}."
            elif not best_is_better:
                yield f"No system is shown to be better than the baseline, {_score(baseline, column)}."

    def _is_better(self, row: Row, other: Row) -> bool:
        delta = self.delta(row, other)
        return delta is not None and text.change_state(delta, self.metric) == "better"

    def _others(self, best: Row, rest: Sequence[Row]) -> Iterator[str]:
        """Say what the tests found between the best system and each other one, in the order of the scores."""
        by_words: dict[str, list[str]] = {}
        for row in rest:
            delta = self.delta(best, row)
            if delta is None:
                words = "No test has compared it with"
            elif text.change_state(delta, self.metric) == "better":
                words = "It is better than"
            else:
                reason = delta.note.removeprefix("not marked: ")
                words = f"Not told apart from it ({reason})" if reason else "Not told apart from it"
            by_words.setdefault(words, []).append(row.name)
        for words, names in by_words.items():
            if words.endswith("than"):
                yield f"{words} {_listed(names, len(rest), ' and ')}."
            else:
                yield f"{words}: {_listed(names, len(rest))}."

    def clusters(self) -> Iterator[str]:
        """List the groups of systems that the tests tell apart as a whole, if there are several."""
        if not self.pairs:
            return
        names = [row.name for row in self.scored if any(row.name in pair for pair in self.pairs)]
        groups: dict[int, list[str]] = {}
        for name, number in zip(names, clusters(names, self.pairs, self.metric), strict=True):
            groups.setdefault(number, []).append(name)
        if len(groups) > 1:
            listed = "; ".join(map(_listed, groups.values()))
            yield f"Groups, each better than the next as a whole: {listed}."


def _scores(spec: Study, systems: SystemsOn, quality: _Quality | None) -> Iterator[str]:
    """Compare the systems' quality, and say how far another training could change the order."""
    if quality is not None:
        yield from quality.sentences()
        if quality.scored:
            yield from quality.clusters()
            yield from _seeds(spec, quality)
    elif not spec.test_sets[systems.test_set].has_references:
        yield "No score: the test set has no references, and no metric of the study works without."
        yield from _agreement(systems.table)


def _seeds(spec: Study, quality: _Quality) -> Iterator[str]:
    """Say how far another training could change the order, if several variants were trained.

    An ensemble's score is not a mean over its trainings.
    """
    systems = {row.name: spec.systems[row.name] for row in quality.scored}
    names = {system.variant for system in systems.values() if system.runs and not system.ensemble}
    cells = {
        row.name: row.cells[quality.metric.key]
        for row in quality.scored
        if systems[row.name].variant in spec.variants and not systems[row.name].ensemble
    }
    counts = {cell.seeds for cell in cells.values()}
    missing = [name for name, cell in cells.items() if cell.state == "partial"]
    if len(names) > 1 and counts == {1}:
        yield REVERSIBLE
    elif counts and max(counts) > 1:
        each = min(counts) == max(counts)
        number = f"{max(counts)}" if each else f"{min(counts)} to {max(counts)}"
        means = f"Scores are means over {number} trainings"
        if missing:
            yield f"{means}; not all trainings of {_listed(missing, len(cells), ' and ')} have a score."
        else:
            yield f"{means} each." if each else f"{means}, as many as a variant has."


def _hardest(quality: _Quality, test_set: str, analyses: Sequence[AnalysisResults]) -> Iterator[str]:
    """Name the part of the test set on which the best system scores lowest, of several scored parts."""
    title = f"{quality.metric.title}, "
    for best in quality.scored[:1]:
        parts = [
            (value, row, column, f"{table.title[:1].lower()}{table.title[1:]}")
            for analysis in analyses
            if isinstance(analysis.spec, Buckets) and analysis.spec.test_set == test_set
            for table in analysis.tables
            for row in table.rows
            for column in table.columns
            if row.name == best.name and column.title.startswith(title)
            if (value := row.cells[column.key].value) is not None
        ]
        counts = Counter(by for *_, by in parts)
        parts = [part for part in parts if counts[part[-1]] > 1]
        if len({text.number(value, quality.metric) for value, *_ in parts}) > 1:
            _, row, column, by = min(parts, key=lambda part: part[0])
            shown = _score(row, replace(column, title=quality.metric.title))
            yield f"Hardest for {best.name}, {by}: {column.title.removeprefix(title)}: {shown}."


def _speed(systems: SystemsOn, quality: _Quality | None) -> Iterator[str]:
    """Name the fastest systems, their share of the baselines' time, and the cost in quality."""
    table = systems.table
    column = next((column for column in (P50, SPEED) if column in table.columns), None)
    if column is None:
        return
    timed = [row for row in table.rows if row.cells[column.key].value is not None]
    if len(timed) < 2:
        return

    def shown(row: Row) -> str:
        unit = f"{column.unit} per sentence" if column is P50 else column.title
        return f"{text.value(row.cells[column.key], column)} {unit}"

    sign = 1 if column.better == "lower" else -1
    fastest = min(timed, key=lambda row: sign * (row.cells[column.key].value or 0.0))
    shares = fastest.cells[column.key].percents

    def alike(row: Row) -> bool:
        """Return whether a system looks as fast, or a share's interval contains 100 %."""
        both = systems.times.get((fastest.name, row.name)), systems.times.get((row.name, fastest.name))
        return shown(row) == shown(fastest) or any(
            share is not None
            and share.low is not None
            and share.high is not None
            and share.low <= ALL <= share.high
            for share in both
        )

    others = [row.name for row in timed if row is not fastest and alike(row)]
    names = [fastest.name, *others]
    parts = [f"{text.percent(share)} of {name}" for name, share in shares.items() if name not in names]
    sentence = f"Fastest: {fastest.name} ({'; '.join([shown(fastest), *parts])})"
    sentence += f"; not told apart from it: {_listed(others)}" if others else ""
    if quality is not None and quality.scored:
        best = quality.scored[0]
        chosen = next((row for row in quality.scored if row.name in names), best)  # best of the fastest
        delta = None if chosen is best else quality.delta(chosen, best)
        if delta is not None:
            has = f"the quality of {chosen.name} is" if others else "its quality is"
            sentence += f"; {has} {_tested(delta, quality.metric)} against {best.name}"
            sentence += f", which takes {shown(best)}" if best in timed else ""
    yield f"{sentence}."


def _listed(names: Sequence[str], others: int = 0, last: str = ", ") -> str:
    """List names, cut short if many. `others`: "all others" if so many; `last`: joins the last name."""
    if len(names) == others > 2:
        return "all others"
    if len(names) > LISTED:
        return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"
    return last.join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _score(row: Row, column: Column) -> str:
    """Format a score: "34.2 BLEU [32.9, 35.6]"."""
    cell = row.cells[column.key]
    shown = f"{text.value(cell, column)} {column.title}"
    return f"{shown} {text.interval(cell.low, cell.high, column)}".strip()


def _tested(delta: Delta, column: Column) -> str:
    """Format a difference: "+1.2 BLEU [0.4, 2.0] (significant)"."""
    # a note already says why the systems are not told apart
    unmarked = "" if delta.note else "(not significant)"
    verdict = "(significant)" if delta.significant else unmarked
    size = f"{text.signed(delta.value or 0.0, column)} {column.title}"
    return " ".join(filter(None, [size, text.interval(*delta.bounds, column), verdict]))


# ---------------------------------------------------------------- people, idioms, warnings


def campaign_answer(report: CampaignReport) -> Section:
    """Write what came out of one campaign alone, and draw the systems' means if there are several."""
    sentences = (*_highest_mean(report), *_unbeaten(report), *_people(report), *_marked_errors(report))
    notes, judged = Notes("sentences", sentences, lead=True), report.judged
    if sum(mean.mean.value is not None for mean in report.means) < 2:
        return Section("answer", TITLE, (notes,))
    table = next(table for table in report.tables if table.key == "means")
    points = next(column for column in table.columns if column.key == "mean")
    points = replace(points, title=f"Human scores: {points.title}")
    rows = tuple(replace(row, baseline=row.name == judged.systems[judged.baseline]) for row in table.rows)
    shown = replace(table, rows=rows)
    systems = SystemsOn(judged.ratings.campaign.name, shown, None, report.styles, pairs={})
    return Section("answer", TITLE, (notes, ranking(systems, points, references=())))


def _highest_mean(report: CampaignReport) -> Iterator[str]:
    """Name the systems with the highest mean, and beside them the means of human translations."""
    judged = report.judged
    table = next((table for table in report.tables if table.key == "means"), None)
    rows = () if table is None else table.rows
    cells = {row.name: row.cells["mean"] for row in rows if row.cells["mean"].value is not None}
    human = judged.ratings.campaign.settings.references
    competing = [name for name in cells if name not in human] or list(cells)
    if not competing:
        return
    column = judged.points("mean", judged.protocol.mean_title)
    shown = {
        name: f"{text.value(cell, column)} {text.interval(cell.low, cell.high, column)}".strip()
        for name, cell in cells.items()
    }
    kind = "" if column.title == "mean" else f" ({column.title})"
    highest = " highest" if len(rows) > 1 else ""
    best = cells[competing[0]].value
    alike = _listed([name for name in competing if cells[name].value == best], last=" and ")
    beside = [f"; {name}, a human translation: {shown[name]}" for name in cells if name not in competing]
    yield f"People rated {alike}{highest} on average: {shown[competing[0]]}{kind}{''.join(beside)}."


def _unbeaten(report: CampaignReport) -> Iterator[str]:
    """Name the systems that no other beats: by the ranks over pages, or else by WMT's rule."""
    tables = {table.key: table for table in report.tables}
    key = "ranks" if "ranks" in tables else "wmt"
    source = {"ranks": "ranks over pages", "wmt": "WMT's rule for ranks"}[key]
    rows = tables[key].rows if key in tables else ()
    first = [row.name for row in rows if (low := row.cells.get("rank_low")) and low.value == 1]
    if len(first) == len(rows) > 1:
        yield f"No two systems are told apart ({source})."
    elif first and len(rows) > 1:
        yield f"No system is shown to be better than {_listed(first)} ({source})."


def _agreement(table: Table) -> Iterator[str]:
    """Name the systems whose outputs are most and least like the others'."""
    agreement, length, _ = AGREEMENT
    cells = {row.name: row.cells.get(agreement.key) for row in table.rows}
    rows = sorted(
        (row for row in table.rows if (cell := cells[row.name]) and cell.value is not None),
        key=lambda row: -(row.cells[agreement.key].value or 0.0),
    )
    shown = [text.value(row.cells[agreement.key], agreement) for row in rows]
    if len(set(shown)) < 2:  # as of two systems, which agree equally with each other
        return
    most, least = (f"{rows[place].name} ({shown[place]} chrF2)" for place in (0, -1))
    times = text.value(rows[-1].cells[length.key], length)
    yield (
        f"{most} agrees most with the other systems, {least} least: its outputs have {times} times the "
        "characters of theirs."
    )


def _people(report: CampaignReport, named: bool = False) -> Iterator[str]:
    """List a campaign's verdicts on its comparisons with the baseline. `named`: say which campaign it is."""
    judged, baseline = report.judged, report.judged.systems[report.judged.baseline]
    name = judged.ratings.campaign.name
    people = f"People (campaign {name})" if named else "People"
    if not report.means:
        yield f"People: campaign {name} has no rating that counts yet."
        return
    if not report.pairs:
        yield f"{people}: one system, so nothing to compare ({progress(judged.ratings)})."
        return
    by_verdict: dict[str, list[str]] = {}
    for pair in report.pairs:
        words = verdict_cell(judged, pair.verdict).words
        by_verdict.setdefault(words, []).append(judged.systems[pair.system])
    listed = "; ".join(f"{verdict}: {_listed(names)}" for verdict, names in by_verdict.items())
    yield f"{people}, against {baseline}: {listed} ({progress(judged.ratings)})."


def _marked_errors(report: CampaignReport) -> Iterator[str]:
    """Say how many errors raters marked in the system with the highest mean, human translations aside."""
    names = [report.judged.systems[mean.system] for mean in report.means if mean.mean.value is not None]
    human = report.judged.ratings.campaign.settings.references
    best = next((name for name in names if name not in human), None)
    rows = [row for table in report.tables if table.key == "marked" for row in table.rows if row.name == best]
    for cells in (row.cells for row in rows if row.cells["free"].value is not None):
        major, minor = (f"{cells[kind].value or 0.0:.2f} {kind}" for kind in ("major", "minor"))
        free = f"{cells['free'].value:.0f} % of the ratings call its output free of errors"
        yield f"Errors marked in {best}: {major} and {minor} per rating; {free}."


def _idioms(table: Table) -> Iterator[str]:
    """List the recall of each selection on idioms; a full vocabulary holds everything by definition."""
    column = next((column for column in (RECALL_WORDS, RECALL_IDIOM) if column in table.columns), None)
    if column is None:
        return
    recalls: dict[str, list[str]] = {}
    for row in table.rows:
        cell = row.cells[column.key]
        if cell.value is not None and not cell.by_definition:
            shown = (
                f"{text.number(cell.value, column)} % {text.interval(cell.low, cell.high, column)}".strip()
            )
            recalls.setdefault(shown, []).append(row.name)
    if recalls:
        listed = "; ".join(f"{_listed(names)} {shown}" for shown, names in recalls.items())
        yield f"{column.title[:1].upper()}{column.title[1:]}: {listed}."
