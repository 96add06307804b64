"""Figures: all systems, what is missing; over a parameter; colours and marks; labels side by side."""

import json
import re
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from analysis_rows import row
from blocks import figure, figures
from hypothesis import given
from hypothesis import strategies as st
from rated_campaigns import rated_campaign
from teatime_study import SYSTEMS, Build, Spec, fill_study

from creamtea.report import text, vega
from creamtea.report.build import build_report
from creamtea.report.figures import learning_curves, sweeps
from creamtea.report.model import Choice, Document
from creamtea.report.vega import GAP, HEIGHT, LETTER, LETTERS, LIFTS, LINE, WIDTH, Point, lines, vega_lite
from creamtea.store.database import Database
from creamtea.store.queries import CurvePoint
from creamtea.study.spec import Study

RUNS = ["softmax, seed 1", "scones, seed 1", "scones, seed 2", "scones, seed 3"]


def choices(report: Document) -> dict[str, Choice]:
    return {block.key: block for _, block in report.walk() if isinstance(block, Choice)}


def test_every_system_is_in_the_quality_figure(complete: Document) -> None:
    drawn = figure(complete, "quality/bleu")
    assert [row["system"] for row in drawn.rows] == list(SYSTEMS)
    nvs = drawn.rows[2]
    assert (nvs["quality"], nvs["low"], nvs["high"], nvs["latency"]) == (32.5, 31.0, 34.25, 10.0)
    assert (nvs["latency_low"], nvs["latency_high"]) == (9.5, 11.0)
    assert drawn.rows[3]["latency"] is None
    bars = [layer["encoding"] for layer in drawn.spec["layer"] if layer["mark"].get("type") == "rule"]
    assert [(bar["x"]["field"], bar["y"]["field"]) for bar in bars] == [
        ("latency", "low"),
        ("latency_low", "quality"),
    ]
    assert drawn.missing == ("scones-greedy (not measured)",)
    assert vega_lite(drawn)["title"]["subtitle"] == "not drawn: scones-greedy (not measured)"
    # points are counted that are drawn
    assert text.figure(drawn).endswith("(3 points; not drawn: scones-greedy (not measured))")


def test_quality_is_not_drawn_before_anything_is_timed(build: Build) -> None:
    pending = {"state": "pending", "facts": None, "finished_at": None, "metrics": []}
    assert choices(build({"latency": pending}, state="running"))["quality"].figures == ()


def test_recall_has_its_sweeps_and_all_systems(complete: Document) -> None:
    found = figure(complete, "recall/idiom").rows
    sweeps = [
        (row["selection"], row["setting"], row["size"], row["recall"]) for row in found if row["selection"]
    ]
    assert sweeps == [
        ("lexicon", "k=1", 50.0, 0.5),
        ("lexicon", "k=20", 100.0, 0.6),
        ("NVS, softmax", "threshold=0.9", 50.0, 0.5),
    ]
    systems = {row["system"]: (row["size"], row["recall"]) for row in found if row["system"]}
    assert list(systems) == list(SYSTEMS)
    assert systems["softmax-nvs"] == (150.25, 0.9)
    nvs = next(row for row in found if row["system"] == "softmax-nvs")
    assert (nvs["low"], nvs["high"]) == (0.85, 0.94)
    # two full vocabularies lie in one place, under one label
    labels = [row["label"] for row in found if row["system"]]
    assert labels == ["softmax-greedy, scones-greedy", "softmax-lexicon", "softmax-nvs", ""]
    assert all(row["size"] > 0 for row in found)  # the axis is logarithmic


def test_learning_curves_have_every_run_also_one_without_points(build: Build) -> None:
    failed = {"state": "failed", "error": "boom", "error_kind": "deterministic", "facts": None}
    changes = {"train/scones/1": failed, "train/scones/2": {"state": "running"}}
    drawn = figure(build(changes, state="running"), "learning/dev_bleu")
    assert list(dict.fromkeys(row["run"] for row in drawn.rows)) == [RUNS[at] for at in (0, 3, 1, 2)]
    # what failed is not waited for
    assert drawn.missing == ("scones, seed 1 (failed)", "scones, seed 2 (no points yet)")
    assert set(drawn.spec["layer"][0]["encoding"]["color"]["scale"]["domain"]) == set(RUNS)


def test_an_infinite_perplexity_is_no_point_that_is_still_to_come() -> None:
    point = [CurvePoint(100.0, 2.5, "")]
    runs = {"softmax": {"dev_loss": point, "dev_perplexity": point}, "entmax": {"dev_loss": point}}
    drawn = learning_curves(runs | {"later": {}}, "dev_perplexity", vega.styles([*runs, "later"]))
    assert drawn.missing == ("entmax (infinite: a reference has probability 0)", "later (no points yet)")
    only_later = learning_curves({"later": {}}, "dev_loss", vega.styles(["later"]))
    assert only_later.rows == ()  # so that no empty axes are drawn
    assert only_later.missing == ("later (no points yet)",)


def test_losses_of_different_objectives_have_an_axis_each(complete: Document) -> None:
    drawn = choices(complete)["learning"].figures
    losses = [one for one in drawn if one.key.startswith("dev_loss")]
    assert [one.title for one in losses] == ["Development loss: softmax", "Development loss: SCONES α=0.5"]
    assert [{row["run"] for row in one.rows} for one in losses] == [{RUNS[0]}, set(RUNS[1:])]
    assert len({one.choice for one in losses}) == 1  # a page shows them together
    scales = [one.spec["layer"][0]["encoding"]["color"]["scale"] for one in losses]
    assert [scale["domain"] for scale in scales] == [RUNS[:1], RUNS[1:]]
    colours = {run: colour for scale in scales for run, colour in zip(*scale.values(), strict=True)}
    assert len(set(colours.values())) == 2  # of each variant
    assert {row["run"] for row in figure(complete, "learning/dev_bleu").rows} == set(RUNS)


def test_what_a_study_does_not_measure_has_no_figure(build: Build, spec: Spec) -> None:
    latency = spec.pop("latency")
    report = build({"train": {"state": "pending"}, "recall": {"state": "pending"}})
    assert {key: choice.absent for key, choice in choices(report).items()} == {
        "recall": "no recall has been measured",
        "learning": "no training has recorded points",
    }
    assert not any(choice.figures for choice in choices(report).values())
    assert "figures/quality" not in [heading.path for heading in report.contents()]
    # without a selection there is no recall to draw
    spec["systems"] = {name: spec["systems"][name] for name in ("softmax-greedy", "scones-greedy")}
    spec["latency"] = latency | {"systems": list(spec["systems"])}
    titles = [choice.title for choice in choices(build()).values()]
    assert titles == ["Quality against latency", "Learning curves"]


def test_human_scores_are_drawn_in_the_unit_of_their_column(database: Database) -> None:
    items = [{"systems": [0, 1], "steps": {"anna": [2, 0]}, "segment_index": i} for i in range(3)]
    names = ["softmax-greedy", "softmax-nvs"]
    rated_campaign(database, items, systems=names, protocol="preference", study_id=fill_study(database))
    drawn = figure(build_report(database, "teatime"), "quality/human:tasting")
    assert [row["quality"] for row in drawn.rows] == [100.0, None, 0.0, None]
    assert drawn.spec["layer"][0]["encoding"]["y"]["title"] == "human score, %"


@pytest.mark.parametrize("updates", [24_000, 120_000, 1_500_000])
def test_neighbouring_labels_of_an_axis_do_not_touch(updates: int) -> None:
    points = [CurvePoint(updates * part / 10, 4.0, "") for part in range(1, 11)]
    run = "softmax, seed 1"
    drawn = learning_curves({run: {"dev_loss": points}}, "dev_loss", vega.styles([run]))
    label = re.compile(
        r'text-anchor="middle" transform="translate\(([\d.]+),[\d.]+\)"([^>]*)>([\d,]+)</text>'
    )
    shown = [
        (float(x), text) for x, style, text in label.findall(vega.svg(drawn)) if 'opacity="0"' not in style
    ]
    assert len(shown) > 2
    for (left, word), (right, other) in pairwise(shown):
        assert right - left > LETTER * (len(word) + len(other)) / 2, (word, other)


@pytest.mark.parametrize(("lowest", "begins"), [(0.1, 0), (6.0, None)])
def test_an_axis_of_learning_shows_nothing_below_zero(lowest: float, begins: int | None) -> None:
    points = [CurvePoint(100, lowest, ""), CurvePoint(200, 7.0, "")]
    drawn = learning_curves({"a": {"dev_bleu": points}}, "dev_bleu", vega.styles(["a"]))
    assert drawn.spec["layer"][0]["encoding"]["y"]["scale"].get("domainMin") == begins


PAGES = ("#fffdf9", "#1d1917")  # the web app's, light and dark
# Machado, Oliveira and Fernandes (2009), of linear RGB, severity 1.0
VISIONS = {
    "all": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(colour: str) -> Any:
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def oklab(rgb: Any) -> Any:
    """Ottosson (2020)."""
    to_lms = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    to_lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return to_lab @ np.cbrt(to_lms @ np.clip(rgb, 0, 1))


def contrast(one: str, other: str) -> float:
    """WCAG's, from 1 to 21."""
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) + 0.05 for colour in (one, other))
    return high / low


def closest(colours: tuple[str, ...], vision: str) -> float:
    places = [oklab(np.array(VISIONS[vision]) @ linear(colour)) for colour in colours]
    return min(float(np.linalg.norm(one - other)) for one, other in combinations(places, 2))


@pytest.mark.parametrize("vision", VISIONS)
def test_the_colours_are_told_apart(vision: str) -> None:
    okabe_ito = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
    assert closest(vega.PALETTE, vision) > max(0.15, closest(okabe_ito, vision))


@pytest.mark.parametrize("page", PAGES)
def test_the_colours_stand_out_on_light_and_dark_pages(page: str) -> None:
    assert min(contrast(colour, page) for colour in vega.PALETTE) >= 2
    assert min(contrast(colour, page) for colour in (*vega.PALETTE[:3], vega.GREY)) > 2.9


def test_no_two_of_sixty_systems_look_alike() -> None:
    styles = vega.styles(str(number) for number in range(60))
    assert len(set(styles.values())) == 60
    eight = list(styles.values())[:8]
    assert len({style.colour for style in eight}) == len({style.shape for style in eight}) == 8


def test_a_system_and_its_variant_look_alike_in_every_figure(tasted_report: Document) -> None:
    styles = dict(zip(SYSTEMS, vega.PALETTE, strict=False))
    styles |= {"softmax": vega.PALETTE[0], "scones": vega.PALETTE[3]}
    seen = set()
    for shown in (one for one in figures(tasted_report).values() if one.rows):
        for layer in shown.spec["layer"]:
            scale = layer["encoding"].get("color", {}).get("scale", {"domain": [], "range": []})
            for name, colour in zip(scale["domain"], scale["range"], strict=True):
                of = name if name in styles else name.partition(",")[0]
                if of in styles:
                    assert colour == styles[of], (shown.title, name)
                    seen.add(shown.title)
    assert len(seen) > 10
    assert {"BLEU of each system (test)", "Human scores: softmax-greedy = 100 % (tasting)"} <= seen
    marks = set()
    for path in ("answer/test/ranking", "quality/bleu", "recall/sentence"):
        drawn = next(one for place, one in figures(tasted_report).items() if place.endswith(path))
        for layer in drawn.spec["layer"]:
            if scale := layer["encoding"].get("shape", {}).get("scale"):
                marks |= set(zip(scale["domain"], scale["range"], strict=True))
    assert len(marks) == len(dict(marks)) == 4


def test_long_names_are_broken_not_cut() -> None:
    assert lines("softmax-greedy") == ["softmax-greedy"]
    name = "transformer-softmax-greedy_v2.averaged over.eight checkpoints" + "x" * 40
    broken = lines(name)
    assert "".join(broken).replace(" ", "") == name.replace(" ", "")
    assert max(map(len, broken)) <= LETTERS
    names = [f"{name}-{number}" for number in range(3)]
    rows = [{"name": each, "value": float(place)} for place, each in enumerate(names)]
    encoding = {"x": vega.quantity("value", "BLEU", zero=False), "y": vega.named("name", names)}
    layer = [vega.points(encoding | vega.by_style("name", vega.styles(names)), size=30)]
    svg = vega.svg(vega.figure("long", "Long names", rows, layer, names=names))
    shown = svg.replace("\n", "")
    assert shown.count(">transformer-softmax-<") == 6  # of the axis and the legend
    assert "…" not in shown


def lifts(points: list[Point], logarithmic: bool = False) -> list[float]:
    """In a figure that draws these points alone."""
    found = vega.lifts(points, [p.x for p in points], [p.y for p in points], logarithmic)
    assert found is not None
    return found


def test_labels_of_points_in_one_place_stand_one_above_the_other() -> None:
    assert lifts([Point(1.0, 1.0, "one"), Point(2.0, 9.0, "two")]) == [LIFTS[0], LIFTS[0]]
    same = [Point(1.0, 5.0, name) for name in ("alpha", "beta", "gamma")]
    assert lifts([*same, Point(9.0, 1.0, "far"), Point(9.0, 9.0, "away")])[:3] == list(LIFTS[:3])
    # where a label has no place there are none
    points = [Point(1.0, 1.0, f"system-{number}") for number in range(len(LIFTS) + 1)]
    assert vega.lifts(points, [1.0], [1.0]) is None


def test_a_logarithmic_axis_is_taken_as_such() -> None:
    points = [Point(x, 1.0, "label") for x in (1.0, 4.0, 100.0)]  # 1 and 4 are close on a linear axis only
    assert lifts(points) == [LIFTS[1], LIFTS[0], LIFTS[0]]
    assert lifts(points, logarithmic=True) == [LIFTS[0]] * 3


places = st.floats(0.0, 1.0).map(lambda share: round(share, 3))


# a label may lie between two offsets of another point, so that it takes both
@given(st.lists(st.tuples(places, places), min_size=1, max_size=len(LIFTS) // 2))
def test_labels_of_close_points_never_overlap(corners: list[tuple[float, float]]) -> None:
    # all at nearly one height, and the two corners that fix the scale carry no label
    points = [Point(x, y / 100, "a-system-name") for x, y in corners]
    frame = [Point(0.0, -1.0, ""), Point(1.0, 1.0, "")]
    boxes = []
    for point, lift in zip(points, lifts([*points, *frame]), strict=False):
        x, width = WIDTH * point.x, LETTER * len(point.text)
        start = x + GAP if x <= WIDTH / 2 else x - GAP - width
        boxes.append((start, start + width, lift - HEIGHT * (point.y + 1) / 2))
    for i, (start, end, middle) in enumerate(boxes):
        for other_start, other_end, other in boxes[:i]:
            apart = end <= other_start or other_end <= start or abs(middle - other) >= LINE - 1e-9
            assert apart


def test_the_axes_are_those_of_all_that_is_drawn() -> None:
    points = [Point(1.0, 1.0, "one"), Point(1.0, 2.0, "two")]
    assert vega.lifts(points, [1.0, 2.0], [1.0, 2.0]) == [LIFTS[0]] * 2
    assert vega.lifts(points, [1.0, 2.0], [0.0, 100.0]) == [LIFTS[0], LIFTS[1]]  # now the two are close


def test_no_label_lies_on_the_point_of_another() -> None:
    name = "label"
    points = [Point(0.0, 0.0, name), Point(GAP / WIDTH, -LIFTS[0] / HEIGHT, ""), Point(1.0, 1.0, "")]
    assert lifts(points)[0] == LIFTS[1]


# ---------------------------------------------------------------- over a parameter in which systems differ


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
