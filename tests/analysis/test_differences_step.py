"""Rows of an analysis compared in pairs: against slow resampling, sacreBLEU's test, and whole steps."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import step_files
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from step_context import Context
from step_files import Folders

from creamtea.contract.step import MetricRow, StepResult
from creamtea.errors import StepError
from creamtea.methods.analyses.probabilities import Calibration, SupportDensity
from creamtea.methods.analyses.search import BeamSizes, DepthLimited, EmptyString, SearchErrors
from creamtea.methods.analysis import DIFFERENCES, STATISTICS_FILE
from creamtea.stats.resampling import paired_bootstrap
from creamtea_workers.analysis.rows import Measured, Score, SegmentStatistics, mean_row
from creamtea_workers.steps.scores import SCORES, TOO_FEW

SOURCES = ["the cat sat on the mat", "a dog", "", "she took the cake in the park", "cats ran", "it rains"]
REFERENCES = ["a dog ran in the park", "the cat sat on the mat", "", "it rains", "cats ran", "she took it"]
LANGUAGES = {"source": "en", "target": "de"}
SEED = 12345


def saved(folder: Path, fill: Callable[[SegmentStatistics], None]) -> Path:
    folder.mkdir()
    kept = SegmentStatistics()
    fill(kept)
    kept.save(folder)
    return folder


def compare(
    system: Sequence[Path], baseline: Sequence[Path] = (), base: str | None = None, samples: int = 200
) -> dict[str, MetricRow]:
    params = {"samples": samples, "seed": SEED} | ({} if base is None else {"base": base})
    result = Context(DIFFERENCES, params, {"system": system, "baseline": baseline}).run()
    return {row.subject: row for row in result.metrics}


# ---------------------------------------------------------------- what is kept


def test_statistics_come_back_exactly(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    arrays = {
        Measured("bleu", "4"): rng.integers(0, 70_000, (9, 10)).astype(float),
        Measured("length_ratio", "exact"): rng.integers(0, 200, (9, 2)).astype(float),
        Measured("log_prob_gap", ""): rng.normal(-9, 4, (9, 2)),
        Measured("empty", "4"): np.column_stack([np.zeros(9), np.ones(9)]),
    }

    def fill(kept: SegmentStatistics) -> None:
        for (measure, setting), values in arrays.items():
            kept.add(measure, values, setting, "bleu" if measure == "bleu" else "ratio")

    loaded = SegmentStatistics.load(saved(tmp_path / "own", fill))
    assert list(loaded) == list(arrays)
    assert all(np.array_equal(loaded[measured].values, values) for measured, values in arrays.items())
    assert [statistics.score for statistics in loaded.values()] == ["bleu", "ratio", "ratio", "ratio"]


def test_a_mean_is_over_its_finite_values() -> None:
    kept = SegmentStatistics()
    kept.mean("gap", [1.0, -np.inf, 4.0, np.nan, 2.5], deviation=True)
    finite = [1.0, 4.0, 2.5]
    mean, spread = kept[Measured("gap")], kept[Measured("gap_deviation")]
    assert SCORES[mean.score](mean.values.sum(axis=0)) == pytest.approx(np.mean(finite))
    assert SCORES[spread.score](spread.values.sum(axis=0)) == pytest.approx(np.std(finite, ddof=1))


# ---------------------------------------------------------------- against slow oracles


def noisy(rng: np.random.Generator, rate: float) -> list[str]:
    words = ["the", "a", "cat", "dog", "sat", "ran", "on", "in", "mat", "park", "it", "rains"]
    return [
        " ".join(words[rng.integers(12)] if rng.random() < rate else word for word in line.split())
        for line in (REFERENCES[:2] + REFERENCES[3:]) * 12
    ]


def bleu_statistics(outputs: Sequence[str], references: Sequence[str]) -> np.ndarray:
    extracted = BLEU()._extract_corpus_statistics(list(outputs), [list(references)])
    return np.array(extracted, dtype=float)


@pytest.mark.slow
def test_bleu_is_compared_as_by_sacrebleu_and_as_by_scoring_each_resample(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    references = (REFERENCES[:2] + REFERENCES[3:]) * 12
    texts = {name: noisy(rng, rate) for name, rate in (("one", 0.3), ("two", 0.34), ("base", 0.4))}

    def keep(name: str) -> Path:
        statistics = bleu_statistics(texts[name], references)

        def fill(kept: SegmentStatistics) -> None:
            kept.add("bleu", statistics, "64", "bleu")
            kept.add("length_ratio", statistics[:, :2], "64")

        return saved(tmp_path / name, fill)

    one, two, base = map(keep, texts)
    row = compare([one], [base], samples=1000)["bleu/64"]
    named = [("base", texts["base"]), ("one", texts["one"])]
    test = PairedTest(named, {"BLEU": BLEU()}, [references], test_type="bs", n_samples=1000)
    (result,) = [values for key, values in test()[1].items() if key != "System"]
    assert row.detail["p_value"] == pytest.approx(result[1].p_value)
    assert row.value == pytest.approx(result[1].score - result[0].score)

    row = compare([one, two], [base], samples=60)["bleu/64"]
    draws = np.random.default_rng(SEED).choice(len(references), (60, len(references)))
    slow = []
    for drawn in draws:  # by the texts themselves
        own = [references[n] for n in drawn]
        scores = {
            name: BLEU().corpus_score([lines[n] for n in drawn], [own]).score for name, lines in texts.items()
        }
        slow.append((scores["one"] + scores["two"]) / 2 - scores["base"])
    ordered = sorted(slow)
    assert (row.low, row.high) == pytest.approx((ordered[1], ordered[-2]))
    further = np.abs(np.array(slow) - np.mean(slow)) >= abs(row.value or 0)
    assert row.detail["p_two_sided"] == pytest.approx((further.sum() + 1) / 61)
    assert row.detail["scores"]["system"] == pytest.approx(
        [BLEU().corpus_score(texts[name], [references]).score for name in ("one", "two")]
    )


def test_deviations_and_shares_of_some_sentences_are_compared_as_by_hand(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    n = 40
    scores = [rng.normal(-9, spread, n) for spread in (2.0, 5.0)]
    errors, proved = ([rng.random(n) < share for share in shares] for shares in ((0.3, 0.5), (0.9, 0.8)))

    def keep(place: int) -> Path:
        def fill(kept: SegmentStatistics) -> None:
            kept.mean("log_prob_best", scores[place], deviation=True)
            counted = np.column_stack([errors[place] & proved[place], proved[place]])
            kept.add("search_errors", counted, "4")

        return saved(tmp_path / str(place), fill)

    found = compare([keep(1)], [keep(0)])
    draws = np.random.default_rng(SEED).choice(n, (200, n))

    def spread(drawn: Any) -> float:
        return float(scores[1][drawn].std(ddof=1) - scores[0][drawn].std(ddof=1))

    def missed(drawn: Any) -> float:
        first, second = (errors[place][drawn][proved[place][drawn]].mean() for place in (0, 1))
        return float(second - first)

    for subject, slow in (("log_prob_best_deviation", spread), ("search_errors/4", missed)):
        row, ordered = found[subject], sorted(map(slow, draws))
        assert row.value == pytest.approx(slow(np.arange(n)))
        assert (row.low, row.high) == pytest.approx((ordered[5], ordered[194]))


def test_settings_of_one_system_are_compared_with_one_of_them(tmp_path: Path) -> None:
    def fill(kept: SegmentStatistics) -> None:
        for setting, share in (("1", 0), ("4", 1), ("16", 3)):
            kept.share("empty", [number < share for number in range(5)], setting)
        kept.share("unproved", [True] * 5)

    rows = compare([saved(tmp_path / "own", fill)], base="4")
    assert {subject: row.value for subject, row in rows.items()} == {
        "empty/1": pytest.approx(-0.2),
        "empty/16": pytest.approx(0.4),
    }


def test_what_no_sentence_has_is_not_compared_and_says_why(tmp_path: Path) -> None:
    def keep(name: str, gaps: list[float]) -> Path:
        return saved(tmp_path / name, lambda kept: kept.mean("log_prob_gap", gaps))

    own, never = keep("own", [1.0, 2.0]), keep("never", [np.inf, np.inf])
    row = compare([own], [never])["log_prob_gap"]
    assert (row.value, row.note) == (None, TOO_FEW)
    with pytest.raises(StepError, match="different numbers of segments"):
        compare([own], [keep("longer", [1.0, 2.0, 3.0])])


def test_resamples_without_the_measure_do_not_count(tmp_path: Path) -> None:
    """Entmax gives hardly any sentence's empty string a probability: 8 of 200 here."""
    rng = np.random.default_rng(5)
    others, few = rng.normal(-12, 3, 200), np.full(200, -np.inf)
    few[:8] = rng.normal(-9, 2, 8)

    def keep(name: str, values: Any) -> Path:
        return saved(tmp_path / name, lambda kept: kept.mean("log_prob_empty", values, deviation=True))

    base, own = keep("base", others), keep("own", few)
    rows = compare([own], [base], samples=1000)
    differences: dict[str, list[float]] = {"log_prob_empty": [], "log_prob_empty_deviation": []}
    for drawn in np.random.default_rng(SEED).choice(200, (1000, 200)):
        finite = few[drawn][np.isfinite(few[drawn])]
        if len(finite):
            differences["log_prob_empty"].append(finite.mean() - others[drawn].mean())
        if len(finite) > 1:
            spread = finite.std(ddof=1) - others[drawn].std(ddof=1)
            differences["log_prob_empty_deviation"].append(spread)
    assert len(differences["log_prob_empty_deviation"]) < 1000
    for subject, slow in differences.items():
        row, ordered, cut = rows[subject], np.sort(slow), len(slow) // 40
        assert (row.low, row.high) == pytest.approx((ordered[cut], ordered[len(slow) - cut - 1]))
        further = np.abs(slow - np.mean(slow)) >= abs(row.value or 0)
        assert row.detail["p_two_sided"] == pytest.approx((further.sum() + 1) / (len(slow) + 1))
    few[4:] = -np.inf
    assert {row.note for row in compare([keep("four", few)], [base]).values()} == {TOO_FEW}


def test_a_single_sentence_has_a_difference_and_no_deviation(tmp_path: Path) -> None:
    folders = [
        saved(tmp_path / name, lambda kept, v=value: kept.mean("gap", [v], deviation=True))
        for name, value in (("own", 3.0), ("base", 1.0))
    ]
    rows = compare(folders[:1], folders[1:])
    assert (rows["gap"].value, rows["gap"].low) == (2.0, None)
    assert (rows["gap_deviation"].value, rows["gap_deviation"].note) == (None, TOO_FEW)


def test_a_mean_of_few_of_many_has_no_interval() -> None:
    values = [-9.0, -8.0, -13.0, -2.0]
    few, all_ = mean_row("log_prob_empty", values, 200), mean_row("log_prob_empty", values, 4)
    assert (few.value, few.low, few.high) == (-8.0, None, None)
    assert "4 of 200" in few.note
    assert (all_.low, all_.high) != (None, None)


Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], tuple[Array, Array]]


def search_errors_of_two(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Of two equal systems: hard sentences are proved less often, and missed more often, by either."""
    hard = rng.random(n)

    def one() -> Array:
        proved = rng.random(n) < 0.9 - 0.2 * hard
        return np.column_stack([(rng.random(n) < 0.1 + 0.3 * hard) & proved, proved]).astype(float)

    return one(), one()


def lengths_of_two(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    references = rng.integers(5, 20, n).astype(float)
    first, second = (np.column_stack([references + rng.normal(0, 2, n), references]) for _ in range(2))
    return first, second


def scores_of_two(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Log-probabilities, skewed, which two systems have in common but for noise."""
    common = rng.gamma(2, 2, n)
    first, second = (-(common + rng.normal(0, 1.5, n)) for _ in range(2))
    return np.column_stack([first**2, first, np.ones(n)]), np.column_stack([second**2, second, np.ones(n)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "score"),
    [(search_errors_of_two, "ratio"), (lengths_of_two, "ratio"), (scores_of_two, "deviation")],
)
def test_equal_systems_are_told_apart_in_five_per_cent(draw: Draw, score: Score) -> None:
    rng, trials = np.random.default_rng(11), 300
    alarms = covered = 0
    for _ in range(trials):
        baseline, system = draw(rng, 150)
        result = paired_bootstrap([baseline], [system], SCORES[score], 400)
        alarms += result.p_two_sided < 0.05
        covered += result.low <= 0 <= result.high
    assert scipy.stats.binomtest(alarms, trials, 0.05).pvalue > 0.01
    assert scipy.stats.binomtest(covered, trials, 0.95).pvalue > 0.01


# ---------------------------------------------------------------- whole steps


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    pairs = zip(SOURCES, REFERENCES, strict=True)
    segments = [{"source": source, "reference": reference} for source, reference in pairs]
    folders = step_files.input_folders(tmp_path, segments)
    size = step_files.subwords_of(folders).size
    folders["models"] = [
        step_files.model_folder(tmp_path, size, f"model{seed}", seed, objective={"kind": objective})
        for seed, objective in enumerate(("softmax", "softmax", "entmax", "entmax"))
    ]
    return folders


OUTPUTS = {"metric": {"kind": "bleu"}, "languages": LANGUAGES}
PARAMS: dict[str, dict[str, Any]] = {
    "beam_sizes": {"widths": [1, 4], **OUTPUTS},
    "search_errors": {"widths": [1, 4], **OUTPUTS},
    "empty_string": {"precision": "fp32"},
    "depth_limited": {"lengths": [1, 2], "width": 2, "max_states": 200},
    "support_density": {},
    "calibration": {"bins": 5},
}
CLASSES = (BeamSizes, SearchErrors, EmptyString, DepthLimited, SupportDensity, Calibration)
ANALYSED = {analysis.step.name: analysis for analysis in CLASSES}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ANALYSED)
def test_the_differences_are_those_of_the_values_that_an_analysis_reports(
    kind: str, folders: Folders, tmp_path: Path
) -> None:
    step, params = ANALYSED[kind].step, PARAMS[kind]
    results: list[StepResult] = []
    outputs: list[Path] = []
    for number, model in enumerate(folders["models"]):
        given = {**folders, "train": [model]}
        searches = [beam(width) for width in params.get("widths", [2] if kind == "empty_string" else [])]
        given["decode"] = [tmp_path / f"{number}-{place}" for place in range(len(searches))]
        if kind == "search_errors":
            searches.append({"kind": "exact", "max_states": 300})
            given["exact"] = [tmp_path / f"{number}-{len(searches) - 1}"]
        for place, search in enumerate(searches):
            step_files.decoded(given, tmp_path / f"{number}-{place}", search=search)
        outputs.append(tmp_path / f"analysed{number}")
        results.append(Context(step, params, given, outputs[-1]).run())
        assert (outputs[-1] / STATISTICS_FILE).exists()

    def values(measure: str, setting: str) -> list[float | None]:
        name = measure.removesuffix("_deviation")
        rows = [step_files.metric(result, name, setting) for result in results]
        return [row.value if name == measure else row.detail.get("deviation") for row in rows]

    rows = compare(outputs[2:], outputs[:2])
    compared = 0
    for subject, row in rows.items():
        measure, _, setting = subject.partition("/")
        if measure == "empty_higher":  # the report counts it from the detail of another row
            details = [result.metrics[0].detail for result in results]
            own = [(detail["count"] - detail["output_empty"]) / detail["of"] for detail in details]
        else:
            own = values(measure, setting)
        if None in own:
            assert row.note == TOO_FEW
            continue
        first, second, third, fourth = own
        assert row.value == pytest.approx((third + fourth - first - second) / 2), subject
        compared += 1
    assert compared >= 2
    assert {subject.partition("/")[0] for subject in rows} == ANALYSED[kind].paired


def beam(width: int) -> dict[str, Any]:
    return {"kind": "beam", "width": width}
