"""What `creamtea campaign create` says of the items, and of options without the one that they are for."""

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
    done = creamtea("campaign", "create", "first", *CREATE, "--bad-references", "0", "--protocol", protocol)
    assert f" items {shown} systems (" in done.stdout


@pytest.mark.parametrize(
    ("options", "partner"),
    [
        (["--metrics", "bleu"], "--select disagreement"),
        (["--random-share", "0.5"], "--select disagreement"),
        (["--strata", "document", "--select", "differing"], "--select stratified"),
        (["--segments-per-page", "3"], "--unit document"),
        (["--failing-code", "FAIL"], "--attention FILE"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(creamtea: Any, options: list[str], partner: str) -> None:
    refused = creamtea("campaign", "create", "first", *CREATE, *options)
    assert refused.returncode == 2
    assert f"{options[0]} is for {partner}: add it, or leave this out" in refused.stderr
