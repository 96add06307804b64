"""A campaign as a folder of mt-metrics-eval, Google's toolkit for evaluating metrics against people.

The layout is documented under "File organization and naming convention" in
https://github.com/google-research/mt-metrics-eval (README.md); SRC-TGT is the language pair:

    documents/SRC-TGT.docs                     a line per segment: DOMAIN TAB DOC; documents are contiguous
    sources/SRC-TGT.txt                        a line per segment
    references/SRC-TGT.NAME.txt                a line per segment
    system-outputs/SRC-TGT/SYS.txt             a line per segment
    human-scores/SRC-TGT.PROTOCOL.LEVEL.score  SYS SCORE (LEVEL domain: DOMAIN SYS SCORE), None where missing
    metric-scores/SRC-TGT/METRIC-NAME.LEVEL.score

DOMAIN is the document's domain if the campaign knows it, else the test set. Scores are raw points of the
protocol's scale. A segment's score is the mean over the ratings that count; the score of a document, a domain
or a system is the mean over segments (or over pairs, if two outputs are compared) by the items' weights. The
folder itself is the test set:
`EvalSet(path.name, "SRC-TGT", path=path.parent, info=MetaInfo(std_ref="ref", ...))`.

Marked errors are in `human-scores/SRC-TGT.PROTOCOL.RATER.seg.rating`, `SYS RATING RATER` with tabs: RATING is
a rater's errors as JSON, whose `end` is one past the last character, or None. Scores of single raters have no
file.

An import has an item for every segment and system with a known text, rated or not: they are the test set.
Segment scores do not name their raters: they become the ratings of one rater, named after the scores.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from itertools import groupby, pairwise, product
from pathlib import Path
from statistics import mean
from typing import Any

from pydantic import ValidationError

from creamtea.errors import InputError, wrong_option
from creamtea.files import write_texts
from creamtea.human.formats.base import (
    MT_METRICS_EVAL,
    Format,
    ImportFacts,
    NothingToExport,
    NotKept,
    Read,
    Written,
    cannot_hold,
    counts,
    end_with_text,
    known_keys,
    several_pairs,
)
from creamtea.human.formats.columns import Place, read_text, text_lines
from creamtea.human.formats.losses import language_word, not_held, sanitised
from creamtea.human.formats.rating_rows import GivenRating, check_protocol, made_elsewhere
from creamtea.human.making.texts import domain_settings, read_documents
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.protocols.base import exact
from creamtea.human.protocols.scores import SegmentScores
from creamtea.human.protocols.spans import MarksErrors, Mqm, Span, spans_of
from creamtea.human.record import (
    Content,
    CountedScore,
    ItemContent,
    WholeTestSet,
    checked_name,
    checked_text,
    counted_scores,
    first_opinions,
    known_test_set,
)
from creamtea.wording import counted, file_name, option

NO_TEXT = "[No translation supplied]"  # the toolkit's sign of a missing text
REFERENCES = ("ref", "refA", "refB", "refC")  # the first one that no system has is used
MAX_FILE_NAME = 255  # bytes
MAX_COST = 1000  # of an error, and of all errors of an output
Means = dict[tuple[int, str], Fraction]  # (line, system) → score


@dataclass(frozen=True)
class Folder:
    """A folder to import, perhaps written by another tool."""

    path: Path
    pair: str  # SRC-TGT

    def lines(self, name: str) -> list[str]:
        return text_lines(self.path / name)

    def check_lines(self, name: str, lines: int, segments: int) -> None:
        if lines != segments:
            raise InputError(
                f"{name}: found {counted(lines, 'line')}; allowed: {segments}, as the sources have"
            )

    def texts(self, name: str, segments: int | None = None) -> list[str | None]:
        lines = self.lines(name)
        self.check_lines(name, len(lines), len(lines) if segments is None else segments)
        try:
            return [None if line.rstrip() == NO_TEXT else checked_text(line) for line in lines]
        except ValueError as error:
            raise InputError(f"{name}: {error or 'a character that cannot be stored'}") from None

    def names(self, folder: str, before: str, after: str) -> list[str]:
        """Return the parts of a folder's file names between `before` and `after`, sorted."""
        found = (self.path / folder).glob("[!.]*") if (self.path / folder).is_dir() else ()
        names = (file.name for file in found if file.name.startswith(before) and file.name.endswith(after))
        return sorted(name[len(before) : len(name) - len(after)] for name in names)

    def of_people(self, ending: str) -> list[str]:
        return self.names("human-scores", f"{self.pair}.", ending)


@dataclass(frozen=True)
class RatedUnit:
    """The unit of comparison: a segment, or a pair of outputs of a segment."""

    line: int
    weight: Fraction
    means: dict[str, Fraction]  # by system, if it has a rating that counts


def _texts(content: Content, whole: WholeTestSet) -> dict[str, str]:
    """Return the text of each file, by name."""
    if not whole.lines:
        raise NothingToExport(f"campaign {content.name!r} has no items that rate systems")
    pair = f"{language_word(content.source_language)}-{language_word(content.target_language)}"
    systems = _different(content.systems, "system")
    reference = next((name for name in REFERENCES if name not in systems.values()), None)
    if reference is None:
        raise InputError(f"systems are called {', '.join(REFERENCES)}: no name is left for the reference")
    documents = _document_names([line.document for line in whole.lines])
    known: dict[str, str] = content.settings.get("domains", {})
    domains_of_lines = [known.get(line.document, content.test_set) for line in whole.lines]
    written_domains = _different(domains_of_lines, "domain")
    domains = [written_domains[domain] for domain in domains_of_lines]

    def column(what: str, texts: Iterable[str | None]) -> str:
        return _joined(
            _line(text, f"{content.segment_name(line.index)}, {what}")
            for line, text in zip(whole.lines, texts, strict=True)
        )

    texts = {
        f"documents/{pair}.docs": _joined(map("{}\t{}".format, domains, documents)),
        f"sources/{pair}.txt": column("source", (line.source for line in whole.lines)),
        f"references/{pair}.{reference}.txt": column("reference", (line.reference for line in whole.lines)),
    }
    for at, (system, name) in enumerate(systems.items()):
        outputs = [line.outputs[at] for line in whole.lines]
        texts[f"system-outputs/{pair}/{name}.txt"] = column(f"output of {system}", outputs)
    for level, lines in _human_scores(content, whole, systems, documents, domains).items():
        texts[f"human-scores/{pair}.{content.protocol}.{level}.score"] = _joined(lines)
    for rater, lines in _marked_errors(content, whole, systems).items():
        texts[f"human-scores/{pair}.{content.protocol}.{rater}.seg.rating"] = _joined(lines)
    metrics = _different([metric.name for metric in whole.metrics], "metric")
    for metric in whole.metrics:
        stem = f"metric-scores/{pair}/{metrics[metric.name]}-{reference}"
        for level, scores in (("sys", [(value,) for value in metric.systems]), ("seg", metric.segments)):
            if scores:
                texts[f"{stem}.{level}.score"] = _joined(
                    f"{name}\t{value!r}"
                    for name, values in zip(systems.values(), scores, strict=True)
                    for value in values
                )
    return texts


# ---------------------------------------------------------------- texts and names
def _joined(lines: Iterable[str]) -> str:
    text = "".join(f"{line}\n" for line in lines)
    # readers drop a byte-order mark: a second one keeps a text whole that begins with this character
    return f"\ufeff{text}" if text.startswith("\ufeff") else text


def _line(text: str | None, what: str) -> str:
    """Return a text as one line of a file.

    InputError for a line end (readers end lines at LF, CR and CR LF), and for NO_TEXT, which means no text.
    """
    if text is None:
        return NO_TEXT
    if "\n" in text or "\r" in text:
        allowed = "a single line, as this format has one line per segment"
        raise cannot_hold(f"{what}: found a line end in {text[:60]!r}; allowed: {allowed}")
    if text.rstrip() == NO_TEXT:
        raise cannot_hold(f"{what}: found {text!r}, which means a missing text in this format")
    return text


def _different(names: Sequence[str], what: str) -> dict[str, str]:
    """Map names to sanitised names. InputError if two names become equal."""
    written = {name: sanitised(name) for name in names}
    taken: dict[str, str] = {}
    for name, new in written.items():
        if new in taken:
            raise cannot_hold(
                f"the {what}s {taken[new]!r} and {name!r} are both called {new!r} in an mt-metrics-eval "
                "folder, which allows no white space or slashes in names"
            )
        taken[new] = name
    return written


def _document_names(documents: Sequence[str]) -> list[str]:
    names = _different(documents, "document")
    ended: set[str] = set()
    for before, document in pairwise(documents):
        if document != before:
            ended.add(before)
            if document in ended:
                raise cannot_hold(
                    f"document {document!r}: found in two places of the test set; allowed: contiguous "
                    "segments, as this format asks"
                )
    return [names[document] for document in documents]


# ---------------------------------------------------------------- scores of people
def _human_scores(
    content: Content,
    whole: WholeTestSet,
    names: Mapping[str, str],
    documents: Sequence[str],
    domains: Sequence[str],
) -> dict[str, list[str]]:
    """Return the lines of each level, with a block for each system, in the test set's order."""
    units = _units(content, {line.index: at for at, line in enumerate(whole.lines)})
    every = range(len(whole.lines))
    of_lines = {"sys": [""] * len(every), "domain": domains, "doc": documents, "seg": every}
    levels = {}
    for level, group_of in of_lines.items():
        members: dict[Any, list[RatedUnit]] = {group: [] for group in group_of}
        for unit in units:
            members[group_of[unit.line]].append(unit)
        levels[level] = [
            (f"{group}\t" if level == "domain" else "") + f"{name}\t{_mean(own, system)}"
            for system, name in names.items()
            for group, own in members.items()
        ]
    return levels


def _marked_errors(content: Content, whole: WholeTestSet, names: Mapping[str, str]) -> dict[str, list[str]]:
    """Return each rater's lines of marked errors, with the first rating of each output."""
    protocol = find_protocol(content.protocol, content.settings)
    if not isinstance(protocol, MarksErrors):
        return {}
    ratings: dict[str, dict[tuple[int, str], str]] = defaultdict(dict)
    for opinion in first_opinions(content):
        errors = [_error(span, opinion, protocol) for span in spans_of(opinion.score.payload)]
        rating = json.dumps({"errors": errors})
        ratings[opinion.answer.rater][opinion.item.segment, opinion.score.system] = rating
    raters = _different(sorted(ratings), "rater")
    return {
        raters[rater]: [
            f"{names[system]}\t{own[line.index, system]}\t{raters[rater]}"
            if (line.index, system) in own
            else f"{names[system]}\tNone"
            for system in content.systems
            for line in whole.lines
        ]
        for rater, own in ratings.items()
    }


def _error(span: Span, counted: CountedScore, protocol: MarksErrors) -> dict[str, Any]:
    """Return an error in the format's form.

    An omission is at the end and has no length. In MQM the score of an error is its cost.
    """
    length = len(counted.item.source if span.in_source else counted.output)
    return {
        "start": length if span.start is None else span.start,
        "end": length if span.end is None else span.end + 1,
        "category": "/".join(span.category) or None,
        "severity": span.severity,
        "score": float(protocol.cost(span)) if isinstance(protocol, Mqm) else span.cost,
        "is_source_error": span.in_source,
    }


def _units(content: Content, lines: Mapping[int, int]) -> list[RatedUnit]:
    """Return the means over the raters whose ratings count, in exact fractions.

    Each rater has one rating per output, the mean of theirs, as in `stats.agreement`. Several items of one
    segment are one unit (outputs shown one at a time); if scores are relative, each item is a unit.
    """
    protocol = find_protocol(content.protocol, content.settings)
    values: dict[tuple[int, int], dict[str, dict[str, list[Fraction]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    weights: dict[tuple[int, int], dict[int, Fraction]] = defaultdict(dict)
    for rated in counted_scores(content):
        item, score = rated.item, rated.score
        unit = (lines[item.segment], item.position if protocol.relative else 0)
        value = protocol.value(score.step, score.payload)
        values[unit][score.system][rated.answer.rater].append(value)
        weights[unit][item.position] = Fraction(item.weight)
    return [
        RatedUnit(
            line=unit[0],
            weight=mean(weights[unit].values()),
            means={
                system: mean([mean(own) for own in raters.values()]) for system, raters in systems.items()
            },
        )
        for unit, systems in sorted(values.items())
    ]


def _mean(units: Sequence[RatedUnit], system: str) -> str:
    """Return the weighted mean of a system as text; "None" if nobody rated it."""
    rated = [unit for unit in units if system in unit.means]
    total = sum((unit.weight for unit in rated), Fraction(0))
    if not total:
        return "None"
    return repr(float(sum((unit.weight * unit.means[system] for unit in rated), Fraction(0)) / total))


NONE = "None"
ERROR_KEYS = ("start", "end", "category", "severity", "score", "is_source_error")
SCORES, RATINGS = ".seg.score", ".seg.rating"
LEVELS = (".doc.score", ".domain.score", ".sys.score")
Cell = tuple[int, str]  # segment, system


@dataclass(frozen=True)
class _Score:
    """A score as it is written."""

    place: Place
    written: str

    def exact(self) -> Fraction:
        """Return the number; InputError if it is not one."""
        try:
            return exact(self.written)
        except ValueError as error:
            raise InputError(f"{self.place}: {error}; allowed: a number or {NONE}") from None


@dataclass(frozen=True)
class _Marked:
    """The errors that a rater marked in an output."""

    place: Place
    rater: str
    errors: list[dict[str, Any]]


# ---------------------------------------------------------------- what to read
def _pair(path: Path, facts: ImportFacts) -> str:
    if not path.is_dir():
        read = f"{option('format')} mt-metrics-eval reads a folder with sources, human-scores, …"
        raise InputError(f"{file_name(path)}: {read}", about="file")
    pairs = sorted(file.stem for file in (path / "sources").glob("*-*.txt"))
    wanted = "-".join(facts.pair) if facts.pair else None
    if wanted is None and len(pairs) == 1:
        return pairs[0]
    if wanted not in pairs:
        found = ", ".join(pairs) or "none"
        raise several_pairs(f"{path.resolve().name}: found sources of these language pairs: {found}")
    return wanted


def _chosen(folder: Folder, wanted: str | None) -> str:
    """Return the name of the scores to read."""
    names = folder.of_people(SCORES)
    if wanted is None and len(names) == 1:
        return names[0]
    marked = folder.of_people(RATINGS)
    if wanted in names or wanted in marked:
        return str(wanted)
    if wanted is None and not names and not marked:
        raise InputError(f"human-scores: no {folder.pair}.NAME{SCORES} in it")
    found = ", ".join(dict.fromkeys([*names, *marked]))
    raise InputError(
        f"human-scores: found scores of {found}; choose one with {option('scores')} NAME", about="scores"
    )


def _system(folder: Folder, name: str) -> str:
    try:
        return checked_name(name)
    except ValueError:
        place = f"system-outputs/{folder.pair}"
        raise InputError(f"{place}: found the file {f'{name}.txt'!r}; allowed: a system's name.txt") from None


# ---------------------------------------------------------------- scores and marked errors
def _blocks(
    folder: Folder, file: str, segments: int, systems: Mapping[str, Any], fields: tuple[int, ...]
) -> Iterator[tuple[int, Cell, list[str]]]:
    """Yield (line, (segment, system), other fields) of a file with a block of lines for each system."""
    seen: dict[str, int] = defaultdict(int)
    for number, line in enumerate(folder.lines(file), start=1):
        if not line.strip():
            continue
        # between tabs, blanks are part of a field
        words = re.split(r"\t+", line.strip()) if "\t" in line else line.split()
        place = f"{file}, line {number}"
        if len(words) not in fields or words[0] not in systems:
            allowed = "a system of system-outputs and its value for the next segment"
            raise InputError(f"{place}: found {line[:60]!r}; allowed: {allowed}")
        system = words[0]
        if seen[system] >= segments:
            raise InputError(f"{place}: found a value of {system} too many; allowed: {segments}")
        yield number, (seen[system], system), words[1:]
        seen[system] += 1
    for system, found in seen.items():
        if found != segments:
            raise InputError(
                f"{file}: found {found} values of {system}; allowed: {segments}, one per segment"
            )


def _scores(
    folder: Folder, name: str, segments: int, systems: Mapping[str, Any]
) -> tuple[dict[Cell, _Score], list[str]]:
    """Return the segment scores that are not None, as written, and the file's order of systems.

    An export needs the order again. Both are empty if there is no file.
    """
    file = f"human-scores/{folder.pair}.{name}{SCORES}"
    if not (folder.path / file).is_file():
        return {}, []
    read = list(_blocks(folder, file, segments, systems, (2,)))
    scores = {
        cell: _Score(Place(Path(file).name, line), score) for line, cell, (score,) in read if score != NONE
    }
    return scores, [system for _, (segment, system), _ in read if segment == 0]


def _marked(
    folder: Folder, name: str, segments: int, systems: Mapping[str, Any], left: Counter[str]
) -> dict[Cell, list[_Marked]]:
    """Return the errors in NAME.seg.rating, else in all NAME.….seg.rating, by cell.

    Each rater counts once. `left` counts losses.
    """
    names = folder.of_people(RATINGS)
    chosen = [name] if name in names else [other for other in names if other.startswith(f"{name}.")]
    found: dict[Cell, list[_Marked]] = defaultdict(list)
    for each in chosen:
        file = f"human-scores/{folder.pair}.{each}{RATINGS}"
        for line, cell, (rating, *rater) in _blocks(folder, file, segments, systems, (2, 3)):
            if rating == NONE:
                continue
            who = rater[0] if rater else each.removeprefix(f"{name}.")
            read = _rating(Place(Path(file).name, line), who, rating, left)
            others = [other for other in found[cell] if other.rater == read.rater]
            if not others:
                found[cell].append(read)
            elif others[0].errors != read.errors:
                raise InputError(
                    f"{read.place}: found another rating by {read.rater!r} than in {others[0].place}; "
                    f"allowed: one; choose a file with {option('scores')}",
                    about="scores",
                )
    return dict(found)


def _rating(place: Place, rater: str, written: str, left: Counter[str]) -> _Marked:
    try:
        errors = known_keys(json.loads(written), ("errors",), "marked errors", left)["errors"]
        spans = [_span(place, **known_keys(error, ERROR_KEYS, "errors", left)) for error in errors]
        return _Marked(place, checked_name(rater), spans)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(
            f'{place}: found {written[:60]!r}; allowed: {NONE}, or {{"errors": […]}} with start, '
            "end, category, severity, score and is_source_error"
        ) from None


def _span(
    at: Place,
    start: int,
    end: int,
    category: str | None = None,
    severity: str | None = None,
    score: float | None = None,
    is_source_error: bool = False,
) -> dict[str, Any]:
    """Return an error as a payload stores it: `end` is its last character, before `start` for an omission.

    `score`: the error's cost. InputError for an invalid cost.
    """
    number = isinstance(score, int | float) and not isinstance(score, bool)
    if score is not None and not (number and 0 <= score <= MAX_COST):
        raise InputError(
            f"{at}: score of an error: found {score!r:.60}; allowed: its cost, a number, 0 to {MAX_COST:,}"
        )
    if not isinstance(is_source_error, bool) or not type(start) is type(end) is int:
        raise TypeError
    place = {"start": start, "end": end - 1}
    source = {"in_source": True} if is_source_error else {}
    names = category.split("/") if category and category.strip() else []
    severe = {"severity": severity or "undecided", "category": names}
    return {**place, **source, **severe, **({} if score is None else {"cost": float(score)})}


def _ratings(
    found: Protocol,
    name: str,
    scores: Mapping[Cell, _Score],
    marked: Mapping[Cell, Sequence[_Marked]],
    rated: Callable[..., GivenRating],
) -> tuple[list[GivenRating], dict[str, int]]:
    """Make the ratings with `rated`; also count the lost scores and errors, by reason."""
    ratings: list[GivenRating] = []
    if not found.marks_errors:
        for cell, score in scores.items():
            score.exact()  # InputError unless it is a number
            whole = isinstance(found, SegmentScores)
            given = {"payload": {"score": score.written}} if whole else {"value": score.written}
            ratings.append(rated(score.place, cell, name, **given))
        errors = sum(len(rating.errors) for each in marked.values() for rating in each)
        return ratings, {
            f"segment scores with their raters: one rater, {name!r}, has them all": len(ratings),
            "marked errors": errors,
        }
    if not marked:
        none = f"human-scores has no errors marked for {name} ({RATINGS})"
        otherwise = f"without {option('protocol')} the segment scores are read"
        raise wrong_option("protocol", f"{none}; {otherwise}", found.name)
    all_errors = [error for each in marked.values() for rating in each for error in rating.errors]
    positive = sum(score.exact() > 0 for score in scores.values())
    categories = sum(bool(error["category"]) for error in all_errors)
    check_protocol(found, name, positive, len(all_errors), categories)
    for cell, each in marked.items():
        own: dict[str, Any] = {}
        if not isinstance(found, Mqm):
            if len(each) > 1 or cell not in scores:
                raise InputError(
                    f"{each[0].place}: found {len(each)} raters' errors; allowed: those of one, beside a "
                    f"segment score, as {found.name} needs a rater's own; without {option('protocol')} the "
                    "segment scores are read",
                    about="protocol",
                )
            number = scores[cell].exact()
            if number.denominator != 1:
                found_score = f"{scores[cell].place}: found {scores[cell].written}"
                raise InputError(f"{found_score}; allowed: a whole number")
            own = {"score": int(number)}
        for rating in each:
            payload = {**own, "spans": rating.errors}
            ratings.append(rated(rating.place, cell, rating.rater, payload=payload))
    left = {"segment scores without marked errors": len(set(scores) - set(marked))}
    if isinstance(found, Mqm):
        left["segment scores that are not what their errors cost"] = _differing(found, scores, marked)
    return ratings, left


def _differing(mqm: Mqm, scores: Mapping[Cell, _Score], marked: Mapping[Cell, Sequence[_Marked]]) -> int:
    """Count segment scores that differ from the mean cost of their raters' errors."""
    differ = 0
    for cell, ratings in marked.items():
        if cell not in scores:
            continue
        try:
            spans = [spans_of({"spans": rating.errors}) for rating in ratings]
        except ValidationError:  # refused with its place when the campaign is made
            continue
        mean = sum((-mqm.cost(span) for each in spans for span in each), Fraction(0)) / len(ratings)
        differ += abs(scores[cell].exact() - mean) > Fraction(1, 10**6)
    return differ


def _beside(folder: Folder, name: str) -> tuple[NotKept, ...]:
    """Count the other contents of the folder."""
    others = [other for other in folder.of_people(SCORES) if other != name]
    metrics = folder.path / "metric-scores" / folder.pair
    references = [
        text
        for reference in folder.names("references", f"{folder.pair}.", ".txt")
        for text in folder.texts(f"references/{folder.pair}.{reference}.txt")
    ]
    chosen = f"human-scores/{folder.pair}.{name}."
    read = [
        f"sources/{folder.pair}.txt",
        f"documents/{folder.pair}.docs",
        f"system-outputs/{folder.pair}/",
        f"references/{folder.pair}.",
        f"metric-scores/{folder.pair}/",
        *(f"{chosen.removesuffix('.')}{level}" for level in (SCORES, *LEVELS)),
        *(f"human-scores/{folder.pair}.{other}{SCORES}" for other in others),
    ]
    files = sorted(
        file.relative_to(folder.path).as_posix() for file in folder.path.rglob("*") if file.is_file()
    )
    unread = [
        file
        for file in files
        if not file.startswith(tuple(read)) and not (file.startswith(chosen) and file.endswith(RATINGS))
    ]
    shown = ", ".join(unread[:3]) + (", …" if len(unread) > 3 else "")
    totals = [
        line
        for level in LEVELS
        if (folder.path / f"human-scores/{folder.pair}.{name}{level}").is_file()
        for line in folder.lines(f"human-scores/{folder.pair}.{name}{level}")
        if line.split()[-1:] != [NONE]
    ]
    return counts(
        {
            "scores of documents, domains and systems": len(totals),
            f"other scores of people ({', '.join(others)}; {option('scores')})": len(others),
            "files of metric scores": len(list(metrics.glob("*.score"))) if metrics.is_dir() else 0,
            "reference translations": sum(text is not None for text in references),
            f"other files of the folder ({shown})": len(unread),
        }
    )


class MtMetricsEval(Format):
    name = MT_METRICS_EVAL
    title = "a zip of a folder of mt-metrics-eval (sources, human-scores, …)"
    expected = "a folder with sources, system-outputs and human-scores"
    options = ("scores",)
    of_test_set = True

    def recognises(self, path: Path, text: str) -> bool:
        return (path / "human-scores").is_dir() or (path / "system-outputs").is_dir()

    def read(self, path: Path, facts: ImportFacts, now: datetime) -> Read:
        """Read the campaign in the folder, and count losses.

        `facts.scores` chooses the scores of people if there are several, and the languages choose the pair.
        Without a protocol, scores stay as they are written (`scores`), and errors marked by MQM are `mqm`.
        InputError with file, line, what was found and what is allowed.
        """
        folder = Folder(path, _pair(path, facts))
        name = _chosen(folder, facts.scores)
        sources = folder.texts(f"sources/{folder.pair}.txt")
        file = f"documents/{folder.pair}.docs"
        documents = read_documents(read_text(path / file), file, with_domains=True)
        folder.check_lines(file, len(documents.names), len(sources))
        parts = [name for name, _ in groupby(filter(None, documents.names))]
        domains = list(dict.fromkeys(documents.domains.values()))
        outputs = {
            _system(folder, system): folder.texts(f"system-outputs/{folder.pair}/{system}.txt", len(sources))
            for system in folder.names(f"system-outputs/{folder.pair}", "", ".txt")
        }
        scores, order = _scores(folder, name, len(sources), outputs)
        unread: Counter[str] = Counter()
        marked = _marked(folder, name, len(sources), outputs, unread)
        notes = Counter({"documents that begin again, and count as one": len(parts) - len({*parts})})
        for (segment, system), each in marked.items():
            for error in (error for rating in each for error in rating.errors):
                text = sources[segment] if error.get("in_source") else outputs[system][segment]
                if error["end"] == error["start"] - 1:
                    within = bool(text) and error["start"] < len(text or "")
                    notes["errors without a length, within the text: read as omissions"] += within
                    del error["start"], error["end"]
                elif text:
                    end_with_text(error, len(text), notes)
        protocol = facts.protocol or (
            Mqm.name if marked and name.lower().startswith(Mqm.name) else SegmentScores.name
        )
        systems = tuple(dict.fromkeys([*order, *outputs]))
        rated_cells = scores.keys() | marked.keys()
        cells = [
            (segment, system)
            for segment, system in product(range(len(sources)), systems)
            if outputs[system][segment] is not None or (segment, system) in rated_cells
        ]
        positions = {cell: position for position, cell in enumerate(cells)}
        items = [
            ItemContent(
                position=positions[segment, system],
                segment=segment,
                document=documents.names[segment],
                source=sources[segment] or "",
                systems=(system,),
                outputs=(outputs[system][segment] or "",),
            )
            for segment, system in cells
        ]

        def rated(place: Place, cell: Cell, rater: str, **answer: Any) -> GivenRating:
            answer |= dict.fromkeys(("assigned_at", "submitted_at", "rated_at"), now)
            return GivenRating(place=place, rater=rater, item=positions[cell], system=cell[1], **answer)

        ratings, left = _ratings(facts.find_protocol(protocol), name, scores, marked, rated)
        if not ratings:
            raise InputError(f"human-scores/{folder.pair}.{name}{SCORES}: only None in it: no ratings")
        test_set = facts.test_set or (domains[0] if len(domains) == 1 else facts.name)
        facts = replace(facts, test_set=test_set)
        settings = domain_settings(documents.domains, test_set)
        source, _, target = folder.pair.partition("-")
        made = made_elsewhere(facts, protocol, (source, target), systems, items, ratings, settings)
        notices = counts(notes, note=True)
        return made, (*counts(left), *counts(unread), *_beside(folder, name), *notices)

    def write(self, content: Content, path: Path) -> Written:
        """Write the folder.

        InputError for a text with a line end, for names that become equal or are too long for a file, for
        documents that are not contiguous, and if there is nothing to write.
        """
        texts = _texts(content, content.whole or known_test_set(content))
        for file in (Path(name).name for name in texts):
            if len(file.encode()) > MAX_FILE_NAME:
                raise cannot_hold(
                    f"a file would be called {file[:60]}… ({len(file.encode())} bytes; file systems allow "
                    f"{MAX_FILE_NAME}), as names of systems, metrics and raters are part of this format's "
                    "file names"
                )
        return write_texts(path, texts), not_held(content, MT_METRICS_EVAL)
