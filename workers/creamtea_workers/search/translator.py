"""From source text to hypotheses: load a system, encode, select the vocabulary, search."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from creamtea.contract.step import Checkpoints, StepContext
from creamtea.errors import InputError, StepError, StepUnavailable
from creamtea.methods.searches import Precision, Search
from creamtea.methods.selections import Selection
from creamtea.settings import processor_name
from creamtea.shipped import MODEL
from creamtea.steps.systems import DecodeParams
from creamtea_workers.corpora.batches import Result, in_batches, parts
from creamtea_workers.corpora.segments import encode_sources
from creamtea_workers.corpora.subwords import UNK, SubwordTexts, TextModel, load_text_model
from creamtea_workers.corpora.text import normalise, read_jsonl
from creamtea_workers.corpora.tokens import Rows
from creamtea_workers.models.ensemble import Ensemble, EnsembleObjective
from creamtea_workers.models.inference import prepare
from creamtea_workers.models.interface import EOS, PAD, Memory, TranslationModel
from creamtea_workers.models.model import Model, ModelConfig, load_model
from creamtea_workers.objectives.base import Objective
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search import build_search
from creamtea_workers.search.base import (
    Hypothesis,
    SearchInput,
    SearchMethod,
    Sources,
    Translation,
    length_limit,
)
from creamtea_workers.search.candidates import Candidates
from creamtea_workers.search.exact import ExactHypothesis
from creamtea_workers.search.fixed import encode_fixed
from creamtea_workers.search.output import output_layer
from creamtea_workers.search.shipped import ShippedModel, ShippedTranslator
from creamtea_workers.selection import build_selector
from creamtea_workers.selection.base import LimitedSelector, SelectionResources, Selector
from creamtea_workers.training import checkpoint

_BATCH = 64  # sentences
_BATCH_ON_GPU = 512  # takes an H200 2.5 (greedy) to 4.4 times (beam 4) as long as 4 sentences
# bounds on a batch: decoder rows × vocabulary (256 MB of fp32 logits); rows (for small vocabularies); numbers
# that the rows keep (2 GB of fp32, twice while beams are reordered). A wide beam has fewer sentences
_CELLS, _ROWS, _KEPT = 1 << 26, 1 << 13, 1 << 29


@dataclass(frozen=True)
class Translator:
    """A system: model × selection × search.

    The only translation of a source without subwords is empty, whatever the model has learnt. In fp32 and
    int8 an output does not depend on the rest of the batch. In bf16 and fp16, and in int8 with an LSTM, a
    batch of another shape may be rounded differently, so that the other of two nearly equal words wins.
    """

    model: TranslationModel
    objective: Objective
    selector: Selector
    search: SearchMethod

    def batches(self, sources: Sources, size: int) -> Iterator[list[int]]:
        """Split the positions of the sentences into batches of similar length, the longest first.

        A batch has at most `size` sentences, fewer if memory requires it. With the longest first, memory runs
        out at once if at all.
        """
        lengths = [len(source) for source in sources]
        order = sorted(range(len(sources)), key=lambda n: -lengths[n])
        first, rows = 0, self.search.rows
        while first < len(order):
            longest = lengths[order[first]]
            places = longest + 1 + length_limit(self.search.max_length_ratio, longest)
            kept = max(1, rows * places * self.model.kept)
            room = min(_ROWS // rows, _CELLS // (rows * self.model.vocabulary_size), _KEPT // kept)
            batch = next(parts(order[first : first + min(size, max(1, room))], lengths))
            yield batch
            first += len(batch)

    @property
    def capture_seconds(self) -> float:
        """Seconds spent on capturing the model's CUDA graphs so far."""
        graphs = self.model.graphs if isinstance(self.model, Model) else None
        return 0.0 if graphs is None else graphs.seconds

    def translate(self, sources: Sources, with_scores: bool = True) -> list[Translation]:
        """Translate each source.

        `with_scores` False saves the activation in greedy search; the hypotheses are the same.
        """
        return [best for (best,) in self.translate_best(sources, 1, with_scores)]

    @torch.inference_mode()
    def translate_best(
        self, sources: Sources, count: int, with_scores: bool = True
    ) -> list[list[Translation]]:
        """Return at most `count` translations per source, best first (`SearchMethod.best`)."""

        def part(some: Sources) -> list[list[Translation]]:
            batch, sizes = self._batch(some, with_scores)
            rows = zip(self.search.best(batch, count), sizes, strict=True)
            return [[Translation(best, size) for best in row] for row, size in rows]

        return self._in_parts(part, sources)

    @torch.inference_mode()
    def translate_gradually(self, sources: Sources) -> Iterator[list[tuple[int, Translation]]]:
        """Yield translations with their positions as they are found: an exact search may take an hour.

        Empty lists in between let the caller report progress and stop.
        """
        if not self.model.may_pad or not all(sources):
            texts = [n for n, source in enumerate(sources) if source] if self.model.may_pad else []
            rest = [n for n in range(len(sources)) if n not in texts]
            yield list(zip(rest, self.translate([sources[n] for n in rest]), strict=True))
            for finished in self.translate_gradually([sources[n] for n in texts]) if texts else ():
                yield [(texts[n], translation) for n, translation in finished]
            return
        batch, sizes = self._batch(sources)
        for hypotheses in self.search.rounds(batch):
            yield [(n, Translation(hypothesis, sizes[n])) for n, hypothesis in hypotheses]

    def selected_sizes(self, sources: Sources) -> list[int]:
        """Count the ids that each sentence may use; V if nothing is selected."""
        selected = self.selected(sources)
        return [self.model.vocabulary_size] * len(sources) if selected is None else [*map(len, selected)]

    @torch.inference_mode()
    def selected(self, sources: Sources) -> list[list[int]] | None:
        """Return the ids that each sentence may use; None if nothing is selected."""

        def part(some: Sources) -> list[list[int] | None]:
            selection = self._encode(some)[1]
            return [None] * len(some) if selection is None else [ids.tolist() for ids in selection]

        selections = [ids for ids in self._in_parts(part, sources) if ids is not None]
        return selections or None

    @torch.inference_mode()
    def limits(self, source: Sequence[int], ids: Sequence[int]) -> list[float | None] | None:
        """Return the limit that would allow each id (`LimitedSelector.limits`); None without limits."""
        if not isinstance(self.selector, LimitedSelector):
            return None
        return self.selector.limits(source, self._encode([source])[0], ids)

    def _batch(self, sources: Sources, with_scores: bool = True) -> tuple[SearchInput, list[int]]:
        """Return the input of the search, and the number of ids that each sentence may use."""
        memory, selection = self._encode(sources)
        sizes = [self.model.vocabulary_size] * len(sources) if selection is None else [*map(len, selection)]
        if not any(sources):  # `_in_parts` separates empty sources from others
            selection = [torch.tensor([EOS], device=memory.hidden.device)] * len(sources)
        output = output_layer(self.model, selection)
        limits = [length_limit(self.search.max_length_ratio, len(source)) for source in sources]
        batch = SearchInput(self.model, self.objective, memory, output, limits, sources, with_scores)
        return batch, sizes

    def _encode(self, sources: Sources) -> tuple[Memory, list[Tensor] | None]:
        memory = encode_fixed(self.model, source_batch(sources, self.model.output_weight.device))
        return memory, self.selector.select(sources, memory)

    def _in_parts(self, work: Callable[[Sources], list[Result]], sources: Sources) -> list[Result]:
        """Do `work` on empty sources and on all others; return results in the sources' order.

        If the model's batches may not be padded, do `work` for each length separately.
        """
        lengths = [len(source) for source in sources]
        order = sorted(range(len(sources)), key=lengths.__getitem__)
        empty = lengths.count(0)
        groups = [order[:empty]] if empty else []
        groups += parts(order[empty:], lengths, may_pad=self.model.may_pad)
        if len(groups) == 1:
            return work(sources)
        return in_batches(groups, sources, work)


def translate_all(translator: Translator, sources: Sources) -> list[list[int]]:
    """Translate each source; return the hypotheses' subwords, in the order of the sources."""
    most = _BATCH if translator.model.output_weight.device.type == "cpu" else _BATCH_ON_GPU
    translate = partial(translator.translate, with_scores=False)
    translations = in_batches(translator.batches(sources, most), sources, translate)
    return [translation.hypothesis.tokens for translation in translations]


def source_batch(sources: Sources, device: torch.device) -> Tensor:
    """Make a batch (B, S): subwords + </s>, then pads."""
    return torch.from_numpy(Rows.of(sources).table(np.arange(len(sources)), PAD, EOS)).to(device)


# From a step's folders and parameters to a `Translator`.


@dataclass(frozen=True)
class TrainedModel:
    """The model of a train step on a device, ready to translate.

    Scores are computed in fp32. Their logits are rounded in bf16 and fp16, and products of rounded numbers in
    int8.
    """

    model: TranslationModel
    objective: Objective
    config: ModelConfig
    precision: Precision

    @classmethod
    def load(cls, folder: Path, precision: Precision, device: torch.device) -> TrainedModel:
        model, objective, config = load_model(folder, device)
        return cls(prepare(model, precision), objective, config, precision)

    @classmethod
    def of_step(cls, context: StepContext[Any], precision: Precision = "fp32") -> TrainedModel:
        """Load the model of a step's input `train` onto the step's device; several make an ensemble."""
        return cls.of_folders(context.inputs("train"), precision, step_device(context.gpus))

    @classmethod
    def of_folders(cls, folders: Sequence[Path], precision: Precision, device: torch.device) -> TrainedModel:
        """Load one model, or several as an ensemble. Raise StepError for a CTranslate2 model."""
        if is_shipped(folders[0]):
            raise StepError(
                "a CTranslate2 model runs in its own library, which shows only outputs and scores: take a "
                "system that creamtea itself runs"
            )
        first, *others = [cls.load(folder, precision, device) for folder in folders]
        if not others:
            return first
        ensemble = Ensemble([first.model, *(other.model for other in others)], first.objective)
        return cls(ensemble, EnsembleObjective(), first.config, precision)

    def require(self, selection: type[Selection]) -> None:
        """Raise StepError if the selection needs an NVS head and the model has none."""
        if selection.needs_head and self.config.nvs is None:
            raise StepError(
                f"{selection.title}: this variant was trained without an NVS head; give the variant "
                "`nvs: {}`, or the system another selection"
            )

    def translator(
        self,
        selection: Selection,
        search: Search,
        lexicon: Path | None = None,
        subwords: TextModel | None = None,
        whole_test_set: bool = False,
    ) -> Translator:
        """Make a translator. Lexicon selection needs `lexicon`; MBR and NVS without context, `subwords`."""
        self.require(type(selection))
        if search.settles and not whole_test_set:
            raise StepError(
                f"{search.title} chooses when all sentences of a test set are translated, not one by one: "
                "give the system another search"
            )
        pieces = subwords if isinstance(subwords, SubwordTexts) else None
        if self.precision in search.excluded_precisions:
            reason = search.excluded_precisions[self.precision]
            raise StepError(f"{search.title} in precision {self.precision}: {reason}; give the system fp32")
        return Translator(
            model=self.model,
            objective=self.objective,
            selector=build_selector(selection, SelectionResources(self.model, lexicon, pieces)),
            search=build_search(search, subwords.decode if subwords else None),
        )


def is_shipped(folder: Path) -> bool:
    """Return True if a folder holds a CTranslate2 model."""
    return (folder / MODEL).exists()


def load_system(
    folders: Sequence[Path], precision: Precision, device: torch.device, threads: int
) -> TrainedModel | ShippedModel:
    """Load a model, ours or CTranslate2's; several folders make an ensemble."""
    if is_shipped(folders[0]):
        return ShippedModel.load(folders[0], precision, device, threads)
    return TrainedModel.of_folders(folders, precision, device)


def lexicon_file(context: StepContext[Any]) -> Path | None:
    """Return the lexicon among a step's inputs; None if its system has no lexicon selection."""
    folders = context.inputs("align")
    return folders[0] / "lexicon.npz" if folders else None


def step_device(gpus: float) -> torch.device:
    """Return the step's device. Raise StepUnavailable if torch cannot use the GPU that the step was given."""
    if gpus == 0:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise StepUnavailable(
            "the study gives this step a GPU, but torch sees none on its machine: install a CUDA build of "
            "torch there, or remove `gpus` from the study's resources"
        )
    return torch.device("cuda")


def device_name(device: torch.device) -> str:
    """Return the processor's name as people know it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{processor_name()} ({torch.backends.cpu.get_cpu_capability()}, {os.cpu_count()} cores)"


# A trained system translates lines of text, outside of a test set.


UNKNOWN = "this selection does not say what would allow it"


@dataclass(frozen=True)
class OpenSystem:
    """A system loaded from a step's files; it translates like a decode step with the same params."""

    params: DecodeParams
    subwords: TextModel
    translator: Translator | ShippedTranslator
    example: str = ""  # for a word-level task with languages and tags: a source that shows them

    @classmethod
    def of_step(cls, context: StepContext[DecodeParams]) -> OpenSystem:
        prepare_torch(context.cpus)
        params = context.params
        subwords = load_text_model(context)
        device = step_device(context.gpus)
        loaded = load_system(context.inputs("train"), params.precision, device, context.cpus)
        translator = loaded.translator(params.selection, params.search, lexicon_file(context), subwords)
        own = subwords.source_vocabulary
        marked = own is not None and own.bracketed > 0
        example = read_jsonl(context.input("test_set") / "segments.jsonl")[0]["source"] if marked else ""
        return cls(params, subwords, translator, example)

    def translate(
        self, lines: Sequence[str], with_selection: bool = False, count: int = 1, word: str = ""
    ) -> list[dict[str, Any]]:
        """Translate lines; return {source, text, score, length, selected_size, unknown} for each.

        `unknown` has the symbols of the source that the model does not know. `with_selection` adds
        `selected`, the subwords that the sentence may use (None: the full vocabulary). A `count` above 1 adds
        `best`: at most `count` of {text, score, length}, best first. A target `word` adds `word`: {subword,
        allowed, needs} for each of its subwords; `needs` says in words what would allow it, "" if it is
        allowed. Raises InputError if a selection is asked of a model of characters or tokens.
        """
        subwords = self.subwords if isinstance(self.subwords, SubwordTexts) else None
        if (with_selection or word) and subwords is None:
            raise InputError("a selection can be shown only for subwords of kind bpe or unigram")
        lines = [normalise(line) for line in lines]
        sources = encode_sources(self.subwords, lines)
        batches = self.translator.batches(sources, self.params.batch_size)
        translate = partial(self.translator.translate_best, count=count)
        translations = in_batches(batches, sources, translate)
        rows: list[dict[str, Any]] = []
        for number, line in enumerate(lines):
            ranked = translations[number]
            best = [described(translation.hypothesis, self.subwords) for translation in ranked]
            unknown = self.subwords.unknown(line) if UNK in sources[number] else []
            size = ranked[0].selected_size
            row = {"source": line, **best[0], "selected_size": size, "unknown": unknown}
            rows.append(row if count == 1 else {**row, "best": best})
        if subwords is not None and (with_selection or word):
            selection = self.translator.selected(sources)
            for number, row in enumerate(rows):
                ids = None if selection is None else selection[number]
                if with_selection:
                    row["selected"] = None if ids is None else subwords.pieces(ids)
                if word:
                    row["word"] = self._subwords_of(word, sources[number], ids, subwords)
        return rows

    def _subwords_of(
        self, word: str, source: Sequence[int], selected: Sequence[int] | None, subwords: SubwordTexts
    ) -> list[dict[str, Any]]:
        """Return {subword, allowed, needs} for the word's subwords. `selected` None allows all."""
        (ids,) = subwords.encode_targets([word])
        needs = dict.fromkeys(ids, "")
        if missing := [id_ for id_ in needs if selected is not None and id_ not in selected]:
            limits = self.translator.limits(source, missing)
            for place, id_ in enumerate(missing):
                needs[id_] = UNKNOWN if limits is None else self.params.selection.allowing(limits[place])
        return [
            {"subword": piece, "allowed": not needs[id_], "needs": needs[id_]}
            for id_, piece in zip(ids, subwords.pieces(ids), strict=True)
        ]


def described(hypothesis: Hypothesis, subwords: TextModel) -> dict[str, Any]:
    tokens = hypothesis.tokens
    return {"text": subwords.decode(tokens), "score": hypothesis.score, "length": len(tokens)}


# The translations of a decode step so far, from which its next attempt continues.


SAVE_EVERY = 60.0  # seconds


@dataclass
class SavedTranslations:
    translations: dict[int, Translation] = field(default_factory=dict)  # by position among the sources
    seconds: float = 0.0  # decoding time of all attempts

    def save(self, checkpoints: Checkpoints, worker: int) -> None:
        checkpoint.save(checkpoints, _name(worker), asdict(self))

    @classmethod
    def load(cls, checkpoints: Checkpoints) -> SavedTranslations:
        """Load the latest translations of all workers (files are numbered from 0); at first none."""
        saved: list[SavedTranslations] = []
        while (content := checkpoint.load(checkpoints, _name(len(saved)))) is not None:
            translations = {
                position: Translation(restored(fields["hypothesis"]), fields["selected_size"])
                for position, fields in content["translations"].items()
            }
            saved.append(cls(translations, content["seconds"]))
        return cls.of_workers(saved)

    @classmethod
    def of_workers(cls, parts: Sequence[SavedTranslations]) -> SavedTranslations:
        """Join the translations of workers that shared the sentences."""
        translations = {n: translation for part in parts for n, translation in part.translations.items()}
        return cls(translations, max((part.seconds for part in parts), default=0.0))


def _name(worker: int) -> str:
    return f"translations-{worker}.pt"


def restored(fields: dict[str, object]) -> Hypothesis:
    if isinstance(candidates := fields.get("candidates"), list):
        return Candidates(**{**fields, "candidates": list(map(restored, candidates))})  # type: ignore[arg-type]
    kind = ExactHypothesis if "outcome" in fields else Hypothesis
    return kind(**fields)  # type: ignore[arg-type]
