"""Which segments are chosen, with which weights, and what the protocols make of them."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.errors import InputError
from creamtea.human.making.choosing import choose, disagreement, make_pages, proportional
from creamtea.human.making.settings import CampaignSettings
from creamtea.human.making.texts import Line
from creamtea.human.protocols import find_protocol
from creamtea.human.record import ItemContent

SYSTEMS = ["a", "b", "c"]


def line(index: int, *outputs: str, source: str = "source", document: str = "") -> Line:
    return Line(index, source, "", outputs, document)


def lines(count: int) -> list[Line]:
    """Every third segment is the same for all."""
    return [
        line(i, f"x{i}", f"x{i}" if i % 3 == 0 else f"y{i}", f"x{i}", source="s" * i) for i in range(count)
    ]


def complete(protocol: str = "contrastive-da", **given: Any) -> CampaignSettings:
    return CampaignSettings(**given).complete(find_protocol(protocol), SYSTEMS, "a")


def indices(choices: list[Any], kind: str = "rated") -> list[int]:
    return [choice.index for choice in choices if choice.kind == kind]


def test_all_and_differing() -> None:
    everything, drawn = choose(lines(9), complete(select="all"), 1)
    assert indices(everything) == list(range(9))
    assert (drawn.segments, drawn.differing, drawn.population, drawn.chosen) == (9, 6, 9, 9)
    differing, drawn = choose(lines(9), complete(), 1)
    assert indices(differing) == [1, 2, 4, 5, 7, 8]
    assert (drawn.segments, drawn.differing, drawn.population, drawn.chosen) == (9, 6, 6, 6)
    assert {choice.weight for choice in everything + differing} == {1.0}


THREE = [line(0, "x", "x", "y"), line(1, "x", "y", "x"), line(2, "x", "y", "z"), line(3, "x", "x", "x")]


@pytest.mark.parametrize(
    ("pair", "chosen"), [("ab", [1, 2]), ("ba", [1, 2]), ("ac", [0, 2]), ("bc", [0, 1, 2])]
)
def test_segments_on_which_two_named_systems_differ(pair: str, chosen: list[int]) -> None:
    settings = complete(differ_between=list(pair))
    choices, drawn = choose(THREE, settings, 1, between=[SYSTEMS.index(name) for name in pair])
    assert indices(choices) == chosen
    assert (drawn.segments, drawn.differing, drawn.population) == (4, 3, len(chosen))
    assert drawn.between == list(pair)


def test_disagreement_and_strata_draw_from_the_same_segments() -> None:
    metric = {index: (float(index), 0.0, 1.0) for index in range(60)}
    for more in (
        {"select": "disagreement", "metrics": ["m"], "items": 5},
        {"select": "stratified", "items": 5},
    ):
        settings = complete(differ_between=["a", "b"], **more)
        choices, drawn = choose(lines(60), settings, 1, [metric], between=[0, 1])
        assert drawn.population == 40
        assert {choice.index % 3 for choice in choices} <= {1, 2}


def test_strata_are_sampled_in_proportion_and_weights_make_up_for_the_rest() -> None:
    documents = ["news"] * 60 + ["talk"] * 30 + ["tiny"] * 1
    population = [line(i, "x", "y", "z", document=name) for i, name in enumerate(documents)]
    chosen, _ = choose(population, complete(select="stratified", strata=["document"], items=10), 1)
    of_document = Counter(choice.document for choice in chosen)
    assert of_document == {"news": 6, "talk": 3, "tiny": 1}
    for name, size in Counter(documents).items():
        stands_for = sum(choice.weight for choice in chosen if choice.document == name)
        assert stands_for / 10 == pytest.approx(size / len(documents))
    by_length = [line(i, "x", "y", "z", source="s" * (i + 1)) for i in range(80)]
    chosen, _ = choose(by_length, complete(select="stratified", items=8), 1)
    assert Counter((len(choice.source) - 1) // 20 for choice in chosen) == {0: 2, 1: 2, 2: 2, 3: 2}


ALL_APART = [line(i, "x", "y", "z", document=str(i)) for i in range(5)]
FEWER = {"select": "stratified", "strata": ["document"], "items": 4}


@pytest.mark.parametrize(
    ("lines", "given", "message"),
    [
        ([line(0, "x", "x", "x")], {}, "the same output for every segment: nothing to rate"),
        (THREE[:1], {"differ_between": ["a", "b"]}, "^a and b give the same output for every segment"),
        (ALL_APART, FEWER, "5 strata by document for 4 segments: ask for more with sample.items"),
    ],
)
def test_what_cannot_be_drawn_is_said(lines: list[Line], given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choose(lines, complete(**given), 1, between=[0, 1] if "differ_between" in given else None)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.data())
def test_shares_add_up_fit_and_are_those_of_one_at_a_time(sizes: list[int], data: st.DataObject) -> None:
    total = data.draw(st.integers(len(sizes), sum(sizes)))
    counts = proportional(sizes, total)
    assert sum(counts) == total
    for count, size in zip(counts, sizes, strict=True):
        assert 1 <= count <= size
        share = total * size / sum(sizes)
        assert count == 1 or count < share + 1  # only the smallest are above their share
    assert counts == furthest_below(sizes, total)


def furthest_below(sizes: list[int], total: int) -> list[int]:
    """The same one at a time, looking at all sizes again for each."""
    counts = [1] * len(sizes)
    for _ in range(total - len(sizes)):
        with_room = [at for at, size in enumerate(sizes) if counts[at] < size]
        counts[max(with_room, key=lambda at: total * sizes[at] / sum(sizes) - counts[at])] += 1
    return counts


def test_many_strata_do_not_hold_a_transaction() -> None:
    """Looking at all of them for each item took seconds for 500; these would take hours."""
    sizes = [10 + at % 7 for at in range(20_000)]
    assert sum(proportional(sizes, 120_000)) == 120_000


def test_two_metrics_disagree_where_they_order_systems_differently() -> None:
    population = [line(i, "x", "y") for i in range(4)]
    first = {0: (1, 0), 1: (1, 0), 2: (5, 0), 3: (0, 0)}
    second = {0: (20, 10), 1: (10, 20), 2: (10, 20), 3: (10, 20)}
    found = disagreement(population, [first, second])
    assert found[0] == found[3] == 0.0
    assert found[2] == pytest.approx(5 * found[1]) != 0.0
    three = [line(i, "x", "y", "z") for i in range(2)]
    alone = disagreement(three, [{0: (1, 2, 3), 1: (1, 6, 2)}])  # one metric: its largest difference
    assert alone[1] / alone[0] == pytest.approx(5 / 2)


def test_the_scale_of_a_metric_does_not_matter() -> None:
    population = [line(i, "x", "y", "z") for i in range(5)]
    first = {i: (i, 5 - i, 2 * i % 3) for i in range(5)}
    second = {i: (3 * i % 4, i, 2) for i in range(5)}
    hundredfold = {i: tuple(100 * value + 7 for value in values) for i, values in second.items()}
    expected = disagreement(population, [first, second])
    assert disagreement(population, [first, hundredfold]) == pytest.approx(expected)


def test_metrics_that_agree_everywhere_are_said() -> None:
    population = [line(i, "x", "y") for i in range(3)]
    values = {i: (i, i + 1) for i in range(3)}
    with pytest.raises(InputError, match="never disagree"):
        disagreement(population, [values, values])
    with pytest.raises(InputError, match="no value for segment 3"):
        disagreement(population, [{0: (0, 1), 1: (1, 2)}])


def test_the_most_disagreement_beside_a_random_part() -> None:
    population = [line(i, "x", "y", "z") for i in range(100)]
    metric = {i: (0.0, 0.0, float(i)) for i in range(100)}
    chosen, drawn = choose(population, complete(select="disagreement", metrics=["m"], items=20), 3, [metric])
    by_choice, at_random = indices(chosen), indices(chosen, "random")
    assert (len(by_choice), len(at_random), drawn.chosen) == (16, 4, 20)
    rest = [i for i in range(99, -1, -1) if i not in at_random]
    assert sorted(by_choice) == sorted(rest[:16])
    assert min(at_random) < min(by_choice)


@given(st.integers(2, 14), st.integers(2, 14), st.sampled_from([0.1, 0.3, 0.6, 0.9]), st.integers(0, 99))
def test_a_choice_by_disagreement_always_holds_a_random_part(
    size: int, limit: int, share: float, seed: int
) -> None:
    population = [line(i, "x", "y") for i in range(size)]
    metric = {i: (0.0, float(i % 5) + 1) for i in range(size)}
    wanted = complete(select="disagreement", metrics=["m"], items=limit, random_share=share)
    chosen, _ = choose(population, wanted, seed, [metric])
    assert Counter(choice.index for choice in chosen).most_common(1)[0][1] == 1
    assert len(chosen) == min(size, limit)
    assert indices(chosen, "random")
    assert indices(chosen)
    assert sum(choice.weight for choice in chosen) == pytest.approx(len(chosen))


def test_the_weighted_mean_estimates_the_population_without_bias() -> None:
    """Over many seeds, for a value that goes with the disagreement; the plain mean is far off."""
    population = [line(i, "x", "y") for i in range(40)]
    metric = {i: (0.0, float(i)) for i in range(40)}
    wanted = complete(select="disagreement", metrics=["m"], items=12, random_share=0.5)
    weighted, plain = [], []
    for seed in range(400):
        chosen, _ = choose(population, wanted, seed, [metric])
        weighted.append(sum(c.weight * c.index for c in chosen) / len(chosen))
        plain.append(sum(c.index for c in chosen) / len(chosen))
    assert sum(weighted) / 400 == pytest.approx(19.5, abs=0.5)  # standard error 0.17
    assert sum(plain) / 400 > 25


# ---------------------------------------------------------------- items


def items(protocol: str, pairs: str = "all", seed: int = 1) -> list[ItemContent]:
    texts = [line(0, "u", "v", "u"), line(1, "x", "y", "z"), line(2, "w", "w", "w")]
    wanted = complete(protocol, select="all" if protocol != "preference" else None, pairs=pairs)
    choices, _ = choose(texts, wanted, 1)
    pages = make_pages(choices, find_protocol(protocol), wanted, SYSTEMS, seed)
    return [item for page in pages for item in page]


X, Y, Z = (((at,), ("xyz"[at],)) for at in range(3))
ALONE = [((0, 2), ("u", "u")), ((1,), ("v",))], [X, Y, Z], [((0, 1, 2), ("w", "w", "w"))]
XY, XZ, YZ = (((0, 1), ("x", "y")), ((0, 2), ("x", "z")), ((1, 2), ("y", "z")))
EVERY = [((0, 1), ("u", "v")), ((1, 2), ("v", "u"))], [XY, XZ, YZ], []


@pytest.mark.parametrize(
    ("protocol", "pairs", "expected"),
    [
        ("contrastive-da", "all", [[((0, 1, 2), tuple(texts))] for texts in ("uvu", "xyz", "www")]),
        ("da", "all", ALONE),
        ("da-sqm", "all", ALONE),
        ("preference", "all", EVERY),
        ("preference", "baseline", [[pair for pair in pairs if 0 in pair[0]] for pairs in EVERY]),
    ],
)
def test_each_protocol_has_its_items(protocol: str, pairs: str, expected: Any) -> None:
    """All systems side by side, each distinct text alone, or the pairs that differ; by segment."""
    found = items(protocol, pairs)
    for segment, own in enumerate(expected):
        shown = [
            (tuple(map(SYSTEMS.index, one.systems)), one.outputs) for one in found if one.segment == segment
        ]
        assert sorted(shown) == sorted(own)


def test_what_is_left_open_comes_from_the_protocol() -> None:
    usual = {"contrastive-da": ("differing", 1.0, 0.1), "preference": ("differing", 0.75, 0.1)}
    for protocol, told in (usual | {"da": ("all", 0.5, 2.0)}).items():
        found = complete(protocol)
        assert (found.select, found.minutes_per_item, found.delta, found.baseline) == (*told, "a")
    assert CampaignSettings().complete(find_protocol("da"), ["b", "c"], "a").baseline == "b"


@pytest.mark.parametrize(
    ("protocol", "given", "message"),
    [
        ("preference", {"select": "all"}, "two equal texts"),
        ("da", {"select": "disagreement", "items": 5}, "sample.metrics: disagreement needs one metric"),
        ("da", {"select": "disagreement", "metrics": ["bleu"]}, "sample.items: say how many"),
        ("da", {"select": "stratified", "strata": []}, "sample.strata: give length, document or both"),
        ("da", {"baseline": "d"}, "baseline: 'd' does not take part: use one of a, b, c"),
        ("da", {"differ_between": ["a"]}, "sample.differ_between: needs two of the systems a, b, c, not a$"),
        ("da", {"differ_between": ["a", "a"]}, "needs two of the systems"),
        ("da", {"differ_between": ["a", "d"]}, "needs two of the systems a, b, c, not a, d"),
        ("da", {"differ_between": ["a", "b"], "select": "all"}, "sample.kind all takes every one"),
        ("da", {"design": "adaptive", "systems_per_page": 3}, "all 3 do: set sample.systems_per_page below"),
        ("da", {"design": "adaptive"}, "does nothing without sample.systems_per_page"),
        ("preference", {"pairs": "baseline", "systems_per_page": 2}, "is not on every page of 2 of 3"),
    ],
)
def test_settings_that_do_not_fit_are_refused(protocol: str, given: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        complete(protocol, **given)
