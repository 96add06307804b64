"""Subwords: round trips, offsets, ids, and what a vocabulary can be."""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from step_context import Context

from creamtea.errors import StepError
from creamtea.methods.texts import Subwords
from creamtea.steps.texts import SUBWORDS
from creamtea_workers.corpora import subwords as subwords_module
from creamtea_workers.corpora.segments import encode_sources
from creamtea_workers.corpora.subwords import (
    BOS,
    EOS,
    PAD,
    UNK,
    SubwordModel,
    Vocabularies,
    Vocabulary,
    load_text_model,
    sampled_lines,
    split,
    train_subwords,
)
from creamtea_workers.corpora.text import normalise, write_lines

LETTERS = "abcdefgü,."


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = random.Random(1)
    words = ["".join(rng.choice(LETTERS) for _ in range(rng.randint(1, 7))) for _ in range(150)]
    path = tmp_path_factory.mktemp("text") / "train"
    write_lines(path, (" ".join(rng.choices(words, k=6)) for _ in range(300)))
    return path


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def model(request: pytest.FixtureRequest, text: Path) -> SubwordModel:
    path = text.with_name(request.param)
    train_subwords([text], Subwords(kind=request.param, vocabulary=100), path)
    return SubwordModel.load(path)


SAMPLE = """
import json, sys, sentencepiece
sentencepiece.set_random_generator_seed(3)
model = sentencepiece.SentencePieceProcessor(model_file=sys.argv[1])
lines = json.load(sys.stdin)
print(json.dumps(model.encode(lines, enable_sampling=True, alpha=0.2, nbest_size=-1, num_threads=1)))
"""


def test_sampled_subwords_are_the_same_in_every_process(
    model: SubwordModel, text: Path, tmp_path: Path
) -> None:
    """sentencepiece 0.2.2 and later draw other samples in each process, whatever the seed."""
    lines = text.read_text(encoding="utf-8").splitlines()[:20]
    (tmp_path / "model").write_bytes(model._processor.serialized_model_proto())
    command = [sys.executable, "-c", SAMPLE, str(tmp_path / "model")]
    other = subprocess.run(command, input=json.dumps(lines), capture_output=True, text=True, check=True)
    assert model.sampled_lines(lines, 0.2, 3) == json.loads(other.stdout) != model.encode_lines(lines)


@given(line=st.text(alphabet=LETTERS + " \u00a0\t"))
def test_decoding_gives_the_normalised_text_back(model: SubwordModel, line: str) -> None:
    assert model.decode(model.encode(line)) == normalise(line)


@given(line=st.text(alphabet=LETTERS + " ßx\u2581").map(normalise))
def test_offsets_cut_the_text_into_its_subwords(model: SubwordModel, line: str) -> None:
    offsets = model.offsets(line)
    assert [offset.id for offset in offsets] == model.encode(line)
    assert "".join(line[start:end] for _, start, end in offsets) == line.replace(" ", "")
    for id_, start, end in offsets:
        if id_ != UNK:
            assert model.pieces([id_])[0].removeprefix("\u2581") == line[start:end]


@pytest.mark.parametrize("line", ["\U0001fa77", "\U000323b0", "\ue000"])
def test_a_character_that_unicode_has_not_named_is_translated(model: SubwordModel, line: str) -> None:
    assert encode_sources(model, [line]) == model.encode_lines([line]) != [[]]


def test_offsets_need_normalised_text(model: SubwordModel) -> None:
    with pytest.raises(ValueError, match="normalised"):
        model.offsets("a  b")


def test_special_ids_are_fixed_and_not_decoded(model: SubwordModel) -> None:
    assert model.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]
    ids = model.encode("abc de")
    assert model.decode([BOS, *ids, EOS, PAD, PAD]) == "abc de"
    assert not {PAD, BOS, EOS} & set(model.encode("<pad> <s> </s>"))


def test_unknown_characters_are_shown(model: SubwordModel) -> None:
    assert model.decode(model.encode("a ß")) == "a ⁇"


def test_the_empty_line_has_no_subwords(model: SubwordModel) -> None:
    assert (model.encode(""), model.offsets(""), model.decode([])) == ([], [], "")


def test_size_is_what_was_asked(model: SubwordModel) -> None:
    assert model.size == 100


def test_the_same_text_gives_the_same_model(text: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        train_subwords([text, text], Subwords(vocabulary=80), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@given(count=st.integers(1, 60), size=st.integers(0, 60), part=st.integers(1, 70))
def test_a_sample_has_its_size_and_order(
    tmp_path_factory: pytest.TempPathFactory, count: int, size: int, part: int
) -> None:
    path = tmp_path_factory.mktemp("sample") / "lines"
    write_lines(path, map(str, range(size)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subwords_module, "_SAMPLE_PART", part)
        sample = [int(line) for line in sampled_lines(path, count)]
    assert len(sample) == min(count, size)
    assert sample == sorted(set(sample))
    assert set(sample) <= set(range(size))


def test_all_parts_of_a_text_are_sampled_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subwords_module, "_SAMPLE_PART", 100)
    write_lines(tmp_path / "lines", map(str, range(10_000)))
    sample = np.array([int(line) for line in sampled_lines(tmp_path / "lines", 2000)])
    counts = np.bincount(sample // 1000, minlength=10)
    assert abs(counts - 200).max() < 60  # 4.7 standard deviations


def test_a_model_of_a_sample_is_another(text: Path, tmp_path: Path) -> None:
    read = [
        train_subwords([text, text], Subwords(vocabulary=80, sample=size), tmp_path / str(size))
        for size in (300, 100)
    ]
    assert read == [600, 200]
    assert (tmp_path / "300").read_bytes() != (tmp_path / "100").read_bytes()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_that_is_too_large_names_the_largest(text: Path, tmp_path: Path, kind: str) -> None:
    with pytest.raises(StepError, match=r"vocabulary 20000 is more than.*possible for \w+ is \d+;") as caught:
        train_subwords([text], Subwords.model_validate({"kind": kind, "vocabulary": 20000}), tmp_path / "m")
    largest = int(str(caught.value).split(" is ")[-1].split(";")[0])
    train_subwords([text], Subwords.model_validate({"kind": kind, "vocabulary": largest}), tmp_path / "m")
    assert SubwordModel.load(tmp_path / "m").size == largest


def test_a_vocabulary_smaller_than_the_alphabet_names_the_smallest(tmp_path: Path) -> None:
    write_lines(tmp_path / "text", ["abcdefghijklmnopqrstuvwxyz"])
    with pytest.raises(StepError, match=r"vocabulary 16 is less than the characters.*possible is 31"):
        train_subwords([tmp_path / "text"], Subwords(vocabulary=16), tmp_path / "m")


# ---------------------------------------------------------------- characters and tokens


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
