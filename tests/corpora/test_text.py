"""Reading the user's text: line ends, packing, encoding, normalisation."""

import gzip
import hashlib
import tracemalloc
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.errors import StepError
from creamtea.study.data_files import scan
from creamtea_workers.corpora import text as text_module
from creamtea_workers.corpora.text import (
    UserFile,
    detokenise,
    move_span,
    move_span_back,
    normalise,
    plain,
    read_lines,
    write_lines,
)

WHITE = "\u00a0\u0085\u2028\u3000\t\r\x0b "


def user_file(path: Path, content: bytes, *, packed: bytes | None = None) -> UserFile:
    path.write_bytes(content if packed is None else packed)
    return UserFile("data/text.en", path, hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("one\u0085still one\u2028\ntwo\r\n\nfour", ["one\u0085still one\u2028", "two", "", "four"]),
        ("one\ntwo\n", ["one", "two"]),  # a last line end starts no line
        ("", []),
        ("\ufeffone\n", ["one"]),  # a byte-order mark is no text
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_lines_end_at_newlines_only(tmp_path: Path, content: str, lines: list[str], packed: bool) -> None:
    """Gzip is known by its content, and the digest is of the text: the same for planning and for a worker."""
    text, path = content.encode(), tmp_path / "text"
    file = user_file(path, text, packed=gzip.compress(text) if packed else None)
    assert list(file.lines()) == lines
    assert list(UserFile("text", path, scan(path).digest).lines()) == lines


@pytest.mark.parametrize("part", [1, 3, 1000])
def test_lines_beyond_a_length_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    """Whatever the size of the parts in which the file is read."""
    monkeypatch.setattr(text_module, "_PART", part)
    content = f"\ufeffgrün\n{'ü' * 5}\nblau\n{'x' * 40}\n\n{'😀' * 4}\nfünf!"
    file = user_file(tmp_path / "text", content.encode())
    assert list(file.lines_within(4)) == ["grün", None, "blau", None, "", "😀" * 4, None]
    assert list(file.lines()) == content.removeprefix("\ufeff").split("\n")


@pytest.mark.parametrize("part", [1, 3, 16, 17, 18, 1000])
def test_a_line_end_of_two_characters_counts_as_no_character(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(text_module, "_PART", part)
    whole, inside = "😀" * 4, f"{'😀' * 4}\r"  # the second has a CR that is text
    file = user_file(tmp_path / "text", f"{whole}\r\n{inside}\r\n{inside}x\r\n{whole}\r".encode())
    assert list(file.lines_within(4)) == [whole, None, None, whole]
    assert list(file.lines()) == [whole, inside, f"{inside}x", whole]


def test_an_enormous_line_is_never_held(tmp_path: Path) -> None:
    file = user_file(tmp_path / "text", b"a\n" + b"x" * (32 << 20) + b"\nb\n")
    tracemalloc.start()
    assert list(file.lines_within(1000)) == ["a", None, "b"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("content", "stored", "message"),
    [
        (b"x" * 1000, gzip.compress(b"x" * 1000, mtime=0)[:-9], r"data/text\.en is a damaged gzip file"),
        (b"fine\nals\xe4\n", None, r"data/text\.en, line 2: not valid UTF-8 \(byte 4 of the line\)"),
        (b"one\n", b"another\n", r"data/text\.en has changed since the study was planned"),
        (
            b"one\n",
            gzip.compress(b"one\ntwo\n", mtime=0),
            r"data/text\.en has changed since the study was planned",
        ),
    ],
)
def test_a_file_that_is_not_as_it_was_planned_is_named(
    tmp_path: Path, content: bytes, stored: bytes | None, message: str
) -> None:
    with pytest.raises(StepError, match=message):
        list(user_file(tmp_path / "text", content, packed=stored).lines())


def test_a_missing_file_says_that_workers_must_see_it(tmp_path: Path) -> None:
    with pytest.raises(StepError, match=r"cannot be read \(No such file.*every machine"):
        list(UserFile("data/text.en", tmp_path / "gone", "0").lines())


def test_white_space_becomes_single_blanks_and_letters_are_composed() -> None:
    assert normalise(f"{WHITE}ein{WHITE}Wort\0") == "ein Wort"
    assert normalise("gru\u0308n") == "grün"


@given(st.text())
def test_a_plain_text_is_the_line_but_for_controls_and_its_end(text: str) -> None:
    found = plain(text.replace("\n", ""))
    assert plain(found) == found
    assert found.splitlines() in ([], [found])
    assert found.split() == text.replace("\n", "").split()


@pytest.mark.slow
@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert "\n" not in once


@given(st.data(), st.text(alphabet="abü" + WHITE, min_size=1))
def test_a_span_moves_with_its_text(data: st.DataObject, line: str) -> None:
    start = data.draw(st.integers(0, len(line) - 1))
    end = data.draw(st.integers(start + 1, len(line)))
    if not line[start].isspace():  # a span begins with its first character
        first, last = move_span(line, (start, end))
        assert normalise(line)[first:last] == normalise(line[start:end])


@given(st.data(), st.text(alphabet="abü▁e\u0301" + WHITE, min_size=1))
def test_a_span_moves_back_to_its_text(data: st.DataObject, line: str) -> None:
    text = plain(line)
    if count := len(normalise(text)):
        start = data.draw(st.integers(0, count - 1))
        end = data.draw(st.integers(start + 1, count))
        first, last = move_span_back(text, (start, end))
        assert normalise(text)[start:end].strip() == normalise(text[first:last])


def test_a_span_counts_composed_letters_once() -> None:
    line = "u\u0308ber  das\u00a0Ziel"
    start = line.index("Ziel")
    assert move_span(line, (start, len(line))) == (9, 13)


def test_lines_survive_the_artefact_files(tmp_path: Path) -> None:
    lines = ["", "ein Satz", "", "⁇ \u0085 é"]
    write_lines(tmp_path / "lines", lines)
    assert read_lines(tmp_path / "lines") == lines


# ---------------------------------------------------------------- Moses' tokens


DETOKENISED = {
    "en": {
        "I don &apos;t know , but it &apos;s fine .": "I don't know, but it's fine.",
        "they &apos;ve said : &quot; no ! &quot;": 'they\'ve said: "no!"',
        "the Jones &apos; house": "the Jones' house",
        "( see 3 ) , &#91; 1 &#93; and 20 % of $ 5": "(see 3), [1] and 20% of $5",
        "a state-of-the-art machine": "a state-of-the-art machine",
        "state @-@ of @-@ the @-@ art": "state-of-the-art",
        "R &amp; D": "R & D",
        "A &#124; B &lt; C &gt; D": "A | B < C > D",
        "&amp;": "&",
        "write &amp;quot; for a quote": "write &quot; for a quote",  # an escape that the text itself holds
        "plain text, untokenised, it's kept.": "plain text, untokenised, it's kept.",
        "": "",
        "l&apos; homme": "l' homme",
    },
    "de": {
        "Er sagte : „ Ja , gut “ .": "Er sagte: „Ja, gut“.",
        "EU- und UN-Mittel ( neu ) ; gut ?": "EU- und UN-Mittel (neu); gut?",
        "z. B. 3,5 Millionen": "z. B. 3,5 Millionen",
        "&quot; Ja &quot; , sagte er": '"Ja", sagte er',
    },
    "fr": {"l&apos; homme": "l'homme"},
    "en-GB": {"it &apos;s": "it's"},  # a regional code has the rules of its language
    "eng": {"it &apos;s": "it's"},
    "fra_Latn": {"l&apos; homme": "l'homme"},
}


@pytest.mark.parametrize(
    "language, line, text", [(code, *case) for code, cases in DETOKENISED.items() for case in cases.items()]
)
def test_tokens_are_joined_by_the_rules_of_the_language(language: str, line: str, text: str) -> None:
    assert detokenise(line, language) == text
