"""A real `creamtea serve` on a filled study, and a browser."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from filled_study import ANALYSED, HOSTILE, fill_study, lines
from lab_package import RATING_PROTOCOL
from limits import ANSWER, MILLISECONDS, START, wait_until
from sqlalchemy import select
from table_rows import one_of
from watched import installed_browser, launch_browser, new_context

from creamtea.access import audit, sessions
from creamtea.human.rating import raters
from creamtea.store.database import Database, open_database
from creamtea.store.tables import StudyRow


@pytest.fixture(scope="session", autouse=True)
def packages_searched_once() -> Iterator[None]:
    """Each AppTest would read the metadata of all installed packages, in search of components."""
    from streamlit.components.v2 import manifest_scanner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests)
        )
        yield


MAIN = sys.modules["__main__"]


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """Streamlit's AppTest leaves its script as __main__, which processes of later tests would then import."""
    yield
    sys.modules["__main__"] = MAIN


@pytest.fixture
def filled(database: Database) -> Database:
    """The filled study."""
    fill_study(database, HOSTILE + lines(36))
    return database


@contextmanager
def copied(template: Path, folder: Path) -> Iterator[Database]:
    """A copy of an SQLite file, in this folder."""
    path = folder / "creamtea.db"
    shutil.copyfile(template, path)
    with closing(open_database(f"sqlite:///{path}")) as database:
        yield database


@pytest.fixture(scope="session")
def filled_template(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the filled study."""
    folder = tmp_path_factory.mktemp("filled")
    with copied(sqlite_template, folder) as database:
        fill_study(database, HOSTILE + lines(36))
    return folder / "creamtea.db"


@pytest.fixture
def ready(filled_template: Path, tmp_path: Path) -> Iterator[Database]:
    """The filled study on SQLite, for an organiser's pages."""
    with copied(filled_template, tmp_path) as database:
        yield database


@pytest.fixture(scope="module")
def module_database(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database that all tests of a module share, without rows at first."""
    with copied(sqlite_template, tmp_path_factory.mktemp("module")) as database:
        yield database


@pytest.fixture
def visit(ready: Database, monkeypatch: pytest.MonkeyPatch) -> Any:
    from organiser_app import visits  # imports Streamlit, which most tests here do without

    return visits(ready, monkeypatch)


@dataclass
class Site:
    """A running `creamtea serve` and its database."""

    url: str
    link: str  # the organiser's, as it was printed
    log: Path
    database: Database
    process: subprocess.Popen[bytes]
    study: int
    environment: dict[str, str]

    def new_link(self, role: str, rater_id: int | None = None) -> str:
        return f"{self.url}/enter#{sessions.create_link(self.database, role, rater_id=rater_id)}"

    def rater_link(self, campaign: str, name: str, *, consented: bool = True) -> tuple[str, int]:
        """A new link of the rater of this name, who is added if new, and the rater's id."""
        rater_id = raters.find_or_add(self.database, campaign, audit.COMMAND_LINE, name)
        if consented:
            raters.consent(self.database, rater_id)
        return self.new_link("rater", rater_id), rater_id

    def pause(self) -> None:
        """It hears nothing any more. Pages notice only when it is stopped: a message then covers them."""
        self.process.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """As a power cut does."""
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        """On the same port."""
        before = len(self.log.read_text())
        self.process = start(self.log, self.environment, urlsplit(self.url).port or 0)
        wait_for(self.process, self.log, r"/enter#[\w-]+(?=\n)", after=before)

    @contextmanager
    def another_server(self, host: str, log: Path) -> Iterator[str]:
        """The address of a second server on the same database and port, at another host of this machine."""
        port = urlsplit(self.url).port or 0
        process = start(log, self.environment, port, "--host", host)
        try:
            wait_for(process, log, r"/enter#[\w-]+(?=\n)")
            yield f"http://{host}:{port}"
        finally:
            process.kill()
            process.wait()


PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
COMMAND = [sys.executable, "-c", "from creamtea.cli.main import main; main()"]


def start(log: Path, environment: dict[str, str], port: int = 0, *options: str) -> subprocess.Popen[bytes]:
    with log.open("ab") as sink:
        return subprocess.Popen(
            [*COMMAND, "serve", "--port", str(port), "--no-browser", *options],
            env=environment,
            cwd=log.parent,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )


@contextmanager
def serving(filled_template: Path, folder: Path, settings: dict[str, str]) -> Iterator[Site]:
    url, log = f"sqlite:///{folder / 'creamtea.db'}", folder / "server.log"
    with copied(filled_template, folder) as database:
        study = one_of(database, select(StudyRow.id))
        environment = {**os.environ, "CREAMTEA_DATABASE_URL": url, "CREAMTEA_HOME": str(folder)} | settings
        process = start(log, environment)
        running = None
        try:
            link = wait_for(process, log, r"http://127\.0\.0\.1:\d+/enter#[\w-]+(?=\n)")
            running = Site(link.split("/enter")[0], link, log, database, process, study, environment)
            yield running
        finally:
            process = running.process if running is not None else process
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def site(filled_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The server of all modules that need none of their own: a test names its campaigns as no other does.

    It finds a plug-in's protocol as if that were installed.
    """
    paths = [str(RATING_PROTOCOL), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {"PYTHONPATH": os.pathsep.join(paths)}
    with serving(filled_template, tmp_path_factory.mktemp("site"), settings) as running:
        yield running


@pytest.fixture(scope="module")
def server_settings() -> dict[str, str]:
    """Settings of `own_site` beside its database, for modules to replace."""
    return {}


@pytest.fixture(scope="module")
def own_site(
    filled_template: Path, tmp_path_factory: pytest.TempPathFactory, server_settings: dict[str, str]
) -> Iterator[Site]:
    """A server of one module: with its settings, stopped between, or where each row counts."""
    with serving(filled_template, tmp_path_factory.mktemp("site"), server_settings) as running:
        yield running


@pytest.fixture
def served_on_postgres(postgres_url: str, tmp_path: Path) -> Iterator[tuple[Database, str]]:
    """A database on PostgreSQL, and the address of a server on it."""
    database = open_database(postgres_url)
    log = tmp_path / "server.log"
    environment = {**os.environ, "CREAMTEA_DATABASE_URL": postgres_url, "CREAMTEA_HOME": str(tmp_path)}
    process = start(log, environment)
    try:
        yield database, wait_for(process, log, r"http://127\.0\.0\.1:\d+(?=/enter#)")
    finally:
        process.kill()
        process.wait()
        database.close()


@pytest.fixture(scope="module")
def analysed(own_site: Site) -> str:
    """A second study of the site, with analyses; its name."""
    fill_study(own_site.database, HOSTILE + lines(36), ANALYSED)
    return str(ANALYSED["name"])


def wait_for(process: subprocess.Popen[bytes], log: Path, pattern: str, after: int = 0) -> str:
    """What `pattern` finds in the log of a process after so many characters, as soon as it does."""

    def found() -> re.Match[str] | None:
        match = re.search(pattern, log.read_text()[after:])
        assert match or process.poll() is None, f"the server ended: {log.read_text()}"
        return match

    wait_until(found, START, lambda: f"for {pattern!r} in what the server said: {log.read_text()}")
    match = found()
    return match[0]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright import sync_api  # which most tests here do without

    if installed_browser() is None:
        pytest.skip("no Chromium on this machine")
    sync_api.expect.set_options(timeout=ANSWER * MILLISECONDS)
    with sync_api.sync_playwright() as running:
        browser = launch_browser(running)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def quiet_page(chromium: Any) -> Iterator[Any]:
    """A page that all tests of a module share; what went wrong in it is in `page.troubles`."""
    context = new_context(chromium, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.troubles = []
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("console", lambda said: page.troubles.append(said.text) if said.type == "error" else None)
    yield page
    context.close()


@pytest.fixture(scope="session")
def idle_contexts(chromium: Any) -> Iterator[dict[bool, list[Any]]]:
    """Browser contexts that no test uses now, for phones (True) and others. In a new one a page takes twice
    as long to load, since it compiles all of Streamlit's scripts."""
    idle: dict[bool, list[Any]] = {False: [], True: []}
    yield idle
    for context in chain.from_iterable(idle.values()):
        context.close()


@pytest.fixture
def open_page(chromium: Any, idle_contexts: dict[bool, list[Any]]) -> Iterator[Callable[..., Any]]:
    """`open_page(link, width, before, phone, slow_clock)`: a page in a context that no other page of the test
    has; `before(page)` is called before anything is asked for; by a slow clock, keys are typed together."""
    used: list[tuple[bool, Any, bool]] = []

    def open_link(
        link: str,
        width: int = 1280,
        before: Callable[[Any], None] | None = None,
        phone: bool = False,
        slow_clock: bool = False,
    ) -> Any:
        idle = idle_contexts[phone]
        context = idle.pop() if idle else new_context(chromium, **(PHONE if phone else {}))
        used.append((phone, context, before is None))
        if before is not None:
            close(context.pages)
        page = context.pages[0] if context.pages else context.new_page()
        if not phone:
            page.set_viewport_size({"width": width, "height": 900})
        if before is not None:
            before(page)
        if slow_clock:  # of what the page shows from now on
            page.goto(file_of_server(link))
            page.evaluate("sessionStorage.slowClock = true")
        page.goto(link)
        return page

    yield open_link
    for phone, context, keeps_page in used:
        context.set_offline(False)
        context.clear_cookies()
        close(context.pages[keeps_page:])
        close([page for page in context.pages if not emptied(page)])
        idle_contexts[phone].append(context)


@pytest.fixture
def rate(site: Site, open_page: Callable[..., Any]) -> Callable[..., Any]:
    """`rate(items, protocol="da", …)`: a page of a new campaign's rater (`rating_board.begin_rating`)."""
    from rating_board import begin_rating  # imports Playwright, which most tests here do without

    return partial(begin_rating, site, open_page)


def close(pages: list[Any]) -> None:
    for page in pages:
        page.close()


def emptied(page: Any) -> bool:
    """Leave what the page shows for a file of the same server, so that its process keeps the scripts. Return
    False if the server has ended."""
    from playwright.sync_api import Error

    if not page.url.startswith("http:"):
        return False
    try:
        page.goto(file_of_server(page.url))
        page.evaluate("sessionStorage.clear(); localStorage.clear()")
        page.mouse.move(0, 0)
    except Error:
        return False
    return True


def file_of_server(url: str) -> str:
    """The address of a file that the server of a page gives everybody."""
    return f"http://{urlsplit(url).netloc}/gate.css"
