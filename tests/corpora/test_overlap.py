"""Test sentences in the training text, against a comparison of every sentence with every line."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from step_context import Context

from creamtea.steps.texts import OVERLAP
from creamtea_workers.corpora.files import Pair
from creamtea_workers.steps.overlap import overlap, unseen

WORDS = st.sampled_from("abc")
SEGMENT = st.builds(
    lambda source, reference, more: {"source": source, "reference": reference, "more_references": more},
    WORDS,
    WORDS,
    st.lists(WORDS, max_size=2),
)


@given(
    st.lists(st.builds(Pair, WORDS, WORDS), max_size=6),
    st.lists(st.lists(SEGMENT, min_size=1, max_size=4), max_size=3),
)
def test_every_sentence_is_looked_for(training: list[Pair], test_sets: list[list[dict]]) -> None:
    expected = []
    for position, segments in enumerate(test_sets):
        references = [[segment["reference"], *segment["more_references"]] for segment in segments]
        counts = {
            "seen_sources": sum(any(pair.source == row["source"] for pair in training) for row in segments),
            "seen_pairs": sum(
                any(pair.source == row["source"] and pair.target in texts for pair in training)
                for row, texts in zip(segments, references, strict=True)
            ),
        }
        expected += [(name, count, str(position), len(segments)) for name, count in counts.items()]
    rows = overlap(iter(training), test_sets)
    assert [(row.name, row.value, row.subject, row.detail["segments"]) for row in rows] == expected


def test_words_with_symbols_that_no_training_word_has_are_counted_and_the_symbols_named() -> None:
    training = ["<ady>ab<V><PST>", "<hin>c"]
    one = ["<ady>ca<V>", "<hun>a<PST>", "<hin>aхх<DU>"]
    test_sets = [[{"source": source} for source in sources] for sources in (one, training)]
    first, second = unseen(training, test_sets)
    assert (first.name, first.subject, first.value) == ("unseen", "0", 2)
    assert first.detail == {"segments": 3, "languages": ["hun"], "letters": ["х"], "tags": ["DU"]}
    assert (second.subject, second.value) == ("1", 0)


def test_the_step_reads_what_the_corpus_and_the_test_sets_left(tmp_path: Path) -> None:
    corpus, one, other = (tmp_path / name for name in ("corpus", "one", "other"))
    for folder in (corpus, one, other):
        folder.mkdir()
    (corpus / "train.src").write_text("é b\nc\n", encoding="utf-8")
    (corpus / "train.tgt").write_text("x\ny\n", encoding="utf-8")
    segments = {one: [("e\u0301▁b", "x"), ("c", "z")], other: [("d", "y")]}  # as they were given
    for folder, pairs in segments.items():
        lines = [json.dumps({"source": source, "reference": target}) for source, target in pairs]
        (folder / "segments.jsonl").write_text("".join(f"{line}\n" for line in lines))
    folders = {"corpus": [corpus], "test_sets": [one, other]}
    rows = Context(OVERLAP, {}, folders, tmp_path / "overlap").run().metrics  # of sentences
    assert {(row.name, row.subject): row.value for row in rows} == {
        ("seen_sources", "0"): 2,
        ("seen_pairs", "0"): 1,
        ("seen_sources", "1"): 0,
        ("seen_pairs", "1"): 0,
    }
