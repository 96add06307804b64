"""Tutorial items in a file: what becomes of them, and files that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from creamtea.errors import InputError
from creamtea.human.making.choosing import NewItem
from creamtea.human.making.known_answers import read_attention, read_tutorial, tutorial_items
from creamtea.human.making.settings import TutorialItem
from creamtea.human.protocols import find_protocol
from creamtea.human.protocols.taxonomy import read_taxonomy


def item(*outputs: tuple[str, list[float]]) -> TutorialItem:
    return TutorialItem.model_validate(
        {
            "source": "s",
            "outputs": [{"text": text, "accepted": accepted} for text, accepted in outputs],
            "explanation": "e",
        }
    )


def fields(protocol: str, *outputs: tuple[str, list[float]]) -> NewItem:
    return tutorial_items([item(*outputs)], find_protocol(protocol))[0]


@pytest.mark.parametrize("name", ["t.yaml", "t.json"])
def test_yaml_and_json_are_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(
        '{"items": [{"source": "مرحبا", "context": ["<b>"], '
        '"outputs": [{"text": "Hi", "accepted": [50, 100]}], "explanation": "*so*"}]}'
    )
    (found,) = read_tutorial(path)
    made = tutorial_items([found], find_protocol("da"))[0]
    assert (made.source, made.context, made.outputs) == ("مرحبا", ["<b>"], ["Hi"])
    assert made.guidance == {"steps": {"0": [50, 100]}, "explanation": "*so*"}
    assert (made.kind, made.segment_index, made.weight) == ("tutorial", -1, 0.0)


@pytest.mark.parametrize(
    ("read", "kind"), [(read_tutorial, "tutorial"), (read_attention, "checks"), (read_taxonomy, "taxonomy")]
)
def test_a_missing_file_is_not_told_to_be_a_study(
    tmp_path: Path, read: Callable[[Path], object], kind: str
) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path / "t.yaml")
    assert (kind in str(error.value), "study" in str(error.value)) == (True, False)


def test_values_of_every_scale_become_steps() -> None:
    assert fields("contrastive-da", ("a", [1, 2.4]), ("b", [5.8, 6])).guidance["steps"] == {
        "0": [0, 7],
        "1": [24, 25],
    }
    assert fields("preference", ("a", [1, 2]), ("b", [0, 1])).guidance["steps"] == {
        "0": [1, 2],
        "1": [0, 1],
    }


@pytest.mark.parametrize(
    ("protocol", "outputs", "message"),
    [
        ("da", [("a", [0, 1]), ("b", [0, 1])], "tutorial item 1: 2 outputs; an item of da has 1"),
        ("contrastive-da", [("a", [1, 2])], "1 output; an item of contrastive-da has 2 to 8"),
        ("contrastive-da", [("a", [1, 2]), ("a", [3, 4])], "two of its outputs are the same text"),
        (
            "contrastive-da",
            [("a", [1.1, 2]), ("b", [3, 4])],
            "output 1: accepted: '1.1' is not a value of the scale",
        ),
        ("da", [("a", [20, 10])], "output 1: accepted: the lowest value comes first"),
        ("preference", [("a", [2, 2]), ("b", [2, 2])], "one output's answer decides the other's"),
    ],
)
def test_answers_that_cannot_be_are_refused(protocol: str, outputs: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fields(protocol, *outputs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("items: []", "t.yaml:1: items: found a list of 0, allowed at least 1 entry"),
        (
            "items:\n  - source: s\n    outputs: [{text: a, accepted: [1, 2]}]",
            "explanation: required key is missing",
        ),
        ("items:\n  - {source: '', outputs: [], explanation: e}", 'items\\[0\\].source: found ""'),
        (
            "items:\n  - {source: s, source: t, outputs: [{text: a, accepted: [1, 2]}], explanation: e}",
            "source",  # written twice: which one is meant?
        ),
        ("a: [", "valid YAML"),
        ("", "an empty file"),
    ],
)
def test_a_wrong_file_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_tutorial(path)
