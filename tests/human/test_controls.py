"""Bad references and repeats: the recipe, what they are made of, and where they stand."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from creamtea.errors import InputError
from creamtea.human.making.controls import spoil, spoilt_length, with_controls
from creamtea.human.making.settings import CampaignSettings, number_of
from creamtea.human.record import ItemContent
from creamtea.store.tables import ItemKind
from creamtea.words import characters

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
