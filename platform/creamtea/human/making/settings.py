"""How a campaign's items and controls are chosen, and what is planned with their ratings.

`CampaignSettings` is what an organiser says; `complete` fills in what was left to the protocol, so that a
stored campaign holds every value that decided something.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from creamtea.document.mistakes import mistakes_of_pydantic
from creamtea.document.values import Above0, BelowOne, Positive, Strict
from creamtea.errors import InputError
from creamtea.human.making.questions import Question
from creamtea.human.protocols import Protocol, Selection
from creamtea.human.protocols.expected import ExpectedSpan
from creamtea.human.protocols.spans import MAX_DECIMALS
from creamtea.human.protocols.taxonomy import Taxonomy
from creamtea.store.storable import check_address, check_text
from creamtea.wording import option

Stratum = Literal["length", "document"]
Pairs = Literal["all", "baseline"]
Unit = Literal["segment", "document"]
WmtRuleName = Literal["usual", "crowd", "da-sqm", "esa"]  # of stats.wmt.RULES, which takes SciPy to import

Text = Annotated[str, AfterValidator(check_text)]
Written = Annotated[str, Field(min_length=1), AfterValidator(check_text)]
# a share of the items below 1, or a number of items
Amount = Annotated[int, Field(ge=0, le=10**6)] | BelowOne
DocumentCount = Annotated[int | None, Field(exclude_if=lambda number: number is None)]
Decimals = Annotated[int | None, Field(ge=2, le=MAX_DECIMALS, exclude_if=lambda number: number is None)]

_LENGTH: list[Stratum] = ["length"]
MAX_PER_PAGE = 50  # segments


class TutorialOutput(Strict):
    """A text with the lowest and the highest value of the scale that are accepted for it, and the errors
    that must be marked in it (an empty list: none may be)."""

    text: Written
    accepted: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    spans: Annotated[list[ExpectedSpan], Field(max_length=40)] | None = None


class TutorialItem(Strict):
    """An item with known answers, which every rater does before the campaign's own items."""

    source: Written
    context: list[Written] = Field(default_factory=list)
    outputs: Annotated[list[TutorialOutput], Field(min_length=1)]
    explanation: Written


class AttentionOutput(TutorialOutput):
    """The same, or a text whose score must be above other outputs' scores."""

    above: list[Positive] = Field(default_factory=list)  # numbers of outputs of the item, from 1


class AttentionItem(Strict):
    """An item with a known answer among a rater's own ones, which looks like any other."""

    source: Written
    context: list[Written] = Field(default_factory=list)
    outputs: Annotated[list[AttentionOutput], Field(min_length=1)]
    warning: Written | None = None  # shown after a wrong answer, which may be given again; None: silent


class DrawnFrom(Strict):
    """What the items were drawn from, in segments of the test set."""

    segments: int  # of the test set
    differing: int  # on which at least two of the systems differ
    population: int  # from which items could be drawn
    between: list[str] = Field(default_factory=list)  # the two systems that differ on all of those, if any
    chosen: int  # that became items
    # where documents are rated: how many were drawn, of how many; None otherwise
    documents: DocumentCount = None
    of_documents: DocumentCount = None


class ProposedBy(Strict):
    """The metric whose errors are marked before a rater begins."""

    metric: str  # as the study calls it
    scorer: str  # as its machine calls it
    model: str | None = None
    version: str
    digest: str  # of its arguments and files


class CampaignSettings(Strict):
    """Everything about the choice of items and controls. None: as the protocol asks (`complete`).

    `select`: all segments; those on which the outputs differ; a sample in proportion to `strata`; or those
    on which `metrics` disagree most, beside a part drawn at random. A choice with a limit is drawn from
    the campaign's seed. `differ_between` leaves only segments on which two of the systems differ, as in the
    NVS paper, section 4.1: NVS and the lexicon, with four systems on show.

    Where the unit is a document, documents are drawn whole and shown as pages (`pages`): `items` is then a
    number of documents, and controls are pages.
    """

    select: Selection | None = None  # the protocol's usual one
    unit: Unit = "segment"  # what is drawn, and rated on one page
    segments_per_page: Annotated[int, Field(ge=1, le=MAX_PER_PAGE)] = 10  # longer documents are cut
    document_score: bool = False  # asked for after the last segments of a document
    show_reference: Annotated[list[Positive], Field(max_length=4)] = Field(default_factory=list)  # by number
    items: Positive | None = None  # units at most; None: all that `select` lets through
    differ_between: Annotated[list[Written], Field(max_length=2)] = Field(default_factory=list)
    strata: list[Stratum] = Field(default_factory=lambda: _LENGTH.copy())  # of `stratified`
    metrics: Annotated[list[Written], Field(max_length=2)] = Field(default_factory=list)  # of `disagreement`
    random_share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.2  # of the items, beside `disagreement`
    aim: bool = False  # items go where a verdict is still open (`human.rating.aiming`)
    pairs: Pairs = "all"  # where the protocol shows pairs: every pair, or each system with the baseline
    baseline: str | None = None  # the study's if it takes part, else the first system
    bad_references: Amount = 0.1
    repeats: Amount = 0.1
    batch: Annotated[int, Field(ge=2, le=1000)] = 100  # items; a control lies half of this after its original
    tutorial: list[TutorialItem] = Field(default_factory=list)
    attention: list[AttentionItem] = Field(default_factory=list)
    attention_every: Annotated[int, Field(ge=1, le=1000)] = 10  # a rater's items from one check to the next
    # of the checks, to get the completion code
    attention_share: Annotated[float, Field(gt=0.0, le=1.0)] = 0.7
    context: Annotated[int, Field(ge=0, le=20)] = 0  # source sentences shown before the segment
    taxonomy: Taxonomy | None = None  # of marked errors; None: the protocol's usual one
    # of scores of MQM in an import whose errors cost hundredths, say; None: one
    decimals: Decimals = None
    # of an import: the number that its file gives a first segment; reports name segments as the file does
    first_segment: Annotated[int, Field(ge=0, le=1, exclude_if=lambda number: number == 1)] = 1
    # of an import: whether proposals are only those that raters left, so that nobody knows what they deleted
    proposals_left: Annotated[bool, Field(exclude_if=lambda left: not left)] = False
    proposed_by: ProposedBy | None = None  # None: no errors are marked beforehand, or those of a file
    delta: Above0 | None = None  # points of the scale
    minutes_per_item: Above0 | None = None
    consent: Text = ""
    questions: list[Question] = Field(default_factory=list)  # about the rater, before the first item
    contact: Text = ""  # whom raters ask
    completion_code: Text = ""  # shown after the last item, as recruiting platforms ask for
    failing_code: Text = ""  # shown instead to who fails the attention checks
    # where the rater goes back to then; "{code}" in it stands for the code
    completion_url: Annotated[str, AfterValidator(check_address)] = ""
    wmt: WmtRuleName | None = None  # of an import
    # document → domain, of --documents or an import; for WMT mode
    domains: Annotated[dict[Text, Text], Field(exclude_if=lambda found: not found)] = Field(
        default_factory=dict
    )
    references: list[Written] = Field(default_factory=list)  # systems that are human translations
    drawn: DrawnFrom | None = None  # filled in when the items are drawn

    def segment_name(self, index: int) -> str:
        """What reports call a segment: its number in the test set, or in the file of an import."""
        return f"segment {index + self.first_segment}"

    @property
    def by_documents(self) -> bool:
        return self.unit == "document"

    def position_of_baseline(self, systems: Sequence[str]) -> int:
        """The first system's where none is named, or one that does not take part."""
        return next((at for at, system in enumerate(systems) if system == self.baseline), 0)

    def complete(
        self, protocol: Protocol, systems: Sequence[str], study_baseline: str | None
    ) -> CampaignSettings:
        """The same with nothing left open. InputError where settings do not fit the protocol."""
        baseline = self.baseline or (study_baseline if study_baseline in systems else systems[0])
        if baseline not in systems:
            raise InputError(
                f"the baseline {baseline!r} does not take part: {option('baseline')} is one of "
                f"{', '.join(systems)}",
                about="baseline",
            )
        select = self.select or protocol.usual_selection
        if select not in protocol.selections:
            raise InputError(
                f"{option('protocol')} {protocol.name} cannot rate what {option('select')} {select} chooses "
                f"(two equal texts, say): use {option('select')} {' or '.join(protocol.selections)}",
                about="protocol",
            )
        if self.taxonomy is not None and protocol.usual_taxonomy is None:
            raise InputError(
                f"{option('taxonomy')} is for marked errors, and {protocol.name} has none: leave it out",
                about="taxonomy",
            )
        self._check_differ_between(systems, select)
        if self.document_score and not self.by_documents:
            raise InputError(
                f"{option('document-score')} asks for a score of a whole document: add {option('unit')} "
                "document",
                about="document-score",
            )
        if self.document_score and not protocol.scores_documents:
            raise InputError(
                f"{option('document-score')}: the scale of {option('protocol')} {protocol.name} is not one "
                "for whole documents; leave it out, or use another protocol",
                about="document-score",
            )
        if select == "disagreement" and not self.metrics:
            raise InputError(
                f"{option('select')} disagreement needs one metric of the study or two: {option('metrics')} "
                "bleu,chrf",
                about="select",
            )
        if select == "disagreement" and self.items is None:
            raise InputError(
                f"{option('select')} disagreement takes the segments with the most disagreement: say how "
                f"many with {option('items')}",
                about="select",
            )
        if select == "stratified" and not self.strata:
            raise InputError(
                f"{option('select')} stratified needs {option('strata')} length, document or both",
                about="select",
            )
        if select == "stratified" and self.by_documents and "document" in self.strata:
            raise InputError(
                f"{option('strata')} document samples segments of each document, and {option('unit')} "
                f"document takes documents whole: use {option('strata')} length",
                about="strata",
            )
        if self.aim and protocol.relative and not (protocol.chooses_pairs and self.pairs == "baseline"):
            raise InputError(
                f"{option('aim')} is for verdicts against the baseline, and other pairs tell nothing of "
                f"them: add {option('pairs')} baseline, or use another {option('protocol')}",
                about="aim",
            )
        return self.model_copy(
            update={
                "select": select,
                "baseline": baseline,
                "delta": self.delta or protocol.usual_delta,
                "taxonomy": self.taxonomy or protocol.usual_taxonomy,
                "minutes_per_item": self.minutes_per_item or protocol.minutes(len(systems)),
            }
        )

    def _check_differ_between(self, systems: Sequence[str], select: Selection) -> None:
        pair = self.differ_between
        if not pair:
            return
        if len(set(pair)) != 2 or not set(pair) <= set(systems):
            raise InputError(
                f"{option('differ-between')} needs two of the systems {', '.join(systems)}, not "
                f"{', '.join(pair)}",
                about="differ-between",
            )
        if select == "all":
            raise InputError(
                f"{option('differ-between')} leaves segments out, and {option('select')} all takes every "
                f"one: use another {option('select')}",
                about="differ-between",
            )


def settings_of(stored: dict[str, Any]) -> CampaignSettings:
    """Settings as `model_dump` gave them (Campaign.settings), or as a page or a file gives them.

    InputError names each value that cannot be.
    """
    try:
        return CampaignSettings.model_validate(stored)
    except ValidationError as error:
        mistakes = list(mistakes_of_pydantic(error.errors(), CampaignSettings, stored))
        lines = dict.fromkeys(mistake.line() for mistake in mistakes)
        about = str(mistakes[0].path[0]).replace("_", "-") if mistakes[0].path else ""
        raise InputError("settings of the campaign: " + "; ".join(lines), about=about) from None


def number_of(amount: int | float, items: int) -> int:
    """How many items an `Amount` is: itself, or its share of `items`, rounded to the nearest."""
    return amount if isinstance(amount, int) else int(amount * items + 0.5)
