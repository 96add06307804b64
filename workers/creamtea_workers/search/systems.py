"""Systems as steps name them: from folders and parameters to a `Translator`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from creamtea.contract.step import StepContext
from creamtea.errors import StepError, StepUnavailable
from creamtea.hardware import processor_name
from creamtea.methods.precisions import Precision
from creamtea.methods.searches import Search
from creamtea.methods.selections import Selection
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.corpora.vocabularies import TextModel
from creamtea_workers.models.build import ModelConfig, load_model
from creamtea_workers.models.ensemble import Ensemble, EnsembleObjective
from creamtea_workers.models.inference import prepare
from creamtea_workers.models.interface import TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search import build_search
from creamtea_workers.search.translator import Translator
from creamtea_workers.selection import build_selector
from creamtea_workers.selection.base import SelectionResources


@dataclass(frozen=True)
class TrainedModel:
    """What a train step left, on a device, ready to translate. Scores are computed in fp32, of logits that
    in bf16 and fp16 have been rounded to these, and in int8 are products of rounded numbers."""

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
        """From a step's input train, on the step's device; an ensemble of several."""
        device = step_device(context.gpus)
        first, *others = [cls.load(folder, precision, device) for folder in context.inputs("train")]
        if not others:
            return first
        ensemble = Ensemble([first.model, *(other.model for other in others)], first.objective)
        return cls(ensemble, EnsembleObjective(), first.config, precision)

    def require(self, selection: type[Selection]) -> None:
        """StepError when the model lacks what the selection needs."""
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
    ) -> Translator:
        """`lexicon` for lexicon selection, `subwords` for MBR and for NVS without context."""
        self.require(type(selection))
        joint = subwords if isinstance(subwords, SubwordModel) else None
        if self.precision in search.excluded_precisions:
            reason = search.excluded_precisions[self.precision]
            raise StepError(f"{search.title} in precision {self.precision}: {reason}; give the system fp32")
        return Translator(
            model=self.model,
            objective=self.objective,
            selector=build_selector(selection, SelectionResources(self.model, lexicon, joint)),
            search=build_search(search, subwords.decode if subwords else None),
        )


def lexicon_file(context: StepContext[Any]) -> Path | None:
    """The lexicon among a step's inputs; absent where no lexicon selection is asked for."""
    folders = context.inputs("align")
    return folders[0] / "lexicon.npz" if folders else None


def step_device(gpus: float) -> torch.device:
    """StepUnavailable when the step was given a GPU that torch cannot use."""
    if gpus == 0:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise StepUnavailable(
            "the study gives this step a GPU, but torch sees none on its machine: install a CUDA build of "
            "torch there, or take `gpus` out of the study's resources"
        )
    return torch.device("cuda")


def device_name(device: torch.device) -> str:
    """The processor's name, as people know it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{processor_name()} ({torch.backends.cpu.get_cpu_capability()}, {os.cpu_count()} cores)"
