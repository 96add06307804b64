"""Text files, filters, subwords and alignments: what corpora and test sets are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from creamtea.document.mistakes import KeyPath, Mistake
from creamtea.document.raw import RawStudy, parsed
from creamtea.document.values import Copies, Name, Positive, Strict

Tokenized = Literal["no", "moses"]


LANGUAGE_CODE = r"^[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*$"


class Languages(Strict):
    # code of the source language: two or three letters, perhaps with a script or region (zh-CN, sr_Latn)
    source: Annotated[str, Field(pattern=LANGUAGE_CODE)]
    target: Annotated[str, Field(pattern=LANGUAGE_CODE)]  # code of the target language


class TextPair(Strict):
    """Two line-aligned text files, plain or gzip, UTF-8; paths are taken relative to the study or to --data.

    `tokenized: moses` says that the files hold Moses' tokens and escapes: both are undone when they are read.
    """

    source: str  # path of the source text
    target: str  # path of its translation, line by line
    tokenized: Tokenized = "no"  # moses: the files hold Moses' tokens and escapes, which are undone


class TrainingText(TextPair):
    """`repeat` up-samples: what the filters keep is there that many times."""

    repeat: Copies = 1  # copies of each pair that the filters keep


MAX_CHARACTERS = 20_000


def is_default_length(characters: int) -> bool:
    return characters == MAX_CHARACTERS


DropReason = Literal["empty", "too_long", "ratio"]


class Filters(Strict):
    """Filters of training text. A development set loses only pairs with an empty side; a test set nothing."""

    # [words] on either side, split on white space; where a language has no blanks between words, 0.6 for each
    # character of Chinese and Japanese, 0.2 for each letter of Thai, Lao, Khmer and Burmese
    max_words: Positive = 200
    # [characters] on either side, as it stands in the file: a longer line is dropped without ever being
    # held in memory
    max_characters: Annotated[Positive, Field(exclude_if=is_default_length)] = MAX_CHARACTERS
    max_ratio: Annotated[float, Field(ge=1.0, le=10.0**6)] = 4.0  # longer side over shorter side, in words
    ratio_from: Positive = 6  # [words] only pairs whose longer side has this many are held to the ratio
    duplicates: bool = True  # drop repeated pairs, keep the first
    held_out: list[Name] = []  # test sets: training pairs with one of their source sentences are dropped

    def drop_reason(self, source_words: int, target_words: int) -> DropReason | None:
        """The first of the filters of word counts that drops such a pair; None if none does."""
        shorter, longer = sorted((source_words, target_words))
        if shorter == 0:
            return "empty"
        if longer > self.max_words:
            return "too_long"
        if longer >= self.ratio_from and longer > self.max_ratio * shorter:
            return "ratio"
        return None


# what a side of a word-level task is split into: characters (`<…>` is one symbol, a blank another), or what
# stands between blanks
Symbols = Literal["characters", "tokens"]


def is_characters(symbols: Symbols) -> bool:
    return symbols == "characters"


SAMPLE = 1_000_000


def is_default_sample(pairs: int) -> bool:
    return pairs == SAMPLE


class Subwords(Strict):
    """bpe, unigram: a joint SentencePiece model over both sides. characters: no subwords, but a vocabulary of
    all the symbols in the training text for each side (`source`, `target`)."""

    # bpe and unigram: a joint SentencePiece model; characters: symbols of each side
    kind: Literal["bpe", "unigram", "characters"] = "bpe"
    vocabulary: Annotated[int, Field(ge=16, le=128000)] = 4000  # [subwords] of a joint model
    # share of the characters in the text that the model has; the others are unknown. SentencePiece takes no
    # less than 0.98
    character_coverage: Annotated[float, Field(ge=0.98, le=1.0)] = 1.0
    # [sentence pairs] that a model learns from, drawn at random where training text has more
    sample: Annotated[Positive, Field(exclude_if=is_default_sample)] = SAMPLE
    # of `characters`: what the source side is split into
    source: Annotated[Symbols, Field(exclude_if=is_characters)] = "characters"
    # of `characters`: what the target side is split into
    target: Annotated[Symbols, Field(exclude_if=is_characters)] = "characters"

    @property
    def joint(self) -> bool:
        """Whether both sides have the same subwords."""
        return self.kind != "characters"


def needs_joint(path: KeyPath, name: Any, study: RawStudy, what: str) -> Iterator[Mistake]:
    """A mistake at `path` if the subwords of this name are not the same on both sides, which `what` needs."""
    subwords = parsed(Subwords, study.named("subwords", name))
    if subwords and not subwords.joint:
        found = f"{what} with {subwords.kind}"
        yield Mistake(path, found, "subwords of kind bpe or unigram for it", settled=True)


class Alignment(Strict):
    """Where the lexicon of every lexicon selection comes from.

    em: IBM model 2 with a diagonal prior (Dyer et al. 2013), built in. eflomal: Östling and Tiedemann
    (2016), where a user has installed it. table: a file in fast_align's format, `source TAB target TAB
    log-probability` per line, over the study's subwords.
    """

    aligner: Literal["em", "eflomal", "table"] = "em"  # where the lexicon comes from
    iterations: Positive = 5  # [iterations] of em
    max_k: Positive = 1000  # [candidates] stored per source subword
    table: str | None = None  # of `aligner: table`: path, relative to --data
