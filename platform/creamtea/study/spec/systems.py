"""Systems: what translates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from creamtea.document.values import Above0, BelowOne, Name, Positive, Seed, Strict

# ---------------------------------------------------------------- selections


class FullVocabulary(Strict):
    kind: Literal["full"] = "full"


class LexiconSelection(Strict):
    """Top-k target subwords per source subword of the study's alignment lexicon, union over the sentence."""

    kind: Literal["lexicon"]
    k: Positive = 200


class NvsSelection(Strict):
    """Target subwords whose NVS probability exceeds the threshold (lambda in the paper).

    context: word predicts from each source word alone and unites (the paper's "no context", Table 6).
    """

    kind: Literal["nvs"]
    threshold: BelowOne = 0.9
    context: Literal["sentence", "word"] = "sentence"


Selection = Annotated[FullVocabulary | LexiconSelection | NvsSelection, Field(discriminator="kind")]

# ---------------------------------------------------------------- searches

LengthRatio = Above0  # hypotheses have at most this times the source's subwords, plus 10


class Greedy(Strict):
    kind: Literal["greedy"] = "greedy"
    max_length_ratio: LengthRatio = 2.0


class Beam(Strict):
    kind: Literal["beam"]
    width: Annotated[int, Field(ge=1, le=1000)] = 4
    length_normalization: Annotated[float, Field(ge=0.0)] = 0.0  # score / length ** this; 0: none
    max_length_ratio: LengthRatio = 2.0


class Exact(Strict):
    """Depth-first search for the best hypothesis of all that `max_length_ratio` allows (Stahlberg and Byrne
    2019), from a beam search's score as the first bound. What it has not proved when a limit is reached is
    reported as such."""

    kind: Literal["exact"]
    max_states: Positive = 1_000_000  # expansions a sentence (the SCONES paper's limit)
    max_seconds: Above0 | None = None  # a sentence; a limit that makes an output depend on the machine
    depth: Positive | None = None  # only hypotheses of at most this many subwords (Peters and Martins 2021)
    beam: Annotated[int, Field(ge=1, le=1000)] = 4  # width of the search that gives the first bound
    max_length_ratio: LengthRatio = 2.0


class Sample(Strict):
    """Ancestral sampling, from the top_k best tokens only where that is given. SCONES' token scores are
    normalised to a distribution first."""

    kind: Literal["sample"]
    top_k: Positive | None = None
    temperature: Above0 = 1.0
    seed: Seed = 1
    max_length_ratio: LengthRatio = 2.0


class Mbr(Strict):
    """Minimum Bayes risk over samples: the one with the highest mean utility against the others (Eikema and
    Aziz 2020)."""

    kind: Literal["mbr"]
    samples: Annotated[int, Field(ge=2, le=1000)] = 32
    utility: Literal["chrf", "bleu"] = "chrf"  # sentence-level
    top_k: Positive | None = None
    temperature: Above0 = 1.0
    seed: Seed = 1
    max_length_ratio: LengthRatio = 2.0


Search = Annotated[Greedy | Beam | Exact | Sample | Mbr, Field(discriminator="kind")]
# fp16 is for GPUs; int8 for CPUs: linear layers with int8 weights, activations quantised as they come
Precision = Literal["fp32", "bf16", "fp16", "int8"]


class System(Strict):
    """`test_sets`: what it translates, None for all of the study's. `baseline`: what it is compared with,
    None for the study's."""

    variant: Name
    selection: Selection = FullVocabulary()
    search: Search = Greedy()
    precision: Precision = "fp32"
    # sentences; changes speed, and no output in fp32 and int8. In bf16 and fp16 a product may be rounded
    # otherwise in a batch of another shape, which decides between words that are nearly equal
    batch_size: Positive = 32
    test_sets: Annotated[list[Name], Field(min_length=1)] | None = None
    baseline: Name | None = None
