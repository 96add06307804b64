"""The score and compare steps on files, against sacreBLEU called directly."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from creamtea.contract.step import StepKind
from creamtea.errors import StepError
from creamtea.steps.systems import COMPARE, PAIRS, SCORE

WORDS = ["a", "small", "dog", "runs", "over", "the", "street", "and", "barks", "at", "cats", "."]
Fixture = Callable[..., Any]


def sentences(count: int, seed: int) -> list[str]:
    random = Random(seed)
    return [" ".join(random.choices(WORDS, k=random.randint(3, 12))) for _ in range(count)]


def changed(lines: list[str], rate: float, seed: int) -> list[str]:
    random = Random(seed)
    return [
        " ".join(random.choice(WORDS) if random.random() < rate else word for word in line.split())
        for line in lines
    ]


REFERENCES = sentences(60, 0)
# a line separator and a blank hypothesis: neither may shift what follows
HYPOTHESES = [*changed(REFERENCES[:-2], 0.3, 1), "a small\u2028dog", ""]


def segment_scores(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "segment_scores.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_bleu_has_its_value_interval_signature_and_length_ratio(
    make_context: Fixture, test_set_folder: Fixture, decode_folder: Fixture
) -> None:
    folders = {"test_set": [test_set_folder(REFERENCES)], "decode": [decode_folder(HYPOTHESES)]}
    context = make_context(SCORE, {"metric": {"kind": "bleu"}}, folders)
    bleu, length = context.run().metrics

    scorer = BLEU()
    theirs = scorer.corpus_score(HYPOTHESES, [REFERENCES], n_bootstrap=1000)
    assert bleu.value == pytest.approx(theirs.score)
    assert (bleu.high - bleu.low) / 2 == pytest.approx(theirs._ci, rel=1e-5)
    assert bleu.detail["bootstrap"]["mean"] == pytest.approx(theirs._mean, rel=1e-5)
    assert bleu.detail["signature"] == "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    assert (bleu.name, length.name) == ("bleu", "length_ratio")
    assert length.value == pytest.approx(theirs.sys_len / theirs.ref_len)

    sentence = BLEU(effective_order=True)
    pairs = zip(HYPOTHESES, REFERENCES, strict=True)
    expected = [sentence.sentence_score(h, [r]).score for h, r in pairs]
    rows = segment_scores(context.output)
    assert [row["index"] for row in rows] == list(range(60))
    assert [row["value"] for row in rows] == pytest.approx(expected)
    assert context.progresses[-1][:2] == (2, 2)


@pytest.mark.parametrize("step", [SCORE, COMPARE], ids=["score", "compare"])
def test_one_segment_has_a_note_in_place_of_its_interval(
    step: StepKind[Any], make_context: Fixture, test_set_folder: Fixture, decode_folder: Fixture
) -> None:
    given, own = [decode_folder(HYPOTHESES[:1])], [decode_folder(REFERENCES[:1], "own")]
    texts = {"decode": given} if step is SCORE else {"baseline": given, "system": own}
    params: dict[str, Any] = {"metric": {"kind": "bleu"}}
    if step is COMPARE:
        params["significance"] = {"samples": 100, "trials": 100, "seed": 1}
    row = (
        make_context(step, params, {"test_set": [test_set_folder(REFERENCES[:1])], **texts}).run().metrics[0]
    )
    assert (row.low, row.high, row.note) == (None, None, "only one segment: no spread to judge by")
    assert row.detail.get("p_two_sided", 1.0) == 1.0


def test_chrf_has_no_length_ratio(
    make_context: Fixture, test_set_folder: Fixture, decode_folder: Fixture
) -> None:
    folders = {"test_set": [test_set_folder(REFERENCES)], "decode": [decode_folder(HYPOTHESES)]}
    context = make_context(SCORE, {"metric": {"kind": "chrf", "word_order": 2}}, folders)
    (row,) = context.run().metrics
    assert row.value == pytest.approx(CHRF(word_order=2).corpus_score(HYPOTHESES, [REFERENCES]).score)
    assert "nw:2" in row.detail["signature"]
    assert len(segment_scores(context.output)) == 60


def test_outputs_of_another_test_set_are_refused(
    make_context: Fixture, test_set_folder: Fixture, decode_folder: Fixture
) -> None:
    folders = {"test_set": [test_set_folder(["one", "two"])], "decode": [decode_folder(["one"])]}
    with pytest.raises(StepError, match="1 hypotheses do not line up with the test set's 2 segments"):
        make_context(SCORE, {"metric": {"kind": "bleu"}}, folders).run()


SCORERS = {"bleu": BLEU, "chrf": CHRF, "ter": TER}


@pytest.mark.parametrize("metric", [{"kind": kind} for kind in SCORERS], ids=str)
def test_one_seed_each_is_sacrebleus_paired_tests(
    metric: dict[str, Any], make_context: Fixture, test_set_folder: Fixture, decode_folder: Fixture
) -> None:
    base, system = changed(REFERENCES, 0.35, 1), changed(REFERENCES, 0.3, 2)
    folders = {
        "test_set": [test_set_folder(REFERENCES)],
        "baseline": [decode_folder(base, "base")],
        "system": [decode_folder(system, "system")],
    }
    params = {"metric": metric, "significance": {"samples": 500, "trials": 600, "seed": 12345}}
    (row,) = make_context(COMPARE, params, folders).run().metrics

    scorer = SCORERS[metric["kind"]]()
    named = [("base", base), ("system", system)]
    test = PairedTest(named, {"m": scorer}, [REFERENCES], test_type="bs", n_samples=500)
    signatures, results = test()
    (key,) = signatures
    assert row.value == pytest.approx(results[key][1].score - results[key][0].score)
    assert row.detail["p_value"] == pytest.approx(results[key][1].p_value)
    assert sorted(row.detail["signature"].split("|")) == sorted(str(signatures[key]).split("|"))
    swaps = PairedTest(named, {"m": scorer}, [REFERENCES], test_type="ar", n_samples=600)()[1]
    if metric["kind"] == "ter":  # sacreBLEU loses trials that tie with the difference to rounding
        assert row.detail["p_randomization"] == whole_edits_p_value(base, system, 600)
        assert row.detail["p_randomization"] > swaps[key][1].p_value
    else:
        assert row.detail["p_randomization"] == swaps[key][1].p_value
    assert row.detail["trials"] == 600
    assert (row.name, row.subject) == ("delta", metric["kind"])
    assert row.low < row.value < row.high


def whole_edits_p_value(base: list[str], system: list[str], trials: int) -> float:
    """Randomise TER in whole edits, all against the same words of the references."""
    of_outputs = [TER()._extract_corpus_statistics(texts, [REFERENCES]) for texts in (base, system)]
    edits = np.array([[int(own[0]) for own in rows] for rows in of_outputs])
    difference = edits[1] - edits[0]  # of each segment
    swapped = np.random.default_rng(12345).integers(2, size=(trials, len(difference)), dtype=bool)
    sums = np.where(swapped, -difference, difference).sum(axis=1)
    return float((np.sum(np.abs(sums) >= abs(difference.sum())) + 1) / (trials + 1))


def test_seeds_are_averaged(make_context: Fixture, test_set_folder: Fixture, decode_folder: Fixture) -> None:
    outputs = [changed(REFERENCES, 0.3, seed) for seed in (1, 2, 3)]
    folders = {
        "test_set": [test_set_folder(REFERENCES)],
        "baseline": [decode_folder(outputs[0], "base")],
        "system": [decode_folder(outputs[1], "s1"), decode_folder(outputs[2], "s2")],
    }
    params = {"metric": {"kind": "bleu"}, "significance": {}}
    (row,) = make_context(COMPARE, params, folders).run().metrics
    base, first, second = (BLEU().corpus_score(texts, [REFERENCES]).score for texts in outputs)
    assert row.value == pytest.approx((first + second) / 2 - base)
    assert row.detail["outputs"] == {"baseline": 1, "system": 2}


def test_every_two_systems_are_compared_as_with_a_baseline(
    make_context: Fixture, test_set_folder: Fixture, decode_folder: Fixture
) -> None:
    texts = [changed(REFERENCES, 0.3 + seed / 50, seed) for seed in range(4)]
    folders = [decode_folder(lines, f"output{place}") for place, lines in enumerate(texts)]
    params: dict[str, Any] = {"metric": {"kind": "bleu"}, "significance": {"samples": 200, "trials": 200}}
    test_set = [test_set_folder(REFERENCES)]
    pairs = {"test_set": test_set, "systems": folders}
    rows = make_context(PAIRS, params | {"outputs": [1, 2, 1]}, pairs).run().metrics
    assert [(row.name, row.subject) for row in rows] == [("delta", "0/1"), ("delta", "0/2"), ("delta", "1/2")]
    systems = [folders[:1], folders[1:3], folders[3:]]
    for row in rows:
        i, j = map(int, row.subject.split("/"))
        one = {"test_set": test_set, "baseline": systems[i], "system": systems[j]}
        (alone,) = make_context(COMPARE, params, one).run().metrics
        assert (row.value, row.low, row.high) == pytest.approx((alone.value, alone.low, alone.high))
        assert row.detail == alone.detail


def test_comet_is_compared_on_the_scores_that_are_there(make_context: Fixture, tmp_path: Path) -> None:
    values = {"base": [0.5, 0.7, 0.1], "system": [0.9, 0.6, 0.6]}
    for name, scores in values.items():
        (tmp_path / name).mkdir()
        lines = (json.dumps({"index": i, "value": value}) + "\n" for i, value in enumerate(scores))
        (tmp_path / name / "segment_scores.jsonl").write_text("".join(lines))
    folders = {"baseline": [tmp_path / "base"], "system": [tmp_path / "system"]}
    params = {"metric": {"kind": "comet"}, "significance": {"samples": 100}}
    (row,) = make_context(COMPARE, params, folders).run().metrics
    assert row.value == pytest.approx(np.mean(values["system"]) - np.mean(values["base"]))
    assert row.detail["signature"].startswith("model:Unbabel/wmt22-comet-da|seed:12345|bs:100")
    # of the eight ways to swap, four are as far apart: none, all, and both with the second kept
    assert row.detail["p_randomization"] == pytest.approx(4 / 8, abs=0.03)


def test_scores_of_different_test_sets_cannot_be_compared(make_context: Fixture, tmp_path: Path) -> None:
    for name, count in (("base", 2), ("system", 3)):
        (tmp_path / name).mkdir()
        lines = "".join(json.dumps({"index": i, "value": 0.5}) + "\n" for i in range(count))
        (tmp_path / name / "segment_scores.jsonl").write_text(lines)
    folders = {"baseline": [tmp_path / "base"], "system": [tmp_path / "system"]}
    with pytest.raises(StepError, match="different numbers of segments"):
        make_context(COMPARE, {"metric": {"kind": "comet"}, "significance": {}}, folders).run()
