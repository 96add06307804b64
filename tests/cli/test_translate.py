"""`creamtea translate`: its lines, the model it opens, what it doubts; and where `creamtea export` writes."""

import errno
import io
import os
from pathlib import Path

import pytest
from sqlalchemy import select

from creamtea.cli.models import Doubts, _writing, iterate_lines, warn_of_long_lines
from creamtea.errors import CreamteaError, InputError
from creamtea.store.tables import StepRow

INLINE = ("--executor", "inline")


def told(example: str, lines: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """`lines`: what is unknown in each source. What has been told is not told again."""
    doubts = Doubts(example)
    for source, unknown in lines.items():
        doubts.add({"source": source, "unknown": unknown})
    doubts.tell()
    out, err = capsys.readouterr()
    doubts.tell()
    assert (out, *capsys.readouterr()) == ("", "", "")
    return err.splitlines()


def test_unknown_symbols_are_told_once_with_their_counts(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {"a ж": ["ж"], "b ж ж ☃": ["ж", "ж", "☃"], "c": []}
    (line,) = told("", lines, capsys)
    assert line == "creamtea: 2 lines have symbols that the model has never seen: ж (3), ☃ (1)"
    (line,) = told("", {"x": [chr(number) for number in range(0x4E00, 0x4E0C)]}, capsys)
    assert line.endswith(" and 2 others")


def test_a_word_that_is_not_written_as_the_systems_sources_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (line,) = told("<ady>абан", {"абан": [], "<ady>абан": []}, capsys)
    assert "1 line is not written like this system's sources" in line
    assert line.endswith("the language first, as in <ady>абан")
    (line,) = told("<zulu>hamba<V><PST>", {"<zulu>hamba": [], "<zulu>hamba<V>": []}, capsys)
    assert "1 line is" in line
    assert "language first and its tags last, as in <zulu>hamba<V><PST>" in line
    assert told("", {"the dog": [], "абан": []}, capsys) == []


def test_a_line_that_is_a_whole_text_is_named_before_it_is_translated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    warn_of_long_lines(["two " * 1000, "two " * 1001, "字" * 1700], before=40)
    first, second = capsys.readouterr().err.splitlines()
    assert "line 42 has 1,001 words" in first
    assert "line 43 has 1,020 words" in second  # 0.6 words per character


def test_a_system_that_has_no_seed_to_choose_or_whose_plug_in_is_gone(creamtea, study: Path) -> None:
    text = study.read_text().replace("{kind: scones}}", "{kind: scones}, seeds: [1, 2]}")
    study.write_text(text.replace("{variant: scones}", "{variant: scones, ensemble: true}"))
    creamtea("run", study, *INLINE)
    for seed in ("1", "2"):
        said = creamtea.refused("translate", "tiny", "scones-greedy", "--seed", seed)
        assert f"seed {seed}: system scones-greedy is an ensemble of 2 models, one per seed" in said
    with creamtea.database() as database, database.transaction() as session:
        for step in session.scalars(select(StepRow).where(StepRow.kind == "decode")):
            step.resources = {**step.resources, "plugins": {"tea-searches": "1.2"}}
            step.params = {**step.params, "search": {"kind": "steeped"}}
    done = creamtea("translate", "tiny", "softmax-greedy")
    assert done.returncode == 1
    assert "planned with the plug-in tea-searches 1.2, and it is not installed here" in done.stderr


# ---------------------------------------------------------------- lines and files


def test_a_byte_order_mark_before_the_first_line_is_not_text() -> None:
    given = io.BytesIO("\ufeffein Haus\r\n\ufeffein Baum".encode())
    assert list(iterate_lines(given, "standard input")) == ["ein Haus", "\ufeffein Baum"]


def test_a_line_that_is_not_utf_8_is_named() -> None:
    with pytest.raises(InputError, match="standard input, line 2: not UTF-8"):
        list(iterate_lines(io.BytesIO(b"\xef\xbb\xbfeins\n\xff\n"), "standard input"))


def test_a_disk_that_fills_up_while_a_model_is_written_is_one_message() -> None:
    told = r"^model: cannot be written \(No space left on device\); free some"
    with pytest.raises(InputError, match=told), _writing(Path("model")):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("out", "^out/model: cannot be written"),
        ("out/.model-x/weights", "^out/model: cannot be written"),
        ("out/store/ab12", "^out/store/ab12: Input/output error; fix that"),
        ("/scratch/step", "^/scratch/step: Input/output error; fix that"),
    ],
)
def test_a_file_that_cannot_be_read_is_not_blamed_on_the_exported_folder(path: str, told: str) -> None:
    with pytest.raises(CreamteaError, match=told), _writing(Path("out/model")):
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)
