"""deploy/slurm/creamtea.sbatch with fakes of Slurm, Ray and creamtea that write down how they are called."""

import itertools
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from limits import ANSWER, wait_until

from creamtea.settings import is_withheld

SCRIPT = Path(__file__).parents[2] / "deploy" / "slurm" / "creamtea.sbatch"
_jobs = itertools.count(1)
SAY = 'echo "$(basename "$0") $*" >> "$CALLS"\n'
FAKES = {
    "scontrol": 'printf "node1\\nnode2\\nnode3\\n"\n',
    "srun": SAY + 'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"\n',
    # says what it sees; a node runs until it is ended
    "ray": '[ "$1" != health-check ] || { [ -z "${BROKEN:-}" ]; exit; }\n'
    + SAY
    + 'stat -c "token %a" "$RAY_AUTH_TOKEN_PATH" >> "$CALLS"\n'
    + 'stat -c "folder %a" "/tmp/creamtea-$SLURM_JOB_ID" >> "$CALLS"\n'
    + 'env | grep -c -e secret | sed "s/^/secrets /" >> "$CALLS"\n'
    + 'echo "usage statistics $RAY_USAGE_STATS_ENABLED" >> "$CALLS"\n'
    + "trap 'kill $!; exit 0' TERM; sleep 60 & wait\n",
    "creamtea": SAY
    + """trap 'echo stopped >> "$CALLS"; kill $!; exit 130' TERM\n"""
    + 'eval "${CREAMTEA_DOES:-true}"\n',
}


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, body in FAKES.items():
        path = programs / name
        path.write_text(f"#!/bin/bash\n{body}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    job = f"{os.getpid()}{next(_jobs)}"
    yield {
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "HOME": str(tmp_path),
        "CALLS": str(tmp_path / "calls"),
        "CREAMTEA_DATABASE_URL": "postgresql://anna:secret@lab/creamtea",
        "CREAMTEA_OIDC_CLIENT_SECRET": "secret",
        "PGPASSWORD": "secret",
        "CREAMTEA_ARTEFACTS": "/shared",
        "SLURM_JOB_ID": job,
        "SLURM_JOB_NODELIST": "node[1-3]",
        "SLURM_JOB_NUM_NODES": "3",
        "SLURM_CPUS_PER_TASK": "16",
    }
    shutil.rmtree(f"/tmp/creamtea-{job}", ignore_errors=True)


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
    assert "--nodelist=node1" in steps[0]
    assert "--nodes=2 --ntasks=2" in steps[1]
    assert "--exclude=node1" in steps[1]
    job = environment["SLURM_JOB_ID"]
    port = 20000 + int(job) % 10000
    ray = f"ray start --temp-dir=/tmp/creamtea-{job}/ray"
    assert f"{ray} --head --port={port} --num-cpus=16 --include-dashboard=false --block" in said
    assert f"{ray} --address=node1:{port} --num-cpus=16 --block" in said
    assert said.count("token 600") == 2
    assert said.count("folder 700") == 2
    assert said.count("secrets 0") == 2, "the controller alone has the database's password"
    assert said.count("usage statistics 0") == 2
    assert "creamtea controller --until-idle" in said
    assert not list(Path(environment["HOME"], ".creamtea").iterdir())  # the token is gone


def test_what_nodes_do_not_get_are_no_variables_that_workers_need() -> None:
    [names] = re.findall(r"^WITHHELD=\((.*?)\)", SCRIPT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert [name for name in names.split() if not is_withheld(name)] == []


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
