"""Signing in by OpenID Connect: the cookie of an attempt, the provider, and the routes.

An attempt is kept in a cookie rather than in the database or this process. So any server behind a load
balancer can finish a sign-in that another began, nothing has to be cleaned up, and it is tied to its browser.
The cookie's key is made from the client's secret, which these servers share anyway. The provider promises
that its codes can be used only once (RFC 6749, section 4.1.2).
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from json import JSONDecodeError
from typing import Any

from anyio.to_thread import run_sync
from authlib.integrations.base_client import OAuthError
from authlib.integrations.base_client.errors import MismatchingStateError
from authlib.integrations.starlette_client import OAuth
from httpx2 import HTTPError, InvalidURL
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwe import JWERegistry
from joserfc.jwk import OctKey
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from creamtea.access import sign_in
from creamtea.access.sign_in import Person
from creamtea.settings import SignIn, is_safe_url
from creamtea_webapp import session
from creamtea_webapp.gate.paths import (
    CALLBACK,
    LOGIN,
    campaign_asked_for,
    kept_query,
    login_address,
    page_address,
)
from creamtea_webapp.gate.routes import Limiter, address_of, keep_session
from creamtea_webapp.markup import render

MINUTES = 10  # to sign in
ENCRYPTION = {"alg": "dir", "enc": "A256GCM"}
REGISTRY = JWERegistry(algorithms=list(ENCRYPTION.values()))


class AttemptCookie:
    def __init__(self, settings: SignIn) -> None:
        secret = f"creamtea sign-in {settings.issuer} {settings.client_secret}".encode()
        self._key = OctKey.import_key(hashlib.sha256(secret).digest())

    def keep(self, response: Response, request: Request, attempt: dict[str, Any]) -> None:
        """Keep the attempt, as JSON, in a cookie that the browser sends to the callback only."""
        response.set_cookie(
            self.name,
            self.sealed(attempt),
            max_age=MINUTES * 60,
            path=request.scope["below"] + CALLBACK,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )

    def brought_by(self, request: Request) -> dict[str, Any]:
        """Return the kept attempt; empty if it was never begun, is over, or was changed."""
        return self.opened(request.cookies.get(self.name, ""))

    def forget(self, response: Response, request: Request) -> None:
        response.delete_cookie(self.name, path=request.scope["below"] + CALLBACK)

    @property
    def name(self) -> str:
        return f"{session.cookie_name()}-sign-in"

    def sealed(self, attempt: dict[str, Any]) -> str:
        claims = {"attempt": attempt, "exp": int(time.time()) + MINUTES * 60}
        return jwt.encode(ENCRYPTION, claims, self._key, registry=REGISTRY)

    def opened(self, sealed: str) -> dict[str, Any]:
        try:
            claims = jwt.decode(sealed, self._key, registry=REGISTRY).claims
            jwt.JWTClaimsRegistry(exp={"essential": True}).validate(claims)
        except (JoseError, ValueError):
            return {}
        attempt: dict[str, Any] = claims["attempt"]
        return attempt


# The OpenID Connect provider: where people are sent to sign in, and what it then says about them.
#
# Authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636) by Authlib's Starlette client. Added
# to it here: the provider's description of itself is checked before it is used, only signatures that nobody
# but the provider can make are accepted, and its keys are fetched at each sign-in, so that new keys work at
# once.


TIMEOUT = 10.0  # seconds, for one answer of the provider
LEEWAY = 60  # seconds that its clock may differ
# Signatures by a key that only the provider has: neither "none" nor one by the shared secret.
ALGORITHMS = [f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512)]
ALGORITHMS += ["Ed25519", "EdDSA"]
CLIENT_AUTHENTICATION = ("client_secret_basic", "client_secret_post")  # the better one first
NO_ANSWER = (HTTPError, InvalidURL, ValueError, TypeError)  # the last two: JSON of a wrong kind


class ProviderFailed(Exception):
    """The provider gave no answer, or an unusable one. The message holds no secret."""


class NotBegun(Exception):
    """The provider's answer does not belong to a sign-in that this browser began."""


class NotProved(Exception):
    """The provider's answer does not prove an identity. The message holds no secret."""


class Provider:
    """An OpenID Connect provider.

    From `redirect` to `person`, a sign-in keeps its state, nonce and PKCE verifier in `request.session`. The
    caller keeps that dictionary where only this browser can bring it back.
    """

    def __init__(self, settings: SignIn) -> None:
        self.settings = settings
        self.description = f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        self._client = OAuth().register(
            "provider",
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            server_metadata_url=self.description,
            # no redirects: the secret goes where the provider said and no further
            client_kwargs={
                "scope": "openid email",
                "code_challenge_method": "S256",
                "timeout": TIMEOUT,
                "follow_redirects": False,
            },
        )

    async def redirect(self, request: Request, redirect_uri: str) -> RedirectResponse:
        """Send the browser to sign in. Raises ProviderFailed if the provider cannot be reached."""
        await self._discover()
        response: RedirectResponse = await self._client.authorize_redirect(request, redirect_uri)
        return response

    async def person(self, request: Request) -> Person:
        """Return who came back with this request.

        Raises ProviderFailed, NotBegun, or NotProved if the ID token does not hold.
        """
        await self._discover()
        try:
            await self._client.fetch_jwk_set(force=True)
        except NO_ANSWER as error:
            raise ProviderFailed(f"no keys: {type(error).__name__}") from None
        try:
            token = await self._client.authorize_access_token(
                request,
                leeway=LEEWAY,
                claims_options={
                    "iss": {"essential": True, "value": self.settings.issuer},
                    "aud": {"essential": True, "value": self.settings.client_id},
                    "sub": {"essential": True},
                    "exp": {"essential": True},
                },
            )
            token["id_token"]  # KeyError without it: then `userinfo` is not signed
            return _person(token["userinfo"])
        except MismatchingStateError:
            raise NotBegun from None
        except OAuthError as error:
            raise NotProved(f"the provider refused the code: {_error_code(error.error)}") from None
        except JoseError as error:
            raise NotProved(
                f"the ID token: {_error_code(error.error)}: {error.description[:100]!r}"
            ) from None
        except (HTTPError, JSONDecodeError) as error:
            raise ProviderFailed(f"no answer to the code: {type(error).__name__}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NotProved(f"the ID token or the keys are malformed: {type(error).__name__}") from None

    async def _discover(self) -> None:
        """Ask once for the provider's description of itself, and keep only what was checked."""
        try:
            metadata = await self._client.load_server_metadata()
        except NO_ANSWER as error:
            self._client.server_metadata = {}
            raise ProviderFailed(f"{self.description}: {type(error).__name__}") from None
        try:
            self._client.server_metadata = self._checked(metadata)
        except ProviderFailed:
            self._client.server_metadata = {}
            raise

    def _checked(self, metadata: dict[str, Any]) -> dict[str, Any]:
        if metadata.get("issuer") != self.settings.issuer:
            raise ProviderFailed(
                f"{self.description} does not name exactly the issuer {self.settings.issuer!r}"
            )
        endpoints = {}
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            endpoints[name] = metadata.get(name)
            if not is_safe_url(str(endpoints[name])):
                raise ProviderFailed(f"{self.description}: {name} is not an address with https://")
        offered = metadata.get("token_endpoint_auth_methods_supported") or CLIENT_AUTHENTICATION
        method = next((name for name in CLIENT_AUTHENTICATION if name in list(offered)), None)
        if method is None:
            raise ProviderFailed(f"{self.description}: takes no client secret")
        return {
            "_loaded_at": metadata["_loaded_at"],  # tells Authlib not to ask again
            "issuer": self.settings.issuer,
            "token_endpoint_auth_method": method,
            "token_endpoint_auth_methods_supported": [method],
            "id_token_signing_alg_values_supported": ALGORITHMS,
            **endpoints,
        }


def _person(claims: dict[str, Any]) -> Person:
    email = claims.get("email")
    verified = claims.get("email_verified") is True and isinstance(email, str)
    if not claims["sub"] or not claims["sub"].isprintable():
        raise ValueError("no subject")
    return Person(claims["iss"], claims["sub"], email if verified else None)


def _error_code(code: object) -> str:
    """Return an error's code if it looks like one: a provider may write anything."""
    return code if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,60}", code) else "no known code"


# Signing in by OpenID Connect: `/login` sends the browser to the provider, `/oauth2callback` takes it back
# and opens the same session as a link does.
#
# Streamlit's own st.login cannot do this here: the gate serves none of its pages without a session, and its
# redirect loses the page that was asked for.


MAX_CODE = 4096  # characters
ASKED = "asked"  # key of the page's query in an attempt, beside the keys of the provider's client
log = logging.getLogger(__name__)


class SignInRoutes:
    """The routes of signing in.

    `url` is where people reach this server; without it each request's own address counts.
    """

    def __init__(self, settings: SignIn, url: str | None) -> None:
        self.provider = Provider(settings)
        self.cookie = AttemptCookie(settings)
        self.issuer = settings.issuer
        self.url = url
        self.starts = Limiter(allowed=60)
        self.failures = Limiter()

    async def login(self, request: Request) -> Response:
        """Redirect to the provider, with a cookie that ties the sign-in to this browser."""
        if self.starts.blocked(address_of(request)):
            return _message("Too many people are signing in from your network. Wait a minute.", 429)
        self.starts.count(address_of(request))
        # a request may claim any host, but a provider sends people only to addresses that it knows
        here = (self.url or str(request.base_url)).rstrip("/")
        asked = kept_query(request.url.query)
        attempt: dict[str, Any] = {ASKED: asked}
        try:
            response = await self.provider.redirect(_with_attempt(request, attempt), here + CALLBACK)
        except ProviderFailed as error:
            return _out_of_reach(error, asked)
        self.cookie.keep(response, request, attempt)
        return response

    async def callback(self, request: Request) -> Response:
        """Redirect to the page that was asked for, with a session; or say why not."""
        attempt = self.cookie.brought_by(request)
        # counted by attempt: only attempts that began here cost a request to the provider
        tried = f"{address_of(request)} {request.cookies.get(self.cookie.name, '')}"
        if attempt and self.failures.blocked(tried):
            return _message("Too many failed sign-ins. Wait a minute.", 429)
        response = await self._finish(request, attempt)
        if attempt and response.status_code in (400, 401, 403):
            self.failures.count(tried)
        self.cookie.forget(response, request)
        return response

    async def _finish(self, request: Request, attempt: dict[str, Any]) -> Response:
        query = request.query_params
        asked = str(attempt.get(ASKED, ""))
        campaign_id = campaign_asked_for(QueryParams(asked))
        # RFC 9207: another provider's answer
        foreign = query.get("iss", self.issuer) != self.issuer
        refused = "error" in query or foreign or not 0 < len(query.get("code", "")) <= MAX_CODE
        if attempt and refused:
            return _message("The sign-in was not completed.", 401, asked)
        try:
            if not attempt:
                raise NotBegun
            person = await self.provider.person(_with_attempt(request, attempt))
            opened = await run_sync(sign_in.open_session, session.database(), person, campaign_id)
        except NotBegun:
            message = "This sign-in was started in another browser, or it took too long. Try again."
            return _message(message, 400, asked)
        except ProviderFailed as error:
            return _out_of_reach(error, asked)
        except NotProved as error:
            log.warning("a sign-in was refused: %s", error)
            return _message("The sign-in could not be verified.", 401, asked)
        except sign_in.NotRegistered:
            page = render("gate/unknown_person.html", person=person, sign_in=login_address(asked))
            return HTMLResponse(page, status_code=403)
        response = RedirectResponse(page_address(asked), status_code=302)
        keep_session(response, opened, request)
        return response


def routes(settings: SignIn, url: str | None = None) -> list[BaseRoute]:
    sign_in_routes = SignInRoutes(settings, url)
    return [
        Route(LOGIN, sign_in_routes.login, methods=["GET"]),
        Route(CALLBACK, sign_in_routes.callback, methods=["GET"]),
    ]


def _with_attempt(request: Request, attempt: dict[str, Any]) -> Request:
    """Return the request with `attempt` as its session. The request's own session is Streamlit's."""
    return Request({**request.scope, "session": attempt})


def _out_of_reach(error: ProviderFailed, asked: str) -> Response:
    log.warning("the sign-in service: %s", error)
    return _message("The sign-in service is not working at the moment. Try again later.", 502, asked)


def _message(message: str, status: int, asked: str = "") -> Response:
    page = render("gate/message.html", message=message, sign_in=login_address(asked))
    return HTMLResponse(page, status_code=status)
