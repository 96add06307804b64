"""What docker-compose.yml hands to the web app."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from creamtea.settings import SignIn

COMPOSE = Path(__file__).parents[2] / "docker-compose.yml"


def test_the_web_app_gets_the_sign_in_and_is_without_it_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    web = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]["web"]
    names = [f"CREAMTEA_OIDC_{name}" for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET")]
    for name in names:
        assert web["environment"][name] == f"${{{name}:-}}"  # empty where it is not set
        monkeypatch.setenv(name, "")
    assert SignIn.load() is None
    assert {"CREAMTEA_HOME", "CREAMTEA_ARTEFACTS"} <= set(web["environment"])
    assert '--url "$$CREAMTEA_URL"' in web["command"][-1]
    assert web["environment"]["CREAMTEA_URL"] == "${CREAMTEA_URL:-http://127.0.0.1:8501}"
