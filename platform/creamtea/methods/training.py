"""The training settings of a variant."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from creamtea.document.values import BelowOne, Factor, Positive, Strict, unstated

Keep = Literal["best", "last"]
SelectBy = Literal["loss", "perplexity", "bleu", "per", "levenshtein"]


class Training(Strict):
    # [target subwords] per batch, with padding and ends of sentences
    batch_tokens: Annotated[int, Field(ge=2, le=10**9)] = 4096
    # [sentence pairs] per batch, instead of `batch_tokens`
    batch_sentences: Positive | None = unstated(None)
    accumulate: Positive = 1  # [batches] per update
    optimizer: Literal["adam", "adamw", "lamb"] = "adam"  # adam, adamw (decoupled weight decay) or lamb
    weight_decay: Annotated[float, Field(ge=0.0, le=100.0)] = 0.0  # for adamw and lamb
    # inverse_sqrt and constant: the peak, at the end of the warm-up; noam: the factor of
    # width^-0.5 · min(update^-0.5, update · warmup^-1.5); plateau: the peak, halved whenever more than
    # `plateau_patience` validations in a row were not better than all before; linear: the peak, from which
    # the rate falls in a straight line to 0 after `max_updates`
    learning_rate: Annotated[float, Field(gt=0.0, le=100.0)] = 0.002
    # how the learning rate evolves after the warm-up
    schedule: Literal["inverse_sqrt", "noam", "constant", "linear", "plateau"] = "inverse_sqrt"
    # [validations] with `plateau`: how many without a better one, before the rate is halved
    plateau_patience: Annotated[int, Field(ge=0, le=10**9)] = unstated(1)
    # with `plateau`: the training ends when the rate would fall below this
    min_learning_rate: Annotated[float, Field(ge=0.0, le=100.0)] = unstated(0.0)
    # [updates] in which the learning rate rises from 0
    warmup: Annotated[int, Field(ge=0, le=10**9)] = 400
    clip: Factor = 1.0  # largest norm of the whole gradient
    # largest magnitude of each number of a gradient, instead of `clip`
    clip_value: Factor | None = unstated(None)
    max_updates: Positive = 100000  # [updates] after which training ends
    max_epochs: Positive | None = None  # [epochs] after which training ends; none: no such limit
    validate_every: Positive | None = None  # [updates] between validations; none: once per epoch
    # criterion for the best checkpoint: development loss; perplexity, without label smoothing; or a metric of
    # greedy translations of the development set
    select_by: SelectBy = unstated("loss")
    patience: Positive = 5  # [validations] in a row without a better one, after which training ends
    # the checkpoints that count as best: by `select_by`, or the newest (fixed number of epochs)
    keep: Keep = "best"
    # [checkpoints] number of best checkpoints to average; each is a file as large as the model
    average: Annotated[int, Field(ge=1, le=1000)] = 1
    # BPE-dropout: each merge of a sentence's characters is skipped with this probability, anew in each epoch
    # (Provilkov et al. 2020). With unigram subwords: reciprocal of the temperature of sampled segmentations
    bpe_dropout: BelowOne = unstated(0.0)
    # probability with which a subword that the model reads, on either side, is replaced by the unknown one
    word_dropout: BelowOne = unstated(0.0)
    max_tokens: Positive = 128  # [subwords] longer training pairs are omitted, and counted
    checkpoint_every: Positive = 100  # [updates] between checkpoints for resuming
    # bf16: layers compute in bf16, except recurrent ones; tf32: in fp32, but a GPU rounds the factors of
    # matrix products to ten bits; none: in fp32. Weights stay in fp32
    autocast: Literal["none", "bf16", "tf32"] = "bf16"
    # translation: only the NVS head is trained, and the translation model of `start_from` does not change;
    # losses are then the head's, per sentence
    freeze: Literal["translation"] | None = unstated(None)
    # with `start_from`: before the first update, scale and shift the logits so that the loss on development
    # text is lowest, so that another objective can start from them
    fit_logits: bool = unstated(False)
    # an interrupted and resumed training must end with exactly the same weights; none: only on CPUs, because
    # it slows GPUs down
    deterministic: bool | None = unstated(None)

    def is_deterministic(self, on_gpu: bool) -> bool:
        return not on_gpu if self.deterministic is None else self.deterministic
