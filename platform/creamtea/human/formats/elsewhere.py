"""Ratings made elsewhere as a campaign: what an import is told, and what follows from items and rows."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from creamtea.error_spans import SEVERITIES, as_severity, is_no_error
from creamtea.errors import InputError
from creamtea.human.formats.answers import with_answers
from creamtea.human.formats.content import Content, ItemContent, RaterContent
from creamtea.human.formats.files import Place
from creamtea.human.formats.losses import APPRAISE, MQM, NotKept, counts
from creamtea.human.formats.rows import GivenRating
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.protocols.scale import exact
from creamtea.human.protocols.spans import MAX_DECIMALS, Mqm, spans_of
from creamtea.human.protocols.taxonomy import Taxonomy, is_published
from creamtea.languages import UNKNOWN
from creamtea.wording import counted, option
from creamtea.words import meant

SegmentKey = TypeVar("SegmentKey")


@dataclass(frozen=True)
class ImportFacts:
    """What a file of ratings does not say of its campaign. Texts are files with one line per segment of the
    test set."""

    name: str
    protocol: str | None = None  # None: the column says it
    test_set: str | None = None  # None: the campaign's name
    source_language: str | None = None
    target_language: str | None = None
    baseline: str | None = None  # None: the first system
    delta: float | None = None  # points of the scale; None: the protocol's usual one
    leave_out: tuple[str, ...] = ()  # systems
    scores: str | None = None  # mt-metrics-eval: which scores of people
    campaign_file: Path | None = None  # pearmut: the campaign's JSON
    taxonomy: Taxonomy | None = None  # of marked errors; None: as they are called, with the usual weights
    # of a file of Appraise
    statistics: Path | None = None  # the raters' means and deviations, where its scores are z
    sources: Path | None = None
    outputs: Mapping[str, Path] = field(default_factory=dict)  # system → file
    documents: Path | None = None  # DOMAIN TAB DOC per line, for segments counted within documents
    segment_scores: Path | None = None  # SYSTEM SCORE per line, which says what lines the campaign has
    first_segment: int | None = None  # the number of a first segment; None: as the file's numbers tell

    @property
    def pair(self) -> tuple[str, str] | None:
        """Source and target language; None where neither is given, InputError for one alone."""
        if self.source_language and self.target_language:
            return self.source_language, self.target_language
        if self.source_language or self.target_language:
            raise InputError(
                f"{option('source-language')} and {option('target-language')} go together: give both or "
                "neither",
                about="source-language",
            )
        return None

    def for_systems(self, systems: Sequence[str]) -> Self:
        """With the systems' names as the file writes them, where a person's keyboard writes them otherwise.

        InputError for a baseline that is none of the systems.
        """
        baseline = None if self.baseline is None else meant(self.baseline, systems)
        if baseline is not None and baseline not in systems:
            raise InputError(
                f"{option('baseline')} {baseline}: no such system; there are {', '.join(systems)}",
                about="baseline",
            )
        outputs = {meant(system, systems): path for system, path in self.outputs.items()}
        leave_out = tuple(meant(system, systems) for system in self.leave_out)
        return replace(self, baseline=baseline, outputs=outputs, leave_out=leave_out)

    def find_protocol(self, name: str) -> Protocol:
        """The protocol of this name with the taxonomy. InputError where its raters mark no errors."""
        found = find_protocol(name)
        if self.taxonomy is None:
            return found
        if found.usual_taxonomy is None:
            raise InputError(
                f"{option('taxonomy')} is for marked errors, and {name} has none: leave it out",
                about="taxonomy",
            )
        return found.with_settings({"taxonomy": self.taxonomy.model_dump()})


def made_elsewhere(
    facts: ImportFacts,
    protocol: str,
    pair: tuple[str, str] | None,
    systems: Sequence[str],
    items: Sequence[ItemContent],
    ratings: Sequence[GivenRating],
) -> Content:
    """The campaign of these items and ratings. InputError as `with_answers`, for an item of more or fewer
    systems than a relative protocol compares, and for errors of an unknown severity."""
    _check_compared(find_protocol(protocol), items, ratings)
    ratings = [_without_no_errors(rating) for rating in ratings]
    _check_severities(ratings)
    first = min(rating.assigned_at for rating in ratings)
    last = max(rating.submitted_at or rating.assigned_at for rating in ratings)
    raters: dict[str, RaterContent] = {}
    rated_by: dict[int, set[str]] = defaultdict(set)
    for rating in ratings:
        rated_by[rating.item].add(rating.rater)
        excluded_at = last if rating.excluded else None
        rater = RaterContent(pseudonym=rating.rater, created_at=first, excluded_at=excluded_at)
        raters.setdefault(rating.rater, rater)
    facts = facts.for_systems(systems)
    rule = "esa" if facts.find_protocol(protocol).marks_errors else None  # of stats.wmt.RULES
    taxonomy = None if facts.taxonomy is None else facts.taxonomy.model_dump()
    planned = {"baseline": facts.baseline, "delta": facts.delta, "wmt": rule, "taxonomy": taxonomy}
    if protocol == Mqm.name:
        planned["decimals"] = _decimals(ratings)
    source, target = pair or (UNKNOWN, UNKNOWN)
    content = Content(
        name=ratings[0].columns.get("campaign", facts.name),  # rows of an export keep its name
        test_set=facts.test_set or facts.name,
        protocol=protocol,
        systems=tuple(systems),
        source_language=source,
        target_language=target,
        ratings_per_item=max(map(len, rated_by.values())),
        settings={name: value for name, value in planned.items() if value is not None},
        created_at=first,
        launched_at=first,
        closed_at=last,
        raters=tuple(raters.values()),
        items=tuple(items),
    )
    return replace(with_answers(content, ratings), name=facts.name)


@dataclass(frozen=True)
class Evidence:
    """What a file of another tool has of scores and of marked errors."""

    scores: int  # that are not 0
    errors: int  # marked
    categories: int  # of these, with a category
    can_mark: bool = True  # whether its lines have a place for marked errors

    def check(self, protocol: Protocol, file: str) -> None:
        """InputError where the file contradicts the protocol, with the one that fits."""
        why = fits = ""
        if protocol.marks_errors and not self.can_mark:
            why, fits = "its lines have no field for marked errors", "da or da-sqm"
        elif isinstance(protocol, Mqm):
            if self.scores and not self.categories:
                why = f"it has {counted(self.scores, 'score')} above 0, and no error with a category"
                fits = "esa" if self.errors else "esa, da or da-sqm"
        elif self.errors and not self.scores and (self.categories or not protocol.marks_errors):
            why = f"all scores are 0, and the ratings are {counted(self.errors, 'marked error')}"
            fits = "mqm"
        if why:
            raise InputError(
                f"{option('protocol')} {protocol.name}: {file} contradicts it: {why}; {fits} fits",
                about="protocol",
            )


# The number that a format gives a first segment. The database counts segments from 0, and reports name them
# as the file does (`CampaignSettings.first_segment`).
FIRST_SEGMENT = {"csv": 0, "jsonl": 0, APPRAISE: 1, MQM: 1}


@dataclass(frozen=True)
class Numbering(Generic[SegmentKey]):
    """Where the segments of a file, called by keys, stand in the test set."""

    indices: Mapping[SegmentKey, int]  # 0 for the first
    renumbered: int = 0  # segments whose numbers in the file are not those of the test set
    first: int = 1  # the number that the file gives a first segment

    @classmethod
    def of_numbers(cls, numbers: Mapping[SegmentKey, int], kind: str, told: int | None = None) -> Self:
        """By numbers over the whole test set. They begin with what is told, else with 0 where there is a 0,
        else as usual in files of this kind."""
        first = 0 if 0 in numbers.values() else FIRST_SEGMENT[kind]
        first = first if told is None else told
        return cls({key: number - first for key, number in numbers.items()}, first=first)

    @property
    def settings(self) -> dict[str, int]:
        return {"first_segment": self.first} if self.first != 1 else {}

    @property
    def notes(self) -> tuple[NotKept, ...]:
        what = "segments numbered anew, document after document: the file counts them within documents"
        return counts({what: self.renumbered}, note=True)


class CostError(ValueError):
    """What a file calls the score of an error cannot be what an error costs."""


def given_cost(score: Any) -> dict[str, float]:
    """The `cost` of a span from what a file calls the error's score; nothing where that is missing.

    CostError for what no error can cost.
    """
    if score is None:
        return {}
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score < math.inf:
        raise CostError(f"score of an error: found {str(score)[:60]}; allowed: what it costs, 0 or more")
    return {"cost": float(score)}


def _spans_of(rating: GivenRating) -> list[Any]:
    """The marked errors as the file has them, checked or not."""
    spans = (rating.payload or {}).get("spans")
    return spans if isinstance(spans, list) else []


def _without_no_errors(rating: GivenRating) -> GivenRating:
    """The rating without the lines by which some files say that nothing is marked."""
    spans = _spans_of(rating)
    marked = [span for span in spans if not (isinstance(span, dict) and is_no_error(span.get("severity")))]
    if len(marked) == len(spans):
        return rating
    return replace(rating, payload={**(rating.payload or {}), "spans": marked})


def _check_severities(ratings: Sequence[GivenRating]) -> None:
    """InputError that counts and names all severities of errors that are not known."""
    unknown: Counter[str] = Counter()
    first: Place | None = None
    for rating in ratings:
        for span in _spans_of(rating):
            severity = span.get("severity") if isinstance(span, dict) else None
            if isinstance(severity, str) and as_severity(severity) not in SEVERITIES:
                first = first or rating.place
                unknown[severity[:60]] += 1
    if first is not None:
        found = ", ".join(f"{severity!r} ({count:,})" for severity, count in unknown.most_common())
        raise InputError(
            f"{first}: errors of unknown severities: {found}; allowed: {', '.join(SEVERITIES)}, or no-error "
            "where nothing is marked"
        )


def _decimals(ratings: Sequence[GivenRating]) -> int | None:
    """Decimals that scores of MQM need for the costs that the file gives; None for the usual one."""
    needed = 1
    for rating in ratings:
        for span in _spans_of(rating):
            cost = span.get("cost") if isinstance(span, dict) else None
            if isinstance(cost, float | int) and math.isfinite(cost):
                fraction = exact(repr(cost))
                while needed < MAX_DECIMALS and (fraction * 10**needed).denominator != 1:
                    needed += 1
    return needed if needed > 1 else None


def error_notices(content: Content) -> tuple[NotKept, ...]:
    """What to know of the errors of an import: which cost something else in the file than by the weights,
    and which categories the weights do not name."""
    protocol = find_protocol(content.protocol, content.settings)
    if not isinstance(protocol, Mqm):
        return ()
    costs: Counter[str] = Counter()
    categories: Counter[str] = Counter()
    for answer in content.answers:
        for score in answer.scores:
            for span in spans_of(score.payload):
                name = "/".join(span.category) or "no category"
                if span.cost is not None:
                    usual = float(protocol.penalty(span))
                    costs[f"{name}, {span.severity}: {span.cost:g} instead of {usual:g}"] += 1
                elif protocol.taxonomy is None and not is_published(span.category):
                    categories[name] += 1
    weights = "the usual weights" if protocol.taxonomy is None else option("taxonomy")
    notices = []
    if costs:
        notices.append(
            NotKept(
                costs.total(),
                f"errors whose cost in the file, which counts, is not that of {weights}: {_listed(costs)}",
            )
        )
    if categories:
        notices.append(
            NotKept(
                categories.total(),
                "errors of categories that the usual weights do not name (they cost what their severity "
                f"says; {option('taxonomy')} FILE gives others): {_listed(categories)}",
            )
        )
    return tuple(notices)


def _listed(found: Counter[str]) -> str:
    return "; ".join(f"{what[:80]} ({count:,})" for what, count in found.most_common())


def _check_compared(protocol: Protocol, items: Sequence[ItemContent], ratings: Sequence[GivenRating]) -> None:
    """Pairs of a segment that were rows without an item would be one item, and tell of pairs that nobody
    compared."""
    if not protocol.relative:
        return
    for item in items:
        if not protocol.min_outputs <= len(item.systems) <= protocol.max_outputs:
            place = next(rating.place for rating in ratings if rating.item == item.position)
            raise InputError(
                f"{place}: an item of {counted(len(item.systems), 'system')} ({', '.join(item.systems)}), of "
                f"which {protocol.name} compares {protocol.max_outputs}; number the pairs in a column item"
            )
