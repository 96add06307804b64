"""The score and compare steps on files, against sacreBLEU called directly."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest
from scored_texts import LANGUAGES, comparing, outputs, scoring, segments
from step_context import Context
from step_files import read_rows

from creamtea.errors import StepError
from creamtea.steps.systems import PAIRS
from creamtea_workers.corpora.text import write_jsonl

WORDS = ["a", "small", "dog", "runs", "over", "the", "street", "and", "barks", "at", "cats", "."]
BLEU_METRIC = {"kind": "bleu"}


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


@pytest.fixture
def test_set(tmp_path: Path) -> Path:
    return segments(tmp_path, REFERENCES)


def test_bleu_has_its_value_interval_signature_and_length_ratio(tmp_path: Path, test_set: Path) -> None:
    context = scoring(test_set, outputs(tmp_path, HYPOTHESES), BLEU_METRIC)
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
    rows = read_rows(context.output / "segment_scores.jsonl")
    assert [row["index"] for row in rows] == list(range(60))
    assert [row["value"] for row in rows] == pytest.approx(expected)
    assert context.progresses[-1][:2] == (2, 2)


@pytest.mark.parametrize("step", ["score", "compare"])
def test_one_segment_has_a_note_in_place_of_its_interval(step: str, tmp_path: Path) -> None:
    one, given = segments(tmp_path, REFERENCES[:1]), outputs(tmp_path, HYPOTHESES[:1])
    other = outputs(tmp_path, REFERENCES[:1])
    context = scoring(one, given, BLEU_METRIC)
    if step == "compare":
        context = comparing(one, [given], [other], BLEU_METRIC, samples=100, trials=100)
    row = context.run().metrics[0]
    assert (row.low, row.high, row.note) == (None, None, "only one segment: no spread to judge by")
    assert row.detail.get("p_two_sided", 1.0) == 1.0


def test_chrf_has_no_length_ratio(tmp_path: Path, test_set: Path) -> None:
    context = scoring(test_set, outputs(tmp_path, HYPOTHESES), {"kind": "chrf", "word_order": 2})
    (row,) = context.run().metrics
    assert row.value == pytest.approx(CHRF(word_order=2).corpus_score(HYPOTHESES, [REFERENCES]).score)
    assert "nw:2" in row.detail["signature"]
    assert len(read_rows(context.output / "segment_scores.jsonl")) == 60


def test_outputs_of_another_test_set_are_refused(tmp_path: Path, test_set: Path) -> None:
    with pytest.raises(StepError, match="1 hypotheses do not line up with the test set's 60 segments"):
        scoring(test_set, outputs(tmp_path, ["one"]), BLEU_METRIC).run()


SCORERS = {"bleu": BLEU, "chrf": CHRF, "ter": TER}


@pytest.mark.parametrize("kind", SCORERS)
def test_one_seed_each_is_sacrebleus_paired_tests(kind: str, tmp_path: Path, test_set: Path) -> None:
    base, system = changed(REFERENCES, 0.35, 1), changed(REFERENCES, 0.3, 2)
    given = [outputs(tmp_path, base)], [outputs(tmp_path, system)]
    (row,) = comparing(test_set, *given, {"kind": kind}, samples=500, trials=600, seed=12345).run().metrics

    scorer, named = SCORERS[kind](), [("base", base), ("system", system)]
    test = PairedTest(named, {"m": scorer}, [REFERENCES], test_type="bs", n_samples=500)
    signatures, results = test()
    (key,) = signatures
    assert row.value == pytest.approx(results[key][1].score - results[key][0].score)
    assert row.detail["p_value"] == pytest.approx(results[key][1].p_value)
    assert sorted(row.detail["signature"].split("|")) == sorted(str(signatures[key]).split("|"))
    swaps = PairedTest(named, {"m": scorer}, [REFERENCES], test_type="ar", n_samples=600)()[1]
    if kind == "ter":  # sacreBLEU loses trials that tie with the difference to rounding
        assert row.detail["p_randomization"] == whole_edits_p_value(base, system, 600)
        assert row.detail["p_randomization"] > swaps[key][1].p_value
    else:
        assert row.detail["p_randomization"] == swaps[key][1].p_value
    assert row.detail["trials"] == 600
    assert (row.name, row.subject) == ("delta", kind)
    assert row.low < row.value < row.high


def whole_edits_p_value(base: list[str], system: list[str], trials: int) -> float:
    """Randomise TER in whole edits, all against the same words of the references."""
    of_outputs = [TER()._extract_corpus_statistics(texts, [REFERENCES]) for texts in (base, system)]
    edits = np.array([[int(own[0]) for own in rows] for rows in of_outputs])
    difference = edits[1] - edits[0]  # of each segment
    swapped = np.random.default_rng(12345).integers(2, size=(trials, len(difference)), dtype=bool)
    sums = np.where(swapped, -difference, difference).sum(axis=1)
    return float((np.sum(np.abs(sums) >= abs(difference.sum())) + 1) / (trials + 1))


def test_seeds_are_averaged_and_every_two_systems_are_compared_as_with_a_baseline(
    tmp_path: Path, test_set: Path
) -> None:
    texts = [changed(REFERENCES, 0.3 + seed / 50, seed) for seed in range(4)]
    folders = [outputs(tmp_path, lines) for lines in texts]
    params: dict[str, Any] = {"metric": BLEU_METRIC, "languages": LANGUAGES, "outputs": [1, 2, 1]}
    params["significance"] = {"samples": 200, "trials": 200}
    rows = Context(PAIRS, params, {"test_set": [test_set], "systems": folders}).run().metrics
    assert [(row.name, row.subject) for row in rows] == [("delta", "0/1"), ("delta", "0/2"), ("delta", "1/2")]
    systems = [folders[:1], folders[1:3], folders[3:]]
    for row in rows:
        i, j = map(int, row.subject.split("/"))
        context = comparing(test_set, systems[i], systems[j], BLEU_METRIC, samples=200, trials=200)
        (alone,) = context.run().metrics
        assert (row.value, row.low, row.high) == pytest.approx((alone.value, alone.low, alone.high))
        assert row.detail == alone.detail
    base, first, second = (BLEU().corpus_score(lines, [REFERENCES]).score for lines in texts[:3])
    assert rows[0].value == pytest.approx((first + second) / 2 - base)
    assert rows[0].detail["outputs"] == {"baseline": 1, "system": 2}


def scored(folder: Path, values: list[float]) -> Path:
    """What a score step leaves that gave these scores."""
    folder.mkdir()
    write_jsonl(
        folder / "segment_scores.jsonl", ({"index": n, "value": value} for n, value in enumerate(values))
    )
    return folder


def test_comet_is_compared_on_the_scores_that_are_there(tmp_path: Path) -> None:
    values = {"base": [0.5, 0.7, 0.1], "system": [0.9, 0.6, 0.6]}
    base, system = (scored(tmp_path / name, own) for name, own in values.items())
    (row,) = comparing(None, [base], [system], {"kind": "comet"}, samples=100).run().metrics
    assert row.value == pytest.approx(np.mean(values["system"]) - np.mean(values["base"]))
    assert row.detail["signature"].startswith("model:Unbabel/wmt22-comet-da|seed:12345|bs:100")
    # of the eight ways to swap, four are as far apart: none, all, and both with the second kept
    assert row.detail["p_randomization"] == pytest.approx(4 / 8, abs=0.03)
    longer = scored(tmp_path / "longer", [0.5] * 4)
    with pytest.raises(StepError, match="different numbers of segments"):
        comparing(None, [base], [longer], {"kind": "comet"}).run()
