"""What a study with `track` sends of its trainings, and that no tracker can end it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from limits import ANSWER
from table_rows import NOON, step_row

from creamtea.contract.step import LiveView, PointRow
from creamtea.engine import tracking
from creamtea.engine.events import EngineEvent, Notice, StepProgressed, StepSucceeded
from creamtea.engine.tracking import TRACKERS, Tracking
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import Metric, Point, StudyRow, StudyStep
from creamtea.study.plan import plan
from creamtea.study.spec import Study

SPEC: dict[str, Any] = {
    "track": {"kind": "wandb", "project": "jam"},
    "variants": {"soft": {"objective": {"kind": "softmax"}, "training": {"batch_tokens": 64}}},
}
TRAIN, SCORE = "t" * 64, "s" * 64


class Recorded:
    """A run that keeps what it gets."""

    def __init__(self, project: str, name: str, key: str, parameters: dict[str, Any]) -> None:
        self.made = (project, name, key, parameters)
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.closed = False

    def log(self, update: int, values: Any) -> None:
        self.logged.append((update, dict(values)))

    def close(self) -> None:
        self.closed = True


Hear = Callable[..., list[EngineEvent]]


@pytest.fixture
def tracking_of(sqlite: Database, store: ArtefactStore) -> Callable[..., tuple[Tracking, list[EngineEvent]]]:
    """Watches a running study with this spec, which has a training and the score of a system that decodes
    with it; and what is told."""

    def watch(spec: dict[str, Any]) -> tuple[Tracking, list[EngineEvent]]:
        with sqlite.transaction() as session:
            row = StudyRow(name="toast", spec=spec, config_hash="c", code_version="0", state="running")
            row.created_at = NOON
            session.add(row)
            session.flush()
            of_model = {"variant": "soft", "seed": 1}
            steps = {
                TRAIN: ("train", of_model),
                SCORE: ("score", {**of_model, "system": "greedy", "test_set": "test", "metric": "bleu"}),
            }
            for position, (key, (kind, labels)) in enumerate(steps.items()):
                session.add(step_row(key, kind, state="running", fence=3))
                session.flush()
                place = {"study_id": row.id, "node": f"{kind}/x", "position": position}
                session.add(StudyStep(**place, step_key=key, labels=labels))
            session.add(Metric(step_key=SCORE, name="bleu", subject="", value=31.5, note="", detail={}))
            for position, point in enumerate(({"x": 10, "y": 4.0}, {"x": 20, "y": 3.0})):
                session.add(Point(step_key=TRAIN, series="dev_loss", position=position, label="", **point))
            number = row.id
        told: list[EngineEvent] = []
        tracked = Tracking(sqlite, store, told.append)
        tracked.watch({number})
        return tracked, told

    return watch


@pytest.fixture
def hear(tracking_of: Callable[..., tuple[Tracking, list[EngineEvent]]], store: ArtefactStore) -> Hear:
    """What is told while the training runs, ends, and is scored."""

    def told_of(spec: dict[str, Any] = SPEC) -> list[EngineEvent]:
        tracked, told = tracking_of(spec)
        view = LiveView([PointRow("train_loss_now", 5, 6.5), PointRow("dev_loss", 10, 4.0)])
        store.write_live(TRAIN, 3, view)
        tracked.hear(StepProgressed(TRAIN, "train/x", 5, 20, "", at=0.0))
        tracked.hear(StepProgressed(TRAIN, "train/x", 6, 20, "", at=0.0))  # too soon for another look
        tracked.hear(StepSucceeded(TRAIN, "train/x", 1.0))
        tracked.hear(StepSucceeded(SCORE, "score/x", 1.0))
        tracked.close()
        return told

    return told_of


def test_curves_come_as_they_grow_and_scores_after_them(hear: Hear, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Recorded] = []

    def make(*given: Any) -> Recorded:
        runs.append(Recorded(*given))
        return runs[-1]

    monkeypatch.setitem(TRACKERS, "wandb", make)
    assert hear() == []
    (run,) = runs
    parameters = {"objective.kind": "softmax", "training.batch_tokens": 64}
    assert run.made == ("jam", "soft-1", TRAIN, parameters)
    assert run.logged == [
        (5, {"train_loss_now": 6.5}),
        (10, {"dev_loss": 4.0}),
        (20, {"dev_loss": 3.0}),  # what was sent is not sent again
        (20, {"test/greedy/bleu": 31.5}),
    ]
    assert run.closed


@pytest.mark.parametrize("fails_at", ["__init__", "log", "close"])
def test_a_tracker_that_fails_is_told_once_and_ends_nothing(
    hear: Hear, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    def fail(*_: Any) -> None:
        raise ConnectionError("no route to jam")

    monkeypatch.setitem(TRACKERS, "wandb", type("Broken", (Recorded,), {fails_at: fail}))
    assert [notice.message for notice in hear() if isinstance(notice, Notice)] == [
        "study toast goes on without tracking by wandb: ConnectionError: no route to jam"
    ]


def test_a_library_that_is_missing_is_named(hear: Hear, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(tracking, "import_module", missing)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    (notice,) = hear(SPEC | {"track": {"kind": "mlflow"}})
    assert isinstance(notice, Notice)
    assert notice.message.endswith("install it with pip install 'creamtea[mlflow]'")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("wandb", "set WANDB_API_KEY, or WANDB_MODE=offline"),  # which would else ask at the terminal
        ("mlflow", "set MLFLOW_TRACKING_URI"),
    ],
)
def test_addresses_and_keys_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, kind: str, message: str
) -> None:
    for name in ("WANDB_API_KEY", "WANDB_MODE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=message):
        TRACKERS[kind]("p", "r", TRAIN, {})


def test_a_study_that_does_not_track_has_no_thread(
    tracking_of: Callable[..., tuple[Tracking, list[EngineEvent]]],
) -> None:
    tracked, told = tracking_of({"variants": {}})
    assert tracked._thread is None
    tracked.hear(StepSucceeded(TRAIN, "train/x", 1.0))
    tracked.close()
    assert told == []


@pytest.mark.parametrize("kind", ["tensorboard", "mlflow", "wandb"])
def test_the_libraries_take_what_is_sent(
    hear: Hear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    pytest.importorskip(kind)
    monkeypatch.setenv("CREAMTEA_HOME", str(tmp_path))
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setattr(tracking, "PATIENCE", ANSWER)  # for the import, too
    assert hear(SPEC | {"track": {"kind": kind}}) == []
    written = [path for path in tmp_path.rglob("*") if path.is_file() and "artefacts" not in path.parts]
    assert written
    if kind == "tensorboard":
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        read = EventAccumulator(str(tmp_path / "tensorboard" / "toast" / "soft-1")).Reload()
        assert [(point.step, point.value) for point in read.Scalars("dev_loss")] == [(10, 4.0), (20, 3.0)]
        assert [point.value for point in read.Scalars("test/greedy/bleu")] == [31.5]
    if kind == "mlflow":
        import mlflow

        client = mlflow.MlflowClient()
        (run,) = client.search_runs([client.get_experiment_by_name("toast").experiment_id])
        assert (run.info.run_name, run.info.status) == ("soft-1", "FINISHED")
        assert run.data.metrics == {"train_loss_now": 6.5, "dev_loss": 3.0, "test/greedy/bleu": 31.5}
        assert run.data.params["objective.kind"] == "softmax"


def test_no_step_knows_of_it() -> None:
    document = yaml.safe_load((Path(__file__).parents[1] / "e2e" / "tiny.yaml").read_text())
    without = Study.model_validate(document)
    tracked = Study.model_validate(document | {"track": {"kind": "mlflow"}})
    assert tracked.model_dump()["track"] == {"kind": "mlflow", "project": ""}
    assert "track" not in without.model_dump()  # the config hash of other studies stays
    assert plan(tracked, None).nodes == plan(without, None).nodes
