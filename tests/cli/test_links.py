"""`creamtea links` as a person meets it."""

import re
from typing import Any


def test_links_are_listed_and_withdrawn(creamtea: Any) -> None:
    assert creamtea("links", "list").stdout == "no links\n"
    secret = creamtea("link").stdout.strip().split("#")[1]
    creamtea("link", "--role", "organiser")
    out = creamtea("links", "list").stdout
    minute = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
    assert re.fullmatch(
        rf"1  reader  created {minute}, expires {minute}\n2  organiser  created {minute}, expires {minute}\n",
        out,
    )
    assert secret not in out + creamtea("links", "list", "--json").stdout
    assert creamtea("links", "revoke", "1").stdout == "link 1 withdrawn\n"
    assert [one["role"] for one in creamtea.json("links", "list")] == ["organiser"]
    every = creamtea.json("links", "list", "--all")
    assert [one["revoked_at"] is None for one in every] == [False, True]
    assert f"withdrawn {every[0]['revoked_at'][:10]}" in creamtea("links", "list", "--all").stdout
    for number, why in (("1", "was withdrawn before"), ("7", "is not there")):
        again = creamtea("links", "revoke", number)
        assert again.returncode == 2
        assert again.stderr.startswith(f"creamtea: link {number} {why}")


def test_a_link_to_one_report_names_its_study(creamtea: Any) -> None:
    unknown = creamtea("link", "--study", "none")
    assert unknown.returncode == 2
    assert "no study" in unknown.stderr
    assert creamtea("link", "--study", "none", "--role", "organiser").returncode == 2
    assert creamtea("link", "--days", "0").returncode == 2
    assert creamtea("links", "list").stdout == "no links\n"
