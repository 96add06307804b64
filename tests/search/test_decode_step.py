from pathlib import Path
from typing import Any, TypeVar

import pytest
import step_files
import torch
from step_context import Context
from step_files import read_rows

from creamtea.contract.step import GaveWay, StepCancelled, StepResult
from creamtea.errors import InfrastructureError, StepError, StepUnavailable
from creamtea.steps.systems import DECODE
from creamtea_workers.corpora.subwords import VOCABULARIES_FILE, Vocabularies, Vocabulary
from creamtea_workers.models.model import load_model, save_model
from creamtea_workers.search.translator import OpenSystem
from creamtea_workers.steps import decode
from creamtea_workers.training import checkpoint
from creamtea_workers.training.group import Group

T = TypeVar("T")
SOURCES = ["the cat sat on the mat", "", "a dog", "zzz ☃ unseen", "she took the cake in the park"] * 3


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, list[Path]]:
    subwords = step_files.subwords_folder(tmp_path)
    size = step_files.vocabulary_size(subwords)
    segments = [{"source": source, "reference": "x"} for source in SOURCES]
    return {
        "test_set": [step_files.test_set_folder(tmp_path, segments)],
        "subwords": [subwords],
        "train": [step_files.model_folder(tmp_path, size)],
        "align": [step_files.lexicon_folder(tmp_path, size)],
    }


def context(folders: dict[str, list[Path]], output: Path, **params: Any) -> Context:
    usual = {
        "selection": {"kind": "full"},
        "search": {"kind": "greedy"},
        "precision": "fp32",
        "batch_size": 4,
    }
    return Context(DECODE, {**usual, **params}, folders, output)


def values(result: StepResult) -> dict[str, float | None]:
    return {row.name: row.value for row in result.metrics}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("search", [{"kind": "greedy"}, {"kind": "beam", "width": 3}], ids=["greedy", "beam"])
@pytest.mark.parametrize(
    "selection",
    [{"kind": "full"}, {"kind": "lexicon", "k": 2}, {"kind": "nvs", "threshold": 0.5}],
    ids=["full", "lexicon", "nvs"],
)
def test_one_hypothesis_a_segment_in_order(
    folders: dict[str, list[Path]],
    tmp_path: Path,
    selection: dict[str, Any],
    search: dict[str, Any],
    precision: str,
) -> None:
    given = context(folders, tmp_path / "out", selection=selection, search=search, precision=precision)
    result = given.run()
    rows = read_rows(given.output / "hypotheses.jsonl")
    assert [row["index"] for row in rows] == list(range(len(SOURCES)))
    assert all(set(row) == {"index", "text", "score", "length", "selected_size"} for row in rows)
    assert all(row["score"] <= 0 for row in rows)
    if precision == "fp32":  # the sources repeat, in other batches
        assert [row["text"] for row in rows[:5]] == [row["text"] for row in rows[5:10]]
    size = step_files.vocabulary_size(folders["subwords"][0])
    sizes = {row["selected_size"] for row in rows}
    assert sizes == {size} if selection["kind"] == "full" else min(sizes) < size
    assert values(result)["selected_size"] == pytest.approx(
        sum(row["selected_size"] for row in rows) / len(rows)
    )
    assert values(result)["empty"] == pytest.approx(sum(row["text"] == "" for row in rows) / len(rows))
    assert (values(result)["sentences_per_second"] or 0) > 0
    assert given.progresses[-1][:2] == (len(SOURCES), len(SOURCES))


BLANK = ["", "   ", "\u200b\u3000", "▁"]


@pytest.mark.parametrize(
    "search",
    [
        {"kind": "greedy"},
        {"kind": "beam", "width": 3},
        {"kind": "exact", "max_states": 50},
        {"kind": "sample"},
        {"kind": "mbr", "samples": 3},
    ],
    ids=lambda search: str(search["kind"]),
)
@pytest.mark.parametrize(
    "selection", [{"kind": "full"}, {"kind": "nvs", "threshold": 0.5}], ids=["full", "nvs"]
)
def test_nothing_is_translated_into_nothing(
    folders: dict[str, list[Path]], tmp_path: Path, selection: dict[str, Any], search: dict[str, Any]
) -> None:
    size = step_files.vocabulary_size(folders["subwords"][0])
    endless = step_files.model_folder(tmp_path, size, "endless")  # it would rather say anything than nothing
    model, _, config = load_model(endless)
    with torch.no_grad():
        model.output_bias[3] = -100.0
    save_model(endless, model, config)
    outputs = []
    for name, extra in (("all", BLANK), ("texts", [])):
        (tmp_path / name).mkdir()
        segments = [{"source": source, "reference": "x"} for source in (SOURCES[0], *extra, *SOURCES[2:4])]
        given = {
            **folders,
            "train": [endless],
            "test_set": [step_files.test_set_folder(tmp_path / name, segments)],
        }
        step = context(given, tmp_path / name / "out", selection=selection, search=search)
        outputs.append((step.run(), read_rows(step.output / "hypotheses.jsonl")))
    (result, rows), (_, others) = outputs
    assert [row["text"] for row in rows[1:5]] == [""] * 4
    assert all(row["length"] == 0 and row["score"] == 0.0 for row in rows[1:5])
    assert [row["text"] for row in (rows[0], *rows[5:])] == [row["text"] for row in others]
    assert all(row["length"] for row in others) or search["kind"] == "exact"
    blank, empty = (next(row for row in result.metrics if row.name == n) for n in ("blank_sources", "empty"))
    assert (blank.value, blank.detail) == (pytest.approx(4 / 7), {"count": 4, "of": 7})
    assert empty.note.startswith("4 of 7 source lines are empty")


def test_exact_search_writes_what_it_proved(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    size = step_files.vocabulary_size(folders["subwords"][0])
    folders["train"] = [step_files.model_folder(tmp_path, size, "finishing", seed=4)]  # its beams finish
    beam = context(folders, tmp_path / "beam", search={"kind": "beam", "width": 2})
    beam.run()
    given = context(folders, tmp_path / "exact", search={"kind": "exact", "max_states": 300, "beam": 2})
    result = given.run()
    found, beams = read_rows(given.output / "exact.jsonl"), read_rows(beam.output / "hypotheses.jsonl")
    outputs = read_rows(given.output / "hypotheses.jsonl")
    assert [row["index"] for row in found] == list(range(len(SOURCES)))
    for row, output, other in zip(found, outputs, beams, strict=True):
        assert row["beam_score"] == pytest.approx(other["score"], abs=1e-4)
        assert output["score"] >= row["beam_score"]
        assert 0 <= row["expansions"] <= 300
        assert (row["outcome"] == "proved") == (row["expansions"] < 300)
    for outcome in ("proved", "improved", "limit"):
        share = sum(row["outcome"] == outcome for row in found) / len(found)
        assert values(result)[outcome] == pytest.approx(share)
    assert values(result)["expansions"] == pytest.approx(sum(r["expansions"] for r in found) / len(found))


@pytest.mark.parametrize("search", [{"kind": "greedy"}, {"kind": "exact", "max_states": 300}])
def test_a_stopped_decoding_goes_on_where_it_was(
    folders: dict[str, list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: dict[str, Any]
) -> None:
    monkeypatch.setattr(decode, "SAVE_EVERY", -1.0)

    class Stopped(Context):
        def progress(self, done: float, total: float, message: str = "") -> None:
            super().progress(done, total, message)
            if done >= 8:
                raise StepCancelled

    whole = context(folders, tmp_path / "whole", search=search)
    whole.run()
    stopped = Stopped(DECODE, whole.raw_params, folders, tmp_path / "stopped")
    with pytest.raises(StepCancelled):
        stopped.run()
    again = context(folders, tmp_path / "again", search=search)
    again.checkpoints = stopped.checkpoints
    again.run()
    assert again.progresses[0][0] > 0
    for file in whole.output.iterdir():
        for row, other in zip(read_rows(file), read_rows(again.output / file.name), strict=True):
            if search["kind"] == "exact":  # the rest of a batch is a batch of another shape
                for key in ("score", "beam_score"):
                    assert row.pop(key, 0.0) == pytest.approx(other.pop(key, 0.0), abs=1e-4)
            assert row == other


class SecondOfTwo(Group):
    """A worker whose group ends before it has gathered the translations."""

    rank, size = 1, 2

    def gather(self, value: T) -> list[T]:
        raise InfrastructureError("another worker of this step was lost")


def test_a_worker_alone_goes_on_with_what_a_group_has_translated(
    folders: dict[str, list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = context(folders, tmp_path / "whole")
    whole.run()
    lost = context(folders, tmp_path / "lost")
    checkpoint.save(lost.checkpoints, "translations-0.pt", {"translations": {}, "seconds": 2.0})
    with monkeypatch.context() as patch:
        patch.setattr(decode, "SAVE_EVERY", -1.0)
        patch.setattr(decode, "current_group", SecondOfTwo)
        with pytest.raises(InfrastructureError):
            lost.run()
    translated = int(lost.progresses[-1][0])
    assert 0 < translated < len(SOURCES)
    again = context(folders, tmp_path / "again")
    again.checkpoints = lost.checkpoints
    again.run()
    assert again.progresses[0][:2] == (translated, len(SOURCES))
    written, others = ((one.output / "hypotheses.jsonl").read_bytes() for one in (whole, again))
    assert written == others


def test_a_decoding_that_has_more_room_saves_and_gives_way(
    folders: dict[str, list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Roomy(Context):
        def has_more_room(self) -> bool:
            return True

    whole = context(folders, tmp_path / "whole")
    whole.run()
    first = Roomy(DECODE, whole.raw_params, folders, tmp_path / "first")
    with monkeypatch.context() as patch:
        patch.setattr(decode, "SAVE_EVERY", -1.0)
        with pytest.raises(GaveWay):
            first.run()
    again = context(folders, tmp_path / "again")
    again.checkpoints = first.checkpoints
    again.run()
    assert 0 < again.progresses[0][0] < len(SOURCES)
    written, others = ((one.output / "hypotheses.jsonl").read_bytes() for one in (whole, again))
    assert written == others


@pytest.mark.parametrize("search", [{"kind": "beam", "width": 30}, {"kind": "exact", "beam": 30}])
def test_a_beam_wider_than_every_selection_translates(
    folders: dict[str, list[Path]], tmp_path: Path, search: dict[str, Any]
) -> None:
    given = context(folders, tmp_path / "out", search=search, selection={"kind": "lexicon", "k": 1})
    given.run()
    rows = read_rows(given.output / "hypotheses.jsonl")
    assert len(rows) == len(SOURCES)
    assert max(row["selected_size"] for row in rows) < 30


def test_the_batch_size_changes_no_output(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    outputs = []
    for batch_size in (1, 15):
        given = context(
            folders, tmp_path / str(batch_size), batch_size=batch_size, selection={"kind": "lexicon", "k": 1}
        )
        given.run()
        outputs.append(read_rows(given.output / "hypotheses.jsonl"))
    one, many = outputs
    assert [row["text"] for row in one] == [row["text"] for row in many]
    assert [row["score"] for row in one] == pytest.approx([row["score"] for row in many], abs=1e-4)


def test_hypotheses_cut_at_the_limit_are_counted(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    size = step_files.vocabulary_size(folders["subwords"][0])
    endless = step_files.model_folder(tmp_path, size, "endless")
    model, _, config = load_model(endless)
    with torch.no_grad():
        model.output_bias[3] = -100.0
    save_model(endless, model, config)
    result = context({**folders, "train": [endless]}, tmp_path / "out").run()
    assert values(result)["truncated"] == 0.8  # all but the outputs of empty lines
    assert next(row for row in result.metrics if row.name == "truncated").detail == {"count": 12, "of": 15}


def test_nvs_without_a_head_says_what_to_do(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    size = step_files.vocabulary_size(folders["subwords"][0])
    headless = step_files.model_folder(tmp_path, size, "headless", nvs=None)
    given = context({**folders, "train": [headless]}, tmp_path / "out", selection={"kind": "nvs"})
    with pytest.raises(StepError, match="trained without an NVS head"):
        given.run()


def test_a_broken_model_is_an_error(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    size = step_files.vocabulary_size(folders["subwords"][0])
    broken = step_files.model_folder(tmp_path, size, "broken")
    model, _, config = load_model(broken)
    with torch.no_grad():
        model.embedding.weight.fill_(float("nan"))
    save_model(broken, model, config)
    with pytest.raises(StepError, match="the model is broken"):
        context({**folders, "train": [broken]}, tmp_path / "out").run()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_no_silent_cpu(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    given = context(folders, tmp_path / "out")
    given.gpus = 1
    with pytest.raises(StepUnavailable, match="torch sees none"):
        given.run()


# ---------------------------------------------------------------- lines outside of a test set


PARAMS = {"selection": {"kind": "full"}, "search": {"kind": "greedy"}, "precision": "fp32", "batch_size": 4}


def opened(tmp_path: Path, subwords: Path, train: Path, source: str) -> OpenSystem:
    folders = {
        "test_set": [step_files.test_set_folder(tmp_path, [{"source": source, "reference": "x"}])],
        "subwords": [subwords],
        "train": [train],
    }
    return OpenSystem.of_step(Context(DECODE, PARAMS, folders, tmp_path / "out"))


def test_subwords_say_which_characters_have_none(tmp_path: Path) -> None:
    subwords = step_files.subwords_folder(tmp_path)
    train = step_files.model_folder(tmp_path, step_files.vocabulary_size(subwords))
    system = opened(tmp_path, subwords, train, "<ady>abc")
    rows = system.translate(["the cat", "the ☃ sat Ω"])
    assert [row["unknown"] for row in rows] == [[], ["☃", "Ω"]]
    assert [(row["text"], row["unknown"]) for row in system.translate(["", " \u3000", "\u200b"])] == [
        ("", [])
    ] * 3
    assert system.example == ""  # a symbol in angle brackets is text like any other here


def test_words_have_unknown_languages_and_characters_and_an_example(tmp_path: Path) -> None:
    both = Vocabularies(
        Vocabulary.of("characters", ["<ady>abc", "<bel>d"]), Vocabulary.of("characters", ["xyz"])
    )
    subwords = tmp_path / "subwords"
    subwords.mkdir()
    both.save(subwords / VOCABULARIES_FILE)
    train = step_files.model_folder(tmp_path, both.size, nvs=None, source_vocabulary=both.source_vocabulary)
    system = opened(tmp_path, subwords, train, "<ady>abc")
    rows = system.translate(["<ady>cab", "<zzz>cab", "cabž"])
    assert [row["unknown"] for row in rows] == [[], ["<zzz>"], ["ž"]]
    assert system.example == "<ady>abc"
