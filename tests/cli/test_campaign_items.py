"""What `creamtea campaign create` says of the items."""

from __future__ import annotations

from typing import Any

import pytest
from rated_study import fill_study

from creamtea.store.database import open_database


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
    study = [
        "--study",
        "jam",
        "--test-set",
        "test",
        "--systems",
        "plain,beam,scones",
        "--bad-references",
        "0",
    ]
    done = creamtea("campaign", "create", "first", *study, "--protocol", protocol)
    assert f" items {shown} systems (" in done.stdout
