"""Vocabulary selection: which target subwords a sentence may use. One file per method."""

from __future__ import annotations

from pathlib import Path

from creamtea.study.spec import FullVocabulary, LexiconSelection, Selection
from creamtea_workers.models.interface import TranslationModel
from creamtea_workers.selection.alignment import LexiconSelector
from creamtea_workers.selection.base import Selector
from creamtea_workers.selection.full import FullSelector
from creamtea_workers.selection.lexicon import Lexicon
from creamtea_workers.selection.nvs import NvsSelector

__all__ = ["Selector", "build_selector"]


def build_selector(spec: Selection, model: TranslationModel, lexicon: Path | None) -> Selector:
    """`lexicon`: the file of an align step, needed by lexicon selection only; NVS needs a model with the
    head."""
    if isinstance(spec, FullVocabulary):
        return FullSelector()
    if isinstance(spec, LexiconSelection):
        if lexicon is None:
            raise ValueError("lexicon selection needs a lexicon")
        return LexiconSelector(Lexicon.load(lexicon), spec.k)
    return NvsSelector(model, spec.threshold)
