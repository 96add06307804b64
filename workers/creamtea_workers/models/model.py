"""The base class of all architectures; how models are built, saved and loaded.

A model's folder has model.safetensors, and model.json to rebuild the module.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from creamtea.document.values import Strict, unstated
from creamtea.errors import StepError
from creamtea.methods.architectures import Architecture, Nvs
from creamtea.methods.family import implementation
from creamtea.methods.objectives import Objective
from creamtea_workers.models.graphs import FixedState, Graphs, New
from creamtea_workers.models.interface import Memory, Projection, SourceVocabulary, TranslationModel
from creamtea_workers.models.packed import Recorder
from creamtea_workers.objectives import base, build_objective

WEIGHTS = "model.safetensors"
CONFIG = "model.json"


class Model(nn.Module, TranslationModel):
    """Base class of all architectures, for training, saving and `models.inference`."""

    output_bias: nn.Parameter  # (V,)
    nvs: Callable[[Memory], Tensor] | None
    # `models.inference` changes these two
    projection: Projection | None = None
    may_pad = True
    kept = 0
    recorder: Recorder | None = None  # replays passes of a training on a GPU
    graphs: Graphs | None = None  # replays steps of a translation on a GPU
    fixed_encoder = False  # True if `encode` can be replayed: it copies nothing to the CPU

    def scale_logits(self, factor: float) -> None:
        """Scale the logits before training, if they start too large for some objectives (Transformers)."""

    def change_logits(self, factor: float, shift: float) -> None:
        """Replace every logit z by `factor` · z + `shift` (Transformers)."""
        raise NotImplementedError

    def start_fixed(self, new: New, sentences: int, rows: int, source: int, max_length: int) -> FixedState:
        """Make an empty state of fixed shape with `rows` rows for each sentence."""
        raise NotImplementedError

    def step_fixed(self, tokens: Tensor, state: FixedState) -> Tensor:
        """Advance the state by each row's last token (B, k) (at first bos); return hidden (B, k, D).

        Copies nothing to the CPU, and no shape depends on data.
        """
        raise NotImplementedError

    def nvs_logits(self, memory: Memory) -> Tensor:
        if self.nvs is None:
            raise ValueError("this model was trained without an NVS head")
        return self.nvs(memory)


class ModelConfig(Strict):
    """The content of model.json, from which a module is rebuilt for its weights."""

    objective: Objective
    architecture: Architecture
    nvs: Nvs | None
    vocabulary_size: int  # the target's
    # None: source and target share a vocabulary
    source_vocabulary: SourceVocabulary | None = unstated(None)


def build_model(config: ModelConfig) -> Model:
    """Build a fresh model; its random numbers come from torch's global generator."""
    build = implementation(config.architecture).build
    own_source = {} if config.source_vocabulary is None else {"source": config.source_vocabulary}
    model: Model = build(config.architecture, config.vocabulary_size, config.nvs, **own_source)
    objective = build_objective(config.objective)
    nn.init.constant_(model.output_bias, objective.initial_bias(config.vocabulary_size))
    model.scale_logits(config.objective.initial_logits(config.vocabulary_size))
    return model


def save_model(folder: Path, model: Model, config: ModelConfig) -> None:
    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    save_file(state, folder / WEIGHTS)
    text = json.dumps(config.model_dump(mode="json"), indent=2, sort_keys=True)
    (folder / CONFIG).write_text(text + "\n", encoding="utf-8")


def load_initial(model: Model, folder: Path) -> bool:
    """Load the weights of another train step from `folder` into a fresh model.

    Returns True if only the fresh model has an NVS head, which then keeps its fresh weights. Raises StepError
    if names or shapes differ.
    """
    loaded, own = load_file(folder / WEIGHTS), model.state_dict()
    head = {name for name in own if name.startswith("nvs.")}
    new_head = bool(head) and head.isdisjoint(loaded)
    wanted = set(own) - head if new_head else set(own)
    problems = [f"it has no {name}" for name in sorted(wanted - set(loaded))]
    problems += [f"its {name} has no place here" for name in sorted(set(loaded) - wanted)]
    problems += [
        f"{name} is {shape_of(loaded[name])} there and {shape_of(own[name])} here"
        for name in sorted(wanted & set(loaded))
        if loaded[name].shape != own[name].shape
    ]
    if problems:
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise StepError(
            f"the model that this variant starts from does not fit: {'; '.join(problems[:3])}{more}; "
            "give both the same subwords and architecture, and this one `nvs` if the other has it"
        )
    model.load_state_dict({**own, **loaded})
    return new_head


def shape_of(weight: Tensor) -> str:
    return " × ".join(map(str, weight.shape))


def load_model(
    folder: Path, device: str | torch.device = "cpu", config_file: str = CONFIG
) -> tuple[Model, base.Objective, ModelConfig]:
    """Load a train step's `folder`; return the model in eval mode, its objective, and model.json."""
    config = ModelConfig.model_validate_json((folder / config_file).read_text(encoding="utf-8"))
    model = build_model(config)
    model.load_state_dict(load_file(folder / WEIGHTS))
    return model.to(device).eval(), build_objective(config.objective), config
