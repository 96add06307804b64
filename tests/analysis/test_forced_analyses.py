"""Density and calibration: hand-computed cases, and whole steps against a sentence at a time."""

import math
from typing import Any

import numpy as np
import pytest
import step_files
import torch
from step_context import Context
from step_files import Folders

from creamtea.contract.step import MetricRow, StepKind, StepResult
from creamtea.methods.analyses.probabilities import Calibration, SupportDensity
from creamtea_workers.analysis.rows import SegmentStatistics, ratio_row
from creamtea_workers.models.interface import BOS, EOS, output_logits
from creamtea_workers.models.model import load_model
from creamtea_workers.steps import probabilities

PAIRS = [
    ("the cat sat", "a dog ran in the park"),
    ("", "it rains"),
    ("she took the cake", ""),
    ("a dog", "a"),
]
OBJECTIVES: dict[str, dict[str, Any]] = {
    "softmax": {"kind": "softmax"},
    "scones": {"kind": "scones", "alpha": 0.5},
    "entmax": {"kind": "entmax"},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("inputs")
    folders = step_files.input_folders(
        root, [{"source": source, "reference": reference} for source, reference in PAIRS]
    )
    size = step_files.subwords_of(folders).size
    for name, objective in OBJECTIVES.items():
        folders[name] = [step_files.model_folder(root, size, name, objective=objective)]
    return folders


def run(kind: StepKind[Any], folders: Folders, objective: str, **params: Any) -> StepResult:
    return Context(kind, params, {**folders, "train": folders[objective]}).run()


def slow_log_scores(folders: Folders, name: str) -> list[tuple[torch.Tensor, list[int]]]:
    """Of each pair the log-scores (T, V) and the targets, a sentence and a prefix at a time."""
    subwords = step_files.subwords_of(folders)
    model, objective, _ = load_model(folders[name][0])
    found = []
    with torch.inference_mode():
        for source, reference in PAIRS:
            targets = [*subwords.encode(reference), EOS]
            memory = model.encode(torch.tensor([[*subwords.encode(source), EOS]]))
            prefixes = (torch.tensor([[BOS, *targets[:t]]]) for t in range(len(targets)))
            logits = [output_logits(model, model.decode(memory, prefix)[0, -1]) for prefix in prefixes]
            found.append((objective.log_scores(torch.stack(logits)), targets))
    return found


@pytest.fixture(params=[None, (30, 100)], ids=["whole", "pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:  # several batches, several parts of each
        monkeypatch.setattr(probabilities, "_POSITIONS", request.param[0])
        monkeypatch.setattr(probabilities, "_CELLS", request.param[1])


@pytest.mark.slow
@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_density_is_that_of_every_position(folders: Folders, objective: str) -> None:
    result = run(SupportDensity.step, folders, objective)
    slow = [(scores > -math.inf).sum(1).tolist() for scores, _ in slow_log_scores(folders, objective)]
    sizes = [size for one in slow for size in one]
    rows = {row.name: row for row in result.metrics}
    vocabulary = step_files.vocabulary_size(folders["subwords"][0])
    assert rows["support_size"].value == pytest.approx(np.mean(sizes))
    assert rows["density"].value == pytest.approx(np.mean(sizes) / vocabulary)
    assert rows["support_size_median"].value == sorted(sizes)[(len(sizes) - 1) // 2]
    assert rows["density"].detail["positions"] == len(sizes)
    median = rows.pop("support_size_median")
    assert (median.low, median.note) == (None, "no interval of the median of fewer than 5 sentences")
    assert all(row.low <= row.value <= row.high for row in rows.values())  # type: ignore[operator]
    assert sum(point.y for point in result.points) == pytest.approx(1.0)
    if objective == "entmax":
        assert min(sizes) < vocabulary
    else:
        assert rows["density"].value == 1.0


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_calibration_is_that_of_every_position(folders: Folders, objective: str) -> None:
    result = run(Calibration.step, folders, objective, bins=4)
    confidence, right = [], []
    for scores, targets in slow_log_scores(folders, objective):
        best = scores.max(dim=1)
        confidence += best.values.double().exp().tolist()
        right += [float(a == b) for a, b in zip(best.indices.tolist(), targets, strict=True)]
    rows = {row.name: row for row in result.metrics}
    assert rows["confidence"].value == pytest.approx(np.mean(confidence), abs=1e-6)
    assert rows["accuracy"].value == pytest.approx(np.mean(right))
    ece = 0.0
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = [n for n, c in enumerate(confidence) if low <= c < low + 0.25 + (low == 0.75)]
        ece += abs(sum(right[n] - confidence[n] for n in inside)) / len(right)
    assert rows["ece"].value == pytest.approx(ece, abs=1e-6)
    assert [("σ" in row.note) for row in result.metrics] == (
        [True, False, True] if objective == "scones" else [False] * 3
    )
    assert sum(int(point.label) for point in result.points) == len(right)


def test_ece_by_hand() -> None:
    one = np.array([[0.05, 0.0], [0.1, 1.0], [0.95, 1.0]])  # bins 0, 1, 9 of ten
    two = np.array([[0.98, 0.0], [1.0, 1.0]])  # both in the last
    sums = np.stack([probabilities.bin_sums(one, 10), probabilities.bin_sums(two, 10)])
    # |B|/N |acc - conf|: 1/5 · 0.05 + 1/5 · 0.9 + 3/5 · |2/3 - 2.93/3|
    expected = 0.2 * 0.05 + 0.2 * 0.9 + 0.2 * 0.93
    rows = {row.name: row for row in probabilities.calibration_rows(sums, 10, "", SegmentStatistics())}
    assert rows["ece"].value == pytest.approx(expected)
    assert [row.detail.get("interval") for row in rows.values()] == ["basic bootstrap", None, None]
    assert rows["accuracy"].value == pytest.approx(3 / 5)
    assert rows["confidence"].value == pytest.approx(3.08 / 5)
    points = [(point.x, point.y, point.label) for point in probabilities.accuracy_points(sums.sum(axis=0))]
    assert points == [
        (pytest.approx(0.05), 0.0, "1"),
        (pytest.approx(0.1), 1.0, "1"),
        (pytest.approx(2.93 / 3), pytest.approx(2 / 3), "3"),
    ]


def test_the_interval_of_a_small_ece_covers_it_where_percentiles_lie_above_it() -> None:
    """A true ECE of 0.005, which resamples put at about 0.019. Of 300 sentences with 15 positions."""
    rng, truth, runs, covered = np.random.default_rng(1), 0.005, 8, 0
    for _ in range(runs):
        confidence = rng.beta(3, 1, (300, 15))
        right = rng.random((300, 15)) < confidence - truth
        sentences = np.stack([confidence, right], axis=2)
        sums = np.stack([probabilities.bin_sums(sentence, 10) for sentence in sentences])
        percentile = ratio_row("ece", sums, probabilities.expected_calibration_error)
        basic = probabilities.reflected(percentile)
        assert percentile.low > truth
        covered += basic.low <= truth <= basic.high
        assert ("above its own interval" in basic.note) == (basic.value > basic.high)
    assert covered >= 6


def test_the_reflected_interval_is_never_below_zero() -> None:
    row = probabilities.reflected(MetricRow("ece", 0.01, 0.008, 0.03, note="of the largest σ"))
    assert (row.low, row.high, row.note) == (0.0, pytest.approx(0.012), "of the largest σ")
    above = probabilities.reflected(MetricRow("ece", 0.01, 0.012, 0.03))
    assert (above.high, above.note) == (pytest.approx(0.008), probabilities.ABOVE)


def test_one_sentence_has_no_interval_of_its_ece() -> None:
    sums = probabilities.bin_sums(np.array([[0.4, 0.0], [0.9, 1.0]]), 10)[None]
    ece = probabilities.calibration_rows(sums, 10, "", SegmentStatistics())[0]
    assert (ece.low, ece.high) == (None, None)


def test_confidence_is_at_most_one_and_of_equal_ones_the_lowest_id_is_meant() -> None:
    log_scores = torch.tensor([[-5.0, 1e-7, -5.0], [-1.0, -1.0, -2.0]])
    found = probabilities.confidence_and_accuracy(log_scores, torch.tensor([1, 1]))
    assert found.tolist() == [[1.0, 1.0], [pytest.approx(math.exp(-1)), 0.0]]


def test_density_by_hand() -> None:
    log_scores = torch.tensor([[0.0, -math.inf, -math.inf], [-0.5, -200.0, -math.inf]])
    assert probabilities.support_sizes(log_scores, torch.zeros(2)).tolist() == [[1], [2]]
    sizes = [np.array([1.0, 2.0]), np.array([6.0])]
    rows = {row.name: row for row in probabilities.support_rows(sizes, 10, SegmentStatistics())}
    assert rows["support_size"].value == 3.0
    assert rows["density"].value == pytest.approx(0.3)
    assert rows["support_size_median"].value == 2.0


def test_the_histogram_of_supports_by_hand() -> None:
    points = probabilities.support_histogram(np.array([1, 1, 2, 3, 4, 5, 9, 10.0]), 10)
    shown = [(point.label, point.x, point.y * 8) for point in points]
    assert shown == [("1", 1, 2), ("2", 2, 1), ("3–4", 4, 2), ("5–8", 8, 1), ("9–10", 10, 2)]


def test_batches_hold_every_sentence_once_and_few_positions() -> None:
    lengths = [5, 9000, 1, 2000, 1999, 3, 4]
    found = probabilities.batches(lengths)
    assert sorted(n for batch in found for n in batch) == list(range(7))
    assert found[0] == [1]  # longer than a batch may be: alone
    assert all(len(batch) * max(lengths[n] for n in batch) <= 4096 for batch in found[1:])
