"""Exports and imports by name, as the command line and the organiser's page ask for them."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import select

from creamtea.errors import InputError
from creamtea.human import audit
from creamtea.human.campaigns import find_campaign
from creamtea.human.exchange.appraise_campaign import read_appraise_campaign
from creamtea.human.exchange.columns import text_to_cell
from creamtea.human.exchange.elsewhere import ImportFacts
from creamtea.human.exchange.folder import FORMATS, read_folder, write_folder
from creamtea.human.exchange.mqm_tsv import read_mqm
from creamtea.human.exchange.mt_metrics_eval import write_mt_metrics_eval
from creamtea.human.exchange.plain import read_ratings
from creamtea.human.exchange.storing import Imported, collect, store
from creamtea.human.exchange.whole_test_set import whole_test_set
from creamtea.human.settings import settings_of
from creamtea.store.database import Database
from creamtea.store.tables import Rater

MT_METRICS_EVAL = "mt-metrics-eval"
EXPORTS = (*FORMATS, MT_METRICS_EVAL)
APPRAISE = "appraise"
MQM = "mqm"
IMPORTS = (*FORMATS, APPRAISE, MQM)


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
        files += _write_answers(database, name, path)
    with database.transaction() as session:
        campaign = find_campaign(session, name)
        audit.record(session, campaign.id, actor, audit.EXPORTED, detail={"format": kind})
    return Exported(tuple(files), sum(len(answer.scores) for answer in content.answers), left_out)


def _write_answers(database: Database, name: str, folder: Path) -> list[Path]:
    """raters.csv: what raters said of themselves, one per row; no file where nothing was asked."""
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
    path = folder / "raters.csv"
    path.write_bytes(text.getvalue().encode())
    return [path]


def import_campaign(database: Database, path: Path, kind: str, facts: ImportFacts, actor: str) -> Imported:
    """Store an export's folder, a file of ratings, of Appraise or of Google's MQM, all of it or nothing.

    InputError where `facts` say what the folder or the file says itself, or do not fit.
    """
    if kind not in IMPORTS:
        raise InputError(f"--format {kind}: it is one of {', '.join(IMPORTS)}")
    if kind != APPRAISE and (facts.sources or facts.outputs or facts.documents):
        raise InputError(
            "--sources, --output-of and --documents are only for Appraise scores: --format appraise"
        )
    left_out: tuple[str, ...] = ()
    pair = facts.pair
    with database.session() as session:
        now = database.now(session)
    if kind == APPRAISE:
        content, left_out = read_appraise_campaign(path, facts, now)
    elif kind == MQM:
        content = read_mqm(path, facts, now)
    elif path.is_dir():
        if facts.protocol or facts.test_set or pair:
            raise InputError(
                "--protocol, --test-set and the languages stand in the folder's campaign.json: leave them out"
            )
        content = replace(read_folder(path, kind), name=facts.name)
    else:
        content = read_ratings(path, kind, facts, now)
    return store(database, content, actor, path.name, left_out)
