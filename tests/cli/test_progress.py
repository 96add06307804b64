"""Lines of progress where there is no terminal: when they come, and what they say is left."""

import io

import pytest
from rich.console import Console

from creamtea.cli import following
from creamtea.cli.following import LiveLines, PlainLines, StepCounts, shown
from creamtea.engine import events
from creamtea.orders.submission import Submission


def of_steps(count: int, reused: int = 0, lost: int = 0) -> Submission:
    keys = [str(number) for number in range(count)]
    return Submission(1, "study", frozenset(keys), frozenset(keys[:reused]), lost)


def test_steps_whose_files_are_gone_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(of_steps(3, 1, lost=1), quiet=True):
        pass
    assert "the store has lost files of 1 finished step: they run again" in capsys.readouterr().err


def test_they_come_ever_less_often_and_say_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(following.time, "monotonic", lambda: now)
    lines = PlainLines(StepCounts(3, 0))
    lines(events.StepStarted("k", "train/a/1", "train", 1))
    for second in range(10, 1501):  # ten seconds of reading, then an update a second
        now = float(second)
        done, left = second - 10, 1500 - second
        lines(events.StepProgressed("k", "train/a/1", done, 1490, "epoch 1", at=now, seconds_left=left))
    said = [line for line in capsys.readouterr().err.splitlines() if "epoch" in line]
    assert [float(line[1:].partition("s")[0]) for line in said] == [15, 45, 105, 225, 465, 765, 1065, 1365]
    assert said[0].endswith("train/a/1: 5/1,490 epoch 1, about 25 min left")
    assert said[-1].endswith("about 2 min left")


def test_quiet_does_not_hide_that_a_run_is_stuck(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(of_steps(3), quiet=True) as display:
        display(events.StepStarted("k", "train/a/1", "train", 1))
        display(events.Notice("starting Ray on this machine", trouble=False))
        display(events.Notice("the database does not answer (disk is full); trying again in 1 s"))
    told = capsys.readouterr().err
    assert told == "creamtea: the database does not answer (disk is full); trying again in 1 s\n"


def test_steps_without_a_result_are_counted_in_the_words_of_a_report() -> None:
    counts = StepCounts(9, 2)
    for kind in ("unavailable", "deterministic", "upstream", "unavailable", "timeout"):
        counts.count(events.StepFailed("k", "score/a/1/test/bleu", kind, ""))
    counts.count(events.StepSucceeded("k", "corpus/a", 1.0))
    assert str(counts) == "3 of 9 steps done, 2 reused, 2 failed, 2 unavailable, 1 not run"
    assert counts.ended == 8


def test_an_error_without_words_is_advised_on_too() -> None:
    problem = following.StepProblem("train/softmax/1", "deterministic", "", 1)
    outcome = following.StudyOutcome("tiny", 1, "failed", {"failed": 1}, [problem], [], [])
    (line,) = following.advise(outcome)
    assert line.startswith("train/softmax/1: a retry would fail again")


def test_a_step_that_does_not_say_how_far_it_is_has_nothing_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(following.time, "monotonic", lambda: now)
    lines = PlainLines(StepCounts(None, 0))
    lines(events.StepStarted("k", "corpus/a", "corpus", 1))
    for second in (1, 30):
        now = float(second)
        lines(events.StepProgressed("k", "corpus/a", 0, 1, "reading", at=now))
    assert capsys.readouterr().err.splitlines()[-1].endswith("corpus/a: 0/1 reading")


@pytest.mark.parametrize(("width", "cut"), [(90, True), (200, False)])
def test_a_terminal_shows_how_long_a_step_will_take(
    monkeypatch: pytest.MonkeyPatch, width: int, cut: bool
) -> None:
    console = Console(width=width, force_terminal=True)
    monkeypatch.setattr(following, "PrintingConsole", lambda **_: console)
    said = "updates, epoch 3, loss 2.312 per token, learning rate 4.2e-04, dev BLEU 3.5, 2,350 tokens/s"
    with console.capture(), shown(of_steps(46, 3), quiet=False) as display:
        assert isinstance(display, LiveLines)
        display(events.StepStarted("k", "train/softmax/1", "train", 1))
        display(events.StepProgressed("k", "train/softmax/1", 2, 9, said, at=1.0, seconds_left=3000.0))
        plain = Console(width=width, no_color=True, file=io.StringIO())
        plain.print(display._progress.get_renderable())
    drawn = plain.file.getvalue()
    assert "3 of 46 steps done, 3 reused" in drawn
    assert "about 50 min left" in drawn
    assert ("updates, epoch" in drawn, said in drawn) == (True, not cut)
    assert len(drawn.splitlines()) == 2
