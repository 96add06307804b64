"""IdiomTranslationDS: idioms' words in the source, their translations in the reference."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.errors import StepError
from creamtea.methods.texts import Languages
from creamtea_workers.corpora import idioms
from creamtea_workers.corpora.files import Pair
from creamtea_workers.corpora.idioms import (
    Idiom,
    align,
    annotate,
    entries,
    find,
    places_of,
    read_info,
    spans,
    split_words,
)
from creamtea_workers.corpora.segments import Segment

# ---------------------------------------------------------------- lemmas

FORMS = [
    ("en", "pass", "pass passes passed passing", "past compass passage"),
    ("en", "take", "takes took taken taking", "taker stake"),
    ("en", "carry", "carries carried carrying", "carriage"),
    ("en", "beat", "beats beaten beating", "beast"),
    ("en", "sell", "sold selling", "seller"),
    ("en", "be", "is was been 're", "bee"),
    ("de", "maßstab", "maßstäbe maßstäben massstab maßstabs", "maßgabe"),
    ("de", "gehen", "geht ging gegangen gehend", "geben"),
    ("de", "schließen", "schließt schloß geschlossen", "schlüssel"),
    ("de", "annehmen", "annimmt angenommen anzunehmen annahm", "abnehmen an"),
    ("de", "vergehen", "verging vergangen vergeht", "verstehen"),
    ("de", "meißeln", "gemeißelt meißelt", "meise"),
    ("de", "neu", "neue neuen neuester", "neugier"),
    ("de", "die", "der den dem das des", "dies"),
    ("de", "sein", "ist waren seine ihren unsere", "seit"),
    ("de", "zeihen|ziehen", "zieht gezogen", "zeigt"),
    ("en-GB", "go", "went gone goes", "good"),
    ("nl", "breken", "brekend brekers", "breekt br"),  # of other languages the first four letters
]

LANGUAGES = Languages(source="en", target="de")


@pytest.mark.parametrize("language, lemma, forms, others", FORMS)
def test_forms_of_a_lemma(language: str, lemma: str, forms: str, others: str) -> None:
    words = forms.split()
    assert places_of(lemma, [*words, *others.split()], language) == list(range(len(words)))


def test_a_separated_verb_needs_its_prefix_after_it() -> None:
    assert places_of("annehmen", ["er", "nimmt", "es", "an"], "de") == [1]
    assert places_of("annehmen", ["an", "ihm", "nimmt", "er"], "de") == []
    assert places_of("annehmen", ["er", "nahm", "es", "an"], "deu_Latn") == [1]


# ---------------------------------------------------------------- .info


def test_an_info_file_is_read() -> None:
    lines = [
        "1\tto pass on\tdas zeitliche segnen\t834",
        "-1\tsomething &apos;s up .\tetwas liegt an",
        "0\tan eine strang zeihen|ziehen",
    ]
    idioms = read_info(lines, "i", LANGUAGES)
    assert idioms == [
        Idiom("to pass on", ["to", "pass", "on"], 1, "das zeitliche segnen"),
        Idiom("something's up.", ["something", "'s", "up", "."], -1, "etwas liegt an"),
        Idiom("an eine strang zeihen|ziehen", ["an", "eine", "strang", "zeihen|ziehen"], 0),
    ]


@pytest.mark.parametrize("line", ["", "to pass on\t1", "1", "1\t ", "1.5\tto pass on"])
def test_a_line_of_another_format_is_named(line: str) -> None:
    with pytest.raises(StepError, match=r"test\.info, line 2: a line must be the idiom's spread"):
        read_info(["1\tto pass on\tx", line], "test.info", LANGUAGES)


# ---------------------------------------------------------------- the idiom's words


def found(phrase: str, spread: int, text: str, language: str = "en") -> str | None:
    words = split_words(text)
    places = find(Idiom(phrase, phrase.split(), spread), words, language)
    return None if places is None else " ".join(words[place].text for place in places)


FINDS = [
    ("in a nutshell", -1, "The rules, in a way, are in a nutshell: none.", "in a nutshell"),
    ("to close the door", 0, "Let us work to close the back door to the road.", "close the door"),
    ("to take it easy", 0, "it is easy to take trains", "it easy take"),
    ("to pass on", 1, "I pass on that information to you on time", "pass on"),
    ("to pass on", 5, "He passed it on", "passed on"),  # another spread than the stated: the nearest
    ("to come to the fore", -2, "It has come to the fore again", "come to the fore"),  # one "to" for two
    ("without a shadow of a doubt", -2, "a man without a shadow of doubt", "without a shadow of doubt"),
    ("i say !", -1, "Well, I say: no.", "i say"),  # the mark is missing
    ("to bite the bullet", -1, "He bit the apple", None),
    ("!", -1, "No words", None),
]


@pytest.mark.parametrize("phrase, spread, text, expected", FINDS)
def test_the_words_are_found_by_their_spread(phrase: str, spread: int, text: str, expected: str) -> None:
    assert found(phrase, spread, text) == expected


def test_german_words_are_found_by_their_lemmas() -> None:
    text = "Die Systeme setzen hier ganz neue Maßstäbe."
    assert found("neu maßstab setzen", 1, text, "de") == "setzen neue maßstäbe"


@given(st.lists(st.sampled_from("abcxy"), min_size=1, max_size=9), st.integers(-2, 5))
def test_a_choice_with_the_stated_spread_is_taken_where_there_is_one(text: list[str], spread: int) -> None:
    idiom, words = Idiom("a b c", ["a", "b", "c"], spread), split_words(" ".join(text))
    choices = list(itertools.product(*([i for i, w in enumerate(text) if w == word] for word in "abc")))
    places = find(idiom, words, "xx")
    if not choices:
        assert places is None
        return
    spreads = {max(choice) - min(choice) - 3 for choice in choices}
    assert sorted(places) == places
    assert tuple(places) in {tuple(sorted(set(choice))) for choice in choices}
    assert (places[-1] - places[0] - 3 == spread) == (spread in spreads)


# ---------------------------------------------------------------- spans


def test_words_are_those_of_the_text() -> None:
    text = "Don't stop, 3.5 state-of-the-art things... (now)"
    words = split_words(text)
    assert [text[word.start : word.end] for word in words] == (
        ["Don", "'t", "stop", ",", "3.5", "state-of-the-art", "things", "...", "(", "now", ")"]
    )


def test_neighbours_are_one_span_and_a_gap_begins_another() -> None:
    text = "it is easy to take a train"
    cut = [text[start:end] for start, end in spans(split_words(text), [0, 2, 3, 6])]
    assert cut == ["it", "easy to", "train"]


def test_the_side_with_fewer_pieces_repeats_its_last() -> None:
    assert entries("i", [[0, 1], [4, 5], [8, 9]], [[2, 3], [6, 7]]) == [
        {"name": "i", "source": [0, 1], "target": [2, 3]},
        {"name": "i", "source": [4, 5], "target": [6, 7]},
        {"name": "i", "source": [8, 9], "target": [6, 7]},
    ]


# ---------------------------------------------------------------- alignment

LEXICON = {
    "the": "das",
    "cat": "katze",
    "dog": "hund",
    "sleeps": "schläft",
    "runs": "rennt",
    "fast": "schnell",
}
LEXICON |= {f"w{number}": f"x{number}" for number in range(24)}


def training(repeat: int = 1) -> list[Pair]:
    """Word-by-word translations in any order."""
    rng, pairs = random.Random(1), []
    for _ in range(300):
        words = rng.sample(sorted(LEXICON), 4)
        order = rng.sample(words, 4)
        pairs.append(Pair(" ".join(words) + "!", " ".join(LEXICON[word] for word in order) + "!"))
    return pairs * repeat


def silent(done: int, total: int) -> None:
    assert 0 < done <= total


def test_words_are_aligned_to_their_translations_whatever_the_case() -> None:
    source, target = split_words("The dog runs"), split_words("Das rennt Hund")
    (links,) = align([source], [target], training(), silent)
    assert links == {(0, 0), (1, 2), (2, 1)}


def test_repetition_of_training_pairs_changes_nothing() -> None:
    source, target = split_words("the dog cat fast"), split_words("hund das schnell xyz")
    assert align([source], [target], training(3), silent) == align([source], [target], training(), silent)


def test_words_are_numbered_by_frequency_then_by_their_first_place(monkeypatch: pytest.MonkeyPatch) -> None:
    side = idioms._Side()
    for text in ("b a", "", "c a b dddd", "ddddx"):
        side.add(split_words(text))
    assert [row.tolist() for row in side.rows()] == [[1, 2], [], [4, 2, 1, 3], [3]]
    monkeypatch.setattr(idioms, "VOCABULARY", 2)
    assert [row.tolist() for row in side.rows()] == [[1, 2], [], [0, 2, 1, 0], [0]]


def test_training_text_in_parts_and_shards_is_aligned_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = split_words("the dog cat fast"), split_words("hund das schnell xyz")
    whole = align([source], [target], training(), silent)
    monkeypatch.setattr(idioms, "PART", 7)
    monkeypatch.setattr(idioms, "SHARD", 11)
    assert align([source], [target], iter(training(2)), silent) == whole


def test_segments_are_annotated_where_words_are_found_and_aligned() -> None:
    segments = [
        Segment("The dog sleeps fast!", "Das schläft Hund schnell!", []),
        Segment("the cat runs", "das rennt Katze", []),  # has no dog
        Segment("the dog", "", []),  # nothing to align to
    ]
    idiom = Idiom("to dog fast", ["to", "dog", "fast"], 0, "schnell hunden")
    one = Idiom("to dog", ["to", "dog"], -1, "hunden")
    result = annotate(segments, [idiom, idiom, one], training(), "en", silent)
    assert result.counts == {"found": 2, "aligned": 1}
    first, second, third = (segment.idioms for segment in result.segments)
    dictionary = {"source": "to dog fast", "target": "schnell hunden"}
    assert second == [{"name": "to dog fast", "source": [], "target": [], "words": dictionary}]
    assert [(note["source"], note["target"]) for note in third] == [([4, 7], [])]
    assert [note.get("words") for note in first] == [dictionary, None]
    assert {segment_text(segments[0].source, note["source"]) for note in first} == {"dog", "fast"}
    assert [segment_text(segments[0].reference, note["target"]) for note in first] == ["Hund schnell"] * 2


def segment_text(text: str, span: list[int]) -> str:
    return text[slice(*span)]
