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


def test_every_service_of_ours_has_one_image_and_gpus_are_a_profile() -> None:
    services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    ours = {name: service for name, service in services.items() if name != "postgres"}
    assert {service["image"] for service in ours.values()} == {"${CREAMTEA_IMAGE:-creamtea:0.2.0}"}
    for name, service in services.items():
        assert service["read_only"], name
        assert service["mem_limit"], name
        assert service["cpus"], name
        assert (
            "restart" not in service
            or service["restart"] == "no"
            or "healthcheck" in service
            or (name.startswith("ray-worker"))
        ), name
    assert services["web"]["environment"]["CREAMTEA_TRY_OUT"] == "${CREAMTEA_TRY_OUT:-off}"
    reserved = {name for name, service in ours.items() if "deploy" in service}
    assert (
        reserved == {"ray-worker-gpu"} == {name for name in ours if "gpu" in ours[name].get("profiles", [])}
    )
    [device] = ours["ray-worker-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert "database_url" not in ours["ray-worker-gpu"]["secrets"]
