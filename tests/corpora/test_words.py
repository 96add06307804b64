"""Corpora and test sets of words: SIGMORPHON's files, their groups, and malformed lines."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from step_context import Context, TextFiles

from creamtea.contract.step import StepKind
from creamtea.errors import StepError
from creamtea.methods.texts import WordLine
from creamtea.steps.texts import CORPUS, TEST_SET
from creamtea.words import normalise
from creamtea_workers.corpora.words import hallucinate, stems

LANGUAGES = {"source": "mul", "target": "mul"}
FILES = {
    "ady.tsv": "абан\taː b aː n\nаб\taː b\n",
    "hin.tsv": "तू\tt uː\r\n",
    "zulu-train-high": "hamba\tbahambile\tV;PST; 3;PL\nlala ni\tlalani\tV;IMP\n",
    "swahili-train-low": "enda\tanaenda\tV;PRS;3;SG\n",
    "swahili-dev": "soma\tanasoma\tV;PRS;3;SG\n",
}
G2P = {"kind": "g2p", "languages": ["ady", "hin"]}
INFLECTION = {"kind": "inflection", "pairs": ["zulu--swahili"]}
PRONOUNCED = {**G2P, "train": "{language}.tsv", "dev": "{language}.tsv"}
INFLECTED = {**INFLECTION, "high": "{high}-train-high", "low": "{low}-train-low", "dev": "{low}-dev"}


def context_of(kind: StepKind[Any], folder: Path, spec: dict[str, Any], **changed: str) -> Context:
    """A step that makes a corpus or a test set of FILES, some of them changed."""
    files = TextFiles(folder)
    for name, text in (FILES | changed).items():
        files.write(name, text)
    params = {"corpus": spec} if kind is CORPUS else {"corpus": None, "test_set": spec}
    params |= {"languages": LANGUAGES, "digests": files.digests}
    return Context(kind, params, {}, folder / "out", locations=files.locations)


def corpus(folder: Path, spec: dict[str, Any]) -> tuple[dict[str, list[str]], dict[str, float | None]]:
    """The lines of its files, and how many pairs were read and kept."""
    context = context_of(CORPUS, folder, spec)
    counts = {row.subject: row.value for row in context.run().metrics}
    return read(context), counts


def segments(folder: Path, spec: dict[str, Any]) -> list[tuple[str, str, str]]:
    context = context_of(TEST_SET, folder, spec)
    context.run()
    lines = (context.output / "segments.jsonl").read_text(encoding="utf-8").splitlines()
    return [(row["source"], row["reference"], row["group"]) for row in map(json.loads, lines)]


def read(context: Context) -> dict[str, list[str]]:
    return {path.name: path.read_text(encoding="utf-8").split("\n")[:-1] for path in context.output.iterdir()}


def test_pronunciations_of_several_languages(tmp_path: Path) -> None:
    files, counts = corpus(tmp_path, PRONOUNCED)
    assert files == {
        "train.src": ["<ady>абан", "<ady>аб", "<hin>तू"],
        "train.tgt": ["aː b aː n", "aː b", "t uː"],
        "dev.src": ["<ady>абан", "<ady>аб", "<hin>तू"],
        "dev.tgt": ["aː b aː n", "aː b", "t uː"],
        "dev.groups": ["ady", "ady", "hin"],
    }
    assert counts == {"train_read": 3, "train_kept": 3, "dev_read": 3, "dev_kept": 3}


def test_inflected_forms_of_a_pair_with_the_few_up_sampled(tmp_path: Path) -> None:
    files, counts = corpus(tmp_path, {**INFLECTED, "repeat": 3})
    few = "<swahili>enda<V><PRS><3><SG>"
    assert files == {
        "train.src": ["<zulu>hamba<V><PST><3><PL>", "<zulu>lala ni<V><IMP>", few, few, few],
        "train.tgt": ["bahambile", "lalani", "anaenda", "anaenda", "anaenda"],
        "dev.src": ["<swahili>soma<V><PRS><3><SG>"],
        "dev.tgt": ["anasoma"],
        "dev.groups": ["swahili"],
    }
    assert counts == {"train_read": 3, "train_kept": 5, "train_added": 2, "dev_read": 1, "dev_kept": 1}


def test_made_up_words_follow_those_that_are_read(tmp_path: Path) -> None:
    files, counts = corpus(tmp_path, {**INFLECTED, "hallucinated": 7})
    assert counts == {"train_read": 3, "train_kept": 10, "train_made_up": 7, "dev_read": 1, "dev_kept": 1}
    sources, targets = files["train.src"][3:], files["train.tgt"][3:]
    for source, target in zip(sources, targets, strict=True):
        assert source.startswith("<swahili>")
        assert source.endswith("<V><PRS><3><SG>")
        assert target == f"ana{source[9:13]}"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {**G2P, "file": "{language}.tsv"},
            [("<ady>абан", "aː b aː n", "ady"), ("<ady>аб", "aː b", "ady"), ("<hin>तू", "t uː", "hin")],
        ),
        (  # of each language
            {**G2P, "file": "{language}.tsv", "limit": 1},
            [("<ady>абан", "aː b aː n", "ady"), ("<hin>तू", "t uː", "hin")],
        ),
        ({**INFLECTION, "file": "{low}-dev"}, [("<swahili>soma<V><PRS><3><SG>", "anasoma", "swahili")]),
    ],
)
def test_segments_have_their_language_as_group(
    tmp_path: Path, spec: dict[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    assert segments(tmp_path, spec) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nab\n", r"ady.tsv, line 2: 1 column where 2 belong; a line is word TAB phones"),
        ("", r"ady.tsv is empty: it needs at least one line"),
    ],
)
def test_a_bad_line_fails_the_step(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StepError, match=message):
        context_of(CORPUS, tmp_path, PRONOUNCED, **{"ady.tsv": text}).run()


# ---------------------------------------------------------------- made-up words


PAST, THIRD = ("V", "PST"), ("V", "3")
WORDS = [WordLine("walk", "walked", PAST), WordLine("go", "went", PAST), WordLine("put up", "puts up", THIRD)]


@pytest.mark.parametrize(
    ("lemma", "form", "found"),
    [
        ("walk", "walked", [(0, 0, 4)]),
        ("hamba", "bahamba", [(0, 2, 5)]),
        ("konditor", "konditoren", [(1, 1, 6)]),  # of more than five the first and last stay
        ("go", "went", []),
        ("sing", "sang", []),
        ("put up", "puts up", [(0, 0, 3)]),
        ("abc def", "abc def", [(0, 0, 3), (4, 4, 3)]),
    ],
)
def test_stems_by_hand(lemma: str, form: str, found: list[tuple[int, int, int]]) -> None:
    assert list(stems(lemma, form)) == found


@given(st.text(alphabet="abc ", max_size=9), st.text(alphabet="abc ", max_size=9))
def test_stems_are_shared_and_hold_no_blank(lemma: str, form: str) -> None:
    for first, other, length in stems(lemma, form):
        stem = lemma[first : first + length]
        assert stem == form[other : other + length]
        assert " " not in stem
        assert length >= 3


def test_made_up_words_have_no_character_that_a_mark_and_a_letter_make() -> None:
    """Yoruba has marks that join some letters and not others: "n" beside one would become another letter."""
    words = [WordLine("kẹ́kọ", "ńkẹ́kọ"), WordLine("gbàgbẹ̀", "ńgbàgbẹ̀"), WordLine("pẹ̀lúnlẹ̀", "ńpẹ̀lúnlẹ̀")]
    known = {character for word in words for character in word[0] + word[1]}
    made = hallucinate(words, 500, 1, "yoruba")
    assert all(set(normalise(text)) <= known for word in made for text in word[:2])
    assert len(set(made)) > 400


def test_only_the_stem_changes_and_alike_in_both() -> None:
    made = hallucinate(WORDS, 200, 1, "english")
    assert len(made) == 200
    alphabet = set("walkedgontpusp")
    verbs = [(lemma, form) for lemma, form, tags in made if tags == PAST]
    assert all(form == f"{lemma}ed" and len(lemma) == 4 for lemma, form in verbs)
    others = [(lemma, form) for lemma, form, tags in made if tags == THIRD]
    assert len(verbs) == len(others) == 100
    assert all(form == f"{lemma[:3]}s up" and lemma[3:] == " up" for lemma, form in others)
    assert len(set(verbs)) > 50
    assert {character for lemma, _ in verbs for character in lemma} <= alphabet
    changed = sum(a != b for lemma, _ in verbs for a, b in zip(lemma, "walk", strict=True))
    assert changed / 400 == pytest.approx(0.5 * 12 / 13, abs=0.1)  # half, less those drawn again


def test_the_seed_and_the_language_are_all_that_draws_follow_from() -> None:
    assert hallucinate(WORDS, 20, 1, "english") == hallucinate(WORDS, 20, 1, "english")
    assert hallucinate(WORDS, 20, 1, "english") != hallucinate(WORDS, 20, 2, "english")
    assert hallucinate(WORDS, 5, 1, "english") == hallucinate(WORDS, 20, 1, "english")[:5]


def test_words_without_a_stem() -> None:
    with pytest.raises(StepError, match="no word of english shares 3 characters"):
        hallucinate([WordLine("go", "went", PAST)], 5, 1, "english")
