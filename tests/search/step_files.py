"""A step's inputs made by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from creamtea.methods.texts import Subwords
from creamtea_workers.corpora.subwords import SubwordModel, train_subwords
from creamtea_workers.models.interface import EOS
from creamtea_workers.models.model import ModelConfig, build_model, save_model
from creamtea_workers.selection.aligner import Lexicon

TEXT = ["the cat sat on the mat", "a dog ran in the park", "she took the cake", "it rains cats and dogs"] * 5
TINY = {"encoder_layers": 1, "decoder_layers": 1, "width": 16, "heads": 2, "feed_forward": 32}
PARAMS = {"architecture": TINY, "nvs": {}, "objective": {"kind": "softmax"}}


def subwords_folder(root: Path) -> Path:
    folder = root / "subwords"
    folder.mkdir()
    (folder / "text").write_text("\n".join(TEXT) + "\n", encoding="utf-8")
    train_subwords([folder / "text"], Subwords(vocabulary=40), folder / "subwords.model")
    return folder


def vocabulary_size(subwords: Path) -> int:
    return SubwordModel.load(subwords / "subwords.model").size


def model_config(size: int, **params: Any) -> ModelConfig:
    return ModelConfig.model_validate({**PARAMS, **params, "vocabulary_size": size})


def model_folder(root: Path, size: int, name: str = "train", seed: int = 1, **params: Any) -> Path:
    folder = root / name
    folder.mkdir()
    torch.manual_seed(seed)
    config = model_config(size, **params)
    model = build_model(config)
    with torch.no_grad():
        model.output_bias[EOS] = 1.5
    save_model(folder, model, config)
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


def test_set_folder(root: Path, segments: list[dict[str, Any]]) -> Path:
    folder = root / "test_set"
    folder.mkdir()
    rows = ({"index": n, "idioms": [], **segment} for n, segment in enumerate(segments))
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "segments.jsonl").write_text(text, encoding="utf-8")
    return folder


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
