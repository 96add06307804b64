"""A model as Marian itself writes it: an .npz file with its settings inside, and vocabularies beside it.

The names and layouts are those that transformers' convert_marian_to_pytorch.py reads: matrices are (input,
output), vectors (1, size). Nothing is unpickled, and no weight is read here. Arrays must be stored
uncompressed, so that a file holds what it declares.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import yaml
from numpy.lib import format as npy
from numpy.typing import NDArray
from pydantic import ValidationError

from creamtea.document.mistakes import shown
from creamtea.document.strict_json import digest
from creamtea.errors import InputError
from creamtea.files import open_regular, read_text
from creamtea.marian import (
    ACTIVATIONS,
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
)
from creamtea.methods.architectures import Layered, SsruArchitecture, TransformerArchitecture
from creamtea.wording import counted

SETTINGS, DECODER, ONE_VOCABULARY = "special:model.yml", "decoder.yml", "vocab.spm"
# settings with the values that map onto our Transformer; what a file does not state is as Marian's default
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
# parts of a layer by their names in transformers: those of matrix (or scale) and bias in Marian
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
    # a decoder of students (Kim et al. 2019; marian-dev, src/rnn/cells.h)
    "ssru.candidate": ("rnn_W", ""), "ssru.forget": ("rnn_Wf", "rnn_bf"),
    "ssru_layer_norm": ("rnn_ffn_ln_scale", "rnn_ffn_ln_bias"),
}  # fmt: skip
OTHERS = {
    "model.shared.weight": "Wemb", "model.encoder.embed_tokens.weight": "encoder_Wemb",
    "model.decoder.embed_tokens.weight": "decoder_Wemb", OUTPUT: "decoder_ff_logit_out_W",
    BIAS: "decoder_ff_logit_out_b",
}  # fmt: skip
_WHOLE = "a whole .npz file of Marian's; copy it again"


def read_marian(path: Path) -> MarianFolder:
    """Check a folder in MarianMT format, a folder with one .npz file, or such a file."""
    files = sorted(path.glob("*.npz")) if path.is_dir() and not (path / WEIGHTS).exists() else []
    if len(files) > 1:
        raise UnusableModel(f"{len(files)} .npz files in {path}", "the path of one of them")
    if files or path.suffix == ".npz":
        return read_npz(files[0] if files else path)
    return read_folder(path)


def marian_name(name: str) -> str:
    """Return Marian's name of a weight of transformers' MarianMT."""
    if layer := re.fullmatch(r"model\.(encoder|decoder)\.layers\.(\d+)\.(.+)\.(weight|bias)", name):
        side, number, part, kind = layer.groups()
        return f"{side}_l{int(number) + 1}_{PARTS[part][kind == 'bias']}"
    return OTHERS[name]


def load_array(path: Path, name: str) -> NDArray[Any]:
    """Read a weight of a checked file by transformers' name, in transformers' layout.

    Marian has no padding symbol; a row of zeros, with which its decoder begins, is added in the last place.
    """
    with zipfile.ZipFile(path) as file, file.open(f"{marian_name(name)}.npy") as member:
        values: NDArray[Any] = npy.read_array(member, allow_pickle=False)
    if name == BIAS:
        return np.pad(values, ((0, 0), (0, 1)))
    if name in OTHERS:
        return np.pad(values.T if name == OUTPUT else values, ((0, 1), (0, 0)))
    return values.T.squeeze(1) if values.shape[0] == 1 else values.T


def read_npz(path: Path) -> MarianFolder:
    """Check a file and its vocabularies; UnusableModel for the first thing that is wrong with them."""
    if not path.is_file():
        raise UnusableModel(f"no file at {path}", "an .npz file of Marian's")
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
    return MarianFolder(
        folder=folder,
        architecture=architecture,
        source=None if vocabularies[0] == vocabularies[1] else vocabularies[0],
        target=vocabularies[1],
        start=sizes[1],
        weights=_check_weights(path, architecture, (sizes[0], sizes[1])),
        digest=digest({name: sha256_of(folder / name) for name in needed}),
        name=folder.resolve().name[:100],
        licence=licence_of(folder),
        file=path.name,
        spm=spm,
    )


# ---------------------------------------------------------------- vocabularies


def _vocabulary_names(folder: Path, has_decoder: bool) -> tuple[str, str]:
    """Return the vocabularies of source and target: those of decoder.yml, vocab.spm, or one for each side."""
    if not has_decoder:
        return (ONE_VOCABULARY,) * 2 if (folder / ONE_VOCABULARY).exists() else (SPM[0], SPM[1])
    named = _yaml(folder / DECODER, MAX_CONFIG).get("vocabs")
    if not isinstance(named, list) or len(named) != 2 or not all(isinstance(name, str) for name in named):
        raise UnusableModel(f"vocabs {shown(named)} in {DECODER}", "a vocabulary for source and target each")
    for name in named:
        if Path(name).name != name or not name.endswith((".spm", ".yml")):
            found = f"the vocabulary {shown(name)} in {DECODER}, a part that does not map"
            raise UnusableModel(found, "a .spm or .yml file in the model's folder")
    return named[0], named[1]


def _yaml(path: Path, most: int) -> dict[str, Any]:
    try:
        return _mapping(read_text(path, path.name, most), path.name)
    except InputError as error:
        raise UnusableModel(str(error), "a YAML file of this model") from None


def _mapping(text: str, name: str) -> dict[str, Any]:
    try:
        content = yaml.safe_load(text)
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
        ids = _yaml(path, MAX_VOCABULARY)
        by_id = {id_: str(piece) for piece, id_ in ids.items()}
        if set(by_id) != set(range(len(ids))):
            raise UnusableModel(f"{path.name} does not number its pieces from 0 on", "an id for each piece")
        pieces = [by_id[id_] for id_ in range(len(ids))]
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
    """Map the settings onto our Transformer; UnusableModel for a part that it lacks."""
    for key, kept in KEPT.items():
        if (value := settings.get(key, kept[0])) not in kept:
            found = f"{key} {shown(value)} in {name}, a part that does not map"
            raise UnusableModel(found, " or ".join(shown(own) for own in kept))
    recurrent = settings.get("transformer-decoder-autoreg") == "rnn"
    if recurrent and (cell := settings.get("dec-cell", "gru")) != "ssru":
        raise UnusableModel(f"dec-cell {shown(cell)} in {name}, a part that does not map", '"ssru"')
    activation = settings.get("transformer-ffn-activation", "swish")
    if activation not in ACTIVATIONS:
        found = f"transformer-ffn-activation {shown(activation)} in {name}, a part that does not map"
        raise UnusableModel(found, f"one of {', '.join(ACTIVATIONS)}")
    every, shared, tied = (settings.get(f"tied-embeddings{end}") is True for end in ("-all", "-src", ""))
    if shared and not (tied or every):
        found = "an output layer apart from embeddings that source and target share, a part that does not map"
        raise UnusableModel(found, "tied-embeddings-all, tied-embeddings, or no tied embeddings")
    inner = settings.get("transformer-dim-ffn")
    if settings.get("transformer-decoder-dim-ffn", 0) not in (0, inner):
        found = f"transformer-decoder-dim-ffn beside transformer-dim-ffn {shown(inner)} in {name}"
        raise UnusableModel(f"{found}, a part that does not map", "the same in encoder and decoder")
    try:
        return (SsruArchitecture if recurrent else TransformerArchitecture).model_validate(
            {
                "encoder_layers": settings.get("enc-depth"),
                "decoder_layers": settings.get("dec-depth"),
                "width": settings.get("dim-emb"),
                "heads": settings.get("transformer-heads"),
                "feed_forward": inner,
                "dropout": settings.get("transformer-dropout", 0.1),
                "attention_dropout": settings.get("transformer-dropout-attention", 0.0),
                "norm": "post",
                "activation": ACTIVATIONS[activation],
                "positions": "marian",
                "tied_embeddings": "all" if every or shared else "target" if tied else "none",
                "scale_embeddings": True,
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        found = f"{first['loc'][-1]} {shown(first['input'])} in {SETTINGS} of {name}"
        raise UnusableModel(found, "sizes of a Transformer") from None


# ---------------------------------------------------------------- weights


def _members(path: Path) -> Iterator[tuple[str, tuple[int, ...], np.dtype[Any], IO[bytes]]]:
    """Yield name, shape and type of each array, with its opened values; UnusableModel if one is not whole."""
    size = path.stat().st_size
    try:
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
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, NotImplementedError, RuntimeError):
        raise UnusableModel(f"{path.name} is damaged, cut off, or not an .npz file", _WHOLE) from None


def _check_weights(path: Path, size: Layered, vocabularies: tuple[int, int]) -> frozenset[str]:
    """Return transformers' names of the weights of a file that has all expected ones and no others."""
    expected: dict[str, tuple[int, ...]] = {}
    for name, shape in expected_shapes(size, vocabularies):
        expected[name] = (1, *shape) if len(shape) == 1 else shape if name == BIAS else shape[::-1]
    embeddings = [names[0] for names in embedding_names(size)]
    for name, count in zip(embeddings, (vocabularies[0], *[vocabularies[1]] * 2), strict=False):
        expected[name] = (size.width, count) if name == OUTPUT else (count, size.width)
    wanted = {marian_name(name): shape for name, shape in expected.items()}
    found = set()
    for name, shape, kind, _ in _members(path):
        if name.startswith("special:"):
            continue
        if name not in wanted:
            raise UnusableModel(
                f"{name[:100]} in {path.name}, a part that does not map", "the weights of a Transformer"
            )
        if kind not in (np.dtype("<f4"), np.dtype("<f2")):
            raise UnusableModel(f"{name} in {path.name} has numbers of type {kind}", "float32 or float16")
        if shape != wanted[name]:
            sizes = [" × ".join(map(str, own)) for own in (shape, wanted[name])]
            raise UnusableModel(f"{name} in {path.name} is {sizes[0]}", f"{sizes[1]}, as its settings say")
        found.add(name)
    if missing := [name for name in wanted if name not in found]:
        others = f" and {counted(len(missing) - 1, 'other')}" if len(missing) > 1 else ""
        lacking = f"no {missing[0]}{others} in {path.name}"
        raise UnusableModel(lacking, "the weights that its settings describe")
    return frozenset(expected)
