"""Systems whose model was trained elsewhere: plan, keys and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from marian_folders import make_folder
from shipped_folders import make_shipped

from creamtea.errors import InputError
from creamtea.report.configuration import describe_system
from creamtea.shipped import read_shipped
from creamtea.study.loader import load_study
from creamtea.study.plan import plan

Write = Callable[..., Path]
TEXTS = Path(__file__).with_name("texts")
OPUS, TUNED, HEADS = (
    (TEXTS / f"{name}.yaml").read_text(encoding="utf-8") for name in ("opus", "tuned", "heads")
)
MIXED = (
    "  greedy: {variant: softmax}",
    "  greedy: {variant: softmax}\n  opus: {model: {marian: models/opus}}",
)


@pytest.fixture
def write_opus(write_files: Write, write: Write) -> Write:
    make_folder(Path("models/opus"))
    return lambda *replacements: write(*replacements, text=OPUS)


def planned(path: Path) -> None:
    loaded = load_study(path)
    plan(loaded.study, Path(), loaded.errors)


def mistakes(path: Path) -> str:
    with pytest.raises(InputError) as error:
        planned(path)
    return str(error.value)


def test_a_model_is_imported_once_and_read_by_what_decodes_and_times(write_opus: Write) -> None:
    path = write_opus(
        ("baseline: opus", "baseline: opus\nlatency: {test_set: test, sentences: 2, repetitions: 2}")
    )
    planned = plan(load_study(path).study, Path())
    (imported,) = [step for step in planned.steps if step.kind == "import_model"]
    assert imported.locations["models/opus"] == str(Path("models/opus").absolute())
    decodes = [step for step in planned.steps if step.kind == "decode"]
    assert [step.inputs["train"] for step in decodes] == [[imported.key]] * 2
    assert [step.inputs["subwords"] for step in decodes] == [[imported.key]] * 2
    (latency,) = [step for step in planned.steps if step.kind == "latency"]
    assert (latency.inputs["models"], latency.inputs["subwords"]) == ([imported.key], [imported.key])
    names = [node.node for node in planned.nodes]
    assert names[:3] == ["test_set/test", "import_model/models/opus", "decode/opus/test"]
    assert "compare/opus-beam/test/bleu" in names


def test_the_content_of_the_folder_is_in_the_key(write_opus: Write) -> None:
    study = load_study(write_opus()).study
    before = {step.kind: step.key for step in plan(study, Path()).steps}
    make_folder(Path("models/opus"), ends=3.0)
    after = {step.kind: step.key for step in plan(study, Path()).steps}
    assert {kind for kind in before if before[kind] != after[kind]} == {
        "import_model", "decode", "score", "compare"
    }  # fmt: skip


def test_a_model_beside_trained_systems_changes_no_key_of_theirs(
    write_files: Write, write_opus: Write
) -> None:
    alone = plan(load_study(write_files()).study, Path())
    mixed = plan(load_study(write_files(MIXED)).study, Path())
    assert {step.key for step in alone.steps} < {step.key for step in mixed.steps}


def test_a_folder_that_is_not_to_be_left_is_not(write_opus: Write, tmp_path: Path) -> None:
    loaded = load_study(write_opus(("marian: models/opus}}", "marian: ../secret}}")))
    with pytest.raises(InputError, match="outside the folder of data"):
        plan(loaded.study, Path(), loaded.errors, confined=True)


@pytest.fixture
def write_tuned(write_opus: Write, write: Write) -> Write:
    return lambda *replacements: write(*replacements, text=TUNED)


def test_a_variant_starts_from_a_model_with_its_subwords_and_architecture(write_tuned: Write) -> None:
    steps = plan(load_study(write_tuned()).study, Path()).steps
    (imported,) = [step for step in steps if step.kind == "import_model"]
    first, second = [step for step in steps if step.kind == "train"]
    assert (first.inputs["initial"], second.inputs["initial"]) == ([imported.key], [first.key])
    assert first.inputs["subwords"] == second.inputs["subwords"] == [imported.key]
    assert first.params["architecture"] == second.params["architecture"]
    assert first.params["architecture"]["activation"] == "silu"
    assert [step.inputs["subwords"] for step in steps if step.kind == "encode"] == [[imported.key]]
    assert not [step for step in steps if step.kind == "subwords"]


def test_selections_on_an_imported_model_share_its_lexicon(write_opus: Write, write: Write) -> None:
    planned = plan(load_study(write(text=HEADS)).study, Path())
    of_kind = {kind: [step for step in planned.steps if step.kind == kind] for kind in ("align", "recall")}
    (imported,) = [step for step in planned.steps if step.kind == "import_model"]
    (align,), (encode,) = of_kind["align"], [step for step in planned.steps if step.kind == "encode"]
    assert align.inputs == {"encode": [encode.key], "subwords": [imported.key]}
    (train,) = [step for step in planned.steps if step.kind == "train"]
    assert train.params["training"]["freeze"] == "translation"
    assert (train.inputs["initial"], train.inputs["encode"]) == ([imported.key], [encode.key])
    # both lexicon systems have one recall: it depends on no model
    assert [step.inputs.get("align") for step in of_kind["recall"]] == [[align.key], None]
    assert of_kind["recall"][1].inputs["train"] == [train.key]
    nodes = {node.node: node.key for node in planned.nodes}
    assert nodes["recall/lexicon/test"] == nodes["recall/tuned-lexicon/1/test"] == of_kind["recall"][0].key
    (latency,) = [step for step in planned.steps if step.kind == "latency"]
    assert latency.inputs["models"] == [imported.key, train.key]
    assert latency.inputs["align"] == [align.key]


SHIPPED = ("opus-beam: {model: {marian: models/opus}", "opus-beam: {model: {ctranslate2: models/shipped}")


def test_a_ctranslate2_folder_is_imported_decoded_and_timed_like_another_model(write_opus: Write) -> None:
    make_shipped(Path("models/shipped"), Path("models/opus"), "int8")
    latency = ("baseline: opus", "baseline: opus\nlatency: {test_set: test, sentences: 2, repetitions: 2}")
    selected = ("precision: int8}", "precision: int8, selection: {kind: vmap}}")
    study = load_study(write_opus(SHIPPED, selected, latency)).study
    steps = plan(study, Path()).steps
    (imported,) = [step for step in steps if "ctranslate2" in step.params and step.kind == "import_model"]
    digest = read_shipped(Path("models/shipped")).digest
    assert imported.params == {"ctranslate2": "models/shipped", "digest": digest}
    decodes = [step for step in steps if imported.key in step.inputs.get("train", [])]
    assert sorted(step.kind for step in decodes) == ["decode", "recall"]
    (timed,) = [step for step in steps if step.kind == "latency"]
    assert imported.key in timed.inputs["models"]
    words = "CTranslate2 model shipped, vmap.txt, beam 4 / length^1, int8"
    assert describe_system(study, "opus-beam") == words
