"""The plan of systems: ensembles, further baselines, outputs from files, models from elsewhere."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from marian_folders import make_folder
from shipped_folders import make_shipped
from study_plans import planned

from creamtea.errors import InputError
from creamtea.report.configuration import describe_system
from creamtea.shipped import read_shipped
from creamtea.study.loader import load_study
from creamtea.study.plan import plan

Write = Callable[..., Path]
GIVEN, OPUS, TUNED, HEADS = (
    (Path(__file__).with_name("texts") / f"{name}.yaml").read_text(encoding="utf-8")
    for name in ("given", "opus", "tuned", "heads")
)


# ---------------------------------------------------------------- ensembles and further baselines

GREEDY, SCONES = "  greedy: {variant: softmax}", "  scones: {variant: scones}"


def test_an_ensemble_is_one_decode_that_reads_the_models_of_all_seeds(write: Write) -> None:
    path = write(
        (GREEDY, f"{GREEDY}\n  all: {{variant: scones, ensemble: true}}"),
        ("{kind: scones, alpha: 0.5}", "{kind: scones, alpha: 0.5}\n    seeds: [3, 1, 2]"),
        ("baseline: greedy", "baseline: greedy\nanalyses:\n  empty: {kind: empty_string, test_set: test}"),
    )
    result = planned(path, files=False)
    trained = [result.keys[f"train/scones/{seed}"] for seed in (3, 1, 2)]
    assert result.named("decode/all/") == {"decode/all/3/test"}
    for node in ("decode/all/3/test", "empty_string/empty/all/3"):
        assert result.steps[node].inputs["train"] == trained
    for seed in (3, 1, 2):
        assert result.steps[f"decode/scones/{seed}/test"].inputs["train"] == [
            result.keys[f"train/scones/{seed}"]
        ]
    compare = result.steps["compare/all/test/bleu"]
    assert compare.inputs["system"] == [result.keys["decode/all/3/test"]]
    study = load_study(path).study
    assert describe_system(study, "all").startswith("SCONES α=0.5, ensemble of 3, greedy")
    assert "ensemble" not in study.model_dump(mode="json")["systems"]["greedy"], "as it was written before"


def more(names: str) -> tuple[str, str]:
    return (SCONES, f"  scones: {{variant: scones, more_baselines: [{names}]}}")


GRID = ("alpha: 0.5}", "alpha: [0.2, 0.5]}")


@pytest.mark.parametrize(
    ("replacements", "compared"),
    [
        ([more("nvs, lexicon")], ["lexicon", "nvs", "scones", "scones/nvs", "scones/lexicon"]),
        (  # the baseline of the others may have some, but for those whose baseline it is
            [
                (GREEDY, "  greedy: {variant: softmax, more_baselines: [nvs, lexicon]}"),
                ("  nvs: {variant: softmax,", "  nvs: {baseline: lexicon, variant: softmax,"),
            ],
            ["greedy/nvs", "lexicon", "nvs", "scones"],
        ),
        (  # neither itself nor the baseline once more
            [GRID, more("greedy, scones+alpha=0.2")],
            ["lexicon", "nvs", "scones+alpha=0.2", "scones+alpha=0.5", "scones+alpha=0.5/scones+alpha=0.2"],
        ),
        (  # a grid stands for its members
            [GRID, ("  nvs: {variant: softmax,", "  nvs: {more_baselines: [scones], variant: softmax,")],
            ["lexicon", "nvs", "nvs/scones+alpha=0.2", "nvs/scones+alpha=0.5", "scones+alpha=0.2",
             "scones+alpha=0.5"],
        ),
    ],
)  # fmt: skip
def test_each_further_baseline_is_a_comparison(
    write: Write, replacements: list[tuple[str, str]], compared: list[str]
) -> None:
    places = [node.split("/") for node in planned(write(*replacements), files=False).keys]
    of_bleu = [place for place in places if place[0] == "compare" and place[3] == "bleu"]
    assert ["/".join([place[1], *place[4:]]) for place in of_bleu] == compared


# ---------------------------------------------------------------- outputs from files, human references

SECOND = ("target: test.de}", "target: test.de, more_references: [dev.de]}")
HUMAN = ("baseline: gpt", "  human: {reference: 1}\nbaseline: gpt")
MIXED = (GREEDY, f"{GREEDY}\n  gpt: {{outputs: {{test: gpt.de}}}}")


@pytest.fixture
def write_given(write_files: Write, write: Write) -> Write:
    for name in ("gpt", "nllb"):
        Path(f"{name}.de").write_text("eins\nzwei\ndrei\n")
    return lambda *replacements: write(*replacements, text=GIVEN)


def test_a_study_of_files_alone_prepares_reads_scores_and_compares(write_given: Write) -> None:
    path = write_given(("baseline: gpt", "baseline: gpt\nanalyses: {b: {kind: buckets, test_set: test}}"))
    assert list(planned(path).keys) == [
        "test_set/test",
        *("outputs/gpt/test", "score/gpt/test/bleu", "score/gpt/test/chrf"),
        *("outputs/nllb/test", "score/nllb/test/bleu", "score/nllb/test/chrf"),
        *("compare/nllb/test/bleu", "compare/nllb/test/chrf"),
        *("buckets/b/gpt", "buckets/b/nllb"),
    ]


def test_files_beside_trained_systems_change_no_key_of_theirs(write_files: Write, write_given: Write) -> None:
    latency = ("baseline: greedy", "baseline: greedy\nlatency: {test_set: test}")
    alone, mixed = planned(write_files(latency)), planned(write_files(MIXED, latency))
    assert set(alone.keys.values()) < set(mixed.keys.values())
    assert "compare/gpt/test/bleu" in mixed.keys
    assert mixed.labels["latency"]["systems"] == ["greedy"], (
        "what only models have is left out for the others"
    )


def test_the_key_of_outputs_holds_their_content(write_given: Write) -> None:
    path = write_given()
    before = planned(path)
    Path("nllb.de").write_text("eins\nzwei\nvier\n")
    assert before.changed_from(planned(path)) == {node for node in before.keys if "nllb" in node}


def test_a_human_reference_is_scored_against_the_others_and_never_compared(write_given: Write) -> None:
    alone = planned(write_given(HUMAN)).keys
    assert [node for node in alone if "human" in node] == ["outputs/human/test"]
    result = planned(write_given(HUMAN, SECOND))
    assert [node for node in result.keys if "human" in node] == [
        *("outputs/human/test", "score/human/test/bleu", "score/human/test/chrf")
    ]
    left_out = [step.params.get("without_reference") for step in result.of_kind("score")]
    assert [number for number in left_out if number is not None] == [1, 1]


def test_a_system_that_never_answered_is_planned(write_given: Write) -> None:
    path = write_given()
    Path("gpt.de").write_text("\n\n\n", encoding="utf-8")
    outputs = planned(path).steps["outputs/gpt/test"]
    assert outputs.params["digests"] == {"gpt.de": hashlib.sha256(b"\n\n\n").hexdigest()}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(
            b"eins\nzwei\n", "found 3 lines in test.en and 2 in gpt.de, allowed equal counts", id="too short"
        ),
        pytest.param("eins\rzwei\x85drei\u2028vier\n".encode(), "and 1 in gpt.de", id="other line ends"),
        pytest.param(b"eins\nzw\xff\ndrei\n", '"gpt.de": line 2 is not UTF-8', id="not UTF-8"),
        pytest.param(b"", '"gpt.de": a file without text', id="empty"),
        pytest.param(None, '"gpt.de": no such file', id="missing"),
    ],
)
def test_a_bad_file_is_one_mistake_at_its_place(
    write_given: Write, content: bytes | None, words: str
) -> None:
    path = write_given()
    Path("gpt.de").unlink() if content is None else Path("gpt.de").write_bytes(content)
    with pytest.raises(InputError) as error:
        planned(path)
    line, count = str(error.value).splitlines()
    assert line.startswith("study.yaml:4: systems.gpt.outputs.test: ")
    assert words in line
    assert count == "1 mistake in study.yaml"


# ---------------------------------------------------------------- models that were trained elsewhere

TIMED = ("baseline: opus", "baseline: opus\nlatency: {test_set: test, sentences: 2, repetitions: 2}")


@pytest.fixture
def write_opus(write_files: Write, write: Write) -> Write:
    """Writes a study with the model in the folder models/opus; `text`: which one."""
    make_folder(Path("models/opus"))
    return lambda *replacements, text=OPUS: write(*replacements, text=text)


def test_a_model_is_imported_once_and_read_by_what_decodes_and_times(write_opus: Write) -> None:
    result = planned(write_opus(TIMED))
    (imported,) = result.of_kind("import_model")
    assert imported.locations["models/opus"] == str(Path("models/opus").absolute())
    for role in ("train", "subwords"):
        assert [step.inputs[role] for step in result.of_kind("decode")] == [[imported.key]] * 2
    (latency,) = result.of_kind("latency")
    assert (latency.inputs["models"], latency.inputs["subwords"]) == ([imported.key], [imported.key])
    assert list(result.keys)[:3] == ["test_set/test", "import_model/models/opus", "decode/opus/test"]
    assert "compare/opus-beam/test/bleu" in result.keys


def test_the_content_of_the_folder_is_in_the_key(write_opus: Write) -> None:
    path = write_opus()
    before = planned(path)
    make_folder(Path("models/opus"), ends=3.0)
    changed = {node.split("/")[0] for node in before.changed_from(planned(path))}
    assert changed == {"import_model", "decode", "score", "compare"}


def test_a_model_beside_trained_systems_changes_no_key_of_theirs(
    write_files: Write, write_opus: Write
) -> None:
    alone = planned(write_files())
    mixed = planned(write_files((GREEDY, f"{GREEDY}\n  opus: {{model: {{marian: models/opus}}}}")))
    assert set(alone.keys.values()) < set(mixed.keys.values())


def test_a_folder_that_is_not_to_be_left_is_not(write_opus: Write) -> None:
    loaded = load_study(write_opus(("marian: models/opus}}", "marian: ../secret}}")))
    with pytest.raises(InputError, match="outside the folder of data"):
        plan(loaded.study, Path(), loaded.errors, confined=True)


def test_a_variant_starts_from_a_model_with_its_subwords_and_architecture(write_opus: Write) -> None:
    result = planned(write_opus(text=TUNED))
    (imported,) = result.of_kind("import_model")
    first, second = result.of_kind("train")
    assert (first.inputs["initial"], second.inputs["initial"]) == ([imported.key], [first.key])
    assert first.inputs["subwords"] == second.inputs["subwords"] == [imported.key]
    assert first.params["architecture"] == second.params["architecture"]
    assert first.params["architecture"]["activation"] == "silu"
    assert [step.inputs["subwords"] for step in result.of_kind("encode")] == [[imported.key]]
    assert not result.of_kind("subwords")


def test_selections_on_an_imported_model_share_its_lexicon(write_opus: Write) -> None:
    result = planned(write_opus(text=HEADS))
    ((imported,), (align,), (encode,), (train,), (latency,)) = (
        result.of_kind(kind) for kind in ("import_model", "align", "encode", "train", "latency")
    )
    assert align.inputs == {"encode": [encode.key], "subwords": [imported.key]}
    assert train.params["training"]["freeze"] == "translation"
    assert (train.inputs["initial"], train.inputs["encode"]) == ([imported.key], [encode.key])
    # both lexicon systems have one recall: it depends on no model
    of_lexicon, of_head = result.of_kind("recall")
    assert (of_lexicon.inputs["align"], "align" in of_head.inputs) == ([align.key], False)
    assert of_head.inputs["train"] == [train.key]
    keys = result.keys
    assert keys["recall/lexicon/test"] == keys["recall/tuned-lexicon/1/test"] == of_lexicon.key
    assert latency.inputs["models"] == [imported.key, train.key]
    assert latency.inputs["align"] == [align.key]


def test_a_ctranslate2_folder_is_imported_decoded_and_timed_like_another_model(write_opus: Write) -> None:
    make_shipped(Path("models/shipped"), Path("models/opus"), "int8")
    path = write_opus(
        ("opus-beam: {model: {marian: models/opus}", "opus-beam: {model: {ctranslate2: models/shipped}"),
        ("precision: int8}", "precision: int8, selection: {kind: vmap}}"),
        TIMED,
    )
    result = planned(path)
    (imported,) = [step for step in result.of_kind("import_model") if "ctranslate2" in step.params]
    digest = read_shipped(Path("models/shipped")).digest
    assert imported.params == {"ctranslate2": "models/shipped", "digest": digest}
    readers = [step.kind for step in result.plan.steps if imported.key in step.inputs.get("train", [])]
    assert sorted(readers) == ["decode", "recall"]
    (timed,) = result.of_kind("latency")
    assert imported.key in timed.inputs["models"]
    words = "CTranslate2 model shipped, vmap.txt, beam 4 / length^1, int8"
    assert describe_system(load_study(path).study, "opus-beam") == words
