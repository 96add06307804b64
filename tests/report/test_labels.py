"""Labels of points: none lies on another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from creamtea.report import vega
from creamtea.report.vega import GAP, HEIGHT, LETTER, LIFTS, LINE, WIDTH, Point


def lifts(points: list[Point], logarithmic: bool = False) -> list[float]:
    """In a figure that draws these points alone."""
    found = vega.lifts(points, [p.x for p in points], [p.y for p in points], logarithmic)
    assert found is not None
    return found


def test_a_lonely_label_stands_above_its_point() -> None:
    assert lifts([Point(1.0, 1.0, "one"), Point(2.0, 9.0, "two")]) == [LIFTS[0], LIFTS[0]]


def test_points_in_one_place_get_their_labels_one_above_the_other() -> None:
    same = [Point(1.0, 5.0, name) for name in ("alpha", "beta", "gamma")]
    assert lifts([*same, Point(9.0, 1.0, "far"), Point(9.0, 9.0, "away")])[:3] == list(LIFTS[:3])


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


def test_where_a_label_has_no_place_there_are_none() -> None:
    points = [Point(1.0, 1.0, f"system-{number}") for number in range(len(LIFTS) + 1)]
    assert vega.lifts(points, [1.0], [1.0]) is None


def test_no_label_lies_on_the_point_of_another() -> None:
    name = "label"
    points = [Point(0.0, 0.0, name), Point(GAP / WIDTH, -LIFTS[0] / HEIGHT, ""), Point(1.0, 1.0, "")]
    assert lifts(points)[0] == LIFTS[1]
