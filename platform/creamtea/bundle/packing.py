"""Pack a study with everything that its report is computed from, and open such a bundle.

One snapshot of the database gives the rows and the report, so that they belong together. An opened bundle is
a database and an artefact store that last as long as it is open.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import insert, inspect, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

import creamtea
from creamtea.bundle.archive import (
    MANIFEST,
    TABLES,
    Archive,
    Difference,
    Manifest,
    PackedFile,
    PackedStudy,
    file_of,
    from_values,
    json_bytes,
    parse_lines,
    sha256,
    to_lines,
)
from creamtea.contract.step import MetricRow, PointRow, StepResult
from creamtea.errors import InputError, StepError
from creamtea.files import scratch_folder
from creamtea.human.making.texts import campaigns_of
from creamtea.human.media import check_stored
from creamtea.report.build import report_of
from creamtea.report.configuration import without_secrets
from creamtea.report.export import to_values
from creamtea.report.html import to_html
from creamtea.settings import sqlite_url
from creamtea.store.artefacts import ArtefactStore, StoredFile
from creamtea.store.database import Database, open_database
from creamtea.store.ingest import OF_STEP, ingest
from creamtea.store.ingest import TABLES as TEXT_FILES
from creamtea.store.queries import batches, find_study, steps_of, study_nodes
from creamtea.store.rows import from_row
from creamtea.store.schema import head
from creamtea.store.tables import (
    Assignment,
    Base,
    Blame,
    Campaign,
    CampaignMedia,
    Item,
    ItemKind,
    Metric,
    Point,
    Rater,
    Rating,
    StepFile,
    StepRow,
    StudyRow,
    StudyStep,
)

REPORT, PAGE, README = "report.json", "report.html", "README.txt"
# packages that the numbers may depend on
PACKAGES = ("numpy", "scipy", "sacrebleu", "sqlalchemy")

ABOUT = """A study of creamtea with its outputs, ratings, registered plans and report.

creamtea verify FILE   recomputes every number of it that needs no model, and says which differ

report.html            the report, for a browser
report.json            the same, with every number at full precision
files/                 segments with sources and references, outputs, segment scores: JSON Lines, by the
                       step's place in the study
tables/                the rows of the database: JSON Lines, a file per table; study.jsonl has the study
                       as it was run, metric.jsonl every metric, campaign.jsonl what was registered,
                       rating.jsonl the ratings (raters by pseudonym)
media/                 media files that raters saw or heard, by their SHA-256
manifest.json          versions, and the SHA-256 of every file
"""


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute."""
    return {
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in PACKAGES},
    }


def pack(
    database: Database, store: ArtefactStore, study: str | int, with_checks: bool = False
) -> dict[str, bytes]:
    """Return the files of the bundle of the study with this number, or the newest with this name.

    InputError for an unknown study, one that has not ended, and one whose outputs are gone. Without
    `with_checks` also for an open campaign with controls: the bundle would show them to its raters.
    """
    with database.session() as session:
        row = find_study(session, study)
        if row.state in ("queued", "running"):
            raise InputError(f"study {row.name!r} is {row.state}: bundle it once it has ended")
        rows = _rows(session, row)
        if not with_checks:
            _refuse_open_checks(rows[Campaign], rows[Item])
        left_out = _empty_secrets(session, rows[StudyRow], rows[Campaign])
        report = report_of(session, row, alone=True)  # without the secrets: it also shows the study's file
        files = {
            README: ABOUT.encode(),
            REPORT: json_bytes(to_values(report)),
            PAGE: to_html(report).encode(),
            **{file_of(table): to_lines(table, rows[table]) for table in TABLES},
        }
        places = places_of(session, row.id)
        for text in (file for file in rows[StepFile] if file.name in TEXT_FILES):
            node = places[text.step_key]
            if not store.exists(text.digest):
                raise InputError(
                    f"{node}: its file {text.name} is not in {store.root} any more: run the study again to "
                    "remake it"
                )
            files[place_of(node, text.name)] = store.read(text.digest)
        for media in rows[CampaignMedia]:
            check_stored(store, media.digest, media.type)
            files[media_file(media.digest)] = store.read(media.digest)
        manifest = Manifest(
            study=PackedStudy(row.name, row.id),
            creamtea=creamtea.__version__,
            schema=head(),
            versions=versions(),
            left_out=left_out,
            files={name: PackedFile(sha256(file), len(file)) for name, file in sorted(files.items())},
        )
    return {MANIFEST: json_bytes(asdict(manifest)), **files}


def _rows(session: Session, study: StudyRow) -> dict[type[Base], list[Any]]:
    keys = sorted(set(session.scalars(select(StudyStep.step_key).where(StudyStep.study_id == study.id))))
    campaigns, _ = campaigns_of(session, study)
    numbers, known = [campaign.id for campaign in campaigns], frozenset(keys)
    studies = {study.id, *(campaign.study_id for campaign in campaigns)}
    of_campaign = Item.campaign_id.in_(numbers)

    def ordered(table: type[Base], query: Any, *before: Any) -> list[Any]:
        """Return the rows in the order of these columns, then of their key."""
        return list(session.scalars(query.order_by(*before, *inspect(table).primary_key)))

    def of_steps(table: type[Base], column: Any) -> list[Any]:
        query = select(table)
        return [row for batch in batches(keys) for row in ordered(table, query.where(column.in_(batch)))]

    rows: dict[type[Base], list[Any]] = {
        StudyRow: ordered(StudyRow, select(StudyRow).where(StudyRow.id.in_(studies))),
        StepRow: of_steps(StepRow, StepRow.key),
        StudyStep: [  # places in other submissions show that their campaigns are about these outputs
            place
            for place in ordered(
                StudyStep,
                select(StudyStep).where(StudyStep.study_id.in_(studies)),
                *(StudyStep.study_id, StudyStep.position),
            )
            if place.step_key in known
        ],
        Campaign: campaigns,
        CampaignMedia: ordered(
            CampaignMedia, select(CampaignMedia).where(CampaignMedia.campaign_id.in_(numbers))
        ),
        Rater: ordered(Rater, select(Rater).where(Rater.campaign_id.in_(numbers))),
        # a control comes after its original
        Item: ordered(Item, select(Item).where(of_campaign), Item.original_id.is_not(None)),
        Assignment: ordered(Assignment, select(Assignment).join(Item).where(of_campaign)),
        Blame: ordered(Blame, select(Blame).where(Blame.campaign_id.in_(numbers), Blame.step_key.in_(keys))),
        Rating: ordered(Rating, select(Rating).join(Assignment).join(Item).where(of_campaign)),
    }
    for table in TABLES:
        if table not in rows:
            rows[table] = of_steps(table, table.__table__.c.step_key)
    return rows


def _refuse_open_checks(campaigns: list[Campaign], items: list[Item]) -> None:
    for campaign in campaigns:
        kinds = Counter(ItemKind(item.kind) for item in items if item.campaign_id == campaign.id)
        checks = [
            kind.counted(number) for kind, number in kinds.items() if kind.is_written or kind.is_control
        ]
        if campaign.state == "launched" and checks:
            raise InputError(
                f"campaign {campaign.name!r} is open, and the bundle would show its raters the checks "
                f"({', '.join(checks)}): close it first, or use --with-checks if they will not see it"
            )


def media_file(digest: str) -> str:
    """Return the path within a bundle of a media file."""
    return f"media/{digest}"


def places_of(session: Session, study: int) -> dict[str, str]:
    """Return the first place in the study of each step, by its key."""
    return {key: node.name for key, node in steps_of(study_nodes(session, study)).items()}


def place_of(node: str, name: str) -> str:
    """Return the path within a bundle of a step's file. `node`: the step's first place in the study."""
    parts = [quote(part, safe="+=,()") for part in node.split("/")]
    return "/".join(
        ["files", *(part if part.strip(".") else part.replace(".", "%2E") for part in parts), name]
    )


def _empty_secrets(session: Session, studies: list[StudyRow], campaigns: list[Campaign]) -> list[str]:
    """Empty the secret settings of campaigns, also within studies' files; return which were set."""
    left_out = []
    for study in studies:
        written, secrets = without_secrets(study.spec.get("campaigns", {}), place="campaigns")
        if secrets:
            session.expunge(study)
            study.spec = study.spec | {"campaigns": written}
            left_out += [f"{study_place(study)}: {name}" for name in secrets]
    for campaign in campaigns:
        settings, secrets = without_secrets(campaign.settings)
        if secrets:
            session.expunge(campaign)
            campaign.settings = settings
            if campaign.registered is not None:
                campaign.registered = without_secrets(campaign.registered)[0]
            left_out += [f"campaign {campaign.name}: {name}" for name in secrets]
    return left_out


def study_place(study: StudyRow) -> str:
    """Name a study in messages about a bundle, which may have several submissions of one study."""
    return f"study {study.id}"


Row = TypeVar("Row", bound=Base)


@dataclass(frozen=True)
class OpenedBundle:
    """An opened bundle.

    `study`: its number. `places`: each step's first place in the study, by its key. `differences`: files
    whose content is not what their steps stored.
    """

    database: Database
    store: ArtefactStore
    study: int
    places: dict[str, str]
    differences: list[Difference]


@contextmanager
def opened_bundle(archive: Archive) -> Iterator[OpenedBundle]:
    """Open a bundle; InputError if its schema is another, or its rows are inconsistent."""
    manifest = archive.manifest
    if manifest.schema != head():
        raise InputError(
            f"{archive.path}: packed by creamtea {manifest.creamtea} with database revision "
            f"{manifest.schema}; this creamtea has {head()}: verify it with the version that packed it"
        )
    with scratch_folder("bundle") as folder:
        store = ArtefactStore(Path(folder) / "artefacts")
        database = open_database(sqlite_url(Path(folder, "bundle.db")))
        try:
            with database.transaction() as session:
                try:
                    for table in TABLES:
                        if table not in OF_STEP and (values := _values(archive, table)):
                            session.execute(insert(table), values)
                    places = places_of(session, archive.manifest.study.number)
                    differences = _ingest(session, store, archive, places, Path(folder) / "files")
                    session.flush()
                except (SQLAlchemyError, StepError, OverflowError) as error:
                    first = str(getattr(error, "orig", error)).splitlines()[0]
                    raise InputError(f"{archive.path}: its rows are inconsistent: {first}") from None
            yield OpenedBundle(database, store, archive.manifest.study.number, places, differences)
        finally:
            database.close()


def _ingest(
    session: Session, store: ArtefactStore, archive: Archive, places: dict[str, str], folder: Path
) -> list[Difference]:
    step_files, metrics = _by_step(archive, StepFile), _by_step(archive, Metric)
    points = _by_step(archive, Point)
    differences: list[Difference] = []
    for number, key in enumerate(session.scalars(select(StepRow.key).order_by(StepRow.key)).all()):
        files, texts = [], {}
        for row in step_files[key]:
            file = from_row(StoredFile, row)
            if file.name in TEXT_FILES:
                place = place_of(places.get(key, key), file.name)
                texts[file.name] = archive.read(place)
                step_folder = folder / str(number)
                step_folder.mkdir(parents=True, exist_ok=True)
                (step_folder / file.name).write_bytes(texts[file.name])
                (stored,) = store.put_folder(step_folder)
                (step_folder / file.name).unlink()
                if stored != file:
                    differences.append(Difference(f"{place}: SHA-256", file.digest, stored.digest))
                file = stored
            files.append(file)
        curves = sorted(points[key], key=lambda point: point.position)
        result = StepResult(
            [from_row(MetricRow, row) for row in metrics[key]], [from_row(PointRow, row) for row in curves]
        )
        ingest(session, key, result, files, texts)
    return differences


def _values(archive: Archive, table: type[Base]) -> list[dict[str, Any]]:
    """Return the values for an INSERT into the table."""
    file = file_of(table)
    return from_values(table, parse_lines(archive.read(file), file), file)


def _by_step(archive: Archive, table: type[Row]) -> dict[str, list[Row]]:
    """Return the rows of each step by its key."""
    rows = defaultdict(list)
    for values in _values(archive, table):
        rows[str(values["step_key"])].append(table(**values))
    return rows
