"""The plan of adaptation, analyses, IBM-3 corpora, and systems with test sets and baselines of their own."""

from pathlib import Path

import pytest
from study_plans import PlannedStudy, planned

from creamtea.study.loader import load_study

ROOT = Path(__file__).resolve().parents[2]

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


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("methods")
    pairs = [f"{name}.{side}" for name in ("train", "more", "dev", "test") for side in ("en", "de")]
    for name in [*pairs, "test.info", "labels.txt"]:
        (folder / name).write_text(f"one {name}\ntwo\nthree\n", encoding="utf-8")
    study = folder / "study.yaml"
    study.write_text(STUDY, encoding="utf-8")
    return study


@pytest.fixture(scope="module")
def result(path: Path) -> PlannedStudy:
    return planned(path)


def test_an_adapted_variant_starts_from_the_same_seed_in_the_same_subwords(
    result: PlannedStudy, path: Path
) -> None:
    keys, base, adapted = result.keys, result.steps["train/base/1"], result.steps["train/adapted/1"]
    assert adapted.inputs["initial"] == [base.key]
    assert adapted.inputs["subwords"] == base.inputs["subwords"]
    assert adapted.inputs["corpus"] == [keys["corpus/domain"]]
    assert "initial" not in base.inputs
    lexicon = result.steps["decode/adapted-lexicon/1/test"].inputs["align"]
    assert lexicon == [keys["align/text/joint"]], "aligned where it says"
    other = planned(path, "variants.adapted.architecture={dropout: 0.3}", "variants.adapted.seeds=[1, 2]")
    assert other.steps["train/adapted/1"].params["architecture"]["dropout"] == 0.3
    for seed in (1, 2):
        assert other.steps[f"train/adapted/{seed}"].inputs["initial"] == [keys[f"train/base/{seed}"]]


def test_texts_that_are_held_out_or_annotated_go_in_by_their_content(result: PlannedStudy) -> None:
    corpus, test_set = result.steps["corpus/text"], result.steps["test_set/test"]
    assert corpus.params["held_out"] == [{"source": "test.en", "tokenized": "no"}]
    assert "test.en" in corpus.params["digests"]
    assert not corpus.inputs
    # idioms of IdiomTranslationDS are aligned with a corpus
    assert test_set.inputs == {"corpus": [corpus.key]}
    assert set(test_set.params["digests"]) == {"test.en", "test.de", "test.info"}


def test_a_sampled_corpus_stands_on_counted_tables(result: PlannedStudy) -> None:
    tables, encoded = result.steps["ibm3/text/joint/9"], result.steps["encode/text/joint"]
    sampled, test_set = result.steps["corpus/sampled"], result.steps["test_set/sampled"]
    assert sampled.inputs["ibm3"] == test_set.inputs["ibm3"] == [tables.key]
    assert tables.inputs["encode"] == [encoded.key]
    assert encoded.inputs["corpus"] == sampled.inputs["corpus"] == [result.keys["corpus/text"]]
    assert test_set.params["corpus"] == sampled.params["corpus"]


def test_systems_translate_their_own_test_sets_and_have_their_own_baselines(result: PlannedStudy) -> None:
    assert "decode/synthetic/1/sampled" in result.keys
    assert not result.named("decode/base/1/sampled")
    compared = [result.labels[node] for node in result.named("compare/")]
    assert {labels["system"]: labels["baseline"] for labels in compared} == {
        "lexicon": "base",
        "adapted-lexicon": "base",
        "synthetic-beam": "synthetic",
    }


def test_analyses_share_decodes(result: PlannedStudy) -> None:
    curse, errors = result.steps["beam_sizes/curse/base/2"], result.steps["search_errors/errors/base/2"]
    assert curse.inputs["test_set"] == errors.inputs["test_set"] == [result.keys["test_set/test@2"]]
    assert curse.params["widths"] == [1, 4]
    assert curse.params["metric"] == errors.params["metric"] == {"kind": "bleu", "tokenize": "13a"}
    assert errors.inputs["decode"] == curse.inputs["decode"][1:]
    exact = result.steps["decode/errors/base/2/exact"]
    assert errors.inputs["exact"] == [exact.key]
    assert exact.params["search"]["max_states"] == 50
    # of all segments: the system's own decode, and neither a selection nor what translates another test set
    empty = result.steps["empty_string/empty/base/1"]
    assert empty.inputs["decode"] == [result.keys["decode/base/1/test"]]
    assert {result.labels[node]["system"] for node in result.named("empty_string/")} == {"base"}


def test_rows_of_an_analysis_are_compared_by_steps_of_all_seeds() -> None:
    study = load_study(ROOT / "studies/scones-multi30k.yaml").study
    result = planned(ROOT / "studies/scones-multi30k.yaml", files=False)
    steps = {
        (result.labels[node]["variant"], result.labels[node].get("baseline")): result.steps[node]
        for node in result.named("differences/exact-search/")
    }
    small, middle, large = (f"scones+alpha={alpha}" for alpha in ("0.2", "0.5", "1.0"))
    baselines = {(variant, "softmax") for variant in (small, middle, large)}
    baselines |= {(middle, small), (large, small)}
    assert set(steps) == baselines | {(variant, None) for variant in study.variants}
    keys = {
        variant: [result.keys[f"search_errors/exact-search/{variant}/{seed}"] for seed in spec.seeds]
        for variant, spec in study.variants.items()
    }
    between, over = steps[large, small], steps[large, None]
    assert between.inputs == {"system": keys[large], "baseline": keys[small]}
    # 5 pairs at 4 beams and exact search: a p of 1 / 2501 stays below 0.05 after Holm's correction over 25
    assert between.params == {"samples": 2500, "seed": 12345}
    assert over.inputs == {"system": keys[large]}
    assert over.params == {"base": "4", "samples": 1600, "seed": 12345}


def test_buckets_are_of_the_outputs_there_are(result: PlannedStudy) -> None:
    of_base = {f"buckets/buckets/{system}/{seed}" for system in ("base", "lexicon") for seed in (1, 2)}
    assert result.named("buckets/buckets/") == {*of_base, "buckets/buckets/adapted-lexicon/1"}
    step = result.steps["buckets/buckets/lexicon/2"]
    assert step.inputs["decode"] == [result.keys["decode/lexicon/2/test"]]
    assert step.inputs["corpus"] == [result.keys["corpus/text"]]  # the baseline's
    assert list(step.params["digests"]) == list(step.locations) == ["labels.txt"]
    assert "corpus" not in result.steps["buckets/lengths/synthetic/1"].inputs  # nothing to count there


def test_recall_at_size_is_of_the_variants_with_a_head(result: PlannedStudy) -> None:
    assert {result.labels[node]["variant"] for node in result.named("recall_at_size/")} == {"base", "adapted"}
    assert result.steps["recall_at_size/size/base/1"].inputs["align"]
