"""Signing in by OpenID Connect: `/login` sends the browser to the provider, `/oauth2callback` takes it back
and opens the same session as a link does.

Streamlit's own st.login cannot do this here: the gate serves none of its pages without a session, and its
redirect loses the page that was asked for.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from html import escape

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from creamtea.human import sign_in
from creamtea.human.sign_in import Person
from creamtea.settings import SignIn
from creamtea_webapp import session
from creamtea_webapp.gate.entrance import Limiter, keep_session
from creamtea_webapp.gate.middleware import PAGE, sign_in_link
from creamtea_webapp.gate.paths import CALLBACK, LOGIN, campaign_asked_for
from creamtea_webapp.gate.provider import Attempt, NotProved, Provider, ProviderFailed

MINUTES = 10  # to sign in
LONGEST_CODE = 4096  # characters
log = logging.getLogger(__name__)


class Attempts:
    """Sign-ins that have begun, each taken once, forgotten after MINUTES; at most `most`, the oldest go."""

    def __init__(self, most: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self.most, self.clock = most, clock
        self._begun: OrderedDict[str, tuple[float, Attempt]] = OrderedDict()

    def keep(self, attempt: Attempt) -> None:
        self._begun[attempt.state] = (self.clock(), attempt)
        if len(self._begun) > self.most:
            self._begun.popitem(last=False)

    def take(self, state: str) -> Attempt | None:
        begun, attempt = self._begun.pop(state, (0.0, None))
        return attempt if attempt is not None and self.clock() - begun < MINUTES * 60 else None


class _SigningIn:
    def __init__(self, settings: SignIn, url: str | None) -> None:
        self.provider = Provider(settings)
        self.issuer = settings.issuer
        self.url = url
        self.attempts = Attempts()
        self.starts = Limiter(allowed=60)
        self.failures = Limiter()

    async def login(self, request: Request) -> Response:
        """302 to the provider, with a cookie that ties the sign-in to this browser."""
        address = _address(request)
        if self.starts.blocked(address):
            return _said("Too many people are signing in from where you are. Wait a minute.", 429)
        self.starts.failed(address)
        # the host of the request is whatever its sender says; a provider sends people to known addresses only
        here = self.url or str(request.base_url)
        attempt = Attempt(here.rstrip("/") + CALLBACK, campaign_asked_for(request.query_params))
        try:
            there = await run_sync(self.provider.address, attempt)
        except ProviderFailed as error:
            return self._out_of_reach(error, attempt)
        self.attempts.keep(attempt)
        response = RedirectResponse(there, status_code=302)
        response.set_cookie(
            _cookie(),
            attempt.state,
            max_age=MINUTES * 60,
            path=CALLBACK,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return response

    async def callback(self, request: Request) -> Response:
        """302 to the page that was asked for, with a session; or why not."""
        address = _address(request)
        if self.failures.blocked(address):
            return _said("Too many sign-ins have failed. Wait a minute.", 429)
        response = await self._finish(request)
        if response.status_code in (400, 401, 403):
            self.failures.failed(address)
        response.delete_cookie(_cookie(), path=CALLBACK)
        return response

    async def _finish(self, request: Request) -> Response:
        query = request.query_params
        state, mine = query.get("state", ""), request.cookies.get(_cookie(), "")
        same = bool(state) and hmac.compare_digest(state.encode(), mine.encode())
        attempt = self.attempts.take(state) if same else None
        if attempt is None:
            return _said("This sign-in was not begun in this browser, is over, or took too long.", 400)
        again = attempt.campaign_id
        code = query.get("code", "")
        # RFC 9207: an answer that another provider made
        foreign = query.get("iss", self.issuer) != self.issuer
        if "error" in query or foreign or not 0 < len(code) <= LONGEST_CODE:
            return _said("The sign-in was not completed.", 401, again)
        try:
            person = await run_sync(self.provider.person, attempt, code)
            opened = await run_sync(sign_in.open_session, session.database(), person, attempt.campaign_id)
        except ProviderFailed as error:
            return self._out_of_reach(error, attempt)
        except NotProved as error:
            log.warning("a sign-in was refused: %s", error)
            return _said("The sign-in could not be verified.", 401, again)
        except sign_in.NotRegistered:
            return _unknown(person, again)
        response = RedirectResponse("/" if again is None else f"/?campaign={again}", status_code=302)
        keep_session(response, opened, request)
        return response

    def _out_of_reach(self, error: ProviderFailed, attempt: Attempt) -> Response:
        log.warning("the sign-in service: %s", error)
        return _said(
            "The sign-in service does not answer as it should. Try again later.", 502, attempt.campaign_id
        )


def routes(settings: SignIn, url: str | None = None) -> list[BaseRoute]:
    """`url` is where people reach this server; without it each request's own address is taken."""
    signing_in = _SigningIn(settings, url)
    return [
        Route(LOGIN, signing_in.login, methods=["GET"]),
        Route(CALLBACK, signing_in.callback, methods=["GET"]),
    ]


def _cookie() -> str:
    return f"{session.cookie_name()}-sign-in"


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _unknown(person: Person, again: int | None) -> Response:
    """Who is known at the provider and not here is told what to tell the organiser."""
    by = person.email or person.identifier
    said = "You have signed in, but no study here knows you. Ask the organiser to add you as:"
    hint = "" if person.email else "<p>The sign-in service has verified no e-mail address of yours.</p>"
    page = f"<p>{said}</p>\n<p><code>{escape(by)}</code></p>\n{hint}"
    return HTMLResponse(PAGE.substitute(said=page, sign_in=sign_in_link(again)), status_code=403)


def _said(said: str, status: int, again: int | None = None) -> Response:
    page = PAGE.substitute(said=f"<p>{escape(said)}</p>", sign_in=sign_in_link(again))
    return HTMLResponse(page, status_code=status)
