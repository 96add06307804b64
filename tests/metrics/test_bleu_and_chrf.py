"""BLEU, chrF and TER from summed statistics against sacreBLEU's own classes and command line."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from sacrebleu.metrics import BLEU, CHRF, TER
from scored_texts import outputs, printed_by_sacrebleu, segments
from step_context import Context

from creamtea.errors import StepUnavailable
from creamtea.methods.metrics import Bleu, Chrf, Metric, Ter
from creamtea.methods.texts import Languages
from creamtea.steps.systems import AGREEMENT
from creamtea_workers.metrics.base import Texts, ratio
from creamtea_workers.metrics.sacrebleu_metrics import BleuMetric, ChrfMetric, TerMetric, bleu_from_sums
from creamtea_workers.steps.scores import common_ngrams

GERMAN = Languages(source="en", target="de")
WORDS = ["ein", "Hund", "läuft", "über", "die", "Straße", ",", "und", "sieht", "eine", "Katze", "."]


def sentences(count: int, seed: int) -> list[str]:
    random = Random(seed)
    return [" ".join(random.choices(WORDS, k=random.randint(0, 14))) for _ in range(count)]


def texts(hypotheses: list[str], references: list[str]) -> Texts:
    return Texts(list(range(len(references))), [""] * len(references), hypotheses, references)


text = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
pairs = st.lists(st.tuples(text, text), min_size=1, max_size=6)


@given(pairs=pairs)
def test_bleu_equals_sacrebleu_on_corpora_and_sentences_with_effective_order(
    pairs: list[tuple[str, str]],
) -> None:
    hypotheses, references = map(list, zip(*pairs, strict=True))
    metric = BleuMetric(Bleu(kind="bleu"), GERMAN)
    statistics = metric.statistics(texts(hypotheses, references))
    corpus = BLEU().corpus_score(hypotheses, [references]).score
    assert metric.score(statistics.sum(axis=0)) == pytest.approx(corpus, abs=1e-9)
    scorer = BLEU(effective_order=True)
    sentences = [scorer.sentence_score(h, [r]).score for h, r in pairs]
    assert metric.segment_scores(statistics) == pytest.approx(sentences, abs=1e-9)


SCORERS = {BleuMetric: BLEU, ChrfMetric: CHRF, TerMetric: TER}


@pytest.mark.parametrize(
    "metric",
    [
        BleuMetric(Bleu(kind="bleu"), GERMAN),
        ChrfMetric(Chrf(kind="chrf")),
        TerMetric(Ter(kind="ter"), GERMAN),
    ],
)
def test_an_empty_line_is_no_further_reference(metric: BleuMetric | ChrfMetric | TerMetric) -> None:
    """sacreBLEU takes None for a reference that a segment lacks."""
    hypotheses, first = ["the cat sat", "a dog"], ["the cat sat on the mat", "a dog in the park"]
    given = Texts([0, 1], ["", ""], hypotheses, first, more_references=[["", "the dog"]])
    scorer = SCORERS[type(metric)]()
    theirs = scorer.corpus_score(hypotheses, [first, [None, "the dog"]])
    for _ in range(2):  # counted, and kept
        assert metric.score(metric.statistics(given).sum(axis=0)) == pytest.approx(theirs.score, abs=1e-9)
        assert "nrefs:var" in metric.signature()
    without = Texts([0, 1], ["", ""], hypotheses, first, more_references=[["", ""]])
    one = metric.statistics(texts(hypotheses, first))
    assert (metric.statistics(without) == one).all()
    assert "nrefs:1" in metric.signature()
    nothing = Texts([0], [""], ["a"], [""], more_references=[[""]])
    assert (metric.statistics(nothing) == metric.statistics(texts(["a"], [""]))).all()


CHRFS = {order: ChrfMetric(Chrf(kind="chrf", word_order=order)) for order in (0, 2)}
EQUALS: dict[str, tuple[Any, Any]] = {
    **{f"chrf {order}": (metric, CHRF(word_order=order)) for order, metric in CHRFS.items()},
    **{
        " ".join(["ter", *settings]): (TerMetric(Ter(kind="ter", **settings), GERMAN), TER(**settings))
        for settings in ({}, {"case_sensitive": True}, {"normalized": True})
    },
}


@pytest.mark.parametrize("name", EQUALS)
@given(pairs=pairs)
def test_chrf_and_ter_equal_sacrebleu_on_corpora_and_sentences(
    name: str, pairs: list[tuple[str, str]]
) -> None:
    metric, theirs = EQUALS[name]
    hypotheses, references = map(list, zip(*pairs, strict=True))
    statistics = metric.statistics(texts(hypotheses, references))
    corpus = theirs.corpus_score(hypotheses, [references]).score
    assert metric.score(statistics.sum(axis=0)) == pytest.approx(corpus, abs=1e-9)
    sentences = [theirs.sentence_score(h, [r]).score for h, r in pairs]
    assert metric.segment_scores(statistics) == pytest.approx(sentences, abs=1e-9)


def test_ter_splits_chinese_by_characters_and_says_where_it_cannot_split() -> None:
    chinese = texts(["我看书"], ["我看报"])
    metric = TerMetric(Ter(kind="ter"), Languages(source="en", target="zh"))
    (score,) = metric.segment_scores(metric.statistics(chinese))
    assert (score, metric.note) == (pytest.approx(100 / 3), "")
    assert "norm:yes|punct:yes|asian:yes" in metric.signature()
    unsplit = TerMetric(Ter(kind="ter", normalized=False), Languages(source="en", target="zh"))
    (score,) = unsplit.segment_scores(unsplit.statistics(chinese))
    assert score == 100.0
    assert "use chrf" in unsplit.note


@pytest.mark.parametrize(
    ("target", "settings", "hypothesis", "reference"),
    [
        ("th", {}, "วันนี้อากาศดี", "วันนี้อากาศดีมาก"),  # sacreBLEU splits Chinese and Japanese alone
        ("km", {}, "ខ្ញុំទៅសាលា", "ខ្ញុំទៅសាលារៀន"),
        ("dz", {}, "ཁྱིམ་ནང་འགྱོ", "ཁྱིམ་ནང་སོང་"),
        ("xx", {"normalized": True}, "我看书", "我看报"),  # as it would not know this language
    ],
)
def test_ter_says_that_it_cannot_split_a_language(
    target: str, settings: dict[str, bool], hypothesis: str, reference: str
) -> None:
    metric = TerMetric(Ter(kind="ter", **settings), Languages(source="en", target=target))
    scores = metric.segment_scores(metric.statistics(texts([hypothesis], [reference])))
    theirs = TER(normalized=True, asian_support=target != "xx").sentence_score(hypothesis, [reference])
    assert (scores.tolist(), theirs.score) == ([100.0], 100.0)
    assert "use chrf" in metric.note


@pytest.mark.parametrize(
    ("tokenize", "lowercase"),
    [("13a", False), ("13a", True), ("intl", False), ("char", True), ("none", False), ("zh", False)],
)
def test_values_and_signatures_are_those_of_sacrebleus_command_line(
    tokenize: str, lowercase: bool, tmp_path: Path
) -> None:
    hypotheses, references = [text.lower() for text in sentences(40, 1)], sentences(40, 2)
    (tmp_path / "hyp").write_text("\n".join(hypotheses) + "\n", encoding="utf-8")
    (tmp_path / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
    options = ["-m", "bleu", "chrf", "ter", "--tokenize", tokenize, "-w", "6"]
    printed = printed_by_sacrebleu(tmp_path, *options, *["--lowercase"] * lowercase)  # of BLEU alone

    spec = Bleu.model_validate({"kind": "bleu", "tokenize": tokenize, "lowercase": lowercase})
    bleu, chrf = BleuMetric(spec, GERMAN), ChrfMetric(Chrf(kind="chrf"))
    ter = TerMetric(Ter(kind="ter"), GERMAN)
    for metric, theirs in zip((bleu, chrf, ter), printed, strict=True):
        value = metric.score(metric.statistics(texts(hypotheses, references)).sum(axis=0))
        assert round(float(value), 6) == theirs["score"]
        assert metric.signature() == theirs["signature"]


def test_bleu_scores_many_resamples_at_once() -> None:
    rows = np.random.default_rng(0).integers(0, 5, size=(7, 3, 1))
    sums = np.concatenate(
        [rows + 9, rows + 8, rows + 6, rows + 3, rows, rows, rows + 9, rows + 6, rows + 3, rows], -1
    )
    many = bleu_from_sums(sums.astype(float), effective_order=False)
    assert many.shape == (7, 3)
    for index in np.ndindex(7, 3):
        lengths, matched, possible = sums[index][:2], sums[index][2:6], sums[index][6:]
        one = BLEU.compute_bleu(list(matched), list(possible), *map(int, lengths), smooth_method="exp")
        assert many[index] == pytest.approx(one.score, abs=1e-9)


def test_a_tokenizer_that_is_not_installed_is_unavailable_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(**_: object) -> None:
        raise RuntimeError("Please install the MeCab package")

    monkeypatch.setattr("creamtea_workers.metrics.sacrebleu_metrics.BLEU", missing)
    with pytest.raises(StepUnavailable, match=r"'ja-mecab' is unavailable .*install sacrebleu\[ja\]"):
        BleuMetric(Bleu(kind="bleu", tokenize="ja-mecab"), Languages(source="en", target="ja"))


BOTH = {"case_sensitive": True, "normalized": True}


@pytest.mark.parametrize(
    ("fields", "name", "title"),
    [
        ({"kind": "bleu"}, "bleu", "BLEU"),
        ({"kind": "bleu", "tokenize": "intl"}, "bleu-intl", "BLEU (intl)"),
        ({"kind": "bleu", "lowercase": True}, "bleu-lc", "BLEU (lower-cased)"),
        ({"kind": "bleu", "tokenize": "intl", "lowercase": True}, "bleu-intl-lc", "BLEU (intl, lower-cased)"),
        ({"kind": "ter", "normalized": False}, "ter", "TER"),
        ({"kind": "ter", **BOTH}, "ter-cased-norm", "TER (cased, normalised)"),
    ],
)
def test_what_is_unusual_is_in_the_name(fields: dict[str, object], name: str, title: str) -> None:
    spec = TypeAdapter(Metric).validate_python(fields)
    assert (spec.name(), spec.describe()) == (name, title)


# ---------------------------------------------------------------- agreement of outputs


SOURCES = ["a cup of tea", "two cups, please", "no milk"]
OUTPUTS = [
    ["eine Tasse Tee", "zwei Tassen, bitte", "keine Milch"],
    ["eine Tasse Tee", "zwei Tassen bitte", "ohne Milch"],
    ["ein Becher", "", "Milch"],
]


@given(st.lists(st.text("ab ä", max_size=12), min_size=2, max_size=4))
def test_common_ngrams_are_those_that_sacrebleu_counts(texts: list[str]) -> None:
    scorer, found = CHRF(), common_ngrams(tuple(texts))
    for i, one in enumerate(texts):
        for j, other in enumerate(texts):
            (expected,) = scorer._extract_corpus_statistics([one], [[other]])
            assert found[i, j].tolist() == expected


def test_a_ratio_to_less_than_one_is_one() -> None:
    """The other systems' mean length is half a character, say."""
    assert ratio(np.array([[1.0, 0.5], [0.0, 2.0], [3.0, 2.0]])).tolist() == [2.0, 0.0, 1.5]
    assert np.isnan(ratio(np.array([1.0, 0.0])))


def test_agreement_is_the_mean_of_chrf_in_both_directions(tmp_path: Path) -> None:
    folders = [outputs(tmp_path, own) for own in OUTPUTS]
    test_set = segments(tmp_path, [""] * 3, source=SOURCES)
    result = Context(AGREEMENT, {}, {"test_set": [test_set], "systems": folders}).run()
    rows = {(row.name, row.subject): row for row in result.metrics}
    corpus = np.array([[CHRF().corpus_score(one, [other]).score for other in OUTPUTS] for one in OUTPUTS])
    expected = (corpus + corpus.T) / 2
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert rows["agreement", f"{i}/{j}"].value == pytest.approx(expected[i, j])
    for place in range(3):
        row = rows["agreement", str(place)]
        assert row.value == pytest.approx(np.delete(expected[place], place).mean())
    characters = [sum(map(len, own)) for own in OUTPUTS]
    assert rows["length_others", "2"].value == pytest.approx(characters[2] / np.mean(characters[:2]))
    nothing = [folders[0], outputs(tmp_path, [""] * 3)]
    rows_of_two = Context(AGREEMENT, {}, {"test_set": [test_set], "systems": nothing}).run().metrics
    (length,) = [row for row in rows_of_two if (row.name, row.subject) == ("length_others", "0")]
    assert (length.value, length.note) == (None, "the other outputs are empty")
    assert rows["length_source", "0"].value == pytest.approx(characters[0] / sum(map(len, SOURCES)))
