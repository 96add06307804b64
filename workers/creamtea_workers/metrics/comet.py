"""COMET (Rei et al. 2020) by a subprocess in its own environment.

COMET's pins exclude those of the rest, so `comet_script.py` runs under another interpreter
(`Settings.comet_python`): segments in as JSON lines, scores out as JSON lines. The same seam serves any
metric with pins of its own.
"""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from creamtea.contract.step import StepContext
from creamtea.errors import StepError, StepUnavailable
from creamtea.methods.metrics import Comet
from creamtea.methods.texts import Languages
from creamtea.scratch import scratch_folder
from creamtea.settings import Settings
from creamtea_workers.metrics.base import Array, mean_of_sums, mean_statistics
from creamtea_workers.metrics.texts import Texts

SCRIPT = Path(__file__).with_name("comet_script.py")
STALL_SECONDS = 3600.0  # without a message; fetching a model of some GB is one silent spell
Progress = Callable[[float, float, str], None]


class CometMetric:
    """Mean of the segments' COMET scores; statistics (n, 2): the segment's score, and 1."""

    name = "comet"
    note = ""

    def __init__(
        self, spec: Comet, python: Path, model: str, progress: Progress, cpus: int = 1, gpus: float = 0.0
    ) -> None:
        """`model` is where `spec.model` is on this machine: itself for a name, a path for a checkpoint."""
        self._spec = spec
        self._python = python
        self._model = model
        self._progress = progress
        self._cpus = cpus
        self._gpus = 1 if gpus > 0 else 0
        self.facts: Mapping[str, Any] = {}  # what the script reported: versions, device, the model's revision

    def statistics(self, texts: Texts) -> Array:
        if not (self._python.is_file() and os.access(self._python, os.X_OK)):
            raise StepUnavailable(
                f"COMET's environment is missing: {self._python} is not a Python interpreter; run "
                "`make install-comet`, or set CREAMTEA_COMET_PYTHON to the python of an environment with "
                "unbabel-comet"
            )
        with scratch_folder("comet") as folder:
            work = Path(folder)
            lines = (
                json.dumps({"src": source, "mt": hypothesis, "ref": reference}) + "\n"
                for source, hypothesis, reference in zip(
                    texts.sources, texts.hypotheses, texts.references, strict=True
                )
            )
            (work / "input.jsonl").write_text("".join(lines), encoding="utf-8")
            self.facts = self._run(work)
            written = (work / "output.jsonl").read_text(encoding="utf-8").split("\n")
        values = [float(json.loads(line)) for line in written if line]
        finite, expected = sum(map(math.isfinite, values)), len(texts.hypotheses)
        if not finite == len(values) == expected:
            raise StepError(f"COMET gave {finite} finite scores for {expected} segments")
        return mean_statistics(values)

    def score(self, sums: Array) -> Array:
        return mean_of_sums(sums)

    def segment_scores(self, statistics: Array) -> Array:
        return statistics[:, 0]

    def signature(self) -> str:
        pins = {
            "model": self._spec.model,
            "revision": self.facts.get("revision"),
            "version": self.facts.get("comet"),
        }
        return "|".join(f"{name}:{value}" for name, value in pins.items() if value)

    def _run(self, work: Path) -> dict[str, Any]:
        # -I: neither this folder (whose comet.py would be imported) nor PYTHONPATH reaches the script
        command = [str(self._python), "-I", str(SCRIPT), "--model", self._model]
        command += ["--input", str(work / "input.jsonl"), "--output", str(work / "output.jsonl")]
        command += ["--batch-size", str(self._spec.batch_size), "--gpus", str(self._gpus)]
        threads = {"OMP_NUM_THREADS": str(self._cpus), "TOKENIZERS_PARALLELISM": "false"}
        log = work / "log.txt"
        with log.open("wb") as errors:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,  # held open: the script ends when it closes
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    cwd=work,
                    env={**os.environ, **threads},
                    start_new_session=True,
                )
            except OSError as error:
                raise StepUnavailable(
                    f"{self._python} cannot be started ({error.strerror}); run `make install-comet`, or set "
                    "CREAMTEA_COMET_PYTHON"
                ) from error
            try:
                last = self._listen(process)
                code = process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                raise StepError("COMET gave its result but did not end within a minute") from None
            finally:
                _kill(process)
        if "result" in last and code == 0:
            return dict(last["result"])
        if "unavailable" in last:
            raise StepUnavailable(f"COMET: {last['unavailable']}; {self._remedy()}")
        reason = last.get("failed") or f"it ended with code {code}: {_tail(log)}"
        raise StepError(f"COMET failed: {reason}")

    def _listen(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        """Pass progress on until the script closes its output; return its last message."""
        assert process.stdout is not None
        messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=_read_messages, args=(process.stdout, messages), daemon=True).start()
        last: dict[str, Any] = {}
        done, total, what = 0.0, 1.0, "starting COMET"
        heard = time.monotonic()
        while True:
            self._progress(done, total, what)  # also between messages: this is where a cancel arrives
            try:
                message = messages.get(timeout=1.0)
            except queue.Empty:
                if time.monotonic() - heard > STALL_SECONDS:
                    raise StepError(f"COMET said nothing for {STALL_SECONDS:.0f} s while {what}") from None
                continue
            if message is None:
                return last
            heard = time.monotonic()
            last = message
            if "done" in message:
                done, total, what = message["done"], message["total"], "scoring with COMET"
            what = message.get("message", what)

    def _remedy(self) -> str:
        return (
            "fetch the model once with a network (HF_HUB_OFFLINE unset, and logged in to the hub for a gated "
            "model), or give the path of a checkpoint as the metric's `model`; the next run tries again"
        )


def _read_messages(stream: IO[bytes], messages: queue.Queue[dict[str, Any] | None]) -> None:
    for line in stream:
        try:
            message = json.loads(line)
        except ValueError:
            continue  # not a message of the script, perhaps not even Python: the exit code tells
        if isinstance(message, dict):
            messages.put(message)
    messages.put(None)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the script and what it started; harmless when it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _tail(log: Path, characters: int = 400) -> str:
    text = " ".join(log.read_text(encoding="utf-8", errors="replace").split())
    return text[-characters:] or "it printed nothing"


def build(spec: Comet, languages: Languages, context: StepContext[Any]) -> CometMetric:
    return CometMetric(
        spec,
        python=Settings.load().comet_python,
        model=context.locations.get(spec.model, spec.model),
        progress=context.progress,
        cpus=context.cpus,
        gpus=context.gpus,
    )
