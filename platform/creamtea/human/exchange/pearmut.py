"""What Pearmut's files are made of (github.com/zouharvi/pearmut: README.md, examples/).

A campaign is one JSON object: `info` with the protocol, and `data`, documents by user (task-based) or one
list of documents for all; a document is a list of items, `{"src", "ref", "tgt": {system: text}, "item_id"}`.
Answers are JSON Lines, one line a submitted document:

    {"annotation": [{system: {"score", "error_spans", "textfield"}}], "actions": [{"time", "action", "index",
     "model", …}], "item": [the document], "user_id", "item_i", "comment"}

`annotation` has an entry for each segment, null for one without an answer. A document that is submitted again
has a further line: the last counts. "__RESET__" as annotation takes the earlier lines back. `item_i` is a
number, or `welcome_0`, `random_0` for practice and checks; items with `validation` are such, too.

Errors are at `start_i` to `end_i`, the last included, in UTF-16 code units without line feeds (the page has a
`<span>` for each, and `<br>` for a line feed); the special token `[missing]` comes after the last.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from creamtea.human.exchange.columns import MAX_INTEGER
from creamtea.human.storable import check_text

PROTOCOLS = {"DA": "da", "ESA": "esa", "cESA": "cesa", "MQM": "mqm"}  # Pearmut's name → creamtea's
RESET = "__RESET__"
LONGEST_PAUSE = 60.0  # seconds between two actions that count as work, as Pearmut counts them
CAMPAIGN, ANSWERS = "campaign.json", "annotations.jsonl"  # the files of an export
OWN = "creamtea"  # the key of what other keys have no place for; Pearmut passes keys on that it does not know


def _not_blank(name: str) -> str:
    if not name.strip():
        raise ValueError("a name is blank")
    return check_text(name)


Text = Annotated[str, AfterValidator(check_text)]
Name = Annotated[str, AfterValidator(_not_blank)]
Whole = Annotated[int, Field(ge=0, le=MAX_INTEGER)]


class _Loose(BaseModel):
    """Keys that nobody asks for are allowed, other types are not."""

    model_config = ConfigDict(extra="ignore", strict=True)


class OwnItem(_Loose):
    """What an export adds to an item."""

    position: Whole
    segment: Whole
    document: Text
    kind: Literal["rated", "random", "repeat", "bad-reference"]
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    context: list[Text]
    original: Whole | None
    degraded: Name | None
    page: Whole | None


class PearmutItem(_Loose):
    src: Text = ""
    ref: str | None = None
    tgt: Annotated[dict[Name, Text], Field(min_length=1)]
    item_id: str | int | None = None
    error_spans: dict[str, list[Any]] | None = None
    validation: dict[str, Any] | list[Any] | None = None
    creamtea: OwnItem | None = None


class PearmutSpan(_Loose):
    start_i: int
    end_i: int
    severity: str | None = None
    category: str | None = None


class Response(_Loose):
    score: int | float | None = None
    error_spans: list[PearmutSpan] = []
    textfield: Text | None = None
    sliders: dict[str, Any] | None = None


class OwnTimes(_Loose):
    """What an export adds to the action of a score."""

    assigned_at: float  # seconds since 1970
    active_ms: Whole | None


class Action(_Loose):
    time: float
    action: str = ""
    index: int | None = None
    model: str | None = None
    creamtea: OwnTimes | None = None


class Line(_Loose):
    user_id: Name
    item_i: int | str
    annotation: list[Any] | str
    actions: list[Action] = []
    item: list[dict[str, Any]] | None = None
    comment: str = ""


class Info(_Loose):
    protocol: str = "ESA"
    users: int | list[Any] | None = None


class Campaign(_Loose):
    info: Info
    data: dict[str, list[list[dict[str, Any]]]] | list[Any]


class Units:
    """Characters of a text and Pearmut's counting of them."""

    def __init__(self, text: str) -> None:
        self._first: list[int] = []  # of each character: its first unit
        self._characters: list[int] = []  # of each unit: its character
        for at, character in enumerate(text):
            self._first.append(len(self._characters))
            if character != "\n":
                self._characters += [at] * (2 if ord(character) > 0xFFFF else 1)
        self._first.append(len(self._characters))

    def __len__(self) -> int:
        return len(self._characters)

    def characters(self, start: int, end: int) -> tuple[int, int] | None:
        """First and last character of these units; None on a special token behind the text. ValueError for
        what can be neither."""
        if not 0 <= start <= end:
            raise ValueError(f"an error from {start} to {end}")
        if start >= len(self):
            return None
        return self._characters[start], self._characters[min(end, len(self) - 1)]

    def units(self, start: int | None, end: int | None) -> tuple[int, int]:
        """First and last unit of these characters; `[missing]` for none, and for line feeds alone."""
        if start is not None and end is not None and end + 1 < len(self._first):
            first, last = self._first[start], self._first[end + 1] - 1
            if first <= last:
                return first, last
        return len(self), len(self)
