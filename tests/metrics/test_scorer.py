"""Programs that score: what they may say and do wrong, and that nothing of them is left over."""

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import wait_until

from creamtea.contract.step import StepCancelled
from creamtea.errors import StepUnavailable
from creamtea_workers.metrics.base import Texts
from creamtea_workers.metrics.scorer import Failure, Program, ScorerMetric, Scores, run, take_line

THREE = Texts([4, 7, 9], ["one", "two", "three"], ["eins", "", "„drei“\n\u2028"], ["eins", "zwei", "drei"])
GOOD = """\
import json, sys
for line in sys.stdin:
    segment = json.loads(line)
    print(json.dumps({"index": segment["index"], "score": len(segment["hypothesis"]) / 8}))
"""


def quiet(done: float, total: float, message: str) -> None:
    pass


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Program]:
    """A scorer of this text, run by this Python."""

    def write(text: str, timeout: float = 600.0, **environment: str) -> Program:
        path = tmp_path / "score.py"
        path.write_text(text, encoding="utf-8")
        return Program("the scorer tea", [sys.executable, str(path)], timeout, environment)

    return write


Write = Callable[..., Program]


class Metric(ScorerMetric):
    def __init__(self, program: Program) -> None:
        super().__init__("command", quiet)
        self._program = program

    def program(self) -> Program:
        return self._program


# ---------------------------------------------------------------- what a scorer may say


def test_every_segment_arrives_as_it_is_and_gets_its_score(program: Write, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    scores = run(program(f"sys_in = open({str(copy)!r}, 'w')\n{GOOD}    sys_in.write(line)\n"), THREE, quiet)
    assert scores.values == {4: 0.5, 7: 0.0, 9: 1.0}
    assert [json.loads(line) for line in copy.read_text().split("\n") if line] == [
        {"index": index, "source": source, "hypothesis": hypothesis, "reference": reference}
        for index, source, hypothesis, reference in zip(
            THREE.indices, THREE.sources, THREE.hypotheses, THREE.references, strict=True
        )
    ]


@pytest.mark.parametrize("first", [True, False])
def test_scores_in_any_order_with_a_summary_first_or_last(program: Write, first: bool) -> None:
    lines = [f'{{"index": {index}, "score": {index}}}' for index in (9, 4, 7)]
    summary = '{"corpus": 6.6667, "signature": "tea:1|\\u001b[31mred", "facts": {"device": "cpu", "n": 3}}'
    lines.insert(0 if first else 3, summary)
    metric = Metric(program("".join(f"print({line!r})\n\n" for line in lines)))
    statistics = metric.statistics(THREE)
    assert statistics.tolist() == [[4, 1], [7, 1], [9, 1]]
    assert metric.score(statistics.sum(axis=0)) == pytest.approx(20 / 3)
    assert metric.own_signature == "tea:1| [31mred"  # nothing that could steer a terminal
    assert metric.facts == {"device": "cpu", "n": 3}
    assert metric.note == ""


def test_a_corpus_score_that_is_not_the_mean_is_said(program: Write) -> None:
    metric = Metric(program(GOOD + 'print(json.dumps({"corpus": 0.75}))'))
    statistics = metric.statistics(THREE)
    assert metric.score(statistics.sum(axis=0)) == 0.5
    assert metric.note == "the mean of the segments' scores; the scorer tea's own score of the whole is 0.75"


def test_progress_is_passed_on(program: Write) -> None:
    told: list[tuple[float, float, str]] = []
    text = """\
print('{"message": "loading"}')
print('{"done": 1, "total": 2, "message": "batches"}')
"""
    run(program(text + GOOD), THREE, lambda *now: told.append(now))
    assert told[0] == (0, 1, "the scorer tea: starting")
    assert (0, 1, "the scorer tea: loading") in told
    assert (1, 2, "the scorer tea: batches") in told
    assert told[-1] == (3, 3, "the scorer tea: scoring")


def test_a_scorer_sees_nothing_of_creamteas_environment(
    program: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    withheld = ("CREAMTEA_DATABASE_URL", "PGPASSWORD", "RAY_AUTH_TOKEN", "PYTHONPATH", "VIRTUAL_ENV")
    for name in (*withheld, "HF_HOME"):
        monkeypatch.setenv(name, "x")
    text = GOOD + 'import os\nprint(json.dumps({"facts": dict(os.environ)}))'
    seen = run(program(text, TEA="green", HF_HOME="own"), THREE, quiet).facts
    assert (seen["TEA"], seen["HF_HOME"]) == ("green", "own")
    assert not set(withheld) & set(seen)


# ---------------------------------------------------------------- what it may do wrong

NOISE = "import sys\nprint('model 1 of 2\\n\\x1b[1mout of memory', file=sys.stderr)\n"
KILLED = "import os; os.kill(os.getpid(), "
NO_SCORE = "printed line 1 of its output, which is not a score"
TAIL = r"; standard error ends: model 1 of 2 / \[1mout of memory$"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sys.exit(9)", "ended with code 9 after 0 of 3 scores"),
        (GOOD + "raise SystemExit(2)", "ended with code 2 after 3 of 3 scores"),
        (KILLED + "9)", r"was ended by SIGKILL \(out of memory\?\) after 0 of 3 scores"),
        (KILLED + "11)", r"was ended by SIGSEGV after 0 of 3 scores"),
        ("", "gave 0 scores for 3 segments; the first without one is segment 4"),
        ('print(\'{"index": 4, "score": 1}\')', "gave 1 score for 3 segments; .* is segment 7"),
        ('print(\'{"index": 4, "score": 1}\\n\' * 2)', "scored segment 4 twice"),
        (GOOD + 'print(\'{"index": 10, "score": 1}\')', "scored segment 10, which it was not given"),
        ('print(\'{"index": 7, "score": NaN}\')', "gave segment 7 the score nan"),
        ('print(\'{"index": 7, "score": -Infinity}\')', "gave segment 7 the score -inf"),
        ('print(\'{"index": 7, "score": 1e308}\')', r"gave segment 7 the score 1e\+308"),
        ("print('Loading weights')", f"{NO_SCORE}: 'Loading weights'"),
        ("print('0.5')", f"{NO_SCORE}: '0.5'; other text belongs to"),
        ("print('[' * 100000)", NO_SCORE),
    ],
)
def test_each_failure_is_one_message_with_the_end_of_standard_error(
    text: str, message: str, program: Write
) -> None:
    with pytest.raises(StepUnavailable, match=f"^the scorer tea {message}.*{TAIL}") as caught:
        run(program(NOISE + text), THREE, quiet)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('print(\'{"error": "the model is missing"}\'); raise SystemExit(1)', ": the model is missing"),
        (GOOD + "print(json.dumps({'error': ''}))", ": an error without a reason"),
        ("raise SystemExit(1)", " ended with code 1 .*; standard error is empty"),
    ],
)
def test_a_failure_with_nothing_on_standard_error(text: str, message: str, program: Write) -> None:
    with pytest.raises(StepUnavailable, match=f"^the scorer tea{message}$"):
        run(program(text), THREE, quiet)


def test_only_the_end_of_a_long_standard_error_is_quoted(program: Write) -> None:
    text = "import sys\nfor n in range(20000): print(n, 'x' * 99, file=sys.stderr)\nsys.exit(1)"
    with pytest.raises(StepUnavailable) as caught:
        run(program(text), THREE, quiet)
    assert "19999 x" in str(caught.value)
    assert "19994 x" not in str(caught.value)


def test_a_program_that_cannot_start(tmp_path: Path) -> None:
    broken = tmp_path / "program"
    broken.write_bytes(b"\x7fELF no program at all")
    broken.chmod(0o755)
    for command, reason in ((str(broken), "Exec format error"), ("/nowhere/at/all", "No such file")):
        with pytest.raises(StepUnavailable, match=rf"^tea: {command} cannot be started \({reason}"):
            run(Program("tea", [command], 60.0), THREE, quiet)


def test_secrets_are_not_quoted(program: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefgh")
    text = (
        "import os, sys\n"
        "print(os.environ['HF_TOKEN'], 'and', os.environ['TEA_KEY_FILE'], file=sys.stderr); sys.exit(1)"
    )
    with pytest.raises(StepUnavailable, match=r"ends: … and …$"):
        run(program(text, TEA_KEY_FILE="/secret/place"), THREE, quiet)
    said = program("import os, json\nprint(json.dumps({'error': 'no ' + os.environ['HF_TOKEN']}))")
    with pytest.raises(StepUnavailable, match=r"^the scorer tea: no …$"):
        run(said, THREE, quiet)


def test_secrets_are_not_kept(program: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor half of one, where a text is cut."""
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefgh")
    text = (
        "import os, json\n"
        "token = os.environ['HF_TOKEN']\n"
        "print(json.dumps({'message': 'with ' + token}))\n"
        "print(json.dumps({'facts': {token: [token, chr(0xd800)]}, 'signature': 'x' * 595 + token}))\n"
    )
    heard: list[str] = []
    scores = run(program(text + GOOD), THREE, lambda done, total, message: heard.append(message))
    assert "the scorer tea: with …" in heard
    assert "hf_" not in f"{heard} {scores.facts} {scores.signature}"
    with pytest.raises(StepUnavailable, match="which is not a score") as caught:
        run(program(text + "print('x' * 75 + token)"), THREE, quiet)
    assert "hf_" not in str(caught.value)


# ---------------------------------------------------------------- nothing is left over

SLEEPER = "import os, pathlib, time\npathlib.Path({!r}).write_text(str(os.getpid()))\ntime.sleep(600)"


@pytest.mark.slow
def test_a_scorer_that_hangs_is_ended_with_its_children(program: Write, tmp_path: Path) -> None:
    text = f"""{NOISE}
import pathlib, subprocess, time
child = subprocess.Popen(["sleep", "600"])
pathlib.Path({str(tmp_path / "child")!r}).write_text(str(child.pid))
print('{{"message": "waiting for tea"}}')
time.sleep(600)
"""
    for seconds in (1.5, 15.0, 150.0):  # a busy machine may be too slow to start it
        with pytest.raises(StepUnavailable, match="and was ended") as caught:
            run(program(text, timeout=seconds), THREE, quiet)
        if "waiting for tea" in str(caught.value):
            break
    said = rf"printed nothing for {seconds / 60:g} minutes and was ended \(waiting for tea\){TAIL}"
    assert re.search(said, str(caught.value))
    wait_until(lambda: has_ended(int((tmp_path / "child").read_text())))


@pytest.mark.slow
@pytest.mark.parametrize("session", [False, True])
def test_a_child_that_outlives_its_scorer_does_not_hold_the_step(
    program: Write, tmp_path: Path, session: bool
) -> None:
    """Nor one in a session of its own, which is of no group of the scorer's."""
    text = f"""{GOOD}
import pathlib, subprocess
child = subprocess.Popen(["sleep", "600"], start_new_session={session})
pathlib.Path({str(tmp_path / "child")!r}).write_text(str(child.pid))
"""
    assert len(run(program(text), THREE, quiet).values) == 3
    wait_until(lambda: has_ended(int((tmp_path / "child").read_text())))


def test_a_cancel_ends_the_scorer(program: Write, tmp_path: Path) -> None:
    place = tmp_path / "pid"
    text = SLEEPER.format(str(place))

    def cancel(done: float, total: float, message: str) -> None:
        if place.exists() and place.read_text():
            raise StepCancelled

    with pytest.raises(StepCancelled):
        run(program(text), THREE, cancel)
    wait_until(lambda: has_ended(int(place.read_text())))


@pytest.mark.parametrize("launcher", [[], ["setsid"], ["setsid", "--fork"]])
def test_a_killed_caller_leaves_no_scorer_behind(tmp_path: Path, launcher: list[str]) -> None:
    """As when Ray kills a worker: nobody is left who could end the scorer, whatever its launcher makes of
    groups and parents."""
    place, source = tmp_path / "pid", tmp_path / "input.jsonl"
    source.write_text("")
    command = [*launcher, sys.executable, "-c", SLEEPER.format(str(place))]
    if "--fork" in launcher:
        command = ["sh", "-c", '"$@"; sleep 600', "sh", *command]
    caller = f"""
import pathlib, time
from creamtea_workers.outside import start
process = start({command!r}, pathlib.Path({str(source)!r}))
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", caller])
    try:
        wait_until(lambda: place.exists() and place.read_text())
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: has_ended(int(place.read_text())))


def test_a_process_whose_name_is_cut_within_a_letter_does_not_matter(program: Write, tmp_path: Path) -> None:
    """Of anybody on the machine: Linux keeps 15 bytes of a name."""
    named = tmp_path / "Übersetzungsgüte"
    named.symlink_to("/bin/sleep")
    process = subprocess.Popen([named, "600"])
    try:
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_bytes().startswith("Ü".encode()))
        assert len(run(program(GOOD), THREE, quiet).values) == 3
    finally:
        process.kill()
        process.wait()


def has_ended(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


# ---------------------------------------------------------------- lines


PROGRAM = Program("tea", ["tea"], 60.0)
WRONG_LINES = {
    '{"done": 1}': "without `total`",
    '{"score": 1}': "without `index`",
    '{"index": 1}': "without `score`",
    "{}": "without a key that lines of scorers have",
    '{"scores": 1}': "without a key that lines of scorers have",
    '{"index": 1, "score": 1, "span": []}': "with `span`, where only index, score, spans may be",
    '{"done": 1, "total": 2, "left": 1}': "with `left`, where only done, total, message may be",
    '{"corpus": 1, "message": "end"}': "with `message`, where only corpus, signature, facts may be",
    '{"message": "", "level": 1}': "with `level`, where only message, error may be",
    '{"index": 1, "score": "0.5"}': "with text as `score`, where a number belongs",
    '{"index": 1, "score": null}': "with null as `score`, where a number belongs",
    '{"index": 1, "score": true}': "with true as `score`, where a number belongs",
    '{"index": 1, "score": [0.5]}': "with a list as `score`, where a number belongs",
    f'{{"index": 1, "score": 1{"0" * 400}}}': "with too large a number as `score`",
    '{"index": "1", "score": 1}': "with text as `index`, where a whole number belongs",
    '{"index": 1.0, "score": 1}': "with a decimal number as `index`, where a whole number belongs",
    '{"index": true, "score": 1}': "with true as `index`, where a whole number belongs",
    '{"done": 1, "total": NaN}': "with nan as `total`, where a finite number belongs",
    '{"done": 1, "total": null}': "with null as `total`, where a number belongs",
    '{"corpus": NaN}': "with nan as `corpus`, where a finite number belongs",
    '{"facts": 1}': "with a number as `facts`, where an object belongs",
}


@pytest.mark.parametrize(("line", "problem"), WRONG_LINES.items(), ids=range(len(WRONG_LINES)))
def test_what_is_wrong_with_a_line_is_said(line: str, problem: str) -> None:
    with pytest.raises(Failure) as caught:
        take_line(line.encode(), 3, {1: "tea"}, Scores(), PROGRAM.redacted)
    assert str(caught.value) == f"printed line 3 of its output {problem}: {line[:80]!r}"


def test_a_line_that_is_not_utf_8_is_said_to_be_none() -> None:
    with pytest.raises(Failure, match=r"^printed line 3 of its output in another encoding than UTF-8: '"):
        take_line('{"message": "größer"}'.encode("latin-1"), 3, {}, Scores(), PROGRAM.redacted)


def test_a_byte_order_mark_does_not_matter() -> None:
    scores = Scores()
    take_line(b'\xef\xbb\xbf{"index": 1, "score": 0.5}', 1, {1: "tea"}, scores, PROGRAM.redacted)
    assert scores.values == {1: 0.5}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KEYS = ("index", "score", "done", "total", "message", "error", "corpus", "signature", "facts")


@pytest.mark.slow
@given(st.binary() | st.dictionaries(st.sampled_from(KEYS), JSON).map(lambda said: json.dumps(said).encode()))
def test_no_line_breaks_the_reader(line: bytes) -> None:
    scores = Scores()
    with suppress(Failure):
        take_line(line, 1, {1: "tea", 2: "jam"}, scores, PROGRAM.redacted)
    assert scores.values.keys() <= {1, 2}
    assert not math.isnan(scores.done)
    json.dumps(scores.facts, allow_nan=False)
