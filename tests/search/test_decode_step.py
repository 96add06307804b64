"""Decode steps from files to files: every segment once, in order, whatever stops them on the way."""

from pathlib import Path
from typing import Any, TypeVar

import pytest
import step_files
import torch
from step_context import Context
from step_files import Folders, decoded, decoding, read_rows

from creamtea.contract.step import GaveWay, StepCancelled, StepResult
from creamtea.errors import InfrastructureError, StepError, StepUnavailable
from creamtea_workers.corpora.subwords import VOCABULARIES_FILE, Vocabularies, Vocabulary
from creamtea_workers.models.model import load_model, save_model
from creamtea_workers.search.translator import OpenSystem
from creamtea_workers.steps import decode
from creamtea_workers.training import checkpoint
from creamtea_workers.training.group import Group

T = TypeVar("T")
SOURCES = ["the cat sat on the mat", "", "a dog", "zzz ☃ unseen", "she took the cake in the park"] * 3


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return step_files.input_folders(tmp_path, SOURCES)


def with_model(folders: Folders, root: Path, **params: Any) -> Folders:
    size = step_files.subwords_of(folders).size
    return {**folders, "train": [step_files.model_folder(root, size, "other", **params)]}


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
    folders: Folders, selection: dict[str, Any], search: dict[str, Any], precision: str
) -> None:
    given = decoding(folders, selection=selection, search=search, precision=precision)
    found = values(given.run())
    rows = read_rows(given.output / "hypotheses.jsonl")
    assert [row["index"] for row in rows] == list(range(len(SOURCES)))
    assert all(set(row) == {"index", "text", "score", "length", "selected_size"} for row in rows)
    assert all(row["score"] <= 0 for row in rows)
    if precision == "fp32":  # the sources repeat, in other batches
        assert [row["text"] for row in rows[:5]] == [row["text"] for row in rows[5:10]]
    size = step_files.subwords_of(folders).size
    sizes = [row["selected_size"] for row in rows]
    assert set(sizes) == {size} if selection["kind"] == "full" else min(sizes) < size
    assert found["selected_size"] == pytest.approx(sum(sizes) / len(rows))
    assert found["empty"] == pytest.approx(sum(row["text"] == "" for row in rows) / len(rows))
    assert (found["sentences_per_second"] or 0) > 0
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
    folders: Folders, tmp_path: Path, selection: dict[str, Any], search: dict[str, Any]
) -> None:
    folders = with_model(folders, tmp_path, end=-100.0)  # it would rather say anything than nothing
    outputs = []
    for name, extra in (("all", BLANK), ("texts", [])):
        sources = [SOURCES[0], *extra, *SOURCES[2:4]]
        folders["test_set"] = [step_files.segments_folder(tmp_path, sources, name)]
        step = decoding(folders, selection=selection, search=search)
        outputs.append((step.run(), read_rows(step.output / "hypotheses.jsonl")))
    (result, rows), (_, others) = outputs
    assert [(row["text"], row["length"], row["score"]) for row in rows[1:5]] == [("", 0, 0.0)] * 4
    assert [row["text"] for row in (rows[0], *rows[5:])] == [row["text"] for row in others]
    assert all(row["length"] for row in others) or search["kind"] == "exact"
    blank, empty = (step_files.metric(result, name) for name in ("blank_sources", "empty"))
    assert (blank.value, blank.detail) == (pytest.approx(4 / 7), {"count": 4, "of": 7})
    assert empty.note.startswith("4 of 7 source lines are empty")


def test_exact_search_writes_what_it_proved(folders: Folders, tmp_path: Path) -> None:
    folders = with_model(folders, tmp_path, seed=4)  # its beams finish
    beams = decoded(folders, search={"kind": "beam", "width": 2})
    given = decoding(folders, search={"kind": "exact", "max_states": 300, "beam": 2})
    result = values(given.run())
    found, outputs = (read_rows(given.output / name) for name in ("exact.jsonl", "hypotheses.jsonl"))
    assert [row["index"] for row in found] == list(range(len(SOURCES)))
    for row, output, other in zip(found, outputs, beams, strict=True):
        assert row["beam_score"] == pytest.approx(other["score"], abs=1e-4)
        assert output["score"] >= row["beam_score"]
        assert 0 <= row["expansions"] <= 300
        assert (row["outcome"] == "proved") == (row["expansions"] < 300)
    for outcome in ("proved", "improved", "limit"):
        assert result[outcome] == pytest.approx(sum(row["outcome"] == outcome for row in found) / len(found))
    assert result["expansions"] == pytest.approx(sum(row["expansions"] for row in found) / len(found))


class Stopped(Context):
    def progress(self, done: float, total: float, message: str = "") -> None:
        super().progress(done, total, message)
        if done >= 8:
            raise StepCancelled


class Roomy(Context):
    def has_more_room(self) -> bool:
        return True


class SecondOfTwo(Group):
    """A worker whose group ends before it has gathered the translations."""

    rank, size = 1, 2

    def gather(self, value: T) -> list[T]:
        raise InfrastructureError("another worker of this step was lost")


STOPS: dict[str, tuple[type[Context], type[Exception]]] = {
    "cancelled": (Stopped, StepCancelled),
    "gives way to one with more room": (Roomy, GaveWay),
    "one of a group": (Context, InfrastructureError),
}


@pytest.mark.parametrize(
    ("search", "stop"),
    [
        *(({"kind": "greedy"}, stop) for stop in STOPS),
        ({"kind": "exact", "max_states": 300}, "cancelled"),
    ],
)
def test_a_stopped_decoding_goes_on_where_it_was(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, search: dict[str, Any], stop: str
) -> None:
    whole = decoding(folders, search=search)
    whole.run()
    context, error = STOPS[stop]
    stopped = context(whole.kind, whole.raw_params, folders)
    with monkeypatch.context() as patch:
        patch.setattr(decode, "SAVE_EVERY", -1.0)
        if stop == "one of a group":
            checkpoint.save(stopped.checkpoints, "translations-0.pt", {"translations": {}, "seconds": 2.0})
            patch.setattr(decode, "current_group", SecondOfTwo)
        with pytest.raises(error):
            stopped.run()
    again = decoding(folders, search=search)
    again.checkpoints = stopped.checkpoints
    again.run()
    assert 0 < again.progresses[0][0] < len(SOURCES)
    if stop == "one of a group":
        assert again.progresses[0][0] == int(stopped.progresses[-1][0])
    for file in whole.output.iterdir():
        for row, other in zip(read_rows(file), read_rows(again.output / file.name), strict=True):
            if search["kind"] == "exact":  # the rest of a batch is a batch of another shape
                for key in ("score", "beam_score"):
                    assert row.pop(key, 0.0) == pytest.approx(other.pop(key, 0.0), abs=1e-4)
            assert row == other


@pytest.mark.parametrize("search", [{"kind": "beam", "width": 30}, {"kind": "exact", "beam": 30}])
def test_a_beam_wider_than_every_selection_translates(folders: Folders, search: dict[str, Any]) -> None:
    rows = decoded(folders, search=search, selection={"kind": "lexicon", "k": 1})
    assert len(rows) == len(SOURCES)
    assert max(row["selected_size"] for row in rows) < 30


@pytest.mark.parametrize(
    "changes",
    [
        {"selection": {"kind": "lexicon", "k": 1}},
        {"search": {"kind": "sample", "top_k": 10}},  # the same source has the same draws
        {"search": {"kind": "mbr", "samples": 6}},
    ],
    ids=str,
)
def test_the_batch_size_changes_no_output(folders: Folders, changes: dict[str, Any]) -> None:
    one, many = (decoded(folders, batch_size=size, **changes) for size in (1, 15))
    assert [row["text"] for row in one] == [row["text"] for row in many]
    assert [row["score"] for row in one] == pytest.approx([row["score"] for row in many], abs=1e-4)
    assert [row["text"] for row in one[:5]] == [row["text"] for row in one[5:10]]


def test_hypotheses_cut_at_the_limit_are_counted(folders: Folders, tmp_path: Path) -> None:
    result = decoding(with_model(folders, tmp_path, end=-100.0)).run()
    cut = step_files.metric(result, "truncated")
    assert (cut.value, cut.detail) == (0.8, {"count": 12, "of": 15})  # all but the outputs of empty lines


def test_nvs_without_a_head_says_what_to_do(folders: Folders, tmp_path: Path) -> None:
    with pytest.raises(StepError, match="trained without an NVS head"):
        decoding(with_model(folders, tmp_path, nvs=None), selection={"kind": "nvs"}).run()


def test_a_broken_model_is_an_error(folders: Folders) -> None:
    (folder,) = folders["train"]
    model, _, config = load_model(folder)
    with torch.no_grad():
        model.embedding.weight.fill_(float("nan"))
    save_model(folder, model, config)
    with pytest.raises(StepError, match="the model is broken"):
        decoding(folders).run()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_no_silent_cpu(folders: Folders) -> None:
    given = decoding(folders)
    given.gpus = 1
    with pytest.raises(StepUnavailable, match="torch sees none"):
        given.run()


# ---------------------------------------------------------------- lines outside of a test set


def test_subwords_say_which_characters_have_none(tmp_path: Path) -> None:
    system = OpenSystem.of_step(decoding(step_files.input_folders(tmp_path, ["<ady>abc"])))
    rows = system.translate(["the cat", "the ☃ sat Ω"])
    assert [row["unknown"] for row in rows] == [[], ["☃", "Ω"]]
    blank = system.translate(["", " \u3000", "\u200b"])
    assert [(row["text"], row["unknown"]) for row in blank] == [("", [])] * 3
    assert system.example == ""  # a symbol in angle brackets is text like any other here


def test_words_have_unknown_languages_and_characters_and_an_example(tmp_path: Path) -> None:
    both = Vocabularies(
        Vocabulary.of("characters", ["<ady>abc", "<bel>d"]), Vocabulary.of("characters", ["xyz"])
    )
    subwords = tmp_path / "subwords"
    subwords.mkdir()
    both.save(subwords / VOCABULARIES_FILE)
    train = step_files.model_folder(tmp_path, both.size, nvs=None, source_vocabulary=both.source_vocabulary)
    test_set = step_files.segments_folder(tmp_path, ["<ady>abc"])
    given = decoding({"test_set": [test_set], "subwords": [subwords], "train": [train]})
    system = OpenSystem.of_step(given)
    rows = system.translate(["<ady>cab", "<zzz>cab", "cabž"])
    assert [row["unknown"] for row in rows] == [[], ["<zzz>"], ["ž"]]
    assert system.example == "<ady>abc"
