"""Exports and imports by the name of a format, for the command line and the organiser's page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from sqlalchemy import select

from creamtea.access import audit
from creamtea.errors import InputError, wrong_option
from creamtea.files import lines_of, new_folder, write_texts
from creamtea.human.formats.appraise import Appraise
from creamtea.human.formats.base import Format, ImportFacts, NotKept, counts, first_line
from creamtea.human.formats.columns import read_text
from creamtea.human.formats.csv_jsonl import RATERS_FILE, CampaignExport
from creamtea.human.formats.losses import NOTICES
from creamtea.human.formats.mqm_tsv import MqmTsv
from creamtea.human.formats.mt_metrics_eval import MtMetricsEval
from creamtea.human.formats.pearmut import Pearmut
from creamtea.human.formats.rating_rows import error_notices
from creamtea.human.formats.storing import (
    check_free,
    check_kept,
    collect,
    keep_media,
    read_media_folder,
    store_import,
    whole_test_set,
    write_media,
)
from creamtea.human.making.campaigns import check_length
from creamtea.human.making.settings import settings_of
from creamtea.human.media import FileStore
from creamtea.human.protocols import find_protocol
from creamtea.human.record import (
    MEDIA_FOLDER,
    AnswerContent,
    Content,
    ItemContent,
    checked_name,
    media_types,
)
from creamtea.plugins import Registry
from creamtea.printable import csv_of, text_to_cell
from creamtea.store import MAX_INDEXED
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import WRITTEN_KINDS, Block, Rater
from creamtea.wording import file_name, option

# ---------------------------------------------------------------- formats by their names

BUILT_IN: dict[str, Format] = {
    each.name: each
    for each in (
        *(CampaignExport("csv", "CSV"), CampaignExport("jsonl", "JSON Lines")),
        *(Appraise(), MqmTsv(), MtMetricsEval(), Pearmut()),
    )
}
FORMATS = Registry("creamtea.formats", Format, BUILT_IN)


def find_format(name: str) -> Format:
    """Return the format of this name. InputError if it is unknown, or its plug-in is broken."""
    return FORMATS.find(name, f"{option('format')} {name}", about="format")


def recognise(path: Path) -> str:
    """Return the name of the format of a file or folder; InputError if no format recognises it."""
    text = "" if path.is_dir() else read_text(path)
    if not path.is_dir() and not first_line(text):
        raise InputError(f"{path.name}: an empty file; give a file with ratings")
    formats = FORMATS.usable()
    # tables with an export's columns come last: they recognise any file with some of the columns
    for name, found in reversed(formats.items()):
        located = found.located(path)
        if found.recognises(located, text if located == path else read_text(located)):
            return name
    if not path.is_dir():
        lines_of(text, path.name)  # InputError if carriage returns alone end them
    expected = "".join(f"\n  {name}: {found.expected}" for name, found in formats.items())
    raise InputError(
        f"{file_name(path)}: not one of the formats that can be read; say which is meant with "
        f"{option('format')}:{expected}",
        about="format",
    )


# ---------------------------------------------------------------- exports


@dataclass(frozen=True)
class Exported:
    files: tuple[Path, ...]
    ratings: int  # scores in every revision
    not_kept: tuple[NotKept, ...] = ()  # losses: the format cannot hold them
    left_out: tuple[str, ...] = ()  # metrics that not every system has


def export_campaign(
    database: Database, name: str, kind: str, path: Path, actor: str, store: FileStore | None = None
) -> Exported:
    """Write a campaign into the new or empty folder `path` in the format `kind`, and log it.

    `store` has the campaign's files beside sources, if any. No file has a rater's name or sign-in. InputError
    if the format cannot hold the campaign or the folder cannot be written; the folder is then unchanged.
    """
    found = find_format(kind)
    content = collect(database, name)
    if found.has_media:
        check_kept(content, store)
    with new_folder(path, option("output")):
        if found.of_test_set:
            content = replace(content, whole=whole_test_set(database, content))
        files, not_kept = found.write(content, path)
        if isinstance(found, CampaignExport):
            files += _write_answers(database, name, path)
        if found.has_media:
            files += write_media(content, store, path / MEDIA_FOLDER)
        with database.transaction() as session:
            campaign = find_campaign(session, name)
            audit.record(session, campaign.id, actor, audit.EXPORTED, detail={"format": kind})
    left_out = content.whole.left_out if content.whole else ()
    return Exported(tuple(files), content.ratings, not_kept, left_out)


def _write_answers(database: Database, name: str, folder: Path) -> list[Path]:
    """Write raters' answers about themselves, a row per rater; no file if the campaign asks nothing."""
    with database.session() as session:
        campaign = find_campaign(session, name)
        questions = [question.ask for question in settings_of(campaign.settings).questions]
        people = session.scalars(
            select(Rater).where(Rater.campaign_id == campaign.id).order_by(Rater.pseudonym)
        ).all()
    if not questions:
        return []
    rows = [["rater", *questions]]
    for person in people:
        answers = (str((person.answers or {}).get(question, "")) for question in questions)
        rows.append([person.pseudonym, *answers])
    return write_texts(folder, {RATERS_FILE: csv_of(map(text_to_cell, row) for row in rows)})


# ---------------------------------------------------------------- imports


@dataclass(frozen=True)
class Imported:
    """Counts of an import or a dry run: stored data, and each kind of loss."""

    campaign: str
    systems: int
    items: int
    raters: int
    ratings: int  # scores in every revision
    not_kept: tuple[NotKept, ...]
    notices: tuple[NotKept, ...]  # data that was not read as a reader may expect


def import_campaign(
    database: Database,
    path: Path,
    kind: str,
    facts: ImportFacts,
    actor: str,
    dry_run: bool = False,
    store: FileStore | None = None,
) -> Imported:
    """Store the campaign at `path` in the format `kind`, all of it or nothing.

    `dry_run`: only count what would be stored. `store` gets the files of items, if there are any.
    InputError if `facts` repeat or contradict the folder or file, and for invalid settings.
    """
    found = find_format(kind)
    _check_options(found, facts)
    _check_names(facts)
    _ = facts.pair  # InputError for one language without the other
    with database.session() as session:
        now = database.now(session)
        check_free(session, facts.name)
    content, not_kept = found.read(found.located(path), facts, now)
    settings_of(content.settings)  # InputError for invalid settings
    if facts.leave_out:
        content, left = without_systems(content, facts.for_systems(content.systems).leave_out)
        not_kept += left
    _check_lengths(content)
    read_otherwise = (part for part in not_kept if part.note)
    checks = (*NOTICES, error_notices)
    notices = (*read_otherwise, *chain.from_iterable(check(content) for check in checks))
    not_kept = tuple(part for part in not_kept if not part.note)
    media = {}
    if media_types(content):
        beside = facts.campaign_file.parent if facts.campaign_file and not path.is_dir() else path
        media = read_media_folder(content, beside / MEDIA_FOLDER, content.files)
    if not dry_run:
        keep_media(media, store)
        sizes = {digest: file.size for digest, file in media.items()}
        store_import(database, content, actor, path.resolve().name, not_kept, notices, sizes)
    return Imported(
        campaign=content.name,
        systems=len(content.systems),
        items=len(content.items),
        raters=len(content.raters),
        ratings=content.ratings,
        not_kept=not_kept,
        notices=notices,
    )


def _check_lengths(content: Content) -> None:
    """Raise InputError if the campaign's name or a pseudonym is too long for an index."""
    check_length(content.name)
    for rater in content.raters:
        if len(rater.pseudonym) > MAX_INDEXED:
            raise InputError(
                f"rater {rater.pseudonym[:40]!r}… has a pseudonym of {len(rater.pseudonym):,} characters; "
                f"allowed: at most {MAX_INDEXED}"
            )


def _check_names(facts: ImportFacts) -> None:
    """Raise InputError for an invalid name: an export of such a campaign could not be read."""
    for name in ("name", "test_set", "source_language", "target_language"):
        value, about = getattr(facts, name), name.replace("_", "-")
        try:
            checked_name("-" if value is None else value)
        except ValueError as error:
            what = "name of the campaign" if name == "name" else option(about)
            why = f", {error}" if str(error) else ""
            raise InputError(
                f"{what}: found {value[:60]!r}{why}; allowed: text that is not blank", about=about
            ) from None


def _check_options(chosen: Format, facts: ImportFacts) -> None:
    """Raise InputError for options that only other formats read."""
    for other in FORMATS.usable().values():
        for name in other.options:
            if name not in chosen.options and getattr(facts, name) not in (None, {}):
                about = name.replace("_", "-")
                only = f"{option(about)} is only for {option('format')} {other.name}"
                raise InputError(only, about=about)


def without_systems(content: Content, names: Collection[str]) -> tuple[Content, tuple[NotKept, ...]]:
    """Return the campaign without these systems, and the losses.

    Their ratings go, items that show only them, raters who rated only them, and practice items and checks,
    whose answers name systems by number. If scores are relative, every item that shows one of them goes: a
    preference over a removed system says nothing. Positions and orders on pages of the rest do not change.
    InputError for a system that the campaign does not have, and if no system would be left.
    """
    known = ", ".join(content.systems)
    for name in names:
        if name not in content.systems:
            raise wrong_option("leave-out", f"no such system; there are {known}", name)
        if name == content.settings.get("baseline"):
            other = f"it is the baseline; choose another with {option('baseline')}"
            raise wrong_option("leave-out", other, name)
    systems = tuple(system for system in content.systems if system not in names)
    if not systems:
        raise wrong_option("leave-out", f"no system would be left of {known}")
    relative = find_protocol(content.protocol, content.settings).relative
    gone = set(names)
    kept = {
        item.position: item
        for item in content.items
        if item.kind not in WRITTEN_KINDS
        and (gone.isdisjoint(item.systems) if relative else not gone.issuperset(item.systems))
    }
    # a control without its original, or without the system whose text was spoilt, checks nothing
    items = tuple(
        _item(item, gone)
        for item in kept.values()
        if (item.original is None or item.original in kept) and item.degraded not in gone
    )
    if not items:
        none_left = "every item shows one of these, so that no rating would be left"
        raise wrong_option("leave-out", none_left, ", ".join(names))
    pages = {item.page: item.position for item in reversed(items)}  # a page's first item names it
    items = tuple(item if item.page is None else replace(item, page=pages[item.page]) for item in items)
    positions = {item.position for item in items}
    answers = tuple(
        _answer(answer, gone)
        for answer in content.answers
        if answer.item in positions and any(set(group) - gone for group in answer.order)
    )
    busy = {answer.rater for answer in answers}
    idle = {answer.rater for answer in content.answers} - busy
    raters = tuple(person for person in content.raters if person.pseudonym not in idle)
    settings = dict(content.settings)
    if "references" in settings:
        settings["references"] = [name for name in settings["references"] if name not in gone]
    written = {item.position for item in content.items if item.kind in WRITTEN_KINDS}
    practice = sum(len(answer.scores) for answer in content.answers if answer.item in written)
    before, after = (sum(len(answer.scores) for answer in each) for each in (content.answers, answers))
    left = counts(
        {
            f"ratings of systems left out ({', '.join(names)})": before - after - practice,
            "answers to practice and checks": practice,
            "raters of these alone": len(idle),
        }
    )
    most = max(Counter(answer.item for answer in answers).values(), default=1)
    content = replace(
        content,
        systems=systems,
        items=items,
        answers=answers,
        raters=raters,
        settings=settings,
        ratings_per_item=min(content.ratings_per_item, most),
    )
    return content, left


def _item(item: ItemContent, gone: Collection[str]) -> ItemContent:
    stays = [place for place, system in enumerate(item.systems) if system not in gone]
    return replace(
        item,
        systems=tuple(item.systems[place] for place in stays),
        outputs=tuple(item.outputs[place] for place in stays),
        output_drawn=item.output_drawn and tuple(item.output_drawn[place] for place in stays),
        media=tuple(entry for entry in item.media if entry.get("system") not in gone),
        block=item.block and _block(item.block, gone),
        proposals=item.proposals
        and {system: errors for system, errors in item.proposals.items() if system not in gone},
    )


def _block(block: Block[str], gone: Collection[str]) -> Block[str]:
    """Return the same draw for the systems that stay."""
    stays = [place for place, system in enumerate(block["systems"]) if system not in gone]
    return {
        "systems": [block["systems"][place] for place in stays],
        "chances": [[block["chances"][row][place] for place in stays] for row in stays],
    }


def _answer(answer: AnswerContent, gone: Collection[str]) -> AnswerContent:
    order = (tuple(system for system in group if system not in gone) for group in answer.order)
    return replace(
        answer,
        order=tuple(group for group in order if group),
        scores=tuple(score for score in answer.scores if score.system not in gone),
    )
