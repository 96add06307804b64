"""Translation by CTranslate2, for folders of its models: its searches over our ids.

CTranslate2 has no length limit per sentence, and uses the union of a batch's vocabularies. So only sentences
with the same limit share a batch, and with a vocabulary map each sentence is a batch: as elsewhere, no output
depends on its batch mates. By default CTranslate2 forbids empty hypotheses and cuts sources; `AS_OURS`
changes this. An empty source is not shown to the model: its output is empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from creamtea.errors import InputError, StepError, StepUnavailable
from creamtea.marian import CONFIG
from creamtea.methods.searches import Beam, Precision, Search
from creamtea.methods.selections import Selection
from creamtea.shipped import ends_of
from creamtea_workers.corpora.batches import parts
from creamtea_workers.corpora.subwords import (
    BOS,
    PAD,
    SubwordTexts,
    TextModel,
    load_text_model_of,
    vocabulary_sizes,
)
from creamtea_workers.search import build_search
from creamtea_workers.search.base import Hypothesis, SearchMethod, Sources, Translation, length_limit
from creamtea_workers.selection.tables import VocabularyMap

if TYPE_CHECKING:
    import ctranslate2

Names = tuple[list[str], list[str]]  # names of source and target subwords, by id
COMPUTE_TYPES: dict[str, str] = {"fp32": "float32", "int8": "int8"}
# CTranslate2's defaults: an output has at least one subword, a source at most 1,024
AS_OURS: dict[str, Any] = {"min_decoding_length": 0, "max_input_length": 0}


def require_ctranslate2(otherwise: str = "") -> None:
    """Raise InputError if the package is missing. `otherwise`: an alternative to add to the message."""
    try:
        import ctranslate2  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"CTranslate2 cannot be imported ({error}): install it with `pip install 'creamtea[export]'`"
            f"{otherwise}"
        ) from None


class Library:
    """A CTranslate2 model on the CPU, called with ids."""

    def __init__(self, folder: Path, names: Names, threads: int = 1, compute_type: str = "float32") -> None:
        import ctranslate2

        self._translator: ctranslate2.Translator = ctranslate2.Translator(
            str(folder), compute_type=compute_type, inter_threads=1, intra_threads=threads
        )
        self._names = names[0]
        self._ids = {name: id_ for id_, name in enumerate(names[1])}
        self._ends = ends_of(json.loads((folder / CONFIG).read_text(encoding="utf-8")))

    def translate(
        self,
        sources: Sources,
        limits: Sequence[int],
        search: Beam | None = None,
        count: int = 1,
        mapped: bool = False,
    ) -> list[list[Hypothesis]]:
        """Return at most `count` hypotheses per source, best first.

        `limits`: the maximum number of tokens per source, </s> included. `search`: None is greedy search.
        `mapped`: use the vocabulary of the folder's map.
        """  # fmt: skip
        results: list[list[Hypothesis]] = [[] for _ in sources]
        groups = [[n] for n in range(len(sources))]
        if not mapped:
            groups = [[n for n, own in enumerate(limits) if own == limit] for limit in dict.fromkeys(limits)]
        for group in groups:
            texts = [n for n in group if sources[n]]
            for n in group:
                results[n] = [Hypothesis([], 0.0, True)]
            rows = [[*(self._names[id_] for id_ in sources[n]), *self._ends] for n in texts]
            width, power = (search.width, search.length_normalization) if search else (1, 0.0)
            translated = self._translator.translate_batch(
                rows, max_decoding_length=limits[group[0]], beam_size=width, length_penalty=power,
                num_hypotheses=count, return_scores=True, use_vmap=mapped, **AS_OURS,
            )  # fmt: skip
            for n, result in zip(texts, translated, strict=True):
                results[n] = [
                    self._hypothesis(names, score, limits[n], power)
                    for names, score in zip(result.hypotheses, result.scores, strict=True)
                ]
        return results

    def _hypothesis(self, names: Sequence[str], score: float, limit: int, power: float) -> Hypothesis:
        finished = len(names) < limit
        length = len(names) + finished  # with </s>; CTranslate2 divides scores by length^power
        return Hypothesis([self._ids[name] for name in names], score * length**power, finished)


def token_names(subwords: SubwordTexts) -> Names:
    """Return unique names of source and target subwords, by id.

    Marian's decoder begins with the padding symbol, so two ids have its name: at BOS it becomes `<begin>`.
    """
    sizes = vocabulary_sizes(subwords)
    sides = subwords.source_pieces(range(sizes[0])), subwords.pieces(range(sizes[1]))
    for names in sides:
        if names[BOS] == names[PAD]:
            names[BOS] = "<begin>"
    return sides


@dataclass(frozen=True)
class ShippedTranslator:
    """A system of a CTranslate2 folder, with the interface of `search.translator.Translator`."""

    library: Library
    search: SearchMethod  # our search with the same settings, for its width and findings
    beam: Beam | None
    map: VocabularyMap | None
    subwords: SubwordTexts
    capture_seconds: float = 0.0

    def batches(self, sources: Sources, size: int) -> Iterator[list[int]]:
        lengths = [len(source) for source in sources]
        return parts(sorted(range(len(sources)), key=lambda n: -lengths[n]), lengths, size)

    def translate(self, sources: Sources, with_scores: bool = True) -> list[Translation]:
        return [best for (best, *_) in self.translate_best(sources, 1)]

    def translate_best(self, sources: Sources, count: int) -> list[list[Translation]]:
        limits = [length_limit(self.search.max_length_ratio, len(source)) for source in sources]
        rows = self.library.translate(sources, limits, self.beam, count, self.map is not None)
        sizes = self.selected_sizes(sources)
        return [[Translation(best, size) for best in row] for row, size in zip(rows, sizes, strict=True)]

    def translate_gradually(self, sources: Sources) -> Iterator[list[tuple[int, Translation]]]:
        yield list(enumerate(self.translate(sources)))

    def selected_sizes(self, sources: Sources) -> list[int]:
        chosen = self.selected(sources)
        return [self.subwords.size] * len(sources) if chosen is None else [len(ids) for ids in chosen]

    def selected(self, sources: Sources) -> list[list[int]] | None:
        return None if self.map is None else [self.map.ids(source).tolist() for source in sources]

    def limits(self, source: Sequence[int], ids: Sequence[int]) -> list[float | None] | None:
        return None if self.map is None else [None] * len(ids)


@dataclass(frozen=True)
class ShippedModel:
    """A CTranslate2 folder that `import_model` has copied, ready to translate."""

    library: Library
    folder: Path
    subwords: SubwordTexts

    @classmethod
    def load(cls, folder: Path, precision: Precision, device: torch.device, threads: int) -> ShippedModel:
        try:
            require_ctranslate2()
        except InputError as error:
            raise StepUnavailable(str(error)) from None
        if device.type != "cpu":
            raise StepError(
                "a CTranslate2 model translates on CPUs: remove `gpus` from the study's resources"
            )
        subwords = load_text_model_of(folder)
        assert isinstance(subwords, SubwordTexts)
        try:
            library = Library(folder, token_names(subwords), threads, COMPUTE_TYPES[precision])
        except (RuntimeError, ValueError, LookupError) as error:
            raise StepError(f"CTranslate2 cannot load the model: {error}") from None
        return cls(library, folder, subwords)

    def translator(
        self,
        selection: Selection,
        search: Search,
        lexicon: Path | None = None,
        subwords: TextModel | None = None,
        whole_test_set: bool = False,
    ) -> ShippedTranslator:
        return ShippedTranslator(
            self.library,
            build_search(search),
            search if isinstance(search, Beam) else None,
            VocabularyMap.load(self.folder, self.subwords) if selection.selects else None,
            self.subwords,
        )
