"""Which segments are chosen, with which weights, their items, and the controls among them."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from creamtea.errors import InputError
from creamtea.human.making.choosing import choose, disagreement, make_pages, proportional
from creamtea.human.making.controls import spoil, spoilt_length, with_controls
from creamtea.human.making.settings import CampaignSettings, number_of
from creamtea.human.making.texts import Line
from creamtea.human.protocols import find_protocol
from creamtea.human.record import ItemContent
from creamtea.store.tables import ItemKind
from creamtea.words import characters

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
    with pytest.raises(InputError, match="3 strata by document for 2 segments: ask for more with sample"):
        choose(population, complete(select="stratified", strata=["document"], items=2), 1)
    by_length = [line(i, "x", "y", "z", source="s" * (i + 1)) for i in range(80)]
    chosen, _ = choose(by_length, complete(select="stratified", items=8), 1)
    assert Counter((len(choice.source) - 1) // 20 for choice in chosen) == {0: 2, 1: 2, 2: 2, 3: 2}


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
        ("contrastive-da", {}, "the same output for every segment: nothing to rate"),
        ("contrastive-da", {"differ_between": ["a", "b"]}, "^a and b give the same output for every segment"),
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
    """Or fit no segment: all say the same."""
    same = [line(at, "x", "x", "x") for at in range(5)]
    with pytest.raises(InputError, match=message):
        choose(same, complete(protocol, **given), 1, between=[0, 1] if "differ_between" in given else None)


# ---------------------------------------------------------------- bad references and repeats


WORDS = st.text("abcäß中", min_size=1, max_size=3)
SENTENCES = st.lists(WORDS, max_size=30).map(" ".join)


def item(index: int, *outputs: str, systems: tuple[str, ...] | None = None) -> ItemContent:
    return ItemContent(
        kind=ItemKind.RATED,
        segment=index,
        source=f"source {index}",
        systems=systems or tuple("abcdefgh"[: len(outputs)]),
        outputs=outputs,
        weight=1.5,
    )


def many(count: int) -> list[ItemContent]:
    return [item(i, f"first text number {i}", f"second text number {i}") for i in range(count)]


REFERENCES = {i: f"the reference of segment {i} has these words" for i in range(200)}


def controlled(items: list[ItemContent], references: dict[int, str] = REFERENCES, **given: Any) -> Any:
    chosen = CampaignSettings(**{"bad_references": 0, "repeats": 0, **given})
    return flat(with_controls([[one] for one in items], references, chosen, "en", 5))


def flat(pages: list[list[ItemContent]]) -> list[ItemContent]:
    return [one for page in pages for one in page]


@pytest.mark.parametrize(
    ("tokens", "length"),
    [(0, 0), (1, 1), (2, 2), (5, 2), (6, 3), (8, 3), (9, 4), (15, 4), (16, 5), (20, 5), (21, 5), (43, 10)],
)
def test_how_much_is_replaced(tokens: int, length: int) -> None:
    assert spoilt_length(tokens) == length
    assert spoilt_length(tokens, characters=True) == min(tokens, 2 * length)


UNSPACED = {
    "th": ("แมวนอนอยู่บนโต๊ะ", "ฉันชอบดื่มชาร้อน"),
    "lo": ("ແມວນອນຢູ່ເທິງໂຕະ", "ຂ້ອຍມັກດື່ມຊາຮ້ອນ"),
    "km": ("ឆ្មាដេកនៅលើតុ", "ខ្ញុំចូលចិត្តផឹកតែក្តៅ"),
    "my": ("ကြောင်သည်စားပွဲပေါ်တွင်အိပ်သည်", "ကျွန်တော်လက်ဖက်ရည်ကြိုက်သည်"),
    "bo": ("ཞི་མི་ཅོག་ཙེའི་སྟེང་ན་ཉལ", "ང་ཇ་ཚ་པོ་འཐུང་རྒྱུར་དགའ"),
    "zh-TW": ("貓睡在桌子上面", "我喜歡喝很熱的茶"),
    "jpn": ("猫は机の上で寝ている", "私は熱いお茶が好きです"),
}


@pytest.mark.parametrize("language", UNSPACED)
def test_no_blanks_where_a_language_has_none(language: str) -> None:
    text, reference = UNSPACED[language]
    before = characters(text)
    for seed in range(20):
        spoilt = spoil(text, [reference], language, random.Random(seed))
        assert spoilt is not None
        assert spoilt != text
        assert " " not in spoilt
        after = characters(spoilt)
        assert len(after) == len(before)
        assert set(after) <= {*before, *characters(reference)}  # no mark has left its letter
        changed = [at for at in range(len(before)) if after[at] != before[at]]
        assert 0 < changed[-1] - changed[0] + 1 <= spoilt_length(len(before), characters=True)


@given(SENTENCES, st.lists(SENTENCES, max_size=5), st.sampled_from(["de", "zh", "ja"]), st.integers(0, 99))
def test_a_spoilt_text_differs_in_one_run_of_the_length_asked_for(
    text: str, references: list[str], language: str, seed: int
) -> None:
    spoilt = spoil(text, references, language, random.Random(seed))
    assert spoilt == spoil(text, references, language, random.Random(seed))
    cut = characters if language != "de" else str.split
    tokens = cut(text)
    length = spoilt_length(len(tokens), characters=language != "de")
    assume(spoilt is not None)
    found = cut(spoilt)
    assert found != tokens
    assert len(found) == len(tokens)
    changed = [at for at in range(len(tokens)) if found[at] != tokens[at]]
    assert changed[-1] - changed[0] < length
    donors = [cut(reference) for reference in references]
    windows = range(max(0, changed[-1] - length + 1), min(changed[0], len(tokens) - length) + 1)
    assert any(
        found[at : at + length] == donor[start : start + length]
        for at in windows
        for donor in donors
        for start in range(len(donor) - length + 1)
    )


@pytest.mark.parametrize(
    ("text", "references"), [("", ["a b"]), ("a b", []), ("a b", ["a"]), ("a a", ["a a a"]), ("a b c", ["b"])]
)
def test_what_cannot_be_spoilt_is_none(text: str, references: list[str]) -> None:
    assert spoil(text, references, "en", random.Random(1)) is None


def test_controls_are_their_originals_half_a_batch_later_but_for_one_spoilt_text() -> None:
    placed = controlled(many(100), repeats=5, bad_references=0.05, batch=20)
    places = [at for at, one in enumerate(placed) if one.original is not None]
    assert Counter(placed[at].kind for at in places) == {"repeat": 5, "bad-reference": 5}
    quarters = [sum(lowest <= at < lowest + 25 for at in places) for lowest in range(10, 110, 25)]
    assert all(1 <= quarter <= 5 for quarter in quarters)
    for at in places:
        one = placed[at]
        original = placed[one.original]
        assert (original.kind, one.segment, one.weight) == ("rated", original.segment, 0.0)
        rated_between = sum(other.kind == "rated" for other in placed[one.original + 1 : at])
        assert rated_between == 9  # the original itself makes ten
        texts = zip(one.systems, one.outputs, original.outputs, strict=True)
        changed = [system for system, text, before in texts if text != before]
        assert changed == ([] if one.kind == "repeat" else [one.degraded])
        if changed:
            place = one.systems.index(one.degraded)
            new = set(one.outputs[place].split()) - set(original.outputs[place].split())
            assert str(one.segment) not in new  # the number is in the segment's own reference only


def test_equal_texts_are_spoilt_together_and_empty_ones_passed_over() -> None:
    items = [item(i, "u v w", "u v w", systems=("a", "c")) for i in range(4)]
    (bad,) = (one for one in controlled(items, bad_references=1) if one.kind == "bad-reference")
    assert (bad.degraded, len(set(bad.outputs))) == ("a", 1)
    assert bad.outputs[0] != "u v w"
    items = [item(0, ""), item(1, ""), item(2, "x y"), item(3, "x"), item(4, "x"), item(5, "x")]
    (bad,) = (one for one in controlled(items, bad_references=1) if one.kind == "bad-reference")
    assert bad.segment == 2


def test_an_adaptive_design_keeps_the_spoilt_texts_of_all_systems() -> None:
    items = [
        item(at, *(f"number {at} of {system}" for system in ("one", "two", "three"))) for at in range(40)
    ]
    placed = controlled(items, bad_references=20, batch=2, design="adaptive", systems_per_page=2)
    bad = [one for one in placed if one.kind is ItemKind.BAD_REFERENCE]
    assert len(bad) == 20
    for one in bad:
        spoilt = (one.guidance or {})["spoilt"]
        assert (one.degraded, set(spoilt)) == (None, set(one.outputs))
        assert not set(spoilt.values()) & set(one.outputs)


@given(st.integers(2, 60), st.integers(0, 12), st.integers(0, 12), st.integers(2, 40), st.integers(0, 99))
def test_controls_stand_behind_their_originals_one_each(
    count: int, bad: int, repeats: int, batch: int, seed: int
) -> None:
    half = min(batch, count) // 2
    assume(bad + repeats <= count - half)
    items = many(count)
    pages = [[one] for one in items]
    chosen = CampaignSettings(bad_references=bad, repeats=repeats, batch=batch)
    placed = flat(with_controls(pages, REFERENCES, chosen, "en", seed, first=3))
    assert placed == flat(with_controls(pages, REFERENCES, chosen, "en", seed, first=3))
    assert [one for one in placed if one.original is None] == items
    originals = [one.original - 3 for one in placed if one.original is not None]
    assert len(set(originals)) == len(originals) == bad + repeats
    for at, one in enumerate(placed):
        if one.original is not None:
            assert placed[one.original - 3].segment == one.segment
            assert at - (one.original - 3) >= half


@pytest.mark.parametrize(
    ("given", "references", "message"),
    [
        ({"bad_references": 1}, {0: "", 1: ""}, "the test set has none: set controls.bad_references to 0"),
        ({"bad_references": 4}, REFERENCES, "1 bad references too many: only 3 items have a place"),
        ({"repeats": 4}, REFERENCES, "1 repeats too many: only 3 items .* ask for fewer with controls.rep"),
        ({"bad_references": 2, "repeats": 2}, REFERENCES, "1 repeats too many"),
    ],
)
def test_too_many_controls_are_refused(given: dict, references: dict[int, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        controlled(many(6), references, **given)
    one_page = CampaignSettings(bad_references=1, repeats=0)
    with pytest.raises(InputError, match="1 bad references too many: only 0 pages have a place"):
        with_controls([many(10)], REFERENCES, one_page, "en", 5)


@pytest.mark.parametrize("batch", [2, 9, 10])
def test_a_control_of_a_long_page_stands_behind_it(batch: int) -> None:
    """Half a batch is less than a page."""
    pages = [many(10 * (page + 1))[10 * page :] for page in range(20)]
    settings = CampaignSettings(bad_references=0, repeats=4, batch=batch)
    placed = with_controls(pages, REFERENCES, settings, "en", 5)
    at = [number for number, page in enumerate(placed) if page[0].kind == "repeat"]
    assert len(at) == 4
    for number in at:
        assert flat(placed)[placed[number][0].original] == placed[number - 1][0]


def test_an_amount_is_a_number_or_a_share() -> None:
    assert [number_of(amount, 15) for amount in (0, 3, 0.0, 0.1, 0.5)] == [0, 3, 0, 2, 8]
