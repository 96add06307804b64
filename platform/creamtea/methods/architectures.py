"""Model architectures, and the vocabulary selection head that a model may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from creamtea.document.mistakes import KeyPath, Mistake
from creamtea.document.raw import Block, RawStudy, parsed
from creamtea.document.values import Above0, BelowOne, Positive, Strict
from creamtea.methods.family import Family, Method

PRESETS: dict[str, Block] = {
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


class Architecture(Method):
    """What a variant's model is built like. A preset names the sizes; what is written beside it overrides
    it."""

    @classmethod
    def completed(cls, block: Block) -> Block:
        preset = block.get("preset")
        sizes = PRESETS.get(preset, {}) if isinstance(preset, str) else {}
        return super().completed({**sizes, **block})


class Layered(Architecture):
    """Pre-norm encoder and decoder layers with source, target and output embeddings tied."""

    preset: Annotated[Literal["small", "base", "big", "deep"] | None, Field(exclude=True)] = None
    encoder_layers: Positive = 3
    decoder_layers: Positive = 3
    width: Positive = 128
    heads: Positive = 4
    feed_forward: Positive = 512
    dropout: BelowOne = 0.1
    recurrent: ClassVar[bool] = False  # the decoder looks back by SSRUs, not by self-attention
    worker: ClassVar[str] = "creamtea_workers.models.transformer"

    def describe(self) -> str:
        """ "" for the default, else a preset or the sizes: "base", "deep (20+2 SSRU)", "6+6, width 256"."""
        sizes = f"{self.encoder_layers}+{self.decoder_layers}{' SSRU' * self.recurrent}"
        chosen = self.model_dump(exclude={"dropout"})
        for name, preset in PRESETS.items():
            if chosen.items() >= Architecture.completed(preset).items():
                return {"small": "", "deep": f"deep ({sizes})"}.get(name, name)
        return f"{sizes}, width {self.width}"

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        size = parsed(cls, cls.completed(block))
        if size and size.width % size.heads:
            found = f"{size.heads} heads for width {size.width}"
            yield Mistake((*path, "heads"), found, "a number of heads that divides the width")


class TransformerArchitecture(Layered):
    """Self-attention in encoder and decoder (Vaswani et al. 2017)."""

    kind: Literal["transformer"] = "transformer"
    title: ClassVar[str] = "Transformer"


class SsruArchitecture(Layered):
    """SSRUs (Kim et al. 2019) in place of the decoder's self-attention."""

    kind: Literal["ssru"] = "ssru"
    title: ClassVar[str] = "Transformer with a recurrent decoder"
    recurrent: ClassVar[bool] = True


ARCHITECTURES: Family[Any] = Family(
    "architecture", Architecture, "creamtea.methods.architectures", ("build",), default="transformer"
)


class Nvs(Strict):
    """Neural vocabulary selection head (Domhan et al. 2022, Eq. 3), gradients blocked before the encoder.

    `auto_weight` x in place of `positive_weight`: x · n_neg / n_pos of each sentence (Appendix B).
    """

    positive_weight: Annotated[float, Field(ge=1.0)] = 100000.0
    auto_weight: Above0 | None = None
