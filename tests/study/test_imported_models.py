"""Systems whose model was trained elsewhere: plan, keys and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from marian_folders import make_folder

from creamtea.errors import InputError
from creamtea.study.loader import load_study
from creamtea.study.plan import plan

Write = Callable[..., Path]
OPUS = """\
name: opus
languages: {source: en, target: de}
systems:
  opus: {model: {marian: models/opus}}
  opus-beam: {model: {marian: models/opus}, search: {kind: beam}, precision: int8}
baseline: opus
test_sets:
  test: {kind: files, source: test.en, target: test.de}
metrics: [{kind: bleu}]
"""
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("opus: {model: {marian: models/opus}}", "opus: {model: {marian: models/none}}"),
            'systems.opus.model.marian: found "models/none": no folder at models/none, allowed a folder',
        ),
        (
            ("precision: int8}", "selection: {kind: lexicon}}"),
            "systems.opus-beam.alignment_corpus: required key is missing (a corpus to align the lexicon on)",
        ),
        (
            ("precision: int8}", "selection: {kind: lexicon}, alignment_corpus: news}"),
            "corpora: required key is missing (a system has an alignment_corpus)",
        ),
        (
            ("precision: int8}", "selection: {kind: nvs}}"),
            "found neural vocabulary selection of a model that was trained elsewhere, which has no NVS head",
        ),
        (("precision: int8}", "ensemble: true}"), "found an ensemble of one model"),
        (("precision: int8}", "reference: 1}"), "found reference beside model"),
        (("precision: int8}", "precision: fp16}"), "systems.opus-beam.precision: found fp16 on a CPU"),
        (
            ("baseline: opus", "baseline: opus\nanalyses: {e: {kind: empty_string, test_set: test}}"),
            "found empty_string in a study without variants",
        ),
    ],
)
def test_what_such_a_system_cannot_have(write_opus: Write, change: tuple[str, str], message: str) -> None:
    assert message in mistakes(write_opus(change))


def test_a_folder_that_is_not_to_be_left_is_not(write_opus: Write, tmp_path: Path) -> None:
    loaded = load_study(write_opus(("marian: models/opus}}", "marian: ../secret}}")))
    with pytest.raises(InputError, match="outside the folder of data"):
        plan(loaded.study, Path(), loaded.errors, confined=True)


TUNED = """\
name: tuned
languages: {source: en, target: de}
corpora:
  news: {kind: files, train: [{source: train.en, target: train.de}], dev: {source: dev.en, target: dev.de}}
variants:
  first: {start_from: {marian: models/opus}, corpus: news, objective: {kind: scones}}
  second: {start_from: first, corpus: news, objective: {kind: softmax}}
systems:
  first: {variant: first}
  second: {variant: second}
baseline: first
test_sets: {test: {kind: files, source: test.en, target: test.de}}
"""


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


HEADS = """\
name: heads
languages: {source: en, target: de}
corpora:
  news: {kind: files, train: [{source: train.en, target: train.de}], dev: {source: dev.en, target: dev.de}}
variants:
  nvs:
    {start_from: {marian: models/opus}, corpus: news, objective: {kind: softmax}, nvs: {},
     training: {freeze: translation}}
systems:
  full: {model: {marian: models/opus}}
  lexicon: {model: {marian: models/opus}, selection: {kind: lexicon}, alignment_corpus: news}
  tuned-lexicon: {variant: nvs, selection: {kind: lexicon}}
  nvs: {variant: nvs, selection: {kind: nvs}}
baseline: full
test_sets: {test: {kind: files, source: test.en, target: test.de}}
latency: {test_set: test, sentences: 2, repetitions: 2}
"""


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


def test_a_latency_run_has_one_lexicon(write_opus: Write, write: Write) -> None:
    more = "  other: {kind: synthetic}\n"
    text = HEADS.replace("variants:\n", f"{more}variants:\n").replace(
        "alignment_corpus: news", "alignment_corpus: other"
    )
    assert "systems with 2 lexica (news, other)" in mistakes(write(text=text))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("objective: {kind: scones}", "objective: {kind: scones}, training: {freeze: translation}"),
            "variants.first.training.freeze: found translation without an NVS head to train",
        ),
        (
            (
                "objective: {kind: scones}",
                "objective: {kind: scones}, nvs: {}, training: {freeze: translation}",
            ),
            "variants.first.objective: found SCONES α=0.5, where the frozen model is trained by softmax",
        ),
        (
            (
                "objective: {kind: softmax}",
                "objective: {kind: softmax}, nvs: {}, training: {freeze: translation}",
            ),
            "variants.second.objective: found softmax, where the frozen model is trained by SCONES α=0.5",
        ),
        (
            (
                "objective: {kind: scones}",
                "objective: {kind: softmax}, nvs: {}, training: {freeze: translation, select_by: bleu}",
            ),
            "variants.first.training.select_by: found bleu, which no head changes",
        ),
        (
            (
                "objective: {kind: scones}",
                "objective: {kind: softmax}, nvs: {detach: false}, training: {freeze: translation}",
            ),
            "variants.first.nvs.detach: found false with `freeze: translation`",
        ),
        (
            (
                "objective: {kind: scones}",
                "objective: {kind: scones}, nvs: {}, training: {freeze: translation, fit_logits: true}",
            ),
            "variants.first.training.fit_logits: found true beside `freeze`",
        ),
        (
            ("first: {variant: first}", "first: {variant: first, alignment_corpus: news}"),
            "systems.first.alignment_corpus: found one beside a variant",
        ),
        (
            ("objective: {kind: scones}", "objective: {kind: scones}, architecture: {preset: base}"),
            "variants.first.architecture: found architecture of a variant that starts from an imported model",
        ),
        (
            ("objective: {kind: scones}", "objective: {kind: scones}, training: {bpe_dropout: 0.1}"),
            "bpe_dropout in the subwords of an imported model",
        ),
        (
            ("first: {variant: first}", "first: {variant: first, selection: {kind: nvs}}"),
            "found nvs, but the variant has no NVS head",
        ),
        (("{marian: models/opus}", "{marian: models/none}"), "variants.first.start_from.marian: found"),
        (("{marian: models/opus}", "{name: models/opus}"), "variants.first.start_from"),
        (("start_from: {marian: models/opus}, ", ""), "variants.first.subwords: required key is missing"),
    ],
)
def test_what_such_a_variant_cannot_have(write_tuned: Write, change: tuple[str, str], message: str) -> None:
    assert message in mistakes(write_tuned(change))
