"""The steps corpus, test_set, subwords and align: files, metrics, and that one fits the next."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from step_context import Context

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
    def run_step(
        kind: StepKind[Any],
        name: str,
        params: dict[str, Any],
        locations: dict[str, str] | None = None,
        folders: dict[str, Path] | None = None,
    ) -> tuple[StepResult, Context]:
        inputs = {role: [folder] for role, folder in (folders or {}).items()}
        context = Context(kind, params, inputs, tmp_path / name, NoCheckpoints(), locations or {})
        return context.run(), context

    return run_step


def numbers(result: StepResult) -> dict[str, float | None]:
    return {f"{row.name} {row.subject}".strip(): row.value for row in result.metrics}


KEPT = ("read", "kept")


def run_corpus(run: Run) -> tuple[StepResult, Context]:
    return run(CORPUS, "corpus", params={"corpus": SYNTHETIC, "languages": LANGUAGES, "digests": {}})


def test_a_synthetic_corpus_is_written_and_counted(run: Run) -> None:
    result, context = run_corpus(run)
    lines = {path.name: path.read_text().count("\n") for path in context.output.iterdir()}
    assert lines == {"train.src": 300, "train.tgt": 300, "dev.src": 20, "dev.tgt": 20}
    pairs = {"train_read": 300, "train_kept": 300, "dev_read": 20, "dev_kept": 20}
    assert numbers(result) == {
        **{f"pairs {name}": count for name, count in pairs.items()},
        **{f"dropped {reason}": 0 for reason in ("empty", "too_long", "ratio", "duplicate")},
    }
    assert context.progresses[-1][:2] == (1, 1)


def user_files(tmp_path: Path, **texts: str) -> dict[str, dict[str, str]]:
    """`params` and `locations` for files that a study names as their keys."""
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
    return {
        "digests": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
        "locations": {name: str(tmp_path / name) for name in texts},
    }


def test_a_corpus_of_files_is_read_where_it_lies(run: Run, tmp_path: Path) -> None:
    found = user_files(tmp_path, en="a\n\nb\n", de="x\ny\nz\n")
    pair = {"source": "en", "target": "de"}
    spec = {"kind": "files", "train": [pair], "dev": pair}
    result, context = run(
        CORPUS,
        "corpus",
        params={"corpus": spec, "languages": LANGUAGES, "digests": found["digests"]},
        locations=found["locations"],
    )
    assert (context.output / "train.tgt").read_text() == "x\nz\n"
    assert numbers(result)["dropped empty"] == 1
    assert numbers(result)["pairs dev_read"] == 3
    assert numbers(result)["pairs dev_kept"] == 2


def test_a_file_that_changed_after_planning_fails_the_step(run: Run, tmp_path: Path) -> None:
    found = user_files(tmp_path, en="a\n", de="x\n")
    (tmp_path / "de").write_text("y\n")
    spec = {"kind": "files", "source": "en", "target": "de"}
    with pytest.raises(StepError, match="de has changed since the study was planned"):
        run(
            TEST_SET,
            "test",
            params={"test_set": spec, "corpus": None, "languages": LANGUAGES, "digests": found["digests"]},
            locations=found["locations"],
        )


def read_segments(context: Context) -> list[dict[str, Any]]:
    text = (context.output / "segments.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def test_a_synthetic_test_set_is_annotated(run: Run) -> None:
    spec = {"kind": "synthetic", "corpus": "c", "lines": 40}
    params = {"test_set": spec, "corpus": SYNTHETIC, "languages": LANGUAGES, "digests": {}}
    result, context = run(TEST_SET, "test", params=params)
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
    params = {"test_set": {"kind": "synthetic", "corpus": "c"}, "corpus": SYNTHETIC}
    with pytest.raises(StepError, match="no segments"):
        run(TEST_SET, "test", params={**params, "languages": LANGUAGES, "digests": {}})


def test_a_test_set_of_files_keeps_an_empty_line(run: Run, tmp_path: Path) -> None:
    found = user_files(tmp_path, en="a\n\nc\n", de="x\n\nz\n")
    spec = {"kind": "files", "source": "en", "target": "de"}
    result, context = run(
        TEST_SET,
        "test",
        params={"test_set": spec, "corpus": None, "languages": LANGUAGES, "digests": found["digests"]},
        locations=found["locations"],
    )
    assert numbers(result) == {"segments": 3, "idioms": 0}
    assert read_segments(context)[1] == {"index": 1, "source": "", "reference": "", "idioms": []}


def test_a_test_set_keeps_its_texts_but_for_white_space(run: Run, tmp_path: Path) -> None:
    found = user_files(tmp_path, en=" a\u0300\u00a0 b▁c\r\n", de="\tx\u0308  y\n", more="z▁\u0301\n")
    spec = {"kind": "files", "source": "en", "target": "de", "more_references": ["more"]}
    params = {"test_set": spec, "corpus": None, "languages": LANGUAGES, "digests": found["digests"]}
    _, context = run(TEST_SET, "test", params=params, locations=found["locations"])
    (segment,) = read_segments(context)
    assert (segment["source"], segment["reference"]) == (" a\u0300\u00a0 b▁c", " x\u0308  y")
    assert segment["more_references"] == ["z▁\u0301"]


def test_subwords_and_lexicon_are_made_of_the_corpus(run: Run) -> None:
    folders = {"corpus": run_corpus(run)[1].output}
    made, context = run(SUBWORDS, "subwords", params={"subwords": {"vocabulary": 200}}, folders=folders)
    assert numbers(made) == {"vocabulary_size": 200, "sampled_pairs": 300}
    folders["subwords"] = context.output
    encoded, context = run(ENCODE, "encode", params={}, folders=folders)
    folders["encode"] = context.output
    train = Pairs.load(context.output, "train")
    model = SubwordModel.load(folders["subwords"] / "subwords.model")
    texts = ((folders["corpus"] / f"train.{side}").read_text(encoding="utf-8") for side in ("src", "tgt"))
    assert made.facts == {"characters": len(set("".join(texts)) - {"\n"})}  # and the mark of a blank as one
    lines = [list(iterate_lines(folders["corpus"] / f"train.{side}")) for side in ("src", "tgt")]
    for rows, side in ((train.sources, lines[0]), (train.targets, lines[1])):
        assert [row.tolist() for row in rows] == [model.encode(line) for line in side]
    assert numbers(encoded)["tokens train.tgt"] == sum(map(len, train.targets))
    params = {"alignment": {"iterations": 3, "max_k": 7}}
    aligned, context = run(ALIGN, "align", params=params, folders=folders)
    lexicon = Lexicon.load(context.output / "lexicon.npz")
    assert numbers(aligned) == {"lexicon_entries": lexicon.entries}
    assert [(point.series, point.x) for point in aligned.points] == [
        ("log_likelihood", iteration) for iteration in (1, 2, 3)
    ]
    source = (folders["corpus"] / "train.src").read_text().split("\n")[0]
    ids = SubwordModel.load(folders["subwords"] / "subwords.model").encode(source)
    assert 1 < len(lexicon.select(ids, 7)) <= 7 * len(set(ids)) + 1


def test_a_vocabulary_the_corpus_cannot_fill_fails_the_step(run: Run) -> None:
    folders = {"corpus": run_corpus(run)[1].output}
    with pytest.raises(StepError, match="more than this corpus can fill"):
        run(SUBWORDS, "subwords", params={"subwords": {"vocabulary": 30000}}, folders=folders)


# ---------------------------------------------------------------- IBM-3

SOURCES = [
    f"{who} {does} {what}" for who in ("a", "b", "c") for does in ("sees", "likes") for what in ("d", "e")
]
WORDS = {"a": "ka", "b": "lo", "c": "mi", "sees": "sut", "likes": "rop", "d": "ve", "e": "fu"}


@pytest.fixture
def ibm3_folders(run: Run, tmp_path: Path) -> dict[str, Path]:
    """A corpus of files that is translated word by word, its subwords, and the tables counted in it."""
    source = "".join(f"{text}\n" for text in SOURCES)
    target = "".join(" ".join(WORDS[word] for word in text.split()) + "\n" for text in SOURCES)
    found = user_files(tmp_path, en=source, de=target)
    pair = {"source": "en", "target": "de"}
    params = {
        "corpus": {"kind": "files", "train": [pair], "dev": pair},
        "languages": LANGUAGES,
        "digests": found["digests"],
    }
    folders = {"corpus": run(CORPUS, "base", params=params, locations=found["locations"])[1].output}
    spec = {"kind": "bpe", "vocabulary": 36}
    folders["subwords"] = run(SUBWORDS, "subwords", params={"subwords": spec}, folders=folders)[1].output
    folders["encode"] = run(ENCODE, "encode", params={}, folders=folders)[1].output
    counted, context = run(IBM3, "ibm3", params={"max_fertility": 9, "iterations": 5}, folders=folders)
    assert set(numbers(counted)) == {"mean_fertility", "p1", "entries", "entropy"}
    assert [point.x for point in counted.points] == [1, 2, 3, 4, 5]
    assert [path.name for path in context.output.iterdir()] == ["ibm3.npz"]
    return {**folders, "ibm3": context.output}


def test_a_pair_that_is_too_long_to_align_is_not_counted(
    run: Run, ibm3_folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be taken for one whose target has come from nothing."""
    folders = {key: path for key, path in ibm3_folders.items() if key != "ibm3"}
    source, target = (Rows.load(folders["encode"], "train", side).lengths for side in ("src", "tgt"))
    longest = int((source * target).max())
    for module in (aligner, align):
        monkeypatch.setattr(module, "MAX_CELLS", longest - 1)
    _, context = run(IBM3, "short", params={"max_fertility": 9, "iterations": 5}, folders=folders)
    counts = Ibm3Counts.load(context.output / "ibm3.npz")
    assert counts.fertility.sum() == source[source * target < longest].sum() < source.sum()


def ibm3_params(**spec: Any) -> dict[str, Any]:
    spec = {"kind": "ibm3", "corpus": "base", "subwords": "s", **spec}
    return {"corpus": spec, "languages": LANGUAGES, "digests": {}}


def test_an_ibm3_corpus_has_the_sources_of_its_base_and_sampled_targets(
    run: Run, ibm3_folders: dict[str, Path]
) -> None:
    made = {}
    for name, spec in {
        "one": {"seed": 1},
        "again": {"seed": 1},
        "other": {"seed": 2},
        "cold": {"seed": 1, "gamma": 0},
        "cold other": {"seed": 2, "gamma": 0},
    }.items():
        result, context = run(CORPUS, name, params=ibm3_params(**spec), folders=ibm3_folders)
        assert (context.output / "train.src").read_text().split("\n")[:-1] == SOURCES
        pairs = dict.fromkeys((f"pairs {part}_{what}" for part in ("train", "dev") for what in KEPT), 12)
        assert numbers(result) == {**pairs, "dropped no_translation": 0}
        made[name] = (context.output / "train.tgt").read_text()
        assert all(made[name].split("\n")[:-1])
    assert made["one"] == made["again"] != made["other"]
    assert made["cold"] == made["cold other"]
    letters = set("".join(WORDS.values()))
    assert set("".join(made.values())) <= letters | set("\n ")  # every target subword was counted


def test_an_ibm3_test_set_is_sampled_with_its_own_seed(
    run: Run, ibm3_folders: dict[str, Path], tmp_path: Path
) -> None:
    found = user_files(tmp_path, unseen="e likes a\n???\nd sees b\na\n")
    references = {}
    for seed in (2, 3):
        spec = {"kind": "ibm3", "corpus": "c", "source": "unseen", "seed": seed, "limit": 3}
        params = {"test_set": spec, "corpus": ibm3_params()["corpus"], "languages": LANGUAGES}
        folders = {role: ibm3_folders[role] for role in ("subwords", "ibm3")}
        result, context = run(
            TEST_SET,
            f"test {seed}",
            params={**params, "digests": found["digests"]},
            locations=found["locations"],
            folders=folders,
        )
        assert numbers(result) == {"segments": 2, "idioms": 0, "no_translation": 1}
        segments = read_segments(context)
        assert [(row["index"], row["source"]) for row in segments] == [(0, "e likes a"), (1, "d sees b")]
        references[seed] = [row["reference"] for row in segments]
    assert references[2] != references[3]


def test_a_corpus_without_a_link_has_no_tables(
    run: Run, ibm3_folders: dict[str, Path], tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for name in ("train.src", "train.tgt", "dev.src", "dev.tgt"):
        (empty / name).write_text("\n")
    folders = {**ibm3_folders, "corpus": empty}
    encoded = run(ENCODE, "nothing", params={}, folders=folders)[1].output
    with pytest.raises(StepError, match="IBM-3 cannot be counted in this corpus: no pair to align"):
        run(
            IBM3, "none", params={"max_fertility": 9, "iterations": 2}, folders={**folders, "encode": encoded}
        )


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
    found = user_files(tmp_path, en=source, de=target, info=info)
    spec = {"kind": "files", "source": "en", "target": "de", "tokenized": "moses"}
    return run(
        TEST_SET,
        "test",
        params={
            "test_set": {**spec, "itds": {"info": "info", "corpus": "c"}},
            "corpus": None,
            "languages": LANGUAGES,
            "digests": found["digests"],
        },
        locations=found["locations"],
        folders={"corpus": folder},
    )


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
