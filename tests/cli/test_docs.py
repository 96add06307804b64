"""`creamtea docs`, where it cannot show the documentation; tests/wheel has it shown."""

import functools
import socket
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from creamtea.cli import docs
from creamtea.cli.main import app
from creamtea.errors import InputError


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A fresh one, of a page."""
    (tmp_path / "mkdocs.yml").write_text("site_name: tea\nsite_dir: build/site\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Tea\n")
    return tmp_path


def test_a_fresh_checkout_builds_its_site_once(checkout: Path) -> None:
    package, built = checkout / "platform" / "creamtea", checkout / "build" / "site"
    assert docs.site_folder(package) == built
    (built / "index.html").write_text("as it was")
    assert docs.site_folder(package) == built
    assert (built / "index.html").read_text() == "as it was"


def test_a_site_that_cannot_be_built_says_why(checkout: Path) -> None:
    (checkout / "mkdocs.yml").write_text("site_name: tea\ntheme: nowhere\n")
    with pytest.raises(InputError, match=r"(?s)cannot be built: .*nowhere"):
        docs.site_folder(checkout / "platform" / "creamtea")


def test_a_checkout_without_mkdocs_names_the_make_target(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="make docs-site"):
        docs.site_folder(checkout / "platform" / "creamtea")


def test_a_port_in_use_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "site_folder", lambda: tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = CliRunner().invoke(app, ["docs", "--port", str(other.getsockname()[1]), "--no-browser"])
    assert isinstance(done.exception, InputError)
    assert "--port 0" in str(done.exception)


def test_data_is_shown_as_text(tmp_path: Path) -> None:
    (tmp_path / "gpu.yaml").write_text("outcome: α\n", encoding="utf-8")
    handler = functools.partial(docs.SiteHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with urlopen(f"http://127.0.0.1:{server.server_port}/gpu.yaml") as response:
            assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        server.shutdown()
