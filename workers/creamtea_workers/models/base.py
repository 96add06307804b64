"""What the models of all architectures are to training, saving and `models.inference`."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from creamtea_workers.models.fixed import FixedState
from creamtea_workers.models.graphs import Graphs, New
from creamtea_workers.models.interface import Memory, Projection, TranslationModel
from creamtea_workers.models.recorded import Recorder


class Model(nn.Module, TranslationModel):
    """What all architectures share."""

    output_bias: nn.Parameter  # (V,)
    nvs: Callable[[Memory], Tensor] | None
    # what `models.inference` changes
    projection: Projection | None = None
    may_pad = True
    kept = 0
    recorder: Recorder | None = None  # of what a training replays on a GPU
    graphs: Graphs | None = None  # of what a translation replays on a GPU
    fixed_encoder = False  # whether `encode` reads nothing back, so that it can be replayed

    def scale_logits(self, factor: float) -> None:
        """Scale the logits before training, if they start too large for some objectives (Transformers)."""

    def change_logits(self, factor: float, shift: float) -> None:
        """Make every logit `factor` times what it is, plus `shift` (Transformers)."""
        raise NotImplementedError

    def start_fixed(self, new: New, sentences: int, rows: int, source: int, max_length: int) -> FixedState:
        """Make an empty state of fixed shape with `rows` rows for each sentence."""
        raise NotImplementedError

    def step_fixed(self, tokens: Tensor, state: FixedState) -> Tensor:
        """Advance the state by tokens (B, k), the last of each row (bos at first); return hidden (B, k, D).

        Nothing is read back, and no shape depends on data.
        """
        raise NotImplementedError

    def nvs_logits(self, memory: Memory) -> Tensor:
        if self.nvs is None:
            raise ValueError("this model was trained without an NVS head")
        return self.nvs(memory)
