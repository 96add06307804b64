"""`creamtea campaign link` in each state of a campaign."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    "whom",
    [["--rater", "anna"], ["--count", "2"], ["--participants"], ["--rater", "anna", "--subject", "a@b.org"]],
)
def test_links_for_raters_of_a_draft_and_of_a_closed_campaign(creamtea: Any, whom: list[str]) -> None:
    creamtea.draft_campaigns("first")
    link = ("campaign", "link", "first")
    draft = creamtea(*link, *whom)
    assert (draft.returncode, "http://" in draft.stdout) == (0, True)
    assert "`creamtea campaign launch first`" in draft.stderr
    creamtea("campaign", "launch", "first")
    launched = creamtea(*link, *whom[:2])
    assert (launched.returncode, launched.stderr) == (0, "")
    creamtea("campaign", "close", "first", "--reason", "enough")
    before = creamtea("links", "list").stdout
    closed = creamtea(*link, *whom)
    assert (closed.returncode, closed.stdout) == (2, "")
    assert "'first' is closed" in closed.stderr
    assert creamtea("links", "list").stdout == before
    assert "/enter#" in creamtea(*link, "--organiser").stdout


@pytest.mark.parametrize("whom", [["--participants"], ["--rater", "anna", "--subject", "a@b.org"]])
def test_a_table_is_of_links_of_raters(creamtea: Any, whom: list[str]) -> None:
    done = creamtea("campaign", "link", "first", *whom, "--csv")
    assert (done.returncode, "--csv is for links of raters" in done.stderr) == (2, True)
