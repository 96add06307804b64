"""The sentences that the demo trains on and is tested with, as studies/tatoeba/README.md describes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "studies" / "tatoeba"


def pairs(part: str) -> list[tuple[str, str]]:
    sides = [(FOLDER / f"{part}.{language}").read_text("utf-8").split("\n") for language in ("en", "de")]
    assert sides[0].pop() == sides[1].pop() == ""
    return list(zip(*sides, strict=True))


def words(part: str, side: int) -> set[str]:
    return {" ".join(re.findall(r"\w+", pair[side].casefold())) for pair in pairs(part)}


def test_each_sentence_is_in_one_part_only() -> None:
    assert [len(pairs(part)) for part in ("train", "dev", "test")] == [12104, 300, 300]
    for side in (0, 1):
        assert not words("train", side) & (words("dev", side) | words("test", side))
        assert not words("dev", side) & words("test", side)


def test_idioms_are_whole_words_of_their_sentences() -> None:
    lines = (FOLDER / "test.idioms.jsonl").read_text("utf-8").splitlines()
    idioms = [
        (pair, idiom) for pair, line in zip(pairs("test"), lines, strict=True) for idiom in json.loads(line)
    ]
    assert len(idioms) == 46
    for pair, idiom in idioms:
        for text, side in zip(pair, ("source", "target"), strict=True):
            start, end = idiom[side]
            around = f" {text} "[start : end + 2]
            assert re.fullmatch(r"\W\w.*\w\W", around), idiom
