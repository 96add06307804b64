"""deploy/slurm/creamtea.sbatch with fakes of Slurm, Ray and creamtea that write down how they are called."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from limits import ANSWER, wait_until

SCRIPT = Path(__file__).parents[2] / "deploy" / "slurm" / "creamtea.sbatch"
SAY = 'echo "$(basename "$0") $*" >> "$CALLS"\n'
FAKES = {
    "scontrol": 'printf "node1\\nnode2\\nnode3\\n"\n',
    # a step runs until it is ended, and says what its Ray would see
    "srun": SAY
    + 'stat -c "token %a" "$RAY_AUTH_TOKEN_PATH" >> "$CALLS"\n'
    + 'echo "usage statistics $RAY_USAGE_STATS_ENABLED" >> "$CALLS"\n'
    + "trap 'kill $!; exit 0' TERM; sleep 60 & wait\n",
    "ray": '[ "$1" != health-check ] || [ -z "${BROKEN:-}" ]\n',
    "creamtea": SAY
    + """trap 'echo stopped >> "$CALLS"; kill $!; exit 130' TERM\n"""
    + 'eval "${CREAMTEA_DOES:-true}"\n',
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, body in FAKES.items():
        path = programs / name
        path.write_text(f"#!/bin/bash\n{body}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "HOME": str(tmp_path),
        "CALLS": str(tmp_path / "calls"),
        "CREAMTEA_DATABASE_URL": "postgresql://lab/creamtea",
        "CREAMTEA_ARTEFACTS": "/shared",
        "SLURM_JOB_ID": "12345",
        "SLURM_JOB_NODELIST": "node[1-3]",
        "SLURM_JOB_NUM_NODES": "3",
        "SLURM_CPUS_PER_TASK": "16",
    }


def calls(environment: dict[str, str]) -> list[str]:
    path = Path(environment["CALLS"])
    return path.read_text().splitlines() if path.exists() else []


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(SCRIPT), *arguments], env=environment, capture_output=True, text=True, timeout=ANSWER
    )


def test_head_workers_and_controller_start_with_a_token_and_end(environment: dict[str, str]) -> None:
    # the controller is fast: it waits until both steps have written their last line
    done = run(
        {**environment, "CREAMTEA_DOES": 'until [ "$(grep -c usage "$CALLS")" = 2 ]; do sleep 0.05; done'}
    )
    assert done.returncode == 0, done.stderr
    said = calls(environment)
    steps = sorted((line for line in said if line.startswith("srun")), key=lambda line: "--exclude" in line)
    assert "--nodelist=node1 ray start --head --port=22345 --num-cpus=16" in steps[0]
    assert "--nodes=2 --ntasks=2" in steps[1]
    assert "--exclude=node1 ray start --address=node1:22345" in steps[1]
    assert said.count("token 600") == 2
    assert said.count("usage statistics 0") == 2
    assert "creamtea controller --until-idle" in said
    assert not list(Path(environment["HOME"], ".creamtea").iterdir())  # the token is gone


def test_a_study_is_run_and_its_exit_code_is_the_jobs(environment: dict[str, str]) -> None:
    done = run(
        {**environment, "CREAMTEA_DOES": "exit 1", "SLURM_JOB_NUM_NODES": "1"}, "a b.yaml", "--data", "x"
    )
    assert done.returncode == 1
    assert "creamtea run a b.yaml --data x" in calls(environment)
    assert len([line for line in calls(environment) if line.startswith("srun")]) <= 1


def test_commands_run_in_a_container_where_one_is_named(environment: dict[str, str]) -> None:
    run({**environment, "CREAMTEA_RUN": "env INSIDE=1", "CREAMTEA_DOES": 'echo "inside $INSIDE" >> "$CALLS"'})
    assert "inside 1" in calls(environment)


def test_before_the_time_is_over_the_controller_is_stopped_first(environment: dict[str, str]) -> None:
    job = subprocess.Popen(["bash", str(SCRIPT)], env={**environment, "CREAMTEA_DOES": "sleep 60 & wait"})
    started = {"creamtea controller --until-idle", "token 600"}
    wait_until(lambda: started <= set(calls(environment)) and calls(environment).count("token 600") == 2)
    job.send_signal(signal.SIGTERM)  # as Slurm does
    assert job.wait(ANSWER) == 143
    assert "stopped" in calls(environment)
    assert not list(Path(environment["HOME"], ".creamtea").iterdir())


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"BROKEN": "1", "CREAMTEA_HEAD_SECONDS": "1"}, "did not start within 1 seconds"),
        ({"CREAMTEA_DATABASE_URL": ""}, "CREAMTEA_DATABASE_URL"),
        ({"CREAMTEA_ARTEFACTS": ""}, "CREAMTEA_ARTEFACTS"),
    ],
)
def test_what_is_missing_is_said(environment: dict[str, str], changes: dict[str, str], message: str) -> None:
    done = run({**environment, **changes})
    assert done.returncode == 1
    assert message in done.stderr


def test_the_shell_check_has_nothing_to_say() -> None:
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or "shellcheck"
    done = subprocess.run([shellcheck, str(SCRIPT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
