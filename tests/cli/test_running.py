"""run, submit, status, cancel, retry and controller, in processes of their own, with fake steps."""

import json
import os
import shlex
import signal
import socket
import sqlite3
from pathlib import Path
from subprocess import Popen

import pytest
from limits import ANSWER, wait_until

INLINE = ("--executor", "inline")
pytestmark = pytest.mark.slow


def running(creamtea, how: str = "sleep") -> Popen[str]:
    """A run in a process of its own, whose training has begun and does not end."""
    fakes = json.dumps({"train": how})
    process = creamtea.start("run", creamtea.folder / "tiny.yaml", *INLINE, "--quiet", FAKES=fakes)
    wait_until(lambda: creamtea.state().get("train/softmax/1") == "running")
    return process


def test_run_prints_the_report_and_reuses_everything_the_second_time(creamtea, study: Path) -> None:
    first = creamtea("run", study, *INLINE)
    assert first.returncode == 0, first.stderr
    assert "softmax-greedy" in first.stdout
    assert "done      score/softmax-greedy/1/test/bleu" in first.stderr
    assert "11 of 11 steps done" in first.stderr
    second = creamtea("run", study, *INLINE, "--json")
    facts = json.loads(second.stdout)
    assert (facts["state"], facts["steps"], facts["reused"]) == ("succeeded", {"succeeded": 11}, 11)
    assert second.stderr == ""
    assert "warning: test: softmax-greedy and scones-greedy gave the same outputs" in first.stdout
    warnings = [(warning["kind"], warning["place"]) for warning in facts["warnings"]]
    assert warnings == [("same-outputs", "test")]
    # in a terminal the last lines are the answer and the next command
    other = ("--set", "variants.scones.objective.alpha=0.3")  # some steps run again, so that they are shown
    done = creamtea("run", study, *INLINE, *other, FORCE_COLOR="1")  # which makes a terminal of any output
    before, after = done.stdout.split("What came out")[1:]
    assert "softmax-greedy has, like scones-greedy, the highest score" in after
    assert len(after) < len(before)
    assert done.stderr.endswith("In a browser: creamtea serve\n")
    said = creamtea.refused("export", "tiny", "softmax-greedy", "--to", "safetensors", study / "model")
    assert said.startswith(f"creamtea: {study / 'model'}: cannot be written (")


def test_run_shows_the_warnings_of_the_study_before_and_after(creamtea, study: Path) -> None:
    short = "variants.softmax.training.max_updates=100"
    done = creamtea("run", study, *INLINE, "--set", short)
    assert done.returncode == 0
    assert done.stderr.count(f"warning: --set {short}: variants.softmax.training.warmup: ") == 2
    facts = creamtea.json("run", study, *INLINE, "--set", short, "--quiet")
    assert [warning["kind"] for warning in facts["warnings"]] == ["warm-up", "same-outputs"]


def test_a_failed_step_is_named_with_what_to_do_and_exit_code_1(creamtea, study: Path) -> None:
    empty = creamtea("status")
    assert (empty.returncode, "creamtea run" in empty.stdout) == (0, True)
    adapted = "{corpus: grammar, subwords: joint, objective: {kind: softmax}, start_from: softmax}"
    system = f"  adapted: {adapted}\nsystems:\n  adapted-greedy: {{variant: adapted}}\n"
    study.write_text(study.read_text().replace("systems:\n", system))
    done = creamtea("run", study, *INLINE, "--quiet", FAKES='{"train": "error"}')
    assert done.returncode == 1
    assert "the loss is NaN at update 3" in done.stdout
    failed, left_out = done.stderr.splitlines()
    assert failed.startswith("train/softmax/1, train/scones/1: ")
    assert left_out.startswith("10 steps ")
    assert "4/16" in creamtea("status").stdout
    [listed] = creamtea.json("status")["studies"]
    found = (listed["study"], listed["state"], listed["steps"])
    assert found == ("tiny", "failed", {"failed": 12, "succeeded": 4})
    shown = creamtea("status", "tiny", "--watch")  # ends at once: the study has ended
    assert "deterministic: the loss is NaN at update 3" in shown.stdout
    narrow = creamtea("status", "tiny", COLUMNS="40").stdout
    assert [narrow.count(f" {word} ") for word in ("succeeded", "failed", "not run")] == [4, 2, 10]
    steps = {step["node"]: step for step in creamtea.json("status", "tiny")["steps"]}
    assert steps["train/softmax/1"]["error_kind"] == "deterministic"
    # what starts from a variant that failed does not run
    for node in ("train/adapted/1", "decode/softmax-greedy/1/test"):
        step = steps[node]
        assert (step["state"], step["error_kind"], step["attempts"]) == ("failed", "upstream", 0)
        assert "train/softmax/1" in step["error"]
    facts = creamtea.json("run", study, *INLINE, "--quiet", FAKES='{"decode": "error"}')
    assert [problem["node"] for problem in facts["failed"]] == [
        f"decode/{system}-greedy/1/test" for system in ("adapted", "softmax", "scones")
    ]
    assert facts["failed"][0]["error"] == "the loss is NaN at update 3"
    assert len(facts["left_out"]) == 6


def test_an_unavailable_metric_leaves_the_study_done(creamtea, study: Path) -> None:
    done = creamtea("run", study, *INLINE, "--quiet", FAKES='{"score": "unavailable"}')
    assert done.returncode == 0
    assert "the metric's model cannot be had here" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert "unavailable" in done.stderr
    shown = creamtea("status", "tiny").stdout
    assert (shown.count("unavailable"), "failed" in shown) == (2, False)
    facts = creamtea.json("run", study, *INLINE, "--quiet", FAKES='{"score": "unavailable"}')
    assert facts["steps"] == {"succeeded": 9, "unavailable": 2}
    again = creamtea.json("run", study, *INLINE, "--quiet")
    assert (again["steps"], again["reused"]) == ({"succeeded": 11}, 9)


def test_an_infrastructure_failure_is_tried_again_by_itself(creamtea, study: Path) -> None:
    done = creamtea("run", study, *INLINE, FAKES='{"subwords": "once"}')
    assert done.returncode == 0
    assert "retry     subwords/grammar/joint in 2 s: the disk went away" in done.stderr


def test_interrupt_and_go_on(creamtea, study: Path) -> None:
    process = running(creamtea)
    process.send_signal(signal.SIGTERM)  # SIGINT: below
    _, told = process.communicate(timeout=ANSWER)
    assert process.returncode == 130
    assert told.startswith("creamtea: interrupted")
    assert "`creamtea retry tiny`" in told
    assert "finished steps are kept, and training resumes" in told
    assert creamtea.state()["train/softmax/1"] == "cancelled"
    facts = creamtea.json("retry", "tiny", *INLINE, "--quiet")
    assert (facts["steps"], facts["reused"]) == ({"succeeded": 11}, 3)
    said = creamtea.refused("retry", "tiny", *INLINE)
    assert "all 11 steps of tiny have succeeded: there is nothing to retry" in said
    assert creamtea.json("status", "tiny")["state"] == "succeeded"


def test_an_interrupted_comparison_speaks_of_no_training(creamtea) -> None:
    for name in ("source", "reference", "ours"):
        (creamtea.folder / name).write_text(f"{name}\n" * 4)
    files = ["--source", "source", "--reference", "reference", "ours", "--name", "tiny"]
    process = creamtea.start("compare", *files, "--metrics", "bleu", FAKES='{"score": "sleep"}')
    wait_until(lambda: "running" in creamtea.state().values())
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=ANSWER)
    assert process.returncode == 130, told
    assert told.rstrip().endswith("continues from here: finished steps are kept")


def test_interrupted_inside_of_torch_it_has_the_same_exit_code(creamtea, study: Path) -> None:
    process = running(creamtea, "deaf")
    wait_until(lambda: list(creamtea.home.glob("artefacts/checkpoints/*/deaf")))
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=ANSWER)
    assert process.returncode == 130, told
    assert creamtea.state()["train/softmax/1"] == "cancelled"


def test_kill_9_and_go_on(creamtea, study: Path) -> None:
    process = running(creamtea)
    process.kill()
    process.wait()
    facts = creamtea.json("run", study, *INLINE, "--quiet")
    assert (facts["steps"], facts["reused"]) == ({"succeeded": 11}, 3)
    assert [one["state"] for one in creamtea.json("status")["studies"]] == ["succeeded"], "it went on"


def test_cancel_from_another_process_while_a_third_follows_the_log(creamtea, study: Path) -> None:
    process = running(creamtea)
    progress = [step["progress"] for step in creamtea.json("status", "tiny")["steps"] if step["progress"]]
    assert progress[0]["message"] == "asleep"
    following = creamtea.start("logs", "tiny", "train/softmax/1", "--follow")
    assert "train/softmax/1" in following.stdout.readline()  # while it runs
    done = creamtea("cancel", "tiny")
    assert done.returncode == 0
    assert "`creamtea retry tiny`" in done.stdout
    _, told = process.communicate(timeout=ANSWER)
    assert process.returncode == 1
    assert "`creamtea retry tiny`" in told
    output, _ = following.communicate(timeout=ANSWER)
    assert following.returncode == 0
    assert "train/softmax/1" not in output  # nothing twice
    said = creamtea.refused("cancel", "tiny")
    assert "study tiny" in said
    assert "(cancelled)" in said


def test_submit_leaves_a_controller_that_serves_all_and_when_stopped_leaves_them_to_the_next(
    creamtea, study: Path
) -> None:
    facts = creamtea.json("submit", study, *INLINE, FAKES='{"train": "sleep"}')
    assert facts["state"] == "queued"
    wait_until(lambda: creamtea.state().get("train/softmax/1") == "running")
    other = creamtea("submit", study, *INLINE, "--set", "name=other")  # served by the same controller
    assert other.returncode == 0, other.stderr
    assert len(list((creamtea.home / "logs").iterdir())) == 1
    said = creamtea.refused("submit", study, "--address", "127.0.0.1:6379")
    assert "127.0.0.1:6379" in said
    assert "--address" in said
    creamtea("cancel", "other")
    pid = int(creamtea.json("status")["controller"].split()[1])
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: creamtea.json("status")["controller"] is None)
    # written after the lease is given back, by a process that may be slow to end
    wait_until(lambda: "the controller was stopped" in Path(facts["log"]).read_text())
    assert "started   train/softmax/1" in Path(facts["log"]).read_text()
    assert creamtea.state()["train/softmax/1"] == "ready"
    done = creamtea("controller", *INLINE, "--until-idle")
    assert done.returncode == 0, done.stderr
    assert set(creamtea.state().values()) == {"succeeded"}


def test_a_refused_run_queues_nothing(creamtea, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**options: object) -> None:
        raise Exception("The current node timed out during startup.")

    with creamtea.lease():
        said = creamtea.refused("run", study, *INLINE)
    assert said.startswith("creamtea: another controller is working on this database: process ")
    assert "`creamtea submit`" in said
    assert creamtea.json("status")["studies"] == []
    monkeypatch.setattr("ray.init", init)
    refusal = creamtea.refused("run", study)
    assert "cannot use Ray on this machine: The current node timed out" in refusal
    assert "`--executor inline`" in refusal
    assert [one["state"] for one in creamtea.json("status")["studies"]] == ["cancelled"]


def test_a_controller_that_is_slow_to_start_is_no_error(
    creamtea, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.cli.running.START_SECONDS", 0.0)
    done = creamtea("submit", study, *INLINE)
    assert done.returncode == 0, done.stderr
    assert "still starting after 0 s" in done.stderr
    assert "queued tiny" in done.stdout


def test_submit_starts_no_controller_where_one_is_a_service(creamtea, study: Path) -> None:
    said = creamtea.refused("submit", study, *INLINE, CREAMTEA_CONTROLLER="mine")
    assert "CREAMTEA_CONTROLLER=mine" in said
    done = creamtea("submit", study, *INLINE, CREAMTEA_CONTROLLER="service")
    assert done.returncode == 0, done.stderr
    assert "no controller is running now" in done.stderr
    assert not (creamtea.home / "logs").exists()
    assert creamtea.json("status")["studies"][0]["state"] == "queued"
    # a health check asks whether a controller renews its lease
    assert creamtea("controller", "--check").returncode == 1
    with creamtea.lease():
        checked = creamtea("controller", "--check")
    assert checked.returncode == 0, checked.stderr
    assert "a controller is running" in checked.stdout


def test_submit_wait_has_the_exit_codes_of_run(creamtea, study: Path) -> None:
    failed = creamtea("submit", study, *INLINE, "--wait", "--quiet", FAKES='{"train": "error"}')
    assert failed.returncode == 1
    assert "5 steps not run" in failed.stderr
    done = creamtea("submit", study, *INLINE, "--wait")
    assert done.returncode == 0, done.stderr
    assert "11 of 11 steps done, 4 reused" in done.stderr
    assert "softmax-greedy" in done.stdout


def test_a_controller_waits_for_a_run_to_end_and_goes_when_nothing_is_left(creamtea, study: Path) -> None:
    first = running(creamtea)
    assert creamtea("submit", study, *INLINE, "--set", "name=other").returncode == 0
    assert set(creamtea.state("other").values()) & {"queued", "ready", "pending", "running"}
    first.kill()
    first.wait()
    creamtea("cancel", "tiny")
    wait_until(lambda: set(creamtea.state("other").values()) == {"succeeded"})
    wait_until(lambda: creamtea.json("status")["controller"] is None)


# ---------------------------------------------------------------- what users get wrong


def test_wrong_input_is_one_message_and_exit_code_2(creamtea, study: Path) -> None:
    for arguments, message in {
        "retry nosuch": "no study 'nosuch'; the database has no study yet; ",
        "translate tiny softmax-greedy --word ''": "--word: no word was given",
        "run tiny.yaml --executor inline --address head:6379": "--address names a Ray cluster, which "
        "--executor inline does not use\n",
        "submit tiny.yaml --address ray://head:10001": "--address ray://head:10001: write HOST:PORT",
    }.items():
        assert creamtea.refused(*shlex.split(arguments)).startswith(f"creamtea: {message}")
    creamtea.refused("run", study, "--frobnicate")
    creamtea.refused("frobnicate")
    assert creamtea.json("status")["studies"] == [], "nothing was queued"
    done = creamtea("--traceback", "status", "nosuch")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "InputError: no study 'nosuch'" in done.stderr


# Ray settles once a process how it authenticates: a process of its own, which waits less long for an answer
IMPATIENT = """
from creamtea.cli.main import main
from creamtea.engine.executors import ray

ray.REACH_TIMEOUT = 1.0
main()
"""


def test_a_refused_retry_keeps_what_failed_and_why(creamtea, study: Path) -> None:
    assert creamtea("run", study, *INLINE, "--quiet", FAKES='{"train": "error"}').returncode == 1
    before = creamtea.json("status", "tiny")["steps"]
    with socket.socket() as mute:  # something listens, but it is no Ray
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        process = creamtea.start("retry", "tiny", "--address", address, program=("-c", IMPATIENT))
        _, told = process.communicate(timeout=ANSWER)
    assert process.returncode == 2
    assert told.startswith(f"creamtea: --address {address}: no Ray head answers there")
    after = creamtea.json("status", "tiny")["steps"]
    assert after == before
    assert "the loss is NaN at update 3" in {step["error"] for step in after}


def test_a_database_in_use_is_said_in_one_line(
    creamtea, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creamtea.store.engines.BUSY_TIMEOUT", 100)
    held = sqlite3.connect(creamtea.home / "creamtea.db", isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    done = creamtea("run", study, *INLINE)
    held.close()
    assert done.returncode == 1
    assert "database is locked" in done.stderr
    assert len(done.stderr.splitlines()) == 1
