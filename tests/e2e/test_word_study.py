"""Words from files to a report: a language whose sounds are its letters in capitals is learnt in seconds."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

STUDY = Path(__file__).with_name("words.yaml")
LETTERS = "abcdef"


def words(draw: random.Random, count: int) -> list[str]:
    return ["".join(draw.choices(LETTERS, k=draw.randint(1, 5))) for _ in range(count)]


def sounds(language: str, word: str) -> str:
    """In capitals; in the second language backwards."""
    return " ".join(word.upper() if language == "aaa" else word.upper()[::-1])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, draw = tmp_path_factory.mktemp("data"), random.Random(1)
    for language in ("aaa", "bbb"):
        for part, count in (("train", 200), ("dev", 30), ("test", 30)):
            lines = [f"{word}\t{sounds(language, word)}\n" for word in words(draw, count)]
            (folder / f"{language}.{part}").write_text("".join(lines))
    for name, count in (("many", 100), ("few", 20), ("few.dev", 10), ("few.test", 20)):
        lines = [f"{word}x\t{word}xes\tV;3;SG\n" for word in words(draw, count)]
        (folder / name).write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def study() -> Path:
    return STUDY


def section(report: dict[str, Any], key: str) -> list[dict[str, Any]]:
    (blocks,) = [section["blocks"] for section in report["sections"] if section["key"] == key]
    return list(blocks)


def rows(report: dict[str, Any], test_set: int) -> dict[str, dict[str, Any]]:
    sections = [block for block in section(report, "systems") if block["type"] == "section"]
    (table, *_) = [block for block in sections[test_set]["blocks"] if block["type"] == "table"]
    return {row["name"]: row["cells"] for row in table["rows"]}


def test_the_metrics_are_there_and_the_language_is_learnt(report: dict[str, Any]) -> None:
    of_sounds, of_forms = rows(report, 0), rows(report, 1)
    assert set(of_sounds) == {"rnn", "exact", "ensemble", "transformer"}
    assert set(of_forms) == {"gated", "mbr"}
    for cells in (*of_sounds.values(), *of_forms.values()):
        for metric in ("wer", "per", "accuracy", "levenshtein"):
            assert cells[metric]["state"] == "ok"
        assert cells["wer"]["value"] + cells["accuracy"]["value"] == pytest.approx(100.0)
    assert of_sounds["rnn"]["per"]["value"] < 20
    assert of_sounds["ensemble"]["per"]["value"] <= of_sounds["rnn"]["per"]["value"] + 2
    assert (of_sounds["rnn"]["per"]["seeds"], of_sounds["ensemble"]["per"]["seeds"]) == (2, 1)
    assert "ensemble of 2" in json.dumps(report, ensure_ascii=False)


def test_scores_by_language_are_those_that_the_mean_is_of(report: dict[str, Any]) -> None:
    (sounds, forms) = [block["blocks"] for block in section(report, "systems") if block["type"] == "section"]
    by_language = {row["name"]: row["cells"] for row in table(sounds, "groups_wer")["rows"]}
    for name, cells in rows(report, 0).items():
        own = [by_language[name][language]["value"] for language in ("aaa", "bbb")]
        assert cells["wer"]["value"] == pytest.approx(sum(own) / 2)
    assert table(forms, "groups_wer") is None  # of one language


def test_repeated_and_made_up_words_are_counted_apart(report: dict[str, Any]) -> None:
    cells = {row["name"]: row["cells"] for row in table(report["sections"], "corpora")["rows"]}
    counts = ("train_read", "train_kept", "train_added", "train_made_up")
    assert [cells["forms"][key].get("value") for key in counts] == [120, 190, 40, 30]
    assert [cells["sounds"][key].get("value") for key in counts] == [400, 400, None, None]


def table(blocks: list[dict[str, Any]], key: str) -> Any:
    """The table of this key, however deep it stands; None without one."""
    for block in blocks:
        if block.get("key") == key and block["type"] == "table":
            return block
        if found := table(block.get("blocks", []), key):
            return found
    return None
