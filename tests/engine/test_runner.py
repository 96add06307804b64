"""One attempt of a step: what it sees, and what its failures become."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import toy_catalogue
from limits import ANSWER

from creamtea.contract.step import Resources, StepCancelled
from creamtea.engine.executors.base import Amounts, Capacity, Need, StepTask
from creamtea.engine.executors.inline import InlineExecutor
from creamtea.engine.runner import Context, describe, execute
from creamtea.errors import StepError
from creamtea.store.artefacts import ArtefactStore, StoredFile

MakeTask = Callable[..., StepTask]


@pytest.fixture
def task(store: ArtefactStore, log: Path) -> MakeTask:
    def make(do: str = "text", **changes: Any) -> StepTask:
        values: dict[str, Any] = {
            "key": "k" * 64,
            "fence": 1,
            "name": "toy/1",
            "kind": "toy",
            "version": 1,
            "params": {"name": "step", "log": str(log), "do": do},
            "inputs": {},
            "locations": {"a.txt": "/data/a.txt"},
            "resources": Resources(cpus=2),
            "artefacts": store.root,
        }
        return StepTask(**{**values, **changes})

    return make


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that an attempt reads."""
    now = [100.0]
    monkeypatch.setattr("creamtea.engine.runner.time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def context(task: MakeTask, store: ArtefactStore, log: Path, clock: list[float], tmp_path: Path) -> Context:
    params = toy_catalogue.ToyParams(name="step", log=str(log))
    return Context(task(), params, store, tmp_path, lambda: False)


def test_a_step_reads_its_inputs_in_order_and_its_files_are_stored(
    task: MakeTask, store: ArtefactStore, tmp_path: Path
) -> None:
    before = []
    for text in ("b", "a"):
        (tmp_path / text).mkdir()
        (tmp_path / text / "out.txt").write_text(text)
        before.append(store.put_folder(tmp_path / text))
    outcome = execute(task(inputs={"before": before}))
    assert outcome.error_kind is None
    [file] = outcome.files
    assert (file.name, store.read(file.digest)) == ("out.txt", b"bastep;")
    assert outcome.result.facts["said"] == "bastep;"
    assert [row.name for row in outcome.result.metrics] == ["length"]


def test_facts_say_what_it_ran_on_but_not_where(task: MakeTask) -> None:
    facts = execute(task()).result.facts
    assert facts["cpus"] == 2
    assert facts["seconds"] >= 0
    assert facts["peak_rss_mb"] > 10
    assert {"hardware", "creamtea", "python"} <= facts.keys()
    assert socket.gethostname() not in json.dumps(facts)


@pytest.mark.parametrize(
    ("do", "kind", "message"),
    [
        ("step error", "deterministic", "the loss is NaN"),
        ("input error", "deterministic", "file x is empty"),
        ("unavailable", "unavailable", "no toy model here"),
        ("infrastructure", "infrastructure", "the disk went away"),
        ("memory", "infrastructure", "out of memory: too much"),
        ("disk", "infrastructure", "no space left on the worker's disk: [Errno 28] No space left on device"),
        ("no result", "deterministic", "toy_steps returned a NoneType, not a StepResult"),
    ],
)
def test_failures_have_kinds(task: MakeTask, do: str, kind: str, message: str) -> None:
    outcome = execute(task(do))
    assert (outcome.error_kind, outcome.error) == (kind, message)


def test_a_gpu_that_has_no_memory_left_is_tried_again() -> None:
    import torch

    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has")
    kind, message = describe(error)
    assert kind == "infrastructure"
    assert message.startswith("the GPU's memory ran out: CUDA out of memory. Where steps share a GPU, ")


def test_an_unexpected_error_keeps_the_end_of_its_traceback(task: MakeTask) -> None:
    outcome = execute(task("error"))
    assert outcome.error_kind == "deterministic"
    first, *rest = outcome.error.splitlines()
    assert first == "ValueError: the toy is broken"
    assert any("toy_steps.py" in line for line in rest)


@pytest.mark.parametrize(
    ("do", "message"), [("exit", "SystemExit: 3"), ("panic", "Panic: index out of bounds")]
)
def test_a_step_whose_library_ends_the_process_or_the_thread_has_failed(
    task: MakeTask, do: str, message: str
) -> None:
    executor = InlineExecutor()
    executor.start(task(do), ["this process"])
    [finished] = executor.poll(ANSWER)
    assert finished.outcome.error_kind == "deterministic"
    assert finished.outcome.error.startswith(message)


def test_an_interrupt_by_a_person_is_no_failure_of_the_step(task: MakeTask) -> None:
    with pytest.raises(KeyboardInterrupt):
        execute(task("interrupt"))


@pytest.mark.parametrize("changes", [{"version": 2}, {"kind": "unheard_of"}])
def test_a_worker_with_another_creamtea_refuses_the_step(task: MakeTask, changes: dict[str, Any]) -> None:
    outcome = execute(task(**changes))
    assert outcome.error_kind == "deterministic"
    assert outcome.error.startswith("the worker runs another creamtea: the study was planned with version")
    assert outcome.error.endswith("run the study's file again")


def test_a_missing_input_file_is_the_stores_failure(task: MakeTask) -> None:
    outcome = execute(task(inputs={"before": [[StoredFile("out.txt", "0" * 64, 3)]]}))
    assert outcome.error_kind == "infrastructure"
    assert "is missing" in outcome.error


def test_progress_is_written_at_most_twice_a_second(
    context: Context, store: ArtefactStore, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[Any, ...]] = []
    monkeypatch.setattr(store, "write_progress", lambda *told: written.append(told))
    for tick in range(21):
        clock[0] = 100 + tick / 10
        context.progress(tick, 20, "busy")
    assert [done for _, _, done, _, _, _ in written] == [0, 5, 10, 15, 20]
    assert written[0] == ("k" * 64, 1, 0.0, 20.0, "busy", None)
    assert [left for *_, left in written[1:]] == pytest.approx([1.5, 1.0, 0.5, 0.0])


def test_what_is_left_of_a_resumed_step_follows_from_this_attempt_alone(
    context: Context, store: ArtefactStore, clock: list[float]
) -> None:
    for at, done in ((130.0, 90_000), (190.0, 90_100)):  # after 30 seconds of reading text
        clock[0] = at
        context.progress(done, 100_000, "reads caf\udce9.txt")
    progress = store.read_progress("k" * 64, 1)
    assert progress.seconds_left == pytest.approx(60 * 99)
    assert progress.message == r"reads caf\udce9.txt"  # a name that is not UTF-8


def test_progress_of_a_cancelled_step_ends_it(context: Context) -> None:
    context._cancelled = lambda: True
    with pytest.raises(StepCancelled):
        context.progress(1, 2)
    assert not isinstance(StepCancelled(), Exception), "steps must let it pass"


def test_a_role_with_another_number_of_inputs_is_an_error(context: Context) -> None:
    assert context.inputs("before") == []
    with pytest.raises(StepError, match="a toy step needs one input 'before'; it was given 0"):
        context.input("before")


def test_threads_are_those_of_the_step(task: MakeTask) -> None:
    import torch

    execute(task())
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("resources", [{"cpus": 8}, {"gpus": 1}, {"memory_gb": 17.5}])
def test_what_no_node_has_is_refused_though_all_together_have_it(resources: dict[str, Any]) -> None:
    machine = Amounts(4.0, 0.0, 16.0)
    capacity = Capacity({"one": machine, "two": machine})
    assert capacity.refusal(Need.of(Resources(cpus=2))) is None
    asked = {"cpus": 1, "gpus": 0, "memory_gb": 0} | resources
    wants = ", ".join(f"{name}={amount}" for name, amount in asked.items())
    nodes = "2 with cpus=4, gpus=0, memory_gb=16"
    refusal = f"the step asks for {wants} on one node, and no node has that (nodes: {nodes})"
    assert capacity.refusal(Need.of(Resources(**resources))) == refusal
