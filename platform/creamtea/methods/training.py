"""How a variant is trained."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from creamtea.document.values import Above0, Positive, Strict

Keep = Literal["best", "last"]
SelectBy = Literal["loss", "bleu", "per", "levenshtein"]


class Training(Strict):
    batch_tokens: Positive = 4096  # target tokens (padding included) of a batch
    # instead of batch_tokens: sentence pairs of a batch
    batch_sentences: Positive | None = Field(default=None, exclude_if=lambda count: count is None)
    accumulate: Positive = 1  # batches per update
    optimizer: Literal["adam", "adamw", "lamb"] = "adam"
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0  # of adamw and lamb
    # inverse_sqrt and constant: the peak, at the end of the warm-up; noam: the factor before
    # width^-0.5 · min(update^-0.5, update · warmup^-1.5); plateau: the peak, halved whenever more than
    # `plateau_patience` validations in a row were not better than all before
    learning_rate: Annotated[float, Field(gt=0.0, le=100.0)] = 0.002
    schedule: Literal["inverse_sqrt", "noam", "constant", "plateau"] = "inverse_sqrt"
    plateau_patience: Annotated[int, Field(ge=0, exclude_if=lambda count: count == 1)] = 1
    # of `plateau`: the training ends where the rate would fall below this
    min_learning_rate: Annotated[float, Field(ge=0.0, exclude_if=lambda rate: rate == 0.0)] = 0.0
    warmup: Annotated[int, Field(ge=0, le=10**9)] = 400  # updates
    clip: Above0 = 1.0  # global gradient norm
    # instead of clip: magnitude of each number of a gradient
    clip_value: Above0 | None = Field(default=None, exclude_if=lambda value: value is None)
    max_updates: Positive = 100000
    max_epochs: Positive | None = None
    validate_every: Positive | None = None  # updates; None: once per epoch
    # what is better: the development loss, or greedy translations of the development set by a metric
    select_by: Annotated[SelectBy, Field(exclude_if=lambda chosen: chosen == "loss")] = "loss"
    patience: Positive = 5  # validations without a better one
    # the checkpoints that count as best: by `select_by`, or the newest (a recipe of so many epochs)
    keep: Keep = "best"
    average: Positive = 1  # the best checkpoints that are averaged
    max_tokens: Positive = 128  # subwords; longer training pairs are left out, and counted
    checkpoint_every: Positive = 100  # updates between checkpoints for resuming
    autocast: Literal["none", "bf16"] = "bf16"
