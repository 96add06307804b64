"""Vocabularies of characters or tokens, one for each side of a word-level task.

Ids: pad 0, unk 1, bos 2, eos 3, as of subwords. Text is NFC with single blanks (`text.normalise`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from creamtea.contract.step import StepContext
from creamtea.document.values import Strict
from creamtea.methods.texts import Subwords, Symbols
from creamtea_workers.corpora.subwords import BOS, EOS, PAD, UNK, SubwordModel
from creamtea_workers.corpora.subwords import FILE as SUBWORDS
from creamtea_workers.corpora.text import iterate_lines, normalise

FILE = "vocabularies.json"
FIRST = 4  # the id of the first symbol
_UNKNOWN = "⁇"
_CHARACTER = re.compile(r"<[^<>\s]+>|.")


class SourceVocabulary(Strict):
    """Of a model whose source has a vocabulary of its own. Ids 4 … 3 + `bracketed` are languages and tags."""

    size: int
    bracketed: int


class TextModel(Protocol):
    """Text to ids and back: a `SubwordModel`, or `Vocabularies`. Ids come without bos and eos."""

    size: int  # of the target's vocabulary

    @property
    def source_vocabulary(self) -> SourceVocabulary | None:
        """None: the target's."""

    def encode_lines(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Of sources."""

    def encode_targets(self, lines: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Of targets."""

    def unknown(self, line: str) -> list[str]:
        """What a source has that the model has never seen, in its order."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a target; pad, bos and eos are dropped, what is unknown shows as ⁇."""


@dataclass(frozen=True)
class Vocabulary:
    """The symbols of one side, by their ids from `FIRST` on: those in angle brackets first."""

    kind: Symbols
    symbols: Sequence[str]

    @classmethod
    def of(cls, kind: Symbols, lines: Iterable[str]) -> Vocabulary:
        """All symbols of the lines, in an order that does not depend on the lines'."""
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
    """A normalised line as symbols."""
    return line.split() if kind == "tokens" else _CHARACTER.findall(line)


def is_bracketed(symbol: str) -> bool:
    """Whether it is the symbol of a language or a tag."""
    return len(symbol) > 2 and symbol[0] == "<" and symbol[-1] == ">"


class Vocabularies:
    """A vocabulary for each side."""

    def __init__(self, source: Vocabulary, target: Vocabulary) -> None:
        self.source, self.target = source, target
        self.size = target.size
        self.source_vocabulary = SourceVocabulary(size=source.size, bracketed=source.bracketed)

    @classmethod
    def of_corpus(cls, corpus: Path, spec: Subwords) -> Vocabularies:
        """All the symbols of a corpus step's training text."""
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


def load_text_model(context: StepContext[Any]) -> TextModel:
    """From a step's input subwords."""
    return load_text_model_of(context.input("subwords"))


def load_text_model_of(folder: Path) -> TextModel:
    """From a folder as a subwords step leaves it."""
    file = text_model_file(folder)
    return Vocabularies.load(file) if file.name == FILE else SubwordModel.load(file)


def text_model_file(folder: Path) -> Path:
    """The one file of it that a text model is made of."""
    return folder / (FILE if (folder / FILE).exists() else SUBWORDS)
