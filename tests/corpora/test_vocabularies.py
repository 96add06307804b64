"""Vocabularies of characters and tokens: what is a symbol, round trips, ids."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from step_context import Context

from creamtea.methods.texts import Subwords
from creamtea.steps.texts import SUBWORDS
from creamtea_workers.corpora.subwords import (
    Vocabularies,
    Vocabulary,
    load_text_model,
    split,
)
from creamtea_workers.corpora.text import normalise, write_lines

TEXT = "<ady>аб<ф b>c д < <>"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    write_lines(folder / "train.src", ["<hin>तू<V><PST>", "<ady>аб а"])
    write_lines(folder / "train.tgt", ["d͡z aː", "b d͡z"])
    return folder


def test_what_stands_in_angle_brackets_is_a_symbol_and_so_is_a_blank() -> None:
    assert split("characters", "<hin>ab c<V><3;PL>") == ["<hin>", "a", "b", " ", "c", "<V>", "<3;PL>"]
    assert split("characters", "a<b c>") == ["a", "<", "b", " ", "c", ">"]
    assert split("tokens", "d͡z aː <x>") == ["d͡z", "aː", "<x>"]


def test_ids_begin_after_the_four_special_ones_with_what_is_in_brackets() -> None:
    vocabulary = Vocabulary.of("characters", ["b<V>a", "<hin>a c"])
    assert vocabulary.symbols == ["<V>", "<hin>", " ", "a", "b", "c"]
    assert (vocabulary.size, vocabulary.bracketed) == (10, 2)
    assert vocabulary.encode("<hin>ab?") == [5, 7, 8, 1]
    assert vocabulary.decode([2, 7, 6, 8, 1, 3, 0]) == "a b⁇"


@given(st.text(alphabet=TEXT, max_size=20))
def test_characters_come_back(line: str) -> None:
    vocabulary = Vocabulary.of("characters", [TEXT, normalise(line)])
    assert vocabulary.decode(vocabulary.encode(line)) == normalise(line)


@given(st.lists(st.text(alphabet="abː͡", min_size=1, max_size=4), max_size=6))
def test_tokens_come_back(tokens: list[str]) -> None:
    line = normalise(" ".join(tokens))
    vocabulary = Vocabulary.of("tokens", [line])
    assert vocabulary.decode(vocabulary.encode(line)) == line
    assert len(vocabulary.encode(line)) == len(line.split())


def test_the_step_leaves_a_vocabulary_of_each_side(corpus: Path) -> None:
    params = {"subwords": {"kind": "characters", "target": "tokens"}}
    context = Context(SUBWORDS, params, {"corpus": [corpus]})
    sizes = {row.name: row.value for row in context.run().metrics}
    assert sizes == {"vocabulary_size": 4 + 3, "source_vocabulary_size": 4 + 4 + 5}
    model = load_text_model(Context(SUBWORDS, params, {"subwords": [context.output]}))
    assert isinstance(model, Vocabularies)
    assert model.size == 7
    assert model.source_vocabulary.bracketed == 4
    assert model.decode(model.encode_targets(["aː d͡z x"])[0]) == "aː d͡z ⁇"
    assert model.encode_lines(["<V>ब"]) == [[5, 1]]


def test_the_order_of_the_text_makes_no_difference(corpus: Path) -> None:
    first = Vocabularies.of_corpus(corpus, Subwords(kind="characters"))
    for side in ("src", "tgt"):
        lines = (corpus / f"train.{side}").read_text().split("\n")[:-1]
        write_lines(corpus / f"train.{side}", reversed(lines))
    assert Vocabularies.of_corpus(corpus, Subwords(kind="characters")).source == first.source
