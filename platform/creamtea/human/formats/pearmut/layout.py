"""What Pearmut's files are made of (github.com/zouharvi/pearmut: README.md, examples/).

A campaign is one JSON object: `info` with the protocol, and `data`, documents by user (task-based) or one
list of documents for all; a document is a list of items, `{"src", "ref", "tgt": {system: text}, "item_id"}`.
Answers are JSON Lines, one line a submitted document:

    {"annotation": [{system: {"score", "error_spans", "textfield"}}], "actions": [{"time", "action", "index",
     "model", …}], "item": [the document], "user_id", "item_i", "comment"}

`annotation` has an entry for each segment, null for one without an answer. A document that is submitted again
has a further line: the last counts. "__RESET__" as annotation takes the user's earlier lines back, before
version 1.1.6 those of the document `item_i`. `item_i` is a number, or `welcome_0`, `random_0`, `goodbye_0` in
`data_welcome` and so on.

Errors are at `start_i` to `end_i`, the last included, in UTF-16 code units (`CodeUnits`); special tokens,
`[missing]` is the first, come behind the text. Before version 1.1.5 line feeds were not counted, and a file
does not say by which version it is: but a place on a line feed, which nobody can click on, tells the old
count. Errors that are there before an annotator begins are `error_spans` of the item.

`validation` by system makes an item practice (in `data_welcome`, or `skippable`) or a check: a range for the
`score`, `error_spans` that must be marked (with ranges for their places), `score_greaterthan` another
system's; with a `warning` it is loud.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from creamtea.error_spans import CodeUnits
from creamtea.human.formats.columns import MAX_INTEGER, Document, KindName, Segment
from creamtea.human.protocols.spans import MarksErrors, Mqm, Span
from creamtea.store.rows import check_text

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
Finite = Annotated[float, Field(allow_inf_nan=False)]
Pair = Annotated[list[int], Field(min_length=2, max_length=2)]


class _Loose(BaseModel):
    """Keys that nobody asks for are allowed and kept aside, to be named (`unread_keys`); other types are
    not."""

    model_config = ConfigDict(extra="allow", strict=True)


class OwnItem(_Loose):
    """What an export adds to an item."""

    position: Whole
    segment: Segment
    document: Text
    kind: KindName
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    context: list[Text]
    original: Whole | None
    degraded: Name | None
    page: Whole | None
    references: list[Text] = []
    systems: list[Name] = []  # as the guidance counts them; Pearmut shuffles those of `tgt`
    guidance: Document | None = None
    source: Text | None = None  # where `src` has tags of files beside it, and those files
    media: list[dict[str, Any]] = []


class OwnProposal(_Loose):
    """What an export adds to an error that is marked beforehand, and Pearmut passes on with it."""

    proposed: Whole


class PearmutSpan(_Loose):
    start_i: int
    end_i: int
    severity: str | None = None
    category: str | None = None
    score: float | None = None  # what the error costs, where a file says it: Pearmut's page does not
    creamtea: OwnProposal | None = None


class PearmutExpected(_Loose):
    """An error that must be marked: places as such or as lowest and highest."""

    start_i: int | Pair | None = None
    end_i: int | Pair | None = None
    severity: str | None = None


class Validation(_Loose):
    warning: Text | None = None
    score: Annotated[list[Finite], Field(min_length=2, max_length=2)] | None = None
    error_spans: list[PearmutExpected] | None = None
    score_greaterthan: str | None = None
    allow_skip: bool = False  # of practice, where the item is not `skippable`: an earlier way of writing


class PearmutItem(_Loose):
    src: Text = ""
    ref: str | None = None
    tgt: Annotated[dict[Name, Text], Field(min_length=1)]
    item_id: str | int | None = None
    error_spans: dict[str, list[PearmutSpan]] | list[Any] | None = None  # a list in version 0
    validation: dict[str, Validation | list[Any]] | list[Any] | None = None  # with lists in version 0
    skippable: bool = False
    creamtea: OwnItem | None = None

    def prefilled(self, system: str) -> list[PearmutSpan]:
        """The errors that are marked in its output beforehand."""
        return self.error_spans.get(system, []) if isinstance(self.error_spans, dict) else []

    @property
    def rules(self) -> dict[str, Validation]:
        """By system; none of lists."""
        given = self.validation if isinstance(self.validation, dict) else {}
        return {name: rule for name, rule in given.items() if isinstance(rule, Validation)}


class Response(_Loose):
    score: int | float | None = None
    error_spans: list[PearmutSpan] = []
    textfield: Text | None = None
    sliders: dict[str, Any] | None = None


class OwnTimes(_Loose):
    """What an export adds to the action of a score."""

    assigned_at: Finite  # seconds since 1970
    active_ms: Whole | None


class Action(_Loose):
    time: Finite  # seconds since 1970
    action: str = ""
    index: int | None = None
    model: str | None = None
    creamtea: OwnTimes | None = None


class Line(_Loose):
    user_id: Name
    item_i: int | str | None = None  # none of a reset
    annotation: list[Any] | str
    actions: list[Action] = []
    item: list[dict[str, Any]] | None = None
    comment: str = ""


class AssetsInfo(_Loose):
    source: str  # a folder
    destination: str  # where the server shows it


class Info(_Loose):
    protocol: str = "ESA"
    assets: AssetsInfo | None = None
    special_tokens: list[Any] | None = None  # written by version 1.1.5 and later
    users: int | list[Any] | None = None


class Campaign(_Loose):
    info: Info
    data: dict[str, list[list[dict[str, Any]]]] | list[Any]
    data_welcome: list[list[dict[str, Any]]] = []
    data_goodbye: list[list[dict[str, Any]]] = []
    data_random: list[list[dict[str, Any]]] = []

    @property
    def parts(self) -> dict[str, list[list[dict[str, Any]]]]:
        """What is beside the data, as `item_i` names it."""
        return {"welcome": self.data_welcome, "goodbye": self.data_goodbye, "random": self.data_random}


class Units(CodeUnits):
    """Places in an output as Pearmut counts them, with its special tokens behind the text."""

    def characters(self, start: int, end: int) -> tuple[int, int] | None:
        """First and last character of these units; None on a special token behind the text. ValueError for
        what can be neither."""
        if not 0 <= start <= end:
            raise ValueError(f"an error from {start} to {end}")
        if start >= len(self):
            return None
        return self.character(start), self.character(min(end, len(self) - 1))

    def of_span(self, span: Span) -> tuple[int, int]:
        """First and last unit; `[missing]` for an omission, and for what has no place in the output."""
        found = None
        if span.start is not None and span.end is not None and not span.in_source:
            found = self.units(span.start, span.end)
        return found or (len(self), len(self))


def choices(protocol: MarksErrors) -> dict[str, Any]:
    """What raters choose from, as `info` has it: severities and, of MQM, categories with their kinds."""
    taxonomy = protocol.taxonomy or protocol.usual_taxonomy
    categories = {category.name: category.kinds for category in taxonomy.categories}
    return {
        "mqm_severities": [level.name.capitalize() for level in taxonomy.severities],
        **({"mqm_categories": categories} if isinstance(protocol, Mqm) else {}),
    }
