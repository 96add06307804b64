"""Lines translated outside of a test set: what a model has never seen of them."""

from __future__ import annotations

from pathlib import Path

import step_files
from step_context import Context

from creamtea.steps.systems import DECODE
from creamtea_workers.corpora.subwords import VOCABULARIES_FILE, Vocabularies, Vocabulary
from creamtea_workers.search.translator import OpenSystem

PARAMS = {"selection": {"kind": "full"}, "search": {"kind": "greedy"}, "precision": "fp32", "batch_size": 4}


def opened(tmp_path: Path, subwords: Path, train: Path, source: str) -> OpenSystem:
    folders = {
        "test_set": [step_files.test_set_folder(tmp_path, [{"source": source, "reference": "x"}])],
        "subwords": [subwords],
        "train": [train],
    }
    return OpenSystem.of_step(Context(DECODE, PARAMS, folders, tmp_path / "out"))


def test_subwords_say_which_characters_have_none(tmp_path: Path) -> None:
    subwords = step_files.subwords_folder(tmp_path)
    train = step_files.model_folder(tmp_path, step_files.vocabulary_size(subwords))
    system = opened(tmp_path, subwords, train, "<ady>abc")
    rows = system.translate(["the cat", "the ☃ sat Ω"])
    assert [row["unknown"] for row in rows] == [[], ["☃", "Ω"]]
    assert [(row["text"], row["unknown"]) for row in system.translate(["", " \u3000", "\u200b"])] == [
        ("", [])
    ] * 3
    assert system.example == ""  # a symbol in angle brackets is text like any other here


def test_words_have_unknown_languages_and_characters_and_an_example(tmp_path: Path) -> None:
    both = Vocabularies(
        Vocabulary.of("characters", ["<ady>abc", "<bel>d"]), Vocabulary.of("characters", ["xyz"])
    )
    subwords = tmp_path / "subwords"
    subwords.mkdir()
    both.save(subwords / VOCABULARIES_FILE)
    train = step_files.model_folder(tmp_path, both.size, nvs=None, source_vocabulary=both.source_vocabulary)
    system = opened(tmp_path, subwords, train, "<ady>abc")
    rows = system.translate(["<ady>cab", "<zzz>cab", "cabž"])
    assert [row["unknown"] for row in rows] == [[], ["<zzz>"], ["ž"]]
    assert system.example == "<ady>abc"
