"""Model architectures, and the vocabulary selection head that a model may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, parsed, shown
from creamtea.document.values import BelowOne, Count, Factor, Strict, Width, unstated
from creamtea.methods.corpora import CORPORA, WordCorpus
from creamtea.methods.family import Family, Method
from creamtea.methods.texts import Subwords

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
    """How a variant's model is built. A preset gives the sizes; keys written beside it override it."""

    # settings that affect only training: models that differ in nothing else can load the same weights
    DROPOUT: ClassVar[frozenset[str]] = frozenset({"dropout", "attention_dropout"})

    def shape(self) -> dict[str, Any]:
        """Return all settings except dropout."""
        return self.model_dump(exclude=set(self.DROPOUT))

    @classmethod
    def completed(cls, block: Block) -> Block:
        preset = block.get("preset")
        sizes = PRESETS.get(preset, {}) if isinstance(preset, str) else {}
        return super().completed({**sizes, **block})


class Layered(Architecture):
    """Encoder and decoder layers.

    By default they are pre-norm, and source, target and output embeddings are one matrix. Marian's models
    (OPUS-MT) are post-norm with SiLU and `positions: halves` or `marian`.
    """

    # sizes of a paper; keys written beside it override them: small (3+3 layers, width 128), base (6+6,
    # 512), big (6+6, 1024), deep (20+2 SSRU, 1024)
    preset: Annotated[Literal["small", "base", "big", "deep"] | None, Field(exclude=True)] = None
    encoder_layers: Count = 3  # [layers] of the encoder
    decoder_layers: Count = 3  # [layers] of the decoder
    width: Width = 128  # [units] of every layer and embedding; a multiple of `heads`
    heads: Count = 4  # attention heads per layer
    feed_forward: Width = 512  # [units] of the inner layer of each feed-forward block
    dropout: BelowOne = 0.1  # probability with which an activation is dropped in training
    attention_dropout: BelowOne = unstated(0.0)  # the same for attention weights
    # normalisation of all attention; entmax: α = 1.5 (Peters et al. 2019; Correia et al. 2019, who learn α).
    # entmax and sparsemax give weights of 0, and take longer
    attention: Literal["softmax", "entmax", "sparsemax"] = unstated("softmax")
    # normalise the input of a sublayer (pre), or the sum of its input and output (post; Vaswani et al. 2017)
    norm: Literal["pre", "post"] = unstated("pre")
    activation: Literal["relu", "gelu", "silu"] = unstated("relu")  # in feed-forward blocks
    # vectors of positions: alternating sines and cosines (Vaswani et al.), sines before cosines (MarianMT in
    # transformers), the latter with Marian's own rates, or learned
    positions: Literal["sinusoidal", "halves", "marian", "learned"] = unstated("sinusoidal")
    # [positions] with `positions: learned`: a longer sentence or hypothesis is an error
    max_positions: Count = unstated(512)
    # embeddings that share one matrix: source, target and output; target and output; or none. A source with a
    # separate vocabulary always has separate embeddings
    tied_embeddings: Literal["all", "target", "none"] = unstated("all")
    scale_embeddings: bool = unstated(True)  # embeddings are multiplied by √width
    recurrent: ClassVar[bool] = False  # the decoder looks back by SSRUs, not by self-attention
    worker: ClassVar[str] = "creamtea_workers.models.transformer"

    def describe(self) -> str:
        """Describe sizes and differences from the default: "base", "deep (20+2 SSRU)", "6+6, width 256".

        Returns "" for the default. Other settings follow: "base, post-norm, SiLU".
        """
        return ", ".join(filter(None, [self._describe_sizes(), *self._differences()]))

    def _differences(self) -> Iterator[str]:
        if self.attention != "softmax":
            yield f"{self.attention} attention"
        if self.norm == "post":
            yield "post-norm"
        if self.activation != "relu":
            yield {"gelu": "GELU", "silu": "SiLU"}[self.activation]
        if self.positions != "sinusoidal":
            yield {
                "halves": "MarianMT's positions",
                "marian": "Marian's positions",
                "learned": f"{self.max_positions} learned positions",
            }[self.positions]
        if self.tied_embeddings != "all":
            yield {"target": "source embeddings apart", "none": "untied embeddings"}[self.tied_embeddings]
        if not self.scale_embeddings:
            yield "embeddings not scaled"

    def _describe_sizes(self) -> str:
        sizes = f"{self.encoder_layers}+{self.decoder_layers}{' SSRU' * self.recurrent}"
        chosen = self.shape()
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


class RnnArchitecture(Architecture):
    """Bidirectional LSTM encoder; LSTM decoder with attention and input feeding.

    Luong et al. (2015), as in Peters and Martins (2021), sections 4.1 and 4.2. Embeddings are not tied.
    """

    kind: Literal["rnn"]
    layers: Count = 2  # [layers] of the encoder, and of the decoder
    width: Width = 256  # [units] of the decoder, and of each direction of the encoder
    embedding: Width = 128  # [units] of an embedding
    # [units] of a source embedding that encode the language (the first symbol); 0: none
    language_embedding: Annotated[int, Field(ge=0, le=65536)] = 0
    # the normalisation of attention; entmax: α = 1.5
    attention: Literal["softmax", "entmax", "sparsemax"] = "entmax"
    gated: bool = False  # separate encoders for lemma and tags, with a gate between them (GATEDATTN)
    dropout: BelowOne = 0.3  # probability with which an activation is dropped in training
    title: ClassVar[str] = "recurrent encoder and decoder"
    worker: ClassVar[str] = "creamtea_workers.models.rnn"

    def describe(self) -> str:
        return f"LSTM, {self.layers}+{self.layers}, width {self.width}{', gated' * self.gated}"

    @classmethod
    def check(cls, path: KeyPath, block: Block, study: RawStudy) -> Iterator[Mistake]:
        size = parsed(cls, block)
        if size and size.language_embedding >= size.embedding:
            found = f"{size.language_embedding} of {size.embedding}"
            yield Mistake((*path, "language_embedding"), found, "less than the embedding")
        variant = study.named(str(path[0]), path[1]) or {}
        subwords = parsed(Subwords, study.named("subwords", variant.get("subwords")))
        for key, what in (("gated", "tags"), ("language_embedding", "languages")):
            if size and getattr(size, key) and subwords and subwords.joint:
                found = f"{shown(getattr(size, key))} with subwords of kind {subwords.kind}"
                yield Mistake(
                    (*path, key), found, f"subwords of kind characters, which have symbols for {what}"
                )
        corpus = CORPORA.kind_of(study.named("corpora", variant.get("corpus")))
        tagless = corpus is not None and issubclass(corpus, WordCorpus) and not corpus.has_tags
        if size and size.gated and corpus and tagless and not (subwords and subwords.joint):
            found = f"true with {corpus.noun}, whose words have no tags"
            yield Mistake((*path, "gated"), found, "false, or a corpus of inflected forms")


ARCHITECTURES: Family[Any] = Family(
    "architecture", Architecture, "creamtea.methods.architectures", ("build",), default="transformer"
)


class Nvs(Strict):
    """Neural vocabulary selection head (Domhan et al. 2022, Eq. 3).

    By default gradients are blocked before the encoder (section 4.1): the translation model's weights are
    exactly those of a training without the head. `auto_weight` x replaces `positive_weight` by
    x · n_neg / n_pos of each sentence (Appendix B).
    """

    # weight of a reference subword in the head's loss; any other subword weighs 1
    positive_weight: Annotated[float, Field(ge=1.0, le=10.0**9)] = 100000.0
    # replaces `positive_weight` by this × (subwords not in the reference / subwords in it), per sentence
    auto_weight: Factor | None = None
    clip: Factor = 1.0  # largest norm of the head's own gradient
    # the head's gradient is blocked before the encoder; false: it also trains the encoder
    detach: bool = unstated(True)
