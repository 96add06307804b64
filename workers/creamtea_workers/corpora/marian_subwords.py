"""Subwords of a model in MarianMT format: a SentencePiece model for each side segments, and a vocabulary over
both gives the pieces ids.

Ids are ours: pad 0, unk 1, bos 2, eos 3. Pieces that the vocabulary does not have are unknown, as they are to
Marian. A source may begin with the language to translate into, `>>fra<<`, if the vocabulary has it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from creamtea.marian import SPM
from creamtea_workers.corpora.subwords import (
    BLANK,
    BOS,
    EOS,
    PAD,
    UNK,
    Offset,
    SourceVocabulary,
)
from creamtea_workers.corpora.text import normalise

_LANGUAGE = re.compile(r"(>>.*?<<)(.*)", re.DOTALL)


class MarianSubwords:
    """See `creamtea_workers.corpora.subwords.SubwordTexts`. `source`: pieces by id; None: the target's."""

    def __init__(self, models: Sequence[bytes], source: Sequence[str] | None, target: Sequence[str]) -> None:
        self._models = models
        self._processors = [sentencepiece.SentencePieceProcessor(model_proto=model) for model in models]
        self._source, self._target = source, target  # as they are in the file
        self._source_names = target if source is None else source
        self.size = len(target)
        self.source_vocabulary = None if source is None else SourceVocabulary(size=len(source), bracketed=0)
        of_target = _ids(target)
        self._ids = [of_target if source is None else _ids(source), of_target]

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
        return normalise(text.replace(BLANK, " "))  # of pieces that only the source's model has

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the target's subwords, for people and logs."""
        return [self._target[int(id_)] for id_ in ids]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._source_names[int(id_)] for id_ in ids]

    def offsets(self, text: str) -> list[Offset]:
        """Return the target's subwords with the characters of `text`. ValueError if `text` is not normalised.

        The characters are those before SentencePiece normalises them (½ is one of `text`, and 1⁄2 in the
        subword).
        """
        if text != normalise(text):
            raise ValueError("offsets are only defined for normalised text")
        result, end = [], 0
        for piece in self._processors[1].encode(text, return_type="proto").pieces:
            start, end = end, end + len(piece.surface)
            blank = piece.surface.startswith(" ")
            result.append(Offset(self._ids[1].get(piece.piece, UNK), start + blank, end))
        return result

    def _source_pieces(self, line: str) -> list[str]:
        text = normalise(line)
        marked = _LANGUAGE.fullmatch(text)
        language, text = marked.groups() if marked else ("", text)
        pieces: list[str] = self._processors[0].encode(text, out_type=str)
        return [language, *pieces] if language else pieces


def _ids(pieces: Sequence[str]) -> dict[str, int]:
    """The first id of each: what the decoder begins with may be there twice."""
    return {piece: id_ for id_, piece in reversed(list(enumerate(pieces)))}
