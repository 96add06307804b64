"""The lines that a scorer prints (docs/scorers.md): what each says, or what is wrong with it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from creamtea.error_spans import read_error_spans

MAX_SCORE = 1e100  # sums of such scores, and of their squares, are numbers
MAX_QUOTED = 80  # characters of a line
MAX_KEY = 40  # characters of a key
# the keys of each kind of line: those that it must have, and those that it may have
KINDS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("index", "score"), ("spans",)),
    (("done", "total"), ("message",)),
    ((), ("corpus", "signature", "facts")),
    ((), ("message", "error")),
)


class Told(Protocol):
    """A text of the program as it is shown and kept: cut, printable, and without secrets."""

    def __call__(self, text: object, most: int = ...) -> str: ...


@dataclass
class Scores:
    """What a program has said. `values`: by the segment's index."""

    values: dict[int, float] = field(default_factory=dict)
    spans: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # of scorers that find errors
    corpus: float | None = None
    signature: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    done: float = 0.0
    total: float = 1.0
    message: str = "starting"
    error: str = ""


class Failure(Exception):
    """What a program did wrong."""


class _WrongLine(Exception):
    """Follows "printed line 3 of its output"."""


def take_line(line: bytes, number: int, wanted: Mapping[int, str], scores: Scores, told: Told) -> None:
    """Add what a line says. Raises Failure for one that a scorer may not print. `wanted`: the outputs to
    score, by the segment's index."""
    try:
        said = _read(line)
        if said is None:
            raise Failure(
                f"printed what is not a score, as line {number} of its output: {_quoted(line, told)}; other "
                "text belongs to standard error"
            )
        _take(said, wanted, scores, told)
    except _WrongLine as error:
        raise Failure(f"printed line {number} of its output {error}: {_quoted(line, told)}") from None


def _quoted(line: bytes, told: Told) -> str:
    return repr(told(line.decode("utf-8", "replace"), MAX_QUOTED))


def _read(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None for anything else."""
    try:
        said = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise _WrongLine("in another encoding than UTF-8") from None
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _take(said: dict[str, Any], wanted: Mapping[int, str], scores: Scores, told: Told) -> None:
    required, further = _keys(said, told)
    given = {key: value for key, value in said.items() if value is not None or key in required}
    if "score" in required:
        _take_score(given, wanted, scores)
    elif "done" in required:
        scores.done, scores.total = _finite("done", given), max(_finite("total", given), 1.0)
        scores.message = told(given.get("message", "scoring"))
    elif "corpus" in further:
        _take_summary(given, scores, told)
    else:
        scores.message = told(given.get("message", scores.message))
        if "error" in given:
            scores.error = told(given["error"]) or "an error without a reason"


def _keys(said: Mapping[str, Any], told: Told) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of its kind of line, of which it has all that it must have, and no others."""
    required, further = next((kind for kind in KINDS if said.keys() & set(kind[0] or kind[1])), ((), ()))
    allowed = (*required, *further)
    if not allowed:
        raise _WrongLine("without a key that lines of scorers have")
    for key in said:
        if key not in allowed:
            raise _WrongLine(f"with `{told(key, MAX_KEY)}`, where only {', '.join(allowed)} may be")
    for key in required:
        if key not in said:
            raise _WrongLine(f"without `{key}`")
    return required, further


def _take_score(said: Mapping[str, Any], wanted: Mapping[int, str], scores: Scores) -> None:
    index, score = said["index"], _number("score", said)
    if type(index) is not int:
        raise _WrongLine(f"with {_kind(index)} as `index`, where a whole number belongs")
    if index not in wanted:
        raise Failure(f"scored segment {index}, which it was not given")
    if index in scores.values:
        raise Failure(f"scored segment {index} twice")
    if not abs(score) <= MAX_SCORE:
        raise Failure(f"gave segment {index} the score {score}")
    if "spans" in said:
        try:
            scores.spans[index] = read_error_spans(said["spans"], wanted[index])
        except ValueError as error:
            raise Failure(f"gave segment {index} errors that cannot be: {error}") from None
    scores.values[index] = score
    scores.done, scores.total, scores.message = len(scores.values), len(wanted), "scoring"


def _take_summary(said: Mapping[str, Any], scores: Scores, told: Told) -> None:
    if "corpus" in said:
        scores.corpus = _finite("corpus", said)
    scores.signature = told(said.get("signature", scores.signature))
    if not isinstance(facts := said.get("facts", {}), dict):
        raise _WrongLine(f"with {_kind(facts)} as `facts`, where an object belongs")
    scores.facts |= {told(name): value if _is_stored(value) else told(value) for name, value in facts.items()}


def _number(key: str, said: Mapping[str, Any]) -> float:
    value = said[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _WrongLine(f"with {_kind(value)} as `{key}`, where a number belongs")
    try:
        return float(value)
    except OverflowError:
        raise _WrongLine(f"with too large a number as `{key}`") from None


def _finite(key: str, said: Mapping[str, Any]) -> float:
    if not math.isfinite(number := _number(key, said)):
        raise _WrongLine(f"with {number} as `{key}`, where a finite number belongs")
    return number


def _kind(value: Any) -> str:
    """What a JSON value is, in words."""
    match value:
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case float():
            return "a decimal number"
    return json.dumps(value) if value is None or isinstance(value, bool) else "a number"


def _is_stored(value: Any) -> bool:
    """Whether it is a number that can be stored, or a truth value."""
    return isinstance(value, int | float) and abs(value) <= MAX_SCORE
