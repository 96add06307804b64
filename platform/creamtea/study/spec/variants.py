"""Variants: what is trained."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from creamtea.document.values import Above0, BelowOne, Name, Positive, Seed, Strict

# ---------------------------------------------------------------- objectives

# what label smoothing mixes the gold label with: the uniform distribution over all V (as the papers say), or
# the subwords' relative frequencies in the training targets (as the code of Peters and Martins 2021 does)
Smoothing = Literal["uniform", "unigram"]
Keep = Literal["best", "last"]


class Softmax(Strict):
    """Cross-entropy; label smoothing mixes the one-hot target with `smoothing`."""

    kind: Literal["softmax"]
    label_smoothing: BelowOne = 0.0
    smoothing: Smoothing = "uniform"


class Scones(Strict):
    """SCONES (Stahlberg and Kumar 2022, Eq. 6): alpha weighs the negative labels. Label smoothing is that
    of each binary label (Eqs. 11 and 12)."""

    kind: Literal["scones"]
    alpha: Above0 = 0.5
    label_smoothing: BelowOne = 0.0


MIN_ALPHA, MAX_ALPHA = 1.000001, 50.0  # what fp64 holds (creamtea_workers.objectives.threshold)


class Entmax(Strict):
    """alpha-entmax Fenchel-Young loss (Peters and Martins 2021), with Fenchel-Young label smoothing."""

    kind: Literal["entmax"]
    alpha: Annotated[float, Field(ge=MIN_ALPHA, le=MAX_ALPHA)] = 1.5  # 2 is sparsemax
    label_smoothing: BelowOne = 0.0
    smoothing: Smoothing = "uniform"


Objective = Annotated[Softmax | Scones | Entmax, Field(discriminator="kind")]

# ---------------------------------------------------------------- architectures

PRESETS: dict[str, dict[str, Any]] = {
    "small": {"encoder_layers": 3, "decoder_layers": 3, "width": 128, "heads": 4, "feed_forward": 512},
    # Vaswani et al. (2017); in the SCONES and entmax papers
    "base": {"encoder_layers": 6, "decoder_layers": 6, "width": 512, "heads": 8, "feed_forward": 2048},
    "big": {"encoder_layers": 6, "decoder_layers": 6, "width": 1024, "heads": 16, "feed_forward": 4096},
    # deep encoder, shallow recurrent decoder: Domhan et al. (2022), Appendix A
    "deep": {
        "kind": "ssru",
        "encoder_layers": 20,
        "decoder_layers": 2,
        "width": 1024,
        "heads": 16,
        "feed_forward": 4096,
    },
}


class Architecture(Strict):
    """Pre-norm Transformer with source, target and output embeddings tied; `ssru` has SSRUs (Kim et al.
    2019) in place of the decoder's self-attention. A preset names the sizes; what is written beside it
    goes before."""

    preset: Annotated[Literal["small", "base", "big", "deep"] | None, Field(exclude=True)] = None
    kind: Literal["transformer", "ssru"] = "transformer"
    encoder_layers: Positive = 3
    decoder_layers: Positive = 3
    width: Positive = 128
    heads: Positive = 4
    feed_forward: Positive = 512
    dropout: BelowOne = 0.1

    @model_validator(mode="before")
    @classmethod
    def _sizes_of_preset(cls, data: Any) -> Any:
        preset = data.get("preset") if isinstance(data, dict) else None
        return {**PRESETS[preset], **data} if preset in PRESETS else data


class Nvs(Strict):
    """Neural vocabulary selection head (Domhan et al. 2022, Eq. 3), gradients blocked before the encoder.

    `auto_weight` x in place of `positive_weight`: x · n_neg / n_pos of each sentence (Appendix B).
    """

    positive_weight: Annotated[float, Field(ge=1.0)] = 100000.0
    auto_weight: Above0 | None = None


# ---------------------------------------------------------------- training


class Training(Strict):
    batch_tokens: Positive = 4096  # target tokens (padding included) of a batch
    accumulate: Positive = 1  # batches an update
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
    validate_every: Positive | None = None  # updates; None: once an epoch
    patience: Positive = 5  # validations without a better development loss
    # the checkpoints that count as best: by the development loss, or the newest (a recipe of so many epochs)
    keep: Keep = "best"
    average: Positive = 1  # the best checkpoints that are averaged
    max_tokens: Positive = 128  # subwords; longer training pairs are left out, and counted
    checkpoint_every: Positive = 100  # updates between checkpoints for resuming
    autocast: Literal["none", "bf16"] = "bf16"


class Variant(Strict):
    """`start_from` names another variant whose trained weights (of the same seed) this one is fine-tuned
    from, with its subwords: adaptation to another corpus. `alignment_corpus`: what its lexicon is aligned on,
    None for its own corpus (NVS paper, Appendix A: the general corpus with the in-domain text up-sampled)."""

    corpus: Name
    subwords: Name
    objective: Objective
    architecture: Architecture = Architecture()
    nvs: Nvs | None = None
    training: Training = Training()
    start_from: Name | None = None
    alignment_corpus: Name | None = None
    seeds: Annotated[list[Seed], Field(min_length=1)] = [1]
