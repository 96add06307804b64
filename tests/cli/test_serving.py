"""What `creamtea serve` prints once it can be reached."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from creamtea.access import sessions
from creamtea.cli import main, serve
from creamtea.errors import InputError
from creamtea.plugins import Additions, BrokenPlugin, Plugin, Registry
from creamtea.settings import site_address

LINK = "creamtea campaign link "


@pytest.fixture
def greeting(creamtea: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("CREAMTEA_HOME", str(creamtea.home))
    monkeypatch.delenv("CREAMTEA_DATABASE_URL", raising=False)

    def printed(secret: str | None = "y") -> Any:
        capsys.readouterr()
        serve._greet(secret, "http://x", "127.0.0.1")
        return capsys.readouterr()

    return printed


def test_a_raters_link_is_suggested_for_the_newest_launched_campaign(creamtea: Any, greeting: Any) -> None:
    creamtea.draft_campaigns("first", "second", "third")
    assert LINK not in greeting().out  # drafts
    creamtea("campaign", "launch", "first")
    creamtea("campaign", "launch", "second")
    assert f"{LINK}second --rater" in greeting().out
    creamtea("campaign", "close", "second", "--reason", "enough")
    assert f"{LINK}first --rater" in greeting().out
    creamtea("campaign", "close", "first", "--reason", "enough")
    assert LINK not in greeting().out


def test_without_a_link_it_says_how_to_make_one(greeting: Any) -> None:
    assert "http://x/enter#y" in greeting().out
    printed = greeting(None).out
    assert "#" not in printed
    assert "creamtea link --role organiser --url http://x\n" in printed


def test_a_full_disk_ends_a_start_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first write is made before the server runs, which would log a traceback."""

    def full(*_: Any, **__: Any) -> None:
        raise OperationalError("UPDATE", {}, sqlite3.OperationalError("database or disk is full"))

    monkeypatch.setenv("CREAMTEA_HOME", str(tmp_path))
    monkeypatch.delenv("CREAMTEA_DATABASE_URL", raising=False)
    monkeypatch.setattr(sessions, "link_at_start", full)
    monkeypatch.setattr(serve._webapp(), "serve", lambda *_: pytest.fail("the server was started"))
    monkeypatch.setattr("sys.argv", ["creamtea", "serve", "--port", "0", "--no-browser"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert "disk is full; free some space" in said


def test_a_protocol_that_cannot_be_used_is_named(greeting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert greeting().err == ""
    broken = BrokenPlugin("stars", Plugin("tea-lab", "1.0"), "no script")
    monkeypatch.setattr(Registry, "added", lambda _: Additions({}, {}, [broken]))
    said = greeting().err
    assert "'stars' of tea-lab 1.0" in said
    assert "no script" in said


def test_only_an_address_to_which_links_can_be_appended() -> None:
    for address in (
        "https://rate.example.org",
        "http://127.0.0.1:8501",
        "http://[::1]:8501/rate",
        "https://xn--bcher-kva.example/rate",
    ):
        assert site_address(address) == site_address(f"{address}/") == address
    # browsers write the host in lower case, and no default port
    assert site_address("HTTPS://Rate.Example.org:443/Tea") == "https://rate.example.org/Tea"
    assert site_address("http://rate.example.org:80") == "http://rate.example.org"
    assert site_address("http://rate.example.org:443") == "http://rate.example.org:443"
    for wrong in (
        "https://bücher.example/rate",
        "rate.example.org",
        "ftp://rate.example.org",
        "https://rate.example.org?x=1",
        "https://rate.example.org/#x",
        "https://me@rate.example.org",
        "https://rate example.org",
        'https://rate".example.org',
        "https://rate.example.org:99999",
        "https://rate.example.org/a b",
        "https://rate.example.org/../x",
    ):
        with pytest.raises(InputError, match="write the address at which people reach this server"):
            site_address(wrong)
