"""`/metrics` of the web app asks for a token; Streamlit's own metrics are for organisers."""

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from creamtea.access import sessions
from creamtea.access.sessions import Identity
from creamtea.store.database import Database
from creamtea_webapp import session
from creamtea_webapp.gate import routes
from creamtea_webapp.gate.middleware import Gate

TOKEN = "a-token-of-its-own"


def client(with_token: bool) -> TestClient:
    own = [routes.metrics_route(TOKEN)] if with_token else []
    inner = Route("/{path:path}", lambda request: PlainTextResponse("inside"))
    return TestClient(Starlette(routes=[*own, inner], middleware=[Middleware(Gate, metrics=with_token)]))


@pytest.fixture(autouse=True)
def app(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "database", lambda: database)


def test_the_token_opens_metrics_and_nothing_else() -> None:
    with_token = {"Authorization": f"Bearer {TOKEN}"}
    assert client(True).get("/metrics").status_code == 401
    assert "creamtea_controller_lease" in client(True).get("/metrics", headers=with_token).text
    for path in ("/", "/_stcore/metrics"):
        assert client(True).get(path, headers=with_token).status_code == 401
    assert client(False).get("/metrics", headers=with_token).status_code == 401


@pytest.mark.parametrize("role, status", [("organiser", 200), ("reader", 401), ("rater", 401)])
def test_streamlits_metrics_are_for_organisers(role: str, status: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(sessions, "identify", lambda database, cookie: Identity(7, role))
    assert client(True).get("/_stcore/metrics").status_code == status
