"""Moses' tokens and escapes, undone: cases whose text is known."""

from __future__ import annotations

import pytest

from creamtea_workers.corpora.text import detokenise, primary

ENGLISH = {
    "I don &apos;t know , but it &apos;s fine .": "I don't know, but it's fine.",
    "they &apos;ve said : &quot; no ! &quot;": 'they\'ve said: "no!"',
    "the Jones &apos; house": "the Jones' house",
    "( see 3 ) , &#91; 1 &#93; and 20 % of $ 5": "(see 3), [1] and 20% of $5",
    "a state-of-the-art machine": "a state-of-the-art machine",
    "state @-@ of @-@ the @-@ art": "state-of-the-art",
    "R &amp; D": "R & D",
    "A &#124; B &lt; C &gt; D": "A | B < C > D",
    "&amp;": "&",
    "write &amp;quot; for a quote": "write &quot; for a quote",  # an escape that the text itself holds
    "plain text, untokenised, it's kept.": "plain text, untokenised, it's kept.",
    "": "",
}
GERMAN = {
    "Er sagte : „ Ja , gut “ .": "Er sagte: „Ja, gut“.",
    "EU- und UN-Mittel ( neu ) ; gut ?": "EU- und UN-Mittel (neu); gut?",
    "z. B. 3,5 Millionen": "z. B. 3,5 Millionen",
    "&quot; Ja &quot; , sagte er": '"Ja", sagte er',
}


@pytest.mark.parametrize("line, text", ENGLISH.items())
def test_english(line: str, text: str) -> None:
    assert detokenise(line, "en") == text


@pytest.mark.parametrize("line, text", GERMAN.items())
def test_german(line: str, text: str) -> None:
    assert detokenise(line, "de") == text


def test_rules_are_those_of_the_language() -> None:
    assert detokenise("l&apos; homme", "fr") == "l'homme"
    assert detokenise("l&apos; homme", "en") == "l' homme"


def test_a_regional_code_has_the_rules_of_its_language() -> None:
    assert primary("en-GB") == primary("en_GB") == "en"
    assert detokenise("it &apos;s", "en-GB") == "it's"
