"""Pearmut's practice items and checks as creamtea's, and the other way (`pearmut` has the layout).

Their outputs are of no system: creamtea gives them the campaign's first systems as stand-ins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from creamtea.human.formats.content import ItemContent
from creamtea.human.formats.pearmut import PearmutExpected, Units, Validation
from creamtea.human.formats.rows import GivenRating
from creamtea.human.protocols import Protocol
from creamtea.human.protocols.expected import ExpectedSpan
from creamtea.human.protocols.spans import MarksErrors, Span
from creamtea.store.item_kinds import ItemKind

# ---------------------------------------------------------------- in


def guidance_of(
    kind: ItemKind,
    outputs: Mapping[str, str],
    rules: Mapping[str, Validation],
    protocol: Protocol,
    left: Counter[str],
) -> dict[str, Any] | None:
    """What creamtea keeps with an item of these outputs; None where any answer would pass."""
    systems = list(outputs)
    steps, spans, above, warnings = {}, {}, [], []
    for at, (system, text) in enumerate(outputs.items()):
        rule = rules.get(system) or Validation()
        warnings += [rule.warning] if rule.warning else []
        if rule.score is not None:
            if isinstance(protocol, MarksErrors) and not protocol.scored:
                left["accepted scores of checks, which the errors make"] += 1
            else:
                low, high = math.ceil(rule.score[0]), math.floor(rule.score[1])
                if low <= high:
                    steps[str(at)] = [low, high]
                else:
                    left["accepted scores of checks, between which no whole number lies"] += 1
        expected = [_expected(span, Units(text)) for span in rule.error_spans or ()]
        if not protocol.marks_errors or None in expected:
            left["expected errors of checks"] += len(expected)
        elif expected:
            spans[str(at)] = expected
        if rule.score_greaterthan is not None:
            if rule.score_greaterthan in systems:
                above.append([at, systems.index(rule.score_greaterthan)])
            else:
                left["comparisons of outputs in checks"] += 1
    if not (steps or spans or above):
        return None
    said = "\n".join(dict.fromkeys(warnings))
    if kind is ItemKind.TUTORIAL:
        left["comparisons of outputs in checks"] += len(above)
        return {"steps": steps, **({"spans": spans} if spans else {}), "explanation": said}
    return {"steps": steps, "spans": spans, "above": above, "warning": said or None}


def _expected(written: PearmutExpected, units: Units) -> dict[str, Any] | None:
    """As creamtea stores it; None for what it cannot say."""
    start, end = (_range(place, len(units)) for place in (written.start_i, written.end_i))
    omission = start[0] >= len(units)
    try:
        placed = (
            {} if omission else {"start": [*map(units.character, start)], "end": [*map(units.character, end)]}
        )
        span = ExpectedSpan.model_validate(
            {**placed, "severity": written.severity and written.severity.lower()}
        )
    except ValueError:  # pydantic's too
        return None
    return span.model_dump(mode="json", exclude_defaults=True)


def _range(written: int | list[int] | None, units: int) -> tuple[int, int]:
    """The lowest and the highest place, the text's last at most; one behind the text stays there."""
    low, high = (0, units) if written is None else (written, written) if isinstance(written, int) else written
    return max(low, 0), max(min(high, units - 1), 0)


def stand_in(
    items: Sequence[ItemContent], ratings: Sequence[GivenRating], left: Counter[str]
) -> tuple[tuple[str, ...], list[ItemContent], list[GivenRating]]:
    """The campaign's systems, and items and ratings in which its first ones stand for the outputs of practice
    and checks. Without those that have more outputs than there are systems: counted."""
    systems = tuple(
        dict.fromkeys(name for item in items if not ItemKind(item.kind).is_written for name in item.systems)
    )
    names: dict[int, dict[str, str]] = {}  # of practice and checks: what they call an output → who stands in
    kept = []
    for item in items:
        if ItemKind(item.kind).is_written:
            if len(item.systems) > len(systems):
                left["practice and checks with more outputs than there are systems"] += 1
                names[item.position] = {}
                continue
            names[item.position] = dict(zip(item.systems, systems, strict=False))
            item = replace(item, systems=systems[: len(item.systems)])
        kept.append(item)
    given = []
    for rating in ratings:
        known = names.get(rating.item)
        if known is None:
            given.append(rating)
        elif known:
            given.append(replace(rating, system=known[rating.system]))
    return systems, kept, given


# ---------------------------------------------------------------- out


def validation_of(item: ItemContent) -> dict[str, Any]:
    """By system, as Pearmut checks it. One comparison of an output at most, and no category of an error."""
    guidance = item.guidance or {}
    said = guidance.get("explanation") or guidance.get("warning")
    above = {better: item.systems[worse] for better, worse in reversed(guidance.get("above", []))}
    found: dict[str, dict[str, Any]] = {}
    for at, (system, output) in enumerate(zip(item.systems, item.outputs, strict=True)):
        steps, spans = guidance.get("steps", {}).get(str(at)), guidance.get("spans", {}).get(str(at))
        found[system] = {
            **({"warning": said} if said else {}),
            **({"score": steps} if steps else {}),
            **({"error_spans": [_written(span, Units(output)) for span in spans]} if spans else {}),
            **({"score_greaterthan": above[at]} if at in above else {}),
        }
    return found


def _written(stored: Mapping[str, Any], units: Units) -> dict[str, Any]:
    expected = ExpectedSpan.model_validate(stored)
    severity = {"severity": expected.severity} if expected.severity else {}
    if expected.start is None or expected.end is None:
        return {"start_i": len(units), "end_i": len(units), **severity}
    places = {"start_i": expected.start, "end_i": expected.end}
    return {
        name: [
            units.of_span(Span(start=low, end=low, severity="minor"))[0],
            units.of_span(Span(start=high, end=high, severity="minor"))[1],
        ]
        for name, (low, high) in places.items()
    } | severity
