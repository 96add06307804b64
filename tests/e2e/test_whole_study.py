"""A whole study through the command line: undisturbed, and killed on local Ray, on PostgreSQL with S3.

Both must agree to the last digit in everything that is no measurement of time.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from command_line import Done, call
from limits import COMMAND, RAY_ENVIRONMENT, wait_until
from sqlalchemy import select
from sqlalchemy.orm import Session
from table_rows import all_of

from creamtea.engine.executors.ray import NEEDED
from creamtea.store.database import open_database
from creamtea.store.tables import Event, Hypothesis, Metric, Point, Segment, StepFile, StepRow, StudyStep
from creamtea_workers.training.trainer import Trainer

pytestmark = pytest.mark.slow

STUDY = Path(__file__).with_name("tiny.yaml")
CLOCKED = ("tokens_per_second", "sentences_per_second", "latency_")


class Place:
    """A CREAMTEA_HOME of a test, and the command line in it."""

    def __init__(self, home: Path, url: str | None = None, more: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.url = url or f"sqlite:///{home / 'creamtea.db'}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CREAMTEA", "RAY"))}
        self.environment = {
            **kept,
            "CREAMTEA_HOME": str(home),
            "CREAMTEA_DATABASE_URL": self.url,
            "OMP_NUM_THREADS": "1",
            **RAY_ENVIRONMENT,
            **(more or {}),
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "creamtea.cli.main", *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def call(self, *arguments: str | Path, given: str = "") -> Done:
        """Run a command in this process."""
        return call(self.environment, *arguments, given=given)

    @contextmanager
    def session(self) -> Iterator[Session]:
        database = open_database(self.url)
        with closing(database), database.session() as session:
            yield session

    def contents(self) -> dict[str, dict[Any, Any]]:
        """What the database holds, by step key, but for times."""
        with self.session() as session:
            return {
                "metrics": {
                    (m.step_key, m.name, m.subject): (m.value, m.low, m.high)
                    for m in session.scalars(select(Metric))
                    if not m.name.startswith(CLOCKED)
                },
                "points": {
                    (p.step_key, p.series, p.position): (p.x, p.y) for p in session.scalars(select(Point))
                },
                "hypotheses": {
                    (h.step_key, h.index): (h.text, h.score, h.selected_size)
                    for h in session.scalars(select(Hypothesis))
                },
                "files": {
                    (f.step_key, f.name): f.digest
                    for f in session.scalars(select(StepFile))
                    if f.name != "latency.jsonl"
                },
            }

    def happened(self, node: str) -> list[str]:
        with self.session() as session:
            keys = select(StudyStep.step_key).where(StudyStep.node == node)
            return list(
                session.scalars(select(Event.what).where(Event.step_key.in_(keys)).order_by(Event.id))
            )


def descendants(run: subprocess.Popen[str], wanted: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    """Return the wanted ones of its processes that have not ended meanwhile."""
    found = []
    for process in psutil.Process(run.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if wanted(process):
                found.append(process)
    return found


def training_workers(run: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the processes that train: those of a group, or a single one if the machine has room for one."""
    titles = ("ray::RayTrainWorker", "ray::train:")
    return descendants(run, lambda process: "".join(process.cmdline()).startswith(titles))


def suspended_after(
    saved: Callable[[], object], run: subprocess.Popen[str], others: Sequence[psutil.Process] = ()
) -> psutil.Process:
    """A Ray worker that trains, suspended once `saved()` holds; none of `others`.

    Until then it runs for a few milliseconds at a time: however busy the machine, it does not end before it
    is looked at.
    """
    workers: list[psutil.Process] = []

    def found() -> bool:
        if run.poll() is not None:
            pytest.fail(f"the run ended before its training was found:\n{run.communicate()[0]}")
        for process in training_workers(run):
            with suppress(psutil.NoSuchProcess):
                if process not in others:
                    process.suspend()
                    workers.append(process)
                    return True
        return False

    def saves() -> bool:
        workers[0].suspend()
        if saved():
            return True
        workers[0].resume()  # for half of the time at least: `wait_until` sleeps for as long as it has asked
        return False

    wait_until(found, COMMAND, pause=0.5)  # a worker imports torch for longer, before it trains
    wait_until(saves, COMMAND)
    return workers[0]


def ended(process: psutil.Process) -> bool:
    """Return True if the process has ended, even if nothing on this machine reaps orphans."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("undisturbed"))
    done = place.call("run", STUDY, "--executor", "inline")
    assert done.returncode == 0, done.stderr
    assert "nvs" in done.stdout
    return place


def test_every_step_succeeds_and_a_second_run_reuses_it(undisturbed: Place) -> None:
    rows = all_of(undisturbed, select(StepRow))
    assert {row.state for row in rows} == {"succeeded"}
    assert {row.kind for row in rows} == {
        "corpus", "test_set", "subwords", "encode", "align", "train", "decode", "score", "compare", "pairs",
        "recall", "latency",
    }  # fmt: skip
    before = undisturbed.contents()
    done = undisturbed.call("run", str(STUDY))
    assert done.returncode == 0
    assert "starting Ray" not in done.stdout + done.stderr  # the default, but nothing is left for it to do
    assert undisturbed.contents() == before
    assert undisturbed.happened("train/softmax/1").count("started") == 1


@pytest.mark.cluster
def test_a_training_outlives_a_worker_and_the_controller_and_changes_no_digit(
    undisturbed: Place, postgres_url: str, s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers train on local Ray, with PostgreSQL and S3. One is killed, then the controller. The study
    goes on in this process.
    """
    import boto3
    import s3fs

    account = {
        "AWS_ENDPOINT_URL": s3_endpoint,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    credentials = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    s3 = boto3.client("s3", endpoint_url=s3_endpoint, **credentials)
    s3.create_bucket(Bucket="study")

    def saved() -> set[str]:
        """The parts of checkpoints: no two of a training have the same name and time."""
        listed = s3.list_objects_v2(Bucket="study", Prefix="artefacts/checkpoints/").get("Contents", [])
        return {f"{one['Key']} {one['LastModified']}" for one in listed if "/training-" in one["Key"]}

    place = Place(tmp_path, postgres_url, {**account, "CREAMTEA_ARTEFACTS": "s3://study/artefacts"})
    study = yaml.safe_load(STUDY.read_text())
    short = {key: value for key, value in study.items() if key not in ("recall", "latency")}
    short |= {"systems": {"greedy": study["systems"]["greedy"]}, "resources": {"train": {"workers": [1, 2]}}}
    (tmp_path / "short.yaml").write_text(yaml.safe_dump(short))
    run = place.start("run", str(tmp_path / "short.yaml"))
    worker = suspended_after(saved, run)
    others, before = training_workers(run), saved()
    worker.kill()
    worker = suspended_after(lambda: saved() - before, run, others)
    its_ray = descendants(run, lambda process: process.name() in NEEDED)
    assert {process.name() for process in its_ray} == set(NEEDED)
    run.kill()  # the controller, and with it local Ray
    run.wait()
    worker.kill()  # suspended, it does not notice that its Ray has gone
    wait_until(lambda: all(map(ended, its_ray)), what=lambda: f"for the end of {its_ray}")

    resume, updates = Trainer.resume, []

    def resumed(self: Trainer) -> None:
        resume(self)
        updates.append(self.state.update)

    monkeypatch.setattr(Trainer, "resume", resumed)
    s3fs.S3FileSystem.clear_instance_cache()  # of earlier tests' addresses
    second = place.call("run", tmp_path / "short.yaml", "--executor", "inline")
    assert second.returncode == 0, second.stderr
    assert updates > [0], "it begins from the checkpoint"
    whole = undisturbed.contents()
    for name, rows in place.contents().items():
        assert rows, name
        assert rows.items() <= whole[name].items(), name
    assert place.happened("train/softmax/1").count("started") == 3
    assert place.happened("corpus/grammar").count("started") == 1  # what was done is not done again
    assert not (place.home / "artefacts").exists()


def of_node(place: Place, table: type[Segment] | type[Hypothesis], node: str) -> Sequence[Any]:
    """The rows of a node's step, in the segments' order."""
    with place.session() as session:
        key = select(StudyStep.step_key).where(StudyStep.node == node)
        return session.scalars(select(table).where(table.step_key.in_(key)).order_by(table.index)).all()


@pytest.mark.parametrize("system", ["beam", "nvs"])
def test_lines_are_translated_as_the_test_set_was(undisturbed: Place, system: str) -> None:
    sources = of_node(undisturbed, Segment, "test_set/test")
    outputs = of_node(undisturbed, Hypothesis, f"decode/{system}/1/test")
    lines = "".join(f"{row.source}\n" for row in sources)
    done = undisturbed.call("translate", "tiny", system, "--json", "--selected", given=lines)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["text"] for row in rows] == [output.text for output in outputs]
    assert [row["score"] for row in rows] == pytest.approx([output.score for output in outputs], abs=1e-4)
    sizes = [row["selected_size"] for row in rows]
    assert sizes == [output.selected_size for output in outputs]
    allowed = [row["selected"] for row in rows]
    assert allowed == [None] * len(rows) if system == "beam" else [len(words) for words in allowed] == sizes


def test_several_translations_of_a_line(undisturbed: Place) -> None:
    def tried(*more: str) -> Done:
        return undisturbed.call("translate", "tiny", *more, given="the dog\nthe old house\n")

    def translate(*more: str) -> list[str]:
        done = tried(*more)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    rows = [line.split("\t") for line in translate("beam", "--nbest", "3")]
    objects = [json.loads(line) for line in translate("beam", "--nbest", "3", "--json")]
    assert [(number, text) for number, _, text in rows] == [
        (str(number), best["text"]) for number, line in enumerate(objects, start=1) for best in line["best"]
    ]
    for line in objects:
        assert line["text"] == line["best"][0]["text"]
        assert [best["score"] for best in line["best"]] == sorted(
            (best["score"] for best in line["best"]), reverse=True
        )
    word = objects[0]["text"].split()[0]
    rows = [json.loads(line) for line in translate("nvs", "--word", word, "--json")]
    for line in rows:
        assert "".join(found["subword"] for found in line["word"]) == f"▁{word}"
        assert all(found["allowed"] == (not found["needs"]) for found in line["word"])
    for system, said in {"greedy": "only one translation", "beam": "at most 3"}.items():
        done = tried(system, "--nbest", "4")
        assert done.returncode == 2
        assert said in done.stderr


@pytest.mark.parametrize("to", ["ctranslate2", "safetensors"])
def test_an_exported_model_loads_as_its_card_says(undisturbed: Place, tmp_path: Path, to: str) -> None:
    folder, export = tmp_path / "model", ("export", "tiny", "greedy", "--to", to)
    exported = undisturbed.call(*export, folder)
    assert "40 of 40 outputs" in exported.stdout + exported.stderr
    card = (folder / "README.md").read_text()
    assert "\\`" not in card  # an escaped mark of code, which readers would see
    for words in ("softmax", "320", "BLEU", "40 of 40 outputs", "license: unknown"):
        assert words in card
    snippet = card.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "sources").write_text(
        "".join(f"{row.source}\n" for row in of_node(undisturbed, Segment, "test_set/test"))
    )
    for_lines = "\nfrom pathlib import Path\nlines = Path('../sources').read_text().split('\\n')[:-1]\n"
    printed = "translate(lines)" if to == "ctranslate2" else "model.translate(lines)"
    program = f"{snippet}{for_lines}print(*{printed}, sep='\\n')\n"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=COMMAND
    )
    assert done.returncode == 0, done.stderr
    outputs = of_node(undisturbed, Hypothesis, "decode/greedy/1/test")
    assert done.stdout.splitlines()[1:] == [row.text for row in outputs]

    if to == "ctranslate2":
        small = undisturbed.call(
            "export", "tiny", "beam", "--to", to, "--quantize", "int8", tmp_path / "small"
        )
        assert small.returncode == 0, small.stderr
        assert "with beam 3" in small.stdout + small.stderr
        card = (tmp_path / "small" / "README.md").read_text()
        assert 'compute_type="int8"' in card
        assert "By beam search, with beam 3" in card

    again = undisturbed.call(*export, folder)
    assert again.returncode == 2
    assert "it is not empty" in again.stderr
