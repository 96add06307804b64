"""`creamtea campaign create`: choose the items of a human evaluation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from creamtea.cli.campaign.shared import names, show, text_of, with_options
from creamtea.cli.workplace import AsJson, artefact_store, existing_database
from creamtea.errors import InputError
from creamtea.human.making import campaigns
from creamtea.human.making.attention import read_attention
from creamtea.human.making.documents import Documents, read_documents
from creamtea.human.making.metric_proposals import one_of_the_two, proposals_of_metric
from creamtea.human.making.proposals import Proposal, read_proposals
from creamtea.human.making.questions import read_questions
from creamtea.human.making.settings import CampaignSettings, ProposedBy, settings_of
from creamtea.human.making.tutorial import read_tutorial
from creamtea.human.media.given import read_media
from creamtea.human.protocols import SELECTIONS, find_protocol, protocol_names
from creamtea.human.protocols.taxonomy import read_taxonomy
from creamtea.store.database import Database
from creamtea.store.item_kinds import ItemKind
from creamtea.wording import counted

EXAMPLES = (
    "Examples: `creamtea campaign create first --study demo --test-set test "
    "--systems softmax-greedy,softmax-beam4,scones-greedy,entmax-greedy --items 100 --ratings 2` · "
    "`creamtea campaign create odd --study demo --test-set test --systems softmax-greedy,softmax-lexicon "
    "--select disagreement --metrics bleu,chrf --items 100`"
)

# settings that are taken as they are written
SETTINGS = (
    *("unit", "segments_per_page", "document_score"),
    *("select", "items", "random_share", "aim", "pairs", "baseline", "batch", "context", "delta"),
    *("attention_every", "attention_share"),
)


# options that say more of another one, without which they would do nothing
PARTNERS = {
    "strata": "--select stratified",
    "metrics": "--select disagreement",
    "random_share": "--select disagreement",
    "segments_per_page": "--unit document",
    "attention_every": "--attention FILE",
    "attention_share": "--attention FILE",
    "failing_code": "--attention FILE",
}


def _within(setting: str) -> str:
    """What a number may be, as help says it: "(1 to 50)", "(above 0, below 1)"."""
    least, most = CampaignSettings.model_fields[setting].metadata  # as Field(ge=…, le=…) leaves them
    if hasattr(least, "ge"):
        return f"({least.ge} to {most.le:,})"
    ends = f"at most {most.le:g}" if hasattr(most, "le") else f"below {most.lt:g}"
    return f"(above {least.gt:g}, {ends})"


def register(commands: typer.Typer) -> None:
    commands.command(epilog=EXAMPLES)(create)


@dataclass(frozen=True, kw_only=True)
class CampaignOptions:
    """The options of `create`, as they are written."""

    study: Annotated[str, typer.Option(help="The study whose outputs are rated.")]
    test_set: Annotated[str, typer.Option(help="One of its test sets.")]
    systems: Annotated[str, typer.Option(metavar="A,B,…", help="Two to eight of its systems.")]
    protocol: Annotated[
        str,
        typer.Option(metavar="|".join(protocol_names(rated_here=True)), help="What raters see and answer."),
    ] = campaigns.USUAL_PROTOCOL
    unit: Annotated[
        str,
        typer.Option(
            metavar="segment|document", help="What is drawn and rated on a page; document needs --documents."
        ),
    ] = "segment"
    segments_per_page: Annotated[
        int,
        typer.Option(
            metavar="N",
            help=f"Longer documents are cut into pages of at most so many {_within('segments_per_page')}.",
        ),
    ] = 10
    document_score: Annotated[
        bool, typer.Option("--document-score", help="After a document's segments, ask for a score of it all.")
    ] = False
    show_reference: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N]", help="References that raters see, by number: 1 is the test set's target."
        ),
    ] = None
    items: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Segments (documents) at most. Some protocols make several items of one."
        ),
    ] = None
    select: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(SELECTIONS), help="Which segments; by default as usual in the protocol."
        ),
    ] = None
    differ_between: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only segments on which these two systems differ.")
    ] = None
    strata: Annotated[
        str, typer.Option(metavar="length,document", help="What --select stratified samples by.")
    ] = "length"
    metrics: Annotated[
        str | None, typer.Option(metavar="M[,M]", help="With --select disagreement: one or two metrics.")
    ] = None
    random_share: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help=f"Drawn at random beside --select disagreement {_within('random_share')}.",
        ),
    ] = 0.2
    aim: Annotated[
        bool,
        typer.Option(
            "--aim",
            help="Rate systems less often once their verdict is settled or unlikely to be decided. However "
            "often you look at the results, its tests err in at most 5 % of cases.",
        ),
    ] = False
    pairs: Annotated[
        str,
        typer.Option(metavar="all|baseline", help="Where pairs are shown: all, or those with the baseline."),
    ] = "all"
    baseline: Annotated[
        str | None, typer.Option(metavar="SYSTEM", help="What others are compared with; else the study's.")
    ] = None
    ratings: Annotated[int, typer.Option(min=1, max=1000, metavar="K", help="Raters for each item.")] = 1
    bad_references: Annotated[
        str, typer.Option(metavar="SHARE|N", help="Items with one output spoilt, as controls.")
    ] = "0.1"
    repeats: Annotated[
        str, typer.Option(metavar="SHARE|N", help="Items repeated unchanged, as controls.")
    ] = "0.1"
    batch: Annotated[
        int,
        typer.Option(
            metavar="N",
            help=f"A control comes half a batch of items {_within('batch')} after its original.",
        ),
    ] = 100
    tutorial: Annotated[
        Path | None, typer.Option(metavar="FILE", help="YAML or JSON: items with answers, done first.")
    ] = None
    taxonomy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="YAML or JSON: severities and categories of marked errors, and weights."
        ),
    ] = None
    proposals: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="JSON Lines: errors that are marked before a rater begins (ESA with AI).",
        ),
    ] = None
    proposals_from: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="Instead: the errors that this metric of the study has found. Its scorer must give them.",
        ),
    ] = None
    media: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="JSON Lines: image, audio and video files that raters get beside sources.",
        ),
    ] = None
    instructions: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Markdown that raters read first.")
    ] = None
    consent: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Text that raters agree to before they begin.")
    ] = None
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Questions about the rater, one per line: QUESTION | ANSWER | ANSWER, or QUESTION | number.",
        ),
    ] = None
    contact: Annotated[str, typer.Option(metavar="TEXT", help="Raters' contact.")] = ""
    completion_code: Annotated[
        str, typer.Option(metavar="CODE", help="Shown after the last item, for a recruiting platform.")
    ] = ""
    completion_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Where raters go back to after the last item; {code} stands for the code.",
        ),
    ] = ""
    attention: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML or JSON: attention checks, items with known answers."),
    ] = None
    attention_every: Annotated[
        int,
        typer.Option(
            metavar="N",
            help=f"A rater's items from one attention check to the next {_within('attention_every')}.",
        ),
    ] = 10
    attention_share: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help=f"Share of checks to pass for --completion-code {_within('attention_share')}.",
        ),
    ] = 0.7
    failing_code: Annotated[
        str, typer.Option(metavar="CODE", help="Shown instead if attention checks are failed.")
    ] = ""
    context: Annotated[
        int,
        typer.Option(metavar="N", help=f"Source sentences shown before the segment {_within('context')}."),
    ] = 0
    documents: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The document of each segment, one per line, or DOMAIN TAB DOCUMENT, which WMT mode knows.",
        ),
    ] = None
    delta: Annotated[
        float | None,
        typer.Option(metavar="POINTS", help="The smallest difference that matters, on the protocol's scale."),
    ] = None
    minutes: Annotated[float | None, typer.Option(metavar="M", help="Minutes per item, for the preview.")] = (
        None
    )
    seed: Annotated[int, typer.Option(help="Seed for items, controls, and orders on pages.")] = 1
    replace: Annotated[bool, typer.Option("--replace", help="Replace a draft of this name.")] = False
    json_output: AsJson = False

    def check_partners(self) -> None:
        """InputError for an option that would do nothing."""
        given = {f"--select {self.select}", f"--unit {self.unit}"}
        given |= set() if self.attention is None else {"--attention FILE"}
        defaults = {field.name: field.default for field in fields(self)}
        for name, partner in PARTNERS.items():
            if getattr(self, name) != defaults[name] and partner not in given:
                raise InputError(f"--{name.replace('_', '-')} is for {partner}: add it, or leave this out")

    def settings(self) -> CampaignSettings:
        self.check_partners()
        tutorial = [] if self.tutorial is None else read_tutorial(self.tutorial)
        attention = [] if self.attention is None else read_attention(self.attention)
        taxonomy = None if self.taxonomy is None else read_taxonomy(self.taxonomy)
        return settings_of(
            {name: getattr(self, name) for name in SETTINGS}
            | {
                "differ_between": _optional("--differ-between", self.differ_between),
                "strata": names("--strata", self.strata),
                "show_reference": _numbers("--show-reference", self.show_reference),
                "metrics": _optional("--metrics", self.metrics),
                "bad_references": _amount("--bad-references", self.bad_references),
                "repeats": _amount("--repeats", self.repeats),
                "tutorial": [item.model_dump() for item in tutorial],
                "attention": [item.model_dump() for item in attention],
                "taxonomy": None if taxonomy is None else taxonomy.model_dump(),
                "minutes_per_item": self.minutes,
                "consent": text_of("--consent", self.consent),
                "questions": [
                    question.model_dump()
                    for question in read_questions(text_of("--questions", self.questions))
                ],
                "contact": self.contact.strip(),
                "completion_code": self.completion_code.strip(),
                "completion_url": self.completion_url.strip(),
                "failing_code": self.failing_code.strip(),
            }
        )

    def segment_documents(self) -> Documents | None:
        if self.documents is None:
            return None
        return read_documents(text_of("--documents", self.documents), f"--documents {self.documents}")


@with_options(CampaignOptions)
def create(name: str, options: CampaignOptions) -> None:
    """Create a campaign as a draft: choose what people rate, blind and shuffled.

    Contrastive direct assessment (contrastive-da) shows 2 to 8 outputs at once, rated from 1 to 6 in steps
    of 0.2; da and da-sqm one output, 0 to 100; preference two, the better or the same; post-edit one, to
    be corrected. In esa, cesa and mqm raters mark errors. Plug-ins may add protocols. See `preview` for
    hours and power, then `launch`.
    """
    from creamtea.human.making.preview import preview  # scipy.stats takes a second

    settings = options.settings()
    with existing_database() as database:
        proposals, proposed_by = _proposals(database, options)
        made = campaigns.create_campaign(
            database,
            name,
            campaigns.CampaignRequest(
                study=options.study,
                test_set=options.test_set,
                systems=names("--systems", options.systems),
                protocol=options.protocol,
                settings=settings.model_copy(update={"proposed_by": proposed_by}),
                ratings_per_item=options.ratings,
                seed=options.seed,
                instructions=text_of("--instructions", options.instructions),
                documents=options.segment_documents(),
                proposals=proposals,
                media=None if options.media is None else read_media(options.media, artefact_store()),
            ),
            replace=options.replace,
        )
        doubt = preview(database, name).doubt
    every_system = find_protocol(options.protocol).max_outputs >= len(made.systems)
    shown = "×" if every_system else "of"  # an item has an output of each system, or of some
    kinds = ", ".join(ItemKind(kind).counted(count) for kind, count in made.kinds.items())
    lines = (
        f"campaign {name}: {counted(made.items, 'item')} {shown} {len(made.systems)} systems ({kinds})"
        + (f" on {counted(made.pages, 'page')}" if made.pages != made.items else "")
        + ", a draft",
        *([doubt] if doubt else []),
        f"next: creamtea campaign preview {quote(name)}, then creamtea campaign launch {quote(name)}",
    )
    show(options.json_output, made, lines)


def _proposals(
    database: Database, options: CampaignOptions
) -> tuple[list[Proposal] | None, ProposedBy | None]:
    if options.proposals_from is None:
        return None if options.proposals is None else read_proposals(options.proposals), None
    if options.proposals is not None:
        raise one_of_the_two()
    systems = names("--systems", options.systems)
    with database.session() as session:
        return proposals_of_metric(
            session, artefact_store().read, options.study, options.test_set, systems, options.proposals_from
        )


def _optional(option: str, listed: str | None) -> list[str]:
    return [] if listed is None else names(option, listed)


def _numbers(option: str, listed: str | None) -> list[int]:
    numbers = _optional(option, listed)
    if not all(number.isdecimal() for number in numbers):
        raise InputError(f"{option} {listed}: give numbers of references: 1, or 1,2")
    return [int(number) for number in numbers]


def _amount(option: str, written: str) -> int | float:
    """ "12" as a number of items, "0.1" and "10%" as a share."""
    try:
        if written.isdecimal():
            return int(written)
        share = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0.0 <= share < 1.0:
        raise InputError(f"{option} {written}: give a share below 1 (0.1 or 10%) or a number of items (12)")
    return share
