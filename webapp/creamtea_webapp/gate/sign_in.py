"""Signing in by OpenID Connect: `/login` sends the browser to the provider, `/oauth2callback` takes it back
and opens the same session as a link does.

Streamlit's own st.login cannot do this here: the gate serves none of its pages without a session, and its
redirect loses the page that was asked for.
"""

from __future__ import annotations

import logging
from typing import Any

from anyio.to_thread import run_sync
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from creamtea.access import sign_in
from creamtea.settings import SignIn
from creamtea_webapp import session
from creamtea_webapp.gate.attempt import AttemptCookie
from creamtea_webapp.gate.entrance import address_of, keep_session
from creamtea_webapp.gate.limiter import Limiter
from creamtea_webapp.gate.paths import (
    CALLBACK,
    LOGIN,
    campaign_asked_for,
    kept_query,
    login_address,
    page_address,
)
from creamtea_webapp.gate.provider import NotBegun, NotProved, Provider, ProviderFailed
from creamtea_webapp.markup import render

MAX_CODE = 4096  # characters
ASKED = "asked"  # in an attempt, beside what the provider's client keeps there: the query of the page
log = logging.getLogger(__name__)


class SignInRoutes:
    """`url` is where people reach this server; without it each request's own address is taken."""

    def __init__(self, settings: SignIn, url: str | None) -> None:
        self.provider = Provider(settings)
        self.cookie = AttemptCookie(settings)
        self.issuer = settings.issuer
        self.url = url
        self.starts = Limiter(allowed=60)
        self.failures = Limiter()

    async def login(self, request: Request) -> Response:
        """302 to the provider, with a cookie that ties the sign-in to this browser."""
        if self.starts.blocked(address_of(request)):
            return _message("Too many people are signing in from your network. Wait a minute.", 429)
        self.starts.count(address_of(request))
        # the host of the request is whatever its sender says; a provider sends people to known addresses only
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
        """302 to the page that was asked for, with a session; or why not."""
        attempt = self.cookie.brought_by(request)
        # by attempt: only one that was begun here costs a question to the provider
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
        # RFC 9207: an answer that another provider made
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
    """The request with `attempt` as its session. The session of the request itself is Streamlit's."""
    return Request({**request.scope, "session": attempt})


def _out_of_reach(error: ProviderFailed, asked: str) -> Response:
    log.warning("the sign-in service: %s", error)
    return _message("The sign-in service is not working at the moment. Try again later.", 502, asked)


def _message(message: str, status: int, asked: str = "") -> Response:
    page = render("gate/message.html", message=message, sign_in=login_address(asked))
    return HTMLResponse(page, status_code=status)
