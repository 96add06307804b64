"""`/metrics` for Prometheus, which shows a token instead of a session (CREAMTEA_METRICS_TOKEN)."""

from __future__ import annotations

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from creamtea.monitoring import CONTENT_TYPE, PATH, exposition, is_allowed
from creamtea_webapp import session


def route(token: str) -> Route:
    async def metrics(request: Request) -> Response:
        if not is_allowed(request.headers.get("authorization"), token):
            return PlainTextResponse("", status_code=401, headers={"WWW-Authenticate": "Bearer"})
        return Response(await run_sync(exposition, session.database()), media_type=CONTENT_TYPE)

    return Route(PATH, metrics, methods=["GET"])
