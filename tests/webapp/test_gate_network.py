"""Proxies, HTTPS, floods of wrong links, open pages, signing out, the page asked for, and metrics."""

import json
import re
from contextlib import ExitStack
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from creamtea.access import sessions
from creamtea.access.sessions import Identity
from creamtea.errors import InputError
from creamtea.settings import Serving
from creamtea.store.database import Database
from creamtea_webapp import session
from creamtea_webapp.gate import middleware, routes
from creamtea_webapp.gate.connections import MAX_OF_SESSION
from creamtea_webapp.gate.middleware import Gate
from creamtea_webapp.gate.routes import MAX_COUNTED, Limiter

COOKIE = "creamtea-8501"
PROXY = ("192.0.2.9", 1)


@pytest.fixture(autouse=True)
def app(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "database", lambda: database)
    monkeypatch.setattr(session, "cookie_name", lambda: COOKIE)


async def talk(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.receive()
    await websocket.send_text(websocket.headers.get("origin", "no origin"))


def page(request: Any) -> PlainTextResponse:
    response = PlainTextResponse("inside")
    response.set_cookie("streamlit", "1")
    return response


def client(trusted: str = "127.0.0.1", **options: Any) -> TestClient:
    inner = Starlette(
        routes=[*routes.entrance_routes(), WebSocketRoute("/_stcore/stream", talk), Route("/kept", page)],
        middleware=[Middleware(Gate, **options)],
    )
    app = ProxyHeadersMiddleware(inner, trusted_hosts=trusted)
    return TestClient(app, client=PROXY, base_url="http://rate.example.org")


def enter(people: TestClient, database: Database, **headers: str) -> Any:
    return people.post("/enter", content=sessions.create_link(database, "reader"), headers=headers)


def test_cookies_are_secure_and_https_is_kept_where_the_address_says_so(database: Database) -> None:
    people = client(https=True)
    assert "; secure" in enter(people, database).headers["set-cookie"].lower()
    cookies = people.get("/kept", headers={"Cookie": cookie(database)}).headers.get_list("set-cookie")
    assert [one.lower().count("; secure") for one in cookies] == [1]
    assert people.get("/").headers["strict-transport-security"].startswith("max-age=")


@pytest.mark.parametrize("trusted, secure", [("192.0.2.0/24", True), ("127.0.0.1", False)])
def test_only_a_trusted_proxy_says_that_people_use_https(
    database: Database, trusted: str, secure: bool
) -> None:
    answer = enter(client(trusted), database, **{"X-Forwarded-Proto": "https"})
    assert ("secure" in answer.headers["set-cookie"].lower()) == secure
    assert "strict-transport-security" not in answer.headers


def cookie(database: Database) -> str:
    opened = sessions.exchange(database, sessions.create_link(database, "reader"))
    return f"{COOKIE}={opened.secret}"


def test_wrong_links_block_nobody_else_behind_the_same_address(database: Database) -> None:
    people = client()
    wrong = [people.post("/enter", content="wrong").status_code for _ in range(12)]
    assert wrong == [401] * 10 + [429] * 2
    assert enter(people, database).status_code == 204


def test_a_flood_of_wrong_links_takes_little_memory() -> None:
    limiter = Limiter()
    for number in range(MAX_COUNTED + 500):
        limiter.count(str(number))
    assert len(limiter._counts) == MAX_COUNTED


def test_pages_of_a_session_and_in_all_are_limited_with_a_message(database: Database) -> None:
    people = client(max_connections=MAX_OF_SESSION + 2)
    mine, theirs, third = ({"Cookie": cookie(database)} for _ in range(3))
    with ExitStack() as stack:
        for _ in range(MAX_OF_SESSION):
            stack.enter_context(people.websocket_connect("/_stcore/stream", headers=mine))
        with pytest.raises(WebSocketDenialResponse) as refused:
            people.websocket_connect("/_stcore/stream", headers=mine).__enter__()
        assert refused.value.status_code == 503
        told = people.get("/", headers=mine)
        assert told.status_code == 503
        assert f"{MAX_OF_SESSION} pages" in told.text
        for _ in range(2):
            stack.enter_context(people.websocket_connect("/_stcore/stream", headers=theirs))
        told = people.get("/", headers=third)
        assert told.status_code == 503
        assert "Too many people" in told.text
    assert people.get("/", headers=mine).status_code == 200
    with people.websocket_connect("/_stcore/stream", headers=mine):
        pass


@pytest.mark.parametrize(
    "origin, url, status",
    [
        ("http://evil.example", None, 403),
        ("http://testserver:8502", None, 403),  # another program of the same host
        ("http://testserver", None, None),
        ("https://rate.example.com", "https://rate.example.com/", None),  # a proxy replaced `Host`
        (None, None, None),  # no browser
    ],
)
def test_a_websocket_of_another_sites_page_is_refused_by_the_gate(
    database: Database, origin: str | None, url: str | None, status: int | None
) -> None:
    people, headers = client(url=url), {"Cookie": cookie(database)}
    headers |= {"Origin": origin} if origin else {}
    if status is None:
        with people.websocket_connect("/_stcore/stream", headers=headers) as websocket:
            websocket.send_text("")
            # Streamlit would ask an address outside whether it knows the origin
            assert websocket.receive_text() == "no origin"
    else:
        with pytest.raises(WebSocketDenialResponse) as refused:
            people.websocket_connect("/_stcore/stream", headers=headers).__enter__()
        assert refused.value.status_code == status


def test_signing_out_ends_this_session_only(database: Database) -> None:
    people = client()
    mine, other = cookie(database), cookie(database)
    assert people.get("/sign-out", headers={"Cookie": mine}).status_code == 200
    elsewhere = {"Cookie": mine, "Origin": "https://evil.example"}
    assert people.post("/sign-out", headers=elsewhere).status_code == 403
    assert people.get("/", headers={"Cookie": mine}).status_code == 200
    answer = people.post("/sign-out", headers={"Cookie": mine, "Origin": "http://rate.example.org"})
    assert "signed out" in answer.text
    assert "max-age=0" in answer.headers["set-cookie"].lower()
    assert people.get("/", headers={"Cookie": mine}).status_code == 401
    assert people.get("/", headers={"Cookie": other}).status_code == 200


@pytest.mark.parametrize(
    "asked, leads_to",
    [
        ("/?study=4&step=", "./?study=4&step="),
        ("/?study=a%20b%2F..", "./?study=a%20b%2F.."),
        ("/?" + "x" * 2000, "./"),
        ("/", "./"),
    ],
)
def test_a_link_leads_to_the_page_that_was_asked_for_before(
    database: Database, asked: str, leads_to: str
) -> None:
    people = client()
    assert people.get(asked).status_code == 401
    assert enter(people, database).headers["content-location"] == leads_to
    assert enter(people, database).headers["content-location"] == "./"  # once


@pytest.mark.parametrize("kept", ["/rate", ""])  # some proxies keep the path, some remove it
def test_pages_below_a_path_lead_to_each_other(database: Database, kept: str) -> None:
    people = client(url="https://example.org/rate/")
    asked = people.get(f"{kept}/?study=4")
    assert asked.status_code == 401
    assert "Path=/rate/enter" in asked.headers["set-cookie"]
    entered = people.post(f"{kept}/enter", content=sessions.create_link(database, "reader"))
    # the client, which plays the proxy, keeps the path of a cookie as a browser does
    assert entered.headers["content-location"] == ("./?study=4" if kept else "./")
    signed_in = {"Cookie": f"{COOKIE}={entered.cookies[COOKIE]}"}
    for path in ("/", "/kept", "/enter.js"):
        assert people.get(kept + path, headers=signed_in).status_code == 200
    with people.websocket_connect(f"{kept}/_stcore/stream", headers=signed_in):
        pass
    page = people.get(f"{kept}/enter").text + people.get(f"{kept}/", headers=signed_in).text
    assert not re.findall(r"""(?:href|src|action)=["']/""", page)


def test_the_path_itself_is_a_page_too(database: Database) -> None:
    people = client(url="https://example.org/rate")
    answer = people.get("/rate", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/rate/")
    assert people.get("/rates").status_code == 401  # another address


def test_files_are_compressed_and_kept_by_browsers(database: Database) -> None:
    people, signed_in = client(), {"Cookie": cookie(database)}
    loader = middleware.publish("toy", "function render() {}", ".board { color: red }")
    own = json.loads(re.search(r'"\./assets/[^"]+"', loader)[0]).removeprefix(".")  # type: ignore[index]
    script = next(path for path in middleware._streamlit_files() if path.startswith("/static/js/index."))
    for path in (own, script):
        assert people.get(path).status_code == 401
        kept = people.get(path, headers=signed_in)
        assert kept.headers["content-encoding"] == "gzip"
        assert "immutable" in kept.headers["cache-control"]
    assert "color: red" in people.get(own, headers=signed_in).text
    plain = people.get(own, headers=signed_in | {"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert "color: red" in plain.text
    page = people.get("/", headers=signed_in)
    assert page.headers["cache-control"] == "no-store"
    assert page.text.count("<script src=") == 1
    for path in ("/assets/toy-0000000000000000.js", "/static/js/none.js"):
        assert people.get(path, headers=signed_in).status_code == 404


def test_the_page_names_all_modules_that_draw_its_first_blocks(database: Database) -> None:
    page = client().get("/", headers={"Cookie": cookie(database)}).text
    named = re.findall(r'<link rel="modulepreload" crossorigin href="\./static/js/([^"]+)">', page)
    assert {"Html", "BidiComponent"} <= {name.split(".")[0] for name in named}
    assert len(named) == len({*named})
    for name in named:
        text = (middleware.STREAMLIT / "static" / "js" / name).read_text(encoding="utf-8")
        for imported in re.findall(r'\b(?:from|import)"\./([^"]+)"', text):
            assert imported in page, (name, imported)


@pytest.mark.parametrize("name, value", [("TRUSTED_PROXIES", "proxy"), ("MAX_CONNECTIONS", "0")])
def test_settings_that_are_none_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"CREAMTEA_{name}", value)
    with pytest.raises(InputError, match=f"CREAMTEA_{name}"):
        Serving.load()


def test_settings_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREAMTEA_TRUSTED_PROXIES", "10.0.0.5, 172.16.0.0/12")
    monkeypatch.setenv("CREAMTEA_MAX_CONNECTIONS", "40")
    assert Serving.load() == Serving(("10.0.0.5", "172.16.0.0/12"), 40)


# ---------------------------------------------------------------- figures for Prometheus


TOKEN = "a-token-of-its-own"


def metrics(with_token: bool) -> TestClient:
    own = [routes.metrics_route(TOKEN)] if with_token else []
    inner = Route("/{path:path}", lambda request: PlainTextResponse("inside"))
    return TestClient(Starlette(routes=[*own, inner], middleware=[Middleware(Gate, metrics=with_token)]))


def test_the_token_opens_metrics_and_nothing_else() -> None:
    with_token = {"Authorization": f"Bearer {TOKEN}"}
    assert metrics(True).get("/metrics").status_code == 401
    assert "creamtea_controller_lease" in metrics(True).get("/metrics", headers=with_token).text
    for path in ("/", "/_stcore/metrics"):
        assert metrics(True).get(path, headers=with_token).status_code == 401
    assert metrics(False).get("/metrics", headers=with_token).status_code == 401


@pytest.mark.parametrize("role, status", [("organiser", 200), ("reader", 401), ("rater", 401)])
def test_streamlits_metrics_are_for_organisers(role: str, status: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(sessions, "identify", lambda database, cookie: Identity(7, role))
    assert metrics(True).get("/_stcore/metrics").status_code == status
