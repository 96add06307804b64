"""Subwords and vocabularies: how text becomes token ids and text again.

Ids: pad 0, unk 1, bos 2, eos 3. SentencePiece's own normalisation is off ("identity"), because the text
is already NFC with single blanks (`text.normalise`). So `decode(encode(text)) == normalise(text)` for
text of the training characters, and every subword has exact character offsets.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import sentencepiece

from creamtea.contract.step import StepContext
from creamtea.document.values import Strict
from creamtea.errors import StepError
from creamtea.marian import SPM
from creamtea.methods.texts import Subwords, Symbols
from creamtea_workers.corpora.text import iterate_lines, normalise

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SUBWORDS_FILE = "subwords.model"
BLANK = "\u2581"  # SentencePiece writes blanks so; a piece that starts a word starts with it
VOCABULARIES_FILE = "vocabularies.json"
MARIAN_FILE = "marian_subwords.json"  # subwords of an imported model
FIRST = 4  # the id of the first symbol
_UNKNOWN = "⁇"
_CHARACTER = re.compile(r"<[^<>\s]+>|.")
_LANGUAGE = re.compile(r"(>>.*?<<)(.*)", re.DOTALL)
_SAMPLE_SEED = 1
_SAMPLE_PART = 1 << 16  # lines
_LARGEST = re.compile(r"set it to a value <= (\d+)")
_LONGEST_LINE = 1 << 20  # bytes; SentencePiece silently skips longer lines (its default is 4192)


class Offset(NamedTuple):
    """A subword and the characters [start, end) that it covers.

    The blank before a word is not counted, so a subword of a blank alone covers nothing (start == end).
    """

    id: int
    start: int
    end: int


def sampled_lines(path: Path, count: int) -> Iterator[str]:
    """Yield a random sample of `count` lines of a file, in its order; all lines if it has no more.

    The line numbers depend only on `count` and the number of lines.
    """
    left = sum(1 for _ in iterate_lines(path))
    if left <= count:
        yield from iterate_lines(path)
        return
    random, lines = np.random.default_rng(_SAMPLE_SEED), iterate_lines(path)
    while left:  # the number of sampled lines in a part is hypergeometric
        part = min(left, _SAMPLE_PART)
        here = int(random.hypergeometric(count, left - count, part))
        chosen = np.zeros(part, dtype=np.bool_)
        chosen[random.choice(part, here, replace=False)] = True
        yield from compress(islice(lines, part), chosen)
        left, count = left - part, count - here


def train_subwords(files: Iterable[Path], spec: Subwords, out: Path) -> int:
    """Train one model on the lines of all files, and return the number of lines read.

    Reads at most `spec.sample` lines of each file, in order and in one thread, so that the same text gives
    the same model. Raises StepError if the vocabulary does not fit the text.
    """
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        for line in chain.from_iterable(sampled_lines(file, spec.sample) for file in files):
            read += 1
            yield line

    try:
        model = _trained(lines(), spec)
    except RuntimeError as error:
        raise StepError(_explain(str(error), spec)) from error
    out.write_bytes(model)
    return read


def filled_vocabulary(lines: Iterable[str], spec: Subwords) -> int:
    """Return `spec.vocabulary`, or the largest vocabulary that normalised lines can fill if it is smaller."""
    try:
        _trained(lines, spec)
    except RuntimeError as error:
        if largest := _LARGEST.search(str(error)):
            return int(largest[1])
        raise
    return spec.vocabulary


def _trained(lines: Iterable[str], spec: Subwords) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=spec.kind,
        vocab_size=spec.vocabulary,
        character_coverage=spec.character_coverage,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=_LONGEST_LINE,
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def _explain(message: str, spec: Subwords) -> str:
    """Translate SentencePiece's error message into the terms of a study."""
    here = f"subwords: vocabulary {spec.vocabulary}"
    if largest := _LARGEST.search(message):
        return (
            f"{here} is more than this corpus can fill: the largest possible for {spec.kind} is "
            f"{largest[1]}; set vocabulary to {largest[1]} or less, or train on more text"
        )
    if smallest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return (
            f"{here} is less than the characters of this corpus: the smallest possible is {smallest[1]}; "
            "raise vocabulary, or lower character_coverage (rare characters then become unknown)"
        )
    return f"{here} ({spec.kind}): SentencePiece failed: {message}"


class SubwordModel:
    """Text to ids and back, by SentencePiece. Ids have no bos and eos; callers add them if needed."""

    source_vocabulary = None  # both sides have the same subwords

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        self._processor = processor
        self.size: int = processor.get_piece_size()

    @classmethod
    def load(cls, path: Path) -> SubwordModel:
        return cls(sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes()))

    @classmethod
    def of_step(cls, context: StepContext[Any]) -> SubwordModel:
        return cls.load(context.input("subwords") / SUBWORDS_FILE)

    def encode(self, text: str) -> list[int]:
        return self._processor.encode(normalise(text))

    def encode_lines(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        return self._processor.encode(list(map(normalise, lines)), num_threads=threads)

    encode_targets = encode_lines

    def sampled_lines(self, lines: Sequence[str], dropout: float, seed: int) -> list[list[int]]:
        """Segment lines by BPE-dropout, or by sampling from a unigram model; reproducible by `seed`."""
        sentencepiece.set_random_generator_seed(seed)  # used by the one thread that the call starts
        return self._processor.encode(
            list(map(normalise, lines)), enable_sampling=True, alpha=dropout, nbest_size=-1, num_threads=1
        )

    def unknown(self, line: str) -> list[str]:
        """Return the runs of characters without a subword, in the order of the line."""
        text = normalise(line)
        pieces: list[str] = self._processor.encode(text, out_type=str)
        return [piece for piece, id_ in zip(pieces, self.encode(text), strict=True) if id_ == UNK]

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._processor.decode([int(i) for i in ids if i not in (PAD, BOS, EOS)])
        return normalise(text)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._processor.id_to_piece(int(i)) for i in ids]

    source_pieces = pieces

    def offsets(self, text: str) -> list[Offset]:
        return [offset for _, offset in _piece_offsets(self._processor, text)]


def _piece_offsets(
    processor: sentencepiece.SentencePieceProcessor, text: str
) -> Iterator[tuple[str, Offset]]:
    """Yield each piece with its offset, in characters of the text as given (½, not the piece's 1⁄2)."""
    if text != normalise(text):  # `encode` normalises first: the offsets would count another text
        raise ValueError("offsets are only defined for normalised text")
    end, together = 0, []
    for piece in processor.encode(text, out_type="immutable_proto").pieces:
        together.append(piece)
        if processor.is_byte(piece.id) and not piece.surface:
            continue  # only the last of a character's bytes has the character
        start, end = end, end + len(piece.surface)
        for each in together:
            yield each.piece, Offset(each.id, start + piece.surface.startswith(" "), end)
        together = []


# Vocabularies of characters or tokens, one for each side of a word-level task.
#
# Ids: pad 0, unk 1, bos 2, eos 3, as for subwords. Text is NFC with single blanks (`text.normalise`).


class SourceVocabulary(Strict):
    """A source vocabulary separate from the target's. Ids 4 … 3 + `bracketed` are languages and tags."""

    size: int
    bracketed: int


class TextModel(Protocol):
    """Text to ids and back: a `SubwordModel`, `Vocabularies` or `MarianSubwords`.

    Ids have no bos and eos.
    """

    size: int  # size of the target's vocabulary

    @property
    def source_vocabulary(self) -> SourceVocabulary | None:
        """The separate vocabulary of the source; None if both sides share one."""

    def encode_lines(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Encode source lines."""

    def encode_targets(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Encode target lines."""

    def unknown(self, line: str) -> list[str]:
        """Return the symbols of a source line that the model does not know, in order."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of a target; pad, bos and eos are dropped, unknown symbols become ⁇."""


@runtime_checkable
class SubwordTexts(TextModel, Protocol):
    """A text model of subwords (`SubwordModel` or `MarianSubwords`) for aligners, selections and recall."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the target's subwords as SentencePiece writes them, for people and tables."""

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the source's subwords as SentencePiece writes them."""

    def offsets(self, text: str) -> list[Offset]:
        """Return a target text's subwords with characters. Raise ValueError if it is not normalised."""


def subword_texts(model: TextModel) -> SubwordTexts:
    """Return the model typed as `SubwordTexts`. Raise StepError if it has characters or tokens instead."""
    if not isinstance(model, SubwordTexts):
        raise StepError("a vocabulary selection can be measured only for subwords of kind bpe or unigram")
    return model


def word_starts(subwords: SubwordTexts) -> frozenset[int]:
    """Return the ids of the source's subwords that begin a word."""
    pieces = subwords.source_pieces(range(vocabulary_sizes(subwords)[0]))
    return frozenset(id_ for id_, piece in enumerate(pieces) if piece.startswith(BLANK))


def vocabulary_sizes(model: TextModel) -> tuple[int, int]:
    """Return the number of ids of source and target."""
    own = model.source_vocabulary
    return model.size if own is None else own.size, model.size


@dataclass(frozen=True)
class Vocabulary:
    """The symbols of one side, in the order of their ids from `FIRST` on; bracketed symbols come first."""

    kind: Symbols
    symbols: Sequence[str]

    @classmethod
    def of(cls, kind: Symbols, lines: Iterable[str]) -> Vocabulary:
        """Collect and sort all symbols of the lines."""
        symbols = {symbol for line in lines for symbol in split(kind, line)}
        return cls(kind, sorted(symbols, key=lambda symbol: (not is_bracketed(symbol), symbol)))

    @property
    def size(self) -> int:
        return FIRST + len(self.symbols)

    @property
    def bracketed(self) -> int:
        return sum(map(is_bracketed, self.symbols))

    @cached_property
    def ids(self) -> dict[str, int]:
        return {symbol: id_ for id_, symbol in enumerate(self.symbols, start=FIRST)}

    def encode(self, line: str) -> list[int]:
        return [self.ids.get(symbol, UNK) for symbol in split(self.kind, normalise(line))]

    def unknown(self, line: str) -> list[str]:
        return [symbol for symbol in split(self.kind, normalise(line)) if symbol not in self.ids]

    def decode(self, ids: Sequence[int]) -> str:
        symbols = [
            _UNKNOWN if id_ == UNK else self.symbols[id_ - FIRST] for id_ in ids if id_ not in (PAD, BOS, EOS)
        ]
        return normalise((" " if self.kind == "tokens" else "").join(symbols))


def split(kind: Symbols, line: str) -> list[str]:
    """Split a normalised line into symbols."""
    return line.split() if kind == "tokens" else _CHARACTER.findall(line)


def is_bracketed(symbol: str) -> bool:
    """Return True for the symbol of a language or a tag."""
    return len(symbol) > 2 and symbol[0] == "<" and symbol[-1] == ">"


class Vocabularies:
    """A vocabulary for each side."""

    def __init__(self, source: Vocabulary, target: Vocabulary) -> None:
        self.source, self.target = source, target
        self.size = target.size
        self.source_vocabulary = SourceVocabulary(size=source.size, bracketed=source.bracketed)

    @classmethod
    def of_corpus(cls, corpus: Path, spec: Subwords) -> Vocabularies:
        """Collect all symbols of a corpus step's training text."""
        sides = ((spec.source, "train.src"), (spec.target, "train.tgt"))
        return cls(*(Vocabulary.of(kind, iterate_lines(corpus / name)) for kind, name in sides))

    @classmethod
    def load(cls, path: Path) -> Vocabularies:
        sides = json.loads(path.read_text(encoding="utf-8"))
        return cls(*(Vocabulary(**sides[side]) for side in ("source", "target")))

    def save(self, path: Path) -> None:
        sides = {"source": self.source, "target": self.target}
        content = {name: {"kind": side.kind, "symbols": list(side.symbols)} for name, side in sides.items()}
        path.write_text(json.dumps(content, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")

    def encode_lines(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        return [self.source.encode(line) for line in lines]

    def encode_targets(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        return [self.target.encode(line) for line in lines]

    def unknown(self, line: str) -> list[str]:
        return self.source.unknown(line)

    def decode(self, ids: Sequence[int]) -> str:
        return self.target.decode(ids)


# ---------------------------------------------------------------- imported models


class MarianSubwords:
    """Subwords of a model in MarianMT format: a `SubwordTexts`.

    Each side has a SentencePiece model, which segments, and a list of pieces by id (`source`, `target`;
    `source` None means the target's). Other pieces are unknown, as they are to Marian. A source may begin
    with the language to translate into, `>>fra<<`, if the vocabulary has languages; otherwise `>>fra<<` is a
    quotation.
    """

    def __init__(self, models: Sequence[bytes], source: Sequence[str] | None, target: Sequence[str]) -> None:
        self._models = models
        self._processors = [sentencepiece.SentencePieceProcessor(model_proto=model) for model in models]
        self._source, self._target = source, target  # as they are in the file
        self._source_names = target if source is None else source
        self.size = len(target)
        self.source_vocabulary = None if source is None else SourceVocabulary(size=len(source), bracketed=0)
        of_target = _ids_by_piece(target)
        self._ids = [of_target if source is None else _ids_by_piece(source), of_target]
        self._has_languages = any(map(_LANGUAGE.fullmatch, self._source_names))

    @classmethod
    def load(cls, path: Path) -> MarianSubwords:
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            [base64.b64decode(model) for model in content["models"]], content["source"], content["target"]
        )

    def save(self, path: Path) -> None:
        models = [base64.b64encode(model).decode() for model in self._models]
        content = {"models": models, "source": self._source, "target": self._target}
        path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")

    def write_models(self, folder: Path) -> list[str]:
        """Write the SentencePiece model of each side, and return the files' names."""
        for name, model in zip(SPM, self._models, strict=True):
            (folder / name).write_bytes(model)
        return [*SPM]

    def encode_lines(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        return [[self._ids[0].get(piece, UNK) for piece in self._source_pieces(line)] for line in lines]

    def encode_targets(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        rows: list[list[str]] = self._processors[1].encode(
            list(map(normalise, lines)), out_type=str, num_threads=threads
        )
        return [[self._ids[1].get(piece, UNK) for piece in row] for row in rows]

    def unknown(self, line: str) -> list[str]:
        return [piece for piece in self._source_pieces(line) if piece not in self._ids[0]]

    def decode(self, ids: Sequence[int]) -> str:
        pieces = self.pieces([id_ for id_ in ids if id_ not in (PAD, BOS, EOS)])
        text: str = self._processors[1].decode(pieces)
        return normalise(text.replace(BLANK, " "))  # pieces that only the source's model has keep ▁

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the target's subwords, for people and logs."""
        return [self._target[int(id_)] for id_ in ids]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._source_names[int(id_)] for id_ in ids]

    def offsets(self, text: str) -> list[Offset]:
        """Return the target's subwords with characters. Raise ValueError if the text is not normalised."""
        return [
            offset._replace(id=self._ids[1].get(piece, UNK))
            for piece, offset in _piece_offsets(self._processors[1], text)
        ]

    def _source_pieces(self, line: str) -> list[str]:
        text = normalise(line)
        marked = _LANGUAGE.fullmatch(text) if self._has_languages else None
        language, text = marked.groups() if marked else ("", text)
        pieces: list[str] = self._processors[0].encode(text, out_type=str)
        return [language, *pieces] if language else pieces


def _ids_by_piece(pieces: Sequence[str]) -> dict[str, int]:
    """Return the first id of each piece: the token that starts decoding may have two ids."""
    return {piece: id_ for id_, piece in reversed(list(enumerate(pieces)))}


# ---------------------------------------------------------------- the text model of a step


def load_text_model(context: StepContext[Any]) -> TextModel:
    return load_text_model_of(context.input("subwords"))


def load_text_model_of(folder: Path) -> TextModel:
    file = text_model_file(folder)
    if file.name == MARIAN_FILE:
        return MarianSubwords.load(file)
    return Vocabularies.load(file) if file.name == VOCABULARIES_FILE else SubwordModel.load(file)


def text_model_file(folder: Path) -> Path:
    others = (folder / VOCABULARIES_FILE, folder / MARIAN_FILE)
    return next((file for file in others if file.exists()), folder / SUBWORDS_FILE)
