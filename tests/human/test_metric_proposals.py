"""Errors that a metric's scorer has found, marked before a rater begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import runner
from found_errors import MINOR, add_scores

from creamtea.errors import InputError
from creamtea.human.making import campaigns, launching
from creamtea.human.making.proposals import metrics_with_errors, proposals_of_metric
from creamtea.human.making.settings import CampaignSettings, ProposedBy, settings_of
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign, find_study
from creamtea.store.tables import Item

SYSTEMS = ["plain", "beam"]


@pytest.fixture
def store(tmp_path: Path) -> ArtefactStore:
    return ArtefactStore(tmp_path / "artefacts")


def of_metric(database: Database, store: ArtefactStore, metric: str = "finder") -> Any:
    with database.session() as session:
        return proposals_of_metric(session, store.read, "jam", "test", SYSTEMS, metric)


def with_errors(database: Database) -> list[str]:
    with database.session() as session:
        return metrics_with_errors(session, find_study(session, "jam"))


def test_metrics_whose_scorer_found_errors(
    study_database: Database, tmp_path: Path, store: ArtefactStore
) -> None:
    assert with_errors(study_database) == []
    add_scores(study_database, store, tmp_path, "plain", [[]] * 5, found_errors=False)
    assert with_errors(study_database) == []
    add_scores(study_database, store, tmp_path, "beam", [[]] * 5)
    assert with_errors(study_database) == ["finder"]


def test_from_the_metric_to_the_page(
    study_database: Database,
    tmp_path: Path,
    store: ArtefactStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    add_scores(
        study_database, store, tmp_path, "plain", [[MINOR], [], [], [], [MINOR, {"severity": "major"}]]
    )
    add_scores(study_database, store, tmp_path, "beam", [[], [MINOR], [], [], []])
    url = study_database.url.render_as_string(hide_password=False)
    monkeypatch.setenv("CREAMTEA_DATABASE_URL", url)
    monkeypatch.setenv("CREAMTEA_ARTEFACTS", str(tmp_path / "artefacts"))
    run = runner(monkeypatch, capsys)
    options = ["--study", "jam", "--test-set", "test", "--systems", "plain,beam", "--protocol", "esa"]
    options += ["--set", "controls={bad_references: 0, repeats: 0}"]
    options += ["--set", "protocol.proposals_from=finder"]
    code, _, told = run("campaign", "create", "c", *options)
    assert code == 0, told
    with study_database.session() as session:
        campaign = find_campaign(session, "c")
        assert settings_of(campaign.settings).proposed_by == ProposedBy(
            metric="finder", scorer="finder", version="1.0", digest="d1"
        )
        items = session.query(Item).filter_by(campaign_id=campaign.id)
        found = {(item.segment_index, *item.systems): item.proposals for item in items}
    assert found[0, 0] == {"0": [MINOR]}
    assert found[1, 1] == {"1": [MINOR]}
    assert found[4, 0] == {"0": [MINOR, {"severity": "major"}]}
    assert found[4, 1] == {"1": []}
    registered = launching.launch(study_database, "c")
    assert registered["settings"]["proposed_by"]["digest"] == "d1"
    code, _, told = run(
        "campaign", "create", "d", *options, "--set", f"protocol.proposals={tmp_path}/p.jsonl"
    )
    assert (code, "give one of the two" in told) == (2, True)


def test_what_a_metric_cannot_propose(study_database: Database, tmp_path: Path, store: ArtefactStore) -> None:
    add_scores(study_database, store, tmp_path, "plain", [[]] * 5)
    with pytest.raises(
        InputError, match=r"protocol.proposals_from: other: study 'jam' has no such metric; it has finder"
    ):
        of_metric(study_database, store, "other")
    with pytest.raises(InputError, match="'beam'"):
        of_metric(study_database, store)
    add_scores(study_database, store, tmp_path, "beam", [[]] * 5, found_errors=False)
    assert with_errors(study_database) == ["finder"]  # of one system, so that the message tells what is amiss
    with pytest.raises(InputError, match="no `spans` with the scores of beam: docs/scorers"):
        of_metric(study_database, store)


def test_two_versions_of_a_scorer_do_not_mix(
    study_database: Database, tmp_path: Path, store: ArtefactStore
) -> None:
    add_scores(study_database, store, tmp_path, "plain", [[]] * 5)
    add_scores(study_database, store, tmp_path, "beam", [[]] * 5, version="2.0")
    with pytest.raises(InputError, match="scored by different versions"):
        of_metric(study_database, store)


def test_the_campaign_checks_them_as_those_of_a_file(
    study_database: Database, tmp_path: Path, store: ArtefactStore
) -> None:
    critical = {"start": 0, "end": 1, "severity": "critical"}
    add_scores(study_database, store, tmp_path, "plain", [[], [critical], [], [], []])
    add_scores(study_database, store, tmp_path, "beam", [[]] * 5)
    proposals, _ = of_metric(study_database, store)
    request = campaigns.CampaignRequest(
        study="jam",
        test_set="test",
        systems=SYSTEMS,
        protocol="esa",
        settings=CampaignSettings(bad_references=0, repeats=0),
        proposals=proposals,
    )
    with pytest.raises(InputError, match=r"finder of plain, segment 2: .*minor or major, not critical"):
        campaigns.create_campaign(study_database, "c", request)
