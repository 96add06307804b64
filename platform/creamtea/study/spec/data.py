"""Corpora, test sets, subwords and the alignment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from creamtea.document.values import Name, Positive, Seed, Share, Strict

# ---------------------------------------------------------------- corpora


class TextPair(Strict):
    """Two line-aligned text files, plain or gzip, UTF-8; paths are taken relative to --data.

    `tokenized: moses` says that the files hold Moses' tokens and escapes: both are undone when they are read.
    """

    source: str
    target: str
    tokenized: Literal["no", "moses"] = "no"


class TrainingText(TextPair):
    """`repeat` up-samples: what the filters keep is there that many times."""

    repeat: Positive = 1


class Filters(Strict):
    """Filters of training text. A development set loses only pairs with an empty side; a test set nothing."""

    max_words: Positive = 200  # on either side, split on white space
    max_ratio: Annotated[float, Field(ge=1.0)] = 4.0  # longer side over shorter side, in words
    ratio_from: Positive = 6  # the ratio is only asked of pairs whose longer side has this many words
    duplicates: bool = True  # drop repeated pairs, keep the first
    held_out: list[Name] = []  # test sets: training pairs with one of their source sentences are dropped


class FilesCorpus(Strict):
    kind: Literal["files"]
    train: Annotated[list[TrainingText], Field(min_length=1)]
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


class Ibm3Corpus(Strict):
    """The source sentences of a corpus of files, translated by sampling an IBM-3 model whose tables were
    counted in an alignment of that corpus' subwords (SCONES, Appendix B)."""

    kind: Literal["ibm3"]
    corpus: Name  # of files
    subwords: Name  # in which the tables are counted and the targets sampled
    gamma: Annotated[float, Field(ge=0.0)] = 1.0  # sampling temperature; 0 is deterministic, 1 the model
    seed: Seed = 1
    max_fertility: Annotated[int, Field(ge=1, le=50)] = 9


Corpus = Annotated[FilesCorpus | SyntheticCorpus | Ibm3Corpus, Field(discriminator="kind")]

# ---------------------------------------------------------------- test sets


class ItdsIdioms(Strict):
    """Idioms of an `.info` file of IdiomTranslationDS (Fadaee, Bisazza and Monz 2018).

    Their words are found in the source by lemma, their translations in the reference by a word alignment
    that is trained on `corpus` and the test set together.
    """

    info: str  # line-aligned with the test set
    corpus: Name


class FilesTestSet(Strict):
    """`idioms` is a line-aligned JSON Lines file: a list of {name, source: [from, to], target: [from, to]}
    a line, character offsets into the source and the reference."""

    kind: Literal["files"]
    source: str
    target: str
    tokenized: Literal["no", "moses"] = "no"
    idioms: str | None = None
    itds: ItdsIdioms | None = None
    limit: Positive | None = None  # only the first lines


class SyntheticTestSet(Strict):
    """Unseen sentences of a synthetic corpus's language."""

    kind: Literal["synthetic"]
    corpus: Name
    lines: Positive = 300
    seed: Seed = 2
    idiom_rate: Share = 0.5


class Ibm3TestSet(Strict):
    """The sentences of a file, translated as an IBM-3 corpus is."""

    kind: Literal["ibm3"]
    corpus: Name  # an IBM-3 corpus
    source: str
    tokenized: Literal["no", "moses"] = "no"
    seed: Seed = 2
    limit: Positive | None = None


TestSet = Annotated[FilesTestSet | SyntheticTestSet | Ibm3TestSet, Field(discriminator="kind")]

# ---------------------------------------------------------------- subwords, alignment


class Subwords(Strict):
    """Joint SentencePiece model over both sides."""

    kind: Literal["bpe", "unigram"] = "bpe"
    vocabulary: Annotated[int, Field(ge=16, le=128000)] = 4000
    character_coverage: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0


class Alignment(Strict):
    """Where the lexicon of every lexicon selection comes from.

    em: IBM model 2 with a diagonal prior (Dyer et al. 2013), built in. eflomal: Östling and Tiedemann
    (2016), where a user has installed it. table: a file in fast_align's format, `source TAB target TAB
    log-probability` a line, over the study's subwords.
    """

    aligner: Literal["em", "eflomal", "table"] = "em"
    iterations: Positive = 5  # of em
    max_k: Positive = 1000  # stored candidates a source subword
    table: str | None = None  # path, relative to --data
