"""The synthetic corpus: deterministic, unseen test sentences, and idioms that mean something."""

import hashlib
import json
import re
from collections import Counter

import pytest

from creamtea.methods.corpora import SyntheticCorpus
from creamtea.methods.test_sets import SyntheticTestSet
from creamtea_workers.corpora import synthetic
from creamtea_workers.corpora.segments import Segment
from creamtea_workers.corpora.synthetic import training_and_dev, unseen_segments

CORPUS = SyntheticCorpus(kind="synthetic", train=3000, dev=100)


@pytest.fixture(scope="module")
def corpus() -> tuple[list[Segment], list[Segment]]:
    return training_and_dev(CORPUS)


@pytest.fixture
def train(corpus: tuple[list[Segment], list[Segment]]) -> list[Segment]:
    return corpus[0]


def draw_test_set(**changes: object) -> list[Segment]:
    spec = SyntheticTestSet.model_validate({"kind": "synthetic", "corpus": "c", "lines": 200, **changes})
    return unseen_segments(spec, CORPUS)


def test_the_default_corpus_is_what_it_has_always_been() -> None:
    """Studies that ran before stay comparable; whoever changes this raises the version of `corpus`."""
    corpus = SyntheticCorpus(kind="synthetic", train=500, dev=20)
    test_set = SyntheticTestSet(kind="synthetic", corpus="c", lines=20)
    made = json.dumps([*training_and_dev(corpus), unseen_segments(test_set, corpus)])
    digest = hashlib.sha256(made.encode()).hexdigest()
    assert digest == "10c1844f049d914ce302e43cfe5f8b614d9f730c963b8ce880b2973e9cb1fe94"


def test_another_seed_gives_other_sentences_of_the_same_language(train: list[Segment]) -> None:
    other, _ = training_and_dev(CORPUS.model_copy(update={"seed": 5}))
    assert not {pair.source for pair in other[:20]} & {pair.source for pair in train}
    words = {word for pair in train for word in pair.reference.split()}
    common = Counter(word for pair in other for word in pair.reference.split()).most_common(100)
    assert {word for word, _ in common} <= words


def test_no_source_sentence_comes_twice(corpus: tuple[list[Segment], list[Segment]]) -> None:
    (train, dev), test = corpus, draw_test_set()
    sources = [pair.source for pair in [*train, *dev, *test]]
    assert len(set(sources)) == 3000 + 100 + 200


@pytest.mark.slow
def test_what_a_test_set_would_repeat_is_left_out() -> None:
    """Without the exclusion, this test set of short sentences would hold training sentences."""
    large = CORPUS.model_copy(update={"train": 12000})
    spec = SyntheticTestSet(kind="synthetic", corpus="c", lines=2000)
    drawn = {pair.source for pair in unseen_segments(spec, large.model_copy(update={"train": 10, "dev": 1}))}
    seen = {pair.source for pair in training_and_dev(large)[0]}
    assert drawn & seen
    assert not {pair.source for pair in unseen_segments(spec, large)} & seen


def test_temperature_zero_translates_a_word_always_alike() -> None:
    pairs, _ = training_and_dev(CORPUS.model_copy(update={"gamma": 0.0, "train": 500}))
    best = {word: max(row, key=lambda w: row[w]) for word, row in synthetic.tables().lexical.items()}
    allowed = {word for target in best.values() for word in target.split()}
    assert {word for pair in pairs for word in pair.reference.split()} <= allowed


def test_sentences_have_four_to_fourteen_words_and_some_translation(train: list[Segment]) -> None:
    assert {len(pair.source.split()) for pair in train} == set(range(4, 15))
    assert all(pair.reference for pair in train)


# ---------------------------------------------------------------- idioms


def test_offsets_cut_out_the_idiom_and_its_translation(train: list[Segment]) -> None:
    lexical = synthetic.tables().lexical
    idioms = [(pair, idiom) for pair in train for idiom in pair.idioms]
    assert len(idioms) > 600
    for pair, idiom in idioms:
        assert pair.source[slice(*idiom["source"])] == idiom["name"]
        assert {pair.reference[slice(*idiom["target"])]: 1.0} == lexical[idiom["name"]]


def test_a_phrase_is_an_idiom_wherever_it_stands(train: list[Segment]) -> None:
    pattern = re.compile(r"\b(?:" + "|".join(synthetic.PHRASES) + r")\b")
    for pair in train:
        found = [match.span() for match in pattern.finditer(pair.source)]
        assert found == [tuple(idiom["source"]) for idiom in pair.idioms]


@pytest.mark.parametrize("rate", [0.0, 0.25, 1.0])
def test_the_idiom_rate_is_the_share_of_sentences_with_one(rate: float) -> None:
    pairs = draw_test_set(lines=1000, idiom_rate=rate)
    assert sum(len(pair.idioms) for pair in pairs) == pytest.approx(1000 * rate, abs=45)
    assert all(len(pair.idioms) <= 1 for pair in pairs)


def test_every_idiom_is_learnable(train: list[Segment]) -> None:
    """In the 12,000 sentences of the default, four times as often."""
    counts = Counter(idiom["name"] for pair in train for idiom in pair.idioms)
    assert set(counts) == set(synthetic.PHRASES)
    assert min(counts.values()) >= 7


def test_the_words_of_an_idiom_are_mostly_literal(train: list[Segment]) -> None:
    literal, idiomatic = Counter[str](), Counter[str]()
    for pair in train:
        inside = Counter(word for idiom in pair.idioms for word in idiom["name"].split())
        idiomatic += inside
        literal += Counter(pair.source.split()) - inside
    assert all(literal[word] > idiomatic[word] for word in synthetic.IDIOM_WORDS)


def test_an_idioms_translation_has_words_of_its_own() -> None:
    lexical = synthetic.tables().lexical
    words = Counter(word for row in lexical.values() for target in row for word in target.split())
    assert max(words.values()) == 1
    assert all(2 <= len(target.split()) <= 4 for phrase in synthetic.PHRASES for target in lexical[phrase])


def test_idioms_are_phrases_of_ordinary_words_and_none_holds_another() -> None:
    ordinary = {word for word in synthetic.tables().lexical if " " not in word}
    assert set(synthetic.IDIOM_WORDS) <= ordinary
    assert all(2 <= len(phrase.split()) <= 4 for phrase in synthetic.PHRASES)
    assert len(set(synthetic.PHRASES)) == len(synthetic.PHRASES) == 40
    for one in synthetic.PHRASES:
        assert not any(f" {one} " in f" {other} " for other in synthetic.PHRASES if other != one)
