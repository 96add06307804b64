"""A study of given outputs that has really run, with a rated campaign and one with marked errors, and its
bundle."""

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, call, runner
from media_files import CAPTIONS, png, wav
from ready_campaigns import PLAIN, launched_campaign
from relisted_bundles import relisted
from table_rows import NOON, assignment_row

from creamtea.bundle.archive import json_bytes, write_archive
from creamtea.bundle.packing import pack
from creamtea.bundle.verifying import Verification, verify
from creamtea.human.making.launching import registration
from creamtea.human.media import GivenFile, read_media
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database, open_database
from creamtea.store.tables import Blame, Campaign, CampaignMedia, Item, Rater, Rating, StepFile, StepRow

WORDS = ["der", "Hund", "bellt", "laut", "im", "Garten", "und", "niemand", "hört", "ihn", "heute", "Nacht"]
SEGMENTS = 12
SYSTEMS = ("gpt", "nllb")
SECRET = "PROLIFIC-7Q"


def texts() -> dict[str, list[str]]:
    draw = random.Random(5)
    reference = [" ".join(draw.choices(WORDS, k=7)) for _ in range(SEGMENTS)]

    def spoilt(share: float) -> list[str]:
        return [" ".join(w for w in line.split() if draw.random() > share) for line in reference]

    return {"src.en": [f"segment {n}" for n in range(SEGMENTS)], "ref.de": reference} | {
        system: spoilt(share) for system, share in zip(SYSTEMS, (0.1, 0.3), strict=True)
    }


@dataclass(frozen=True, repr=False)
class Home:
    """A data folder with the study, and the files of its bundle."""

    folder: Path
    database: Database
    store: ArtefactStore
    files: dict[str, bytes]

    def write(self, path: Path, **changed: bytes) -> Path:
        write_archive({**self.files, **changed}, path)
        return path


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("packed")
    for name, lines in texts().items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    url = f"sqlite:///{folder / 'creamtea.db'}"
    environment = {"CREAMTEA_HOME": str(folder / "home"), "CREAMTEA_DATABASE_URL": url}
    arguments = ["--source", "src.en", "--reference", "ref.de", "--languages", "en-de", "-q", *SYSTEMS]
    done = call({**os.environ, **environment}, "compare", "--name", "tea", *arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    database, store = open_database(url), ArtefactStore(folder / "home" / "artefacts")
    try:
        with_a_file_beside_outputs(database)
        rated(database, files_beside_sources(folder, store))
        marked(database)
        yield Home(folder, database, store, pack(database, store, "tea"))
    finally:
        database.close()
        shutil.rmtree(folder)


def with_a_file_beside_outputs(database: Database) -> None:
    """Add the file that exact search leaves beside its outputs, which no bundle holds."""
    with database.transaction() as session:
        (outputs, _) = session.query(StepRow).where(StepRow.kind == "outputs").all()
        session.add(StepFile(step_key=outputs.key, name="exact.jsonl", digest="0" * 64, size=1))


def files_beside_sources(folder: Path, store: ArtefactStore) -> list[GivenFile]:
    """A picture beside the first source; one and a sound with captions beside the third."""
    for number in (1, 3):
        (folder / f"{number}.png").write_bytes(png(number, number))
    lines = [{"segment": number, "file": f"{number}.png", "description": "a dog"} for number in (1, 3)]
    (folder / "3.wav").write_bytes(wav(0.1))
    (folder / "3.vtt").write_bytes(CAPTIONS)
    lines.append({"segment": 3, "file": "3.wav", "description": "a bark"})
    (folder / "media.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return read_media(folder / "media.jsonl", store)


def rated(database: Database, media: list[GivenFile]) -> None:
    """By two raters, with a completion code and a rater's name, which are nobody's business."""
    settings = PLAIN.model_copy(update={"completion_code": SECRET})
    launched_campaign(
        database, "coded", study="tea", test_set="test", systems=SYSTEMS, settings=settings, protocol="da"
    )
    launched_campaign(database, "taste", study="tea", test_set="test", systems=SYSTEMS, media=media)
    answer(database, "taste", lambda item, system, rater: {"step": (7 * item + 5 * system + 3 * rater) % 26})


def copied(row: Any, **changed: Any) -> Any:
    return type(row)(**{column.key: getattr(row, column.key) for column in row.__table__.columns} | changed)


def marked(database: Database) -> None:
    """ESA: a minor error at the beginning of each output."""
    with database.transaction() as session:
        (model,) = session.query(Campaign).where(Campaign.name == "taste")
        campaign = copied(model, id=None, name="marked", protocol="esa", registered=None)
        session.add(campaign)
        session.flush()
        for table in (Item, CampaignMedia):
            for row in session.query(table).where(table.campaign_id == model.id).all():
                session.add(copied(row, **({"id": None} if table is Item else {}), campaign_id=campaign.id))
        session.flush()
        campaign.registered = registration(session, campaign)

    def of(item: int, system: int, rater: int) -> dict[str, Any]:
        score = 40 + (item + 10 * system + rater) % 50
        span = {"start": 0, "end": 2, "severity": "minor"}
        return {"step": score, "payload": {"score": score, "spans": [span]}}

    answer(database, "marked", of)
    add_evidence(database)


def add_evidence(database: Database) -> None:
    """On where two of the marked errors come from, as `creamtea blame` stores it."""
    unknown = {"length": 5, "forbidden": None, "outcome": ""}
    with database.transaction() as session:
        campaign = session.query(Campaign).where(Campaign.name == "marked").one()
        key = session.query(StepRow.key).where(StepRow.kind == "outputs").limit(1).scalar()
        for item in session.query(Item).where(Item.campaign_id == campaign.id).limit(2):
            texts = {"output": item.outputs[0], "reference": f"doch {item.outputs[0]}"}
            candidates = [
                {"names": [name], "text": text, "score": -float(len(text)), **unknown}
                for name, text in texts.items()
            ]
            evidence = {"candidates": candidates, "normalization": 0.0, "tolerance": 1e-4}
            evidence["settings"] = {"below": None}
            place = {"campaign_id": campaign.id, "system": item.systems[0], "step_key": key, "key": ""}
            session.add(Blame(**place, segment_index=item.segment_index, evidence=evidence))


def answer(database: Database, name: str, of: Any) -> None:
    with database.transaction() as session:
        (campaign,) = session.query(Campaign).where(Campaign.name == name)
        for number, person in enumerate(("r1", "r2")):
            private = {"name": f"Annika Real-Name {number}", "participant": f"prolific-{number}"}
            rater = Rater(campaign_id=campaign.id, pseudonym=person, created_at=NOON, **private)
            session.add(rater)
            session.flush()
            for item in session.query(Item).where(Item.campaign_id == campaign.id).all():
                order, comment = [[system] for system in item.systems], "mail me: annika@example.org"
                assignment = assignment_row(item.id, rater.id, order, comment=comment)
                session.add(assignment)
                session.flush()
                given = {"assignment_id": assignment.id, "revision": 1, "created_at": NOON}
                session.add_all(
                    Rating(system=system, **given, **of(item.position, system, number))
                    for system in item.systems
                )


@pytest.fixture
def run(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """The command line in the test's folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CREAMTEA_HOME", str(home.folder / "home"))
    monkeypatch.setenv("CREAMTEA_DATABASE_URL", f"sqlite:///{home.folder / 'creamtea.db'}")
    return runner(monkeypatch, capsys)


@pytest.fixture
def own(home: Home, tmp_path: Path) -> Iterator[Database]:
    """A copy of the database, which a test may change."""
    with sqlite3.connect(home.database.url.database) as whole, sqlite3.connect(tmp_path / "own.db") as copy:
        whole.backup(copy)
    database = open_database(f"sqlite:///{tmp_path / 'own.db'}")
    yield database
    database.close()


@pytest.fixture
def verified(tmp_path: Path) -> Callable[[dict[str, bytes]], Verification]:
    """Verifies a bundle of these files, with a manifest that tells of no change."""

    def verify_files(files: dict[str, bytes]) -> Verification:
        path = tmp_path / "verified.zip"
        write_archive(relisted(files), path)
        return verify(path)

    return verify_files


Change = Callable[[Any], Any]


@pytest.fixture
def changed(home: Home, verified: Callable[[dict[str, bytes]], Verification]) -> Callable[..., Verification]:
    """Verifies a copy in which files were changed, and the manifest so that it does not tell."""

    def verify_changed(*changes: tuple[str, Change]) -> Verification:
        files = dict(home.files)
        for name, change in changes:
            text = files[name]
            if name.endswith(".jsonl"):
                rows = [json.loads(line) for line in text.splitlines()]
                change(rows)
                files[name] = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
            else:
                value = json.loads(text)
                change(value)
                files[name] = json_bytes(value)
            assert files[name] != text
        return verified(files)

    return verify_changed
