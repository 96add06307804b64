"""How a variant is trained."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from creamtea.document.values import Above0, Positive, Strict

Keep = Literal["best", "last"]


class Training(Strict):
    batch_tokens: Positive = 4096  # target tokens (padding included) of a batch
    accumulate: Positive = 1  # batches per update
    optimizer: Literal["adam", "adamw", "lamb"] = "adam"
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0  # of adamw and lamb
    # inverse_sqrt and constant: the peak, at the end of the warm-up; noam: the factor before
    # width^-0.5 · min(update^-0.5, update · warmup^-1.5)
    learning_rate: Above0 = 0.002
    schedule: Literal["inverse_sqrt", "noam", "constant"] = "inverse_sqrt"
    warmup: Annotated[int, Field(ge=0, le=10**9)] = 400  # updates
    clip: Above0 = 1.0  # global gradient norm
    max_updates: Positive = 100000
    max_epochs: Positive | None = None
    validate_every: Positive | None = None  # updates; None: once per epoch
    patience: Positive = 5  # validations without a better development loss
    # the checkpoints that count as best: by the development loss, or the newest (a recipe of so many epochs)
    keep: Keep = "best"
    average: Positive = 1  # the best checkpoints that are averaged
    max_tokens: Positive = 128  # subwords; longer training pairs are left out, and counted
    checkpoint_every: Positive = 100  # updates between checkpoints for resuming
    autocast: Literal["none", "bf16"] = "bf16"
