"""Ratings made elsewhere as a campaign: what an import is told, and what follows from items and rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from creamtea.errors import InputError
from creamtea.human.exchange.answers import with_answers
from creamtea.human.exchange.content import Content, ItemContent, RaterContent
from creamtea.human.exchange.rows import GivenRating
from creamtea.human.protocols import Protocol, find_protocol
from creamtea.human.protocols.taxonomy import Taxonomy
from creamtea.languages import UNKNOWN
from creamtea.wording import option


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
    first_segment: int = 1  # the number of a first segment

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

    def check_baseline(self, systems: Sequence[str]) -> None:
        """InputError for a baseline that is none of the systems."""
        if self.baseline is not None and self.baseline not in systems:
            raise InputError(
                f"{option('baseline')} {self.baseline}: no such system; there are {', '.join(systems)}",
                about="baseline",
            )

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
    """The campaign of these items and ratings. InputError as `with_answers`, and for an item of more or fewer
    systems than a relative protocol compares."""
    _check_compared(find_protocol(protocol), items, ratings)
    first = min(rating.assigned_at for rating in ratings)
    last = max(rating.submitted_at or rating.assigned_at for rating in ratings)
    raters: dict[str, RaterContent] = {}
    rated_by: dict[int, set[str]] = defaultdict(set)
    for rating in ratings:
        rated_by[rating.item].add(rating.rater)
        excluded_at = last if rating.excluded else None
        rater = RaterContent(pseudonym=rating.rater, created_at=first, excluded_at=excluded_at)
        raters.setdefault(rating.rater, rater)
    facts.check_baseline(systems)
    rule = "esa" if facts.find_protocol(protocol).marks_errors else None  # of stats.wmt.RULES
    taxonomy = None if facts.taxonomy is None else facts.taxonomy.model_dump()
    planned = {"baseline": facts.baseline, "delta": facts.delta, "wmt": rule, "taxonomy": taxonomy}
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


def _check_compared(protocol: Protocol, items: Sequence[ItemContent], ratings: Sequence[GivenRating]) -> None:
    """Pairs of a segment that were rows without an item would be one item, and tell of pairs that nobody
    compared."""
    if not protocol.relative:
        return
    for item in items:
        if not protocol.min_outputs <= len(item.systems) <= protocol.max_outputs:
            place = next(rating.place for rating in ratings if rating.item == item.position)
            raise InputError(
                f"{place}: an item of {len(item.systems)} systems ({', '.join(item.systems)}), of which "
                f"{protocol.name} compares {protocol.max_outputs}; number the pairs in a column item"
            )
