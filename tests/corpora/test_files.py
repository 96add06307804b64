"""The user's pairs: alignment, filters and their counts, annotated test sets."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from step_context import Context, TextFiles

from creamtea.errors import StepError
from creamtea.methods.corpora import FilesCorpus
from creamtea.methods.planning import HeldOut
from creamtea.methods.test_sets import FilesTestSet
from creamtea.methods.texts import Filters, Languages, TrainingText
from creamtea.steps.texts import OVERLAP
from creamtea_workers.corpora import text as text_module
from creamtea_workers.corpora.files import (
    Files,
    FilteredCorpus,
    Pair,
    SeenHashes,
    Sieve,
    pair_hash,
    read_corpus,
)
from creamtea_workers.corpora.segments import Segment, idiom_words
from creamtea_workers.corpora.test_files import read_test_set
from creamtea_workers.steps.texts import overlap, unseen


class Folder(TextFiles):
    @property
    def files(self) -> Files:
        return Files(self.digests, Languages(source="en", target="de"), self.locations)

    def pair(self, name: str, source: str, target: str) -> TrainingText:
        return TrainingText(source=self.write(f"{name}.en", source), target=self.write(f"{name}.de", target))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# ---------------------------------------------------------------- training and development text


def corpus_of(folder: Folder, train: tuple[str, str], dev: tuple[str, str], filters: Filters) -> FilesCorpus:
    return FilesCorpus(
        kind="files", train=[folder.pair("train", *train)], dev=folder.pair("dev", *dev), filters=filters
    )


def read(spec: FilesCorpus, folder: Folder, held_out: Sequence[HeldOut] = ()) -> FilteredCorpus:
    """The corpus with its streams read."""
    corpus = read_corpus(spec, folder.files, held_out)
    corpus.train = list(corpus.train)
    corpus.dev = list(corpus.dev)
    return corpus


def test_every_pair_is_kept_or_counted_once(folder: Folder) -> None:
    pairs = [
        ("a b", "x y"),  # kept
        ("c\u0085d", "z"),  # kept: U+0085 ends no line
        ("", "x"),  # empty
        ("\u00a0\t", "x"),  # empty: nothing but white space
        ("a\u00a0b", "x y"),  # duplicate of the first, once white space is plain
        ("a a a a a a a a a", "x"),  # too long, and of a bad ratio: counted as too long
        ("a a a a a a", "x"),  # ratio
        ("a a a a a", "x"),  # kept: too short for the ratio to be asked
        ("u\u0308", "x"),  # kept
        ("ü", "x"),  # duplicate, once letters are composed
    ]
    source, target = ("\n".join(side) + "\n" for side in zip(*pairs, strict=True))
    filters = Filters(max_words=8, max_ratio=4.0, ratio_from=6)
    corpus = read(corpus_of(folder, (source, target), ("a\n", "x\n"), filters), folder)
    assert corpus.train == [("a b", "x y"), ("c d", "z"), ("a a a a a", "x"), ("ü", "x")]
    assert corpus.train_read == 10
    assert corpus.dropped == {"empty": 2, "duplicate": 2, "too_long": 1, "ratio": 1}


def test_a_ratio_at_the_limit_passes() -> None:
    filters = Filters(max_ratio=4.0, ratio_from=6)
    assert filters.drop_reason(8, 2) is None
    assert filters.drop_reason(2, 9) == "ratio"


STATION = "私たちは七時に駅の前で会います。"


@pytest.mark.parametrize(
    ("sieve", "pairs", "passed"),
    [
        # text without blanks is as long as its characters say
        (
            Sieve(Filters(), unspaced=True),
            [Pair("We will meet in front of the station at seven.", STATION), Pair("Yes.", STATION)],
            [True, False],
        ),
        (Sieve(Filters()), [Pair("We will meet in front of the station at seven.", STATION)], [False]),
        (Sieve(Filters(duplicates=False)), [Pair("a", "x")] * 2, [True, True]),
        # one source with two translations is no duplicate
        (Sieve(Filters()), [Pair("a", "x"), Pair("a", "y"), Pair("a", "x")], [True, True, False]),
    ],
)
def test_a_sieve_lets_pairs_pass(sieve: Sieve, pairs: list[Pair], passed: list[bool]) -> None:
    assert sieve.passed(pairs) == passed


def test_an_enormous_line_is_dropped_and_counted(folder: Folder) -> None:
    source = f"a\n{'b' * 30}\nc\n{'d ' * 11}\n"
    spec = corpus_of(folder, (source, "x\ny\nz\nw\n"), ("a\n", "x\n"), Filters(max_characters=20))
    corpus = read(spec, folder)
    assert corpus.train == [("a", "x"), ("c", "z")]
    assert corpus.dropped["too_long"] == 2


pair_parts = st.lists(st.tuples(st.sampled_from(["", "a", "a b", "c c c", "d" * 9]), st.sampled_from("xy")))


@given(texts=st.lists(st.tuples(pair_parts, st.integers(1, 3)), min_size=1, max_size=3))
def test_a_stream_keeps_what_filtering_in_memory_keeps(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[list[tuple[str, str]], int]]
) -> None:
    folder = Folder(tmp_path_factory.mktemp("stream"))
    filters = Filters(max_words=2, max_characters=8)
    seen, expected = set(), [("first", "z")]
    train = [folder.pair("first", "first\n", "z\n")]
    for number, (pairs, repeat) in enumerate(texts):
        source, target = ("".join(f"{pair[side]}\n" for pair in pairs) for side in (0, 1))
        train.append(repeated(folder.pair(str(number), source, target), repeat))
        kept = []
        for pair in pairs:
            if pair[0] and len(pair[0]) <= 8 and len(pair[0].split()) <= 2 and pair not in seen:
                kept.append(pair)
                seen.add(pair)
        expected += kept * repeat
    spec = FilesCorpus(kind="files", train=train, dev=folder.pair("dev", "a\n", "x\n"), filters=filters)
    corpus = read(spec, folder)
    assert corpus.train == expected
    assert corpus.train_read - sum(corpus.dropped.values()) + corpus.train_added == len(expected)


def test_a_development_set_loses_only_empty_pairs(folder: Folder) -> None:
    dev = ("a\na\n\na a a a a a a\n", "x\nx\nx\nx\n")
    corpus = read(corpus_of(folder, ("a\n", "x\n"), dev, Filters(max_words=3)), folder)
    assert corpus.dev == [("a", "x"), ("a", "x"), ("a a a a a a a", "x")]
    assert corpus.dev_read == 4
    assert not any(corpus.dropped.values())


def repeated(text: TrainingText, times: int) -> TrainingText:
    return text.model_copy(update={"repeat": times})


def test_repetition_follows_the_filters(folder: Folder) -> None:
    """A pair of two files is a duplicate in the second: the first one's `repeat` counts."""
    spec = FilesCorpus(
        kind="files",
        train=[
            repeated(folder.pair("one", "a\nb\na\n\n", "x\ny\nx\nz\n"), 3),
            repeated(folder.pair("two", "b\nc\n", "y\nz\n"), 2),
            folder.pair("three", "d\n", "w\n"),
        ],
        dev=folder.pair("dev", "a\n", "x\n"),
    )
    corpus = read(spec, folder)
    times = {pair: corpus.train.count(pair) for pair in corpus.train}
    assert times == {("a", "x"): 3, ("b", "y"): 3, ("c", "z"): 2, ("d", "w"): 1}
    assert corpus.dropped == {"empty": 1, "too_long": 0, "ratio": 0, "duplicate": 2}
    assert corpus.train_added == 2 + 2 + 1
    assert corpus.train_read - sum(corpus.dropped.values()) + corpus.train_added == len(corpus.train)


def test_moses_tokens_are_undone_by_the_language_of_the_side(folder: Folder) -> None:
    text = folder.pair("train", "it &apos;s &quot; so &quot; .\n", "geht &apos;s gut ? &amp;\n")
    spec = FilesCorpus(
        kind="files",
        train=[text.model_copy(update={"tokenized": "moses"})],
        dev=folder.pair("dev", "it &apos;s\n", "x\n"),
    )
    corpus = read(spec, folder)
    assert corpus.train == [('it\'s "so".', "geht 's gut? &")]
    assert corpus.dev == [("it &apos;s", "x")]


def test_source_sentences_of_a_test_set_are_held_out(folder: Folder) -> None:
    """Compared as they are written: detokenised and normalised; the reference does not matter."""
    folder.write("test.en", "it &apos;s u\u0308 .\nnot in training\n")
    folder.write("other.en", "c\n")
    spec = corpus_of(
        folder,
        ("it's ü.\nit's  \u00fc.\nb\nc\nb\n", "x\nanother\ny\nz\ny\n"),
        ("it's ü.\n", "x\n"),
        Filters(held_out=["test", "other"]),
    )
    held_out = [HeldOut(source="test.en", tokenized="moses"), HeldOut(source="other.en", tokenized="no")]
    corpus = read(spec, folder, held_out)
    assert corpus.train == [("b", "y")]
    assert corpus.dropped == {"empty": 0, "too_long": 0, "ratio": 0, "held_out": 3, "duplicate": 1}
    assert corpus.dev == [("it's ü.", "x")]  # the researcher's choice


@pytest.mark.parametrize(
    ("train", "dev", "message"),
    [
        (("a\nb\n", "x\n"), ("a\n", "x\n"), r"train\.en has 2 lines, train\.de has 1 line"),
        (
            ("a\n\n", "\nx\n"),
            ("a\n", "x\n"),
            r"no training pair is left of the 2 in train\.en \(dropped: empty 2\)",
        ),
        (("a\n", "x\n"), ("", ""), r"no development pair is left of the 0 in dev\.en"),
    ],
)
def test_a_corpus_that_cannot_be_read_says_why(
    folder: Folder, train: tuple[str, str], dev: tuple[str, str], message: str
) -> None:
    spec = corpus_of(folder, train, dev, Filters())
    with pytest.raises(StepError, match=message):
        read(spec, folder)


CELL = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), max_size=12)


@given(
    rows=st.lists(st.tuples(CELL, CELL, CELL), max_size=8),
    ends=st.sampled_from(["\n", "\r\n"]),
    longest=st.integers(4, 13),
    part=st.integers(1, 60),
)
def test_columns_are_read_as_files_of_their_texts_are(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str]],
    ends: str,
    longest: int,
    part: int,
) -> None:
    """Also CR LF as line ends, and texts beyond `max_characters` or its bytes; in parts of a file."""
    folder = Folder(tmp_path_factory.mktemp("columns"))
    rows = [*rows, ("0.9", "tea", "Tee")]
    texts = ["".join(f"{row[column]}\n" for row in rows) for column in (1, 2)]
    apart = corpus_of(folder, (texts[0], texts[1]), ("a\n", "x\n"), Filters(max_characters=longest))
    table = folder.write("pairs.tsv", "".join("\t".join(row) + ends for row in rows))
    joined = apart.model_copy(update={"train": [TrainingText(source=table, target=table, columns=[2, 3])]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "_PART", part)
        ours, theirs = read(joined, folder), read(apart, folder)
    assert (ours.train, ours.dropped) == (theirs.train, theirs.dropped)


def test_a_long_column_hides_neither_a_missing_one_nor_bytes_that_are_not_utf8(folder: Folder) -> None:
    table = folder.write("pairs.tsv", "")
    columns = TrainingText(source=table, target=table, columns=[1, 3])
    for line, message in (
        (b"tea\t%s", r"line 1: 2 columns, so there is no column 3"),
        (b"tea\t%s\t\xff", r"line 1: not valid UTF-8; convert"),
    ):
        (folder.folder / table).write_bytes(line % (b"x" * 90) + b"\n")
        with pytest.raises(StepError, match=message):
            list(folder.files.pairs_within(columns, 20))


def test_a_line_without_the_column_is_named_and_an_empty_line_is_an_empty_pair(folder: Folder) -> None:
    table = folder.write("pairs.tsv", "tea\tTee\n\nmilk\tMilch\nsugar\n")
    columns = TrainingText(source=table, target=table, columns=[1, 2])
    lines = folder.files.pairs(columns)
    assert [next(lines) for _ in range(3)] == [("tea", "Tee"), ("", ""), ("milk", "Milch")]
    with pytest.raises(StepError, match=r"^pairs\.tsv, line 4: 1 column, so there is no column 2$"):
        next(lines)


# ---------------------------------------------------------------- test sets


def make_test_set(folder: Folder, source: str, target: str, **more: Any) -> FilesTestSet:
    pair = folder.pair("test", source, target)
    return FilesTestSet(kind="files", source=pair.source, target=pair.target, **more)


def test_a_limit_takes_the_first_lines_and_an_empty_one_keeps_its_index(folder: Folder) -> None:
    segments = read_test_set(make_test_set(folder, "a\n\na\nb\n", "x\ny\nx\nz\n", limit=3), folder.files)
    assert segments == [("a", "x", []), ("", "y", []), ("a", "x", [])]


def test_a_test_set_without_lines_is_refused(folder: Folder) -> None:
    with pytest.raises(StepError, match=r"test\.en is empty"):
        read_test_set(make_test_set(folder, "", ""), folder.files)


def annotated(folder: Folder, source: str, target: str, *notes: dict[str, Any], **more: Any) -> Segment:
    """The only segment of a test set with these idioms."""
    idioms = folder.write("idioms.jsonl", json.dumps(notes) + "\n")
    (segment,) = read_test_set(make_test_set(folder, source, target, idioms=idioms, **more), folder.files)
    return segment


@pytest.mark.parametrize(
    ("source", "target", "note", "words", "tokenized"),
    [
        # places count the characters of the line, and here of the detokenised one
        ("he  broke\u00a0the ice", " er brach das Eis\r", ([4, 17], [4, 17]),
         ("broke\u00a0the ice", "brach das Eis"), "no"),
        ("no , that &apos;s it", "das ists", ([4, 13], [0, 3]), ("that's it", "das"), "moses"),
    ],
)  # fmt: skip
def test_idioms_count_the_characters_of_the_line(
    folder: Folder, source: str, target: str, note: Any, words: tuple[str, str], tokenized: str
) -> None:
    places = {"name": "i", "source": note[0], "target": note[1]}
    segment = annotated(folder, source, target, places, tokenized=tokenized)
    (idiom,) = segment.idioms
    cut = segment.source[slice(*idiom["source"])], segment.reference[slice(*idiom["target"])]
    assert cut == words


def test_a_translation_may_be_a_text(folder: Folder) -> None:
    note = {"name": "kick it", "source": [3, 11], "target": "den  Löffel\u00a0abgeben"}
    segment = annotated(folder, "he kicks it", "er starb", note)
    words = {"source": "kicks it", "target": "den Löffel abgeben"}
    assert segment.idioms == [{"name": "kick it", "source": [3, 11], "target": [], "words": words}]
    assert idiom_words(segment._asdict()) == [("kick it", "kicks it", "den Löffel abgeben")]


def test_pieces_of_an_idiom_with_translations_as_texts_are_one_idiom(folder: Folder) -> None:
    pieces = [([3, 8], "accepts"), ([9, 12], "accepts"), ([18, 20], [3, 8])]
    notes = [{"name": "annehmen", "source": source, "target": target} for source, target in pieces]
    segment = annotated(folder, "er nimmt das Buch an", "he takes it", *notes)
    assert idiom_words(segment._asdict()) == [("annehmen", "nimmt das an", "accepts takes")]
    assert [idiom["target"] for idiom in segment.idioms] == [[], [], [3, 8]]


def test_idioms_in_pieces_are_asked_by_their_pieces() -> None:
    segment = {
        "source": "he took it all off",
        "reference": "er zog alles aus",
        "idioms": [
            {"name": "take off", "source": [3, 7], "target": [3, 6]},
            {"name": "all", "source": [11, 14], "target": []},
            {"name": "take off", "source": [15, 18], "target": [13, 16]},
        ],
    }
    assert idiom_words(segment) == [("take off", "took off", "zog aus")]


@pytest.mark.parametrize(
    "lines, message",
    [
        ("[]\n", "test.en has 2 lines, idioms.jsonl has 1 line"),
        ("[]\nno json\n", "idioms.jsonl, line 2: "),
        ('[{"name": "i", "source": [0, 2]}]\n[]\n', "idioms.jsonl, line 1: [0]['target'] Field required"),
        (
            '[{"name": "i", "source": [0, 3], "target": [0, 1]}]\n[]\n',
            "idioms.jsonl, line 1: source [0, 3] is not a span of text in a line of 2 characters",
        ),
        ('[{"name": "i", "source": [1, 1], "target": [0, 1]}]\n[]\n', "source [1, 1] is not a span of text"),
        ('[{"name": "i", "source": [0, 1], "target": " "}]\n[]\n', "line 1: target is empty"),
    ],
)
def test_annotation_that_does_not_fit_is_named(folder: Folder, lines: str, message: str) -> None:
    idioms = folder.write("idioms.jsonl", lines)
    with pytest.raises(StepError) as caught:
        read_test_set(make_test_set(folder, "ab\nc\n", "x\ny\n", idioms=idioms), folder.files)
    assert message in str(caught.value)


@given(st.lists(st.lists(st.integers(0, 40) | st.integers(2**64 - 3, 2**64 - 1), max_size=12), max_size=20))
def test_a_hash_is_new_once(parts: list[list[int]]) -> None:
    """The set of hashes answers as Python's own set does."""
    hashes, seen = SeenHashes(), set()
    for part in parts:
        expected = []
        for value in part:
            expected.append(value not in seen)
            seen.add(value)
        assert hashes.add(part).tolist() == expected


def test_sides_do_not_run_into_each_other() -> None:
    assert pair_hash("a b", "c") != pair_hash("a", "b c")
    assert pair_hash("a", "b") == pair_hash("a", "b")


# ---------------------------------------------------------------- test sentences in the training text


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
    rows = overlap(iter(training), {str(n): segments for n, segments in enumerate(test_sets)})
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
    (corpus / "dev.src").write_text("c\nf\né b\n", encoding="utf-8")
    (corpus / "dev.tgt").write_text("y\ng\nz\n", encoding="utf-8")
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
        ("seen_sources", "dev"): 2,
        ("seen_pairs", "dev"): 1,
    }
