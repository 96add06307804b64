"""A folder of mt-metrics-eval as a campaign (`mt_metrics_eval` has the layout).

An item for every segment and system whose text is known, rated or not: they are the test set. Segment scores
say nothing of who gave them: they become the ratings of one rater, who is called as the scores. Marked errors
(`.seg.rating`) have their raters.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from creamtea.errors import InputError
from creamtea.human.formats.columns import checked_name
from creamtea.human.formats.content import Content, ItemContent
from creamtea.human.formats.elsewhere import CostError, Evidence, ImportFacts, given_cost, made_elsewhere
from creamtea.human.formats.files import Place, read_text
from creamtea.human.formats.losses import NotKept, counts, known_keys
from creamtea.human.formats.mt_metrics_eval import Folder
from creamtea.human.formats.rows import GivenRating
from creamtea.human.making.documents import domain_settings, read_documents
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.scale import exact
from creamtea.human.protocols.segment_scores import SegmentScores
from creamtea.human.protocols.spans import Mqm, spans_of
from creamtea.wording import counted, file_name, option

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
        """InputError unless it is a number."""
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


@dataclass(frozen=True)
class _Answer:
    """Of a rater on a cell: a value of the scale, or a payload."""

    place: Place
    cell: Cell
    rater: str
    value: str | None = None
    payload: dict[str, Any] | None = None


def read_mt_metrics_eval(
    path: Path, facts: ImportFacts, now: datetime
) -> tuple[Content, tuple[NotKept, ...]]:
    """The campaign in the folder, and what is not kept. `facts.scores` says which scores of people, where
    there are several, and the languages which pair.

    Without a protocol, scores stay as they are written (`scores`) and errors marked by MQM are `mqm`.
    InputError with file, line, what was found and what is allowed.
    """
    folder = Folder(path, _pair(path, facts))
    name = _chosen(folder, facts.scores)
    sources = folder.texts(f"sources/{folder.pair}.txt")
    documents, of_documents = _documents(folder, len(sources))
    domains = list(dict.fromkeys(of_documents.values()))
    outputs = {
        _system(folder, system): folder.texts(f"system-outputs/{folder.pair}/{system}.txt", len(sources))
        for system in folder.names(f"system-outputs/{folder.pair}", "", ".txt")
    }
    scores = _scores(folder, name, len(sources), outputs)
    unread: Counter[str] = Counter()
    marked = _marked(folder, name, len(sources), outputs, unread)
    protocol = facts.protocol or (Mqm.name if marked and _is_mqm(name) else SegmentScores.name)
    systems = tuple(dict.fromkeys([*_order(folder, name), *outputs]))
    cells = [
        (segment, system)
        for segment in range(len(sources))
        for system in systems
        if outputs[system][segment] is not None or (segment, system) in scores or (segment, system) in marked
    ]
    positions = {cell: position for position, cell in enumerate(cells)}
    items = [
        ItemContent(
            position=positions[segment, system],
            segment=segment,
            document=documents[segment],
            source=sources[segment] or "",
            systems=(system,),
            outputs=(outputs[system][segment] or "",),
        )
        for segment, system in cells
    ]
    given, left = _answers(facts.find_protocol(protocol), name, scores, marked)
    if not given:
        raise InputError(f"human-scores/{folder.pair}.{name}{SCORES}: only None in it: no ratings")
    ratings = [
        GivenRating(
            place=answer.place,
            rater=answer.rater,
            item=positions[answer.cell],
            system=answer.cell[1],
            value=answer.value,
            payload=answer.payload,
            assigned_at=now,
            submitted_at=now,
            rated_at=now,
        )
        for answer in given
    ]
    test_set = facts.test_set or (domains[0] if len(domains) == 1 else None)
    source, _, target = folder.pair.partition("-")
    made = made_elsewhere(
        replace(facts, test_set=test_set), protocol, (source, target), systems, items, ratings
    )
    made = replace(made, settings={**made.settings, **domain_settings(of_documents, made.test_set)})
    return made, (*counts(left), *counts(unread), *_beside(folder, name))


# ---------------------------------------------------------------- what to read


def _pair(path: Path, facts: ImportFacts) -> str:
    if not path.is_dir():
        raise InputError(
            f"{file_name(path)}: {option('format')} mt-metrics-eval reads a folder with sources, "
            "human-scores, …",
            about="file",
        )
    pairs = sorted(file.stem for file in (path / "sources").glob("*-*.txt"))
    wanted = "-".join(facts.pair) if facts.pair else None
    if wanted is None and len(pairs) == 1:
        return pairs[0]
    if wanted not in pairs:
        found = ", ".join(pairs) or "none"
        raise InputError(
            f"{path.resolve().name}: found sources of these language pairs: {found}; choose one with "
            f"{option('source-language')} and {option('target-language')}",
            about="source-language",
        )
    return wanted


def _chosen(folder: Folder, wanted: str | None) -> str:
    """The scores to read."""
    names = folder.of_people(SCORES)
    if wanted is None and len(names) == 1:
        return names[0]
    marked = folder.of_people(RATINGS)
    if wanted in names or wanted in marked:
        return str(wanted)
    if wanted is None and not names:
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


def _is_mqm(name: str) -> bool:
    return name.lower().startswith(Mqm.name)


def _documents(folder: Folder, segments: int) -> tuple[Sequence[str], Mapping[str, str]]:
    """Each segment's document, and each document's domain."""
    file = f"documents/{folder.pair}.docs"
    found = read_documents(read_text(folder.path / file), file, with_domains=True)
    if len(found.names) != segments:
        raise InputError(
            f"{file}: found {counted(len(found.names), 'line')}; allowed: {segments}, as the sources have"
        )
    return found.names, found.domains


# ---------------------------------------------------------------- scores and marked errors


def _blocks(
    folder: Folder, file: str, segments: int, systems: Mapping[str, Any], fields: tuple[int, ...]
) -> Iterator[tuple[int, Cell, list[str]]]:
    """(line, (segment, system), the other fields): a block of lines for each system, one per segment."""
    seen: dict[str, int] = defaultdict(int)
    for number, line in enumerate(folder.lines(file), start=1):
        words = _words(line)
        place = f"{file}, line {number}"
        if len(words) not in fields or words[0] not in systems:
            raise InputError(
                f"{place}: found {line[:60]!r}; allowed: a system of system-outputs and its value for the "
                "next segment"
            )
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


def _words(line: str) -> list[str]:
    """The fields of a line, with white space between; of a line with tabs, blanks are part of a field."""
    return re.split(r"\t+", line.strip()) if "\t" in line else line.split()


def _scores(folder: Folder, name: str, segments: int, systems: Mapping[str, Any]) -> dict[Cell, _Score]:
    """The segment scores that are not None, as they are written. Empty without a file."""
    file = f"human-scores/{folder.pair}.{name}{SCORES}"
    if not (folder.path / file).is_file():
        return {}
    return {
        cell: _Score(Place(Path(file).name, line), score)
        for line, cell, (score,) in _blocks(folder, file, segments, systems, (2,))
        if score != NONE
    }


def _order(folder: Folder, name: str) -> list[str]:
    """The systems as the file of scores has them, so that they come back in their order."""
    file = f"human-scores/{folder.pair}.{name}{SCORES}"
    lines = folder.lines(file) if (folder.path / file).is_file() else []
    return list(dict.fromkeys(_words(line)[0] for line in lines))


def _marked(
    folder: Folder, name: str, segments: int, systems: Mapping[str, Any], left: Counter[str]
) -> dict[Cell, list[_Marked]]:
    """The errors of NAME.seg.rating, else of all NAME.….seg.rating, by cell; each rater once. `left` counts
    what is not kept of them."""
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
        spans = [_span(**known_keys(error, ERROR_KEYS, "errors", left)) for error in errors]
        return _Marked(place, checked_name(rater), spans)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, CostError):
            raise InputError(f"{place}: {error}") from None
        raise InputError(
            f'{place}: found {written[:60]!r}; allowed: {NONE}, or {{"errors": […]}} with start, '
            "end, category, severity, score and is_source_error"
        ) from None


def _span(
    start: int,
    end: int,
    category: str | None = None,
    severity: str | None = None,
    score: float | None = None,
    is_source_error: bool = False,
) -> dict[str, Any]:
    """As a payload has it: the last character belongs to it, and nothing marked is an omission."""
    place = {} if start == end else {"start": start, "end": end - 1}
    source = {"in_source": True} if is_source_error else {}
    names = category.split("/") if category else []
    severe = {"severity": severity or "undecided", "category": names}
    return {**place, **source, **severe, **given_cost(score)}


def _answers(
    found: Protocol,
    name: str,
    scores: Mapping[Cell, _Score],
    marked: Mapping[Cell, Sequence[_Marked]],
) -> tuple[list[_Answer], dict[str, int]]:
    """The answers, and how many of what is not kept."""
    answers = []
    if not found.marks_errors:
        for cell, score in scores.items():
            score.exact()  # a number
            if isinstance(found, SegmentScores):
                answers.append(_Answer(score.place, cell, name, payload={"score": score.written}))
            else:
                answers.append(_Answer(score.place, cell, name, value=score.written))
        errors = sum(len(rating.errors) for each in marked.values() for rating in each)
        return answers, {
            f"segment scores with their raters: one rater, {name!r}, has them all": len(answers),
            "marked errors": errors,
        }
    if not marked:
        raise InputError(
            f"{option('protocol')} {found.name}: human-scores has no errors marked for {name} ({RATINGS}); "
            f"without {option('protocol')} the segment scores are read",
            about="protocol",
        )
    all_errors = [error for each in marked.values() for rating in each for error in rating.errors]
    positive = sum(score.exact() > 0 for score in scores.values())
    categories = sum(bool(error["category"]) for error in all_errors)
    Evidence(positive, len(all_errors), categories).check(found, name)
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
            own = {"score": _whole(scores[cell])}
        for rating in each:
            payload = {**own, "spans": rating.errors}
            answers.append(_Answer(rating.place, cell, rating.rater, payload=payload))
    left = {
        "segment scores without marked errors": len(set(scores) - set(marked)),
    }
    if isinstance(found, Mqm):
        left["segment scores that are not what their errors cost"] = _differing(found, scores, marked)
    return answers, left


def _whole(score: _Score) -> int:
    number = score.exact()
    if number.denominator != 1:
        raise InputError(f"{score.place}: found {score.written}; allowed: a whole number")
    return int(number)


def _differing(mqm: Mqm, scores: Mapping[Cell, _Score], marked: Mapping[Cell, Sequence[_Marked]]) -> int:
    """How many segment scores are not the mean of what their raters' errors cost."""
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
    """What else is in the folder."""
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
