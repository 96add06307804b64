"""What an export gives back: facts for a model card, and proofs that the written model translates alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """The first subword in which two outputs of a source differ."""

    line: int  # of the source, from 1
    position: int  # of the subword, from 0
    gap: float  # logit of creamtea's subword less that of the other's: nearly 0 where rounding decides


@dataclass(frozen=True)
class Proof:
    sentences: int  # translated by both
    left_out: int  # sources that the written model does not read
    identical: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class BeamProof(Proof):
    search: str  # "beam 4 / length^0.5"


@dataclass(frozen=True)
class MapProof(Proof):
    selection: str  # "lexicon k=200 + 100 frequent"


@dataclass(frozen=True)
class ExportFacts:
    parameters: int
    vocabulary_size: int
    max_length_ratio: float
    quantization: str | None
    subwords: tuple[str, ...]  # files of the SentencePiece models of source and target, for CTranslate2
    proof: Proof  # by greedy search over the whole vocabulary
    beam: BeamProof | None  # of a system with a beam search that is written for CTranslate2
    map: MapProof | None  # of a system with a lexicon: by greedy search in its vocabulary
