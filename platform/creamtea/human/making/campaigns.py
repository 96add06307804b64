"""Campaigns: human evaluations of some systems on one test set, from a study or from files.

The texts are copied into the campaign's items, so that a later clean-up of the study does not change what was
rated.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Subquery, case, delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from creamtea.access import audit
from creamtea.document.mistakes import one_of
from creamtea.document.mistakes import shown as shown_value
from creamtea.errors import InputError, about, wrong
from creamtea.human.making.choosing import PART_CONTEXT, choose, draw_blocks, make_pages
from creamtea.human.making.controls import with_controls
from creamtea.human.making.item_files import files_by_target, with_files, with_identities
from creamtea.human.making.known_answers import written_items
from creamtea.human.making.proposals import FIELD, Proposal, add_proposals
from creamtea.human.making.settings import USUAL_PROTOCOL, CampaignSettings, share_given_out
from creamtea.human.making.texts import (
    Documents,
    Texts,
    check_names,
    domain_settings,
    read_metric,
    study_texts,
)
from creamtea.human.media import GivenFile, store_media
from creamtea.human.protocols import Protocol, find_protocol, protocol_names
from creamtea.human.rating.page import is_first_of_page
from creamtea.human.rating.places import THIRD_PLACES
from creamtea.human.record import ItemContent, fields_without, of_systems, output_numbers
from creamtea.store import MAX_INDEXED
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign, find_study
from creamtea.store.rows import from_row
from creamtea.store.tables import (
    CONTROL_KINDS,
    PLANNED_KINDS,
    SYSTEM_KINDS,
    WRITTEN_KINDS,
    Assignment,
    Campaign,
    Item,
    ItemKind,
    Rater,
    StudyRow,
)
from creamtea.wording import key_name, option


@dataclass(frozen=True)
class CampaignSummary:
    """A campaign and its progress.

    `ratings`: submitted assignments of raters who are not excluded. `wanted`: ratings at the end of the
    campaign, without items that an adaptive design passed over and controls that their raters skipped; for an
    imported campaign the same as `ratings`. `items`, `ratings` and `wanted` leave out practice items and
    attention checks; `kinds` counts every kind.
    """

    id: int
    name: str
    study: str | None  # None: texts from files, or an import
    programme: str | None
    test_set: str
    languages: tuple[str, str]  # codes: source, target
    protocol: str
    state: str
    is_planned: bool  # False: an import
    systems: list[str]
    items: int
    pages: int  # pages of these items; fewer than items if documents are rated
    kinds: dict[str, int]
    raters: int
    ratings: int
    wanted: int


@dataclass(frozen=True, kw_only=True)
class CampaignRequest:
    """The contents of a new campaign; `seed` decides every random draw.

    A variant with several training seeds takes part with its first seed.
    """

    study: str  # "" with `texts`
    test_set: str
    systems: Sequence[str]
    protocol: str = USUAL_PROTOCOL
    settings: CampaignSettings = field(default_factory=CampaignSettings)
    ratings_per_item: int = 1
    seed: int = 1
    instructions: str = ""  # Markdown
    documents: Documents | None = None  # of the test set
    proposals: Sequence[Proposal] | None = None  # errors that are marked before a rater begins
    media: Sequence[GivenFile] | None = None  # files of sources and outputs
    texts: Texts | None = None  # from files, instead of a study


def store_draft(
    session: Session,
    name: str,
    request: CampaignRequest,
    *,
    replace: bool = False,
    actor: str = audit.COMMAND_LINE,
    programme: str | None = None,
) -> None:
    """Make a draft in the caller's transaction: choose items and controls from the outputs.

    Nobody rates before the draft is launched. `replace` rebuilds the draft of this name and keeps its raters.
    InputError if the study, the test set, a system or its outputs are missing, if the settings do not fit,
    or if the name is taken.
    """
    study, texts, settings, items = plan_campaign(session, name, request)
    # a programme's campaigns are named after its directions
    remedy = "choose another name" if programme is None else "leave the direction out of the file"
    row = _free_name(session, name, replace, remedy)
    replaced = row is not None
    if row is None:
        row = Campaign(name=name, state="draft", created_at=Database.now(session))
    else:
        session.execute(delete(Item).where(Item.campaign_id == row.id))
    row.study_id = None if study is None else study.id
    row.test_set, row.protocol = request.test_set, request.protocol
    row.systems, row.seed, row.programme = list(request.systems), request.seed, programme or row.programme
    row.source_language, row.target_language = texts.languages
    row.ratings_per_item, row.instructions = request.ratings_per_item, request.instructions
    row.settings = settings.model_dump(mode="json")
    session.add(row)
    try:
        session.flush()
    except IntegrityError as error:  # somebody else has taken the name since the check
        raise _taken(name, remedy) from error
    store_items(session, row, items)
    media = (entry for item in items for entry in item.media)
    sizes = {digest: size for given in request.media or () for digest, size in given.sizes.items()}
    store_media(session, row.id, media, sizes)
    detail = {"items": len(items), "made_anew": replaced}
    audit.record(session, row.id, actor, audit.CREATED, detail=detail)


def store_items(session: Session, campaign: Campaign, items: Sequence[ItemContent]) -> dict[int, Item]:
    """Store items and then their originals, which may follow their controls; return the rows by position."""
    numbers = output_numbers(campaign.systems)
    translated = ("segment", "systems", "media", "block", "original", "degraded", "proposals")
    rows = {
        item.position: Item(
            campaign_id=campaign.id,
            **fields_without(item, *translated),
            segment_index=item.segment,
            **of_systems(item, numbers),
        )
        for item in items
    }
    session.add_all(rows.values())
    session.flush()
    for item in items:
        if item.original is not None:
            rows[item.position].original_id = rows[item.original].id
    session.flush()
    return rows


def plan_campaign(
    session: Session | None, name: str, request: CampaignRequest
) -> tuple[StudyRow | None, Texts, CampaignSettings, list[ItemContent]]:
    """Return the study, the texts, the complete settings and the items of a new campaign; store nothing.

    Texts from files need no session. InputError as in `store_draft`.
    """
    protocol, systems = find_protocol(request.protocol), request.systems
    for key, message in mistakes_of(name, protocol, systems):
        raise InputError(message, about=key)
    study = baseline = None
    if request.texts is None:
        assert session is not None
        study = find_study(session, request.study)
        check_names(session, study, request.test_set, systems)
        baseline = study.spec.get("baseline")
    settings = request.settings.complete(protocol, systems, baseline)
    protocol = protocol.with_settings(settings.model_dump(mode="json"))
    for key, message in request.settings.beyond_scale(protocol):
        raise wrong(key, message)
    texts = request.texts
    if texts is None:
        assert session is not None
        assert study is not None
        texts = study_texts(session, study, request.test_set, systems, settings.show_reference)
    return study, texts, *_draw(session, study, texts, request, protocol, settings)


def mistakes_of(name: str, protocol: Protocol, systems: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the mistakes that do not depend on the texts: a key and a message each."""
    if not protocol.rated_here:
        imported = f"ratings of {protocol.name} are imported (creamtea campaign import)"
        others = ", ".join(protocol_names(rated_here=True))
        yield "protocol.kind", f"{imported}, and nobody can rate by it here; use {others}"
    try:
        check_length(name)
        if not name.strip():
            yield "name", "Enter a campaign name"
        elif not name.isprintable():
            yield "name", f"Enter a campaign name of printable characters, not {name!r}"
    except InputError as error:
        yield "name", str(error)
    fewest, most, listed = protocol.min_systems, protocol.max_systems, key_name("systems")
    if not fewest <= len(systems) <= most:
        compared = f"a campaign of {protocol.name} compares {fewest} to {most} systems, not {len(systems)}"
        yield "systems", f"{compared}: list them as {listed}"
    if len(set(systems)) != len(systems):
        yield "systems", f"a system is named twice in {listed}: name each once"


def check_length(name: str) -> None:
    """Raise InputError for a name that is too long for an index."""
    if len(name) > MAX_INDEXED:
        raise InputError(
            f"Enter a campaign name of at most {MAX_INDEXED} characters, not {len(name):,}", "name"
        )


def _free_name(session: Session, name: str, replace: bool, remedy: str) -> Campaign | None:
    """Return the draft to replace, or None if the name is free. InputError if the name is taken."""
    row = session.scalar(select(Campaign).where(Campaign.name == name).with_for_update())
    if row is None:
        return None
    if row.state != "draft":
        stays = "what was registered at its launch stays as it is"
        raise InputError(f"campaign {name!r} is {row.state}, and {stays}: {remedy}", about="name")
    if not replace:
        raise _taken(name, remedy)
    return row


def _taken(name: str, remedy: str) -> InputError:
    replacing = f"replace the draft with {option('replace')}"
    return InputError(f"campaign {name!r} already exists: {remedy}, or {replacing}", "name")


def _draw(
    session: Session | None,
    study: StudyRow | None,
    texts: Texts,
    request: CampaignRequest,
    protocol: Protocol,
    settings: CampaignSettings,
) -> tuple[CampaignSettings, list[ItemContent]]:
    """Draw the items. Return the settings, completed with facts about the draw, and all items in order."""
    test_set, systems, seed = request.test_set, request.systems, request.seed
    documents = request.documents
    by_strata = "document" in settings.strata and settings.select == "stratified"
    for needed, key in ((settings.by_documents, "sample.unit"), (by_strata, "sample.strata")):
        if needed and documents is None:
            file = f"{key_name('documents')}: a file with one line per segment"
            raise InputError(f"{key_name(key)} document needs {file}", about="documents")
    context = max(settings.context, PART_CONTEXT) if settings.by_documents else settings.context
    lines = texts.lines(test_set, None if documents is None else documents.names, context)
    with about("media"):
        names = {line.document for line in lines} - {""}
        files = files_by_target(request.media or (), names, len(lines), settings, systems)
        lines = with_identities(lines, files, systems)
    shown = texts.shown_references(settings.show_reference, test_set)
    human = texts.human if texts.study else texts.references
    metrics = []
    if settings.select == "disagreement":
        if study is None or session is None:
            raise wrong("sample.kind", "disagreement needs a study's metrics, and texts have none")
        metrics = [read_metric(session, study, test_set, systems, metric) for metric in settings.metrics]
    between = [systems.index(system) for system in settings.differ_between]
    choices, drawn = choose(lines, settings, seed, metrics, between)
    blocks = draw_blocks(choices, settings, systems, seed)
    rated = make_pages(choices, protocol, settings, systems, seed, blocks)
    if not rated and blocks is not None:
        alike = "the outputs that were drawn for a page differ nowhere: show more"
        raise wrong("sample.systems_per_page", alike)
    if not rated:
        raise wrong("protocol.pairs", "no pair with the baseline differs on the chosen segments: use all")
    with about("media"):
        for page in rated:
            for number, item in enumerate(page):
                of_page = files.get(("document", item.document), ()) if number == 0 else ()
                own = files.get(("segment", item.segment + 1), ())
                item = with_files(item, [*of_page, *own], protocol)
                page[number] = dataclasses.replace(item, references=tuple(shown[item.segment]))
    with about("practice"):
        tutorial = written_items(settings.tutorial, protocol, systems, files)
    references = {line.index: line.reference for line in lines}
    pages = with_controls(rated, references, settings, texts.languages[1], seed, len(tutorial))
    if request.proposals is not None:
        with about("protocol.proposals" if settings.proposed_by is None else FIELD):
            pages = add_proposals(pages, request.proposals, protocol, systems, lines)
    with about("attention.items"):
        checks = written_items(settings.attention, protocol, systems, files)
    domains = set() if documents is None else set(documents.domains.values())
    for domain in settings.domain_instructions:
        if domain not in domains:
            allowed = one_of(sorted(domains), domain, "there are")
            raise wrong(
                "raters.domain_instructions", f"no document is of domain {shown_value(domain)}; {allowed}"
            )
    facts = {"drawn": drawn, "references": [name for name in systems if name in human]}
    if documents is not None:
        facts |= domain_settings(documents.domains, test_set)
    all_pages = [*([item] for item in tutorial), *pages, *([item] for item in checks)]
    items: list[ItemContent] = []
    for page in all_pages:
        together = settings.by_documents and not ItemKind(page[0].kind).is_written
        first = len(items) if together else None
        items += (
            dataclasses.replace(item, position=position, page=first)
            for position, item in enumerate(page, start=len(items))
        )
    return settings.model_copy(update=facts), items


# ---------------------------------------------------------------- progress


@dataclass(frozen=True)
class KindProgress:
    """The progress of the items of one kind.

    `submitted` and `complete` leave excluded raters out. Practice items and attention checks are never
    complete, because every rater does them.
    """

    kind: str
    items: int
    passed_over: int  # items that an adaptive design did not draw: nobody gets them
    # submitted assignments at the end of the campaign: `ratings_per_item` for each item; for an import, as
    # many as were submitted
    wanted: int
    submitted: int
    complete: int  # items with all their ratings


def ratings_of_items(*of_campaigns: ColumnElement[bool]) -> Subquery:
    """Build a query with a row per item: its campaign, kind, `drawn`, `waits`, ratings `done` and `wanted`.

    `waits`: whether an adaptive design has not drawn its systems yet. Excluded raters do not count.
    `of_campaigns`: conditions on `Item.campaign_id`.
    """
    done, skipped = func.count(Assignment.submitted_at), func.count(Assignment.skipped_at)
    given = (
        select(Assignment.item_id, done.label("done"), skipped.label("skipped"))
        .join(Rater, Rater.id == Assignment.rater_id)
        .join(Item, Item.id == Assignment.item_id)
        .where(Rater.excluded_at.is_(None), *of_campaigns)
        .group_by(Assignment.item_id)
        .subquery()
    )
    have, skips = func.coalesce(given.c.done, 0), func.coalesce(given.c.skipped, 0)
    planned = case(
        (Item.drawn.is_(False), 0),
        (Item.kind == ItemKind.THIRD, THIRD_PLACES),
        # if a rater skips a control, nobody else gets it
        (Item.kind.in_(CONTROL_KINDS), Campaign.ratings_per_item - skips),
        else_=Campaign.ratings_per_item,
    )
    # including a rater again may give an item more ratings than were planned
    wanted = case((have > planned, have), else_=planned)
    waits = Item.drawn.is_(None) & Item.kind.in_((*SYSTEM_KINDS, *CONTROL_KINDS))
    return (
        select(
            *(Item.campaign_id, Item.kind, Item.drawn, waits.label("waits")),
            *(have.label("done"), wanted.label("wanted")),
        )
        .join(Campaign, Campaign.id == Item.campaign_id)
        .outerjoin(given, given.c.item_id == Item.id)
        .where(*of_campaigns)
        .subquery()
    )


def progress_by_kind(session: Session, campaign: Campaign) -> list[KindProgress]:
    """Return the progress of every kind of item that a campaign has, by name."""
    each = ratings_of_items(Item.campaign_id == campaign.id)
    drawn, in_all = each.c.drawn.is_not(False), each.c.wanted if campaign.is_planned else each.c.done
    share = share_given_out(campaign)
    enough = each.c.done >= (each.c.wanted if campaign.is_planned else 1)
    rows = session.execute(
        select(
            each.c.kind,
            func.count(),
            func.count().filter(~drawn),
            func.sum(in_all) - func.round((1 - share) * func.sum(case((each.c.waits, in_all), else_=0))),
            func.sum(each.c.done),
            func.count().filter(drawn, enough, each.c.kind.not_in(WRITTEN_KINDS)),
        )
        .group_by(each.c.kind)
        .order_by(each.c.kind)
    )
    return [KindProgress(kind, *map(int, counts)) for kind, *counts in rows]


def summary(database: Database, name: str) -> CampaignSummary:
    with database.session() as session:
        return summarised(session, [find_campaign(session, name)])[0]


def summaries(database: Database) -> list[CampaignSummary]:
    """Return every campaign, oldest first."""
    with database.session() as session:
        return summarised(session, session.scalars(select(Campaign).order_by(Campaign.id)).all())


def summarised(session: Session, campaigns: Sequence[Campaign]) -> list[CampaignSummary]:
    """Summarise campaigns, by a fixed number of queries."""
    ids = [row.id for row in campaigns]
    of_campaigns = Item.campaign_id.in_(ids)
    kinds: dict[int, dict[str, int]] = defaultdict(dict)
    counts = select(Item.campaign_id, Item.kind, func.count()).where(of_campaigns)
    for number, kind, count in session.execute(counts.group_by(Item.campaign_id, Item.kind)):
        kinds[number][kind] = count
    people = select(Rater.campaign_id, func.count()).where(Rater.campaign_id.in_(ids))
    raters = dict(session.execute(people.group_by(Rater.campaign_id)).all())
    each = ratings_of_items(of_campaigns).c
    undrawn = func.sum(case((each.waits, each.wanted), else_=0))
    totals = select(each.campaign_id, func.sum(each.done), func.sum(each.wanted), undrawn)
    totals = totals.where(each.kind.in_(PLANNED_KINDS)).group_by(each.campaign_id)
    shares = {row.id: share_given_out(row) for row in campaigns if row.is_planned}
    ratings = {
        number: (int(done), int(wanted) - round(int(undrawn) * (1 - shares.get(number, 1.0))))
        for number, done, wanted, undrawn in session.execute(totals)
    }
    pages = count_pages(session, ids)
    studies: dict[int | None, str] = dict(session.execute(select(StudyRow.id, StudyRow.name)).all())
    return [
        from_row(
            CampaignSummary,
            row,
            study=studies.get(row.study_id),
            languages=(row.source_language, row.target_language),
            items=sum(count for kind, count in kinds[row.id].items() if ItemKind(kind).is_planned),
            pages=pages.get(row.id, 0),
            kinds=dict(sorted(kinds[row.id].items())),
            raters=raters.get(row.id, 0),
            ratings=ratings.get(row.id, (0, 0))[0],
            wanted=ratings.get(row.id, (0, 0))[1 if row.is_planned else 0],
        )
        for row in campaigns
    ]


def from_files(session: Session, campaign_id: int) -> set[str]:
    """Return which files (documents, media, proposals) a draft needs again when it is replaced.

    The database keeps their content only in the draft's items.
    """
    rows = session.execute(
        select(Item.document, Item.media, Item.proposals).where(Item.campaign_id == campaign_id)
    ).all()
    used = {
        "documents": any(row.document for row in rows),
        "media": any(row.media for row in rows),
        "proposals": any((row.proposals or {}).values() for row in rows),
    }
    return {name for name, is_used in used.items() if is_used}


def count_pages(session: Session, campaigns: Sequence[int]) -> dict[int, int]:
    """Return the number of pages of each campaign, without practice items and attention checks."""
    first = Item.campaign_id.in_(campaigns), Item.kind.in_(PLANNED_KINDS), is_first_of_page()
    pages = select(Item.campaign_id, func.count()).where(*first).group_by(Item.campaign_id)
    return dict(session.execute(pages).all())
