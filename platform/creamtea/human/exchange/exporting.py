"""Exports and imports by name, as the command line and the organiser's page ask for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from creamtea.errors import InputError
from creamtea.human import audit
from creamtea.human.campaigns import find_campaign
from creamtea.human.exchange.appraise import read_appraise
from creamtea.human.exchange.appraise_campaign import AppraiseOptions, appraise_campaign
from creamtea.human.exchange.collecting import collect
from creamtea.human.exchange.folder import FORMATS, read_folder, write_folder
from creamtea.human.exchange.mt_metrics_eval import write_mt_metrics_eval
from creamtea.human.exchange.plain import RatingsFacts, read_ratings
from creamtea.human.exchange.storing import Imported, store
from creamtea.human.exchange.whole_test_set import whole_test_set
from creamtea.store.database import Database

MT_METRICS_EVAL = "mt-metrics-eval"
EXPORTS = (*FORMATS, MT_METRICS_EVAL)
APPRAISE = "appraise"
IMPORTS = (*FORMATS, APPRAISE)


@dataclass(frozen=True)
class Exported:
    files: tuple[Path, ...]
    ratings: int  # scores in every revision
    left_out: tuple[str, ...] = ()


def export_campaign(database: Database, name: str, kind: str, path: Path, actor: str) -> Exported:
    """Write a campaign into the folder `path`, new or empty, as one of EXPORTS; the log gets a line.

    No rater's name or sign-in is in any file. Raises InputError, and then the folder is as it was, for what
    the format cannot hold.
    """
    if kind not in EXPORTS:
        raise InputError(f"--format {kind}: it is one of {', '.join(EXPORTS)}")
    content = collect(database, name)
    left_out: tuple[str, ...] = ()
    if kind == MT_METRICS_EVAL:
        whole = whole_test_set(database, content)
        files, left_out = write_mt_metrics_eval(content, whole, path), whole.left_out
    else:
        files = write_folder(content, path, kind)
    with database.transaction() as session:
        campaign = find_campaign(session, name)
        audit.record(session, campaign.id, actor, audit.EXPORTED, detail={"format": kind})
    return Exported(tuple(files), sum(len(answer.scores) for answer in content.answers), left_out)


def import_export(database: Database, name: str, path: Path, kind: str, actor: str) -> Imported:
    """Store an export's folder (`write_folder`) as the campaign `name`, all of it or nothing."""
    return store(database, replace(read_folder(path, kind), name=name), actor, path.name)


def import_ratings(database: Database, facts: RatingsFacts, path: Path, kind: str, actor: str) -> Imported:
    """Store one file of ratings, made elsewhere or taken out of an export, all of it or nothing."""
    with database.session() as session:
        now = database.now(session)
    return store(database, read_ratings(path, kind, facts, now), actor, path.name)


def import_appraise(database: Database, options: AppraiseOptions, path: Path, actor: str) -> Imported:
    """Store the scores of one language pair in a file of Appraise, all of them or nothing."""
    file = read_appraise(path)
    with database.session() as session:
        now = database.now(session)
    left_out = f"{file.document_scores} scores of whole documents"
    content = appraise_campaign(file, options, now)
    return store(database, content, actor, path.name, (left_out,) if file.document_scores else ())
