"""Buckets of a test set: which segments they hold, and their scores beside sacreBLEU's own."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import step_files
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF
from step_context import Context
from step_files import Folders, read_rows

from creamtea.contract.step import MetricRow
from creamtea.errors import StepError
from creamtea.methods.analyses.buckets import Buckets
from creamtea.stats.resampling import bootstrap_interval
from creamtea_workers.corpora.text import write_jsonl
from creamtea_workers.metrics.base import Texts
from creamtea_workers.metrics.sacrebleu_metrics import bleu_from_sums, corpus_statistics
from creamtea_workers.steps import buckets

REFERENCES = [
    "Der Hund schläft.",
    "Sie hat gestern den Faden verloren und lacht.",
    "der Zylinder",
    "Er schläft heute nicht, sie auch nicht.",
    "Ein Haus am See ist teuer, sagt sie.",
    "…",
]
HYPOTHESES = [
    "Der Hund schläft nun.",
    "Sie hat gestern den Faden verloren.",
    "das Haus",
    "Er schläft heute nicht und sie nicht.",
    "Haus am See ist sehr teuer, sagt er.",
    "",
]
TRAINING = ["der Hund", "Der HUND und sie", "sie hat den Faden", "er schläft nicht heute nicht", "sie lacht"]
LABELS = ["news", "talk", "news", "talk", "talk", ""]
USUAL: dict[str, Any] = {
    "by": ["length", "rarest", "idiom", "label"],
    "lengths": None,
    "count": 2,
    "frequencies": [1, 2],
    "min_segments": 1,
    "bleu": {"kind": "bleu"},
    "chrf": {"kind": "chrf"},
    "languages": {"source": "de", "target": "de"},
    "labels": None,
    "digests": None,
    "limit": None,
}


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    idioms = [{"name": "lose the thread", "source": [0, 3], "target": [0, 3]}]
    segments = [
        {"source": text, "reference": text, "idioms": idioms if n == 1 else []}
        for n, text in enumerate(REFERENCES)
    ]
    step_files.segments_folder(tmp_path, segments)
    step_files.outputs_folder(tmp_path, HYPOTHESES)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "train.tgt").write_text("".join(f"{line}\n" for line in TRAINING))
    return {role: [tmp_path / role] for role in ("test_set", "decode", "corpus")}


def measured(folders: Folders, **params: Any) -> dict[tuple[str, str], MetricRow]:
    locations = {}
    if params.get("labels"):
        path = folders["test_set"][0].parent / params["labels"]
        path.write_text("".join(f"{label}\n" for label in LABELS))
        locations = {params["labels"]: str(path)}
        params["digests"] = {params["labels"]: hashlib.sha256(path.read_bytes()).hexdigest()}
    result = Context(Buckets.step, {**USUAL, **params}, folders, locations=locations).run()
    return {(row.name, row.subject): row for row in result.metrics}


def sizes(rows: dict[tuple[str, str], MetricRow]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (name, _), row in rows.items():
        if name == "bleu" and "bucket" in row.detail:
            bucket = row.detail["bucket"]
            found.setdefault(bucket["kind"], {})[bucket["words"]] = bucket["segments"]
    return found


def test_scores_are_sacrebleus_of_the_segments(folders: Folders) -> None:
    rows = measured(folders, labels="labels.txt")
    for subject, members in {
        "label/2": [0, 2],
        "label/3": [1, 3, 4],
        "all": range(6),
        "idiom/1": [1],
    }.items():
        hypotheses = [HYPOTHESES[n] for n in members]
        references = [REFERENCES[n] for n in members]
        for name, metric in (("bleu", BLEU()), ("chrf", CHRF())):
            theirs = metric.corpus_score(hypotheses, [references]).score
            assert rows[name, subject].value == pytest.approx(theirs, rel=1e-9), (name, subject)
    texts = Texts([1, 3, 4], [""] * 3, [HYPOTHESES[n] for n in (1, 3, 4)], [REFERENCES[n] for n in (1, 3, 4)])
    own = bootstrap_interval(
        corpus_statistics(BLEU(), texts), lambda sums: bleu_from_sums(sums, effective_order=False)
    )
    row = rows["bleu", "label/3"]
    assert (row.low, row.high) == (own.low, own.high)


def test_what_is_in_which(folders: Folders) -> None:
    assert sizes(measured(folders, labels="labels.txt")) == {
        "length": {"0–3 words": 3, "7–8 words": 3},
        # "…" has no word; "zylinder", "gestern" and "haus" are not in the training text
        "rarest": {"never": 4, "once": 1},
        "idiom": {"with an idiom": 1, "without": 5},
        "label": {"(no label)": 1, "news": 2, "talk": 3},
    }
    assert sizes(measured(folders, by=["reference_length"], lengths=[3, 7])) == {
        "reference_length": {"0–3 words": 3, "7 words": 1, "8 words": 2}
    }
    assert list(sizes(measured(folders, by=["frequency"]))["frequency"].values()) == [3, 2]


def test_what_a_test_set_does_not_have_makes_no_bucket(folders: Folders) -> None:
    segments = folders["test_set"][0] / "segments.jsonl"
    write_jsonl(segments, [{**row, "idioms": []} for row in read_rows(segments)])
    del folders["corpus"]
    assert list(sizes(measured(folders))) == ["length"]


def test_a_small_bucket_says_so(folders: Folders) -> None:
    rows = measured(folders, by=["idiom"], min_segments=2)
    small, large = rows["bleu", "idiom/1"], rows["bleu", "idiom/2"]
    assert small.value is None
    assert "1 segment" in small.note
    assert small.detail["bucket"]["segments"] == 1
    assert large.value is not None


def test_labels_of_another_test_set_are_refused(folders: Folders) -> None:
    with pytest.raises(StepError, match="5 lines and the test set 6 segments"):
        measured(folders, labels="labels.txt", limit=5)


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(2, 9))
def test_every_segment_is_in_one_bucket(values: list[int], count: int) -> None:
    bounds = buckets.equal_bounds(values, count)
    found = buckets.by_size("length", values, bounds, buckets.length_name("words"))
    assert len(found) <= count
    assert sorted(n for bucket in found for n in bucket.members) == list(range(len(values)))
    highest = [max(values[n] for n in bucket.members) for bucket in found]
    lowest = [min(values[n] for n in bucket.members) for bucket in found]
    assert all(high < low for high, low in zip(highest, lowest[1:], strict=False))


def test_rare_labels_share_a_bucket() -> None:
    labels = ["common"] * 3 + [f"label {n}" for n in range(20)]
    found = buckets.by_label(labels)
    assert len(found) == buckets.MAX_LABELS
    assert sorted(n for bucket in found for n in bucket.members) == list(range(len(labels)))
    assert found[-1].words == f"{21 - (buckets.MAX_LABELS - 1)} other labels"


def test_a_language_without_blanks_has_words_of_one_character() -> None:
    assert buckets.words_of("猫が好き。", "ja") == ["猫", "が", "好", "き"]
    assert buckets.words_of("Die Katze, GROSS!", "de") == ["die", "katze", "gross"]


def test_marks_belong_to_the_letter_before_them() -> None:
    assert buckets.words_of("हिन्दी में", "hi") == ["हिन्दी", "में"]
    assert buckets.words_of("İzmir", "tr") == ["i̇zmir"]  # small, its dot is a mark
    assert buckets.words_of("ที่นี่", "th") == ["ที่", "นี่"]
