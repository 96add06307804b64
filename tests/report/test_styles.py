"""Colours and marks of systems: told apart by everybody, the same in every figure, never alike."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from blocks import figures
from human_rows import add_campaign

from creamtea.report import drawing, vega
from creamtea.report.build import build_report
from creamtea.report.model import Document
from creamtea.report.vega import LETTERS, lines
from creamtea.store.database import Database

Fill = Callable[..., int]
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


def test_a_system_and_its_variant_look_alike_in_every_figure(filled: Database, fill: Fill) -> None:
    study = fill(filled)
    add_campaign(filled, study, items=20)
    report = build_report(filled, "teatime")
    styles = {
        "softmax-greedy": vega.PALETTE[0],
        "softmax-lexicon": vega.PALETTE[1],
        "softmax-nvs": vega.PALETTE[2],
        "scones-greedy": vega.PALETTE[3],
        "softmax": vega.PALETTE[0],
        "scones": vega.PALETTE[3],
    }
    drawn = [one for one in figures(report).values() if one.rows]
    seen = set()
    for figure in drawn:
        for layer in figure.spec["layer"]:
            scale = layer["encoding"].get("color", {}).get("scale", {"domain": [], "range": []})
            for name, colour in zip(scale["domain"], scale["range"], strict=True):
                of = name if name in styles else name.partition(",")[0]
                if of in styles:
                    assert colour == styles[of], (figure.title, name)
                    seen.add(figure.title)
    assert len(seen) > 10
    assert {"BLEU of each system (test)", "Human scores: softmax-greedy = 100 % (tasting)"} <= seen


def test_points_of_systems_have_the_same_mark(filled: Database, fill: Fill) -> None:
    fill(filled)
    report: Document = build_report(filled, "teatime")
    marks = set()
    for path in ("answer/test/ranking", "quality/bleu", "recall/sentence"):
        figure = next(one for place, one in figures(report).items() if place.endswith(path))
        for layer in figure.spec["layer"]:
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
    svg = drawing.svg(vega.low(vega.figure("long", "Long names", rows, layer), names))
    shown = svg.replace("\n", "")
    assert shown.count(">transformer-softmax-<") == 6  # of the axis and the legend
    assert "…" not in shown
