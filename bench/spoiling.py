"""Changes to a text that a person or a program might make by mistake."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

WEIRD = (
    *("", "~", "true", "no", "-1", "0", "1e300", ".nan", ".inf", "1_000", "0x10", "2001-01-01", "[]", "{}"),
    *("[1, [2]]", "{kind: x}", "&a 1", "*a", "!!set {}", "'", '"', "\t", "\u0000", "\ud7ff", "\u202e", "🙂"),
    *("../../etc/passwd", "/dev/zero", "/", ".", "x" * 3000, "9" * 40, "<script>", "%", "{0}", "$(x)", "--"),
)

NUMBERS = ("0", "1", "2", "3", "5", "11", "40", "150", "1000", "65537", "0.01", "0.5", "1.0", "1.5", "8.0")
WORDS = ("true", "false", "no", "moses", "bpe", "unigram", "characters")


def spoilt(text: str, rng: random.Random) -> str:
    """One to three changes to a text of lines."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice(CHANGES)(text, rng)
    return text


def nudged(text: str, rng: random.Random) -> str:
    """One to three numbers, kinds or truth values of a text changed into others that could stand there."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(
            re.finditer(r"(?<=[ \[])(\d[\d.]*|true|false|no|moses|bpe|unigram|characters)(?=[,}\]\n])", text)
        )
        place = rng.choice(places)
        new = rng.choice(NUMBERS) if place[0][0].isdigit() else rng.choice(WORDS)
        text = text[: place.start()] + new + text[place.end() :]
    return text


def _lines(change: Callable[[list[str], int, random.Random], None]) -> Callable[[str, random.Random], str]:
    def changed(text: str, rng: random.Random) -> str:
        lines = text.split("\n")
        change(lines, rng.randrange(len(lines)), rng)
        return "\n".join(lines)

    return changed


def _drop(lines: list[str], at: int, rng: random.Random) -> None:
    del lines[at : at + rng.randint(1, 3)]


def _repeat(lines: list[str], at: int, rng: random.Random) -> None:
    lines[at:at] = lines[at : at + rng.randint(1, 3)]


def _swap(lines: list[str], at: int, rng: random.Random) -> None:
    other = rng.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _indent(lines: list[str], at: int, rng: random.Random) -> None:
    lines[at] = (
        rng.choice(("  ", " ", "\t", "    ")) + lines[at] if rng.random() < 0.5 else lines[at].lstrip()
    )


def _word(lines: list[str], at: int, rng: random.Random) -> None:
    """A word is replaced by a strange one, or by another word of the text."""
    words = lines[at].split(" ")
    others = rng.choice(lines).replace(":", " ").replace(",", " ").split()
    new = rng.choice(WEIRD) if rng.random() < 0.6 or not others else rng.choice(others)
    words[rng.randrange(len(words))] = new
    lines[at] = " ".join(words)


def _number(lines: list[str], at: int, rng: random.Random) -> None:
    numbers = ("0", "-1", "1", "2", "0.5", "1000000", "1e9", "1e-9", "-0.0", "4.0", "65537")
    lines[at] = "".join(rng.choice(numbers) if character.isdigit() else character for character in lines[at])


def _value(lines: list[str], at: int, rng: random.Random) -> None:
    key, colon, _ = lines[at].partition(":")
    lines[at] = key + colon + " " + rng.choice(WEIRD)


def _character(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    strange = rng.choice([*"{}[]:,&*#?|-<>=!%@`'\"\\ \n\t", *WEIRD])
    return text[:at] + strange + text[at + rng.randint(0, 2) :]


def _cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


CHANGES = (
    *map(_lines, (_drop, _repeat, _swap, _indent, _word, _word, _number, _value, _value)),
    *(_character, _character, _cut),
)
