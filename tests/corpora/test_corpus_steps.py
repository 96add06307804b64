"""The steps corpus, test_set, subwords and align: files, metrics, and that one fits the next."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from step_context import Context, TextFiles

from creamtea.contract.step import StepKind, StepResult
from creamtea.errors import StepError
from creamtea.methods.corpora import IBM3
from creamtea.steps.texts import ALIGN, CORPUS, ENCODE, SUBWORDS, TEST_SET
from creamtea_workers.corpora import synthetic
from creamtea_workers.corpora.batches import Pairs
from creamtea_workers.corpora.ibm3 import Ibm3Counts
from creamtea_workers.corpora.segments import Prepared
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.text import iterate_lines
from creamtea_workers.corpora.tokens import Rows
from creamtea_workers.selection import aligner
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.steps import align

LANGUAGES = {"source": "en", "target": "de"}
SYNTHETIC = {"kind": "synthetic", "train": 300, "dev": 20}


class NoCheckpoints:
    def save(self, name: str, source: Path) -> None:
        raise AssertionError("these steps are short and save nothing")

    def read(self, name: str, parse: Callable[[Path], Any]) -> None:
        pass


Run = Callable[..., tuple[StepResult, Context]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a step over the folders of its inputs; `texts` are the files of a corpus or a test set by name."""
    count = itertools.count()

    def run_step(
        kind: StepKind[Any], params: dict[str, Any], folders: dict[str, Path] | None = None, **texts: str
    ) -> tuple[StepResult, Context]:
        files = TextFiles(tmp_path)
        for name, text in texts.items():
            files.write(name, text)
        if kind is CORPUS or kind is TEST_SET:
            params = {"corpus": None, "languages": LANGUAGES, "digests": files.digests, **params}
        inputs = {role: [folder] for role, folder in (folders or {}).items()}
        output = tmp_path / f"{kind.name} {next(count)}"
        context = Context(kind, params, inputs, output, NoCheckpoints(), files.locations)
        return context.run(), context

    return run_step


def numbers(result: StepResult) -> dict[str, float | None]:
    return {f"{row.name} {row.subject}".strip(): row.value for row in result.metrics}


KEPT = ("read", "kept")


def test_a_synthetic_corpus_is_written_and_counted(run: Run) -> None:
    result, context = run(CORPUS, {"corpus": SYNTHETIC})
    lines = {path.name: path.read_text().count("\n") for path in context.output.iterdir()}
    assert lines == {"train.src": 300, "train.tgt": 300, "dev.src": 20, "dev.tgt": 20}
    pairs = {"train_read": 300, "train_kept": 300, "dev_read": 20, "dev_kept": 20}
    assert numbers(result) == {
        **{f"pairs {name}": count for name, count in pairs.items()},
        **{f"dropped {reason}": 0 for reason in ("empty", "too_long", "ratio", "duplicate")},
    }
    assert context.progresses[-1][:2] == (1, 1)


PAIR = {"source": "en", "target": "de"}


def test_a_corpus_of_files_is_read_where_it_lies(run: Run) -> None:
    spec = {"kind": "files", "train": [PAIR], "dev": PAIR}
    result, context = run(CORPUS, {"corpus": spec}, en="a\n\nb\n", de="x\ny\nz\n")
    assert (context.output / "train.tgt").read_text() == "x\nz\n"
    counts = numbers(result)
    assert (counts["dropped empty"], counts["pairs dev_read"], counts["pairs dev_kept"]) == (1, 3, 2)


def read_segments(context: Context) -> list[dict[str, Any]]:
    text = (context.output / "segments.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def test_a_synthetic_test_set_is_annotated(run: Run) -> None:
    spec = {"kind": "synthetic", "corpus": "c", "lines": 40}
    result, context = run(TEST_SET, {"test_set": spec, "corpus": SYNTHETIC})
    segments = read_segments(context)
    assert [segment["index"] for segment in segments] == list(range(40))
    idioms = [(segment, idiom) for segment in segments for idiom in segment["idioms"]]
    assert numbers(result) == {"segments": 40, "idioms": len(idioms)}
    assert len(idioms) > 5
    for segment, idiom in idioms:
        assert set(idiom) == {"name", "source", "target"}
        assert segment["source"][slice(*idiom["source"])] == idiom["name"]
        assert len(segment["reference"][slice(*idiom["target"])].split()) in (2, 3, 4)


def test_a_test_set_without_segments_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "prepare_test_set", lambda spec, context: Prepared([]))
    with pytest.raises(StepError, match="no segments"):
        run(TEST_SET, {"test_set": {"kind": "synthetic", "corpus": "c"}, "corpus": SYNTHETIC})


def test_a_test_set_keeps_its_lines_and_texts_but_for_white_space(run: Run) -> None:
    texts = {"en": " a\u0300\u00a0 b▁c\r\n\n", "de": "\tx\u0308  y\n\n", "more": "z▁\u0301\n\n"}
    spec = {"kind": "files", **PAIR, "more_references": ["more"]}
    result, context = run(TEST_SET, {"test_set": spec}, **texts)
    assert numbers(result) == {"segments": 2, "idioms": 0}
    first, empty = read_segments(context)
    assert (first["source"], first["reference"]) == (" a\u0300\u00a0 b▁c", " x\u0308  y")
    assert first["more_references"] == ["z▁\u0301"]
    assert (empty["index"], empty["source"], empty["reference"]) == (1, "", "")


def test_subwords_and_lexicon_are_made_of_the_corpus(run: Run) -> None:
    folders = {"corpus": run(CORPUS, {"corpus": SYNTHETIC})[1].output}
    made, context = run(SUBWORDS, {"subwords": {"vocabulary": 200}}, folders)
    assert numbers(made) == {"vocabulary_size": 200, "sampled_pairs": 300}
    folders["subwords"] = context.output
    encoded, context = run(ENCODE, {}, folders)
    folders["encode"] = context.output
    train = Pairs.load(context.output, "train")
    model = SubwordModel.load(folders["subwords"] / "subwords.model")
    texts = ((folders["corpus"] / f"train.{side}").read_text(encoding="utf-8") for side in ("src", "tgt"))
    assert made.facts == {"characters": len(set("".join(texts)) - {"\n"})}  # and the mark of a blank as one
    lines = [list(iterate_lines(folders["corpus"] / f"train.{side}")) for side in ("src", "tgt")]
    for rows, side in ((train.sources, lines[0]), (train.targets, lines[1])):
        assert [row.tolist() for row in rows] == [model.encode(line) for line in side]
    assert numbers(encoded)["tokens train.tgt"] == sum(map(len, train.targets))
    aligned, context = run(ALIGN, {"alignment": {"iterations": 3, "max_k": 7}}, folders)
    lexicon = Lexicon.load(context.output / "lexicon.npz")
    assert numbers(aligned) == {"lexicon_entries": lexicon.entries}
    assert [(point.series, point.x) for point in aligned.points] == [
        ("log_likelihood", iteration) for iteration in (1, 2, 3)
    ]
    source = (folders["corpus"] / "train.src").read_text().split("\n")[0]
    ids = SubwordModel.load(folders["subwords"] / "subwords.model").encode(source)
    assert 1 < len(lexicon.select(ids, 7)) <= 7 * len(set(ids)) + 1


# ---------------------------------------------------------------- IBM-3

SOURCES = [
    f"{who} {does} {what}" for who in ("a", "b", "c") for does in ("sees", "likes") for what in ("d", "e")
]
WORDS = {"a": "ka", "b": "lo", "c": "mi", "sees": "sut", "likes": "rop", "d": "ve", "e": "fu"}


def ibm3_of(folders: dict[str, Path], run: Run) -> tuple[StepResult, Context]:
    return run(IBM3, {"max_fertility": 9, "iterations": 5}, folders)


@pytest.fixture
def ibm3_folders(run: Run) -> dict[str, Path]:
    """A corpus of files that is translated word by word, its subwords, and the tables counted in it."""
    texts = {
        "en": "".join(f"{text}\n" for text in SOURCES),
        "de": "".join(" ".join(WORDS[word] for word in text.split()) + "\n" for text in SOURCES),
    }
    corpus = {"kind": "files", "train": [PAIR], "dev": PAIR}
    folders = {"corpus": run(CORPUS, {"corpus": corpus}, **texts)[1].output}
    folders["subwords"] = run(SUBWORDS, {"subwords": {"kind": "bpe", "vocabulary": 36}}, folders)[1].output
    folders["encode"] = run(ENCODE, {}, folders)[1].output
    counted, context = ibm3_of(folders, run)
    assert set(numbers(counted)) == {"mean_fertility", "p1", "entries", "entropy"}
    assert [point.x for point in counted.points] == [1, 2, 3, 4, 5]
    assert [path.name for path in context.output.iterdir()] == ["ibm3.npz"]
    return {**folders, "ibm3": context.output}


def test_pairs_that_cannot_be_aligned_are_not_counted(
    run: Run, ibm3_folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair that is too long would be taken for one whose target has come from nothing."""
    folders = {key: path for key, path in ibm3_folders.items() if key != "ibm3"}
    source, target = (Rows.load(folders["encode"], "train", side).lengths for side in ("src", "tgt"))
    longest = int((source * target).max())
    for module in (aligner, align):
        monkeypatch.setattr(module, "MAX_CELLS", longest - 1)
    counts = Ibm3Counts.load(ibm3_of(folders, run)[1].output / "ibm3.npz")
    assert counts.fertility.sum() == source[source * target < longest].sum() < source.sum()

    folders["corpus"] = tmp_path / "empty"
    folders["corpus"].mkdir()
    for name in ("train.src", "train.tgt", "dev.src", "dev.tgt"):
        (folders["corpus"] / name).write_text("\n")
    folders["encode"] = run(ENCODE, {}, folders)[1].output
    with pytest.raises(StepError, match="IBM-3 cannot be counted in this corpus: no pair to align"):
        ibm3_of(folders, run)


IBM3_CORPUS = {"kind": "ibm3", "corpus": "base", "subwords": "s"}


def test_an_ibm3_corpus_has_the_sources_of_its_base_and_sampled_targets(
    run: Run, ibm3_folders: dict[str, Path]
) -> None:
    def made(**spec: Any) -> str:
        result, context = run(CORPUS, {"corpus": {**IBM3_CORPUS, **spec}}, ibm3_folders)
        assert (context.output / "train.src").read_text().split("\n")[:-1] == SOURCES
        pairs = dict.fromkeys((f"pairs {part}_{what}" for part in ("train", "dev") for what in KEPT), 12)
        assert numbers(result) == {**pairs, "dropped no_translation": 0}
        text = (context.output / "train.tgt").read_text()
        assert all(text.split("\n")[:-1])
        return text

    assert made(seed=1) == made(seed=1) != made(seed=2)
    assert made(seed=1, gamma=0) == made(seed=2, gamma=0)
    letters = set("".join(WORDS.values()))
    assert set(made(seed=1) + made(gamma=0)) <= letters | set("\n ")  # every target subword was counted


def test_an_ibm3_test_set_is_sampled_with_its_own_seed(run: Run, ibm3_folders: dict[str, Path]) -> None:
    folders = {role: ibm3_folders[role] for role in ("subwords", "ibm3")}
    references = []
    for seed in (2, 3):
        spec = {"kind": "ibm3", "corpus": "c", "source": "unseen", "seed": seed, "limit": 3}
        params = {"test_set": spec, "corpus": IBM3_CORPUS}
        result, context = run(TEST_SET, params, folders, unseen="e likes a\n???\nd sees b\na\n")
        assert numbers(result) == {"segments": 2, "idioms": 0, "no_translation": 1}
        segments = read_segments(context)
        assert [(row["index"], row["source"]) for row in segments] == [(0, "e likes a"), (1, "d sees b")]
        references.append([row["reference"] for row in segments])
    assert references[0] != references[1]


# ---------------------------------------------------------------- IdiomTranslationDS


def run_itds(run: Run, tmp_path: Path, info: str, before: str = "") -> tuple[StepResult, Context]:
    """A test set of two lines over a corpus in which words in a row translate each other; `before`: what
    every line begins with."""
    words = [(f"w{n}", f"x{n}") for n in range(20)] + [("pass", "gebe"), ("on", "weiter"), ("it", "es")]
    rows = [[words[(start + step * k) % 23] for k in range(4)] for start in range(23) for step in (1, 5, 7)]
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "train.src").write_text("".join(" ".join(s for s, _ in row) + "\n" for row in rows))
    (folder / "train.tgt").write_text("".join(" ".join(t for _, t in row) + "\n" for row in rows))
    source, target = (
        "".join(f"{before}{line}\n" for line in lines)
        for lines in (("w1 passed it on &quot; w2", "w3 w4"), ("x1 gebe es weiter &quot; x2", "x3"))
    )
    spec = {"kind": "files", **PAIR, "tokenized": "moses", "itds": {"info": "info", "corpus": "c"}}
    return run(TEST_SET, {"test_set": spec}, {"corpus": folder}, en=source, de=target, info=info)


@pytest.mark.parametrize("before", ["", "u\u0308▁a ", "ü "], ids=["plain", "decomposed", "composed"])
def test_idioms_of_itds_are_annotated_in_the_detokenised_text(run: Run, tmp_path: Path, before: str) -> None:
    info = "0\tto pass on\tx\t1\n-1\tto pass on\tx\t1\n"
    result, context = run_itds(run, tmp_path, info, before)
    assert numbers(result) == {"segments": 2, "idioms": 2, "found": 1, "aligned": 1}
    assert result.facts == {"found": 1, "aligned": 1}
    first, second = read_segments(context)
    assert first["reference"] == f'{before}x1 gebe es weiter "x2'
    dictionary = {"source": "to pass on", "target": "x"}
    assert second["idioms"] == [{"name": "to pass on", "source": [], "target": [], "words": dictionary}]
    assert first["idioms"][0]["words"] == dictionary
    pieces = [
        (first["source"][slice(*note["source"])], first["reference"][slice(*note["target"])])
        for note in first["idioms"]
    ]
    assert pieces == [("passed", "gebe"), ("on", "weiter")]
    assert {note["name"] for note in first["idioms"]} == {"to pass on"}


def test_an_info_file_of_another_length_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(StepError, match="en has 2 lines, info has 1 line"):
        run_itds(run, tmp_path, "0\tto pass on\tx\t1\n")
