"""Metrics that another program computes, in an environment of its own: COMET, and the scorers of a machine.

The program reads JSON Lines on its standard input, one for each segment: {"index", "source", "hypothesis",
"reference"}. It prints JSON Lines: {"index", "score"} for each segment, in any order, with {"spans"} if it
finds errors (`creamtea.error_spans`); at any time {"message"} or {"done", "total"} for progress; once
{"corpus": score, "signature": text, "facts": {...}}, each optional; or {"error": reason} if it cannot go on.
An optional key with null counts as absent. If the program fails, the end of its standard error is quoted, the
metric is unavailable, and the rest of the study goes on.
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from creamtea.contract.step import StepContext
from creamtea.error_spans import read_error_spans
from creamtea.errors import InputError, StepError, StepUnavailable
from creamtea.files import scratch_folder
from creamtea.methods.metrics import Comet, Command
from creamtea.methods.texts import Languages
from creamtea.scorers import MODEL, Scorer, ScorerPins, UnknownScorer, content_digest, find_scorer
from creamtea.settings import Settings
from creamtea.steps.systems import DecodeParams, ScoreParams
from creamtea.wording import counted
from creamtea_workers.metrics.base import Array, Texts, mean_statistics, ratio
from creamtea_workers.outside import end, inherited_variables, start

FIELDS = ("index", "source", "hypothesis", "reference")  # the keys of an input line
MAX_LINE = 1_000_000  # bytes of a line of output
MAX_TEXT = 600  # characters of a program's messages to keep
TAIL_LINES, MAX_TAIL = 5, 1_000_000  # lines to quote of standard error, and bytes to read of it
COMET_SCRIPT = Path(__file__).with_name("comet_script.py")
COMET_TIMEOUT = 3600.0  # fetching a model of some GB prints nothing
LAST_SECONDS = 60.0  # time for the program to end after it closes its output
SECRETS = ("TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "AUTH", "KEY")  # in names of variables
Progress = Callable[[float, float, str], None]
_KILLED = {
    128 + number: f"was ended by {number.name}" + " (out of memory?)" * (number == signal.SIGKILL)
    for number in signal.Signals
}


@dataclass(frozen=True)
class Program:
    """A program that scores.

    It gets this process's variables, except those of creamtea, Ray and Python, plus `environment`.
    """

    title: str  # its name in messages
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
        """Return the text, printable and without the values of variables that hold secrets."""
        for name, value in self.variables().items():
            if len(value) >= 8 and any(word in name.upper() for word in SECRETS):
                text = text.replace(value, "…")
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())

    def redacted(self, text: object, most: int = MAX_TEXT) -> str:
        """Return the text to show and store. Secrets are replaced before it is cut: half a secret is one."""
        return self.without_secrets(str(text))[:most]


class ScorerMetric:
    """Mean of the segments' scores. Statistics (n, 2): the segment's score, and 1."""

    def __init__(self, name: str, progress: Progress, model: PinnedModel | None = None) -> None:
        self.name = name
        self.model = model or PinnedModel()
        self.note = ""
        self.facts: Mapping[str, Any] = {}  # the program's facts about itself
        self.own_signature = ""
        self.error_spans: Mapping[int, list[dict[str, Any]]] = {}  # by segment, if the scorer finds errors
        self._progress = progress

    def program(self) -> Program:
        """Return the program to run. Raises StepUnavailable if this machine lacks it."""
        raise NotImplementedError

    def statistics(self, texts: Texts) -> Array:
        program = self.program()
        self.model.check()
        scores = run(program, texts, self._progress)
        self.model.check()  # again: the program has just read it
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
    """Score each segment. An exception from `progress` ends the program.

    Raises StepUnavailable with the program's mistake and the end of its standard error.
    """
    with scratch_folder("scorer") as folder:
        source, log = Path(folder) / "input.jsonl", Path(folder) / "errors"
        rows = zip(texts.indices, texts.sources, texts.hypotheses, texts.references, strict=True)
        with source.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(dict(zip(FIELDS, row, strict=True))) + "\n")
        with log.open("wb") as errors:
            pipes = {"stdout": subprocess.PIPE, "stderr": errors}
            process = start(program.command, source, cwd=folder, env=program.variables(), **pipes)
        try:
            scores = _listen(program, process, texts, progress)
            _check(scores, texts, _exit_code(process))
        except Failure as error:
            end(process)
            message = f"{program.title} {program.redacted(error)}{_tail(log, program)}"
            raise StepUnavailable(message) from None
        finally:
            end(process)
    if scores.error:
        raise StepUnavailable(f"{program.title}: {scores.error}")
    return scores


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
    """Collect the program's lines until it ends, or closes its output."""
    assert process.stdout is not None
    lines: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True).start()
    scores, wanted = Scores(), dict(zip(texts.indices, texts.hypotheses, strict=True))
    heard, number, ended = time.monotonic(), 0, False
    while True:
        # called also between lines: it raises when the step is cancelled
        progress(scores.done, scores.total, f"{program.title}: {scores.message}")
        try:
            line = lines.get(timeout=1.0)
        except queue.Empty:
            if ended:
                return scores  # one of its children holds the output open
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
            take_line(line, number, wanted, scores, program.redacted)


def _read_lines(stream: IO[bytes], lines: queue.Queue[bytes | None]) -> None:
    with stream:
        while line := stream.readline(MAX_LINE):
            lines.put(line)
    lines.put(None)


def _tail(log: Path, program: Program) -> str:
    """Quote the end of standard error."""
    with log.open("rb") as file:
        if file.seek(0, os.SEEK_END) > MAX_TAIL:
            file.seek(-MAX_TAIL, os.SEEK_END)
            file.readline()  # the first line is cut, perhaps within a secret
        else:
            file.seek(0)
        last = [line for line in file if line.strip()][-TAIL_LINES:]
    lines = [program.without_secrets(line.decode("utf-8", "replace"))[-MAX_TEXT:] for line in last]
    return f"; standard error ends: {' / '.join(lines)}" if lines else "; standard error is empty"


# ---------------------------------------------------------------- lines of a scorer (docs/scorers.md)


MAX_SCORE = 1e100  # so that sums of scores and of squares stay finite
MAX_QUOTED = 80  # characters of a quoted line
MAX_KEY = 40  # characters of a quoted key
# required and optional keys of each kind of line
KINDS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("index", "score"), ("spans",)),
    (("done", "total"), ("message",)),
    ((), ("corpus", "signature", "facts")),
    ((), ("message", "error")),
)


Redact = Callable[..., str]  # `Program.redacted`


@dataclass
class Scores:
    """A program's output so far. `values` and `spans`: by the segment's index."""

    values: dict[int, float] = field(default_factory=dict)
    spans: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # empty unless it finds errors
    corpus: float | None = None
    signature: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    done: float = 0.0
    total: float = 1.0
    message: str = "starting"
    error: str = ""


class Failure(Exception):
    """A program's mistake; the text follows the program's title."""


class _WrongLine(Exception):
    """A malformed line; the text follows "printed line 3 of its output"."""


def take_line(line: bytes, number: int, wanted: Mapping[int, str], scores: Scores, redact: Redact) -> None:
    """Add the content of a line to the scores. Raise Failure for a line that a scorer may not print.

    `wanted`: the outputs to score, by the segment's index.
    """
    try:
        message = _read(line)
        if message is None:
            raise Failure(
                f"printed line {number} of its output, which is not a score: {_quoted(line, redact)}; "
                "other text belongs to standard error"
            )
        _take(message, wanted, scores, redact)
    except _WrongLine as error:
        raise Failure(f"printed line {number} of its output {error}: {_quoted(line, redact)}") from None


def _quoted(line: bytes, redact: Redact) -> str:
    return repr(redact(line.decode("utf-8", "replace"), MAX_QUOTED))


def _read(line: bytes) -> dict[str, Any] | None:
    """Parse a line as a JSON object; return None for anything else."""
    try:
        message = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise _WrongLine("in another encoding than UTF-8") from None
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _take(message: dict[str, Any], wanted: Mapping[int, str], scores: Scores, redact: Redact) -> None:
    required, further = _keys(message, redact)
    given = {key: value for key, value in message.items() if value is not None or key in required}
    if "score" in required:
        _take_score(given, wanted, scores)
    elif "done" in required:
        scores.done, scores.total = _finite("done", given), max(_finite("total", given), 1.0)
        scores.message = redact(given.get("message", "scoring"))
    elif "corpus" in further:
        if "corpus" in given:
            scores.corpus = _finite("corpus", given)
        scores.signature = redact(given.get("signature", scores.signature))
        if not isinstance(facts := given.get("facts", {}), dict):
            raise _WrongLine(f"with {_kind(facts)} as `facts`, where an object belongs")
        for name, value in facts.items():
            stored = isinstance(value, int | float) and abs(value) <= MAX_SCORE  # also a truth value
            scores.facts[redact(name)] = value if stored else redact(value)
    else:
        scores.message = redact(given.get("message", scores.message))
        if "error" in given:
            scores.error = redact(given["error"]) or "an error without a reason"


def _keys(message: Mapping[str, Any], redact: Redact) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the required and optional keys for this kind of line. Raise _WrongLine for others."""
    required, further = next((kind for kind in KINDS if message.keys() & set(kind[0] or kind[1])), ((), ()))
    allowed = (*required, *further)
    if not allowed:
        raise _WrongLine("without a key that lines of scorers have")
    for key in message:
        if key not in allowed:
            raise _WrongLine(f"with `{redact(key, MAX_KEY)}`, where only {', '.join(allowed)} may be")
    for key in required:
        if key not in message:
            raise _WrongLine(f"without `{key}`")
    return required, further


def _take_score(message: Mapping[str, Any], wanted: Mapping[int, str], scores: Scores) -> None:
    index, score = message["index"], _number("score", message)
    if type(index) is not int:
        raise _WrongLine(f"with {_kind(index)} as `index`, where a whole number belongs")
    if index not in wanted:
        raise Failure(f"scored segment {index}, which it was not given")
    if index in scores.values:
        raise Failure(f"scored segment {index} twice")
    if not abs(score) <= MAX_SCORE:
        raise Failure(f"gave segment {index} the score {score}")
    if "spans" in message:
        try:
            scores.spans[index] = read_error_spans(message["spans"], wanted[index])
        except ValueError as error:
            raise Failure(f"gave segment {index} impossible errors: {error}") from None
    scores.values[index] = score
    scores.done, scores.total, scores.message = len(scores.values), len(wanted), "scoring"


def _number(key: str, message: Mapping[str, Any]) -> float:
    value = message[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _WrongLine(f"with {_kind(value)} as `{key}`, where a number belongs")
    try:
        return float(value)
    except OverflowError:
        raise _WrongLine(f"with too large a number as `{key}`") from None


def _finite(key: str, message: Mapping[str, Any]) -> float:
    if not math.isfinite(number := _number(key, message)):
        raise _WrongLine(f"with {number} as `{key}`, where a finite number belongs")
    return number


def _kind(value: Any) -> str:
    match value:
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case float():
            return "a decimal number"
    return json.dumps(value) if value is None or isinstance(value, bool) else "a number"


# ---------------------------------------------------------------- the user's models


@dataclass(frozen=True)
class PinnedModel:
    """A metric's model in a file or a folder of the user.

    `name`: as in the study. `place`: its path on this machine. `digest`: digest of its content when the study
    was planned; "" for a model that is not the user's.
    """

    name: str = ""
    place: str = ""
    digest: str = ""

    @classmethod
    def of(cls, name: str | None, context: StepContext[Any]) -> PinnedModel:
        # a comparison reads stored scores, and pins nothing itself
        params, name = context.params, name or ""
        digests = (params.digests or {}) if isinstance(params, ScoreParams | DecodeParams) else {}
        return cls(name, context.locations.get(name, name), digests.get(name, ""))

    def check(self) -> None:
        """Raise StepError if the model is missing, or has changed since the study was planned."""
        if not self.digest:
            return
        try:
            digest = content_digest(Path(self.place))
        except InputError as error:
            raise StepError(
                f"the model {self.name}: {error}; the data folder must be visible, under the same path, to "
                "every machine that runs steps"
            ) from None
        if digest != self.digest:
            raise StepError(
                f"the model {self.name} has changed since the study was planned: submit it again, so that it "
                "is planned with the new model"
            )


class CometMetric(ScorerMetric):
    """COMET (Rei et al. 2020), run by `Settings.comet_python`: its pinned packages conflict with ours."""

    def __init__(
        self,
        spec: Comet,
        python: Path,
        model: PinnedModel,
        progress: Progress,
        cpus: int = 1,
        gpus: float = 0.0,
    ) -> None:
        """Prepare the command. `model.place` is a name that COMET knows, or the path of a checkpoint."""
        super().__init__("comet", progress, model)
        self._spec = spec
        self._python = python
        # -I: neither this folder (whose comet.py would be imported) nor PYTHONPATH reaches the script
        self._command = [str(python), "-I", str(COMET_SCRIPT), "--model", model.place]
        self._command += ["--batch-size", str(spec.batch_size), "--gpus", "1" if gpus > 0 else "0"]
        self._cpus = cpus

    def program(self) -> Program:
        if not (self._python.is_file() and os.access(self._python, os.X_OK)):
            raise StepUnavailable(
                f"COMET's environment is missing: {self._python} is not a Python interpreter; run "
                "`make install-comet`, or set CREAMTEA_COMET_PYTHON to the python of an environment with "
                "unbabel-comet"
            )
        threads = {"OMP_NUM_THREADS": str(self._cpus), "TOKENIZERS_PARALLELISM": "false"}
        return Program("COMET", self._command, COMET_TIMEOUT, threads)

    def signature(self) -> str:
        return "|".join(filter(None, [f"model:{self._spec.model}", self.own_signature]))


class CommandMetric(ScorerMetric):
    """A scorer of this machine: a program that the file of CREAMTEA_SCORERS names (`creamtea.scorers`)."""

    def __init__(self, spec: Command, context: StepContext[Any]) -> None:
        super().__init__("command", context.progress, PinnedModel.of(spec.model, context))
        self._spec = spec
        self._context = context
        params = context.params  # a comparison pins nothing
        pinned = isinstance(params, ScoreParams | DecodeParams)
        self._pins: ScorerPins | None = params.scorer if pinned else None

    def program(self) -> Program:
        scorer = self._scorer()
        environment = {
            "OMP_NUM_THREADS": str(self._context.cpus),
            **({} if self._context.gpus else {"CUDA_VISIBLE_DEVICES": ""}),
            **scorer.environment,
        }
        command = [word.replace(MODEL, self.model.place) for word in scorer.command]
        return Program(f"the scorer {self._spec.scorer}", command, scorer.timeout_minutes * 60.0, environment)

    def _scorer(self) -> Scorer:
        """Find this machine's scorer, and check that it is the scorer of the study's plan."""
        name = self._spec.scorer
        try:
            scorer = find_scorer(name, with_model=self._spec.model is not None)
            pins = scorer.pins()
        except UnknownScorer as error:
            raise StepUnavailable(f"the worker lacks the scorer: {error}") from None
        except InputError:  # not quoted: the message is stored, and may hold text of the file
            raise StepUnavailable(
                f"the worker cannot use its scorer {name}: `creamtea validate` there says what is wrong with "
                "its CREAMTEA_SCORERS"
            ) from None
        if pins != self._pins:
            planned = self._pins.version if self._pins else "none"
            raise StepUnavailable(
                f"the study was planned with another scorer {name} than the worker's (version {planned} "
                f"there, {pins.version} here; arguments or files may differ): make them the same and run it "
                "again"
            )
        return scorer

    def signature(self) -> str:
        spec, pins = self._spec, self._pins
        parts = {
            "scorer": spec.scorer,
            "version": pins.version if pins else "",
            "digest": pins.digest[:12] if pins else "",
            "model": spec.model,
            "model-digest": self.model.digest[:12],
        }
        named = [f"{name}:{value}" for name, value in parts.items() if value]
        return "|".join([*named, *filter(None, [self.own_signature])])


def build(
    spec: Comet | Command, languages: Languages, context: StepContext[Any]
) -> CometMetric | CommandMetric:
    if isinstance(spec, Command):
        return CommandMetric(spec, context)
    return CometMetric(
        spec,
        python=Settings.load().comet_python,
        model=PinnedModel.of(spec.model, context),
        progress=context.progress,
        cpus=context.cpus,
        gpus=context.gpus,
    )
