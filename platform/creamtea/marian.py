"""Check a folder with a model in Hugging Face's MarianMT format (OPUS-MT).

Nothing in a folder is executed. The only weights that are read are stored position vectors; sizes come from
the header of `model.safetensors` and must fill the file. A model that does not map onto
`creamtea.methods.architectures` is an `UnusableModel`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from creamtea.document.mistakes import shown
from creamtea.document.values import digest
from creamtea.errors import InputError
from creamtea.files import open_regular, read_text
from creamtea.methods.architectures import Layered, TransformerArchitecture
from creamtea.wording import counted

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocab.json"
GENERATION = "generation_config.json"  # where transformers 5 saves what `generate` reads
SPM = ("source.spm", "target.spm")
NEEDED = (CONFIG, WEIGHTS, *SPM, VOCABULARY)
TARGET_VOCABULARY = "target_vocab.json"  # only if the two sides have separate vocabularies
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"}
SPECIAL = ("<pad>", "<unk>", "</s>")
OUTPUT = "lm_head.weight"
BIAS = "final_logits_bias"
POSITIONS = tuple(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder"))
TYPES = {"F32": 4, "F16": 2, "BF16": 2}  # bytes of a number
MAX_CONFIG, MAX_VOCABULARY, MAX_SPM, MAX_HEADER = 1 << 20, 1 << 26, 1 << 26, 1 << 24  # bytes
# creamtea has no such layer
APART = "an output layer apart from embeddings that source and target share"
KNOWN_SHARE = 0.5  # a vocabulary must hold this share of its SentencePiece model's pieces
_PICKLES = ("pytorch_model.bin", "tf_model.h5", "flax_model.msgpack", "rust_model.ot")
_CONVERT = (
    'python -c "from transformers import MarianMTModel as M; '
    "M.from_pretrained('FOLDER').save_pretrained('FOLDER', safe_serialization=True)\""
)


class UnusableModel(Exception):
    """The folder's model is unusable; the message says what was found and what is allowed."""

    def __init__(self, found: str, allowed: str) -> None:
        super().__init__(f"{found}; allowed: {allowed}")
        self.found, self.allowed = found, allowed


def unmapped(found: str, allowed: str) -> UnusableModel:
    """Return the error for a part that creamtea's Transformer lacks."""
    return UnusableModel(f"{found}, a part that does not map", allowed)


@dataclass(frozen=True)
class MarianFolder:
    """A folder that has been checked."""

    folder: Path
    architecture: Layered
    source: list[str] | None  # pieces by their ids in the file; None: the target's
    target: list[str]
    start: int  # the id of the decoder's first token
    weights: frozenset[str]  # names of tensors
    digest: str  # digest of all files that are read
    name: str  # "Helsinki-NLP/opus-mt-en-de"; by default the folder's name
    licence: str  # "" if the folder does not state one
    file: str = WEIGHTS  # the file with the weights
    spm: tuple[str, str] = SPM  # SentencePiece models of source and target
    note: str = ""  # a note on numbers that change on import


def order(pieces: list[str], start: int | None = None) -> list[int]:
    """Return the file's id of each of our pieces.

    Ours are pad 0, unk 1, bos 2 (the decoder's first token), eos 3, and then the others in their order.
    Marian's decoder begins with its pad, which therefore occurs twice.
    """
    pad, unk, eos = map(pieces.index, SPECIAL)
    first = [pad, unk, pad if start is None else start, eos]
    return [*first, *(id_ for id_ in range(len(pieces)) if id_ not in first)]


def read_folder(folder: Path) -> MarianFolder:
    """Check a folder. Raise UnusableModel for the first mistake."""
    if not folder.is_dir():
        raise UnusableModel(
            f"no folder at {folder}", "a folder with a model of Hugging Face's MarianMT format"
        )
    check_files(folder, NEEDED, [TARGET_VOCABULARY, GENERATION])
    config = read_json(folder / CONFIG, MAX_CONFIG)
    if config.get("model_type") != "marian":
        found = f"the model type {shown(config.get('model_type'))} in {CONFIG}"
        raise UnusableModel(found, 'a model of type "marian"')
    architecture = _architecture(config)
    apart = config.get("share_encoder_decoder_embeddings") is False
    separate = apart and (folder / TARGET_VOCABULARY).exists()
    names = [*NEEDED, *([TARGET_VOCABULARY] if separate else [])]
    source = _vocabulary(folder, VOCABULARY, _integer(config, "vocab_size"))
    target = source
    if separate:
        target = _vocabulary(folder, TARGET_VOCABULARY, _integer(config, "decoder_vocab_size", "vocab_size"))
    for name, pieces in zip(SPM, (source, target), strict=True):
        check_pieces(folder / name, pieces)
    start = _start(config, target)
    constraints = {  # on outputs, with the values that change none here
        "forced_bos_token_id": (None,),
        "suppress_tokens": (None, []),
        "bad_words_ids": (None, [[target.index(SPECIAL[0])]]),
    }
    generation = read_json(folder / GENERATION, MAX_CONFIG) if (folder / GENERATION).exists() else {}
    for place, given in ((CONFIG, config), (GENERATION, generation)):
        for key, kept in constraints.items():
            if given.get(key) not in kept:
                raise unmapped(f"{key} {shown(given[key])} in {place}", " or ".join(map(shown, kept)))
    name, revision = config.get("_name_or_path"), config.get("_commit_hash")
    known = isinstance(name, str) and name.strip() and not Path(name).is_absolute()
    words = [name if known else folder.resolve().name, revision if isinstance(revision, str) else ""]
    return MarianFolder(
        folder=folder,
        architecture=architecture,
        source=source if separate else None,
        target=target,
        start=start,
        weights=_check_weights(folder / WEIGHTS, architecture, (len(source), len(target))),
        digest=digest({name: sha256_of(folder / name) for name in names}),
        name=" ".join(str(word)[:100] for word in words if word),
        licence=licence_of(folder),
    )


# ---------------------------------------------------------------- files


def check_files(folder: Path, needed: Sequence[str], others: Sequence[str]) -> None:
    """Refuse a folder without a needed file, or with a link that leads out of it."""
    home = folder.resolve()
    for name in [*needed, *others, "README.md"]:
        path = folder / name
        if not path.exists():
            if name in needed:
                raise _missing(folder, name, needed)
        elif not path.resolve().is_relative_to(home):
            raise UnusableModel(
                f"{name} is a link that leads out of the folder",
                "files inside it; copy a model out of Hugging Face's cache with `cp -rL`",
            )
        elif not path.is_file():
            raise UnusableModel(f"{name} is not a file", "a file of this name")


def _missing(folder: Path, name: str, needed: Sequence[str]) -> UnusableModel:
    others = [other for other in _PICKLES if (folder / other).exists()]
    if name == WEIGHTS and others:
        return UnusableModel(
            f"weights in {others[0]} alone, a format that is not read, as a pickle can run programs",
            f"{WEIGHTS}; convert the model where you trust it: {_CONVERT}",
        )
    if name == WEIGHTS and (folder / f"{WEIGHTS}.index.json").exists():
        return UnusableModel("weights in several files", f"one {WEIGHTS} (save_pretrained's max_shard_size)")
    return UnusableModel(f"no {name} in {folder}", f"{', '.join(needed)} of one model")


def read_json(path: Path, most: int, kind: type = dict) -> Any:
    """Read a JSON file that holds an object, or a list (`kind`)."""
    allowed = "a JSON file of this model"
    try:
        content = json.loads(read_text(path, path.name, most))
    except InputError as error:
        raise UnusableModel(str(error), allowed) from None
    except (ValueError, RecursionError):
        raise UnusableModel(f"{path.name} is not JSON", allowed) from None
    if not isinstance(content, kind):
        what = "an object" if kind is dict else "a list"
        raise UnusableModel(f"{path.name} does not hold {what}", allowed)
    return content


def sha256_of(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def licence_of(folder: Path) -> str:
    """Return the licence in the front matter of the model's card."""
    try:
        text = read_text(folder / "README.md", "README.md", MAX_CONFIG)
    except InputError:
        return ""
    head = text.split("\n---", 1)[0] if text.startswith("---") else ""
    stated = re.search(r"^license:\s*(\S.{0,60}?)\s*$", head, re.MULTILINE)
    return stated[1] if stated else ""


# ---------------------------------------------------------------- configuration


def _integer(config: dict[str, Any], key: str, otherwise: str = "") -> int:
    value = config.get(key)
    value = config.get(otherwise) if value is None and otherwise else value
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnusableModel(f"{key} {shown(value)} in {CONFIG}", "a number")
    return value


def _architecture(config: dict[str, Any]) -> Layered:
    """Map the configuration onto our Transformer. Raise UnusableModel for a part that it lacks."""
    for key, kept in (
        ("normalize_before", False), ("normalize_embedding", False), ("add_final_layer_norm", False),
        ("static_position_embeddings", True),
    ):  # fmt: skip
        if config.get(key, kept) != kept:
            allowed = f"{str(kept).lower()}, as Marian has it"
            raise unmapped(f"{key} {shown(config[key])} in {CONFIG}", allowed)
    for what in ("attention_heads", "ffn_dim"):
        sides = [_integer(config, f"{side}_{what}") for side in ("encoder", "decoder")]
        if sides[0] != sides[1]:
            found = f"{what} {sides[0]} in the encoder and {sides[1]} in the decoder"
            raise unmapped(found, "the same in both")
    activation = config.get("activation_function")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        found = f"activation_function {shown(activation)} in {CONFIG}"
        raise unmapped(found, f"one of {', '.join(ACTIVATIONS)}")
    shared = config.get("share_encoder_decoder_embeddings", True) is True
    tied = config.get("tie_word_embeddings", True) is True
    if shared and not tied:
        raise unmapped(APART, "tie_word_embeddings true, or share_encoder_decoder_embeddings false")
    sizes = {
        "encoder_layers": _integer(config, "encoder_layers"),
        "decoder_layers": _integer(config, "decoder_layers"),
        "width": _integer(config, "d_model"),
        "heads": _integer(config, "encoder_attention_heads"),
        "feed_forward": _integer(config, "encoder_ffn_dim"),
        "dropout": config.get("dropout", 0.1),
        "attention_dropout": config.get("attention_dropout", 0.0),
        "activation": ACTIVATIONS[activation],
        "positions": "halves",
        "tied_embeddings": "all" if shared else "target" if tied else "none",
        "scale_embeddings": config.get("scale_embedding", False) is True,
    }
    return sized(TransformerArchitecture, sizes, CONFIG)


def sized(kind: type[Layered], sizes: dict[str, Any], place: str) -> Layered:
    """Make a post-norm architecture with the sizes in a model's file; `place` is for the message."""
    try:
        return kind.model_validate({**sizes, "norm": "post"})
    except ValidationError as error:
        first = error.errors()[0]
        found = f"{first['loc'][-1]} {shown(first['input'])} in {place}"
        raise UnusableModel(found, "sizes of a Transformer") from None


# ---------------------------------------------------------------- vocabularies


def _vocabulary(folder: Path, name: str, size: int) -> list[str]:
    """Return the pieces by their ids."""
    ids = read_json(folder / name, MAX_VOCABULARY)
    by_id = {id_: piece for piece, id_ in ids.items() if isinstance(id_, int)}
    if len(by_id) < len(ids) or set(by_id) != set(range(len(ids))):
        raise UnusableModel(f"{name} does not number its pieces from 0 on", "an id for each piece")
    if missing := [piece for piece in SPECIAL if piece not in ids]:
        raise UnusableModel(f"no {missing[0]} in {name}", f"a vocabulary with {', '.join(SPECIAL)}")
    if len(ids) != size:
        found = f"{counted(len(ids), 'piece')} in {name}, {size:,} in {CONFIG}"
        raise UnusableModel(found, "files of one model, with vocabularies of the same size")
    return [by_id[id_] for id_ in range(size)]


def _start(config: dict[str, Any], pieces: list[str]) -> int:
    for key, piece in (("pad", "<pad>"), ("eos", "</s>")):
        if pieces.index(piece) != _integer(config, f"{key}_token_id"):
            found = f"{key}_token_id in {CONFIG} is not the id of {piece} in the vocabulary"
            raise UnusableModel(found, "files of one model")
    start = _integer(config, "decoder_start_token_id")
    if start >= len(pieces):
        raise UnusableModel(f"decoder_start_token_id {start:,} in {CONFIG}", "an id of the vocabulary")
    return start


def check_pieces(path: Path, vocabulary: list[str]) -> None:
    """Refuse a SentencePiece model that does not fit the vocabulary: most pieces would be unknown."""
    pieces = pieces_of(path)
    known = len({*pieces} & {*vocabulary})
    if known < KNOWN_SHARE * len({*pieces}):
        found = f"{path.name} has {counted(len(pieces), 'piece')}, but the vocabulary has only {known:,}"
        raise UnusableModel(found, "files of one model")


def pieces_of(path: Path) -> list[str]:
    """Return the pieces of a SentencePiece model by their ids."""
    with open_regular(path) as file:
        content = file.read(MAX_SPM + 1)
    try:
        # field 1 of each message in field 1 of a protocol buffer
        messages = (
            [value for field, value in _fields(content) if field == 1] if len(content) <= MAX_SPM else []
        )
        pieces = [value.decode() for message in messages for field, value in _fields(message) if field == 1]
    except (IndexError, ValueError):
        pieces = []
    if not pieces:
        raise UnusableModel(f"{path.name} is not a SentencePiece model", "the model that segments this side")
    return pieces


def _fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield a protocol buffer's length-delimited fields. Raise IndexError or ValueError if malformed."""
    place = 0
    while place < len(content):
        tag, place = _number(content, place)
        match tag & 7:
            case 0:
                _, place = _number(content, place)
            case 1 | 5:
                place += 8 if tag & 7 == 1 else 4
            case 2:
                length, place = _number(content, place)
                if place + length > len(content):
                    raise ValueError
                yield tag >> 3, content[place : place + length]
                place += length
            case _:
                raise ValueError


def _number(content: bytes, place: int) -> tuple[int, int]:
    """Read a number with seven bits per byte; return it and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        value |= (content[place] & 127) << shift
        place += 1
        if content[place - 1] < 128:
            return value, place
    raise ValueError


# ---------------------------------------------------------------- weights


class _Tensor(NamedTuple):
    shape: tuple[int, ...]
    kind: str
    begin: int  # position in the file
    end: int


def _header(path: Path) -> dict[str, _Tensor]:
    """Read a safetensors file's header; check that its tensors fill the file."""
    allowed = "a whole safetensors file; copy it again"
    damaged = UnusableModel(f"{path.name} has a damaged header", allowed)
    size = path.stat().st_size
    with open_regular(path) as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(MAX_HEADER, size - 8):
            raise UnusableModel(f"{path.name} is not a safetensors file, or is cut off", allowed)
        content = file.read(length)
    tensors = {}
    try:
        for name, value in json.loads(content).items():
            if name == "__metadata__":
                continue
            kind, (begin, end) = value["dtype"], value["data_offsets"]
            tensors[name] = _Tensor(tuple(value["shape"]), kind, 8 + length + begin, 8 + length + end)
            if kind not in TYPES:
                found = f"{name} in {path.name} has numbers of type {shown(kind)}"
                raise UnusableModel(found, f"one of {', '.join(TYPES)}")
            if any(part < 0 for part in value["shape"]):
                raise damaged
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise damaged from None
    place = 8 + length
    for tensor in sorted(tensors.values(), key=lambda tensor: tensor.begin):
        if tensor.begin != place or tensor.end - place != TYPES[tensor.kind] * math.prod(tensor.shape):
            raise damaged
        place = tensor.end
    if place != size:
        found = (
            f"{path.name} declares {place - 8 - length:,} bytes of weights and holds {size - 8 - length:,}"
        )
        raise UnusableModel(found, allowed)
    return tensors


def embedding_names(size: Layered) -> list[tuple[str, ...]]:
    """Return the possible names of each embedding matrix.

    There is one matrix for all, one for the source and one for target and output, or one for each. A file has
    a matrix under one or several of its names.
    """
    source, target, output = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", OUTPUT
    match size.tied_embeddings:
        case "all":
            return [("model.shared.weight", source, target, output)]
        case "target":
            return [(source,), (target, output)]
        case _:
            return [(source,), (target,), (output,)]


def expected_shapes(size: Layered, vocabularies: tuple[int, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and shape of each tensor except embeddings and positions.

    The names are transformers' names, and `ssru` for SSRUs, which transformers does not have.
    """
    d, inner = size.width, size.feed_forward
    before = () if size.recurrent else ("self_attn",)
    for side, layers, attentions in (
        ("encoder", size.encoder_layers, ("self_attn",)),
        ("decoder", size.decoder_layers, (*before, "encoder_attn")),
    ):
        for layer in range(layers):
            start = f"model.{side}.layers.{layer}"
            matrices = [
                (f"{attention}.{part}_proj", (d, d))
                for attention in attentions
                for part in ("q", "k", "v", "out")
            ]
            for name, shape in (*matrices, ("fc1", (inner, d)), ("fc2", (d, inner))):
                yield f"{start}.{name}.weight", shape
                yield f"{start}.{name}.bias", shape[:1]
            for name in (*(f"{attention}_layer_norm" for attention in attentions), "final_layer_norm"):
                yield f"{start}.{name}.weight", (d,)
                yield f"{start}.{name}.bias", (d,)
            if side == "decoder" and size.recurrent:
                yield f"{start}.ssru.candidate.weight", (d, d)
                yield f"{start}.ssru.forget.weight", (d, d)
                for name in ("ssru.forget.bias", "ssru_layer_norm.weight", "ssru_layer_norm.bias"):
                    yield f"{start}.{name}", (d,)
    yield BIAS, (1, vocabularies[1])


def _check_weights(path: Path, size: Layered, vocabularies: tuple[int, int]) -> frozenset[str]:
    """Return the names of a file's tensors; refuse missing and unknown tensors."""
    tensors, expected = _header(path), dict(expected_shapes(size, vocabularies))
    embeddings = embedding_names(size)
    missing = [name for name in expected if name not in tensors]
    missing += [names[0] for names in embeddings if not {*names} & {*tensors}]
    if missing:
        raise UnusableModel(f"no {missing[0]} in {WEIGHTS}", f"the weights that {CONFIG} describes")
    sides = (vocabularies[0], *[vocabularies[1]] * (len(embeddings) - 1))
    for names, count in zip(embeddings, sides, strict=True):
        expected |= dict.fromkeys(names, (count, size.width))
    for name, tensor in tensors.items():
        if name in POSITIONS:
            _check_positions(path, name, tensor, size.width)
        elif name not in expected:
            raise unmapped(f"{name} in {WEIGHTS}", "the weights of a MarianMT model")
        elif tensor.shape != expected[name]:
            sizes = [" × ".join(map(str, shape)) or "a number" for shape in (tensor.shape, expected[name])]
            raise UnusableModel(f"{name} in {WEIGHTS} is {sizes[0]}", f"{sizes[1]}, as {CONFIG} has it")
    return frozenset(tensors)


def _check_positions(path: Path, name: str, tensor: _Tensor, width: int) -> None:
    """Check that stored position vectors are Marian's, because creamtea computes them itself."""
    rows = min(64, tensor.shape[0]) if tensor.shape[1:] == (width,) else 0
    with open_regular(path) as file:
        file.seek(tensor.begin)
        content = file.read(rows * width * TYPES[tensor.kind])
    numbers = np.frombuffer(content, {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}[tensor.kind])
    if tensor.kind == "BF16":
        numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
    angle = np.arange(rows)[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
    wanted = np.concatenate([np.sin(angle), np.cos(angle)[:, : width // 2]], axis=1)
    if not rows or np.abs(numbers.reshape(wanted.shape) - wanted).max() > 0.01:
        found = f"{name} in {WEIGHTS}, whose vectors are not Marian's sines and cosines"
        raise unmapped(found, "positions that Marian computes")
