"""Taxonomies: the severities and categories of errors that raters choose from, and their costs.

A campaign's own taxonomy comes from a YAML file:

    severities:
      - {name: minor, weight: 1}
      - {name: major, weight: 5}
    categories:
      - {name: Accuracy, kinds: [Addition, Omission]}
      - {name: Other}
    exceptions:
      - {category: [Other], severity: minor, weight: 0.1}
    special_marks: [instructions fault]
    at_most: 5
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from creamtea.document.document import read_checked
from creamtea.document.values import Strict
from creamtea.error_spans import Severity, name_key
from creamtea.store.rows import check_text

MISSING = "missing"  # the mark after every output, for an omission
TENTHS = 10  # per point: weights and scores of MQM are whole numbers of tenths


def path_key(category: Sequence[str]) -> tuple[str, ...]:
    """Return the key for comparing categories: the keys of their names, without blank ones ("Other/-").

    Files write the two names of a category as one, too: "Fluency/Punctuation", "Fluency: Punctuation".
    """
    names = (name.strip(" _-") for written in category for name in re.split("[/:>]", written))
    return tuple(name_key(name) or name for name in names if name)


def _in_tenths(weight: float) -> float:
    if round(weight * TENTHS, 6) % 1:
        raise ValueError("a weight is a whole number of tenths, as 0.1 or 5")
    return weight


Weight = Annotated[float, Field(ge=0.0, le=100.0), AfterValidator(_in_tenths)]
Words = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(check_text)]


class SeverityLevel(Strict):
    """A severity that raters can choose."""

    name: Literal["neutral", "minor", "major", "critical"]  # the severity's name
    weight: Weight  # [points] the cost of an error


class Category(Strict):
    """A category that raters can choose."""

    name: Words  # the category's name
    kinds: Annotated[list[Words], Field(max_length=40)] = Field(default_factory=list)  # the second level

    @property
    def paths(self) -> list[list[str]]:
        """The names of each error of the category, from wide to narrow."""
        return [[self.name, kind] for kind in self.kinds] or [[self.name]]


class WeightException(Strict):
    """A cost that replaces the severity's for errors of a category (all of its kinds, or one)."""

    category: Annotated[list[Words], Field(min_length=1, max_length=2)]  # its name, or also a kind's name
    severity: Literal["neutral", "minor", "major", "critical"] | None = None  # none: any
    weight: Weight  # [points] the cost of an error


class Taxonomy(Strict):
    """The severities and categories that raters choose from."""

    # in the order of the keys 1, 2, … of the board
    severities: Annotated[list[SeverityLevel], Field(min_length=1, max_length=4)]
    # none: raters choose a severity only
    categories: Annotated[list[Category], Field(max_length=40)] = Field(default_factory=list)
    # errors whose cost differs from their severity's; the first exception that fits counts
    exceptions: Annotated[list[WeightException], Field(max_length=200)] = Field(default_factory=list)
    # errors without a place in the output, which raters can mark after it, beside [missing]
    special_marks: Annotated[list[Words], Field(max_length=8)] = Field(default_factory=list)
    at_most: Annotated[int, Field(ge=1, le=1000)] | None = None  # [errors] the maximum per output

    @model_validator(mode="after")
    def _check(self) -> Taxonomy:
        _check_different("severity", [level.name for level in self.severities])
        _check_different("category", [category.name for category in self.categories])
        _check_different("special mark", [name_key(name) or name for name in self.special_marks])
        if MISSING in map(name_key, self.special_marks):
            raise ValueError(f"has the special mark [{MISSING}], which every taxonomy has: leave it out")
        for category in self.categories:
            _check_different(f"kind of {category.name}", category.kinds)
        for exception in self.exceptions:
            if not self.has(exception.category):
                raise ValueError(f"has an exception for {'/'.join(exception.category)}, an unknown category")
            if exception.severity not in (None, *(level.name for level in self.severities)):
                raise ValueError(f"has an exception for {exception.severity} errors, which it does not have")
        return self

    def has(self, category: list[str]) -> bool:
        """Return True if there is such a category; a first name alone means all its kinds."""
        return any(path[: len(category)] == category for known in self.categories for path in known.paths)

    def check_severity(self, severity: Severity) -> None:
        levels = [level.name for level in self.severities]
        if severity not in levels:
            raise ValueError(f"an error is {' or '.join(levels)}, not {severity}")

    def check_special_mark(self, name: str) -> None:
        if name not in self.special_marks:
            known = f"only {', '.join(self.special_marks)}" if self.special_marks else "none"
            raise ValueError(f"the taxonomy has no special mark {name}, {known}")

    def check(self, severity: Severity, category: Sequence[str], special_mark: str | None = None) -> None:
        """Raise ValueError for an error that cannot be marked with this taxonomy."""
        if special_mark is not None:
            self.check_special_mark(special_mark)
        self.check_severity(severity)
        paths = [path for known in self.categories for path in known.paths] or [[]]
        if path_key(category) not in map(path_key, paths):
            found = "/".join(category) if category else "nothing"
            allowed = f"one of {', '.join(map('/'.join, paths))}" if self.categories else "no category"
            raise ValueError(f"the category of an error is {allowed}, not {found}")

    def penalty(self, severity: Severity, category: Sequence[str]) -> int:
        """Return an error's cost in tenths of a point, by the first exception that fits or its severity."""
        names = path_key(category)
        for exception in self.exceptions:
            named = path_key(exception.category)
            if names[: len(named)] == named and exception.severity in (None, severity):
                return round(exception.weight * TENTHS)
        return next((round(level.weight * TENTHS) for level in self.severities if level.name == severity), 0)


def usual_tenths(severity: Severity, category: Sequence[str]) -> int:
    """Return the cost of an imported error in tenths of a point, as in published scores.

    Non-translation costs 25 points and minor punctuation 0.1 (Freitag et al. 2021, Table 2). Punctuation in
    Appraise's "Linguistic conventions" costs 0.1 with any severity, as in the segment scores of
    github.com/wmt-conference/ErrorSpanAnnotation. Source issues and creative reinterpretations cost nothing,
    as in the scores of WMT 2023 in mt-metrics-eval. Source errors of 2021 cost the same as other errors of
    their severity, as in Google's averages.
    """
    names = path_key(category)
    if any(name.startswith("nontranslation") for name in names):
        return 250
    if any(name in ("sourceissue", "creativereinterpretation") for name in names):
        return 0
    if any("punctuation" in name for name in names) and (
        severity == "minor" or names[0] == "linguisticconventions"
    ):
        return 1
    return {"undecided": 0, "neutral": 0, "minor": 10, "major": 50, "critical": 50}[severity]


def _check_different(what: str, names: Sequence[str]) -> None:
    twice = [name for index, name in enumerate(names) if name in names[:index]]
    if twice:
        raise ValueError(f"has the {what} {twice[0]!r} twice")


def read_taxonomy(path: Path) -> Taxonomy:
    """Read the taxonomy in a file of YAML or JSON; one InputError has a line for every mistake."""
    return read_checked(path, Taxonomy, "severities, categories, …", "a taxonomy (YAML or JSON)")


# Kocmi et al. 2024; the weights are for a score from the spans alone
ESA = Taxonomy(severities=[SeverityLevel(name="minor", weight=1.0), SeverityLevel(name="major", weight=5.0)])

# Freitag et al. 2021, Tables 1 and 2, and their limit of five errors per segment
GOOGLE = Taxonomy(
    severities=[
        SeverityLevel(name="minor", weight=1.0),
        SeverityLevel(name="major", weight=5.0),
        SeverityLevel(name="neutral", weight=0.0),
    ],
    categories=[
        Category(name="Accuracy", kinds=["Addition", "Omission", "Mistranslation", "Untranslated text"]),
        Category(
            name="Fluency",
            kinds=[
                "Punctuation",
                "Spelling",
                "Grammar",
                "Register",
                "Inconsistency",
                "Character encoding",
            ],
        ),
        Category(name="Terminology", kinds=["Inappropriate for context", "Inconsistent use"]),
        Category(name="Style", kinds=["Awkward"]),
        Category(
            name="Locale convention",
            kinds=[
                "Address format",
                "Currency format",
                "Date format",
                "Name format",
                "Telephone format",
                "Time format",
            ],
        ),
        Category(name="Other"),
        Category(name="Source error"),
        Category(name="Non-translation"),
    ],
    exceptions=[
        WeightException(category=["Non-translation"], weight=25.0),
        WeightException(category=["Fluency", "Punctuation"], severity="minor", weight=0.1),
    ],
    at_most=5,
)

# other categories of published ratings, by first name: Google's files of 2021 to 2024, and Appraise
_PUBLISHED = {
    "Accuracy": "Creative reinterpretation, Gender mismatch, Source language fragment, "
    "Omission (Translation), Omission (Translation 2), Overtranslation, Undertranslation, "
    "Do not translate, Untranslated",
    "Fluency": "Display, Text-breaking",
    "Linguistic conventions": "Grammar, Punctuation, Spelling, Unintelligible, Character encoding, "
    "Textual conventions",
    "Terminology": "Inconsistent use of terminology, Inconsistent, Inconsistent with terminology resource, "
    "Wrong term",
    "Style": "Unnatural or awkward, Bad sentence structure, Archaic or obscure word choice, "
    "Organization style, Third-party style, Inconsistent with external reference, Language register, "
    "Awkward style, Unidiomatic style, Inconsistent style",
    "Locale convention": "Number format, Measurement format, Shortcut key",
    "Audience appropriateness": "Culture-specific reference, Offensive",
    "Design and markup": "Layout, Markup tag, Truncation/text espansion, Missing text, Link/cross-reference",
    "Source issue": "",
}
_KNOWN = frozenset(
    "".join(path_key(path))
    for path in (
        *([category.name] for category in GOOGLE.categories),
        *(path for category in GOOGLE.categories for path in category.paths),
        *([first] for first in _PUBLISHED),
        *([first, kind] for first, kinds in _PUBLISHED.items() for kind in kinds.split(", ")),
    )
)


def is_published(category: Sequence[str]) -> bool:
    """Return True for a category of published ratings, whose usual weight is known.

    A name with a slash ("Link/cross-reference") may be split into two.
    """
    return "".join(path_key(category)) in _KNOWN
