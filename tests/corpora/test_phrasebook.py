"""The phrasebook: agreement, joins, idioms' places, what is held out; the one that ships."""

import re
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import pytest

from creamtea.errors import StepError
from creamtea_workers.corpora import phrasebook
from creamtea_workers.corpora.phrasebook import Pattern, Phrasebook, Word
from creamtea_workers.corpora.segments import Segment
from creamtea_workers.corpora.text import iterate_lines

SHIPPED = Path(__file__).parents[2] / "studies" / "phrasebook" / "phrasebook.txt"
SIDES = ("source", "target")
SMALL = """
[join source]
a(?= [aeiou]) -> an
[join target]
in dem -> im
[forms]
has: 3 has, * have
his: 1 my, 3 his
haben: 1 habe, 3 hat
ein: m ein, f eine
[words who] name = name
I = ich (1)
Tom = Tom (3)
[words thing] name = name
apple = Apfel (m)
pear = Birne (f)   # a comment
[words do] past = rest / part / aux
bought bread = Brot / gekauft / haben
! lost {his@who} temper = aus der Haut / gefahren / haben
[patterns]
there is a {thing} in the house. = in dem Haus ist {ein@thing} {thing}.
{who} {do}, {who} {has@who} said. = gestern {do.aux@who} {who} {do.rest} ganz {do.part}.
"""


def small(*changes: tuple[str, str]) -> Phrasebook:
    text = SMALL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return Phrasebook.read(text.splitlines())


def sentences(book: Phrasebook, count: int, held_out: bool, **changes: object) -> list[Segment]:
    given = {"stream": "1 train", "seed": 1, "idiom_rate": 0.5, "seen": set(), **changes}
    return list(islice(book.sentences(held_out=held_out, **given), count))  # type: ignore[arg-type]


def all_of(book: Phrasebook) -> dict[str, Segment]:
    made: dict[str, Segment] = {}
    few = 500  # draws without a new one: there are six

    def collect(held_out: bool) -> None:
        for segment in book.sentences("1", 1, 0.5, held_out, set()):
            made[segment.source] = segment

    for held_out in (False, True):
        with patch.object(phrasebook, "MAX_REPEATS", few), pytest.raises(StepError, match="hardly more than"):
            collect(held_out)
    return made


def test_words_agree_and_are_joined() -> None:
    made = {source: segment.reference for source, segment in all_of(small()).items()}
    assert made == {
        "There is an apple in the house.": "Im Haus ist ein Apfel.",
        "There is a pear in the house.": "Im Haus ist eine Birne.",
        "I bought bread, I have said.": "Gestern habe ich Brot ganz gekauft.",
        "Tom bought bread, Tom has said.": "Gestern hat Tom Brot ganz gekauft.",
        "I lost my temper, I have said.": "Gestern habe ich aus der Haut ganz gefahren.",
        "Tom lost his temper, Tom has said.": "Gestern hat Tom aus der Haut ganz gefahren.",
    }


def test_a_section_gives_words_to_two_classes() -> None:
    book = small(
        ("[patterns]", "[words item thing] name = name\nbox = Kiste (f)\n- bed = Bett (n)\n[patterns]")
    )
    names = {name: [word.name for word in book.words[name]] for name in ("item", "thing")}
    assert names["item"] == ["box", "bed"]
    assert names["thing"][-1] == "box"
    assert "bed" not in names["thing"]


def test_each_piece_of_an_idiom_has_its_place() -> None:
    segment = all_of(small())["Tom lost his temper, Tom has said."]
    found = [
        (
            idiom["name"],
            *(text[slice(*(idiom[side] or [0]))] for text, side in zip(segment[:2], SIDES, strict=True)),
        )
        for idiom in segment.idioms
    ]
    name = "lost one's temper"
    assert found == [(name, "lost his temper", "aus der Haut"), (name, "", "gefahren")]


def test_pieces_beside_each_other_are_one() -> None:
    segment = all_of(small((" ganz {do.part}", " {do.part}")))["I lost my temper, I have said."]
    [idiom] = segment.idioms
    assert segment.reference[slice(*idiom["target"])] == "aus der Haut gefahren"


@pytest.mark.parametrize(
    "change, message",
    [
        ((", f eine", ""), "pattern there is a .*ein has no form for f"),
        (("{who} {do},", "{who} {run},"), "pattern .*run"),
        (("bought bread = Brot / gekauft / haben", "bought bread = Brot"), "line 18: "),
        (("I = ich (1)", "I (1)"), "line 12: "),
        (("[join source]", "text"), "line 2: text before"),
        (("bought bread =", "! bought bread ="), "do has only idioms"),
        (("[patterns]", "[words more] name = name"), "no patterns|line "),
    ],
)
def test_mistakes_are_named(change: tuple[str, str], message: str) -> None:
    with pytest.raises(StepError, match=message):
        small(change)


@pytest.fixture(scope="module")
def shipped() -> Phrasebook:
    return Phrasebook.read(iterate_lines(SHIPPED))


@pytest.mark.slow
def test_each_test_sentence_has_a_filling_that_its_pattern_never_has_in_training(
    shipped: Phrasebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    fillings: list[set[tuple[str, str, str]]] = []
    write = Phrasebook._written

    def written(book: Phrasebook, pattern: Pattern, filling: dict[str, Word]) -> Segment:
        fillings.append({(pattern.sides[0], slot, word.name) for slot, word in filling.items()})
        return write(book, pattern, filling)

    monkeypatch.setattr(Phrasebook, "_written", written)
    seen: set[str] = set()
    sentences(shipped, 10_000, False, seen=seen)
    trained = set().union(*fillings)
    fillings.clear()
    test = sentences(shipped, 200, True, stream="2 test", seen=seen)
    assert all(filling - trained for filling in fillings)
    assert {pattern for pattern, *_ in set().union(*fillings)} <= {pattern for pattern, *_ in trained}
    assert len(seen) == 10_200
    assert 0.4 < sum(bool(segment.idioms) for segment in test) / len(test) < 0.6


def test_the_same_seed_gives_the_same_sentences(shipped: Phrasebook) -> None:
    assert sentences(shipped, 50, False) == sentences(shipped, 50, False)
    assert sentences(shipped, 50, False) != sentences(shipped, 50, False, stream="2 train")


def test_the_shipped_phrasebook_is_what_its_page_says(shipped: Phrasebook) -> None:
    idioms = [word for words in shipped.words.values() for word in words if word.idiom]
    assert (len(shipped.patterns), len(idioms)) == (253, 63)
    for segment in sentences(shipped, 2000, False, idiom_rate=0.2):
        for text, side in zip(segment[:2], SIDES, strict=True):
            assert re.fullmatch(r"[A-ZÄÖÜ0-9]((?!  )[\w ,'-])+[.?!]", text), text
            for idiom in segment.idioms:
                if idiom[side]:
                    start, end = idiom[side]
                    assert re.fullmatch(r"\W\w.*\w\W", f" {text} "[start : end + 2]), idiom
