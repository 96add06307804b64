"""Text files, filters, subwords and alignments, which corpora and test sets use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from creamtea.document.mistakes import Block, KeyPath, Mistake, RawStudy, parsed, shown
from creamtea.document.values import Copies, Name, Positive, Strict, unstated
from creamtea.wording import counted
from creamtea.words import normalise

Tokenized = Literal["no", "moses"]


LANGUAGE_CODE = r"^[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*$"


class Languages(Strict):
    # code of the source language: two or three letters, perhaps with a script or region (zh-CN, sr_Latn)
    source: Annotated[str, Field(pattern=LANGUAGE_CODE)]
    target: Annotated[str, Field(pattern=LANGUAGE_CODE)]  # code of the target language


class TextPair(Strict):
    """Two line-aligned text files, plain or gzip, UTF-8, or two columns of tab-separated files.

    Paths are relative to the study or to --data. `tokenized: moses` undoes Moses' tokens and escapes when the
    files are read. `columns: [1, 2]` reads tab-separated files: `source` and `target` may be the same file.
    """

    source: str  # path of the source text
    target: str  # path of its translation, line by line
    # columns of the source text and of its translation, from 1, if the files are tab-separated; a line that
    # lacks one is an error, but an empty line is a pair of empty texts
    columns: Annotated[list[Positive], Field(min_length=2, max_length=2)] | None = unstated(None)
    tokenized: Tokenized = "no"  # moses: the files hold Moses' tokens and escapes, which are undone

    def sides(self) -> list[tuple[str, int | None]]:
        """Return the path of each side, and its column if the file is tab-separated."""
        return list(zip((self.source, self.target), self.columns or (None, None), strict=True))


def in_column(line: str, column: int | None) -> str:
    """Return the text in a column of a line, or the whole line. Raise ValueError if the column is missing."""
    if column is None or not line.strip():
        return line
    cells = line.split("\t")
    if len(cells) < column:
        raise ValueError(f"{counted(len(cells), 'column')}, so there is no column {column}")
    return cells[column - 1]


class TrainingText(TextPair):
    """Training text. `repeat` up-samples: each pair that the filters keep occurs that many times."""

    repeat: Copies = 1  # copies of each pair that the filters keep


MAX_CHARACTERS = 20_000
DropReason = Literal["empty", "too_long", "ratio"]


class Filters(Strict):
    """Filters of training text.

    A development set loses only pairs with an empty side; a test set loses nothing.
    """

    # [words] on either side, split on white space; without blanks between words, a character of Chinese or
    # Japanese counts 0.6, a letter of Thai, Lao, Khmer, Burmese or Tibetan 0.2
    max_words: Positive = 200
    # [characters] on either side, as in the file: a longer line is dropped without being held in memory
    max_characters: Positive = unstated(MAX_CHARACTERS)
    max_ratio: Annotated[float, Field(ge=1.0, le=10.0**6)] = 4.0  # longer side over shorter side, in words
    ratio_from: Positive = 6  # [words] the ratio applies only to pairs whose longer side has this many
    duplicates: bool = True  # drop repeated pairs, keep the first
    held_out: list[Name] = []  # test sets: training pairs with one of their source sentences are dropped

    def drop_reason(self, source_words: int, target_words: int) -> DropReason | None:
        """Return the first filter that drops a pair with these word counts; None if none does."""
        shorter, longer = sorted((source_words, target_words))
        if shorter == 0:
            return "empty"
        if longer > self.max_words:
            return "too_long"
        if longer >= self.ratio_from and longer > self.max_ratio * shorter:
            return "ratio"
        return None


# symbols of one side of a word-level task: characters (`<…>` is one symbol, a blank another), or tokens
# between blanks
Symbols = Literal["characters", "tokens"]


SAMPLE = 1_000_000
MIN_VOCABULARY = 16  # subwords


class Subwords(Strict):
    """The subwords of a study.

    bpe, unigram: a joint SentencePiece model for both sides. characters: no subwords; each side (`source`,
    `target`) has a vocabulary of all symbols in its training text.
    """

    # bpe and unigram: a joint SentencePiece model; characters: symbols of each side
    kind: Literal["bpe", "unigram", "characters"] = "bpe"
    vocabulary: Annotated[int, Field(ge=MIN_VOCABULARY, le=128000)] = 4000  # [subwords] of a joint model
    # share of the characters in the text that the model covers; the others become unknown. SentencePiece
    # requires at least 0.98
    character_coverage: Annotated[float, Field(ge=0.98, le=1.0)] = 1.0
    # [sentence pairs] that a model learns from, drawn at random if the training text has more
    sample: Positive = unstated(SAMPLE)
    # with `characters`: the symbols of the source side
    source: Symbols = unstated("characters")
    # with `characters`: the symbols of the target side
    target: Symbols = unstated("characters")

    @property
    def joint(self) -> bool:
        """True if both sides have the same subwords."""
        return self.kind != "characters"


def needs_joint(path: KeyPath, name: Any, study: RawStudy, what: str) -> Iterator[Mistake]:
    """Report subwords that differ between the sides, if `what` needs joint subwords."""
    subwords = parsed(Subwords, study.named("subwords", name))
    if subwords and not subwords.joint:
        found = f"{what} with {subwords.kind}"
        yield Mistake(path, found, "subwords of kind bpe or unigram for it", settled=True)


def check_within_vocabulary(
    path: KeyPath, block: Block, keys: Sequence[str], study: RawStudy
) -> Iterator[Mistake]:
    """Yield a mistake for each number of subwords in a system's block that exceeds the vocabulary."""
    system = study.named(str(path[0]), path[1]) or {}
    variant = study.named("variants", system.get("variant")) or {}
    size = parsed(Subwords, study.named("subwords", variant.get("subwords")) or None)
    for key in keys:
        value = block.get(key)
        if size and size.joint and isinstance(value, int) and value > size.vocabulary:
            found = f"{value:,}, of {size.vocabulary:,} subwords"
            yield Mistake((*path, key), found, "at most the size of the vocabulary")


class Alignment(Strict):
    """The aligner behind the lexicon of every lexicon selection.

    em: IBM model 2 with a diagonal prior (Dyer et al. 2013), built in. eflomal: Östling and Tiedemann
    (2016), if a user has installed it. table: a file in fast_align's format, `source TAB target TAB
    log-probability` per line, over the study's subwords.
    """

    aligner: Literal["em", "eflomal", "table"] = "em"  # where the lexicon comes from
    # [iterations] of em; its likelihood hardly grows after ten
    iterations: Annotated[int, Field(ge=1, le=1000)] = 5
    max_k: Positive = 1000  # [candidates] stored per source subword
    table: str | None = None  # with `aligner: table`: path, relative to --data


# ---------------------------------------------------------------- lines of SIGMORPHON's files of words


class WordLine(NamedTuple):
    """A line of a file of words, normalised.

    `target`: the word's phones, or the word's form that the tags name.
    """

    word: str
    target: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class WordLines:
    """The columns of a file's lines: a word, its target, and optionally tags separated by semicolons."""

    columns: tuple[str, ...]

    @property
    def wanted(self) -> str:
        return " TAB ".join(self.columns)

    @property
    def allowed(self) -> str:
        return f"{self.wanted} in each line" + ", tags with ; between them" * (len(self.columns) > 2)

    def read(self, line: str) -> WordLine:
        """Read a line. Raise a ValueError that names the mistake."""
        fields = [normalise(field) for field in line.split("\t")]
        if not any(fields):
            raise ValueError("an empty line")
        if (count := len(fields)) != len(self.columns):
            raise ValueError(f"{counted(count, 'column')} where {len(self.columns)} belong")
        for column, field in zip(self.columns, fields, strict=True):
            if not field:
                raise ValueError(f"nothing where {column} belong{'s' * (not column.endswith('s'))}")
            if "<" in field or ">" in field:
                raise ValueError(f"< or > in {column}, which mark languages and tags")
        word, target, *tags = fields
        return WordLine(word, target, _tags(tags[0]) if tags else ())


def _tags(text: str) -> tuple[str, ...]:
    """Split tags. Published files have meaningless blanks beside semicolons: "ADJ;ABL; PL"."""
    tags = tuple(tag.strip() for tag in text.split(";"))
    if not all(tags):
        raise ValueError(f"an empty tag in {shown(text)}")
    for tag in tags:
        if " " in tag:
            raise ValueError(f"a blank in the tag {shown(tag)}")
    return tags


PRONUNCIATIONS = WordLines(("word", "phones"))
INFLECTIONS = WordLines(("lemma", "form", "tags"))


# ---------------------------------------------------------------- lines of a file of annotated idioms

Span = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]


class IdiomNote(Strict):
    """An idiom of a test sentence.

    `source` and `target` are its characters [from, to); `target` may instead be a text, its translation.
    """

    name: str
    source: Span
    target: Span | str


# the format of each line of the file
NOTES = 'a JSON list of {"name": …, "source": [from, to], "target": [from, to] or a text} in each line'
_NOTES = TypeAdapter(list[IdiomNote])


def read_notes(line: str) -> list[IdiomNote]:
    """Read the idioms of a segment. Raise a ValueError that names the mistake."""
    try:
        return _NOTES.validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"[{part!r}]" for part in first["loc"])
        raise ValueError(f"{where} {first['msg']}".lstrip()) from None
