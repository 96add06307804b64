"""What the documents link to and which commands they name exist."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from creamtea.settings import SignIn

ROOT = Path(__file__).parents[2]
DOCUMENTS = [path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")] if path.is_file()]


def test_every_link_leads_to_a_file() -> None:
    missing = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for link in re.findall(r'\]\(([^)#\s]+)[^)]*\)|src="([^"]+)"', text):
            target = "".join(link)
            if "://" not in target and not (document.parent / target).exists():
                missing.append((document.relative_to(ROOT).as_posix(), target))
    assert missing == []


def test_the_tree_of_the_readme_is_the_repositorys() -> None:
    """The text block has folders in its first 30 columns; indented ones are in the last that is not."""
    tree = (ROOT / "README.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    base, missing = ROOT, []
    for line in tree.splitlines():
        names = re.findall(r"\S+/", line[:30])
        inside = line.startswith(" ")
        missing += [name for name in names if not ((base if inside else ROOT) / name).is_dir()]
        base = base if inside else ROOT / names[0]
    assert (len(tree.splitlines()) > 20, missing) == (True, [])


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set()
    for document in DOCUMENTS:
        named |= set(re.findall(r"(?:`|^)make ([a-z-]+)", document.read_text(encoding="utf-8"), re.MULTILINE))
    assert {"demo", "test", "test-fast"} <= named
    assert named <= targets


def test_every_decision_is_listed_and_short() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    for path in folder.glob("*.md"):
        if path.name != "README.md":
            assert f"({path.name})" in listed
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 25, path.name


# ---------------------------------------------------------------- docker-compose.yml


SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]


def test_the_web_app_gets_the_sign_in_and_is_without_it_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    web = SERVICES["web"]
    names = [f"CREAMTEA_OIDC_{name}" for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET")]
    for name in names:
        assert web["environment"][name] == f"${{{name}:-}}"  # empty where it is not set
        monkeypatch.setenv(name, "")
    assert SignIn.load() is None
    assert {"CREAMTEA_HOME", "CREAMTEA_ARTEFACTS"} <= set(web["environment"])
    assert '--url "$$CREAMTEA_URL"' in web["command"][-1]
    assert web["environment"]["CREAMTEA_URL"] == "${CREAMTEA_URL:-http://127.0.0.1:8501}"


def test_every_service_of_ours_has_one_image_and_gpus_are_a_profile() -> None:
    ours = {name: service for name, service in SERVICES.items() if name != "postgres"}
    assert {service["image"] for service in ours.values()} == {"${CREAMTEA_IMAGE:-creamtea:0.2.0}"}
    for name, service in SERVICES.items():
        assert all(service[key] for key in ("read_only", "mem_limit", "cpus")), name
        once = service.get("restart", "no") == "no"
        assert once or "healthcheck" in service or name.startswith("ray-worker"), name
    assert SERVICES["web"]["environment"]["CREAMTEA_TRY_OUT"] == "${CREAMTEA_TRY_OUT:-off}"
    assert [name for name in ours if "deploy" in ours[name]] == ["ray-worker-gpu"]
    assert [name for name in ours if "gpu" in ours[name].get("profiles", [])] == ["ray-worker-gpu"]
    [device] = ours["ray-worker-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert "database_url" not in ours["ray-worker-gpu"]["secrets"]


# ---------------------------------------------------------------- locks


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def requirements(lock: str) -> list[str]:
    """The lock's pins, each with the hashes that follow it."""
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8").replace("\\\n", "")
    return [line for line in text.splitlines() if not line.startswith("#")]


def pins(lock: str) -> dict[str, str]:
    return {
        canonicalize_name(name): version
        for name, version in (re.split(r"==|\s", line)[:2] for line in requirements(lock))
    }


@pytest.mark.parametrize("lock", ["app.lock", "comet.lock", "dev.lock", "torch.lock", "torch-cpu.lock"])
def test_every_pin_has_hashes(lock: str) -> None:
    for line in requirements(lock):
        assert re.fullmatch(r"[\w.-]+==[\w.+]+( ; .+?)?( +--hash=sha256:[0-9a-f]{64})+", line), line[:80]


def test_pip_installs_no_lock_without_its_hashes() -> None:
    for file in ("Dockerfile", "Makefile"):
        text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", "")
        commands = re.findall(r"pip install [^&\n]*-r requirements/", text)
        assert commands
        assert all("--require-hashes" in command for command in commands)


def test_images_of_others_are_named_by_digest() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    images = re.findall(r"^FROM (\S+)", dockerfile, flags=re.MULTILINE)
    images += [service["image"] for service in SERVICES.values() if "build" not in service]
    assert len(images) == 2
    for image in images:
        assert re.search(r"@sha256:[0-9a-f]{64}\b", image), image


def test_the_image_installs_what_runs_and_no_test_tool() -> None:
    commands = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"requirements/(\w+)\.lock", commands) == ["app", "torch", "comet", "torch"]
    names = {canonicalize_name(Requirement(line).name) for line in EXTRAS["dev"]}
    assert names & pins("app.lock").keys() == set()
    assert not [
        name for name in pins("app.lock") if re.search(r"pytest|moto|playwright|mypy|ruff|pgserver", name)
    ]


def test_every_requirement_has_a_pin_within_its_range() -> None:
    runs = [
        *PROJECT["dependencies"],
        *(line for extra in ("workers", "webapp", "s3") for line in EXTRAS[extra]),
    ]
    for lock, lines in (("app.lock", runs), ("dev.lock", EXTRAS["dev"])):
        pinned = pins("torch.lock") | pins(lock)
        for requirement in map(Requirement, lines):
            version = pinned.get(canonicalize_name(requirement.name))
            assert version is not None, f"{requirement} has no pin in {lock}"
            assert requirement.specifier.contains(version), f"{lock}: {requirement}"
    assert pins("app.lock").keys() & pins("dev.lock").keys() == set()
