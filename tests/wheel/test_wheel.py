"""The wheel, installed away from the repository: the demo runs, its report is printed and served."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from built_site import built_wheel
from limits import ANSWER, COMMAND, START, wait_until

import creamtea

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SHORT = {  # of studies/demo.yaml
    "corpora.everyday.train": "200",
    "corpora.everyday.dev": "20",
    "corpora.everyday.beside": "[]",
    "subwords.joint.vocabulary": "200",
    "test_sets.test.lines": "10",
    "latency.sentences": "2",
    "latency.repetitions": "2",
    "latency.warmup": "1",
    **{
        f"variants.{variant}.{key}": value
        for variant in ("softmax", "scones", "entmax")
        for key, value in {
            "architecture.width": "32",
            "architecture.feed_forward": "64",
            "training.max_updates": "20",
            "training.warmup": "5",
            "training.average": "1",
        }.items()
    },
}


@dataclass
class Installed:
    """A virtual environment with the wheel, and an empty folder to work in."""

    environment: Path
    folder: Path

    def command(self, *arguments: str) -> list[str]:
        return [str(self.environment / "bin" / "creamtea"), *arguments]

    @property
    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
        return kept | {"CREAMTEA_HOME": str(self.folder), "OMP_NUM_THREADS": "1"}

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("away")
    environment = folder / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    (packages,) = environment.glob("lib/python*/site-packages")
    # The libraries come from the environment of the tests, so that no network is needed. Its editable
    # creamtea stays behind: that is a .pth file, which counts only where it lies.
    packages.joinpath("libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = ["--python", str(python), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True, timeout=COMMAND)
    work = folder / "work"
    work.mkdir()
    return Installed(environment, work)


@pytest.fixture(scope="module")
def demo(installed: Installed) -> Installed:
    changes = [f"--set={place}={value}" for place, value in SHORT.items()]
    study = installed.environment / "share/creamtea/studies/demo.yaml"
    installed.run(*installed.command("run", str(study), "--executor", "inline", "--quiet", *changes))
    return installed


def test_the_wheel_holds_what_is_not_python(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for package, root in (
        ("creamtea", "platform"),
        ("creamtea_workers", "workers"),
        ("creamtea_webapp", "webapp"),
    ):
        assert f"{package}/py.typed" in names
        files = [path for path in (ROOT / root / package).rglob("*") if path.is_file()]
        shipped = {f"{path.relative_to(ROOT / root)}" for path in files if "__pycache__" not in path.parts}
        assert shipped <= names
    revisions = {path.name for path in (ROOT / "migrations" / "versions").glob("*.py")}
    assert {f"creamtea/store/migrations/versions/{name}" for name in revisions} <= names
    assert [name for name in names if re.match(r"(tests|bench|platform|workers|webapp)/", name)] == []


def test_it_is_the_installed_code_that_runs(installed: Installed) -> None:
    python = str(installed.environment / "bin" / "python")
    code = "import creamtea, creamtea_workers, creamtea_webapp as w; print(creamtea.__file__, w.__file__)"
    assert installed.run(python, "-c", code).count(str(installed.environment)) == 2
    assert installed.run(*installed.command("--version")).strip() == f"creamtea {creamtea.__version__}"


def test_every_study_of_the_readme_comes_along(installed: Installed) -> None:
    named = set(re.findall(r"studies/[\w./-]+\.yaml", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert named
    assert [name for name in named if not (installed.environment / "share/creamtea" / name).is_file()] == []


def test_a_database_is_moved_by_the_migrations_that_are_shipped(installed: Installed, tmp_path: Path) -> None:
    database = ("--database", f"sqlite:///{tmp_path / 'moved.db'}")
    for command in (["upgrade"], ["check"], ["downgrade", "base"]):
        installed.run(*installed.command("db", *command, *database))


def test_the_demo_runs_and_its_report_has_every_system(demo: Installed) -> None:
    told = demo.run(*demo.command("report", "demo"))
    for system in ("softmax-greedy", "softmax-lexicon", "softmax-nvs", "scones-greedy", "entmax-greedy"):
        assert system in told


@contextmanager
def served(installed: Installed, command: str, pattern: str) -> Iterator[str]:
    """The address in the line that the command prints when it listens."""
    log = installed.folder / f"{command}.log"
    with log.open("wb") as sink:
        server = subprocess.Popen(
            installed.command(command, "--port", "0", "--no-browser"),
            cwd=installed.folder,
            env=installed.variables,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        ready = lambda: re.search(pattern, log.read_text()) or server.poll() is not None  # noqa: E731
        wait_until(ready, START, log.read_text)
        found = re.search(pattern, log.read_text())
        assert found is not None, log.read_text()
        yield found[0]
    finally:
        server.terminate()
        server.wait(ANSWER)


def status_of(address: str, path: str) -> int:
    connection = HTTPConnection(urlsplit(address).netloc, timeout=ANSWER)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def test_it_is_served_behind_the_gate(demo: Installed) -> None:
    with served(demo, "serve", r"http://\S+(?=/enter#)") as address:
        statuses = {path: status_of(address, path) for path in ("/", "/enter", "/gate.css")}
    assert statuses == {"/": 401, "/enter": 200, "/gate.css": 200}


def test_the_documentation_comes_along(installed: Installed) -> None:
    with served(installed, "docs", r"http://127\.0\.0\.1:\d+(?=/)") as address:
        paths = ("/", "/guide-rater.html", "/search/search_index.json", "/not-a-page.html", "/../mkdocs.yml")
        statuses = [status_of(address, path) for path in paths]
    assert statuses == [200, 200, 200, 404, 404]
