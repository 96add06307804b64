"""Check a model in Marian's own format: a file with its settings inside, and vocabularies beside it.

The file is an .npz file, or marian-conv's .bin file, the format of Bergamot's students (Firefox
Translations). Names and layouts are as in transformers' convert_marian_to_pytorch.py: matrices are
(input, output), vectors (1, size). Nothing is unpickled, and checking reads no weights. Arrays must be stored
uncompressed, so that a file cannot declare more than it has.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import yaml
from numpy.lib import format as npy
from numpy.typing import NDArray

from creamtea.document.mistakes import shown
from creamtea.document.values import digest
from creamtea.errors import InputError
from creamtea.files import open_regular, read_text
from creamtea.marian import (
    ACTIVATIONS,
    APART,
    BIAS,
    MAX_CONFIG,
    MAX_VOCABULARY,
    OUTPUT,
    SPECIAL,
    SPM,
    WEIGHTS,
    MarianFolder,
    UnusableModel,
    check_files,
    check_pieces,
    embedding_names,
    expected_shapes,
    licence_of,
    pieces_of,
    read_folder,
    sha256_of,
    sized,
    unmapped,
)
from creamtea.methods.architectures import Layered, SsruArchitecture, TransformerArchitecture
from creamtea.wording import counted

SETTINGS, DECODER = "special:model.yml", "decoder.yml"
# a vocabulary for both sides, or one for each, by the names of Marian and of Bergamot's packages
BOTH_SIDES, EACH_SIDE = "vocab*.spm", ("srcvocab*.spm", "trgvocab*.spm")
MARIANS = ("relu", "swish")  # activations; Marian's "gelu" is x·σ(1.702 x), which is not ours
SCALE = "_QuantMultA"  # ending of the name of a layer's scale of activations, for 8-bit products
# settings with the values that map onto our Transformer, Marian's default first
KEPT: dict[str, tuple[Any, ...]] = {
    "type": ("transformer",), "transformer-preprocess": ("",), "transformer-postprocess": ("dan",),
    "transformer-postprocess-emb": ("d", ""), "transformer-postprocess-top": ("",),
    "transformer-decoder-autoreg": ("self-attention", "rnn"), "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2), "transformer-no-projection": (False,),
    "transformer-no-bias": (False,), "transformer-no-affine": (False,), "transformer-tied-layers": ([],),
    "transformer-train-position-embeddings": (False,), "transformer-rnn-projection": (False,),
    "transformer-disable-position-embeddings": (False,), "transformer-attention-mask": ("default",),
    "transformer-pool": (False,), "ulr": (False,),
    "layer-normalization": (False,), "right-left": (False,), "ulr-dim-emb": (0,), "lemma-dim-emb": (0,),
    "input-types": ([], ["sequence"], ["sequence", "sequence"]),
}  # fmt: skip
# parts of a layer, by name in transformers: Marian's names of matrix (or scale) and bias
PARTS = {
    "fc1": ("ffn_W1", "ffn_b1"), "fc2": ("ffn_W2", "ffn_b2"),
    "final_layer_norm": ("ffn_ffn_ln_scale", "ffn_ffn_ln_bias"),
    **{
        f"{theirs}.{part}_proj": (f"{ours}_W{part[0]}", f"{ours}_b{part[0]}")
        for theirs, ours in (("self_attn", "self"), ("encoder_attn", "context"))
        for part in ("q", "k", "v", "out")
    },
    "self_attn_layer_norm": ("self_Wo_ln_scale", "self_Wo_ln_bias"),
    "encoder_attn_layer_norm": ("context_Wo_ln_scale", "context_Wo_ln_bias"),
    # the decoder of students (Kim et al. 2019; marian-dev, src/rnn/cells.h)
    "ssru.candidate": ("rnn_W", ""), "ssru.forget": ("rnn_Wf", "rnn_bf"),
    "ssru_layer_norm": ("rnn_ffn_ln_scale", "rnn_ffn_ln_bias"),
}  # fmt: skip
OTHERS = {
    "model.shared.weight": "Wemb", "model.encoder.embed_tokens.weight": "encoder_Wemb",
    "model.decoder.embed_tokens.weight": "decoder_Wemb", OUTPUT: "decoder_ff_logit_out_W",
    BIAS: "decoder_ff_logit_out_b",
}  # fmt: skip
_WHOLE = "a whole file of Marian's (.npz, or .bin unpacked); copy it again"


Loader = type[yaml.BaseLoader] | type[yaml.SafeLoader]  # values as text, or as their types


def read_marian(path: Path) -> MarianFolder:
    """Check a folder in MarianMT format, a folder with one file of Marian's, or such a file itself."""
    files: list[Path] = []
    if path.is_dir() and not (path / WEIGHTS).exists():
        files = sorted(file for file in path.iterdir() if file.suffix == ".npz" or _is_binary(file))
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise UnusableModel(f"{len(files)} models in {path}: {names}", "the path of one of them")
    if files or path.suffix in (".npz", ".bin"):
        return read_saved(files[0] if files else path)
    return read_folder(path)


def _is_binary(path: Path) -> bool:
    """Return True if a file is a model by marian-conv; lexicons and pickles may also be called .bin."""
    if path.suffix != ".bin" or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(8) == struct.pack("<Q", VERSION)


def marian_name(name: str) -> str:
    """Return Marian's name for a weight, given its name in transformers' MarianMT."""
    if layer := re.fullmatch(r"model\.(encoder|decoder)\.layers\.(\d+)\.(.+)\.(weight|bias)", name):
        side, number, part, kind = layer.groups()
        return f"{side}_l{int(number) + 1}_{PARTS[part][kind == 'bias']}"
    return OTHERS[name]


def load_array(path: Path, name: str) -> NDArray[Any]:
    """Read a weight of a checked file by transformers' name, in transformers' layout.

    8-bit numbers are multiplied by their scale. Marian has no padding symbol, and its decoder begins with
    zeros: a row of zeros is added at the end of embeddings.
    """
    values: NDArray[Any]
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as file, file.open(f"{marian_name(name)}.npy") as member:
            values = npy.read_array(member, allow_pickle=False)
    else:
        values = next(_values(*found) for found in _of_bin(path) if found[0] == marian_name(name))
    if name == BIAS:
        return np.pad(values, ((0, 0), (0, 1)))
    if name in OTHERS:
        return np.pad(values.T if name == OUTPUT else values, ((0, 1), (0, 0)))
    return values.T.squeeze(1) if values.shape[0] == 1 else values.T


def read_saved(path: Path) -> MarianFolder:
    """Check a file and its vocabularies. Raise UnusableModel for the first mistake."""
    if not path.is_file():
        raise UnusableModel(f"no file at {path}", "an .npz or .bin file of Marian's")
    folder = path.parent
    has_decoder = (folder / DECODER).exists()
    names = _vocabulary_names(folder, has_decoder)
    spm = names if names[0].endswith(".spm") else SPM
    needed = list(dict.fromkeys([path.name, *names, *spm, *([DECODER] if has_decoder else [])]))
    check_files(folder, needed, ())
    settings = _settings(path)
    architecture = _architecture(settings, path.name)
    vocabularies = [[*_vocabulary(folder / name), "<pad>"] for name in names]
    if architecture.tied_embeddings == "all" and vocabularies[0] != vocabularies[1]:
        raise UnusableModel(
            f"embeddings that both sides share, and vocabularies that differ ({' and '.join(names)})",
            "one vocabulary for both sides",
        )
    for name, pieces in zip(spm, vocabularies, strict=True):
        check_pieces(folder / name, pieces)
    sizes = [len(pieces) - 1 for pieces in vocabularies]
    weights, note = _check_weights(path, architecture, (sizes[0], sizes[1]))
    return MarianFolder(
        folder=folder,
        architecture=architecture,
        source=None if vocabularies[0] == vocabularies[1] else vocabularies[0],
        target=vocabularies[1],
        start=sizes[1],
        weights=weights,
        digest=digest({name: sha256_of(folder / name) for name in needed}),
        name=folder.resolve().name[:100],
        licence=licence_of(folder),
        file=path.name,
        spm=spm,
        note=note,
    )


# ---------------------------------------------------------------- vocabularies


def _vocabulary_names(folder: Path, has_decoder: bool) -> tuple[str, str]:
    """Return the vocabularies of source and target, from decoder.yml or by their names."""
    if not has_decoder:
        both, *each = [
            sorted(path.name for path in folder.glob(pattern)) for pattern in (BOTH_SIDES, *EACH_SIDE)
        ]
        if len(both) > 1:
            raise UnusableModel(f"{counted(len(both), 'file')} called {BOTH_SIDES}", "one of them")
        if both:
            return both[0], both[0]
        return (each[0][0], each[1][0]) if [*map(len, each)] == [1, 1] else (SPM[0], SPM[1])
    named = _yaml(folder / DECODER, MAX_CONFIG).get("vocabs")
    if not isinstance(named, list) or len(named) != 2 or not all(isinstance(name, str) for name in named):
        raise UnusableModel(f"vocabs {shown(named)} in {DECODER}", "a vocabulary for source and target each")
    for name in named:
        if Path(name).name != name or not name.endswith((".spm", ".yml")):
            found = f"the vocabulary {shown(name)} in {DECODER}"
            raise unmapped(found, "a .spm or .yml file in the model's folder")
    return named[0], named[1]


def _yaml(path: Path, most: int, loader: Loader = yaml.SafeLoader) -> dict[str, Any]:
    try:
        return _mapping(read_text(path, path.name, most), path.name, loader)
    except InputError as error:
        raise UnusableModel(str(error), "a YAML file of this model") from None


def _mapping(text: str, name: str, loader: Loader = yaml.SafeLoader) -> dict[str, Any]:
    try:
        content = yaml.load(text, loader)  # noqa: S506 - neither loader makes objects
    except (yaml.YAMLError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise UnusableModel(f"{name} is not YAML with keys and values", "a YAML file of this model")
    return content


def _vocabulary(path: Path) -> list[str]:
    """Return the pieces by their ids."""
    if path.suffix == ".spm":
        pieces = pieces_of(path)
    else:
        ids = _yaml(path, MAX_VOCABULARY, yaml.BaseLoader)  # Marian does not quote pieces such as no and 000
        by_id = {id_: piece for piece, id_ in ids.items()}
        if set(by_id) != {*map(str, range(len(ids)))}:
            raise UnusableModel(f"{path.name} does not number its pieces from 0 on", "an id for each piece")
        pieces = [by_id[str(id_)] for id_ in range(len(ids))]
    for piece in SPECIAL[1:]:
        if piece not in pieces:
            raise UnusableModel(f"no {piece} in {path.name}", f"a vocabulary with {', '.join(SPECIAL[1:])}")
    if SPECIAL[0] in pieces:
        raise UnusableModel(f"{SPECIAL[0]} in {path.name}", "a vocabulary without it, as Marian has none")
    return pieces


# ---------------------------------------------------------------- settings


def _settings(path: Path) -> dict[str, Any]:
    for name, shape, kind, member in _members(path):
        if name == SETTINGS:
            if kind.itemsize != 1 or len(shape) != 1 or shape[0] > MAX_CONFIG:
                break
            content = member.read(shape[0]).rstrip(b"\0")
            return _mapping(content.decode("utf-8", "replace"), f"{SETTINGS} in {path.name}")
    raise UnusableModel(f"no readable {SETTINGS} in {path.name}", "a model that Marian has saved")


def _architecture(settings: dict[str, Any], name: str) -> Layered:
    """Map the settings onto our Transformer. Raise UnusableModel for a part that it lacks."""
    for key, kept in KEPT.items():
        if (value := settings.get(key, kept[0])) not in kept:
            raise unmapped(f"{key} {shown(value)} in {name}", " or ".join(shown(own) for own in kept))
    recurrent = settings.get("transformer-decoder-autoreg") == "rnn"
    if recurrent and (cell := settings.get("dec-cell", "gru")) != "ssru":
        raise unmapped(f"dec-cell {shown(cell)} in {name}", '"ssru"')
    activation = settings.get("transformer-ffn-activation", "swish")
    if activation not in MARIANS:
        found = f"transformer-ffn-activation {shown(activation)} in {name}"
        raise unmapped(found, f"one of {', '.join(MARIANS)}")
    every, shared, tied = (settings.get(f"tied-embeddings{end}") is True for end in ("-all", "-src", ""))
    if shared and not (tied or every):
        raise unmapped(APART, "tied-embeddings-all, tied-embeddings, or no tied embeddings")
    inner = settings.get("transformer-dim-ffn")
    if settings.get("transformer-decoder-dim-ffn", 0) not in (0, inner):
        found = f"transformer-decoder-dim-ffn beside transformer-dim-ffn {shown(inner)} in {name}"
        raise unmapped(found, "the same in encoder and decoder")
    sizes = {
        "encoder_layers": settings.get("enc-depth"),
        "decoder_layers": settings.get("dec-depth"),
        "width": settings.get("dim-emb"),
        "heads": settings.get("transformer-heads"),
        "feed_forward": inner,
        "dropout": settings.get("transformer-dropout", 0.1),
        "attention_dropout": settings.get("transformer-dropout-attention", 0.0),
        "activation": ACTIVATIONS[activation],
        "positions": "marian",
        "tied_embeddings": "all" if every or shared else "target" if tied else "none",
        "scale_embeddings": True,
    }
    kind = SsruArchitecture if recurrent else TransformerArchitecture
    return sized(kind, sizes, f"{SETTINGS} of {name}")


# ---------------------------------------------------------------- weights


# an array: name, shape, type of numbers, and the file, positioned at the first number
Member = tuple[str, tuple[int, ...], np.dtype[Any], IO[bytes]]


def _members(path: Path) -> Iterator[Member]:
    """Yield the arrays of a file one after another. Raise UnusableModel if one is incomplete."""
    try:
        yield from _of_npz(path) if path.suffix == ".npz" else _of_bin(path)
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, NotImplementedError, RuntimeError):
        raise UnusableModel(f"{path.name} is damaged, cut off, or not a model of Marian's", _WHOLE) from None


def _of_npz(path: Path) -> Iterator[Member]:
    size = path.stat().st_size
    with open_regular(path) as opened, zipfile.ZipFile(opened) as file:
        if sum(info.file_size for info in file.infolist()) > size:
            declared = sum(info.file_size for info in file.infolist())
            found = f"{path.name} declares {declared:,} bytes of arrays and has {size:,}"
            raise UnusableModel(found, "arrays that are stored, not compressed, as Marian writes them")
        for info in file.infolist():
            name = info.filename.removesuffix(".npy")
            with file.open(info) as member:
                version = npy.read_magic(member)
                read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
                shape, _, kind = read(member)
                if kind.hasobject:
                    found = f"{name[:100]} in {path.name} holds pickled objects, which can run programs"
                    raise UnusableModel(found, "arrays of numbers, as Marian writes them")
                length = math.prod(shape) * kind.itemsize
                if min(shape, default=0) < 0 or member.tell() + length != info.file_size:
                    raise ValueError
                yield name, shape, kind, member


VERSION, MAX_ARRAYS, MAX_NAME, MAX_AXES = 1, 10_000, 1000, 4
# types in a .bin file by their numbers in marian-dev, src/common/types.h; all others depend on the processor
QUANTISED: np.dtype[Any] = np.dtype("i1")  # intgemm8: numbers by columns, then the factor (`_factor`)
KINDS: dict[int, np.dtype[Any]] = {
    0x0404: np.dtype("<f4"),
    0x0402: np.dtype("<f2"),
    0x0101: np.dtype("S1"),
    0x4101: QUANTISED,
}
TABLE = "Wemb"  # ending of the names of embeddings, which intgemm8 stores by rows


def _of_bin(path: Path) -> Iterator[Member]:
    """Yield the arrays of a .bin file (marian-dev, src/common/binary.cpp). Raise ValueError if incomplete."""
    size = path.stat().st_size
    with open_regular(path) as file:

        def numbers(form: str) -> tuple[int, ...]:
            try:
                return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))
            except struct.error:
                raise ValueError from None

        version, count = numbers("2Q")
        if version != VERSION or count > MAX_ARRAYS:
            raise ValueError
        headers = [numbers("4Q") for _ in range(count)]  # bytes of the name, type, axes, bytes of the data
        if any(of_name > MAX_NAME or axes > MAX_AXES for of_name, _, axes, _ in headers):
            raise ValueError
        names = [file.read(header[0]).rstrip(b"\0").decode() for header in headers]
        shapes = [numbers(f"{header[2]}i") for header in headers]
        (place,) = numbers("Q")
        place += file.tell()
        if place + sum(length for *_, length in headers) != size:
            raise ValueError
        for name, shape, (_, type_, _, length) in zip(names, shapes, headers, strict=True):
            if type_ not in KINDS:
                found = (
                    f"{name} in {path.name} has numbers of Marian's type {type_:#06x}, packed for a processor"
                )
                raise UnusableModel(found, "a file of marian-conv of the gemm type float32 or intgemm8")
            needed = math.prod(shape) * KINDS[type_].itemsize + (4 if KINDS[type_] == QUANTISED else 0)
            if min(shape, default=0) < 0 or needed > length:
                raise ValueError
            file.seek(place)
            yield name, shape, KINDS[type_], file
            place += length


def _values(name: str, shape: tuple[int, ...], kind: np.dtype[Any], file: IO[bytes]) -> NDArray[Any]:
    values: NDArray[Any] = np.frombuffer(file.read(math.prod(shape) * kind.itemsize), kind)
    if kind != QUANTISED:
        return values.reshape(shape).copy()  # the bytes are read-only
    rows = values.reshape(shape) if name.endswith(TABLE) else values.reshape(shape[::-1]).T
    return rows * (np.float32(1) / np.float32(_factor(file)))


def _factor(file: IO[bytes]) -> float:
    """Read the factor that 8-bit numbers were multiplied by; it is stored after them."""
    factor: float = struct.unpack("<f", file.read(4))[0]
    return factor


def _check_weights(path: Path, size: Layered, vocabularies: tuple[int, int]) -> tuple[frozenset[str], str]:
    """Check that a file has all expected weights and no others.

    Returns the weights' names in transformers, and a note on 8-bit numbers.
    """
    expected: dict[str, tuple[int, ...]] = {}
    for name, shape in expected_shapes(size, vocabularies):
        expected[name] = (1, *shape) if len(shape) == 1 else shape if name == BIAS else shape[::-1]
    embeddings = [names[0] for names in embedding_names(size)]
    for name, count in zip(embeddings, (vocabularies[0], *[vocabularies[1]] * 2), strict=False):
        expected[name] = (size.width, count) if name == OUTPUT else (count, size.width)
    wanted = {marian_name(name): shape for name, shape in expected.items()}
    found, of_8_bits, scales = set(), 0, 0
    for name, shape, kind, member in _members(path):
        if name.startswith("special:"):
            continue
        if name.endswith(SCALE):
            scales += 1
            continue
        if name not in wanted:
            raise unmapped(f"{name[:100]} in {path.name}", "the weights of a Transformer")
        quantised = path.suffix == ".bin" and kind == QUANTISED
        if kind not in (np.dtype("<f4"), np.dtype("<f2")) and not quantised:
            raise UnusableModel(f"{name} in {path.name} has numbers of type {kind}", "float32 or float16")
        if shape != wanted[name]:
            sizes = [" × ".join(map(str, own)) for own in (shape, wanted[name])]
            raise UnusableModel(f"{name} in {path.name} is {sizes[0]}", f"{sizes[1]}, as its settings say")
        if quantised:
            of_8_bits += 1
            member.seek(math.prod(shape), io.SEEK_CUR)
            if not 0 < (factor := _factor(member)) < math.inf:
                multiplied = f"{name} in {path.name}, whose 8-bit numbers were multiplied by {factor}"
                raise UnusableModel(multiplied, "a finite factor above 0")
        found.add(name)
    if missing := [name for name in wanted if name not in found]:
        others = f" and {counted(len(missing) - 1, 'other')}" if len(missing) > 1 else ""
        lacking = f"no {missing[0]}{others} in {path.name}"
        raise UnusableModel(lacking, "the weights that its settings describe")
    note = ""
    if of_8_bits:
        left_out = f"; {counted(scales, 'scale')} of theirs in the file go unused" if scales else ""
        note = (
            f"{counted(of_8_bits, 'matrix', 'matrices')} of 8 bits. Bergamot also quantises activations"
            f"{left_out}: outputs may differ a little"
        )
    return frozenset(expected), note
