"""Plans: their keys, their shape, what is shared and what is left out."""

import dataclasses
import hashlib
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_plans import planned

from creamtea.contract.step import step_key
from creamtea.document.values import canonical
from creamtea.errors import InputError
from creamtea.steps.texts import ALIGN
from creamtea.study.loader import load_study
from creamtea.study.plan import PlannedStep

Write = Callable[..., Path]
ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "studies" / "demo.yaml"
QUICK = DEMO.with_name("multi30k-quick.yaml")

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
PARAMS = st.dictionaries(st.text(max_size=5), VALUES, max_size=5)


def shuffled(value: Any, order: random.Random) -> Any:
    if isinstance(value, dict):
        items = list(value.items())
        order.shuffle(items)
        return {key: shuffled(inner, order) for key, inner in items}
    return [shuffled(inner, order) for inner in value] if isinstance(value, list) else value


@pytest.mark.slow
@given(PARAMS, st.randoms(use_true_random=False))
def test_keys_do_not_depend_on_the_order_of_keys(params: dict[str, Any], order: random.Random) -> None:
    assert step_key("x", 1, params, {}) == step_key("x", 1, shuffled(params, order), {})


@given(PARAMS)
def test_canonical_json_is_json(params: dict[str, Any]) -> None:
    assert json.loads(canonical(params)) == params
    assert canonical(json.loads(canonical(params))) == canonical(params)


@given(PARAMS, PARAMS)
def test_different_parameters_have_different_keys(one: dict[str, Any], other: dict[str, Any]) -> None:
    same = canonical(one) == canonical(other)
    assert (step_key("x", 1, one, {}) == step_key("x", 1, other, {})) is same


def test_the_key_is_the_hash_of_the_canonical_json() -> None:
    params = {"α": 0.1, "b": [1, 2.0, None, True]}
    text = '{"inputs":{"corpus":["aa"]},"kind":"train","params":{"b":[1,2.0,null,true],"α":0.1},"version":1}'
    key = step_key("train", 1, params, {"corpus": ["aa"]})
    assert key == hashlib.sha256(text.encode()).hexdigest()
    others = [
        step_key("decode", 1, params, {"corpus": ["aa"]}),
        step_key("train", 2, params, {"corpus": ["aa"]}),
        step_key("train", 1, params, {"corpus": ["ab"]}),
        step_key("train", 1, params, {"corpora": ["aa"]}),
        step_key("train", 1, params, {"corpus": ["aa", "aa"]}),
    ]
    assert len({key, *others}) == 6


# ---------------------------------------------------------------- shape


@pytest.mark.parametrize("target, tokenize", [("de", "13a"), ("zh", "zh"), ("ja", "char"), ("th", "char")])
def test_development_bleu_splits_what_has_no_blanks(target: str, tokenize: str) -> None:
    steps = planned(DEMO, f"languages={{source: en, target: {target}}}").of_kind("train")
    assert {step.params.get("tokenize", "13a") for step in steps} == {tokenize}


def test_only_languages_without_blanks_count_characters() -> None:
    def corpora(target: str) -> list[dict[str, Any]]:
        languages = f"languages={{source: en, target: {target}}}"
        return [step.params for step in planned(QUICK, languages, files=False).of_kind("corpus")]

    assert ["unspaced" in params for params in (*corpora("de"), *corpora("ja"))] == [False, True]


def test_what_reads_a_plug_ins_model_is_held_to_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its key has the version by the training's key."""
    own = {"train": {"lab": "1.0"}}
    monkeypatch.setattr("creamtea.study.plan.plugins_of", lambda kind, params: own.get(kind.name, {}))
    needed = {step.kind: step.resources.plugins for step in planned(DEMO).plan.steps}
    having = {kind for kind, plugins in needed.items() if plugins}
    assert having >= {"train", "decode", "latency"}
    assert having.isdisjoint({"corpus", "score", "compare"})


def test_latency_on_another_device_is_another_measurement() -> None:
    def key(*overrides: str) -> str:
        return planned(DEMO, *overrides).keys["latency"]

    usual = key()
    assert key("resources.latency.max_attempts=7") == usual
    others = [key("resources.latency.gpus=1"), key("resources.latency.node=quiet-7")]
    assert len({usual, *others}) == 3


def test_the_plan_of_the_demo() -> None:
    result = planned(DEMO, "baseline=softmax-beam4")
    once = dict.fromkeys(("corpus", "test_set", "subwords", "encode", "align", "pairs", "latency"), 1)
    several = {"train": 3, "decode": 6, "score": 12, "compare": 10, "buckets": 6, "recall": 2}
    assert result.plan.kinds() == once | several
    steps, keys, labels = result.steps, result.keys, result.labels
    decode = steps["decode/softmax-lexicon/1/test"]
    assert decode.inputs == {
        "test_set": [keys["test_set/test"]],
        "subwords": [keys["subwords/everyday/joint"]],
        "train": [keys["train/softmax/1"]],
        "align": [keys["align/everyday/joint"]],
    }
    assert set(steps["decode/softmax-nvs/1/test"].inputs) == {"test_set", "subwords", "train"}
    assert set(steps["recall/softmax-nvs/1/test"].inputs) == {"test_set", "subwords", "train"}
    assert set(steps["recall/softmax-lexicon/1/test"].inputs) == {"test_set", "subwords", "align"}
    compare = steps["compare/scones-greedy/test/bleu"]
    assert compare.inputs["baseline"] == [keys["decode/softmax-beam4/1/test"]]
    assert compare.inputs["system"] == [keys["decode/scones-greedy/1/test"]]
    latency = steps["latency"]
    trained = [keys[f"train/{name}/1"] for name in ("softmax", "scones", "entmax")]
    assert latency.inputs["models"] == trained
    assert [system["model"] for system in latency.params["systems"]] == [0, 0, 0, 0, 1, 2]
    assert latency.resources.exclusive
    assert not decode.resources.exclusive

    where = {"system": "scones-greedy", "variant": "scones", "test_set": "test"}
    shown = {"variant": "scones", "seed": 1, "corpus": "everyday", "subwords": "joint"}
    assert labels["train/scones/1"] == shown
    assert labels["decode/scones-greedy/1/test"] == {**where, "seed": 1}
    assert labels["score/scones-greedy/1/test/chrf"] == {**where, "seed": 1, "metric": "chrf"}
    got = labels["compare/scones-greedy/test/chrf"]
    assert got == {**where, "baseline": "softmax-beam4", "metric": "chrf"}
    assert labels["latency"]["systems"][1] == "softmax-beam4"


def test_each_training_text_of_files_is_searched_once_for_all_test_sentences_of_files() -> None:
    result = planned(QUICK, files=False)
    assert result.steps["overlap/multi30k"].inputs == {
        "corpus": [result.keys["corpus/multi30k"]],
        "test_sets": [result.keys["test_set/test2016"]],
    }
    assert "overlap" not in planned(DEMO).plan.kinds()


def test_seeds_are_trained_apart_and_compared_together(write: Write) -> None:
    path = write(("objective: {kind: softmax}", "objective: {kind: softmax}\n    seeds: [1, 2]"))
    result = planned(path)
    keys, compare = result.keys, result.steps["compare/scones/test/bleu"]
    assert keys["train/softmax/1"] != keys["train/softmax/2"]
    assert compare.inputs["baseline"] == [keys[f"decode/greedy/{seed}/test"] for seed in (1, 2)]
    assert compare.inputs["system"] == [keys["decode/scones/1/test"]]
    # a lexicon's recall does not know the model
    assert keys["recall/lexicon/1/test"] == keys["recall/lexicon/2/test"]
    assert keys["recall/nvs/1/test"] != keys["recall/nvs/2/test"]


def test_frequent_subwords_are_added_to_the_lexicon_of_the_systems_that_use_them(write: Write) -> None:
    lexicon = "  lexicon: {variant: softmax, selection: {kind: lexicon, k: 5}}\n"
    shortlist = "  shortlist: {variant: softmax, selection: {kind: lexicon, k: 5, frequent: 20}}\n"
    timed = ("baseline: greedy\n", "baseline: greedy\nlatency: {test_set: test}\n")
    before = planned(write()).keys
    for systems in (lexicon + shortlist, shortlist + lexicon):
        after = planned(write((lexicon, systems), timed))
        for node in ("align/grammar/joint", "decode/lexicon/1/test", "recall/lexicon/1/test"):
            assert after.keys[node] == before[node]
        step = after.steps["shortlist/grammar/joint"]
        made_of = {role: [after.keys[f"{role}/grammar/joint"]] for role in ("align", "encode", "subwords")}
        assert step.inputs == made_of
        for node in ("decode/shortlist/1/test", "recall/shortlist/1/test", "latency"):
            assert after.steps[node].inputs["align"] == [step.key]


def test_only_what_is_needed(write: Write) -> None:
    corpora = "  grammar: {kind: synthetic}"
    lexicon = "  lexicon: {variant: softmax, selection: {kind: lexicon, k: 5}}\n"
    path = write((lexicon, ""), (corpora, f"{corpora}\n  unused: {{kind: synthetic, seed: 9}}"))
    kinds = planned(path).plan.kinds()
    assert kinds.keys().isdisjoint({"align", "latency"})
    assert kinds["corpus"] == 1


def test_equal_systems_are_one_step_and_two_nodes(write: Write) -> None:
    path = write(("  scones: {variant: scones}", "  scones: {variant: scones}\n  again: {variant: scones}"))
    result = planned(path)
    assert result.keys["decode/scones/1/test"] == result.keys["decode/again/1/test"]
    assert len({step.key for step in result.plan.steps}) == len(result.plan.steps)


def with_more(text: str) -> tuple[str, str]:
    """The study with these keys at its end."""
    return ("baseline: greedy", f"baseline: greedy\n{text}")


def test_comet_is_compared_by_its_segment_scores(write: Write) -> None:
    result = planned(write(with_more("metrics: [{kind: comet}]")))
    assert result.steps["compare/nvs/test/comet"].inputs["system"] == [result.keys["score/nvs/1/test/comet"]]


def test_a_checkpoint_enters_the_key_by_its_content(write: Write, tmp_path: Path) -> None:
    path = write(with_more("metrics: [{kind: comet, model: comet/model.ckpt}]"))
    checkpoint = tmp_path / "comet/model.ckpt"
    steps = [planned(path).steps["score/nvs/1/test/comet-model.ckpt"]]
    checkpoint.parent.mkdir()
    for content in (b"one", b"two"):
        checkpoint.write_bytes(content)
        steps.append(planned(path, root=tmp_path).steps["score/nvs/1/test/comet-model.ckpt"])
    assert len({step.key for step in steps}) == 3
    assert [step.locations for step in steps[:2]] == [{}, {"comet/model.ckpt": str(checkpoint)}]


# ---------------------------------------------------------------- what studies share


def test_another_study_shares_what_is_equal(write: Write) -> None:
    first = planned(write())
    assert planned(write(("name: small", "name: other"))).keys == first.keys
    changed = first.changed_from(planned(write(("alpha: 0.5", "alpha: 0.6"))))
    pairs = {"pairs/test"}  # of all systems
    assert {node.split("/")[1] for node in changed - pairs} == {"scones"}
    assert {node.split("/")[0] for node in changed} == {"train", "decode", "score", "compare", "pairs"}


@pytest.mark.parametrize(
    "override, changed",
    [
        ("variants.softmax.training.warmup=7", "train/softmax/1"),
        ("subwords.joint.vocabulary=99", "subwords/grammar/joint"),
        ("corpora.grammar.gamma=0.25", "corpus/grammar"),
        ("test_sets.test.seed=5", "test_set/test"),
        ("systems.greedy.precision=bf16", "decode/greedy/1/test"),
        ("alignment.iterations=2", "align/grammar/joint"),
        ("significance.samples=500", "compare/nvs/test/bleu"),
        ("recall.k=[1]", "recall/nvs/1/test"),
        ("languages.target=fr", "corpus/grammar"),
    ],
)
def test_a_changed_parameter_changes_its_step(write: Write, override: str, changed: str) -> None:
    path = write()
    assert changed in planned(path).changed_from(planned(path, override))


def test_resources_are_in_no_key_and_a_variants_override_the_studys_key_by_key(write: Write) -> None:
    kind = "resources={train: {cpus: 2, memory_gb: 8}}"
    own = "variants.softmax.resources={train: {cpus: 4, silent_minutes: 9}, decode: {gpus: 1}}"
    result = planned(write(), kind, own)
    assert result.keys == planned(write()).keys
    train, other = (result.steps[f"train/{name}/1"].resources for name in ("softmax", "scones"))
    assert (train.cpus, train.memory_gb, train.silent_minutes) == (4, 8.0, 9.0)
    assert (other.cpus, other.memory_gb, other.silent_minutes) == (2, 8.0, 120.0)
    assert train.timeout_minutes == 30 * 24 * 60
    decode, of_scones = (result.steps[f"decode/{name}/1/test"].resources for name in ("nvs", "scones"))
    assert (decode.gpus, of_scones.gpus, of_scones.cpus) == (1, 0, 1)
    with pytest.raises(InputError, match=r"resources\.trian: found an unknown step kind"):
        planned(write(), "variants.softmax.resources={trian: {cpus: 4}}")


def test_a_latency_run_knows_its_batch_size_but_for_1_and_has_the_cores_of_its_threads(write: Write) -> None:
    def found(more: str) -> tuple[str, str]:
        path = write(with_more(f"latency: {{test_set: test{more}}}"))
        return planned(path, files=False).keys["latency"], load_study(path).config_hash

    assert found("") == found(", batch_size: 1")
    assert not set(found("")) & set(found(", batch_size: 4"))
    path = write(with_more("latency: {test_set: test, threads: 2}"))
    assert planned(path).steps["latency"].resources.cpus == 2


def test_a_new_version_of_a_step_changes_what_stands_on_it(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write()
    before = planned(path)
    monkeypatch.setattr("creamtea.study.plan.ALIGN", dataclasses.replace(ALIGN, version=99))
    changed = before.changed_from(planned(path))
    assert {"align/grammar/joint", "decode/lexicon/1/test", "score/lexicon/1/test/bleu"} <= changed
    assert all("lexicon" in node or node.startswith(("align", "pairs")) for node in changed)


def test_keys_know_a_file_s_content_but_not_its_folder(write_files: Write, tmp_path: Path) -> None:
    path = write_files()
    here = planned(path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in [*tmp_path.glob("*.en"), *tmp_path.glob("*.de")]:
        (elsewhere / file.name).write_bytes(file.read_bytes())
    there = planned(path, root=elsewhere)
    assert there.keys == here.keys
    corpus = there.steps["corpus/text"]
    names = ("train.en", "train.de", "dev.en", "dev.de")
    assert corpus.locations == {name: str(elsewhere / name) for name in names}
    assert corpus.params["digests"].keys() == corpus.locations.keys()
    (elsewhere / "dev.en").write_text("one\ntwo\nfour\n", encoding="utf-8")
    changed = here.changed_from(planned(path, root=elsewhere))
    assert "corpus/text" in changed
    assert "test_set/test" not in changed


def test_tests_of_all_pairs_have_enough_resamples_for_the_correction(write: Write) -> None:
    """With 1,000 of them, the smallest p of 78 pairs would be 0.078 after Holm's correction. Of 31 systems
    there would be 465 pairs, and their resamples would soon pass every bound."""
    result = planned(write())
    pairs = result.steps["pairs/test"]
    systems = len(pairs.params["outputs"])
    assert systems > 2
    assert pairs.params["significance"]["samples"] == max(1000, 100 * systems * (systems - 1) // 2)
    assert len(result.labels["pairs/test"]["systems"]) == systems
    assert sum(pairs.params["outputs"]) == len(pairs.inputs["systems"])
    more = "".join(f"  more{number}: {{variant: softmax}}\n" for number in range(30))
    assert "pairs/test" not in planned(write(("systems:\n", f"systems:\n{more}"))).keys


# ---------------------------------------------------------------- keys of version 0.1.0

# Kinds whose version was raised on purpose since, and the version that they had: idioms are also asked by
# their own words, and listed with the subwords that are missed or that only the context selects; dropout of a
# training is seeded by batch; a calibration error has a basic bootstrap interval; test sets and outputs keep
# the texts as given, and scores say where these cannot be compared; what is blank is not translated; analyses
# keep what each segment adds to them
RAISED = {
    **{"recall": 2, "recall_at_size": 1, "nvs_context": 1, "train": 3, "calibration": 1},
    **{"test_set": 1, "score": 1, "decode": 1, "empty_string": 1, "depth_limited": 1, "search_errors": 1},
    **{"beam_sizes": 1, "support_density": 1},
}
NEW = ("encode/", "buckets/", "overlap/", "differences/", "pairs/")  # steps that 0.1.0 had not
STORED = json.loads(Path(__file__).with_name("keys-0.1.0.json").read_text(encoding="utf-8"))


def params_of_0_1(step: PlannedStep) -> dict[str, Any]:
    """The parameters without what has been added since: int8 layers round otherwise, an NVS head's gradient
    is clipped by itself, and entmax' logits start smaller."""
    if step.kind != "train":
        return {name: value for name, value in step.params.items() if name != "int8_version"}
    changed = {name: step.params[name] and dict(step.params[name]) for name in ("nvs", "objective")}
    if changed["nvs"] is not None:
        del changed["nvs"]["clip"]
    changed["objective"].pop("initial_scale", None)
    return step.params | changed


@pytest.mark.parametrize("name", STORED)
def test_the_keys_are_those_of_0_1_0(name: str) -> None:
    result = planned(ROOT / name, files=False).plan
    steps = {step.key: step for step in result.steps}

    def inputs_of_0_1(step: PlannedStep) -> dict[str, list[str]]:
        """Without the encoded text: each step encoded its corpus itself."""
        inputs = dict(step.inputs)
        if encoded := inputs.pop("encode", None):
            inputs["corpus"] = steps[encoded[0]].inputs["corpus"]
        return inputs

    @cache
    def key_of_0_1(key: str) -> str:
        step = steps[key]
        inputs = {role: [key_of_0_1(other) for other in keys] for role, keys in inputs_of_0_1(step).items()}
        return step_key(step.kind, RAISED.get(step.kind, step.version), params_of_0_1(step), inputs)

    nodes = [node for node in result.nodes if not node.node.startswith(NEW)]
    assert {node.node: key_of_0_1(node.key)[:16] for node in nodes} == STORED[name]["keys"]
