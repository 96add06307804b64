"""Files that a real Pearmut wrote, whose version is in the folders' names: exported campaigns that were rated
on its page in Chromium. bench/pearmut_run.py recorded them, and what it did."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pearmut_files import as_done, as_imported
from sqlalchemy import select

from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, find_format, import_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.making.known_answers import Attention, attention_of
from creamtea.store.database import Database
from creamtea.store.tables import Campaign

NOW = datetime(2026, 12, 1, tzinfo=UTC)
RECORDED = Path(__file__).parent / "pearmut"
FOLDERS = sorted(path.name for path in RECORDED.iterdir())


def facts(folder: str, name: str = "run") -> ImportFacts:
    return ImportFacts(name, campaign_file=RECORDED / folder / "campaign.json")


def done(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / folder / "done.json").read_text())
    return found


def test_there_are_files_of_every_protocol() -> None:
    assert {name.split("-", 1)[1] for name in FOLDERS} == {"da", "esa", "cesa", "mqm"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_score_and_every_place_is_what_was_done(folder: str) -> None:
    content, not_kept = find_format("pearmut").read(
        RECORDED / folder / "annotations.json", facts(folder), NOW
    )
    assert as_imported(content) == as_done(done(folder))
    assert [part.what for part in not_kept] == ["actions (their times are kept)"]
    kinds = sorted(item.kind for item in content.items)
    rated = 2 if "cesa" in folder else 4
    assert kinds == ["attention-check", *["rated"] * rated, "tutorial"]
    proposals = [item.proposals for item in content.items if item.proposals]
    category = {"category": ["Accuracy", "Mistranslation"]} if "mqm" in folder else {}
    fox = {"start": 4, "end": 4, "severity": "minor", **category}
    assert proposals == ([] if folder.endswith("-da") else [{"plain": [fox]}])


@pytest.mark.parametrize("folder", FOLDERS)
def test_checks_are_judged_and_the_campaign_goes_out_and_in_again(
    folder: str, other: Database, tmp_path: Path
) -> None:
    import_campaign(other, RECORDED / folder / "annotations.json", "pearmut", facts(folder), "test")
    with other.session() as session:
        number = session.scalars(select(Campaign.id).where(Campaign.name == "run")).one()
        found = list(attention_of(session, number).values())
    assert found == [Attention(answered=1, passed=1)] * 2
    for at, kind in enumerate(("pearmut", "csv")):
        export_campaign(other, "run", kind, tmp_path / kind, "test")
        import_campaign(other, tmp_path / kind, kind, ImportFacts(f"again-{at}"), "test")
        assert as_imported(collect(other, f"again-{at}")) == as_done(done(folder))
