"""People sign in by OpenID Connect: a real server against a provider on loopback, true and lying."""

import asyncio
import itertools
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from limits import ANSWER
from oidc_provider import ID, LIES, NAMES, SECRET, FakeProvider, running_provider
from rating_board import own_campaign
from sqlalchemy import select
from starlette.requests import Request
from table_rows import one_of
from typer.testing import CliRunner

from creamtea.access import audit, rights, sessions, sign_in
from creamtea.access.sessions import Identity
from creamtea.cli.main import app
from creamtea.errors import InputError
from creamtea.human.rating import raters
from creamtea.settings import SignIn
from creamtea.store.tables import Campaign
from creamtea_webapp.gate import sign_in as way_in
from creamtea_webapp.gate.paths import campaign_asked_for
from creamtea_webapp.gate.sign_in import AttemptCookie, Provider, ProviderFailed

ONE = [("source", ["gut", "schlecht"])]
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def running() -> Iterator[FakeProvider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(running: FakeProvider) -> FakeProvider:
    running.tell_the_truth({})
    return running


@pytest.fixture(scope="module")
def server_settings(running: FakeProvider) -> dict[str, str]:
    values = zip(NAMES, (running.issuer, ID, SECRET), strict=True)
    return {f"CREAMTEA_OIDC_{name}": value for name, value in values} | {"NO_PROXY": "127.0.0.1"}


class Browser(requests.Session):
    """A browser at an address of its own, since failures are counted by address."""

    def __init__(self, site: Any) -> None:
        super().__init__()
        self.trust_env = False
        self.site = site
        self.headers["X-Forwarded-For"] = f"192.0.2.{next(NUMBERS)}"

    def sign_in(self, query: str = "") -> requests.Response:
        return self.get(f"{self.site.url}/login{query}", timeout=ANSWER)

    @property
    def identity(self) -> Identity | None:
        secret = self.cookies.get(f"creamtea-{urlsplit(self.site.url).port}")
        return sessions.identify(self.site.database, secret)


@pytest.fixture(scope="module")
def site(own_site: Any) -> Any:
    return own_site


@pytest.fixture
def browser(site) -> Browser:
    return Browser(site)


def campaign(site: Any, **fields: Any) -> tuple[str, int]:
    name = f"signed-{next(NUMBERS)}"
    own_campaign(site.database, name, ONE, **fields)
    return name, one_of(site.database, select(Campaign.id).where(Campaign.name == name))


def register(site: Any, subject: str, **fields: Any) -> tuple[int, int]:
    """The ids of a new campaign and of its rater with this sign-in."""
    name, campaign_id = campaign(site, **fields)
    return campaign_id, raters.add(site.database, name, "test", subject=subject)


def organised(site: Any, email: str) -> int:
    """The id of a new campaign that this person organises."""
    name, campaign_id = campaign(site)
    sign_in.add_organiser(site.database, name, "test", email)
    return campaign_id


def somebody(email: str = "", verified: object = True, sub: str = "7") -> dict[str, Any]:
    return {"sub": sub} | ({"email": email, "email_verified": verified} if email else {})


# ---------------------------------------------------------------- who comes in


def test_a_registered_person_comes_in_and_back_to_the_page_asked_for(site, provider, browser) -> None:
    campaign_id, rater_id = register(site, "Anna@Example.org")
    asked = browser.get(f"{site.url}/?campaign={campaign_id}", timeout=ANSWER)
    assert asked.status_code == 401
    assert f'href="./login?campaign={campaign_id}"' in asked.text
    provider.user = somebody("anna@EXAMPLE.org")
    page = browser.sign_in(f"?campaign={campaign_id}")
    assert (page.status_code, page.url) == (200, f"{site.url}/?campaign={campaign_id}")
    callback = page.history[-1]
    assert callback.status_code == 302
    cookie = callback.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert callback.headers["cache-control"] == "no-store"
    who = browser.identity
    assert (who.role, who.rater_id, who.campaign_id) == ("rater", rater_id, campaign_id)
    last = audit.read(site.database, campaign_id)[-1]
    assert (last.action, last.actor) == (audit.SIGNED_IN, "rater-01")
    assert "example.org" not in str(audit.read(site.database, campaign_id)).lower()


def test_issuer_and_subject_do_without_an_address(site, provider, browser) -> None:
    _, rater_id = register(site, f"{provider.issuer}|Sub-8")
    provider.user = somebody(sub="sub-8")
    assert browser.sign_in().status_code == 403  # another case is another person
    provider.user = somebody(sub="Sub-8")
    assert browser.sign_in().status_code == 200
    assert browser.identity.rater_id == rater_id


def test_of_several_campaigns_the_one_asked_for_else_the_last_launched(site, provider) -> None:
    email = "bea@example.org"
    first, last = (register(site, email) for _ in range(2))
    register(site, email, state="closed")
    register(site, email, state="draft", launched_at=None)
    _, elsewhere = campaign(site)
    provider.user = somebody(email)
    for query, (campaign_id, rater_id) in ((f"?campaign={first[0]}", first), ("", last)):
        browser = Browser(site)
        assert browser.sign_in(query).status_code == 200
        assert (browser.identity.campaign_id, browser.identity.rater_id) == (campaign_id, rater_id)
    assert Browser(site).sign_in(f"?campaign={elsewhere}").status_code == 403


@pytest.mark.parametrize("asked", ["//evil.example", "https://evil.example", "99999999999", "-1", "²"])
def test_no_sign_in_leads_to_another_site(site, provider, browser, asked: str) -> None:
    email = f"{next(NUMBERS)}@example.org"
    register(site, email)
    provider.user = somebody(email)
    page = browser.get(f"{site.url}/login", params={"campaign": asked, "next": asked}, timeout=ANSWER)
    assert page.url.startswith(f"{site.url}/?campaign=")
    assert page.status_code == 200
    assert campaign_asked_for({"campaign": asked}) is None


# ---------------------------------------------------------------- who does not


@pytest.mark.parametrize("role", ["rater", "organiser"])
@pytest.mark.parametrize(
    "user",
    [
        somebody("nobody@example.org"),
        somebody("carl@example.org", verified=False),
        somebody("carl@example.org", verified="true"),
        {"sub": "9", "email": "carl@example.org"},
        somebody(sub="carl@example.org"),
        somebody("carl@example.org.evil.example"),
        somebody("<i>carl</i>@example.org"),
    ],
)
def test_an_unknown_or_unverified_person_is_sent_to_the_organiser(
    site, provider, browser, user, role
) -> None:
    email = "carl@example.org"
    campaign_id = organised(site, email) if role == "organiser" else register(site, email)[0]
    provider.user = user
    page = browser.sign_in(f"?campaign={campaign_id}")
    assert page.status_code == 403
    assert "Ask the organiser" in page.text
    assert "<i>" not in page.text
    assert browser.identity is None
    assert browser.get(f"{site.url}/", timeout=ANSWER).status_code == 401


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_opens_nothing(site, provider, browser, lie: str) -> None:
    email = f"{next(NUMBERS)}@example.org"
    register(site, email)
    organised(site, email)
    provider.user = somebody(email)
    LIES[lie](provider)
    page = browser.sign_in()
    assert page.status_code == 401, page.text
    assert browser.identity is None
    provider.tell_the_truth(somebody(email))
    assert browser.sign_in().status_code == 200  # nothing but the lie was in the way


def back_from(site: Any, browser: Browser, query: str = "") -> str:
    """The address of the way back of a sign-in, not yet opened."""
    to_provider = browser.get(f"{site.url}/login{query}", allow_redirects=False, timeout=ANSWER).headers[
        "location"
    ]
    return browser.get(to_provider, allow_redirects=False, timeout=ANSWER).headers["location"]


def test_the_way_back_is_taken_once_and_by_this_browser_only(site, provider, browser) -> None:
    register(site, "dora@example.org")
    provider.user = somebody("dora@example.org")
    other = Browser(site)
    theirs = back_from(site, other)
    assert browser.get(theirs, timeout=ANSWER).status_code == 400  # somebody else's way back
    assert browser.identity is None
    mine = back_from(site, browser)
    kept = browser.cookies.copy()
    assert browser.get(mine, allow_redirects=False, timeout=ANSWER).status_code == 302
    assert browser.identity is not None
    replay = Browser(site)
    replay.cookies.update(kept)
    assert replay.get(mine, timeout=ANSWER).status_code == 401  # the provider takes a code once
    assert replay.identity is None
    assert browser.get(mine, timeout=ANSWER).status_code == 400  # and this browser has forgotten the sign-in


def test_many_failures_are_refused_for_a_while(site, provider, browser) -> None:
    register(site, "emil@example.org")
    provider.user = somebody("emil@example.org")
    back_from(site, browser)
    kept = browser.cookies.copy()
    statuses = []
    for _ in range(12):  # the answer deletes the cookie; this browser keeps it
        browser.cookies.update(kept)
        statuses.append(browser.get(f"{site.url}/oauth2callback?state=x&code=y", timeout=ANSWER).status_code)
    assert statuses == [400] * 10 + [429] * 2
    other = Browser(site)
    other.headers["X-Forwarded-For"] = browser.headers["X-Forwarded-For"]
    assert other.sign_in().status_code == 200  # from the same network
    assert browser.get(f"{site.url}/login", allow_redirects=False, timeout=ANSWER).status_code == 302


# ---------------------------------------------------------------- the end


@pytest.mark.parametrize("end", [sessions.revoke_rater, raters.forget])
def test_a_rater_whose_links_are_revoked_is_out(site, provider, browser, end) -> None:
    email = f"{next(NUMBERS)}@example.org"
    campaign_id, rater_id = register(site, email)
    provider.user = somebody(email)
    assert browser.sign_in().status_code == 200
    end(site.database, rater_id, "test")
    assert browser.identity is None
    assert browser.get(f"{site.url}/", timeout=ANSWER).status_code == 401
    assert browser.sign_in(f"?campaign={campaign_id}").status_code == 403


def test_the_secret_and_the_codes_are_in_no_output(site, provider, browser) -> None:
    """A refusal leaves a warning, and nothing that lets anybody in."""
    register(site, "emil@example.org")
    provider.user = somebody("emil@example.org")
    browser.sign_in()
    for lie in ("expired", "another code", "no token at all"):
        LIES[lie](provider)
        assert browser.sign_in().status_code == 401
        provider.tell_the_truth(provider.user)
    written = site.log.read_text()
    assert "a sign-in was refused" in written
    assert SECRET not in written
    assert len(provider.given) >= 8
    assert [given for given in provider.given if given in written] == []


# ---------------------------------------------------------------- organisers


def test_an_organiser_comes_in_to_the_campaign_and_is_out_when_revoked(site, provider, browser) -> None:
    campaign_id = organised(site, "dora@example.org")
    provider.user = somebody("Dora@example.org")
    page = browser.sign_in(f"?campaign={campaign_id}")
    assert (page.status_code, page.url) == (200, f"{site.url}/?campaign={campaign_id}")
    who = browser.identity
    assert (who.role, who.rater_id, who.campaign_id) == ("organiser", None, campaign_id)
    assert rights.may(who, rights.MANAGE_RATERS, campaign_id)
    assert not rights.may(who, rights.MANAGE_RATERS, campaign_id + 1)
    assert not rights.may(who, rights.READ_STUDIES)
    (number,) = [one.id for one in sessions.list_links(site.database) if one.sign_in == "dora@example.org"]
    sessions.revoke(site.database, number, "test")
    assert browser.identity is None
    assert browser.get(f"{site.url}/", timeout=ANSWER).status_code == 401
    assert browser.sign_in(f"?campaign={campaign_id}").status_code == 403


def test_a_raters_address_gives_no_organisers_right(site, provider, browser) -> None:
    email = f"{next(NUMBERS)}@example.org"
    campaign_id, _ = register(site, email)
    organised(site, "other@example.org")
    provider.user = somebody(email)
    assert browser.sign_in(f"?campaign={campaign_id}").status_code == 200
    assert browser.identity.role == "rater"
    allowed = [action for action in rights.RIGHTS if rights.may(browser.identity, action, campaign_id)]
    assert allowed == [rights.RATE, rights.SEE_MEDIA]


# ---------------------------------------------------------------- two servers


@pytest.fixture
def second_server(site: Any, tmp_path: Path) -> Iterator[str]:
    """The address of another server process on the same database, at another address of this machine."""
    if sys.platform != "linux":
        pytest.skip("127.0.0.2 is not an address of this machine")
    with site.another_server("127.0.0.2", tmp_path / "second.log") as url:
        yield url


def test_another_server_can_finish_what_one_began(site, provider, browser, second_server: str) -> None:
    campaign_id, rater_id = register(site, "gil@example.org")
    provider.user = somebody("gil@example.org")
    back = back_from(site, browser, f"?campaign={campaign_id}").replace(site.url, second_server)
    kept = {cookie.name: cookie.value for cookie in browser.cookies}
    assert browser.get(back, timeout=ANSWER).status_code == 400  # the cookie is for the first server's host
    answer = browser.get(back, cookies=kept, allow_redirects=False, timeout=ANSWER)
    assert (answer.status_code, answer.headers["location"]) == (302, f"./?campaign={campaign_id}")
    who = sessions.identify(site.database, answer.cookies.get(f"creamtea-{urlsplit(site.url).port}"))
    assert who.rater_id == rater_id


# ---------------------------------------------------------------- settings and beginnings, without a server


@pytest.mark.parametrize("given", [NAMES[:1], NAMES[1:], NAMES[::2]])
def test_half_a_configuration_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path, given) -> None:
    monkeypatch.setenv("CREAMTEA_HOME", str(tmp_path))
    for name in NAMES:
        monkeypatch.delenv(f"CREAMTEA_OIDC_{name}", raising=False)
    for name in given:
        monkeypatch.setenv(f"CREAMTEA_OIDC_{name}", "https://id.example.org")
    with pytest.raises(InputError) as refused:
        SignIn.load()
    for name in set(NAMES) - set(given):
        assert f"CREAMTEA_OIDC_{name}" in str(refused.value).split(":")[0]
    result = CliRunner().invoke(app, ["serve", "--port", "0", "--no-browser"])
    assert isinstance(result.exception, InputError)


def test_a_whole_configuration_keeps_its_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(NAMES, ("http://id.example.org", ID, SECRET), strict=True):
        monkeypatch.setenv(f"CREAMTEA_OIDC_{name}", value)
    with pytest.raises(InputError, match="address with https://"):
        SignIn.load()
    monkeypatch.setenv("CREAMTEA_OIDC_ISSUER", "https://id.example.org")
    assert SECRET not in repr(SignIn.load())


def begun(issuer: str) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """The query of the address at which a sign-in begins, and what is kept of it."""
    request = Request({"type": "http", "session": {}})
    redirect = Provider(SignIn(issuer, ID, SECRET)).redirect(request, "http://127.0.0.1/oauth2callback")
    with ThreadPoolExecutor(1) as thread:  # Playwright's loop runs in this one, if a browser has been used
        address = thread.submit(asyncio.run, redirect).result().headers["location"]
    assert address.startswith(issuer)
    return parse_qs(urlsplit(address).query), request.session


def test_the_provider_must_be_there_and_be_the_one(provider: FakeProvider) -> None:
    begun(provider.issuer)
    with pytest.raises(ProviderFailed, match="does not name exactly the issuer"):
        begun(f"{provider.issuer}/")
    with pytest.raises(ProviderFailed, match="ConnectError"):
        begun("http://127.0.0.1:1")


@pytest.mark.parametrize(
    "wrong",
    [
        {"token_endpoint": "http://id.example.org/token"},
        {"jwks_uri": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint_auth_methods_supported": ["private_key_jwt"]},
    ],
)
def test_an_unsafe_description_of_the_provider_is_refused(
    provider: FakeProvider, wrong: dict[str, Any]
) -> None:
    provider.described = wrong
    with pytest.raises(ProviderFailed):
        begun(provider.issuer)


def test_each_sign_in_has_its_own_state_nonce_and_challenge(provider: FakeProvider) -> None:
    (first, kept), (second, _) = begun(provider.issuer), begun(provider.issuer)
    for name in ("state", "nonce", "code_challenge"):
        assert first[name] != second[name]
    (attempt,) = kept.values()
    verifier = attempt["data"]["code_verifier"]
    assert len(verifier) >= 43  # RFC 7636
    assert verifier not in str(first)


def test_what_a_sign_in_keeps_is_sealed_and_short_lived(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = SignIn("https://id.example.org", ID, SECRET)
    sealed = AttemptCookie(settings).sealed({"state": "abcdef"})
    assert AttemptCookie(settings).opened(sealed) == {"state": "abcdef"}  # another server's cookie
    assert AttemptCookie(SignIn("https://id.example.org", ID, "another")).opened(sealed) == {}
    header, key, nonce, text, tag = sealed.split(".")
    for wrong in ("", "x", "é.é.é.é.é", f"{header}.{key}.{nonce}.{text[::-1]}.{tag}"):
        assert AttemptCookie(settings).opened(wrong) == {}
    monkeypatch.setattr(way_in, "MINUTES", -1)
    assert AttemptCookie(settings).opened(AttemptCookie(settings).sealed({"state": "abcdef"})) == {}
