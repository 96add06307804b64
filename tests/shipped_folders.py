"""CTranslate2 folders of small random models."""

import shutil
from pathlib import Path

import numpy as np

from creamtea.marian import SPM, read_folder
from creamtea_workers.export import save_ctranslate2, save_map
from creamtea_workers.models.marian import load_marian
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.search.shipped import token_names
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.tables import LexiconSelector


def random_selector(sources: int, targets: int) -> LexiconSelector:
    rows = np.random.default_rng(1).integers(4, targets, (sources, 3)).astype(np.int32)
    frequent = np.array([5, 6], dtype=np.int32)
    lexicon = Lexicon(np.arange(sources + 1) * 3, rows.ravel(), np.ones(rows.size, np.float32), frequent)
    return LexiconSelector(lexicon, 3, 2)


def make_shipped(folder: Path, marian: Path, quantization: str | None = None) -> LexiconSelector:
    """Write the CTranslate2 model of a folder in MarianMT format, with a map; return the map's lexicon."""
    model, _, subwords = load_marian(read_folder(marian))
    assert isinstance(model, Transformer)
    names = token_names(subwords)
    folder.mkdir()
    save_ctranslate2(model, names, folder, quantization)
    selector = random_selector(len(names[0]), len(names[1]))
    save_map(selector, names, folder)
    for name in SPM:
        shutil.copyfile(marian / name, folder / name)
    return selector
