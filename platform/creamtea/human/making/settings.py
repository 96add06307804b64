"""The settings of a campaign, each declared once: type, bounds, default, meaning and title.

The comment of a field is its description (`creamtea.document.values`); its `Setting` has the rest.
`CampaignDocument` is a campaign as an organiser writes it, in blocks; form, schema, reference and messages
come from it. `CampaignSettings` has the same settings as they are stored, without blocks; `complete` fills in
the protocol's defaults, so that a stored campaign holds every value that decided something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError

from creamtea.document.mistakes import mistakes_of_pydantic
from creamtea.document.values import FILE, Above0, BelowOne, Positive, Strict
from creamtea.errors import InputError, wrong
from creamtea.human.making.questions import Question
from creamtea.human.protocols import Protocol, Selection, find_protocol
from creamtea.human.protocols.base import MAX_OUTPUTS
from creamtea.human.protocols.spans import MAX_DECIMALS, ExpectedSpan
from creamtea.human.protocols.taxonomy import Taxonomy
from creamtea.store.rows import check_address, check_text
from creamtea.store.tables import Campaign
from creamtea.wording import key_name

Stratum = Literal["length", "document"]
Pairs = Literal["all", "baseline"]
Unit = Literal["segment", "document"]
Design = Literal["balanced", "adaptive"]
# names of stats.wmt.RULES, whose import takes as long as SciPy's
WmtRuleName = Literal["usual", "crowd", "da-sqm", "esa", "2026"]


def _amount(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError:  # it has an error for each kind of number
        raise PydanticCustomError("amount", "a number of items, or a share below 1") from None


def _distinct(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("has a name twice")
    return names


Text = Annotated[str, AfterValidator(check_text)]
Line = Annotated[str, AfterValidator(str.strip), AfterValidator(check_text)]
Written = Annotated[str, Field(min_length=1), AfterValidator(check_text)]
FileName = Written  # relative to the document's folder
# a share of the items below 1, or a number of items
Amount = Annotated[Annotated[int, Field(ge=0, le=10**6)] | BelowOne, WrapValidator(_amount)]
DocumentCount = Annotated[int | None, Field(exclude_if=lambda number: number is None)]
Decimals = Annotated[int | None, Field(ge=2, le=MAX_DECIMALS, exclude_if=lambda number: number is None)]

_LENGTH: list[Stratum] = ["length"]
MAX_PER_PAGE = 50  # segments
USUAL_PROTOCOL = "contrastive-da"


class TutorialOutput(Strict):
    """A text with its accepted values of the scale, and the errors that must be marked in it."""

    text: Text = ""  # the output; empty: it is a file that `media` names
    # the lowest and the highest accepted value
    accepted: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    # errors that must be marked; an empty list: none may be marked
    spans: Annotated[list[ExpectedSpan], Field(max_length=40)] | None = None


class TutorialItem(Strict):
    """An item with known answers, which every rater does before the campaign's items."""

    source: Written  # the source sentence
    context: list[Written] = Field(default_factory=list)  # source sentences before it
    outputs: Annotated[list[TutorialOutput], Field(min_length=1)]  # the outputs to rate
    explanation: Written  # shown after the answer


class AttentionOutput(TutorialOutput):
    """A text as in a practice item, or a text whose score must be above other outputs' scores."""

    # numbers of the item's outputs, from 1, that must have a lower value
    above: list[Positive] = Field(default_factory=list)


class AttentionItem(Strict):
    """An item with a known answer among a rater's items, which looks like any other."""

    source: Written  # the source sentence
    context: list[Written] = Field(default_factory=list)  # source sentences before it
    outputs: Annotated[list[AttentionOutput], Field(min_length=1)]  # the outputs to rate
    # shown after a wrong answer, before another try; without a warning the check is silent
    warning: Written | None = None


class DrawnFrom(Strict):
    """Numbers of segments of the test set from which the items were drawn."""

    segments: int  # of the test set
    differing: int  # segments on which at least two of the systems differ
    population: int  # segments from which items could be drawn
    between: list[str] = Field(default_factory=list)  # the two systems that must differ on them, if any
    chosen: int  # segments that became items
    # if documents are rated: how many were drawn, of how many; None otherwise
    documents: DocumentCount = None
    of_documents: DocumentCount = None


class ProposedBy(Strict):
    """The metric whose errors are marked before a rater begins."""

    metric: str  # its name in the study
    scorer: str  # its name on the machine
    model: str | None = None
    version: str
    digest: str  # of the scorer's arguments and files


@dataclass(frozen=True)
class Setting:
    """What pages, messages and the reference say about a setting, beside its type and its comment."""

    title: str  # of its field on a page
    needs: str = ""  # "sample.kind=stratified", or a key that must have a value: else it would do nothing
    asks: str = ""  # a property that the protocol must have: "marks_errors"
    file: str = ""  # the kind of file whose name may be the value (`campaign_file.READERS`)
    choices: str = ""  # the names in the study that a page offers
    rare: bool = False  # folded away on a page
    on_page: bool = True  # False: only campaign files have it
    options: Mapping[str, str] = field(default_factory=dict, hash=False)  # a page's names of the values

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Allow the name of a file as well."""
        value = handler(schema)
        if not self.file or value.get("type") == "string":
            return value
        others = [choice for choice in value.get("anyOf", [value]) if choice.get("type") != "string"]
        return {"anyOf": [{"type": "string", "format": FILE}, *others]}


SELECTION_TITLES = {
    "all": "all segments",
    "differing": "those on which the outputs differ",
    "stratified": "a sample in proportion to strata",
    "disagreement": "those on which metrics disagree most, and a part at random",
}
PAIR_TITLES = {"all": "every pair of systems", "baseline": "each system with the baseline"}
DESIGN_TITLES = {
    "balanced": "all pairs equally often",
    "adaptive": "more often those whose ranks are open",
}
UNIT_TITLES = {"segment": "a segment", "document": "a document"}


class PlanSettings(Strict):
    """Baseline, smallest difference, minutes per item and practice items: the settings outside blocks."""

    # the system that others are compared with; none: the study's if it takes part, else the first
    baseline: Annotated[Written | None, Setting("Baseline", choices="systems")] = None
    # [points] the smallest difference that matters to you; none: the protocol's usual one
    delta: Annotated[Above0 | None, Setting("Smallest difference that matters")] = None
    # [minutes] time per item, for the preview; none: by a rule of thumb
    minutes_per_item: Annotated[Above0 | None, Setting("Minutes per item", rare=True)] = None
    # items with accepted answers, which every rater does first
    tutorial: Annotated[
        list[TutorialItem], Setting("Practice items", file="practice"), Field(alias="practice")
    ] = Field(default_factory=list)


class ProtocolSettings(Strict):
    """How people rate."""

    # severities and categories of marked errors, and their costs; none: the protocol's usual ones
    taxonomy: Annotated[Taxonomy | None, Setting("Taxonomy", asks="marks_errors", file="taxonomy")] = None
    # [names] further scales with the same values, which raters answer beside the score: Fluency, Style
    scales: Annotated[
        list[Annotated[Written, Field(max_length=40)]],
        Field(max_length=4, exclude_if=lambda names: not names),
        Setting("Further scales", asks="takes_scales", rare=True),
        AfterValidator(_distinct),
    ] = Field(default_factory=list)
    # every pair of systems, or each system with the baseline
    pairs: Annotated[Pairs, Setting("Pairs", asks="chooses_pairs", options=PAIR_TITLES)] = "all"
    # [sentences] source sentences shown before the segment
    context: Annotated[int, Field(ge=0, le=20), Setting("Sentences of context", rare=True)] = 0
    # numbers of references that raters see: 1 is the test set's target, others are systems of the study
    # with `reference: 2` and so on
    show_reference: Annotated[
        list[Positive], Field(max_length=4), Setting("References that raters see", rare=True)
    ] = Field(default_factory=list)
    # also ask for a score of the whole document after its last segments
    document_score: Annotated[
        bool, Setting("Ask for a score of the whole, too", "sample.unit=document", "scores_documents")
    ] = False


class SampleSettings(Strict):
    """Which segments are rated. A choice with a limit is drawn from the seed.

    `differing`: segments on which the outputs differ; `stratified`: a sample in proportion to `strata`;
    `disagreement`: segments on which `metrics` disagree most, and a part drawn at random. Documents are drawn
    whole and shown as pages; `items` then counts documents, and controls are pages.
    """

    # which segments are rated; none: the protocol's usual choice
    select: Annotated[
        Selection | None, Setting("Segments", options=SELECTION_TITLES), Field(alias="kind")
    ] = None
    # [segments or documents] the maximum number; none: all that the kind allows
    items: Annotated[Positive | None, Setting("Maximum number")] = None
    # the unit that is drawn and rated together; `document` needs `documents`
    unit: Annotated[Unit, Setting("Rating unit", options=UNIT_TITLES)] = "segment"
    # [segments] the maximum per page; longer documents are cut
    segments_per_page: Annotated[
        int, Field(ge=1, le=MAX_PER_PAGE), Setting("Segments per page", "sample.unit=document")
    ] = 10
    # [systems] the maximum rated per segment or document; side by side they share a page. Balanced incomplete
    # blocks are drawn, in which each pair of systems comes together equally often; none: all
    systems_per_page: Annotated[
        int | None,
        Field(ge=2, le=MAX_OUTPUTS, exclude_if=lambda number: number is None),
        Setting("Systems per page"),
    ] = None
    # `balanced`: all pairs of systems come equally often; `adaptive`: each tenth of the pages is drawn once
    # the pages before are rated, and systems whose ranks are still open come more often. Results then come
    # at four planned looks, which together err in at most 5 % of campaigns
    design: Annotated[
        Design,
        Field(exclude_if=lambda design: design == "balanced"),
        Setting("Which systems share a page", "sample.systems_per_page", options=DESIGN_TITLES, rare=True),
    ] = "balanced"
    # the strata that the sample is in proportion to
    strata: Annotated[list[Stratum], Setting("In proportion to", "sample.kind=stratified")] = Field(
        default_factory=lambda: _LENGTH.copy()
    )
    # one or two metrics of the study
    metrics: Annotated[
        list[Written], Field(max_length=2), Setting("Metrics", "sample.kind=disagreement", choices="metrics")
    ] = Field(default_factory=list)
    # share of the items that are drawn at random
    random_share: Annotated[
        float, Field(gt=0.0, lt=1.0), Setting("Share drawn at random", "sample.kind=disagreement")
    ] = 0.2
    # only segments on which these two systems differ (NVS paper, section 4.1)
    differ_between: Annotated[
        list[Written],
        Field(max_length=2),
        Setting("Only where these two differ", choices="systems", rare=True),
    ] = Field(default_factory=list)


class ControlSettings(Strict):
    """Items that check raters and count in no mean."""

    # a share of the items below 1, or a number of items: each comes again with one output spoilt
    bad_references: Annotated[Amount, Setting("Bad references")] = 0.1
    # a share of the items below 1, or a number of items: each comes again unchanged
    repeats: Annotated[Amount, Setting("Repeats")] = 0.1
    # [items] in a batch; a control comes half a batch after its original
    batch: Annotated[int, Field(ge=2, le=1000), Setting("Batch", rare=True)] = 100


class AttentionSettings(Strict):
    """Attention checks: items with known answers among a rater's items."""

    # items with known answers
    attention: Annotated[
        list[AttentionItem], Setting("Attention checks", file="attention"), Field(alias="items")
    ] = Field(default_factory=list)
    # [items] that a rater does from one check to the next
    attention_every: Annotated[
        int,
        Field(ge=1, le=1000, alias="every"),
        Setting("Items from one check to the next", "attention.items"),
    ] = 10
    # share of the checks that a rater must pass to see the completion code
    attention_share: Annotated[
        float,
        Field(gt=0.0, le=1.0, alias="share"),
        Setting("Share of checks to pass", "attention.failing_code"),
    ] = 0.7
    # shown instead of the completion code to raters who fail; none: everybody sees the completion code
    failing_code: Annotated[Line, Setting("Code for those who fail", "attention.items")] = ""


class RaterSettings(Strict):
    """What raters read and are asked."""

    # by domain of `documents`: Markdown above the items of the domain (news: "Formal language, please.")
    domain_instructions: Annotated[
        dict[Text, Text],
        Setting("Instructions by domain", on_page=False),
        Field(exclude_if=lambda found: not found),
    ] = Field(default_factory=dict)
    # Markdown that raters agree to before they begin
    consent: Annotated[Text, Setting("What raters agree to (Markdown)", file="text")] = ""
    # about the rater, before the first item, one per line: QUESTION | ANSWER | ANSWER; `number` in place of
    # answers asks for a number, and `optional` allows a blank answer
    questions: Annotated[list[Question], Setting("Questions about the rater", file="questions")] = Field(
        default_factory=list
    )
    # [points] outputs whose ratings lie this far apart are listed, and a third rating can be asked for; none:
    # half of the scale; with `mqm`, half of the maximum cost of an output's errors (usually 12.5)
    disputed_from: Annotated[
        Above0 | None,
        Field(exclude_if=lambda points: points is None),
        Setting("Points apart that are a dispute", rare=True),
    ] = None
    # whom raters can ask: name and e-mail address
    contact: Annotated[Line, Setting("Contact")] = ""
    # shown after the last item, for recruiting platforms
    completion_code: Annotated[Line, Setting("Completion code")] = ""
    # where raters go back to after the last item; {code} stands for the code
    completion_url: Annotated[Line, AfterValidator(check_address), Setting("Return address")] = ""


class CampaignSettings(
    PlanSettings, ProtocolSettings, SampleSettings, ControlSettings, AttentionSettings, RaterSettings
):
    """A campaign's settings as they are stored: its document's, and those that making or importing adds.

    None: the protocol's default (`complete`).
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=False)

    # an older adaptive design, of campaigns launched before `sample.design`, whose registration has this key:
    # drawn items are stored as blocks, and the other items are rated in full
    aim: Annotated[bool, Field(exclude_if=lambda aims: not aims)] = False
    # of MQM scores in an import whose errors cost hundredths, say; None: one
    decimals: Decimals = None
    # for an import, its file's number of the first segment, which reports use to name segments
    first_segment: Annotated[int, Field(ge=0, le=1, exclude_if=lambda number: number == 1)] = 1
    # for an import, whether its file lacks the proposals that raters deleted
    proposals_left: Annotated[bool, Field(exclude_if=lambda left: not left)] = False
    proposed_by: ProposedBy | None = None  # None: no errors are marked beforehand, or a file has them
    wmt: WmtRuleName | None = None  # of an import
    # document → domain, from `documents` or an import; for WMT mode
    domains: Annotated[dict[Text, Text], Field(exclude_if=lambda found: not found)] = Field(
        default_factory=dict
    )
    references: list[Written] = Field(default_factory=list)  # systems that are human translations
    drawn: DrawnFrom | None = None  # filled in when the items are drawn

    def segment_name(self, index: int) -> str:
        """Return a segment's name in reports: its number in the test set, or in the imported file."""
        return f"segment {index + self.first_segment}"

    def disputed_bound(self, protocol: Protocol) -> float:
        """Return the distance [points] from which ratings of one output are disputed."""
        return self.disputed_from or protocol.far_apart()

    @property
    def by_documents(self) -> bool:
        return self.unit == "document"

    def block_size(self, systems: int) -> int | None:
        """Return how many of a campaign's systems are rated per segment or document; None if all are."""
        size = self.systems_per_page
        return size if size is not None and size < systems else None

    def share_given_out(self, protocol: Protocol, systems: int) -> float:
        """Return the share of items without drawn systems that raters are expected to get.

        It is 1 except in adaptive designs, which pass over items whose systems are not drawn.
        """
        shown = self.block_size(systems)
        if shown is None or self.design != "adaptive":
            return 1.0
        if protocol.relative:
            return shown * (shown - 1) / (systems * (systems - 1))
        return 1.0 if protocol.max_outputs > 1 else shown / systems

    def position_of_baseline(self, systems: Sequence[str]) -> int:
        """Return the baseline's position; 0 if it is not named or does not take part."""
        return next((position for position, system in enumerate(systems) if system == self.baseline), 0)

    def complete(
        self, protocol: Protocol, systems: Sequence[str], study_baseline: str | None
    ) -> CampaignSettings:
        """Return the settings with all defaults filled in. InputError if they do not fit the protocol."""
        for key, message in self.conflicts(protocol, systems):
            raise wrong(key, message)
        baseline = self.baseline or next((name for name in systems if name == study_baseline), systems[0])
        protocol = protocol.with_settings(self.model_dump(mode="json"))
        return self.model_copy(
            update={
                "select": self.select or protocol.usual_selection,
                "baseline": baseline,
                "delta": self.delta or protocol.usual_delta,
                "taxonomy": self.taxonomy or protocol.usual_taxonomy,
                "minutes_per_item": self.minutes_per_item
                or protocol.minutes(self.block_size(len(systems)) or len(systems)),
            }
        )

    def beyond_scale(self, protocol: Protocol) -> Iterator[tuple[str, str]]:
        """Yield the settings with differences that are larger than the protocol's scale, and a message."""
        widest = float(protocol.scale.highest - protocol.scale.lowest)
        for key, points in (("delta", self.delta), ("raters.disputed_from", self.disputed_from)):
            if points is not None and points > widest:
                yield key, f"scores lie at most {widest:g} points apart, and this is {points:g}: use less"

    def conflicts(self, protocol: Protocol, systems: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the settings that do not fit the protocol, the systems or each other, with the reason."""
        names, size, pair = ", ".join(systems), self.block_size(len(systems)), self.differ_between
        select = self.select or protocol.usual_selection
        if self.baseline is not None and self.baseline not in systems:
            yield "baseline", f"{self.baseline!r} does not take part: use one of {names}"
        if select not in protocol.selections:
            unable = f"{protocol.name} cannot rate what {select} chooses (two equal texts, say)"
            yield "sample.kind", f"{unable}: use {' or '.join(protocol.selections)}"
        yield from self.misfits(protocol)
        if pair and (len(set(pair)) != 2 or not set(pair) <= set(systems)):
            yield "sample.differ_between", f"needs two of the systems {names}, not {', '.join(pair)}"
        if pair and select == "all":
            every = f"leaves segments out, and {key_name('sample.kind')} all takes every one"
            yield "sample.differ_between", f"{every}: use another kind"
        if select == "disagreement" and not self.metrics:
            yield "sample.metrics", "disagreement needs one metric of the study or two (bleu, chrf)"
        if select == "disagreement" and self.items is None:
            yield "sample.items", "say how many segments: disagreement takes the largest first"
        if select == "stratified" and not self.strata:
            yield "sample.strata", "give length, document or both"
        if select == "stratified" and self.by_documents and "document" in self.strata:
            whole = f"{key_name('sample.unit')} document takes documents whole"
            yield "sample.strata", f"document samples segments of each document, and {whole}: use length"
        side_by_side = protocol.max_outputs > 1 and not protocol.relative
        if side_by_side and (size or len(systems)) > protocol.max_outputs:
            most = (
                f"a page shows at most {protocol.max_outputs} outputs, and there are {len(systems)} systems"
            )
            yield "sample.systems_per_page", f"{most}: say how many of them a page shows"
        few = key_name("sample.systems_per_page")
        if size is None and self.design == "adaptive":
            every = f"adaptive draws which systems share a page, and all {len(systems)} do"
            yield "sample.design", f"{every}: set {few} below {len(systems)}, or leave it out"
        if size is not None and protocol.chooses_pairs and self.pairs == "baseline":
            some = f"the baseline is not on every page of {size} of {len(systems)} systems"
            yield "protocol.pairs", f"{some}: use all, or leave {few} out"

    def misfits(self, protocol: Protocol) -> Iterator[tuple[str, str]]:
        """Yield the settings that would do nothing, each with the reason and the remedy."""
        for name, declared in declarations().items():
            if declared.name not in CampaignSettings.model_fields:
                continue
            value, needs, asks = getattr(self, declared.name), declared.setting.needs, declared.setting.asks
            if value == declared.default:
                continue
            if asks and not getattr(protocol, asks):
                yield name, f"{protocol.name} {PROTOCOLS_LACK[asks]}: leave it out, or use another protocol"
            elif not is_met(needs, lambda other: getattr(self, declarations()[other].name)):
                wanted, _, words = needs.partition("=")
                missing = f"{key_name(wanted)} {words}".rstrip()
                yield name, f"does nothing without {missing}: add that, or leave this out"
        code, address = "{code}", self.completion_url
        if self.failing_code and self.failing_code == self.completion_code:
            passed = key_name("raters.completion_code")
            yield "attention.failing_code", f"{self.failing_code!r} is {passed}, too: use different codes"
        if code in address and not self.completion_code:
            own = key_name("raters.completion_code")
            yield "raters.completion_url", f"{code} stands for {own}, which is missing: add it"
        if {*"{}"} & {*address.replace(code, "")}:
            yield "raters.completion_url", f"{address}: {code} is the only text in braces that is replaced"


PROTOCOLS_LACK = {
    "marks_errors": "has no marked errors",
    "chooses_pairs": "shows no pairs",
    "takes_scales": "takes no further scales",
    "scores_documents": "has no scale for whole documents",
}


class ProtocolHead(Strict):  # a base of its own, so that its key comes first
    # contrastive-da, da, da-sqm, preference, post-edit, esa, cesa or mqm; plug-ins add others
    kind: Annotated[str, Setting("Protocol", choices="protocols")] = USUAL_PROTOCOL


class ProtocolBlock(ProtocolSettings, ProtocolHead):
    """How people rate."""

    # JSON Lines: errors that are marked before a rater begins (ESA with AI)
    proposals: Annotated[
        FileName | None, Setting("Errors marked beforehand", asks="marks_errors", file="proposals")
    ] = None
    # a metric of the study whose scorer has found errors, which are marked before a rater begins
    proposals_from: Annotated[
        Written | None, Setting("Errors that a metric has found", asks="marks_errors", choices="finders")
    ] = None


class RaterHead(Strict):  # likewise
    # how many raters rate each item
    ratings_per_item: Annotated[int, Field(ge=1, le=1000), Setting("Raters for each item")] = 1
    # Markdown that raters read first
    instructions: Annotated[Text, Setting("Instructions (Markdown)", file="text")] = ""


class RaterBlock(RaterSettings, RaterHead):
    """Who rates, and what they read and are asked."""


class CampaignHead(Strict):
    """What is rated."""

    # the campaign's name
    name: Annotated[Written, Setting("Name")]
    # the study whose outputs are rated; none if `texts` names files
    study: Annotated[Written, Setting("Study", choices="studies")] = ""
    # one of its test sets; with `texts`, the name of the texts in reports, by default `test`
    test_set: Annotated[Written, Setting("Test set", choices="test_sets")] = ""
    # two to 60 of its systems; with `texts`, by default all. Raters never see their names
    systems: Annotated[list[Written], Setting("Systems", choices="systems")] = Field(default_factory=list)
    # draws items, controls and the orders on pages
    seed: Annotated[int, Field(ge=0, lt=2**63), Setting("Seed", rare=True)] = 1
    # the document of each segment, one per line, or DOMAIN TAB DOCUMENT, which WMT mode uses
    documents: Annotated[FileName | None, Setting("Documents", file="documents", rare=True)] = None
    # JSON Lines: image, audio and video files beside sources or as outputs
    media: Annotated[FileName | None, Setting("Media files", file="media", rare=True)] = None


class TextsBlock(Strict):
    """Texts from files: sources, outputs and references of one direction."""

    # source and target, as `en-de`; in JSON Lines, the direction to read
    languages: Annotated[Written | None, Setting("Languages", "study=")] = None
    # a folder in mt-metrics-eval's layout, with the files that the other keys do not name: sources/PAIR.txt,
    # system-outputs/PAIR/SYSTEM.txt, references/PAIR.NAME.txt, documents/PAIR.docs
    folder: Annotated[FileName | None, Setting("Folder", on_page=False)] = None
    # sources, one segment per line, or a test set of WMT as JSON Lines (.jsonl)
    sources: Annotated[FileName | None, Setting("Sources", "study=")] = None
    # a folder with a file SYSTEM.txt per system, or SYSTEM.jsonl beside JSON Lines
    outputs: Annotated[FileName | None, Setting("Outputs, one file per system", "study=")] = None
    # references, one segment per line: `en-de.refA.txt` is refA; an empty list: none
    reference_files: Annotated[
        list[FileName] | None, Setting("References", "study="), Field(alias="references")
    ] = None


class CampaignDocument(PlanSettings, CampaignHead):
    """A human evaluation of systems: a campaign file (campaign.yaml)."""

    texts: TextsBlock = Field(TextsBlock(), title="Texts")  # texts from files, instead of a study's outputs
    protocol: ProtocolBlock = Field(ProtocolBlock(), title="Rating")  # how people rate
    sample: SampleSettings = Field(SampleSettings(), title="Items")  # which segments are rated
    controls: ControlSettings = Field(ControlSettings(), title="Controls")  # items that check raters
    # items with known answers
    attention: AttentionSettings = Field(AttentionSettings(), title="Attention checks")
    # what raters read and are asked
    raters: RaterBlock = Field(RaterBlock(), title="Raters")

    def settings(self) -> CampaignSettings:
        values = {}
        for declared in declarations().values():
            if declared.name in CampaignSettings.model_fields:
                block = getattr(self, declared.block) if declared.block else self
                values[declared.name] = getattr(block, declared.name)
        return CampaignSettings(**values)


class Declaration(NamedTuple):
    """A setting and its place in a campaign's document."""

    block: str  # "sample"; "" at the top
    key: str  # in its block: "kind"
    model: type[Strict]  # the block's model
    name: str  # in the model, and among stored settings: "select"
    setting: Setting

    @property
    def field(self) -> FieldInfo:
        return self.model.model_fields[self.name]

    @property
    def default(self) -> Any:
        return self.field.get_default(call_default_factory=True)


@cache
def declarations() -> dict[str, Declaration]:
    """Return every setting of a campaign's document by its key ("sample.kind"), in the document's order."""
    declared: dict[str, Declaration] = {}
    blocks: list[tuple[str, type[Strict]]] = [("", CampaignDocument)]
    for block, model in blocks:
        for name, info in model.model_fields.items():
            setting = next((part for part in info.metadata if isinstance(part, Setting)), None)
            if setting is None:
                blocks.append((name, cast(type[Strict], info.annotation)))
            else:
                last = info.alias or name
                declared[f"{block}.{last}".lstrip(".")] = Declaration(block, last, model, name, setting)
    return declared


def is_met(needs: str, value_of: Callable[[str], Any]) -> bool:
    """Return True if a key has the value that a setting needs: "sample.kind=stratified", or any value.

    "study=" means that the key must have no value.
    """
    wanted, equals, words = needs.partition("=")
    return not needs or (value_of(wanted) == words if equals else bool(value_of(wanted)))


def settings_of(stored: dict[str, Any]) -> CampaignSettings:
    """Read stored settings (Campaign.settings) or an import's. InputError names each invalid value."""
    try:
        return CampaignSettings.model_validate(stored)
    except ValidationError as error:
        mistakes = list(mistakes_of_pydantic(error.errors(), CampaignSettings, stored))
        lines = dict.fromkeys(mistake.line() for mistake in mistakes)
        name = mistakes[0].path[0] if mistakes[0].path else ""
        about = next((key for key, declared in declarations().items() if declared.name == name), "")
        raise InputError("settings of the campaign: " + "; ".join(lines), about=about) from None


def share_given_out(campaign: Campaign) -> float:
    """Return the share of items without drawn systems that raters are expected to get."""
    settings = settings_of(campaign.settings)
    if settings.design != "adaptive":  # also campaigns whose protocol is not installed are listed
        return 1.0
    return settings.share_given_out(find_protocol(campaign.protocol), len(campaign.systems))


def number_of(amount: int | float, items: int) -> int:
    """Return the number of items that an `Amount` means: itself, or its rounded share of `items`."""
    return amount if isinstance(amount, int) else int(amount * items + 0.5)
