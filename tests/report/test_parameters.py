"""Systems that differ in one number, and the figure over it."""

import json
from typing import Any

import pytest
from analysis_rows import row
from blocks import figure, figures
from teatime_study import Build, Spec

from creamtea.report.sweeps import sweeps
from creamtea.report.vega import vega_lite
from creamtea.study.spec import Study

NONE: dict[str, Any] = {"metrics": []}
Systems = dict[str, tuple[float, ...]]


def found(spec: dict[str, Any], variants: dict[str, Any], systems: dict[str, Any]) -> dict[str, Systems]:
    plain = {"corpus": "toy", "subwords": "bpe", "objective": {"kind": "softmax"}}
    spec |= {
        "variants": {name: plain | more for name, more in variants.items()},
        "systems": systems,
        "baseline": next(iter(systems)),
        "latency": None,
    }
    return {
        sweep.parameter: {name: tuple(value for value, _ in group) for name, group in sweep.groups.items()}
        for sweep in sweeps(Study.model_validate(spec))
    }


def test_a_grid_of_an_objective_is_a_sweep_for_each_search(spec: Spec) -> None:
    alphas = (0.2, 1.0, 0.5)
    variants = {f"scones+alpha={a:g}": {"objective": {"kind": "scones", "alpha": a}} for a in alphas}
    systems = {f"greedy+alpha={a:g}": {"variant": f"scones+alpha={a:g}"} for a in alphas}
    systems |= {
        f"beam+alpha={a:g}": {"variant": f"scones+alpha={a:g}", "search": {"kind": "beam"}} for a in alphas
    }
    assert found(spec, {"softmax": {}} | variants, {"softmax": {"variant": "softmax"}} | systems) == {
        "variant.objective.alpha": {"greedy+alpha=…": (0.2, 0.5, 1.0), "beam+alpha=…": (0.2, 0.5, 1.0)}
    }


def test_positive_weight_also_of_what_a_variant_started_from(spec: Spec) -> None:
    variants: dict[str, Any] = {
        f"nvs+positive_weight={w}": {"nvs": {"positive_weight": float(w)}} for w in (10, 1000)
    }
    variants |= {f"adapted-{w}": {"start_from": f"nvs+positive_weight={w}", "nvs": {}} for w in (10, 1000)}
    assert found(spec, variants, {name: {"variant": name} for name in variants}) == {
        "variant.nvs.positive_weight": {"nvs+positive_weight=…": (10, 1000)},
        "variant.start_from.nvs.positive_weight": {"adapted-…": (10, 1000)},
    }


def test_selections_and_searches_are_swept_too_and_names_without_a_common_word_are_listed(spec: Spec) -> None:
    systems = {
        "small": {"variant": "softmax", "selection": {"kind": "lexicon", "k": 20}, "batch_size": 8},
        "large": {"variant": "softmax", "selection": {"kind": "lexicon", "k": 200}, "test_sets": ["test"]},
        "beam2": {"variant": "softmax", "search": {"kind": "beam", "width": 2}},
    }
    assert found(spec, {"softmax": {}}, systems) == {"selection.k": {"small, large": (20, 200)}}


def test_groups_whose_names_have_the_same_in_common_are_told_apart(spec: Spec) -> None:
    variants = {"softmax": {}, "scones": {"objective": {"kind": "scones"}}}
    systems = {
        f"sys-{number}": {"variant": variant, "search": {"kind": "beam", "width": width}}
        for number, (variant, width) in enumerate(
            [("softmax", 2), ("softmax", 8), ("scones", 2), ("scones", 8)], start=1
        )
    }
    assert found(spec, variants, systems) == {
        "search.width": {"sys-1, sys-2": (2, 8), "sys-3, sys-4": (2, 8)}
    }


def test_nothing_where_systems_differ_in_more_than_a_number_or_in_two(spec: Spec) -> None:
    variants = {
        "one": {"objective": {"kind": "scones", "alpha": 0.5}, "training": {"warmup": 100}},
        "two": {"objective": {"kind": "scones", "alpha": 1.0}, "training": {"warmup": 200}},
        "three": {"seeds": [1, 2]},  # seeds are no parameter
        "four": {"seeds": [3]},
    }
    assert found(spec, variants, {name: {"variant": name} for name in variants}) == {}


@pytest.fixture
def grid(spec: Spec) -> Spec:
    for k in (2, 200):
        selection = {"kind": "lexicon", "k": k}
        spec["systems"][f"softmax-lexicon{k}"] = {"variant": "softmax", "selection": selection}
    del spec["latency"]
    return spec


def test_the_figure_has_a_point_a_system_with_its_interval(build: Build, grid: Spec) -> None:
    kinds = ("score", "recall", "compare")
    changes: dict[str, Any] = {f"{kind}/softmax-lexicon{k}": NONE for kind in kinds for k in (2, 200)}
    changes["score/softmax-lexicon2/1/test/bleu"] = {"metrics": [row("bleu", 25.0, low=24.0, high=26.5)]}
    changes["score/softmax-lexicon200"] = {"state": "pending"}
    report = build(changes, state="running")
    drawn = figure(report, "test/parameters/selection.k-bleu")
    assert drawn.choice == ("selection k", "BLEU")
    points = [(row["x"], row["y"], row["low"], row["label"]) for row in drawn.rows]
    assert points == [(2.0, 25.0, 24.0, "softmax-lexicon2"), (20.0, 31.5, 30.0, "softmax-lexicon")]
    assert drawn.missing == ("softmax-lexicon200 (pending)",)
    spec = vega_lite(drawn)
    assert spec["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"  # from 2 to 200
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    assert figure(report, "selection.k-recall_idiom").rows


GAMMAS = (0.1, 0.5, 1.0)


@pytest.fixture
def temperatures(spec: Spec) -> Spec:
    """A variant, a system and a test set for each temperature."""
    spec["corpora"] |= {f"gamma{g}": {"kind": "synthetic", "gamma": g} for g in GAMMAS}
    spec["test_sets"] = {
        f"gamma{g}": {"kind": "synthetic", "corpus": f"gamma{g}", "lines": 4} for g in GAMMAS
    }
    spec["variants"] = {
        f"softmax-{g}": {"corpus": f"gamma{g}", "subwords": "bpe", "objective": {"kind": "softmax"}}
        for g in GAMMAS
    }
    spec["systems"] = {
        f"softmax-{g}": {"variant": f"softmax-{g}", "test_sets": [f"gamma{g}"], "baseline": f"softmax-{g}"}
        for g in GAMMAS
    }
    spec["baseline"] = "softmax-0.1"
    del spec["latency"]
    return spec


def test_the_temperature_of_a_sampled_corpus_is_drawn_over_the_test_set_of_each(
    build: Build, temperatures: Spec
) -> None:
    scores = {0.1: 60.0, 0.5: 40.0, 1.0: 15.0}
    report = build(
        {f"score/softmax-{g}/1/gamma{g}/bleu": {"metrics": [row("bleu", scores[g])]} for g in GAMMAS}
    )
    drawn = figure(report, "gamma0.5/parameters/variant.corpus.gamma-bleu")
    assert drawn.choice == ("corpus gamma", "BLEU")
    assert [(point["x"], point["y"]) for point in drawn.rows] == list(scores.items())
    assert "each on the test set of its corpus" in drawn.title


def test_exact_search_is_drawn_over_the_temperature_from_an_analysis_each(
    build: Build, temperatures: Spec
) -> None:
    # SCONES, Figures 8 and 9
    plain = {"kind": "search_errors", "widths": [1, 4]}
    temperatures["analyses"] = {
        f"exact-{g}": plain | {"test_set": f"gamma{g}", "variants": [f"softmax-{g}"]} for g in GAMMAS
    }

    def rows(name: str, value: float, *subjects: str) -> list[dict[str, Any]]:
        return [row(name, value, one, low=0.9 * value, high=1.1 * value) for one in subjects]

    changes: dict[str, Any] = {
        f"search_errors/exact-{g}": {
            "metrics": [*rows("bleu", 10 / g, "1", "4", "exact"), *rows("search_errors", g, "1", "4")]
        }
        for g in GAMMAS
    }
    changes |= {"score/": NONE, "compare/": NONE}
    changes["search_errors/exact-1.0"] = {"state": "pending"}
    # a second system of the same variants: what is analysed is drawn once
    temperatures["systems"] |= {
        f"greedy-{g}": temperatures["systems"][f"softmax-{g}"] | {"precision": "bf16"} for g in GAMMAS
    }
    temperatures["systems"] = dict(reversed(temperatures["systems"].items()))  # greedy-… comes first
    report = build(changes, state="running")
    bleu = "gamma0.5/parameters/variant.corpus.gamma-search_errors-bleu"
    drawn = figure(report, bleu)
    assert drawn.choice == ("corpus gamma", "Search errors: BLEU")
    assert list(dict.fromkeys(row["group"] for row in drawn.rows)) == [
        f"softmax-…, {setting}" for setting in ("beam 1", "beam 4", "exact")
    ]
    exact = [(row["x"], row["y"], row["low"]) for row in drawn.rows if row["group"] == "softmax-…, exact"]
    assert exact == [(0.1, 100.0, 90.0), (0.5, 20.0, 18.0)]
    assert drawn.title == "BLEU over corpus gamma (search errors)"
    assert drawn.missing == ("softmax-1.0 (pending)",)
    errors = figure(report, "gamma0.5/parameters/variant.corpus.gamma-search_errors-search_errors")
    assert {row["group"] for row in errors.rows} == {"softmax-…, beam 1", "softmax-…, beam 4"}
    # which of two analyses of a variant would it be?
    temperatures["analyses"]["again"] = temperatures["analyses"]["exact-0.5"]
    assert {point["x"] for point in figure(build(changes, state="running"), bleu).rows} == {0.1}


def test_nothing_is_drawn_of_an_analysis_that_all_systems_of_a_group_share(build: Build, grid: Spec) -> None:
    grid["analyses"] = {"errors": {"kind": "search_errors", "test_set": "test", "widths": [4]}}
    drawn = figures(
        build(dict.fromkeys(("score/", "compare/", "recall/"), NONE))
    )  # over k of one variant's lexicon
    assert any("selection.k-selected_size" in path for path in drawn)
    assert not any("selection.k-search_errors" in path for path in drawn)
