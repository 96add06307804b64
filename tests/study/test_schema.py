"""The JSON Schema for editors accepts every shipped study and refuses what the loader refuses."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from creamtea.cli.main import app
from creamtea.cli.study_files import whole_schema
from creamtea.document.document import read_document
from creamtea.errors import InputError
from creamtea.study.grid import expand
from creamtea.study.loader import load_study

STUDIES = sorted((Path(__file__).parents[2] / "studies").rglob("*.yaml"))


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = whole_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("path", STUDIES, ids=[path.stem for path in STUDIES])
def test_it_accepts_every_shipped_study_as_written(path: Path, validator: Draft202012Validator) -> None:
    errors = [
        f"{error.json_path}: {error.message}" for error in validator.iter_errors(read_document(path).data)
    ]
    assert errors == []


NAMED = ("corpora", "subwords", "variants", "systems", "test_sets", "analyses", "campaigns")


def blocks(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all blocks of keys, except those whose keys are names."""
    if isinstance(value, dict):
        named = len(path) == 1 and path[0] in NAMED
        if not named and path[-1:] != ("resources",):
            yield path
        for key, inner in value.items():
            yield from blocks(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from blocks(inner, (*path, index))


def changed(document: dict[str, Any], path: tuple[Any, ...], key: Any, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(document)
    block: Any = document
    for part in path:
        block = block[part]
    block[key] = value
    return document


@pytest.mark.parametrize("path", STUDIES[:4], ids=[path.stem for path in STUDIES[:4]])
def test_it_refuses_an_unknown_key_in_every_block(path: Path, validator: Draft202012Validator) -> None:
    document = read_document(path).data
    passed = [
        place for place in blocks(document) if validator.is_valid(changed(document, place, "no_such_key", 1))
    ]
    assert passed == []


SMALL: dict[str, Any] = {
    "name": "small",
    "languages": {"source": "en", "target": "de"},
    "corpora": {"grammar": {"kind": "synthetic"}},
    "subwords": {"joint": {"vocabulary": 100}},
    "variants": {
        "softmax": {
            "corpus": "grammar",
            "subwords": "joint",
            "objective": {"kind": "softmax"},
            "architecture": {"width": 64},
            "training": {"warmup": 10},
            "nvs": {},
        }
    },
    "systems": {
        "greedy": {"variant": "softmax", "search": {"kind": "greedy"}, "selection": {"kind": "full"}}
    },
    "test_sets": {"test": {"kind": "synthetic", "corpus": "grammar"}},
    "baseline": "greedy",
}
VARIANT, SYSTEM = ("variants", "softmax"), ("systems", "greedy")


@pytest.mark.parametrize(
    ("place", "key", "value", "valid"),
    [
        ((*VARIANT, "objective"), "kind", "sofmax", False),
        ((*VARIANT, "objective"), "label_smoothing", 1.5, False),
        ((*VARIANT, "objective"), "label_smoothing", [0.0, 0.1], True),  # a grid
        ((*VARIANT, "objective"), "label_smoothing", [0.1, 0.1], False),
        ((*VARIANT, "objective"), "label_smoothing", [], False),
        ((*VARIANT, "objective"), "label_smoothing", [0.1, "much"], False),
        ((*VARIANT, "training"), "warmup", 2.5, False),
        ((*VARIANT, "training"), "warmup", [10, 20], True),
        ((*VARIANT, "training"), "max_epochs", None, True),
        (VARIANT, "nvs", None, True),
        (VARIANT, "seeds", [], False),
        (VARIANT, "seeds", [1, 2], True),
        (SYSTEM, "search", {"kind": "beam", "width": [4, 8]}, True),
        (SYSTEM, "search", {"kind": "beam", "length": 4}, False),
        (SYSTEM, "search", {"max_length_ratio": 1.5}, False),
        (VARIANT, "architecture", {"preset": "base", "dropout": [0.1, 0.3]}, True),  # of the default kind
        (VARIANT, "architecture", {"kind": "rnn", "heads": 4}, False),
        (SYSTEM, "precision", ["fp32", "bf16"], True),
        (SYSTEM, "precision", "fp8", False),
        (SYSTEM, "batch_size", [1, 2], False),  # no grid here
        (("languages",), "source", "English", False),
        (("corpora",), "two words", {"kind": "synthetic"}, False),
        (("corpora",), "other", {}, False),
        ((), "resources", {"decode": {"workers": 8}}, True),
        ((), "resources", {"decode": {"workers": [2, 8]}}, True),
        ((), "resources", {"decode": {"workers": [8]}}, False),
        ((), "resources", {"decode": {"workers": 0}}, False),
        (VARIANT, "resources", {"decode": {"workers": 8}}, True),
        ((), "metrics", [{"kind": "bleu"}, {"kind": "chrf", "word_order": 3}], False),
        ((), "metrics", [{}], False),
        ((), "baseline", 3, False),
    ],
)
def test_it_agrees_with_the_loader(
    place: tuple[Any, ...], key: str, value: Any, valid: bool, validator: Draft202012Validator, tmp_path: Path
) -> None:
    document = changed(SMALL, place, key, value)
    assert validator.is_valid(document) is valid
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(document))
    if not valid:
        with pytest.raises(InputError):
            load_study(path)
    else:
        systems = expand(read_document(path).data).data["systems"]
        load_study(path, [f"baseline={next(iter(systems))}"])


def test_keys_are_described() -> None:
    schema = whole_schema()
    training = schema["$defs"]["Training"]["properties"]
    assert training["warmup"]["description"].startswith("updates: ")
    assert "peak" in training["learning_rate"]["description"]
    assert "SCONES" in schema["$defs"]["Scones"]["description"]


def test_the_command_prints_it() -> None:
    done = CliRunner().invoke(app, ["schema"])
    assert json.loads(done.stdout) == whole_schema()
