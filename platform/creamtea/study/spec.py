"""The study spec: what a researcher may write, as strict pydantic models.

Data only: no import paths, no shell. Unknown keys are refused. The models describe a study *after* its
grids are expanded (`creamtea.study.loader`), so every parameter here is a single value. Workers receive
the dumped dictionaries as step parameters and validate them again with the same models.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._=,+-]*$", max_length=120)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(ge=1, le=10**9)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, protected_namespaces=(), allow_inf_nan=False
    )


# ---------------------------------------------------------------- corpora and test sets


class TextPair(Strict):
    """Two line-aligned text files, plain or gzip, UTF-8; paths are taken relative to --data."""

    source: str
    target: str


class Filters(Strict):
    """Filters of training text. A development set loses only pairs with an empty side; a test set nothing."""

    max_words: Positive = 200  # on either side, split on white space
    max_ratio: Annotated[float, Field(ge=1.0)] = 4.0  # longer side over shorter side, in words
    ratio_from: Positive = 6  # the ratio is only asked of pairs whose longer side has this many words
    duplicates: bool = True  # drop repeated pairs, keep the first


class FilesCorpus(Strict):
    kind: Literal["files"]
    train: Annotated[list[TextPair], Field(min_length=1)]
    dev: TextPair
    filters: Filters = Filters()


class SyntheticCorpus(Strict):
    """Sentences of a small grammar, translated by sampling the IBM-3 story (SCONES, Appendix B)."""

    kind: Literal["synthetic"]
    train: Annotated[int, Field(ge=10)] = 12000
    dev: Positive = 300
    seed: Seed = 1
    gamma: Annotated[float, Field(ge=0.0)] = 0.5  # sampling temperature; 0 is deterministic, 1 the model
    idiom_rate: Share = 0.25  # share of sentences with an idiom


Corpus = Annotated[FilesCorpus | SyntheticCorpus, Field(discriminator="kind")]


class FilesTestSet(Strict):
    """`idioms` is a line-aligned JSON Lines file: a list of {name, source: [from, to], target: [from, to]}
    a line, character offsets into the source and the reference."""

    kind: Literal["files"]
    source: str
    target: str
    idioms: str | None = None
    limit: Positive | None = None  # only the first lines


class SyntheticTestSet(Strict):
    """Unseen sentences of a synthetic corpus's language."""

    kind: Literal["synthetic"]
    corpus: Name
    lines: Positive = 300
    seed: Seed = 2
    idiom_rate: Share = 0.5


TestSet = Annotated[FilesTestSet | SyntheticTestSet, Field(discriminator="kind")]


class Subwords(Strict):
    """Joint SentencePiece model over both sides."""

    kind: Literal["bpe", "unigram"] = "bpe"
    vocabulary: Annotated[int, Field(ge=16, le=128000)] = 4000
    character_coverage: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0


# ---------------------------------------------------------------- variants


class Softmax(Strict):
    """Cross-entropy; label smoothing mixes the one-hot target with the uniform distribution over all V."""

    kind: Literal["softmax"]
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0


class Scones(Strict):
    """SCONES (Stahlberg and Kumar 2022, Eq. 6): alpha weighs the negative labels."""

    kind: Literal["scones"]
    alpha: Annotated[float, Field(gt=0.0)] = 0.5


class Entmax(Strict):
    """alpha-entmax Fenchel-Young loss (Peters and Martins 2021), with Fenchel-Young label smoothing."""

    kind: Literal["entmax"]
    alpha: Annotated[float, Field(ge=1.5, le=1.5)] = 1.5
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0


Objective = Annotated[Softmax | Scones | Entmax, Field(discriminator="kind")]


class Architecture(Strict):
    """Pre-norm Transformer with source, target and output embeddings tied."""

    kind: Literal["transformer"] = "transformer"
    encoder_layers: Positive = 3
    decoder_layers: Positive = 3
    width: Positive = 128
    heads: Positive = 4
    feed_forward: Positive = 512
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1


class Nvs(Strict):
    """Neural vocabulary selection head (Domhan et al. 2022, Eq. 3), gradients blocked before the encoder."""

    positive_weight: Annotated[float, Field(ge=1.0)] = 100000.0


class Training(Strict):
    batch_tokens: Positive = 4096  # target tokens (padding included) of a batch
    learning_rate: Annotated[float, Field(gt=0.0)] = 0.002  # peak, at the end of the warm-up
    warmup: Positive = 400  # updates; then inverse square root decay
    clip: Annotated[float, Field(gt=0.0)] = 1.0  # global gradient norm
    max_updates: Positive = 100000
    max_epochs: Positive | None = None
    validate_every: Positive | None = None  # updates; None: once an epoch
    patience: Positive = 5  # validations without a better development loss
    average: Positive = 1  # the best checkpoints that are averaged
    max_tokens: Positive = 128  # subwords; longer training pairs are left out, and counted
    checkpoint_every: Positive = 100  # updates between checkpoints for resuming
    autocast: Literal["none", "bf16"] = "bf16"


class Variant(Strict):
    corpus: Name
    subwords: Name
    objective: Objective
    architecture: Architecture = Architecture()
    nvs: Nvs | None = None
    training: Training = Training()
    seeds: Annotated[list[Seed], Field(min_length=1)] = [1]


# ---------------------------------------------------------------- systems


class FullVocabulary(Strict):
    kind: Literal["full"] = "full"


class LexiconSelection(Strict):
    """Top-k target subwords per source subword of the study's alignment lexicon, union over the sentence."""

    kind: Literal["lexicon"]
    k: Positive = 200


class NvsSelection(Strict):
    """Target subwords whose NVS probability exceeds the threshold (lambda in the paper)."""

    kind: Literal["nvs"]
    threshold: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9


Selection = Annotated[FullVocabulary | LexiconSelection | NvsSelection, Field(discriminator="kind")]


class Greedy(Strict):
    kind: Literal["greedy"] = "greedy"
    max_length_ratio: Annotated[float, Field(gt=0.0)] = 2.0  # of the source subwords, plus 10


class Beam(Strict):
    kind: Literal["beam"]
    width: Annotated[int, Field(ge=1, le=1000)] = 4
    length_normalization: Annotated[float, Field(ge=0.0)] = 0.0  # score / length ** this; 0: none
    max_length_ratio: Annotated[float, Field(gt=0.0)] = 2.0


Search = Annotated[Greedy | Beam, Field(discriminator="kind")]
Precision = Literal["fp32", "bf16"]


class System(Strict):
    variant: Name
    selection: Selection = FullVocabulary()
    search: Search = Greedy()
    precision: Precision = "fp32"
    batch_size: Positive = 32  # sentences; changes speed, never an output


class Alignment(Strict):
    """IBM model 2 with a diagonal prior, EM (Dyer et al. 2013); serves every lexicon selection."""

    iterations: Positive = 5
    max_k: Positive = 1000  # stored candidates a source subword


# ---------------------------------------------------------------- measuring


class Bleu(Strict):
    kind: Literal["bleu"]
    tokenize: Literal["13a", "intl", "char", "none", "ja-mecab", "zh", "spm"] = "13a"


class Chrf(Strict):
    kind: Literal["chrf"]
    word_order: Annotated[int, Field(ge=0, le=2)] = 0


class Comet(Strict):
    """COMET in its own environment. `model` is a model name or a local checkpoint path."""

    kind: Literal["comet"]
    model: str = "Unbabel/wmt22-comet-da"
    batch_size: Positive = 16


Metric = Annotated[Bleu | Chrf | Comet, Field(discriminator="kind")]


class Significance(Strict):
    """Paired bootstrap against the baseline (Koehn 2004), as in sacreBLEU."""

    samples: Annotated[int, Field(ge=100)] = 1000
    seed: Seed = 12345


class Recall(Strict):
    """The sweep of the recall-against-size plot (NVS paper, Figure 3)."""

    k: list[Positive] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    thresholds: list[Share] = [0.99, 0.9, 0.5, 0.1, 0.01, 0.001, 0.0001, 0.00001, 0.000001]


class Latency(Strict):
    """Batch-1 latency of systems, interleaved in one process."""

    test_set: Name
    systems: list[Name] | None = None  # None: every system
    sentences: Positive = 20
    repetitions: Annotated[int, Field(ge=2)] = 30
    warmup: Annotated[int, Field(ge=0)] = 3  # sentences a system before the clock starts
    threads: Positive = 1


class StepResources(Strict):
    cpus: Positive = 1
    gpus: Annotated[float, Field(ge=0.0)] = 0.0
    memory_gb: Annotated[float, Field(gt=0.0)] | None = None
    timeout_minutes: Annotated[float, Field(gt=0.0)] | None = None
    max_attempts: Positive = 4  # after infrastructure failures; deterministic ones are final


class Languages(Strict):
    source: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
    target: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]


class Study(Strict):
    name: Name
    description: str = ""
    languages: Languages
    corpora: Annotated[dict[Name, Corpus], Field(min_length=1)]
    subwords: Annotated[dict[Name, Subwords], Field(min_length=1)]
    variants: Annotated[dict[Name, Variant], Field(min_length=1)]
    systems: Annotated[dict[Name, System], Field(min_length=1)]
    test_sets: Annotated[dict[Name, TestSet], Field(min_length=1)]
    baseline: Name
    alignment: Alignment = Alignment()
    metrics: list[Metric] = [Bleu(kind="bleu"), Chrf(kind="chrf")]
    significance: Significance = Significance()
    recall: Recall = Recall()
    latency: Latency | None = None
    resources: dict[str, StepResources] = {}  # by step kind
