"""Parts of a study that do not fit together: adaptation, IBM-3, searches, precisions, analyses, latency."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from creamtea.errors import InputError
from creamtea.methods.architectures import Architecture
from creamtea.study.loader import load_study

Write = Callable[..., Path]

GREEDY = "  greedy: {variant: softmax}"
BASELINE = "baseline: greedy"
TWO_SETS = "  test: {kind: synthetic, corpus: grammar}\n  other: {kind: synthetic, corpus: grammar, seed: 9}"
ANALYSES = f"{BASELINE}\nanalyses:\n  "
ADAPTED = "systems:\n"
ADAPTATION = "  adapted: {corpus: grammar, subwords: joint, objective: {kind: softmax}"
GRAMMAR = "  grammar: {kind: synthetic}"
FILES = "  text: {kind: files, train: [{source: a, target: b}], dev: {source: a, target: b}"
BAD = {
    "a batch that the timed sentences do not fill": (
        (
            "baseline: greedy",
            "baseline: greedy\nlatency: {test_set: test, sentences: 10, batch_size: 4}",
        ),
        "study.yaml:23: latency.batch_size: found 4, and 10 sentences, "
        "allowed a size that divides latency.sentences (8, say), for batches of one size",
    ),
    "a batch larger than what is timed": (
        ("baseline: greedy", "baseline: greedy\nlatency: {test_set: test, batch_size: 64}"),
        "study.yaml:23: latency.batch_size: found 64, and 20 sentences, "
        "allowed a size that divides latency.sentences (64, say), for batches of one size",
    ),
    "starts from nobody": (
        (
            ADAPTED,
            "  adapted: {corpus: grammar, subwords: joint, objective: {kind: softmax}, start_from: sofmax}\n",
        ),
        'study.yaml:17: variants.adapted.start_from: found "sofmax", '
        "allowed a variant: softmax, scones, adapted (did you mean softmax?)",
    ),
    "starts from itself": (
        (
            ADAPTED,
            f"{ADAPTATION}, start_from: adapted}}\n",
        ),
        'study.yaml:17: variants.adapted.start_from: found "adapted", a cycle, '
        "allowed a variant trained before this",
    ),
    "starts from another size": (
        (
            ADAPTED,
            f"{ADAPTATION}, start_from: softmax, nvs: {{}}, architecture: {{width: 64}}}}\n",
        ),
        "study.yaml:17: variants.adapted.architecture: found not softmax's, "
        "allowed the architecture of what it starts from, in every key but those of dropout",
    ),
    "starts from a seed that is not trained": (
        (
            ADAPTED,
            f"{ADAPTATION}, start_from: softmax, nvs: {{}}, seeds: [1, 7]}}\n",
        ),
        "study.yaml:17: variants.adapted.seeds: found 7, allowed seeds that softmax is trained with: 1",
    ),
    "starts from a head that it would drop": (
        (
            ADAPTED,
            f"{ADAPTATION}, start_from: softmax}}\n",
        ),
        "study.yaml:17: variants.adapted.nvs: found nothing, where softmax has an NVS head, "
        "allowed `nvs`, as that one has",
    ),
    "an alpha so near to one that it is softmax's": (
        ("    objective: {kind: softmax}", "    objective: {kind: entmax, alpha: 1.0000001}"),
        "study.yaml:11: variants.softmax.objective.alpha: found 1.0000001, "
        "allowed at least 1.000001: nearer to 1 entmax is softmax but for 0.000001 (`kind: softmax`)",
    ),
    "an alpha beyond fp64": (
        ("    objective: {kind: softmax}", "    objective: {kind: entmax, alpha: 51}"),
        "study.yaml:11: variants.softmax.objective.alpha: found 51, allowed at most 50: beyond, a large "
        "vocabulary's threshold is below the smallest number, and all but the most likely words have had 0 "
        "already has probability 0",
    ),
    "two weights of a head": (
        ("    nvs: {}", "    nvs: {positive_weight: 10.0, auto_weight: 1.0}"),
        "study.yaml:12: variants.softmax.nvs.positive_weight: found 10.0 beside auto_weight 1.0, "
        "allowed one of the two: auto_weight takes its place",
    ),
    "unigrams that smooth nothing": (
        ("    objective: {kind: softmax}", "    objective: {kind: softmax, smoothing: unigram}"),
        "study.yaml:11: variants.softmax.objective.smoothing: found unigram without label_smoothing, "
        "allowed a label_smoothing above 0 beside it, or no `smoothing`",
    ),
    "exact search with length normalisation": (
        (GREEDY, "  greedy: {variant: softmax, search: {kind: exact, length_normalization: 1.0}}"),
        "study.yaml:18: systems.greedy.search.length_normalization: found 1.0 in an exact search, allowed no "
        "length_normalization: exact search prunes by a score that only falls as a hypothesis grows, which a "
        "normalised one does not",
    ),
    "top-k below one": (
        (GREEDY, "  greedy: {variant: softmax, search: {kind: sample, top_k: 0}}"),
        "study.yaml:18: systems.greedy.search.top_k: found 0, allowed at least 1",
    ),
    "more frequent subwords than the vocabulary has": (
        (GREEDY, "  greedy: {variant: softmax, selection: {kind: lexicon, frequent: 200}}"),
        "study.yaml:18: systems.greedy.selection.frequent: found 200, of 100 subwords, "
        "allowed at most the size of the vocabulary",
    ),
    "the perplexity of SCONES": (
        (
            "objective: {kind: scones, alpha: 0.5}",
            "objective: {kind: scones, alpha: 0.5}\n    training: {select_by: perplexity}",
        ),
        "study.yaml:17: variants.scones.training.select_by: found perplexity of SCONES α=0.5: "
        "its scores need not sum to 1: a model that accepts all words is best, "
        "allowed loss, or a metric of translations",
    ),
    "a beam with a setting of samples": (
        (
            GREEDY,
            "  greedy: {variant: softmax, search: "
            "{kind: rerank, found_by: beam, top_p: 0.9, metric: {kind: chrf}}}",
        ),
        "study.yaml:18: systems.greedy.search.top_p: found top_p beside `found_by: beam`, "
        "allowed no such key: it is of samples",
    ),
    "latency of a system that is reranked": (
        (
            "  scones: {variant: scones}\nbaseline: greedy",
            "  scones: {variant: scones, search: {kind: rerank, metric: {kind: chrf}}}\nbaseline: greedy\n"
            "latency: {test_set: test}",
        ),
        "study.yaml:23: latency.systems: found scones, which is reranked when all sentences are translated, "
        "allowed systems without `kind: rerank`",
    ),
    "reranking by a metric of words": (
        (GREEDY, "  greedy: {variant: softmax, search: {kind: rerank, metric: {kind: wer}}}"),
        "study.yaml:18: systems.greedy.search.metric: found WER, a mean over words of languages, "
        "allowed a metric of segments",
    ),
    "GNMT's length penalty to the power of 0": (
        (
            GREEDY,
            "  greedy: {variant: softmax, search: "
            "{kind: beam, length_penalty: gnmt, length_normalization: 0.0}}",
        ),
        "study.yaml:18: systems.greedy.search.length_penalty: found gnmt with length_normalization 0, "
        "which divides by nothing, allowed a length_normalization above 0",
    ),
    "a beam wider than the vocabulary": (
        (GREEDY, "  greedy: {variant: softmax, search: {kind: beam, width: 200}}"),
        "study.yaml:18: systems.greedy.search.width: found 200, of 100 subwords, "
        "allowed at most the size of the vocabulary",
    ),
    "more processors than any machine has": (
        (BASELINE, "baseline: greedy\nresources: {train: {cpus: 1000000}}"),
        "study.yaml:23: resources.train.cpus: found 1000000, allowed at most 4,096",
    ),
    "workers from more to fewer": (
        (BASELINE, "baseline: greedy\nresources: {train: {workers: [4, 2]}}"),
        "study.yaml:23: resources.train.workers: found a list of 2, allowed a value that fits: "
        "this one has the larger number first",
    ),
    "several workers for a step that has one": (
        (BASELINE, "baseline: greedy\nresources: {score: {workers: 2}}"),
        "study.yaml:23: resources.score.workers: found several workers for a score step, "
        "allowed it under train or decode",
    ),
    "fp16 on a CPU": (
        (GREEDY, "  greedy: {variant: softmax, precision: fp16}"),
        "study.yaml:18: systems.greedy.precision: found fp16 on a CPU, allowed fp32, bf16, int8, "
        "or `gpus: 1` in resources.decode",
    ),
    "exact search in int8": (
        (GREEDY, "  greedy: {variant: softmax, search: {kind: exact}, precision: int8}"),
        "study.yaml:18: systems.greedy.precision: found int8 with exact search, allowed another precision",
    ),
    "an IBM-3 corpus over no files": (
        (
            "  grammar: {kind: synthetic}",
            "  grammar: {kind: synthetic}\n  ibm3: {kind: ibm3, corpus: grammar, subwords: joint}",
        ),
        'study.yaml:5: corpora.ibm3.corpus: found "grammar", a synthetic corpus, '
        "allowed a corpus of files (there is none)",
    ),
    "a table without an aligner for it": (
        (BASELINE, "baseline: greedy\nalignment: {table: lex.txt}"),
        "study.yaml:23: alignment.table: found a table beside `aligner: em`, "
        "allowed `aligner: table`, or no table",
    ),
    "an aligner without its table": (
        (BASELINE, "baseline: greedy\nalignment: {aligner: table}"),
        "study.yaml:23: alignment.table: found nothing, allowed the path of a table, for `aligner: table`",
    ),
    "an analysis of an unknown variant": (
        (
            BASELINE,
            "baseline: greedy\nanalyses:\n  ece: {kind: calibration, test_set: test, variants: [sofmax]}",
        ),
        'study.yaml:24: analyses.ece.variants[0]: found "sofmax", '
        "allowed a variant: softmax, scones (did you mean softmax?)",
    ),
    "a baseline of an analysis that is not analysed": (
        (
            BASELINE,
            ANALYSES + "ece: {kind: calibration, test_set: test, variants: [softmax], "
            "baseline_variants: [scones]}",
        ),
        "study.yaml:24: analyses.ece.baseline_variants[0]: found scones, which is not analysed, "
        "allowed softmax",
    ),
    "a baseline of an analysis that selects its vocabulary": (
        (BASELINE, ANALYSES + "empty: {kind: empty_string, test_set: test, baselines: [lexicon]}"),
        "study.yaml:24: analyses.empty.baselines[0]: found lexicon, which selects its vocabulary, "
        "allowed a system with the full vocabulary",
    ),
    "an analysis on an unknown test set": (
        (BASELINE, ANALYSES + "ece: {kind: calibration, test_set: tests}"),
        'study.yaml:24: analyses.ece.test_set: found "tests", allowed a test set: test (did you mean test?)',
    ),
    "recall at size without a head": (
        (
            BASELINE,
            "baseline: greedy\nanalyses:\n  size: {kind: recall_at_size, test_set: test, variants: [scones]}",
        ),
        "study.yaml:24: analyses.size.variants[0]: found scones, which has no NVS head, "
        "allowed a variant with `nvs: {}`: softmax",
    ),
    "recall at a k that is not stored": (
        (BASELINE, ANALYSES + "size: {kind: recall_at_size, test_set: test, k: [2000]}"),
        "study.yaml:24: analyses.size.k[0]: found 2000, allowed at most alignment.max_k = 1000",
    ),
    "the empty string under a selection": (
        (
            BASELINE,
            "baseline: greedy\nanalyses:\n  empty: {kind: empty_string, test_set: test, systems: [lexicon]}",
        ),
        "study.yaml:24: analyses.empty.systems[0]: found lexicon, which selects its vocabulary, "
        "allowed a system with the full vocabulary",
    ),
    "buckets by labels that nobody gave": (
        (BASELINE, f"{ANALYSES}b: {{kind: buckets, test_set: test, by: [length, label]}}"),
        "study.yaml:24: analyses.b.by: found label without labels, allowed `labels: FILE` beside it",
    ),
    "a width that is asked for twice": (
        (BASELINE, f"{ANALYSES}curse: {{kind: beam_sizes, test_set: test, widths: [4, 8, 4]}}"),
        "study.yaml:24: analyses.curse.widths[2]: found 4 twice, allowed each once",
    ),
    "buckets whose bounds fall": (
        (BASELINE, f"{ANALYSES}b: {{kind: buckets, test_set: test, lengths: [10, 5]}}"),
        "study.yaml:24: analyses.b.lengths: found 10, 5, which does not rise, allowed rising numbers",
    ),
    "buckets of an unknown corpus": (
        (BASELINE, f"{ANALYSES}b: {{kind: buckets, test_set: test, corpus: gramar}}"),
        'study.yaml:24: analyses.b.corpus: found "gramar", allowed a corpus: grammar (did you mean grammar?)',
    ),
    "a latency baseline that is not timed": (
        (BASELINE, "baseline: greedy\nlatency: {test_set: test, systems: [greedy], baselines: [scones]}"),
        "study.yaml:23: latency.baselines[0]: found scones, which is not timed, "
        "allowed one of latency.systems",
    ),
    "a held-out set that is no set of files": (
        (
            "  grammar: {kind: synthetic}",
            f"{GRAMMAR}\n{FILES}, filters: {{held_out: [test]}}}}",
        ),
        'study.yaml:5: corpora.text.filters.held_out[0]: found "test", '
        "allowed a test set of files (there is none)",
    ),
}


@pytest.mark.parametrize("change, line", BAD.values(), ids=BAD.keys())
def test_one_mistake_is_one_line(write: Write, change: tuple[str, str], line: str) -> None:
    old, new = change
    path = write((old, new + old if old == ADAPTED else new))
    with pytest.raises(InputError) as caught:
        load_study(path)
    found, allowed = line.split(", allowed ", 1) if ", allowed " in line else (line, "")
    mistake, total = str(caught.value).split("\n")
    assert mistake.startswith(found)  # the place, the key and what is there
    assert mistake.count(allowed[:12]) >= 1
    assert total == "1 mistake in study.yaml"


def test_a_preset_gives_sizes_and_what_is_beside_it_overrides_it(write: Write) -> None:
    path = write(
        ("    nvs: {}", "    architecture: {preset: deep, decoder_layers: 3}"),
        ("  nvs: {variant: softmax, selection: {kind: nvs}}\n", ""),
    )
    found = load_study(path).study.variants["softmax"].architecture
    sizes = {"kind": "ssru", "encoder_layers": 20, "decoder_layers": 3, "width": 1024, "heads": 16}
    assert found.model_dump(include=set(sizes)) == sizes
    assert "preset" not in found.model_dump()  # two ways to write one size are one training
    assert TypeAdapter(Architecture).validate_python(found.model_dump()) == found.model_copy(
        update={"preset": None}
    )


def test_a_grid_in_an_analysis_stands_for_its_members(write: Write) -> None:
    path = write(
        ("alpha: 0.5}", "alpha: [0.2, 0.5]}"),
        (
            BASELINE,
            "baseline: greedy\nanalyses:\n  ece: {kind: calibration, test_set: test, variants: [scones]}",
        ),
    )
    analysis = load_study(path).study.analyses["ece"]
    assert analysis.variants == ["scones+alpha=0.2", "scones+alpha=0.5"]  # type: ignore[union-attr]


def test_a_baseline_must_translate_what_is_compared_with_it(write: Write) -> None:
    path = write(
        ("  test: {kind: synthetic, corpus: grammar}", TWO_SETS),
        (GREEDY, "  greedy: {variant: softmax, test_sets: [test]}"),
        ("  lexicon: {variant: softmax, selection: {kind: lexicon, k: 5}}\n", ""),
        ("  nvs: {variant: softmax, selection: {kind: nvs}}\n", ""),
    )
    with pytest.raises(InputError) as caught:
        load_study(path)
    assert str(caught.value).splitlines()[0] == (
        "study.yaml:19: systems.scones.test_sets: found other, which greedy does not translate, "
        "allowed a `baseline` that translates all of scones's test sets"
    )


def test_baselines_are_no_cycle(write: Write) -> None:
    path = write(
        ("nvs: {variant: softmax,", "nvs: {baseline: lexicon, variant: softmax,"),
        ("lexicon: {variant: softmax,", "lexicon: {baseline: nvs, variant: softmax,"),
    )
    with pytest.raises(InputError, match=r"systems\.lexicon\.baseline: found nvs, a cycle") as caught:
        load_study(path)
    assert "systems.nvs.baseline: found lexicon, a cycle" in str(caught.value)
    with pytest.raises(InputError, match=r"systems\.greedy\.baseline: found nvs, a cycle"):
        load_study(
            write(), ["systems.greedy.baseline=nvs"]
        )  # which is compared with the study's baseline, greedy
    load_study(write(("nvs: {variant: softmax,", "nvs: {baseline: lexicon, variant: softmax,")))


def test_one_member_of_a_grid_may_have_no_smoothing(write: Write) -> None:
    path = write(
        (
            "{kind: scones, alpha: 0.5}",
            "{kind: entmax, smoothing: unigram, label_smoothing: [0.0, 0.1]}",
        )
    )
    assert len(load_study(path).study.variants) == 3


def test_test_sets_that_are_none_are_one_mistake(write: Write) -> None:
    path = write(("test_sets:\n  test: {kind: synthetic, corpus: grammar}", "test_sets: true"))
    with pytest.raises(InputError, match="test_sets: found true, allowed a block of keys\n1 mistake"):
        load_study(path)


def test_every_worker_needs_batches_of_an_update(write: Write) -> None:
    path = write((BASELINE, "baseline: greedy\nresources: {train: {workers: [2, 4]}}"))
    with pytest.raises(
        InputError, match=r"variants\.softmax\.training\.accumulate: found 1, allowed at least 4"
    ):
        load_study(path)
    load_study(path, [*(f"variants.{name}.training.accumulate=4" for name in ("softmax", "scones"))])


@pytest.mark.parametrize("number", ["a", "1e", "--1"])
def test_a_number_that_is_none(write: Write, number: str) -> None:
    with pytest.raises(
        InputError, match=rf"subwords\.joint\.vocabulary: found {number}, allowed text, a number"
    ):
        load_study(write(("vocabulary: 100", f"vocabulary: !!float {number}")))
