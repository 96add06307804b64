"""What raters can call an error: its severity and category, and what each costs.

A campaign's own taxonomy comes from a YAML file:

    severities:
      - {name: minor, weight: 1}
      - {name: major, weight: 5}
    categories:
      - {name: Accuracy, kinds: [Addition, Omission]}
      - {name: Other}
    exceptions:
      - {category: [Other], severity: minor, weight: 0.1}
    at_most: 5
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from creamtea.document.checked import read_checked
from creamtea.document.values import Strict
from creamtea.error_spans import Severity
from creamtea.human.storable import check_text

TENTHS = 10  # of a point: weights, and scores of MQM, are whole numbers of them


def _in_tenths(weight: float) -> float:
    if round(weight * TENTHS, 6) % 1:
        raise ValueError("a weight is a whole number of tenths, as 0.1 or 5")
    return weight


Weight = Annotated[float, Field(ge=0.0, le=100.0), AfterValidator(_in_tenths)]
Words = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(check_text)]


class SeverityLevel(Strict):
    name: Literal["neutral", "minor", "major", "critical"]
    weight: Weight  # points that an error costs


class Category(Strict):
    name: Words
    kinds: Annotated[list[Words], Field(max_length=40)] = Field(default_factory=list)  # the second level

    @property
    def paths(self) -> list[list[str]]:
        """What an error of the category is called: from wide to narrow."""
        return [[self.name, kind] for kind in self.kinds] or [[self.name]]


class WeightException(Strict):
    """Errors of a category (all of its kinds, or one) that cost something else than their severity says."""

    category: Annotated[list[Words], Field(min_length=1, max_length=2)]
    severity: Literal["neutral", "minor", "major", "critical"] | None = None  # None: any
    weight: Weight


class Taxonomy(Strict):
    """What raters choose from. Without categories an error has a severity only."""

    severities: Annotated[list[SeverityLevel], Field(min_length=1, max_length=4)]
    categories: Annotated[list[Category], Field(max_length=40)] = Field(default_factory=list)
    exceptions: Annotated[list[WeightException], Field(max_length=200)] = Field(default_factory=list)
    at_most: Annotated[int, Field(ge=1, le=1000)] | None = None  # errors of an output

    @model_validator(mode="after")
    def _check(self) -> Taxonomy:
        _check_different("severity", [level.name for level in self.severities])
        _check_different("category", [category.name for category in self.categories])
        for category in self.categories:
            _check_different(f"kind of {category.name}", category.kinds)
        for exception in self.exceptions:
            begun = [path[: len(exception.category)] for known in self.categories for path in known.paths]
            if exception.category not in begun:
                raise ValueError(f"has an exception for {_said(exception.category)}, an unknown category")
            if exception.severity not in (None, *(level.name for level in self.severities)):
                raise ValueError(f"has an exception for {exception.severity} errors, which it does not have")
        return self

    def check(self, severity: Severity, category: Sequence[str]) -> None:
        """ValueError for an error that nobody can have marked with this taxonomy."""
        levels = [level.name for level in self.severities]
        if severity not in levels:
            raise ValueError(f"an error is {' or '.join(levels)}, not {severity}")
        paths = [path for known in self.categories for path in known.paths] or [[]]
        if list(category) not in paths:
            found = _said(category) if category else "nothing"
            allowed = f"one of {', '.join(map(_said, paths))}" if self.categories else "no category"
            raise ValueError(f"the category of an error is {allowed}, not {found}")

    def penalty(self, severity: Severity, category: Sequence[str]) -> int:
        """Tenths of a point that an error costs: by the first exception that names it, or its severity."""
        for exception in self.exceptions:
            whole = list(category[: len(exception.category)]) == exception.category
            if whole and exception.severity in (None, severity):
                return round(exception.weight * TENTHS)
        return next((round(level.weight * TENTHS) for level in self.severities if level.name == severity), 0)


def _check_different(what: str, names: Sequence[str]) -> None:
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise ValueError(f"has the {what} {twice[0]!r} twice")


def _said(category: Sequence[str]) -> str:
    return "/".join(category)


def read_taxonomy(path: Path) -> Taxonomy:
    """The taxonomy in a file of YAML or JSON; every mistake in it is one InputError with lines."""
    return read_checked(path, Taxonomy, "severities, categories, …", "a taxonomy (YAML or JSON)")


# Kocmi et al. 2024; the weights are those of a score by the spans alone
ESA = Taxonomy(severities=[SeverityLevel(name="minor", weight=1.0), SeverityLevel(name="major", weight=5.0)])

# Freitag et al. 2021, Tables 1 and 2, and their limit of five errors a segment
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
