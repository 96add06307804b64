"""What `creamtea campaign create` says of the items, and of settings without the one that they are for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rated_study import fill_study

from creamtea.human.making.campaigns import summaries
from creamtea.store.database import open_database
from creamtea.store.queries import find_campaign

CREATE = ["--study", "jam", "--test-set", "test", "--systems", "plain,beam,scones"]


@pytest.mark.parametrize(
    ("protocol", "shown"),
    [
        ("contrastive-da", "× 3"),  # all side by side
        ("preference", "of 3"),
    ],
)
def test_how_many_outputs_an_item_shows(creamtea: Any, protocol: str, shown: str) -> None:
    database = open_database(f"sqlite:///{creamtea.home / 'creamtea.db'}")
    fill_study(database)
    database.close()
    done = creamtea(
        "campaign", "create", "first", *CREATE, "--set", "controls.bad_references=0", "--protocol", protocol
    )
    assert f" items {shown} systems (" in done.stdout


STUDY = """\
name: jam
languages: {source: en, target: de}
test_sets: {test: {kind: files, source: s, target: t}}
systems:
  plain: {outputs: {test: p}}
  beam: {outputs: {test: b}}
  scones: {outputs: {test: s}}
baseline: plain
campaigns:
  first: &campaign
    test_set: test
    systems: [plain, beam]
    protocol: {kind: contrastive-da}
    raters: {instructions: read.md}
    controls: {bad_references: 0, repeats: 0}
  second:
    <<: *campaign
    systems: [plain, scones]
"""


def test_all_campaigns_of_a_study_are_made_or_none(creamtea: Any, tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{creamtea.home / 'creamtea.db'}")
    fill_study(database)
    (tmp_path / "read.md").write_text("Read the source first.")
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    create = ("campaign", "create", str(study))
    refused = creamtea(*create, "--set", "campaigns.second.sample.differ_between=[plain, beam]")
    assert refused.returncode == 2
    assert "campaigns.second.sample.differ_between=[plain, beam]: " in refused.stderr
    assert summaries(database) == []
    refused = creamtea(*create, "--items", "3")
    assert "--set campaigns.NAME.sample.items=50" in refused.stderr
    done = creamtea(*create, "--set", "campaigns.second.sample.items=2")
    assert done.stdout.count("a draft\n") == 2
    made = {campaign.name: campaign for campaign in summaries(database)}
    assert {name: (campaign.items, campaign.study) for name, campaign in made.items()} == {
        "first": (4, "jam"),
        "second": (2, "jam"),
    }
    with database.session() as session:
        assert find_campaign(session, "first").instructions == "Read the source first."
    database.close()


def test_a_studys_campaigns_are_checked_with_the_study(creamtea: Any, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY.replace("[plain, scones]", "[plain, scone]").replace("read.md", "gone.md"))
    refused = creamtea("validate", str(study)).stderr
    assert 'study.yaml:18: systems: found "scone", allowed one of plain, beam, scones' in refused
    assert "(did you mean scones?)" in refused
    assert "study.yaml:14: raters.instructions: " in refused
    study.write_text(STUDY.partition("campaigns:")[0])
    assert "is a study without campaigns" in creamtea("campaign", "create", str(study)).stderr
