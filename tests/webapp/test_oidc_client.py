"""Sign-in by OpenID Connect without a server: its settings, how it begins, and what it keeps."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from oidc_provider import ID, NAMES, SECRET, FakeProvider, running_provider
from starlette.requests import Request
from typer.testing import CliRunner

from creamtea.cli.main import app
from creamtea.errors import InputError
from creamtea.settings import SignIn
from creamtea_webapp.gate import sign_in
from creamtea_webapp.gate.sign_in import AttemptCookie, Provider, ProviderFailed


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with running_provider() as running:
        running.tell_the_truth({})
        yield running


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
    monkeypatch.setattr(sign_in, "MINUTES", -1)
    assert AttemptCookie(settings).opened(AttemptCookie(settings).sealed({"state": "abcdef"})) == {}
