"""Inputs of steps made by hand, decodings of them, and what steps leave."""

import functools
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter
from step_context import Context

from creamtea.contract.step import MetricRow, StepResult
from creamtea.methods.selections import Selection
from creamtea.methods.texts import Subwords
from creamtea.steps.systems import DECODE
from creamtea_workers.corpora.subwords import SUBWORDS_FILE, SubwordModel, train_subwords
from creamtea_workers.corpora.text import read_jsonl as read_rows
from creamtea_workers.corpora.text import write_jsonl
from creamtea_workers.models.interface import EOS
from creamtea_workers.models.model import Model, ModelConfig, build_model, load_model, save_model
from creamtea_workers.search.translator import source_batch
from creamtea_workers.selection import SelectionResources, build_selector
from creamtea_workers.selection.aligner import Lexicon

Folders = dict[str, list[Path]]  # by role
TEXT = ["the cat sat on the mat", "a dog ran in the park", "she took the cake", "it rains cats and dogs"] * 5
TINY = {"encoder_layers": 1, "decoder_layers": 1, "width": 16, "heads": 2, "feed_forward": 32}
PARAMS: dict[str, Any] = {"architecture": TINY, "nvs": {}, "objective": {"kind": "softmax"}}
SCORED = {"score": -1.0, "length": 3, "selected_size": 9}
DECODING = {
    "selection": {"kind": "full"}, "search": {"kind": "greedy"}, "precision": "fp32", "batch_size": 4,
}  # fmt: skip


@functools.cache
def _subword_model() -> bytes:
    with TemporaryDirectory() as folder:
        text, model = Path(folder, "text"), Path(folder, SUBWORDS_FILE)
        text.write_text("\n".join(TEXT) + "\n", encoding="utf-8")
        train_subwords([text], Subwords(vocabulary=40), model)
        return model.read_bytes()


def subwords_folder(root: Path) -> Path:
    folder = root / "subwords"
    folder.mkdir()
    (folder / SUBWORDS_FILE).write_bytes(_subword_model())
    return folder


def vocabulary_size(subwords: Path) -> int:
    return SubwordModel.load(subwords / SUBWORDS_FILE).size


def model_config(size: int, **params: Any) -> ModelConfig:
    return ModelConfig.model_validate({**PARAMS, **params, "vocabulary_size": size})


def random_model(size: int, seed: int = 1, **params: Any) -> Model:
    torch.manual_seed(seed)
    return build_model(model_config(size, **params)).eval()


def model_folder(
    root: Path, size: int, name: str = "train", seed: int = 1, end: float = 1.5, **params: Any
) -> Path:
    """`end`: the bias of </s>. At -100 no output ends."""
    folder = root / name
    folder.mkdir()
    model = random_model(size, seed, **params)
    with torch.no_grad():
        model.output_bias[EOS] = end
    save_model(folder, model, model_config(size, **params))
    return folder


def lexicon_folder(root: Path, size: int) -> Path:
    """Source subword s has the targets s and s + 1 (mod V), in this order."""
    folder = root / "align"
    folder.mkdir()
    targets = np.stack([np.arange(size), (np.arange(size) + 1) % size], axis=1).ravel()
    starts = np.arange(0, 2 * size + 1, 2)
    probabilities = np.tile([0.6, 0.4], size)
    Lexicon(starts, targets.astype(np.int32), probabilities.astype(np.float32)).save(folder / "lexicon.npz")
    return folder


def segments_folder(root: Path, segments: Sequence[str | dict[str, Any]], name: str = "test_set") -> Path:
    """`segments`: rows without what is usual, or sources alone."""
    folder = root / name
    folder.mkdir()
    rows = (
        {"index": n, "reference": "x", "idioms": [], **({"source": row} if isinstance(row, str) else row)}
        for n, row in enumerate(segments)
    )
    write_jsonl(folder / "segments.jsonl", rows)
    return folder


def outputs_folder(root: Path, texts: Sequence[str], name: str = "decode") -> Path:
    """What a decode step leaves that wrote these texts."""
    folder = root / name
    folder.mkdir()
    rows = ({"index": n, "text": text, **SCORED} for n, text in enumerate(texts))
    write_jsonl(folder / "hypotheses.jsonl", rows)
    return folder


def input_folders(root: Path, segments: Sequence[str | dict[str, Any]], **model: Any) -> Folders:
    """Make a test set, subwords, a model with these parameters, and a lexicon."""
    subwords = subwords_folder(root)
    size = vocabulary_size(subwords)
    return {
        "test_set": [segments_folder(root, segments)],
        "subwords": [subwords],
        "train": [model_folder(root, size, **model)],
        "align": [lexicon_folder(root, size)],
    }


def subwords_of(folders: Folders) -> SubwordModel:
    return SubwordModel.load(folders["subwords"][0] / SUBWORDS_FILE)


def model_of(folders: Folders) -> Model:
    return load_model(folders["train"][0])[0]


@torch.inference_mode()
def selected_alone(folders: Folders, selection: dict[str, Any], sources: Sequence[str]) -> list[set[int]]:
    """What a selection allows each source in a batch of its own."""
    subwords, model = subwords_of(folders), model_of(folders)
    resources = SelectionResources(model, folders["align"][0] / "lexicon.npz", subwords)
    selector = build_selector(TypeAdapter(Selection).validate_python(selection), resources)
    found = []
    for source in map(subwords.encode, sources):
        (ids,) = selector.select([source], model.encode(source_batch([source], torch.device("cpu")))) or []
        found.append(set(ids.tolist()))
    return found


def decoding(folders: Folders, output: Path = Path(), **params: Any) -> Context:
    return Context(DECODE, {**DECODING, **params}, folders, output)


def decoded(folders: Folders, output: Path = Path(), **params: Any) -> list[dict[str, Any]]:
    """The rows of the hypotheses."""
    step = decoding(folders, output, **params)
    step.run()
    return read_rows(step.output / "hypotheses.jsonl")


def metric(result: StepResult, name: str, subject: str = "") -> MetricRow:
    (found,) = [row for row in result.metrics if (row.name, row.subject) == (name, subject)]
    return found
