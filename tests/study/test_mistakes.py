"""What a researcher can get wrong in a study. `mistakes.yaml` has the mistakes and their messages."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from marian_folders import make_folder
from pydantic import BaseModel, Field, ValidationError
from shipped_folders import make_shipped
from typer.testing import CliRunner

from creamtea.cli.main import app
from creamtea.document.mistakes import mistakes_in_line
from creamtea.errors import InputError
from creamtea.study.loader import load_study
from creamtea.study.plan import plan

Write = Callable[..., Path]
HERE = Path(__file__).parent
CASES = [
    pytest.param(base, case, id=f"{base}: {name}")
    for base, cases in yaml.load((HERE / "mistakes.yaml").read_bytes(), yaml.CSafeLoader).items()
    for name, case in cases.items()
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the studies of texts/ name."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("train.en", "train.de", "dev.en", "dev.de", "test.en", "test.de", "gpt.de", "nllb.de"):
        (folder / name).write_text("one\ntwo\nthree\n", encoding="utf-8")
    make_folder(folder / "models" / "opus")
    make_shipped(folder / "models" / "shipped", folder / "models" / "opus", "int8")
    (folder / "models" / "shipped" / "vmap.txt").unlink()
    return folder


@pytest.mark.parametrize("base, case", CASES)
def test_all_that_is_said_of_a_mistake(
    base: str, case: dict[str, Any], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    text = case.get("text", (HERE / "texts" / f"{base}.yaml").read_text(encoding="utf-8"))
    for old, new in case.get("change", {}).items():
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    study = Path("study.yaml")
    study.write_text(text, encoding="utf-8")
    said, code = ["valid"], 0
    try:
        loaded = load_study(study, case.get("set", []))
        plan(loaded.study, Path(), loaded.errors)
    except InputError as error:
        said, code = str(error).split("\n"), error.exit_code
    count = len(case["mistakes"])
    end = (f"{count} mistake{'s' * (count > 1)} in study.yaml", 2) if count else ("valid", 0)
    assert (said.pop(), code) == end, said
    for line, expected in zip(said, case["mistakes"], strict=True):
        assert re.fullmatch(".*".join(map(re.escape, expected.split("…"))), line), line


YAML, COUNT = "allowed valid YAML", "1 mistake in study.yaml"
UNREADABLE = {
    "invalid UTF-8": (b"name: x\n# \xff\n", "study.yaml, line 2: not UTF-8 text: save it as UTF-8"),
    "invalid UTF-8 after a byte-order mark": (b"\xef\xbb\xbfa: x\n\xff\n", "study.yaml, line 2: not UTF-8"),
    "too large": (b"#" * 1_000_001, "study.yaml: larger than 1,000,000 bytes, the limit for a study"),
    "control character": (
        b"name: x\nb: \x07\n",
        f"study.yaml:2: found the control character '\\x07', {YAML}\n{COUNT}",
    ),
    "nested too deeply": (b"[" * 1_500, f"study.yaml:1: found blocks nested too deeply, {YAML}\n{COUNT}"),
    "alias bomb": (
        b"a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 9)),
        "study.yaml: its aliases expand to more than 50,000 values",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("content, message", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read(write: Write, content: bytes, message: str) -> None:
    path = write()
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_study(path)
    assert str(caught.value).startswith(message)


def test_a_missing_file_and_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^x\.yaml: no such file; give the path of a study \(\.yaml\)$"):
        load_study(Path("x.yaml"))
    with pytest.raises(InputError, match=r"^\.: cannot be read: Is a directory$"):
        load_study(Path())


def test_validate_json_lists_the_mistakes_and_leaves_with_2(write: Write) -> None:
    path = write(("k: 5", "k: 0"), ("alpha: 0.5", "alpha: 0"))
    result = CliRunner().invoke(app, ["validate", str(path), "--json"])
    assert result.exit_code == 2
    answer = json.loads(result.output)
    assert answer["valid"] is False
    assert [line.split(": found")[0] for line in answer["mistakes"]] == [
        "study.yaml:16: variants.scones.objective.alpha",
        "study.yaml:19: systems.lexicon.selection.k",
    ]


# ---------------------------------------------------------------- spoilt studies


SPOILT = """
name: small
languages: {source: en, target: de}
corpora:
  grammar: {kind: synthetic}
  text: {kind: files, train: [{source: a, target: b}], dev: {source: a, target: b}}
subwords: {joint: {vocabulary: 100}}
variants:
  softmax: {corpus: grammar, subwords: joint, objective: {kind: softmax}, nvs: {}, seeds: [1, 2]}
  scones: {corpus: grammar, subwords: joint, objective: {kind: scones, alpha: [0.2, 0.5]}}
systems:
  greedy: {variant: softmax, search: {kind: beam, width: 4}, precision: fp32}
  lexicon: {variant: scones, selection: {kind: lexicon, k: 5}}
  nvs: {variant: softmax, selection: {kind: nvs}}
baseline: greedy
test_sets: {test: {kind: synthetic, corpus: grammar}}
alignment: {max_k: 1000}
metrics: [{kind: bleu}, {kind: comet}]
recall: {k: [1], thresholds: [0.5]}
latency: {test_set: test, systems: [greedy, lexicon]}
resources: {train: {cpus: 1}}
"""
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["grammar", "softmax", "greedy", "joint", "synthetic", "files", "nvs", "lexicon", ""])
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "corpus", "width", "k", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in inner for found in paths_of(child, (*path, key)))]


@pytest.mark.slow
@given(st.data())
def test_nothing_but_an_input_error_comes_of_a_wrong_value(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever stands in one or two places of a study, it is loaded or refused in words."""
    study = yaml.safe_load(SPOILT)
    for _ in range(data.draw(st.integers(1, 2))):
        *path, key = data.draw(st.sampled_from(paths_of(study)[1:]))
        parent = study
        for part in path:
            parent = parent[part]
        parent[key] = data.draw(ANYTHING)
    file = tmp_path_factory.getbasetemp() / "spoilt.yaml"
    file.write_text(yaml.safe_dump(study, allow_unicode=True), encoding="utf-8")
    with suppress(InputError):
        loaded = load_study(file)
        plan(loaded.study, None)


class Lists(BaseModel):
    widths: list[int] = []
    names: list[str] = []
    columns: Annotated[list[int], Field(min_length=2)] | None = None


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("widths", 1, " ([1])"),
        ("widths", True, ""),
        ("names", "a, b", " ([a, b])"),
        ("names", "12", ""),  # [12] is a number
        ("names", "x]", ""),
        ("columns", 2, ""),
    ],
)
def test_a_list_is_suggested_only_where_it_would_be_accepted(key: str, value: object, shown: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Lists.model_validate({key: value})
    said = mistakes_in_line(refused.value, Lists, {key: value})
    assert said.endswith(f"allowed a list{shown}")
