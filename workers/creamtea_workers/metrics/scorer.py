"""Metrics that another program computes, in an environment of its own: COMET, and the scorers of a machine.

The program reads JSON Lines on its standard input, one for each segment: {"index", "source", "hypothesis",
"reference"}. It prints JSON Lines: {"index", "score"} for each segment, in any order, and with it {"spans"}
if it finds errors (`creamtea.error_spans`); at any time {"message"} or {"done", "total"} for progress; once
{"corpus": score, "signature": text, "facts": {...}}, each of them optional; or {"error": reason} if it cannot
go on. A null is as good as nothing. Its standard error is for people: the end of it is quoted if something
goes wrong. Whatever goes wrong leaves the metric unavailable and the rest of the study as it is.
"""

from __future__ import annotations

import json
import math
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from creamtea.errors import StepUnavailable
from creamtea.scratch import scratch_folder
from creamtea.wording import counted
from creamtea_workers.metrics.base import Array, mean_statistics, ratio
from creamtea_workers.metrics.pinned import PinnedModel
from creamtea_workers.metrics.scorer_lines import Failure, Scores, take_line
from creamtea_workers.metrics.texts import Texts
from creamtea_workers.outside import end, inherited_variables, start

MAX_LINE = 1_000_000  # characters of a line of output
MAX_TEXT = 600  # characters that are kept of what a program says
TAIL_LINES = 5  # of standard error
LAST_SECONDS = 60.0  # from the end of the output to the end of the program
SECRETS = ("TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "AUTH", "KEY")  # in names of variables
Progress = Callable[[float, float, str], None]
_KILLED = {
    128 + number: f"was ended by {number.name}" + " (out of memory?)" * (number == signal.SIGKILL)
    for number in signal.Signals
}


@dataclass(frozen=True)
class Program:
    """`environment` is added to this process's own, without what is creamtea's, Ray's and Python's there."""

    title: str  # in messages
    command: Sequence[str]
    timeout: float  # seconds without a line of output
    environment: Mapping[str, str] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        inherited = {
            name: value
            for name, value in inherited_variables().items()
            if not name.startswith("PYTHON") and name != "VIRTUAL_ENV"
        }
        return {**inherited, "PYTHONUNBUFFERED": "1", **self.environment}

    def without_secrets(self, text: str) -> str:
        """Printable, and without the values of variables that hold secrets."""
        for name, value in self.variables().items():
            if len(value) >= 8 and any(word in name.upper() for word in SECRETS):
                text = text.replace(value, "…")
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())

    def told(self, text: object, most: int = MAX_TEXT) -> str:
        """What it says, as it is shown and kept. It is cut at the end: half a secret is one, too."""
        return self.without_secrets(str(text))[:most]


class ScorerMetric:
    """Mean of the segments' scores; statistics (n, 2): the segment's score, and 1."""

    def __init__(self, name: str, progress: Progress, model: PinnedModel | None = None) -> None:
        self.name = name
        self.model = model or PinnedModel()
        self.note = ""
        self.facts: Mapping[str, Any] = {}  # what the program said of itself
        self.own_signature = ""
        self.error_spans: Mapping[int, list[dict[str, Any]]] = {}  # by segment, of a scorer that finds errors
        self._progress = progress

    def program(self) -> Program:
        """Raises StepUnavailable where this machine lacks it."""
        raise NotImplementedError

    def statistics(self, texts: Texts) -> Array:
        program = self.program()
        self.model.check()
        scores = run(program, texts, self._progress)
        self.model.check()  # it is read while the program runs
        values = [scores.values[index] for index in texts.indices]
        self.facts, self.own_signature, self.error_spans = scores.facts, scores.signature, scores.spans
        mean = math.fsum(values) / len(values)
        if scores.corpus is not None and not math.isclose(mean, scores.corpus, rel_tol=1e-3, abs_tol=1e-6):
            self.note = (
                f"the mean of the segments' scores; {program.title}'s own score of the whole is "
                f"{scores.corpus:.6g}"
            )
        return mean_statistics(values)

    def score(self, sums: Array) -> Array:
        return ratio(sums)

    def segment_scores(self, statistics: Array) -> Array:
        return statistics[:, 0]


def run(program: Program, texts: Texts, progress: Progress) -> Scores:
    """A score for each segment. Raises StepUnavailable with what the program did wrong, and the end of its
    standard error; what `progress` raises ends the program."""
    with scratch_folder("scorer") as folder:
        source = Path(folder) / "input.jsonl"
        with source.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(segment) + "\n" for segment in _segments(texts))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = start(program.command, source, cwd=folder, env=program.variables(), **pipes)
        errors, failure = _Errors(process), None
        try:
            scores = _listen(program, process, texts, progress)
            _check(scores, texts, _exit_code(process))
        except Failure as error:
            failure = error
        finally:
            end(process)
    if failure is not None:
        raise StepUnavailable(f"{program.title} {program.told(failure)}{errors.tail(program)}")
    if scores.error:
        raise StepUnavailable(f"{program.title}: {scores.error}")
    return scores


def _segments(texts: Texts) -> Iterator[dict[str, Any]]:
    for index, source, hypothesis, reference in zip(
        texts.indices, texts.sources, texts.hypotheses, texts.references, strict=True
    ):
        yield {"index": index, "source": source, "hypothesis": hypothesis, "reference": reference}


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(timeout=LAST_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failure(f"closed its output but did not end within {LAST_SECONDS:g} seconds") from None


def _check(scores: Scores, texts: Texts, code: int) -> None:
    if scores.error:
        return
    if code:
        how = _KILLED.get(code, f"ended with code {code}")
        raise Failure(f"{how} after {len(scores.values)} of {counted(len(texts.indices), 'score')}")
    missing = [index for index in texts.indices if index not in scores.values]
    if missing:
        raise Failure(
            f"gave {counted(len(scores.values), 'score')} for {counted(len(texts.indices), 'segment')}; the "
            f"first without one is segment {missing[0]}"
        )
    without = [index for index in texts.indices if index not in scores.spans]
    if scores.spans and without:
        raise Failure(
            f"gave `spans` with {len(scores.spans)} of {counted(len(texts.indices), 'score')}; the first "
            f"without is segment {without[0]}: an output without errors has an empty list"
        )


# ---------------------------------------------------------------- listening


def _listen(program: Program, process: subprocess.Popen[bytes], texts: Texts, progress: Progress) -> Scores:
    """What the program says until it ends, or closes its output."""
    assert process.stdout is not None
    lines: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True).start()
    scores, wanted = Scores(), dict(zip(texts.indices, texts.hypotheses, strict=True))
    heard, number, ended = time.monotonic(), 0, False
    while True:
        # also between lines: this is where a cancel arrives
        progress(scores.done, scores.total, f"{program.title}: {scores.message}")
        try:
            line = lines.get(timeout=1.0)
        except queue.Empty:
            if ended:
                return scores  # something that it started holds its output open
            ended = process.poll() is not None
            if time.monotonic() - heard > program.timeout:
                raise Failure(
                    f"printed nothing for {program.timeout / 60:g} minutes and was ended ({scores.message})"
                ) from None
            continue
        if line is None:
            return scores
        heard, number = time.monotonic(), number + 1
        if line.strip():
            take_line(line, number, wanted, scores, program.told)


def _read_lines(stream: IO[bytes], lines: queue.Queue[bytes | None]) -> None:
    with stream:
        while line := stream.readline(MAX_LINE):
            lines.put(line)
    lines.put(None)


class _Errors:
    """The end of what a process prints on standard error."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        self._lines: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._reader = threading.Thread(target=self._read, args=(process.stderr,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(MAX_LINE):
                if line.strip():
                    self._lines.append(line)

    def tail(self, program: Program) -> str:
        """In words, once the process has ended."""
        self._reader.join(timeout=1.0)
        texts = [program.without_secrets(line.decode("utf-8", "replace")) for line in list(self._lines)]
        lines = [text[-MAX_TEXT:] for text in texts]
        return f"; standard error ends: {' / '.join(lines)}" if lines else "; standard error is empty"
