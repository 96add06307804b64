"""`creamtea docs`, where it cannot show the documentation; tests/wheel has it shown."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from creamtea.cli import docs
from creamtea.cli.main import app
from creamtea.errors import InputError


def test_a_checkout_without_the_site_names_the_make_target(tmp_path: Path) -> None:
    package = tmp_path / "platform" / "creamtea"
    (tmp_path / "mkdocs.yml").touch()
    with pytest.raises(InputError, match="make docs-site"):
        docs.site_folder(package)
    built = tmp_path / "build" / "site"
    built.mkdir(parents=True)
    (built / "index.html").touch()
    assert docs.site_folder(package) == built


def test_a_port_in_use_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "site_folder", lambda: tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = CliRunner().invoke(app, ["docs", "--port", str(other.getsockname()[1]), "--no-browser"])
    assert isinstance(done.exception, InputError)
    assert "--port 0" in str(done.exception)
