"""Check a folder with a CTranslate2 model.

Nothing in a folder is executed. The library trusts `model.bin` when it reads the file, so the places of all
variables are checked first: they must fill the file. A model that cannot be used is an `UnusableModel`.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from creamtea.document.mistakes import shown
from creamtea.document.values import digest
from creamtea.files import open_regular
from creamtea.marian import (
    CONFIG,
    MAX_CONFIG,
    MAX_VOCABULARY,
    SPM,
    UnusableModel,
    check_files,
    check_pieces,
    licence_of,
    read_json,
    sha256_of,
)
from creamtea.wording import counted

MODEL, MAP = "model.bin", "vmap.txt"
SHARED, SIDES = "shared_vocabulary.json", ("source_vocabulary.json", "target_vocabulary.json")
FILES = (MODEL, CONFIG, SHARED, *SIDES, MAP)  # files that the library reads; not every folder has all
ONE_SPM = ("subwords.model", "sentencepiece.model")  # possible names of one model for both sides
VERSION = 6  # version of model.bin, since CTranslate2 3.0
# types by their numbers in the file, with the bytes of a value
TYPES = {
    0: ("float32", 4), 1: ("int8", 1), 2: ("int16", 2), 3: ("int32", 4), 4: ("float16", 2), 5: ("bfloat16", 2)
}  # fmt: skip
MAX_VARIABLES = 100_000
# last parts of the names of weights; the file has computed positions, scales of int8 and settings besides
LEARNED = ("weight", "bias", "gamma", "beta", "relative_attention_bias")
EMBEDDING_NORM = "encoder/layernorm_embedding/gamma"
# in vocabularies of models that must be given the target language: M2M100, NLLB
PREFIX = re.compile("__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}")
_WHOLE = "a whole model.bin that CTranslate2 3.0 or later has written; copy or convert it again"


@dataclass(frozen=True)
class ShippedFolder:
    """A folder that has been checked."""

    folder: Path
    files: tuple[str, ...]  # the FILES that it has
    spm: tuple[str, str]  # files of the SentencePiece models of source and target
    source: list[str]  # pieces in our order: pad 0, unk 1, bos 2, eos 3, then the model's own
    target: list[str]
    weights: str  # type of the weights: "float32", "int8"
    parameters: int
    digest: str  # digest of all files that are read
    name: str
    licence: str  # "" if the folder does not state one


class _Variable(NamedTuple):
    shape: tuple[int, ...]
    kind: str


def read_shipped(folder: Path) -> ShippedFolder:
    """Check a folder. Raise UnusableModel for the first mistake."""
    if not folder.is_dir():
        raise UnusableModel(f"no folder at {folder}", "a folder with a CTranslate2 model")
    names = (SHARED, SHARED) if (folder / SHARED).exists() else SIDES
    one = next((name for name in ONE_SPM if (folder / name).exists()), None)
    spm = (one, one) if one and not (folder / SPM[0]).exists() else SPM
    needed = tuple(dict.fromkeys((MODEL, CONFIG, *names, *spm)))
    check_files(folder, needed, (MAP,))
    config = read_json(folder / CONFIG, MAX_CONFIG)
    vocabularies = [_vocabulary(folder / name) for name in names]
    variables = _variables(folder / MODEL)
    for side, table, name, pieces in zip(
        ("source", "target"), ("encoder/embeddings_0", "decoder/embeddings"), names, vocabularies, strict=True
    ):
        weight = variables.get(f"{table}/weight")
        if weight is None:
            found = f"no {side} embeddings in {MODEL}"
            raise UnusableModel(found, "a Transformer with one source, as Marian and OPUS-MT models are")
        if weight.shape[0] != len(pieces):
            found = f"{counted(len(pieces), 'piece')} in {name}, {weight.shape[0]:,} in {MODEL}"
            raise UnusableModel(found, "files of one model")
    found = ""
    if prefix := next(filter(PREFIX.fullmatch, vocabularies[1]), None):
        found = (
            f"a model of many languages ({prefix} in its vocabulary), which must be given the target language"
        )
    # a source of BART begins with <s>, one of mBART ends in its language; config.json does not say so
    elif EMBEDDING_NORM in variables and not config.get("add_source_eos"):
        found = "a model like BART, whose sources have more tokens than their text and </s>"
    elif config.get("decoder_start_token") is None:
        found = f"no decoder_start_token in {CONFIG}"
    if found:
        raise UnusableModel(found, "a model whose source alone says what to translate into")
    ours = [_ordered(config, name, pieces) for name, pieces in zip(names, vocabularies, strict=True)]
    for file, pieces in zip(spm, ours, strict=True):
        check_pieces(folder / file, pieces)
    files = tuple(name for name in FILES if (folder / name).exists())
    kinds = [variables[name].kind for name in variables if name.endswith("linear_0/weight")]
    return ShippedFolder(
        folder=folder,
        files=files,
        spm=spm,
        source=ours[0],
        target=ours[1],
        weights=kinds[0] if kinds else "float32",
        parameters=sum(
            math.prod(own.shape)
            for name, own in {id(own): (name, own) for name, own in variables.items()}.values()
            if name.rsplit("/")[-1] in LEARNED
        ),
        digest=digest({name: sha256_of(folder / name) for name in dict.fromkeys((*files, *spm))}),
        name=folder.resolve().name[:100],
        licence=licence_of(folder),
    )


def ends_of(config: dict[str, Any]) -> list[str]:
    """Return the tokens that sources need after their text, and that the library does not add.

    Models converted from transformers need </s>, which their config does not say; their decoder begins with
    </s> (MarianMT) or <pad> (T5, Pegasus).
    """
    eos = config["eos_token"]
    ends = not config.get("add_source_eos") and config.get("decoder_start_token") in (eos, "<pad>")
    return [eos] if ends else []


def _vocabulary(path: Path) -> list[str]:
    pieces = read_json(path, MAX_VOCABULARY, list)
    if not all(isinstance(piece, str) for piece in pieces) or len({*pieces}) < len(pieces):
        raise UnusableModel(f"{path.name} does not list its pieces, each once", "a JSON list of strings")
    return list(pieces)


def _ordered(config: dict[str, Any], name: str, pieces: list[str]) -> list[str]:
    """Return the pieces in our order. Pieces that the model lacks get names that occur in no text."""
    unk, eos = (str(config.get(f"{key}_token")) for key in ("unk", "eos"))
    for key, piece in (("unk", unk), ("eos", eos)):
        if piece not in pieces:
            raise UnusableModel(
                f"{key}_token {shown(piece)} of {CONFIG} is not in {name}", "files of one model"
            )
    pad = next((piece for piece in ("<pad>", "<blank>") if piece in pieces), "<pad>")
    begin = str(config.get("decoder_start_token"))
    special = [pad, unk, begin if begin in pieces and begin not in (pad, unk, eos) else "<begin>", eos]
    return [*special, *(piece for piece in pieces if piece not in special)]


def _variables(path: Path) -> dict[str, _Variable]:
    """Read the names (with aliases), shapes and types of all variables, without their values.

    The layout (CTranslate2's specs/model_spec.py): version, name and revision of the specification; for each
    variable name, shape, type, bytes and values; then pairs of alias and name.
    """
    size = path.stat().st_size
    with open_regular(path) as file:
        try:
            (version,) = _numbers(file, "I")
            if version != VERSION:
                raise UnusableModel(
                    f"{path.name} is not a model of CTranslate2, or of version {version:,}", _WHOLE
                )
            kind = _text(file)
            if kind != "TransformerSpec":
                raise UnusableModel(f"{path.name} contains a {shown(kind)}", "a Transformer that translates")
            _, count = _numbers(file, "II")
            variables: dict[str, _Variable] = {}
            for _ in range(min(count, MAX_VARIABLES)):
                name, (rank,) = _text(file), _numbers(file, "B")
                shape = _numbers(file, "I" * rank)
                type_, length = _numbers(file, "BI")
                title, width = TYPES[type_]
                if length != width * math.prod(shape) or file.tell() + length > size:
                    found = f"{name[:100]} in {path.name} declares {width * math.prod(shape):,} bytes"
                    raise UnusableModel(f"{found}, and the file does not have them", _WHOLE)
                file.seek(length, 1)
                variables[name] = _Variable(shape, title)
            (others,) = _numbers(file, "I")
            for _ in range(min(others, MAX_VARIABLES)):
                name, other = _text(file), _text(file)
                variables[name] = variables[other]
            if file.tell() != size:
                raise ValueError
        except (struct.error, KeyError, ValueError):
            raise UnusableModel(f"{path.name} is damaged, or cut off", _WHOLE) from None
    return variables


def _numbers(file: BinaryIO, kinds: str) -> tuple[int, ...]:
    layout = f"<{kinds}"
    return struct.unpack(layout, file.read(struct.calcsize(layout)))


def _text(file: BinaryIO) -> str:
    (length,) = _numbers(file, "H")
    content = file.read(length)
    if len(content) != length:
        raise ValueError
    return content.removesuffix(b"\0").decode()
