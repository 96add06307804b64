"""Systems that no model of the study runs: text files, and human references."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from creamtea.errors import InputError
from creamtea.study.loader import load_study
from creamtea.study.plan import plan

Write = Callable[..., Path]
GIVEN = Path(__file__).with_name("texts").joinpath("given.yaml").read_text(encoding="utf-8")
SECOND = ("target: test.de}", "target: test.de, more_references: [dev.de]}")
HUMAN = ("baseline: gpt", "  human: {reference: 1}\nbaseline: gpt")
MIXED = ("  greedy: {variant: softmax}", "  greedy: {variant: softmax}\n  gpt: {outputs: {test: gpt.de}}")


@pytest.fixture
def write_given(write_files: Write, write: Write) -> Write:
    for name in ("gpt", "nllb"):
        Path(f"{name}.de").write_text("eins\nzwei\ndrei\n")
    return lambda *replacements: write(*replacements, text=GIVEN)


def nodes(path: Path) -> list[str]:
    return [node.node for node in plan(load_study(path).study, Path()).nodes]


def planned(path: Path) -> None:
    loaded = load_study(path)
    plan(loaded.study, Path(), loaded.errors)


def mistakes(path: Path) -> str:
    with pytest.raises(InputError) as error:
        planned(path)
    return str(error.value)


def test_a_study_of_files_alone_prepares_reads_scores_and_compares(write_given: Write) -> None:
    assert nodes(write_given()) == [
        "test_set/test",
        *("outputs/gpt/test", "score/gpt/test/bleu", "score/gpt/test/chrf"),
        *("outputs/nllb/test", "score/nllb/test/bleu", "score/nllb/test/chrf"),
        *("compare/nllb/test/bleu", "compare/nllb/test/chrf"),
    ]


def test_buckets_need_no_model(write_given: Write) -> None:
    path = write_given(("baseline: gpt", "baseline: gpt\nanalyses: {b: {kind: buckets, test_set: test}}"))
    assert nodes(path)[-2:] == ["buckets/b/gpt", "buckets/b/nllb"]


def test_files_beside_trained_systems_change_no_key_of_theirs(write_files: Write, write_given: Write) -> None:
    alone = plan(load_study(write_files()).study, Path())
    mixed = plan(load_study(write_files(MIXED)).study, Path())
    assert {step.key for step in alone.steps} < {step.key for step in mixed.steps}
    assert "compare/gpt/test/bleu" in {node.node for node in mixed.nodes}


def test_the_key_of_outputs_holds_their_content(write_given: Write) -> None:
    path = write_given()
    before = {node.node: node.key for node in plan(load_study(path).study, Path()).nodes}
    Path("nllb.de").write_text("eins\nzwei\nvier\n")
    after = {node.node: node.key for node in plan(load_study(path).study, Path()).nodes}
    changed = {node for node, key in before.items() if key != after[node]}
    assert changed == {node for node in before if "nllb" in node}


def test_a_human_reference_is_scored_against_the_others_and_never_compared(write_given: Write) -> None:
    assert [node for node in nodes(write_given(HUMAN)) if "human" in node] == ["outputs/human/test"]
    path = write_given(HUMAN, SECOND)
    assert [node for node in nodes(path) if "human" in node] == [
        *("outputs/human/test", "score/human/test/bleu", "score/human/test/chrf")
    ]
    steps = plan(load_study(path).study, Path()).steps
    assert [step.params["without_reference"] for step in steps if "without_reference" in step.params] == [
        1,
        1,
    ]


def test_what_only_models_have_is_left_out_of_a_mixed_study(write_files: Write, write_given: Write) -> None:
    latency = ("baseline: greedy", "baseline: greedy\nlatency: {test_set: test}")
    planned = plan(load_study(write_files(MIXED, latency)).study, Path())
    (timed,) = [node.labels["systems"] for node in planned.nodes if node.node == "latency"]
    assert timed == ["greedy"]


GPT = "  gpt: {outputs: {test: gpt.de}}"
BAD_FILES = {
    "too short": (b"eins\nzwei\n", "found 3 lines in test.en and 2 in gpt.de, allowed equal counts"),
    "other line ends": ("eins\rzwei\x85drei\u2028vier\n".encode(), "and 1 in gpt.de"),
    "not UTF-8": (b"eins\nzw\xff\ndrei\n", '"gpt.de": line 2 is not UTF-8'),
    "empty": (b"", '"gpt.de": a file without text'),
    "missing": (None, '"gpt.de": no such file'),
}


def test_a_system_that_never_answered_is_planned(write_given: Write) -> None:
    path = write_given()
    Path("gpt.de").write_text("\n\n\n", encoding="utf-8")
    steps = plan(load_study(path).study, Path()).steps
    (outputs,) = [step for step in steps if step.params.get("file") == "gpt.de"]
    assert outputs.params["digests"] == {"gpt.de": hashlib.sha256(b"\n\n\n").hexdigest()}


@pytest.mark.parametrize("case", BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_one_mistake_at_its_place(write_given: Write, case: tuple[bytes | None, str]) -> None:
    content, said = case
    path = write_given()
    Path("gpt.de").unlink() if content is None else Path("gpt.de").write_bytes(content)
    lines = mistakes(path).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("study.yaml:4: systems.gpt.outputs.test: ")
    assert said in lines[0]
