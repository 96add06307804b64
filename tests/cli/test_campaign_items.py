"""What `creamtea campaign create` says of the items, and of settings without the one that they are for."""

from __future__ import annotations

from typing import Any

import pytest
from rated_study import fill_study

from creamtea.store.database import open_database

CREATE = ["--study", "jam", "--test-set", "test", "--systems", "plain,beam,scones"]


@pytest.mark.parametrize(
    ("protocol", "shown"),
    [
        *[(protocol, "× 3") for protocol in ("contrastive-da", "cesa")],  # all side by side
        *[(protocol, "of 3") for protocol in ("da", "esa", "mqm", "post-edit", "preference")],
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


@pytest.mark.parametrize(
    ("setting", "needed"),
    [
        ("sample.metrics=[bleu]", "sample.kind disagreement"),
        ("sample.random_share=0.5", "sample.kind disagreement"),
        ("sample.strata=[document]", "sample.kind stratified"),
        ("sample.segments_per_page=3", "sample.unit document"),
        ("attention.failing_code=FAIL", "attention.items"),
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(creamtea: Any, setting: str, needed: str) -> None:
    refused = creamtea("campaign", "create", "first", *CREATE, "--set", setting)
    assert refused.returncode == 2
    key = setting.partition("=")[0]
    said = f"--set {setting}: {key}: does nothing without {needed}: add that, or leave this out"
    assert said in refused.stderr
