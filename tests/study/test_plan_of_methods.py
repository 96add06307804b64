"""The plan of adaptation, analyses, IBM-3 corpora, and systems with test sets and baselines of their own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from creamtea.study.loader import load_study
from creamtea.study.plan import Plan, PlannedStep, plan

ROOT = Path(__file__).resolve().parents[2]

Write = Callable[..., Path]

STUDY = """\
name: methods
languages: {source: en, target: de}
corpora:
  text:
    kind: files
    train: [{source: train.en, target: train.de}, {source: more.en, target: more.de, repeat: 3}]
    dev: {source: dev.en, target: dev.de}
    filters: {held_out: [test]}
  domain: {kind: files, train: [{source: more.en, target: more.de}], dev: {source: dev.en, target: dev.de}}
  sampled: {kind: ibm3, corpus: text, subwords: joint, gamma: 0.5}
subwords:
  joint: {kind: bpe, vocabulary: 100}
variants:
  base: {corpus: text, subwords: joint, objective: {kind: softmax}, nvs: {}, seeds: [1, 2]}
  adapted:
    corpus: domain
    subwords: joint
    objective: {kind: softmax}
    nvs: {}
    start_from: base
    alignment_corpus: text
  synthetic: {corpus: sampled, subwords: joint, objective: {kind: scones}}
systems:
  base: {variant: base, test_sets: [test]}
  lexicon: {variant: base, selection: {kind: lexicon}, test_sets: [test]}
  adapted-lexicon: {variant: adapted, selection: {kind: lexicon}, test_sets: [test]}
  synthetic: {variant: synthetic, test_sets: [sampled], baseline: synthetic}
  synthetic-beam: {variant: synthetic, search: {kind: beam}, test_sets: [sampled], baseline: synthetic}
baseline: base
test_sets:
  test: {kind: files, source: test.en, target: test.de, itds: {info: test.info, corpus: text}}
  sampled: {kind: ibm3, corpus: sampled, source: test.en}
analyses:
  curse: {kind: beam_sizes, test_set: test, variants: [base], widths: [1, 4], sentences: 2}
  errors: {kind: search_errors, test_set: test, variants: [base], widths: [4], sentences: 2, max_states: 50}
  empty: {kind: empty_string, test_set: test}
  size: {kind: recall_at_size, test_set: test}
  buckets: {kind: buckets, test_set: test, labels: labels.txt}
  lengths: {kind: buckets, test_set: sampled, systems: [synthetic], by: [length]}
"""


@pytest.fixture
def planned(write: Write) -> Plan:
    pairs = [f"{name}.{side}" for name in ("train", "more", "dev", "test") for side in ("en", "de")]
    for name in [*pairs, "test.info", "labels.txt"]:
        Path(name).write_text(f"one {name}\ntwo\nthree\n", encoding="utf-8")
    return plan(load_study(write(text=STUDY)).study, Path())


def step_of(planned: Plan, node: str) -> PlannedStep:
    (key,) = [found.key for found in planned.nodes if found.node == node]
    (step,) = [step for step in planned.steps if step.key == key]
    return step


def test_every_step_comes_after_what_it_needs(planned: Plan) -> None:
    known: set[str] = set()
    for step in planned.steps:
        assert {key for keys in step.inputs.values() for key in keys} <= known
        known.add(step.key)


def test_node_names_are_unique(planned: Plan) -> None:
    names = [node.node for node in planned.nodes]
    assert len(names) == len(set(names))


def test_an_adapted_variant_starts_from_the_same_seed_in_the_same_subwords(planned: Plan) -> None:
    base, adapted = step_of(planned, "train/base/1"), step_of(planned, "train/adapted/1")
    assert adapted.inputs["initial"] == [base.key]
    assert adapted.inputs["subwords"] == base.inputs["subwords"]
    assert adapted.inputs["corpus"] == [step_of(planned, "corpus/domain").key]
    assert "initial" not in base.inputs


def test_an_adaptation_may_have_another_dropout(write: Write, planned: Plan) -> None:
    start = "    start_from: base\n"
    other = STUDY.replace(start, f"{start}    architecture: {{dropout: 0.3}}\n")
    adapted = step_of(plan(load_study(write(text=other)).study, Path()), "train/adapted/1")
    assert adapted.params["architecture"]["dropout"] == 0.3
    assert adapted.inputs["initial"] == step_of(planned, "train/adapted/1").inputs["initial"]


def test_its_lexicon_is_aligned_where_it_says(planned: Plan) -> None:
    lexicon = step_of(planned, "decode/adapted-lexicon/1/test").inputs["align"]
    assert lexicon == [step_of(planned, "align/text/joint").key]


def test_what_is_held_out_goes_in_by_its_content(planned: Plan) -> None:
    corpus = step_of(planned, "corpus/text")
    assert corpus.params["held_out"] == [{"source": "test.en", "tokenized": "no"}]
    assert "test.en" in corpus.params["digests"]
    assert not corpus.inputs


def test_idioms_of_itds_are_aligned_with_a_corpus(planned: Plan) -> None:
    test_set = step_of(planned, "test_set/test")
    assert test_set.inputs == {"corpus": [step_of(planned, "corpus/text").key]}
    assert set(test_set.params["digests"]) == {"test.en", "test.de", "test.info"}


def test_a_sampled_corpus_stands_on_counted_tables(planned: Plan) -> None:
    tables = step_of(planned, "ibm3/text/joint/9")
    sampled, test_set = step_of(planned, "corpus/sampled"), step_of(planned, "test_set/sampled")
    assert sampled.inputs["ibm3"] == test_set.inputs["ibm3"] == [tables.key]
    encoded = step_of(planned, "encode/text/joint")
    assert tables.inputs["encode"] == [encoded.key]
    assert encoded.inputs["corpus"] == sampled.inputs["corpus"] == [step_of(planned, "corpus/text").key]
    assert test_set.params["corpus"] == sampled.params["corpus"]


def test_systems_translate_their_own_test_sets_and_have_their_own_baselines(planned: Plan) -> None:
    decoded = {
        (node.labels["system"], node.labels["test_set"])
        for node in planned.nodes
        if node.node.startswith("decode/") and "system" in node.labels
    }
    assert ("synthetic", "sampled") in decoded
    assert ("base", "sampled") not in decoded
    compared = {
        node.labels["system"]: node.labels["baseline"]
        for node in planned.nodes
        if node.node.startswith("compare/")
    }
    assert compared == {"lexicon": "base", "adapted-lexicon": "base", "synthetic-beam": "synthetic"}


def test_analyses_of_a_part_share_its_decodes(planned: Plan) -> None:
    curse = step_of(planned, "beam_sizes/curse/base/2")
    errors = step_of(planned, "search_errors/errors/base/2")
    assert curse.inputs["test_set"] == errors.inputs["test_set"] == [step_of(planned, "test_set/test@2").key]
    assert curse.params["widths"] == [1, 4]
    assert curse.params["metric"] == errors.params["metric"] == {"kind": "bleu", "tokenize": "13a"}
    assert errors.inputs["decode"] == curse.inputs["decode"][1:]
    exact = step_of(planned, "decode/errors/base/2/exact")
    assert errors.inputs["exact"] == [exact.key]
    assert exact.params["search"]["max_states"] == 50


def test_an_analysis_of_all_segments_shares_the_systems_decode(planned: Plan) -> None:
    empty = step_of(planned, "empty_string/empty/base/1")
    assert empty.inputs["decode"] == [step_of(planned, "decode/base/1/test").key]
    nodes = {node.labels["system"] for node in planned.nodes if node.node.startswith("empty_string/")}
    assert nodes == {"base"}  # neither a selection nor what translates another test set


def test_rows_of_an_analysis_are_compared_by_steps_of_all_seeds() -> None:
    study = load_study(ROOT / "studies/scones-multi30k.yaml").study
    planned = plan(study, None)
    nodes = {
        (node.labels["variant"], node.labels.get("baseline")): node.key
        for node in planned.nodes
        if node.node.startswith("differences/exact-search/")
    }
    small, middle, large = (f"scones+alpha={alpha}" for alpha in ("0.2", "0.5", "1.0"))
    baselines = {(variant, "softmax") for variant in (small, middle, large)} | {
        (middle, small),
        (large, small),
    }
    assert set(nodes) == baselines | {(variant, None) for variant in study.variants}
    steps = {step.key: step for step in planned.steps}
    keys = {
        variant: [step_of(planned, f"search_errors/exact-search/{variant}/{seed}").key for seed in spec.seeds]
        for variant, spec in study.variants.items()
    }
    between, over = steps[nodes[large, small]], steps[nodes[large, None]]
    assert between.inputs == {"system": keys[large], "baseline": keys[small]}
    # 5 pairs at 4 beams and exact search: a p of 1 / 2501 stays below 0.05 after Holm's correction over 25
    assert between.params == {"samples": 2500, "seed": 12345}
    assert over.inputs == {"system": keys[large]}
    assert over.params == {"base": "4", "samples": 1600, "seed": 12345}


def test_buckets_are_of_the_outputs_there_are(planned: Plan) -> None:
    nodes = {node.node for node in planned.nodes if node.node.startswith("buckets/buckets/")}
    of_base = {f"buckets/buckets/{system}/{seed}" for system in ("base", "lexicon") for seed in (1, 2)}
    assert nodes == {*of_base, "buckets/buckets/adapted-lexicon/1"}
    step = step_of(planned, "buckets/buckets/lexicon/2")
    assert step.inputs["decode"] == [step_of(planned, "decode/lexicon/2/test").key]
    assert step.inputs["corpus"] == [step_of(planned, "corpus/text").key]  # the baseline's
    assert list(step.params["digests"]) == list(step.locations) == ["labels.txt"]
    lengths = step_of(planned, "buckets/lengths/synthetic/1")
    assert "corpus" not in lengths.inputs  # nothing to count there


def test_recall_at_size_is_of_the_variants_with_a_head(planned: Plan) -> None:
    of = {node.labels["variant"] for node in planned.nodes if node.node.startswith("recall_at_size/")}
    assert of == {"base", "adapted"}
    assert step_of(planned, "recall_at_size/size/base/1").inputs["align"]
