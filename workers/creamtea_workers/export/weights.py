"""An exported model in creamtea's own form.

| file | content |
|---|---|
| `model.safetensors` | weights by name, fp32 |
| `config.json` | objective, architecture, nvs, vocabulary_size: what rebuilds the module |
| `subwords.model` or `vocabularies.json` | text to ids and back |
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from creamtea.errors import InputError
from creamtea.methods.searches import Beam, Greedy, Search
from creamtea_workers.corpora.subwords import TextModel, load_text_model_of
from creamtea_workers.models.build import CONFIG, WEIGHTS, load_model
from creamtea_workers.models.inference import prepare
from creamtea_workers.runtime import use_tf32
from creamtea_workers.search import build_search
from creamtea_workers.search.translator import Translator, translate_all
from creamtea_workers.selection.full import FullSelector

EXPORTED_CONFIG = "config.json"  # by which other programs know a folder with a model


@dataclass(frozen=True)
class ExportedModel:
    """A model with its subwords, on a device: full vocabulary, fp32."""

    translator: Translator
    subwords: TextModel

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return one translation per line, in their order."""
        sources = self.subwords.encode_lines(list(lines))
        return [self.subwords.decode(tokens) for tokens in translate_all(self.translator, sources)]


def save(trained: Path, subwords_file: Path, folder: Path) -> None:
    """Copy what a train step and a subwords step left into an existing folder."""
    shutil.copyfile(subwords_file, folder / subwords_file.name)
    shutil.copyfile(trained / WEIGHTS, folder / WEIGHTS)
    shutil.copyfile(trained / CONFIG, folder / EXPORTED_CONFIG)


def load(
    folder: str | Path, *, beam: int = 1, max_length_ratio: float = 2.0, device: str = "cpu"
) -> ExportedModel:
    """Load a model that `creamtea export --to safetensors` wrote, ready to translate.

    It translates by greedy search, or by a beam of this width. Outputs have at most `max_length_ratio` times
    the source's subwords, plus 10. From then on nothing in this process uses TF32 on a GPU. InputError if the
    folder has no such model.
    """
    folder = Path(folder)
    missing = [name for name in (EXPORTED_CONFIG, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder}: no {' and no '.join(missing)} in it; give a folder that `creamtea export --to "
            "safetensors` wrote"
        )
    use_tf32(False)
    model, objective, _ = load_model(folder, torch.device(device), EXPORTED_CONFIG)
    search: Search = Greedy(max_length_ratio=max_length_ratio)
    if beam != 1:
        search = Beam(kind="beam", width=beam, max_length_ratio=max_length_ratio)
    translator = Translator(prepare(model, "fp32"), objective, FullSelector(), build_search(search))
    return ExportedModel(translator, load_text_model_of(folder))
