"""Exports and imports by name, as the command line and the organiser's page ask for them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlalchemy import select

from creamtea.access import audit
from creamtea.errors import InputError
from creamtea.human.formats.appraise_campaign import read_appraise_campaign
from creamtea.human.formats.appraise_export import write_appraise
from creamtea.human.formats.content import Content
from creamtea.human.formats.elsewhere import ImportFacts, error_notices
from creamtea.human.formats.files import csv_records
from creamtea.human.formats.folder import FORMATS, read_folder, write_folder
from creamtea.human.formats.leaving_out import without_systems
from creamtea.human.formats.losses import (
    APPRAISE,
    MQM,
    MT_METRICS_EVAL,
    PEARMUT,
    NotKept,
    counts,
    look_alikes,
    not_held,
    repeats_kept,
)
from creamtea.human.formats.media import (
    FOLDER,
    MediaFiles,
    check_kept,
    keep_media,
    named,
    read_media_folder,
    write_media,
)
from creamtea.human.formats.mqm_tsv import read_mqm, write_mqm
from creamtea.human.formats.mt_metrics_eval import write_mt_metrics_eval
from creamtea.human.formats.mt_metrics_eval_import import read_mt_metrics_eval
from creamtea.human.formats.pearmut_export import write_pearmut
from creamtea.human.formats.pearmut_import import read_pearmut, read_with_files
from creamtea.human.formats.plain import read_ratings
from creamtea.human.formats.storing import (
    Imported,
    amounts,
    check_free,
    check_lengths,
    collect,
    store_campaign,
)
from creamtea.human.formats.whole_test_set import whole_test_set
from creamtea.human.making.settings import settings_of
from creamtea.human.media.files import FileStore
from creamtea.new_folder import new_folder, write_texts
from creamtea.spreadsheets import text_to_cell
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.store.tables import Rater
from creamtea.wording import option

ANSWERS = "raters.csv"  # what raters said of themselves
Reader = Callable[[Path, ImportFacts, datetime], tuple[Content, tuple[NotKept, ...]]]


def _read_own(
    kind: str, path: Path, facts: ImportFacts, now: datetime
) -> tuple[Content, tuple[NotKept, ...]]:
    """An export's folder, or one file of ratings with its columns."""
    if not path.is_dir():
        return read_ratings(path, kind, facts, now)
    if facts.protocol or facts.test_set or facts.pair:
        raise InputError(
            f"{option('protocol')}, {option('test-set')} and the languages stand in the folder's "
            "campaign.json: leave them out",
            about="protocol",
        )
    if facts.taxonomy is not None:
        raise InputError(
            f"{option('taxonomy')}: the folder's campaign.json says the campaign's own: leave it out",
            about="taxonomy",
        )
    content = replace(read_folder(path, kind), name=facts.name)
    facts = facts.for_systems(content.systems)
    given = {"baseline": facts.baseline, "delta": facts.delta}
    settings = content.settings | {key: value for key, value in given.items() if value is not None}
    answers = csv_records(path / ANSWERS) if (path / ANSWERS).is_file() else ()
    told = sum(any(cells[1:]) for at, (_, cells) in enumerate(answers) if at > 0)
    not_kept = counts({f"raters with answers to the campaign's questions ({ANSWERS})": told})
    return replace(content, settings=settings), not_kept


READERS: dict[str, Reader] = {
    **{kind: partial(_read_own, kind) for kind in FORMATS},
    APPRAISE: read_appraise_campaign,
    MQM: read_mqm,
    MT_METRICS_EVAL: read_mt_metrics_eval,
    PEARMUT: read_pearmut,
}
WRITERS: dict[str, Callable[[Content, Path], list[Path]]] = {
    **{kind: partial(write_folder, kind=kind) for kind in FORMATS},
    APPRAISE: write_appraise,
    MQM: write_mqm,
    PEARMUT: write_pearmut,
}
# where exports have the files beside sources
MEDIA_FOLDERS = dict.fromkeys((*FORMATS, PEARMUT), FOLDER)
EXPORTS = (*WRITERS, MT_METRICS_EVAL)
IMPORTS = tuple(READERS)


@dataclass(frozen=True)
class Exported:
    files: tuple[Path, ...]
    ratings: int  # scores in every revision
    not_kept: tuple[NotKept, ...] = ()  # what the format cannot hold of the campaign
    left_out: tuple[str, ...] = ()  # metrics that not every system has


def export_campaign(
    database: Database, name: str, kind: str, path: Path, actor: str, store: FileStore | None = None
) -> Exported:
    """Write a campaign into the folder `path`, new or empty, as one of EXPORTS; the log gets a line. `store`
    has the files beside its sources, where it has any.

    No rater's name or sign-in is in any file. Raises InputError, and then the folder is as it was, for what
    the format cannot hold, and where the folder cannot be written.
    """
    if kind not in EXPORTS:
        raise InputError(f"{option('format')} {kind}: it is one of {', '.join(EXPORTS)}", about="format")
    content = collect(database, name)
    if kind in MEDIA_FOLDERS:
        check_kept(content, store)
    left_out: tuple[str, ...] = ()
    with new_folder(path, option("output")):
        if kind == MT_METRICS_EVAL:
            whole = whole_test_set(database, content)
            files, left_out = write_mt_metrics_eval(content, whole, path), whole.left_out
        else:
            files = WRITERS[kind](content, path)
        if kind in FORMATS:
            files += _write_answers(database, name, path)
        if kind in MEDIA_FOLDERS:
            files += write_media(content, store, path / MEDIA_FOLDERS[kind])
        with database.transaction() as session:
            campaign = find_campaign(session, name)
            audit.record(session, campaign.id, actor, audit.EXPORTED, detail={"format": kind})
    return Exported(tuple(files), content.ratings, not_held(content, kind), left_out)


def _write_answers(database: Database, name: str, folder: Path) -> list[Path]:
    """Write what raters said of themselves, one per row; no file where nothing was asked."""
    with database.session() as session:
        campaign = find_campaign(session, name)
        questions = [question.ask for question in settings_of(campaign.settings).questions]
        people = session.scalars(
            select(Rater).where(Rater.campaign_id == campaign.id).order_by(Rater.pseudonym)
        ).all()
    if not questions:
        return []
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\r\n")
    table.writerow(["rater", *map(text_to_cell, questions)])
    for person in people:
        answers = [str((person.answers or {}).get(question, "")) for question in questions]
        table.writerow([text_to_cell(cell) for cell in (person.pseudonym, *answers)])
    return write_texts(folder, {ANSWERS: text.getvalue()})


def import_campaign(
    database: Database,
    path: Path,
    kind: str,
    facts: ImportFacts,
    actor: str,
    dry_run: bool = False,
    store: FileStore | None = None,
) -> Imported:
    """Store what is at `path`, one of IMPORTS, all of it or nothing; with `dry_run` only say what that would
    be. `store` gets the files beside sources, where there are any.

    InputError where `facts` say what the folder or the file says itself, or do not fit, and for settings that
    no campaign has.
    """
    if kind not in IMPORTS:
        raise InputError(f"{option('format')} {kind}: it is one of {', '.join(IMPORTS)}", about="format")
    if kind != APPRAISE and (facts.sources or facts.outputs or facts.documents or facts.segment_scores):
        raise InputError(
            f"{option('sources')}, {option('output-of')} and {option('documents')} are only for Appraise "
            f"scores: {option('format')} appraise",
            about="sources",
        )
    if kind != APPRAISE and (facts.statistics is not None or facts.first_segment is not None):
        raise InputError(
            f"{option('rater-statistics')} and {option('first-segment')} are only for Appraise scores: "
            f"{option('format')} appraise",
            about="rater-statistics",
        )
    if kind != MT_METRICS_EVAL and facts.scores is not None:
        raise InputError(f"{option('scores')} is only for {option('format')} mt-metrics-eval", about="scores")
    if kind != PEARMUT and facts.campaign_file is not None:
        raise InputError(
            f"{option('campaign-file')} is only for {option('format')} pearmut", about="campaign-file"
        )
    facts.pair  # noqa: B018  # one language without the other
    with database.session() as session:
        now = database.now(session)
        check_free(session, facts.name)
    files: Mapping[str, Path] = {}
    if kind == PEARMUT:
        content, not_kept, files = read_with_files(path, facts, now)
    else:
        content, not_kept = READERS[kind](path, facts, now)
    settings_of(content.settings)
    if facts.leave_out:
        content, left = without_systems(content, facts.for_systems(content.systems).leave_out)
        not_kept += left
    check_lengths(content)
    read_otherwise = (part for part in not_kept if part.note)
    notices = (*read_otherwise, *look_alikes(content), *repeats_kept(content), *error_notices(content))
    not_kept = tuple(part for part in not_kept if not part.note)
    media = MediaFiles()
    if named(content):
        beside = facts.campaign_file.parent if facts.campaign_file and not path.is_dir() else path
        media = read_media_folder(content, beside / MEDIA_FOLDERS[kind], files)
    if dry_run:
        return amounts(content, not_kept, notices)
    keep_media(media, store)
    return store_campaign(database, content, actor, path.resolve().name, not_kept, notices, media.sizes)
