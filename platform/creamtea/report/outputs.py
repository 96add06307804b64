"""The outputs of systems side by side, with differences marked, and their characteristic n-grams."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from creamtea.contract.step import Column
from creamtea.errors import InputError
from creamtea.methods.test_sets import is_without_references
from creamtea.orders.submission import spec_of
from creamtea.report import text
from creamtea.report.cells import StudyResults, near_zero
from creamtea.report.model import Cell, Document, Row, Section, Table
from creamtea.report.text import number
from creamtea.stats.paired import LONGEST, CharacteristicNGram, characteristic_ngrams
from creamtea.store.database import Database
from creamtea.store.queries import (
    OUTPUTS,
    PageQuery,
    SegmentFilter,
    SideBySide,
    find_study,
    side_by_side,
    study_nodes,
)
from creamtea.store.tables import Hypothesis
from creamtea.wording import counted
from creamtea.words import Piece, differences, joined, words_of_language

DRAWN = 100  # segments of a test set that a report's file holds
SEED = 1


@dataclass(frozen=True)
class Translations:
    """The steps with a study's outputs on one test set; systems and metrics in the study's order."""

    test_set: str  # step key
    against: dict[str, str]  # system -> the system that it is compared with; without baselines
    decodes: dict[str, str]  # system -> key of the step with its first seed
    scores: dict[str, dict[str, str]]  # metric -> system -> key of the step with the same seed
    columns: dict[str, Column]  # by metric
    source_language: str
    target_language: str
    has_references: bool = True


@dataclass(frozen=True)
class Line:
    """A text of a segment. `own`: a system wrote it; `text` is None if the system has no output."""

    name: str
    text: str | None
    language: str
    # pieces of the text; a difference or an idiom is marked. Empty if nothing can be marked
    pieces: Sequence[Piece] = ()
    score: str = ""
    own: bool = False


@dataclass(frozen=True)
class Outputs:
    """Some segments of a test set."""

    test_set: str
    about: str
    segments: tuple[tuple[int, list[Line]], ...]  # by their numbers, from 1


def translations(
    session: Session, study: int, table: Table, test_set: str, before_names: str = ""
) -> Translations | None:
    """Find the outputs on a test set; `table` shows its systems. None if there are no outputs yet.

    `before_names`: put before the names of systems, to tell studies apart.
    """
    spec = find_study(session, study).spec
    nodes = [node for node in study_nodes(session, study) if node.state == "succeeded"]
    on_test_set = [node for node in nodes if node.labels.get("test_set") == test_set]
    decodes: dict[str, tuple[Any, str]] = {}  # seed (None for given outputs) and step key
    scores: dict[str, dict[str, str]] = {}
    for node in on_test_set:
        if node.kind in OUTPUTS:
            decodes.setdefault(before_names + node.labels["system"], (node.labels.get("seed"), node.key))
    for node in on_test_set:
        system = before_names + node.labels.get("system", "")
        seed, _ = decodes.get(system, ("none", ""))
        if node.kind == "score" and seed == node.labels.get("seed"):
            scores.setdefault(node.labels["metric"], {})[system] = node.key
    prepared = [node.key for node in on_test_set if node.kind == "test_set"]
    if not decodes or not prepared:
        return None
    return Translations(
        test_set=prepared[0],
        against={before_names + row.name: before_names + row.against for row in table.rows if row.against},
        decodes={system: key for system, (_, key) in decodes.items()},
        scores=scores,
        columns={column.key: column for column in table.columns},
        source_language=spec["languages"]["source"],
        target_language=spec["languages"]["target"],
        has_references=not is_without_references(spec["test_sets"][test_set]),
    )


def drawn_outputs(database: Database, report: Document, chosen: Sequence[int] = ()) -> list[Outputs]:
    """Return segments of each test set with every system's output, differences from the baseline marked.

    The segments are those with the `chosen` numbers, else DRAWN random ones, always the same. Raises
    InputError for a number that no segment has.
    """
    with database.session() as session:
        return [
            _drawn(session, name, own, chosen)
            for name in report.test_sets
            for own in [translations(session, report.number, report.table(f"systems/{name}/systems"), name)]
            if own is not None
        ]


def _drawn(session: Session, name: str, outputs: Translations, chosen: Sequence[int]) -> Outputs:
    decodes = list(outputs.decodes.values())
    total = side_by_side(session, PageQuery(outputs.test_set, decodes, limit=0)).total
    if wrong := [number for number in chosen if not 1 <= number <= total]:
        raise InputError(f"test set {name!r} has no segment {wrong[0]}; it has {counted(total, 'segment')}")
    drawn = random.Random(SEED).sample(range(total), min(DRAWN, total))
    indices = tuple(number - 1 for number in chosen) or tuple(drawn)
    metric = next((key for key in outputs.columns if key in outputs.scores), None)
    scores = outputs.scores.get(metric or "", {})
    query = PageQuery(
        outputs.test_set, decodes, list(scores.values()), SegmentFilter(indices=indices), limit=len(indices)
    )
    systems = list(outputs.decodes)
    compared = set(outputs.against.values())  # human references are compared with nothing
    baseline = next((system for system in systems if system in compared - outputs.against.keys()), systems[0])
    segments = tuple(
        (row.index + 1, lines(row, outputs, systems, baseline, metric, list(scores)))
        for row in side_by_side(session, query).rows
    )
    how = "chosen" if chosen else "all" if len(drawn) == total else f"drawn with seed {SEED}"
    about = f"{len(segments):,} of {counted(total, 'segment')}, {how}. Differences from {baseline} are marked"
    scored = "" if metric is None else f"; {outputs.columns[metric].title} of the segment stands beside"
    return Outputs(name, f"{about}{scored}.", segments)


# ---------------------------------------------------------------- the texts of a segment


def lines(
    row: SideBySide,
    outputs: Translations,
    systems: Sequence[str],
    against: str | None,
    metric: str | None,
    scored: Sequence[str],
) -> list[Line]:
    """Return source, reference and outputs of a segment.

    `against`: the system to mark differences from; None for the reference. `scored`: the systems of the row's
    scores.
    """
    source, target = outputs.source_language, outputs.target_language
    values = dict(zip(scored, row.scores, strict=True))
    texts = {
        system: None if output is None else output.text
        for system, output in zip(systems, row.outputs, strict=True)
    }
    base = row.reference if against is None else texts[against]

    def score(system: str) -> str:
        value = values.get(system)
        return "" if value is None or metric is None else number(value, outputs.columns[metric])

    reference = Line("reference", row.reference, target, _idioms(row.reference, row.idioms, "target"))
    return [
        Line("source", row.source, source, _idioms(row.source, row.idioms, "source")),
        *([reference] if outputs.has_references else []),
        *(
            Line(
                system,
                text,
                target,
                # an empty text and the base have no differences to mark, and no text has any without a base
                []
                if text is None or base is None or system == against or not text.strip()
                else differences(text, base),
                score(system),
                own=True,
            )
            for system, text in texts.items()
        ),
    ]


def _idioms(text: str, idioms: Sequence[dict[str, Any]], side: str) -> list[Piece]:
    """Mark the idioms in the text of a side; overlapping ones are one piece."""
    cuts = [0]
    for start, end in sorted((int(idiom[side][0]), int(idiom[side][1])) for idiom in idioms if idiom[side]):
        if len(cuts) > 1 and start <= cuts[-1]:
            cuts[-1] = max(end, cuts[-1])
        else:
            cuts += [start, end]
    if len(cuts) == 1 or not text.strip():
        return []
    pieces = pairwise([*cuts, len(text)])
    return [Piece(text[start:end], marked=bool(number % 2)) for number, (start, end) in enumerate(pieces)]


NGRAMS = "ngrams"
MAX_NGRAMS = 6  # in either direction
ABOUT_NGRAMS = (
    f"Words and phrases of up to {LONGEST} words (characters, if a script has no blanks) that one of two "
    "systems has in significantly more segments than the other: exact sign test over segments (McNemar "
    "1947), p after Holm's correction over the n-grams that could be significant (Tarone 1990). The "
    "strongest in either direction, by the outputs of the first seed; systems without any are not listed."
)


def build_ngrams(database: Database, study: int) -> Section:
    """Build a study's section from all of its outputs; it has no blocks if nothing is found."""
    with database.session() as session:
        row = find_study(session, study)
        return ngrams_section(session, StudyResults(session, row.id, spec_of(row)))


def ngrams_section(session: Session, results: StudyResults) -> Section:
    sections = (_ngrams_on(session, results, test_set) for test_set in results.spec.test_sets)
    return Section(
        NGRAMS,
        "Characteristic n-grams",
        tuple(section for section in sections if section.blocks),
        about=ABOUT_NGRAMS,
    )


def _ngrams_on(session: Session, results: StudyResults, test_set: str) -> Section:
    spec = results.spec

    @cache
    def outputs_of(system: str) -> list[tuple[int, list[str]]]:
        steps = results.outputs(system, test_set)[:1]  # only the first seed counts
        keys = [step.node.key for step in steps if step.node.state == "succeeded"]
        rows = session.execute(
            select(Hypothesis.index, Hypothesis.text)
            .where(Hypothesis.step_key.in_(keys))
            .order_by(Hypothesis.index)
        )
        return [(index, words_of_language(output, spec.languages.target)) for index, output in rows]

    tables, low = [], near_zero(results, test_set)
    for system in (name for name in spec.systems_on(test_set) if spec.compared(name)):
        baseline = spec.baseline_of(system)
        if system in low and baseline in low:
            continue  # both translate next to nothing, so differences mean nothing
        ours, theirs = outputs_of(system), outputs_of(baseline)
        if not ours or [index for index, _ in ours] != [index for index, _ in theirs]:
            continue  # one of them has not translated every segment
        ngrams = characteristic_ngrams([words for _, words in ours], [words for _, words in theirs])
        if ngrams:
            tables.append(_ngrams_table(system, baseline, ngrams))
    several = len(spec.test_sets) > 1
    return Section(test_set, test_set if several else "", tuple(tables), test_set=test_set)


def _ngrams_table(system: str, baseline: str, ngrams: Sequence[CharacteristicNGram]) -> Table:
    columns = (
        Column("ours", system, 0, note="segments"),
        Column("theirs", baseline, 0, note="segments"),
        Column("p", "p", 3, note="sign test, after Holm"),
    )
    strongest = [
        *[ngram for ngram in ngrams if ngram.more][:MAX_NGRAMS],
        *[ngram for ngram in ngrams if not ngram.more][:MAX_NGRAMS],
    ]
    rows = tuple(
        Row(
            joined(ngram.ngram),
            {
                "ours": Cell("ok", value=ngram.ours),
                "theirs": Cell("ok", value=ngram.theirs),
                "p": Cell("ok", value=ngram.p_corrected, words=text.p_value(ngram.p_corrected)),
            },
            description=f"more in {system if ngram.more else baseline}",
        )
        for ngram in strongest
    )
    left_out = len(ngrams) - len(rows)
    about = "Numbers of segments that have the n-gram."
    about += f" {left_out:,} more n-grams are significant." if left_out else ""
    return Table(system, f"{system} against {baseline}", "n-gram", columns, rows, about, folded=True)
