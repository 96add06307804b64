"""Without a session nothing leaves the server; a link opens one, once; how the server begins and ends."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from limits import ANSWER, START, wait_until
from starlette.testclient import TestClient

from creamtea.access import sessions
from creamtea.errors import InputError
from creamtea_webapp.gate import middleware
from creamtea_webapp.gate.middleware import inline_scripts
from creamtea_webapp.gate.routes import Limiter, Site
from creamtea_webapp.server import check_address

ROUTES = [
    *("/", "/index.html", "/studies", "/report?study=1", "/rate", "/enter/", "/ENTER", "//enter"),
    *("/enter/../", "/%65nter%2f", "/static/js/index.js", "/favicon.png", "/manifest.json"),
    *("/media/x.png", "/documentation/index.html", "/component/x/index.html", "/app/static/x"),
    *("/_stcore/host-config", "/_stcore/metrics", "/_stcore/script-health-check"),
    *("/_stcore/upload_file/x/y", "/_stcore/bidi-components/x", "/_stcore/agent/openapi.json"),
    *("/_stcore/stream", "/login", "/sign-out", "/auth/login", "/oauth2callback"),
]


def ask(site, method: str, path: str, body: str | None = None, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=ANSWER)
    connection.request(method, path, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    answer.text = answer.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return answer


def exchange(site, link: str, **headers: str) -> http.client.HTTPResponse:
    return ask(site, "POST", "/enter", body=link.split("#")[1], **headers)


def cookie_of(answer: http.client.HTTPResponse) -> str:
    return str(answer.getheader("set-cookie")).split(";")[0]


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE"])
def test_every_route_is_closed_without_a_session(site, method: str) -> None:
    for path in ROUTES:
        answer = ask(site, method, path)
        assert answer.status == 401, path
        assert "quagga" not in answer.text
        assert answer.getheader("cache-control") == "no-store"


@pytest.mark.parametrize(
    "cookie", ["", "creamtea-{port}=", "creamtea-{port}=x", "creamtea-{port}={link}", 'a="; b']
)
def test_a_wrong_cookie_opens_nothing(site, cookie: str) -> None:
    link = site.new_link("organiser").split("#")[1]
    filled = cookie.format(port=urlsplit(site.url).port, link=link)
    assert ask(site, "GET", "/", Cookie=filled).status == 401
    assert websocket(site, filled).startswith("HTTP/1.1 401")


def handshake(host: str, cookie: str) -> bytes:
    """What a browser sends to open a WebSocket."""
    lines = [
        *("GET /_stcore/stream HTTP/1.1", f"Host: {host}", f"Cookie: {cookie}"),
        *("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Protocol: streamlit"),
        *("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "\r\n"),
    ]
    return "\r\n".join(lines).encode()


def websocket(site, cookie: str) -> str:
    """The answer to a WebSocket's handshake."""
    place = urlsplit(site.url)
    with socket.create_connection((place.hostname, place.port), timeout=ANSWER) as connection:
        connection.sendall(handshake(place.netloc, cookie))
        return connection.recv(65536).decode("latin-1")


@pytest.mark.parametrize("role", ["reader", "organiser"])
def test_a_revoked_link_ends_the_session_at_its_next_request(site, role: str) -> None:
    link = site.new_link(role)
    cookie = cookie_of(exchange(site, link))
    assert ask(site, "GET", "/", Cookie=cookie).status == 200
    assert websocket(site, cookie).startswith("HTTP/1.1 101")
    sessions.revoke(site.database, sessions.list_links(site.database)[-1].id, "test")
    for path in ("/", "/_stcore/host-config", "/media/x.png"):
        assert ask(site, "GET", path, Cookie=cookie).status == 401, path
    assert websocket(site, cookie).startswith("HTTP/1.1 401")
    assert exchange(site, link).status == 401


def test_health_and_entrance_are_open_and_say_nothing(site) -> None:
    assert ask(site, "GET", "/_stcore/health").text == "ok"  # type: ignore[attr-defined]
    for path in ("/enter", "/enter.js", "/gate.css"):
        answer = ask(site, "GET", path)
        assert answer.status == 200
        assert "quagga" not in answer.text


def test_a_link_opens_the_app_once(site) -> None:
    link = site.new_link("reader")
    for _ in range(3):  # fetching it spends nothing
        assert ask(site, "GET", link.removeprefix(site.url).split("#")[0]).status == 200
    answer = exchange(site, link)
    assert answer.status == 204
    attributes = str(answer.getheader("set-cookie")).lower()
    assert "httponly" in attributes
    assert "samesite=lax" in attributes
    assert "path=/" in attributes
    assert "secure" not in attributes  # plain HTTP on loopback
    assert ask(site, "GET", "/", Cookie=cookie_of(answer)).status == 200
    replay = exchange(site, link)
    assert replay.status == 401
    assert replay.getheader("set-cookie") is None
    # the same browser may open its link again; it gets no second session
    again = exchange(site, link, Cookie=cookie_of(answer))
    assert again.status == 204
    assert again.getheader("set-cookie") is None


@pytest.mark.parametrize("other", ['prefs={"lang":"en"}', "foo[bar]=1", "bare", "x=a b", "=", "größe=1"])
def test_cookies_of_other_applications_do_not_matter(monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    monkeypatch.setattr(middleware.session, "cookie_name", lambda: "creamtea")
    for cookies in (f"{other}; creamtea=secret", f"creamtea=secret; {other}"):
        scope = {"type": "http", "headers": [(b"cookie", cookies.encode())]}
        assert middleware.cookie_of(scope) == "secret"


def test_another_sites_page_cannot_open_a_link(site) -> None:
    link = site.new_link("reader")
    assert exchange(site, link, Origin="https://evil.example").status == 403
    assert exchange(site, link, Origin=site.url).status == 204


@pytest.mark.parametrize("body", ["", "x" * 10_000, "ä"])
def test_a_body_that_is_no_secret_is_refused(site, body: str) -> None:
    assert ask(site, "POST", "/enter", body=body.encode().decode("latin-1")).status == 401


def test_answers_carry_the_security_headers(site) -> None:
    cookie = cookie_of(exchange(site, site.new_link("reader")))
    for answer in (ask(site, "GET", "/"), ask(site, "GET", "/", Cookie=cookie), ask(site, "GET", "/enter")):
        assert answer.getheader("x-frame-options") == "DENY"
        assert answer.getheader("x-content-type-options") == "nosniff"
        assert answer.getheader("referrer-policy") == "same-origin"
        policy = str(answer.getheader("content-security-policy"))
        assert "frame-ancestors 'none'" in policy
        scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
        assert "unsafe" not in scripts


def test_streamlits_inline_script_is_known_by_its_hash() -> None:
    # sha256 of "alert(1)" as browsers compute it: printf 'alert(1)' | openssl dgst -sha256 -binary | base64
    assert inline_scripts("<script>alert(1)</script><script src='x'></script>") == [
        "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
    ]


def test_pages_of_the_documentation_run_their_own_scripts_only(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<script>alert(1)</script>")
    (tmp_path / "site.js").write_text("")
    client = TestClient(Site(directory=tmp_path, html=True))
    policy = client.get("/index.html").headers["content-security-policy"]
    assert "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='" in policy
    assert "content-security-policy" not in client.get("/site.js").headers  # the gate's own


def test_the_limiter_blocks_a_key_for_a_while_and_forgets() -> None:
    now = [0.0]
    limiter = Limiter(allowed=3, seconds=60, clock=lambda: now[0])
    for _ in range(3):
        assert not limiter.blocked("a")
        limiter.count("a")
    assert limiter.blocked("a")
    assert not limiter.blocked("b")
    now[0] = 61.0
    assert not limiter.blocked("a")
    assert limiter._counts == {}


# ---------------------------------------------------------------- creamtea serve, as a person meets it


SERVE = [sys.executable, "-c", "from creamtea.cli.main import main; main()", "serve"]


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1"])
def test_an_address_that_is_not_ours_is_an_input_error(host: str) -> None:
    with pytest.raises(InputError, match=rf"cannot listen on {host}:0: .*see --host and --port"):
        check_address(host, 0)


@pytest.mark.slow
def test_ctrl_c_stops_the_server_cleanly_even_with_an_open_websocket(
    sqlite_template: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*SERVE, "--port", "0", "--no-browser", "--host", "127.0.0.1"],
            env={**os.environ, "CREAMTEA_DATABASE_URL": f"sqlite:///{tmp_path / 'new.db'}"},
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: "/enter#" in log.read_text() or process.poll() is not None, START, log.read_text)
        link = re.search(r"http://\S+/enter#\S+", log.read_text())
        place = urlsplit(link[0])
        cookie = cookie_of(exchange(SimpleNamespace(url=link[0]), link[0]))
        with socket.create_connection((place.hostname, place.port), timeout=ANSWER) as connection:
            connection.sendall(handshake(place.netloc, cookie))
            assert connection.recv(100).startswith(b"HTTP/1.1 101")
            process.send_signal(signal.SIGINT)
            assert process.wait(ANSWER) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    written = log.read_text()
    assert written.startswith(
        f"creamtea is served at http://{place.netloc}; open this link, it works once:\n"
    )
    assert re.findall(r"#(\S+)", written) == [place.fragment]  # the only secret
    assert written.endswith("\nstopped\n")
    assert "Traceback" not in written
