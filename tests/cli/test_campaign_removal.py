"""`creamtea campaign rm` in each state of a campaign."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import pytest


def test_a_campaign_that_is_removed_is_gone(creamtea: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    creamtea.draft_campaigns("first")
    creamtea("campaign", "launch", "first")
    refused = creamtea("campaign", "rm", "first", "--yes")
    assert (refused.returncode, "creamtea campaign close first" in refused.stderr) == (2, True)
    creamtea("campaign", "close", "first", "--reason", "a trial")
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    asked = creamtea("campaign", "rm", "first")
    assert asked.returncode == 1
    assert re.search(r"remove campaign first with \d+ items, 0 raters and 0 answers for good\?", asked.stdout)
    assert creamtea.json("campaign", "rm", "first", "--yes")["campaign"] == "first"
    assert "no campaign 'first'" in creamtea("campaign", "status", "first").stderr
    assert creamtea("campaign", "rm", "first", "--yes").returncode == 2
