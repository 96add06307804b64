"""Systems on pages that show some of them, against the full model with an effect for each page."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from creamtea.human.making.design import balanced_blocks
from creamtea.stats import incomplete
from creamtea.stats.estimate import Array
from creamtea.stats.incomplete import SystemEstimates, estimate_systems

SYSTEMS = 5


def campaign(
    seed: int = 1,
    pages: int = 40,
    systems: int = SYSTEMS,
    size: int = 3,
    effects: Any = None,
    raters: int = 4,
    views: float = 0.0,
) -> dict[str, Array]:
    """Columns of scores: documents of two to four pages, each by one rater. Documents like some systems, and
    so do raters (standard deviation `views`)."""
    rng = np.random.default_rng(seed)
    blocks = np.array(balanced_blocks(pages, systems, size, str(seed)))
    document = np.repeat(np.arange(pages), rng.integers(2, 5, pages))[:pages]
    page = np.repeat(np.arange(pages), size)
    system = blocks.ravel()
    likes = rng.normal(0, 3, (pages, systems))
    level = rng.normal(70, 15, pages)
    value = level[page] + likes[document[page], system] + rng.normal(0, 8, len(page))
    if effects is not None:
        value += np.asarray(effects)[system]
    value += rng.normal(0, views, (raters, systems))[document[page] % raters, system]
    return {
        "page": page,
        "system": system,
        "value": value,
        "cluster": document[page],
        "rater": document[page] % raters,
    }


def full_model(columns: dict[str, Array], weight: Array | None = None) -> tuple[Array, Array, Array]:
    """X (scores, pages + systems) with dummies, coefficients and residuals, by least squares."""
    pages, systems = columns["page"].max() + 1, columns["system"].max() + 1
    x = np.concatenate([np.eye(pages)[columns["page"]], np.eye(systems)[columns["system"]]], axis=1)
    root = np.ones(len(x)) if weight is None else np.sqrt(weight)
    coefficients = np.linalg.lstsq(root[:, None] * x, root * columns["value"], rcond=None)[0]
    return x, coefficients, columns["value"] - x @ coefficients


def test_means_are_those_of_least_squares_with_an_effect_for_each_page() -> None:
    columns = campaign()
    weight = np.random.default_rng(2).uniform(0.5, 2, 40)[columns["page"]]
    for given in (None, weight):
        _, coefficients, _ = full_model(columns, given)
        expected = coefficients[-SYSTEMS:]
        found = estimate_systems(**columns, systems=SYSTEMS, weight=given)
        assert found.difference == pytest.approx(expected[:, None] - expected[None, :], abs=1e-8)
    plain = estimate_systems(**columns, systems=SYSTEMS)
    # the level: scores less what systems and pages differ by have the mean of all scores
    assert plain.mean[columns["system"]].mean() == pytest.approx(columns["value"].mean(), abs=2)
    assert (plain.pages, plain.clusters, plain.raters) == (40, len(set(columns["cluster"])), 4)
    assert plain.scores.tolist() == np.bincount(columns["system"]).tolist()


def test_errors_are_those_of_the_full_model_with_leverage_adjusted_clusters() -> None:
    """CR2 by its definition: X (X'X)⁻ X_c' (I − H_cc)^(−1/2) e_c."""
    columns = campaign()
    x, _, residual = full_model(columns)
    inverse = np.linalg.pinv(x.T @ x)
    meat = np.zeros_like(inverse)
    for document in np.unique(columns["cluster"]):
        own = columns["cluster"] == document
        values, vectors = np.linalg.eigh(np.eye(own.sum()) - x[own] @ inverse @ x[own].T)
        # of the pages' own effects nothing is left: leverage 1
        root = np.where(values > 1e-8, 1 / np.sqrt(np.maximum(values, 1e-8)), 0.0)
        score = x[own].T @ (vectors * root) @ vectors.T @ residual[own]
        meat += np.outer(score, score)
    covariance = inverse @ meat @ inverse
    found = estimate_systems(**columns | {"rater": None}, systems=SYSTEMS)
    for one, other in combinations(range(SYSTEMS), 2):
        contrast = np.zeros(len(covariance))
        contrast[[-SYSTEMS + one, -SYSTEMS + other]] = 1, -1
        assert found.error[one, other] == pytest.approx(np.sqrt(contrast @ covariance @ contrast), rel=1e-6)


@pytest.mark.parametrize("crossed", [False, True])
def test_views_of_raters_add_what_one_variance_for_all_pairs_explains(
    crossed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a variance of 1 adds is counted view by view; the variance is least squares over all pairs."""
    monkeypatch.setattr(incomplete, "DRAWS", 20)  # for intervals, of which nothing is asked
    columns = campaign(pages=24)
    if crossed:
        columns["rater"] = columns["page"] % 4
    views = np.random.default_rng(2).normal(0, 20, (4, SYSTEMS))
    columns["value"] += views[columns["rater"], columns["system"]]

    def squared_errors(labels: Array) -> Array:
        return estimate_systems(**columns | {"cluster": labels, "rater": None}, systems=SYSTEMS).error ** 2

    def of_one(labels: Array) -> Array:
        found = np.zeros((SYSTEMS, SYSTEMS))
        for label in np.unique(labels):
            for system in range(SYSTEMS):
                view = (labels == label) & (columns["system"] == system)
                found += estimate_systems(columns["page"], columns["system"], view, SYSTEMS).difference ** 2
        return found

    each = columns["cluster"] * 4 + columns["rater"]
    x = of_one(columns["rater"]) - of_one(each)
    more = squared_errors(columns["rater"]) - squared_errors(each)
    variance = (x * more).sum() / (x * x).sum()
    assert variance > 0
    found = estimate_systems(**columns, systems=SYSTEMS)
    assert found.error**2 == pytest.approx(squared_errors(columns["cluster"]) + variance * x)


def test_degrees_of_freedom_give_student_s_t_the_tail_of_the_squared_error() -> None:
    """Clusters of unlike weight, against draws of the squared error."""
    weights = np.repeat([8.0, 1.0], [4, 60])
    weights /= weights.sum()
    effective = 1 / (weights**2).sum()
    kept = 1 - 1 / effective  # of each cluster, since they are compared with their mean
    x = 4.0
    clusters = [np.array([[np.sqrt(weight)], [0.0], [0.0]]) for weight in weights]
    df = incomplete._freedom(clusters, np.full((3, 3), x))[0, 1]
    rng = np.random.default_rng(1)
    squared = sum(weight / kept * rng.chisquare(kept, 100_000) for weight in weights)
    tail = 2 * stats.norm.sf(x * np.sqrt(squared)).mean()
    assert 2 * stats.t.sf(x, df) == pytest.approx(tail, rel=0.05)
    assert 2 * stats.t.sf(x, effective - 1) > 1.2 * tail  # by the squared error's variance alone
    alike = incomplete._freedom([np.eye(3)[:, :1]] * 10, np.full((3, 3), x))
    assert alike[0, 1] == pytest.approx(9)


def test_two_systems_side_by_side_are_a_paired_t_test() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(70, 10, (30, 1)) + rng.normal(0, 5, (30, 2)) + [0, 2]
    found = estimate_systems(np.repeat(np.arange(30), 2), np.tile([0, 1], 30), scores.ravel(), 2)
    expected = stats.ttest_rel(scores[:, 1], scores[:, 0])
    low, high = expected.confidence_interval()
    assert found.mean == pytest.approx(scores.mean(axis=0))
    assert found.half[1, 0] == pytest.approx((high - low) / 2, rel=0.02)  # its level is drawn
    assert found.p_value[1, 0] == pytest.approx(expected.pvalue, abs=0.01)


def test_pages_levels_and_names_change_nothing() -> None:
    columns = campaign(effects=[0, 4, 8, 12, 16])
    found = estimate_systems(**columns, systems=SYSTEMS)
    level = np.random.default_rng(1).normal(0, 50, 40)[columns["page"]]
    moved = estimate_systems(**columns | {"value": columns["value"] + level}, systems=SYSTEMS)
    assert moved.difference == pytest.approx(found.difference)
    assert moved.error == pytest.approx(found.error)
    names = np.array([3, 1, 4, 0, 2])
    renamed = estimate_systems(**columns | {"system": names[columns["system"]]}, systems=SYSTEMS)
    assert renamed.mean[names] == pytest.approx(found.mean)
    assert renamed.error[np.ix_(names, names)] == pytest.approx(found.error)


def test_ranks_and_clusters_follow_from_the_simultaneous_intervals() -> None:
    columns = campaign(pages=150, effects=[0, 0, 12, 12, 40])
    found = estimate_systems(**columns, systems=SYSTEMS)
    better = found.difference - found.half > 0
    for system in range(SYSTEMS):
        assert found.rank_low[system] == 1 + sum(better[:, system])
        assert found.rank_high[system] == SYSTEMS - sum(better[system])
    assert (found.rank_low[4], found.rank_high[4]) == (1, 1)
    assert found.cluster.tolist() == [3, 3, 2, 2, 1]
    assert (found.p_value[4] < 0.05).sum() == 4
    assert ((found.p_value < 0.05) == (np.abs(found.difference) > found.half))[
        ~np.eye(SYSTEMS, dtype=bool)
    ].all()


def test_raters_severity_is_no_part_of_a_difference() -> None:
    """One output at a time: a page is a segment with scores of several raters."""
    rng = np.random.default_rng(5)
    columns = campaign(pages=60)
    rater = rng.integers(0, 4, len(columns["page"]))
    severe = columns["value"] + np.array([0, 30, -30, 10])[rater]
    given = {name: columns[name] for name in ("page", "system", "cluster")}
    found = estimate_systems(**given, value=severe, systems=SYSTEMS, effect=rater)
    plain = estimate_systems(**given, value=columns["value"], systems=SYSTEMS, effect=rater)
    assert found.difference == pytest.approx(plain.difference)
    assert found.error == pytest.approx(plain.error)


def test_inverse_chances_undo_what_the_design_preferred() -> None:
    """Systems 0 and 1 are best apart on hard segments, which are shown more often."""
    rng = np.random.default_rng(1)
    pages, pairs = 3000, list(combinations(range(3), 2))
    hard = rng.random(pages) < 0.5
    truth = np.where(hard[:, None], [20.0, 0.0, 0.0], [0.0, 0.0, 10.0])
    chances = np.where(hard[:, None], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8])  # of each pair
    drawn = np.array([rng.choice(3, p=row) for row in chances])
    system = np.array(pairs)[drawn]
    value = np.take_along_axis(truth, system, 1) + rng.normal(0, 1, (pages, 2))
    chance = np.ones((pages, 2, 3))
    for number, (one, other) in enumerate(pairs):
        chance[:, :, other] = np.where(system == one, chances[:, [number]], chance[:, :, other])
        chance[:, :, one] = np.where(system == other, chances[:, [number]], chance[:, :, one])
    columns = np.repeat(np.arange(pages), 2), system.ravel(), value.ravel(), 3
    fair = estimate_systems(*columns, chance=chance.reshape(-1, 3))
    unfair = estimate_systems(*columns)
    expected = truth.mean(axis=0) - truth.mean()
    assert fair.mean - fair.mean.mean() == pytest.approx(expected, abs=1.0)
    assert np.abs(unfair.mean - unfair.mean.mean() - expected).max() > 2


def test_a_thinned_campaign_says_what_the_whole_says() -> None:
    rng = np.random.default_rng(6)
    scores = rng.normal(70, 10, (60, 1)) + rng.normal(0, 6, (60, 8)) + np.arange(8)
    whole = scores.mean(axis=0) - scores.mean()
    found = []
    for seed in range(60):
        system = np.array(balanced_blocks(60, 8, 3, str(seed)))
        value = np.take_along_axis(scores, system, 1)
        thinned = estimate_systems(np.repeat(np.arange(60), 3), system.ravel(), value.ravel(), 8)
        found.append(thinned.mean - thinned.mean.mean() - whole)
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0)) < 3.5 * error).all()


def test_what_cannot_be_said() -> None:
    page, system, value = [0, 0, 1, 1], [0, 1, 2, 3], [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ValueError, match="share no page with the others"):
        estimate_systems(page, system, value, 4)
    with pytest.raises(ValueError, match="share no page with the others"):
        estimate_systems([0, 1], [0, 1], [1.0, 2.0], 2)
    with pytest.raises(ValueError, match="one length"):
        estimate_systems(page, system, value[:3], 4)
    with pytest.raises(ValueError, match="finite"):
        estimate_systems(page, system, [1.0, 2.0, 3.0, np.nan], 4)
    lonely = estimate_systems([0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 1, 2], [1.0, 2, 3, 5, 2, 2], 3)
    assert lonely.reason == "some difference depends on one document or segment"
    assert np.isnan(lonely.half).all()
    assert lonely.rank_high.tolist() == [3, 3, 3]
    same = estimate_systems([0, 0, 1, 1, 2, 2], [0, 1] * 3, [1.0, 2.0] * 3, 2)
    assert same.reason == "no spread to judge by"


@pytest.mark.slow
def test_few_documents_do_not_shrink_what_all_pairs_need() -> None:
    """Errors of 8 documents span 7 dimensions of 15 systems: taken as they are, their largest statistic over
    pairs would be that of fewer systems than there are."""
    documents, systems = 8, 15
    page = np.repeat(np.arange(documents), systems)
    for seed in range(3):
        value = np.random.default_rng(seed).normal(size=documents * systems)
        found = estimate_systems(page, np.tile(np.arange(systems), documents), value, systems)
        wide = found.half[0, 1] / found.error[0, 1]
        level = 2 * stats.t.sf(wide, documents - 1)  # all documents weigh the same
        tukey = 2 * stats.norm.sf(stats.studentized_range.ppf(0.95, systems, 1e6) / np.sqrt(2))
        assert level == pytest.approx(tukey, rel=0.15)


@pytest.mark.slow
def test_any_pair_is_falsely_different_in_five_per_cent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incomplete, "DRAWS", 3000)

    def one(seed: int) -> SystemEstimates:
        return estimate_systems(**campaign(seed, pages=36, systems=6) | {"rater": None}, systems=6)

    found = [one(seed) for seed in range(200)]
    wrong = np.mean([(np.abs(each.difference) > each.half).any() for each in found])
    assert 0.02 < wrong < 0.085
    truth = np.zeros(6)
    covered = np.mean(
        [(each.low - each.mean.mean() < truth) & (truth < each.high - each.mean.mean()) for each in found]
    )
    assert 0.93 < covered < 0.98


@pytest.mark.slow
def test_few_raters_who_prefer_systems_raise_no_more_false_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what each pair alone says of raters, some pair was different in 30 % of such campaigns."""
    monkeypatch.setattr(incomplete, "DRAWS", 2000)
    wrong = []
    for seed in range(100):
        found = estimate_systems(**campaign(seed, pages=60, systems=12, views=9), systems=12)
        wrong.append((np.abs(found.difference) > found.half).any())
    assert np.mean(wrong) < 0.085
