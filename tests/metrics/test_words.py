"""WER, PER, accuracy and Levenshtein distance: by hand, against a plain implementation, over groups."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from scored_texts import comparing, outputs, scoring, segments

from creamtea.methods.metrics import METRICS
from creamtea.stats.resampling import resampled_sums
from creamtea_workers.metrics.base import Texts
from creamtea_workers.metrics.words import WordMetric

# group, hypothesis, reference: ady has 1 of 2 words wrong, 1 error in 5 phones; hin 2 of 3, 4 in 5
WORDS = [
    ("ady", "aː b aː n", "aː b aː n"),
    ("ady", "d", "d͡z"),
    ("hin", "t uː x", "t uː"),
    ("hin", "", "a b"),
    ("hin", "k", "k"),
]
BY_HAND = {"wer": (50 + 200 / 3) / 2, "per": (20 + 60) / 2, "accuracy": (50 + 100 / 3) / 2}


def texts(words: Sequence[tuple[str, str, str]]) -> Texts:
    groups, hypotheses, references = (list(column) for column in zip(*words, strict=True))
    return Texts(list(range(len(words))), references, hypotheses, references, groups)


def score(name: str, words: Sequence[tuple[str, str, str]]) -> float:
    metric = WordMetric(name)
    return float(metric.score(metric.statistics(texts(words)).sum(axis=0)))


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name: str) -> None:
    assert score(name, WORDS) == pytest.approx(BY_HAND[name])


def test_levenshtein_distance_counts_characters() -> None:
    # "" and kitten/sitting 3 in one language; ab/ba 2 in another
    words = [("a", "kitten", "sitting"), ("a", "x y", "x y"), ("b", "ab", "ba")]
    assert score("levenshtein", words) == pytest.approx((1.5 + 2) / 2)


def plain(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """The recursion of the definition."""
    if not hypothesis or not reference:
        return len(hypothesis) + len(reference)
    return min(
        plain(hypothesis[1:], reference) + 1,
        plain(hypothesis, reference[1:]) + 1,
        plain(hypothesis[1:], reference[1:]) + (hypothesis[0] != reference[0]),
    )


@given(st.lists(st.sampled_from(["a", "aː", "b"]), max_size=5), st.lists(st.sampled_from("ab"), max_size=5))
def test_the_library_is_the_definition(hypothesis: list[str], reference: list[str]) -> None:
    assert Levenshtein.distance(hypothesis, reference) == plain(hypothesis, reference)


@pytest.mark.parametrize("name", [*BY_HAND, "levenshtein"])
def test_every_metric_knows_itself(name: str) -> None:
    spec = METRICS.kinds[name].model_validate({"kind": name})
    assert spec.name() == name
    assert (spec.column().digits, spec.better) == (2, "higher" if name == "accuracy" else "lower")


def test_single_words() -> None:
    metric = WordMetric("per")
    assert metric.segment_scores(metric.statistics(texts(WORDS))).tolist() == [0, 100, 50, 100, 0]


def test_an_empty_reference_has_a_finite_score() -> None:
    metric = WordMetric("per")
    statistics = metric.statistics(Texts([], [], ["p t", "", "p t"], ["", "", "p d"], ["en"] * 3))
    assert metric.segment_scores(statistics).tolist() == [200, 0, 50]
    assert metric.score(statistics.sum(axis=0)) == pytest.approx(150)


def test_a_resample_keeps_the_size_of_each_group() -> None:
    groups = ["b", "a", "b", "b", "a"]
    statistics = np.array([[group == "a", group == "b", n] for n, group in enumerate(groups)], dtype=float)
    sums = resampled_sums(statistics, 300, groups=groups)
    assert (sums[:, 0] == 2).all()
    assert (sums[:, 1] == 3).all()
    assert len(np.unique(sums[:, 2])) > 5
    assert (
        resampled_sums(statistics, 300, groups=["x"] * 5).tolist() == resampled_sums(statistics, 300).tolist()
    )


REFERENCES, HYPOTHESES = ([word[place] for word in WORDS] for place in (2, 1))


@pytest.fixture
def test_set(tmp_path: Path) -> Path:
    return segments(tmp_path, REFERENCES, group=[group for group, _, _ in WORDS])


def test_the_score_step(tmp_path: Path, test_set: Path) -> None:
    context = scoring(test_set, outputs(tmp_path, HYPOTHESES), {"kind": "per"}, each_group=True)
    mean, *of_groups = context.run().metrics
    assert (mean.name, mean.subject, mean.value) == ("per", "", pytest.approx(40.0))
    assert mean.detail["signature"] == "metric:per|mean of groups:2|text:NFC"
    assert {row.subject: row.value for row in of_groups} == pytest.approx({"ady": 20, "hin": 60})
    assert all(row.low <= row.value <= row.high for row in (mean, *of_groups))
    assert [row.detail["segments"] for row in of_groups] == [2, 3]
    (alone,) = scoring(test_set, outputs(tmp_path, HYPOTHESES), {"kind": "per"}).run().metrics
    assert alone == mean


def test_the_compare_step(tmp_path: Path, test_set: Path) -> None:
    """Against enumeration: all 2^5 swaps of words, of which many give the observed difference."""
    perfect, system = outputs(tmp_path, REFERENCES), outputs(tmp_path, HYPOTHESES)
    context = comparing(test_set, [perfect], [system], {"kind": "wer"}, samples=200, trials=20000, seed=1)
    (row,) = context.run().metrics
    assert row.value == pytest.approx(BY_HAND["wer"])
    # wrong words: one of ady (25 each way), two of hin (50 / 3 each): |±25 ± 16.7 ± 16.7| >= 58.3 twice in 8
    assert row.detail["p_randomization"] == pytest.approx(2 / 8, abs=0.02)
