"""The choice among candidates: MBR and reranking by a metric, against brute force."""

import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import step_files
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER
from step_files import Folders, read_rows
from toy_models import OBJECTIVES, TableModel, batch_of

from creamtea.contract.step import MetricRow
from creamtea.errors import StepError
from creamtea.methods.searches import Mbr, Rerank
from creamtea.methods.selections import FullVocabulary
from creamtea.scorers import find_scorer
from creamtea_workers.analysis.origins import Investigation
from creamtea_workers.metrics.sacrebleu_metrics import ngram_matches
from creamtea_workers.search import build_search
from creamtea_workers.search.base import Hypothesis
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.candidates import (
    Candidates,
    MbrSearch,
    Utility,
    expected_utilities,
    pairwise_utilities,
)
from creamtea_workers.search.sample import Sampler, SampleSearch
from creamtea_workers.search.translator import TrainedModel, Translator, restored
from creamtea_workers.selection.tables import FullSelector

SACREBLEU = {"chrf": CHRF(), "bleu": BLEU(effective_order=True)}
WORDS = ["the", "a", "cat", "cats,", "sat", "on", "mat.", "dog's", "ran", "ran", "ß日本", "  "]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=8)


def sacrebleu(utility: Utility, rows: list[str]) -> list[list[float]]:
    scorer = SACREBLEU[utility]
    return [[scorer.sentence_score(own, [other]).score for other in rows] for own in rows]


def spelled(tokens: object) -> str:
    return " ".join("xabycdef"[token] * 2 for token in tokens)  # type: ignore[attr-defined]


@pytest.mark.parametrize("utility", SACREBLEU)
@given(rows=texts)
def test_utilities_are_sacrebleus(utility: Utility, rows: list[str]) -> None:
    np.testing.assert_allclose(pairwise_utilities(rows, utility), sacrebleu(utility, rows), atol=1e-9)


def test_repeated_ngrams_match_as_often_as_both_have_them() -> None:
    counts, matched = ngram_matches([np.array(list(row)) for row in ("aaab", "aab", "ba")], 2)
    assert counts.tolist() == [[4, 3], [3, 2], [2, 1]]
    assert matched[:, :, 0].tolist() == [[4, 3, 2], [3, 3, 2], [2, 2, 2]]
    assert matched[:, :, 1].tolist() == [[3, 2, 0], [2, 2, 0], [0, 0, 1]]


def test_features_in_pieces_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["a cat sat on a mat", "the cat sat", "on the mat a cat sat", ""]
    whole = pairwise_utilities(rows, "chrf")
    monkeypatch.setattr("creamtea_workers.search.candidates._CELLS", 12)
    monkeypatch.setattr("creamtea_workers.metrics.sacrebleu_metrics._CELLS", 12)
    np.testing.assert_array_equal(pairwise_utilities(rows, "chrf"), whole)


def test_expected_utility_counts_every_sample() -> None:
    rows, counts = ["a cat", "a dog", "the cat"], [1, 3, 2]
    wanted = np.array(sacrebleu("chrf", rows)) @ np.array(counts) / 6
    np.testing.assert_allclose(expected_utilities(rows, counts, "chrf"), wanted)


@pytest.mark.parametrize("utility", SACREBLEU)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_choice_is_that_of_brute_force(utility: Utility, objective: str) -> None:
    model, sampler, numbers = TableModel(8, seed=1, spread=1.0), Sampler(seed=3), list(range(10))
    search = MbrSearch(sampler, 12, utility, spelled)
    batch = batch_of(model, objective, numbers, [6] * 10)
    for samples, chosen in zip(sampler.draw(batch, 12), search(batch), strict=True):
        rows = sacrebleu(utility, [spelled(sample.tokens) for sample in samples])
        expected = {sample: sum(row) / 12 for sample, row in zip(map(id, samples), rows, strict=True)}
        assert any(chosen == sample for sample in samples)
        best = max(expected.values())
        assert any(chosen == one and expected[id(one)] == pytest.approx(best) for one in samples)


def test_of_equal_utilities_the_higher_score_wins_then_the_first() -> None:
    search = MbrSearch(Sampler(), 2, "chrf", spelled)
    low, high = Hypothesis([1], -2.0, True), Hypothesis([2], -1.0, True)
    assert search.choose([low, high]) == high  # nothing in common: both have half
    first, second = Hypothesis([1], -1.0, True), Hypothesis([2], -1.0, True)
    assert search.choose([first, second]) == first
    same = [Hypothesis([1, 4], -3.0, True), Hypothesis([1, 4], -1.0, False), Hypothesis([5], -0.5, True)]
    assert search.choose(same) == same[1]  # one text drawn twice beats a likelier one


def test_without_a_way_to_text_mbr_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="detokenize"):
        build_search(Mbr(kind="mbr"))


# ---------------------------------------------------------------- by a metric


SOURCES = ["the cat sat on the mat", "", "a dog", "it rains", "she took the cake in the park"]
SAMPLES = 6
# scores by how many words a text has, and writes down that it ran
SCORER = """
import json, sys
from pathlib import Path
with Path(__file__).with_name("runs").open("a") as runs:
    runs.write("x")
for line in sys.stdin:
    row = json.loads(line)
    print(json.dumps({"index": row["index"], "score": len(row["hypothesis"].split())}))
"""


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return step_files.input_folders(tmp_path, SOURCES)


def reranked(
    folders: Folders, out: Path, metric: dict[str, Any], **params: Any
) -> tuple[list[dict[str, Any]], MetricRow]:
    """The rows of the outputs, and how many of them are not the likeliest candidate."""
    search = {"kind": "rerank", "candidates": SAMPLES, "metric": metric, **params.pop("search", {})}
    languages = {"source": "en", "target": "de"}
    result = step_files.decoding(folders, out, search=search, languages=languages, **params).run()
    return read_rows(out / "hypotheses.jsonl"), step_files.metric(result, "reranked")


def candidates(folders: Folders, search: str) -> list[list[tuple[str, float]]]:
    """The texts and scores of each source's candidates."""
    subwords = step_files.subwords_of(folders)
    trained = TrainedModel.load(folders["train"][0], "fp32", torch.device("cpu"))
    found = []
    for source in SOURCES:
        if not source:
            found.append([("", 0.0)])
            continue
        finder = Translator(trained.model, trained.objective, FullSelector(), SampleSearch(Sampler()))
        batch, _ = finder._batch([subwords.encode(source)])
        with torch.inference_mode():
            (own,) = (
                Sampler(seed=1).draw(batch, SAMPLES)
                if search == "samples"
                else BeamSearch(SAMPLES, 1.0).best(batch, SAMPLES)
            )
        found.append([(subwords.decode(one.tokens), one.score) for one in own])
    return found


def test_with_chrf_it_is_mbr(folders: Folders, tmp_path: Path) -> None:
    mbr = step_files.decoded(folders, search={"kind": "mbr", "samples": SAMPLES})
    rows, count = reranked(folders, tmp_path / "rerank", {"kind": "chrf"})
    assert [row["text"] for row in rows] == [row["text"] for row in mbr]
    assert [row["score"] for row in rows] == pytest.approx([row["score"] for row in mbr], abs=1e-4)
    best = [max(own, key=lambda one: one[1])[0] for own in candidates(folders, "samples")]
    assert count.value == sum(a != row["text"] for a, row in zip(best, rows, strict=True)) / len(SOURCES)
    assert count.value > 0
    assert "nc:6" in count.detail["signature"]


@pytest.mark.parametrize("found_by", ["samples", "beam"])
def test_an_error_rate_chooses_the_lowest(folders: Folders, tmp_path: Path, found_by: str) -> None:
    rows, _ = reranked(folders, tmp_path / "out", {"kind": "ter"}, search={"found_by": found_by})
    ter = TER()
    for row, own in zip(rows, candidates(folders, found_by), strict=True):
        counts = Counter(text for text, _ in own)
        scores = {text: max(score for other, score in own if other == text) for text in counts}
        means = {
            text: sum(count * ter.sentence_score(text, [other]).score for other, count in counts.items())
            for text in counts
        }
        best = min(round(mean, 6) for mean in means.values())
        tied = [text for text, mean in means.items() if round(mean, 6) == best]
        assert row["text"] == max(tied, key=lambda text: scores[text])


def test_a_scorer_without_references_scores_each_candidate_in_one_run(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "score.py").write_text(SCORER)
    entry = {"command": [sys.executable, str(tmp_path / "score.py")], "version": "1", "reference_free": True}
    (tmp_path / "scorers.yaml").write_text(yaml.safe_dump({"scorers": {"words": entry}}))
    monkeypatch.setenv("CREAMTEA_SCORERS", str(tmp_path / "scorers.yaml"))
    metric = {"kind": "command", "scorer": "words", "reference_free": True}
    pins = find_scorer("words", with_model=False).pins().model_dump()
    rows, count = reranked(folders, tmp_path / "out", metric, scorer=pins)
    for row, own in zip(rows, candidates(folders, "samples"), strict=True):
        assert len(row["text"].split()) == max(len(text.split()) for text, _ in own)
        assert row["text"] in {text for text, _ in own}
    assert (tmp_path / "runs").read_text() == "x"
    assert count.detail["signature"].startswith("scorer:words|version:1")


def test_candidates_come_back_from_a_checkpoint() -> None:
    own = [Hypothesis([1, 2], -1.0, True), Hypothesis([3], -2.0, False)]
    found = Candidates([1, 2], -1.0, True, own)
    assert restored(asdict(found)) == found


def test_a_single_sentence_cannot_be_reranked(folders: Folders) -> None:
    trained = TrainedModel.load(folders["train"][0], "fp32", torch.device("cpu"))
    search = Rerank.model_validate({"kind": "rerank", "metric": {"kind": "chrf"}})
    with pytest.raises(StepError, match="reranking by a metric chooses when all"):
        trained.translator(FullVocabulary(), search)


@pytest.mark.parametrize(
    ("search", "reason"),
    [
        ({"kind": "beam", "coverage_penalty": 0.1}, "errors can be traced only if a system ranks outputs"),
        ({"kind": "beam", "length_penalty": "gnmt"}, "errors can be traced only if a system ranks outputs"),
        ({"kind": "rerank", "metric": {"kind": "chrf"}}, "give the system another search"),
    ],
)
def test_errors_of_such_systems_are_not_traced(folders: Folders, search: dict[str, Any], reason: str) -> None:
    with pytest.raises(StepError, match=reason):
        Investigation.of_step(step_files.decoding(folders, search=search), beam=4, states=10)
