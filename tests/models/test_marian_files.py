"""Models as Marian writes them: the same numbers as the MarianMT folder that they come from, and refusals."""

import base64
import itertools
import json
import os
import re
import shutil
import struct
import subprocess
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch
import yaml
from broken_files import Change, Ran, linked, rewritten, written
from marian_folders import SIDES, make_folder, random_weights
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from step_context import Context

from creamtea.marian import UnusableModel, order, read_folder
from creamtea.marian_files import read_marian
from creamtea.steps.systems import IMPORT_MODEL
from creamtea.words import normalise
from creamtea_workers.corpora.subwords import MarianSubwords
from creamtea_workers.models.interface import BOS, EOS, PAD, output_logits
from creamtea_workers.models.marian import load_marian
from creamtea_workers.objectives import build_objective
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.translator import Translator
from creamtea_workers.selection.tables import FullSelector

APART = {"share_encoder_decoder_embeddings": False}
BERGAMOT = json.loads((Path(__file__).parent / "bergamot.json").read_text())
KINDS: dict[str, dict[str, Any]] = {
    "tied": {},
    "half": {**APART, "separate_vocabs": True, "activation_function": "relu", "more_sources": 20},
    "untied": {**APART, "tie_word_embeddings": False},
}
Arrays = dict[str, Any]
Array = NDArray[np.float64]


def settings_of(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that Marian stores, of transformers' configuration."""
    shared, tied = config["share_encoder_decoder_embeddings"], config["tie_word_embeddings"]
    return {
        "type": "transformer", "dim-emb": config["d_model"], "dec-depth": config["decoder_layers"],
        "enc-depth": config["encoder_layers"], "transformer-heads": config["encoder_attention_heads"],
        "transformer-dim-ffn": config["encoder_ffn_dim"], "transformer-preprocess": "",
        "transformer-postprocess": "dan", "transformer-postprocess-emb": "d",
        "transformer-ffn-activation": config["activation_function"], "transformer-ffn-depth": 2,
        "transformer-decoder-autoreg": "self-attention", "transformer-tied-layers": [],
        "transformer-train-position-embeddings": False, "transformer-no-projection": False,
        "layer-normalization": False, "right-left": False, "ulr-dim-emb": 0, "lemma-dim-emb": 0,
        "tied-embeddings-all": shared, "tied-embeddings": tied and not shared, "version": "v1.12.0",
        "dim-vocabs": [config["vocab_size"] - 1, config["decoder_vocab_size"] - 1],
    }  # fmt: skip


def arrays_of(folder: Path, config: dict[str, Any]) -> Arrays:
    """The arrays that Marian stores, of a MarianMT folder's weights; written out name by name."""
    weights, arrays = load_file(folder / "model.safetensors"), {}
    arrays["decoder_ff_logit_out_b"] = weights["final_logits_bias"][:, :-1]
    if config["share_encoder_decoder_embeddings"]:
        arrays["Wemb"] = weights["model.shared.weight"][:-1]
    else:
        for side in ("encoder", "decoder"):
            arrays[f"{side}_Wemb"] = weights[f"model.{side}.embed_tokens.weight"][:-1]
    if "lm_head.weight" in weights:
        arrays["decoder_ff_logit_out_W"] = weights["lm_head.weight"][:-1].T
    for side in ("encoder", "decoder"):
        for layer in range(config[f"{side}_layers"]):
            theirs, ours = f"model.{side}.layers.{layer}", f"{side}_l{layer + 1}"
            attentions = {"self": "self_attn"} | ({"context": "encoder_attn"} if side == "decoder" else {})
            for short, long in attentions.items():
                for letter, part in (("q", "q_proj"), ("k", "k_proj"), ("v", "v_proj"), ("o", "out_proj")):
                    arrays[f"{ours}_{short}_W{letter}"] = weights[f"{theirs}.{long}.{part}.weight"].T
                    arrays[f"{ours}_{short}_b{letter}"] = weights[f"{theirs}.{long}.{part}.bias"][None]
                norm = f"{theirs}.{long}_layer_norm"
                arrays[f"{ours}_{short}_Wo_ln_scale"] = weights[f"{norm}.weight"][None]
                arrays[f"{ours}_{short}_Wo_ln_bias"] = weights[f"{norm}.bias"][None]
            for number in (1, 2):
                arrays[f"{ours}_ffn_W{number}"] = weights[f"{theirs}.fc{number}.weight"].T
                arrays[f"{ours}_ffn_b{number}"] = weights[f"{theirs}.fc{number}.bias"][None]
            arrays[f"{ours}_ffn_ffn_ln_scale"] = weights[f"{theirs}.final_layer_norm.weight"][None]
            arrays[f"{ours}_ffn_ffn_ln_bias"] = weights[f"{theirs}.final_layer_norm.bias"][None]
    return arrays


def save(path: Path, arrays: Arrays, settings: dict[str, Any]) -> None:
    text = yaml.safe_dump(settings).encode() + b"\0"
    content = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
    np.savez(path, **content, **{"special:model.yml": np.frombuffer(text, np.int8)})


def stored(folder: Path) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the settings of folder/model.npz."""
    with np.load(folder / "model.npz") as file:
        arrays = {name: file[name] for name in file.files}
    return arrays, yaml.safe_load(arrays.pop("special:model.yml").tobytes().rstrip(b"\0"))


def make_marian(root: Path, **changes: Any) -> Path:
    """Write root/hf, and of the same weights root/marian with model.npz, decoder.yml and vocabularies."""
    config = make_folder(root / "hf", **changes)
    folder = root / "marian"
    folder.mkdir()
    names = []
    for side, file in (("source", "vocab.json"), ("target", "target_vocab.json")):
        shutil.copyfile(root / "hf" / f"{side}.spm", folder / f"{side}.spm")
        own = root / "hf" / (file if (root / "hf" / file).exists() else "vocab.json")
        ids = {piece: id_ for piece, id_ in json.loads(own.read_text()).items() if piece != "<pad>"}
        names.append(f"{own.stem}.yml")
        (folder / names[-1]).write_text(yaml.safe_dump(ids, allow_unicode=True))
    (folder / "decoder.yml").write_text(yaml.safe_dump({"models": ["model.npz"], "vocabs": names}))
    save(folder / "model.npz", arrays_of(root / "hf", config), settings_of(config))
    return folder


def save_bin(path: Path, arrays: Arrays, settings: dict[str, Any], bits: int) -> None:
    """Write a .bin file as marian-conv does, matrices in 32 or 8 bits (marian-dev: src/common/binary.cpp,
    src/tensors/cpu/expression_graph_packable.h)."""
    text = yaml.safe_dump(settings).encode() + b"\0"
    items = [("special:model.yml", 0x0101, (len(text),), text)]
    for name, values in arrays.items():
        numbers, type_ = values.astype("<f4").tobytes(), 0x0404
        if bits == 8 and ("Wemb" in name or "_W" in name[-3:]):
            factor = np.float32(127 / np.abs(values).max())
            rounded = np.rint((values if "Wemb" in name else values.T) * factor).astype(np.int8)
            numbers, type_ = rounded.tobytes() + factor.tobytes(), 0x4101
        items.append((name, type_, values.shape, numbers))
    if bits == 8:
        items.append(("encoder_l1_self_Wq_QuantMultA", 0x0404, (1, 1), np.float32(9.5).tobytes()))
    padded = [numbers + bytes(-len(numbers) % 256) for *_, numbers in items]
    start = struct.pack("<2Q", 1, len(items))
    for (name, type_, shape, _), numbers in zip(items, padded, strict=True):
        start += struct.pack("<4Q", len(name) + 1, type_, len(shape), len(numbers))
    start += b"".join(name.encode() + b"\0" for name, *_ in items)
    start += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    gap = 256 - (len(start) + 8) % 256
    path.write_bytes(start + struct.pack("<Q", gap) + bytes(gap) + b"".join(padded))


def with_ssrus(arrays: Arrays, settings: dict[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    """Replace self-attention in the decoder."""
    draw, width = np.random.default_rng(1), settings["dim-emb"]
    kept = {name: values for name, values in arrays.items() if not re.match(r"decoder_l\d_self", name)}
    for layer in range(1, settings["dec-depth"] + 1):
        start = f"decoder_l{layer}_rnn"
        for part in ("W", "Wf"):
            kept[f"{start}_{part}"] = draw.normal(0, 1.6 / width**0.5, (width, width))
        kept |= {f"{start}_bf": draw.normal(0, 1, (1, width))}
        kept |= {
            f"{start}_ffn_ln_{part}": draw.normal(part == "scale", 0.2, (1, width))
            for part in ("scale", "bias")
        }
    kept = {name: np.asarray(values, np.float32) for name, values in kept.items()}
    recurrent = {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
    return kept, {**settings, **recurrent, "transformer-ffn-activation": "relu"}


def make_student(root: Path) -> Path:
    """Write what `make_marian` does, with SSRUs in the decoder, as students of Bergamot have them."""
    folder = make_marian(root)
    save(folder / "model.npz", *with_ssrus(*stored(folder)))
    return folder


def logits_of(arrays: Arrays, settings: dict[str, Any], source: list[int], target: list[int]) -> Array:
    """Marian's forward pass by Marian's own names and formulas (marian-dev, src/models/transformer.h,
    src/rnn/cells.h, src/tensors/cpu/tensor_operators.cpp). `target` comes without the vector of zeros that
    the decoder begins with."""
    width, heads = settings["dim-emb"], settings["transformer-heads"]
    w = {name: np.asarray(values, np.float64) for name, values in arrays.items()}
    source_table, target_table = (w.get("Wemb", w.get(f"{side}_Wemb")) for side in ("encoder", "decoder"))
    output = w.get("decoder_ff_logit_out_W", target_table.T)

    def embedded(vectors: Array) -> Array:
        rates = 10000 ** (-np.arange(width // 2) / (width // 2 - 1))
        angle = np.arange(len(vectors))[:, None] * rates
        return vectors * np.sqrt(width) + np.concatenate([np.sin(angle), np.cos(angle)], axis=1)

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-6)
        return scaled * w[f"{name}_ln_scale"] + w[f"{name}_ln_bias"]

    def affine(x: Array, name: str, part: str) -> Array:
        return x @ w[f"{name}_W{part}"] + w[f"{name}_b{part}"]

    def attention(x: Array, memory: Array, name: str, causal: bool = False) -> Array:
        q, k, v = (
            affine(own, name, part).reshape(len(own), heads, -1)
            for own, part in ((x, "q"), (memory, "k"), (memory, "v"))
        )
        scores = np.exp(np.einsum("qhd,khd->hqk", q, k) / np.sqrt(width / heads))
        scores = np.tril(scores) if causal else scores
        mixed = np.einsum("hqk,khd->qhd", scores / scores.sum(axis=2, keepdims=True), v)
        return norm(x + affine(mixed.reshape(len(x), width), name, "o"), f"{name}_Wo")

    def feed(x: Array, name: str) -> Array:
        inner = affine(x, name, "1")
        relu = settings["transformer-ffn-activation"] == "relu"
        inner = np.maximum(inner, 0) if relu else inner / (1 + np.exp(-inner))
        return norm(x + affine(inner, name, "2"), f"{name}_ffn")

    def ssru(x: Array, name: str) -> Array:
        cell, outputs = np.zeros(width), []
        for row in x:
            gate = 1 / (1 + np.exp(-(row @ w[f"{name}_Wf"] + w[f"{name}_bf"][0])))
            cell = gate * cell + (1 - gate) * (row @ w[f"{name}_W"])
            outputs.append(np.maximum(cell, 0))
        return norm(x + np.array(outputs), f"{name}_ffn")

    memory = embedded(source_table[source])
    for layer in range(1, settings["enc-depth"] + 1):
        memory = feed(attention(memory, memory, f"encoder_l{layer}_self"), f"encoder_l{layer}_ffn")
    x = embedded(np.concatenate([np.zeros((1, width)), target_table[target]]))
    for layer in range(1, settings["dec-depth"] + 1):
        name = f"decoder_l{layer}"
        recurrent = settings["transformer-decoder-autoreg"] == "rnn"
        x = ssru(x, f"{name}_rnn") if recurrent else attention(x, x, f"{name}_self", causal=True)
        x = feed(attention(x, memory, f"{name}_context"), f"{name}_ffn")
    return x @ output + w["decoder_ff_logit_out_b"]


@pytest.mark.parametrize("kind", [*KINDS, "student"])
@torch.inference_mode()
def test_logits_and_outputs_are_marians(tmp_path: Path, kind: str) -> None:
    make = make_student if kind == "student" else partial(make_marian, **KINDS[kind])
    folder = make(tmp_path)
    read = read_marian(folder / "model.npz")
    model, config, subwords = load_marian(read)
    assert ("SSRU" in config.architecture.describe()) == (kind == "student")
    (source,) = subwords.encode_lines([SIDES["source"][0]])
    theirs = order(read.target, read.start)
    of_source = order(read.source) if read.source else theirs

    def wanted(target: list[int]) -> Array:
        return logits_of(
            *stored(folder), [of_source[id_] for id_ in [*source, EOS]], [theirs[id_] for id_ in target]
        )

    target = [6, 9, 7, 12]
    hidden = model.decode(model.encode(torch.tensor([[*source, EOS]])), torch.tensor([[BOS, *target]]))
    ours = output_logits(model, hidden)[0].numpy()
    words = [id_ for id_ in range(len(theirs)) if id_ not in (PAD, BOS)]
    assert np.abs(ours[:, words] - wanted(target)[:, [theirs[id_] for id_ in words]]).max() < 1e-4
    # as they are decoded, a step at a time
    translator = Translator(model, build_objective(config.objective), FullSelector(), GreedySearch())
    (found,) = translator.translate([source])
    tokens = [*found.hypothesis.tokens, *([EOS] if found.hypothesis.finished else [])]
    best = wanted(tokens[:-1]).argmax(axis=1).tolist()
    assert [theirs[token] for token in tokens] == best


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_weights_are_those_of_the_marianmt_folder(tmp_path: Path, kind: str) -> None:
    """The two differ in vectors of positions alone: transformers has other rates than Marian."""
    folder = make_marian(tmp_path, **KINDS[kind])
    given = [load_marian(read_folder(tmp_path / "hf")), load_marian(read_marian(folder / "model.npz"))]
    lines = [*SIDES["source"], "the garden", "ж"]
    sources = [subwords.encode_lines(lines) for _, _, subwords in given]
    assert sources[0] == sources[1]
    weights = [model.state_dict() for model, _, _ in given]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def make_package(root: Path, name: str = "vocab.spm") -> Path:
    """Write root/hf, and root/marian with model.npz and one vocabulary of SentencePiece, whose ids are
    Marian's."""
    model = base64.b64decode(BERGAMOT["vocabulary"])  # a unigram model of SIDES, whatever version trains
    config = make_folder(root / "hf", d_model=64, encoder_ffn_dim=128, decoder_ffn_dim=128)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    size = processor.get_piece_size()
    pieces = [processor.id_to_piece(id_) for id_ in range(size)]
    config |= {"vocab_size": size + 1, "decoder_vocab_size": size + 1, "pad_token_id": size}
    config |= {"decoder_start_token_id": size, "bad_words_ids": [[size]]}
    (root / "hf" / "config.json").write_text(json.dumps(config))
    ids = {piece: id_ for id_, piece in enumerate([*pieces, "<pad>"])}
    (root / "hf" / "vocab.json").write_text(json.dumps(ids))
    save_file(random_weights(config), root / "hf" / "model.safetensors")
    for side in ("source.spm", "target.spm"):
        (root / "hf" / side).write_bytes(model)
    folder = root / "marian"
    folder.mkdir()
    (folder / name).write_bytes(model)
    save(folder / "model.npz", arrays_of(root / "hf", config), settings_of(config))
    return folder


def test_a_folder_with_a_vocabulary_of_sentencepiece(tmp_path: Path) -> None:
    """Marian's own SentencePiece vocabularies: one model segments both sides."""
    folder = make_package(tmp_path)
    params = {"marian": "model", "digest": read_marian(folder).digest}
    Context(IMPORT_MODEL, params, {}, tmp_path / "import", locations={"model": str(folder)}).run()
    imported = load_file(tmp_path / "import" / "model.safetensors")
    own, _, subwords = load_marian(read_folder(tmp_path / "hf"))
    assert imported.keys() == own.state_dict().keys()
    for name, weight in own.state_dict().items():
        assert np.array_equal(weight.numpy(), imported[name]), name
    again = MarianSubwords.load(tmp_path / "import" / "marian_subwords.json")
    assert again.encode_lines(SIDES["source"]) == subwords.encode_lines(SIDES["source"])


def test_pieces_that_yaml_takes_for_other_types_are_text(tmp_path: Path) -> None:
    folder = make_marian(tmp_path, size=99)
    vocabulary = folder / "vocab.yml"
    names = ["no", "0", "000", "12:30", "2020-01-01", "null"]  # Marian writes them without quotes
    for number, name in enumerate(names):
        vocabulary.write_text(vocabulary.read_text().replace(f"\nx{number}:", f"\n{name}:"))
    assert {*names} < {*read_marian(folder).target}


# ---------------------------------------------------------------- .bin files, as Bergamot ships them


LINES = [" ".join(words) for words in itertools.product(("a small house", "two children"), ("stands", "read"),
    ("at the river", "in the garden", "a book"))]  # fmt: skip


def ask_bergamot(folder: Path, model: str, precision: str) -> list[str]:
    """Translate LINES by the npm package @browsermt/bergamot-translator, which CREAMTEA_BERGAMOT names."""
    (folder / "bergamot.cjs").write_text(RUNNER)
    command = ["node", folder / "bergamot.cjs", os.environ["CREAMTEA_BERGAMOT"], folder, model, precision]
    text = "".join(f"{line}\n" for line in LINES)
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()


RUNNER = """
const { readFileSync, writeFileSync } = require("fs"), { Worker } = require("worker_threads");
const [place, folder, model, precision] = process.argv.slice(2);
writeFileSync(`${place}/worker/package.json`, "{}");  // the worker is CommonJS, whatever the package says
const worker = new Worker(`${place}/worker/translator-worker.js`);
const call = (name, ...args) => new Promise((done, fail) => {
  worker.once("message", ({ result, error }) => error ? fail(error) : done(result));
  worker.postMessage({ id: 1, name, args });
});
const bytes = (name) => new Uint8Array(readFileSync(`${folder}/${name}`)).buffer;
(async () => {
  await call("initialize", {});
  const pair = { from: "en", to: "de" }, config = { "gemm-precision": precision };
  const files = { model: bytes(model), shortlist: new ArrayBuffer(0), vocabs: [bytes("vocab.spm")], config };
  await call("loadTranslationModel", pair, files);
  const texts = readFileSync(0, "utf8").trim().split("\\n").map((text) => ({ text, html: false }));
  for (const { target } of await call("translate", { models: [pair], texts })) console.log(target.text);
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(1); });
"""


@pytest.mark.parametrize("kind", ["attention", "ssru"])
@torch.inference_mode()
def test_bin_files_translate_as_bergamot_does(tmp_path: Path, kind: str) -> None:
    """bergamot.json has the outputs of version 0.4.9 for these files, which ends a line sooner or later than
    we do; set CREAMTEA_BERGAMOT to ask it again. It quantises activations, too."""
    folder = make_package(tmp_path)
    arrays, settings = stored(folder)
    if kind == "ssru":
        arrays, settings = with_ssrus(arrays, settings)
    for bits, precision in ((32, "float32"), (8, "int8shiftAll")):
        save_bin(folder / "model.bin", arrays, settings, bits)
        outputs = BERGAMOT[kind][precision]
        if "CREAMTEA_BERGAMOT" in os.environ:
            assert ask_bergamot(folder, "model.bin", precision) == outputs
        read = read_marian(folder / "model.bin")
        assert ("matrices of 8 bits" in read.note) == (bits == 8)
        model, config, subwords = load_marian(read)
        translator = Translator(model, build_objective(config.objective), FullSelector(), GreedySearch())
        ours = [
            subwords.decode(output.hypothesis.tokens)
            for output in translator.translate(subwords.encode_lines(LINES))
        ]
        theirs = [normalise(text) for text in outputs]
        known = [
            min(len(own), len(other), 10 if bits == 8 else 200)
            for own, other in zip(ours, theirs, strict=True)
        ]
        same = [own[:n] == other[:n] for own, other, n in zip(ours, theirs, known, strict=True)]
        assert sum(same) >= (10 if bits == 8 else 12)


@pytest.mark.parametrize("bits", [8, 32])
def test_a_bin_file_holds_the_weights_of_the_npz_file(tmp_path: Path, bits: int) -> None:
    folder = make_package(tmp_path, "vocab.ende.spm")
    (folder / "lex.50.50.ende.s2t.bin").write_bytes(b"\xf5\x17\x34\x01\xd5\x48\x1a\xf1" + bytes(40))
    model, _, _ = load_marian(read_marian(folder))
    save_bin(folder / "model.ende.bin", *stored(folder), bits)
    (folder / "model.npz").unlink()
    same, _, _ = load_marian(read_marian(folder))
    weights, others = model.state_dict(), same.state_dict()
    steps = {name: weight.abs().amax() / 127 for name, weight in weights.items()}
    assert weights.keys() == others.keys()
    for name, weight in weights.items():
        one_dimensional = weight.ndim == 1 or bits == 32
        most = 0.0 if one_dimensional else 0.51 * float(steps[name])
        assert (weight - others[name]).abs().max() <= most, name


# ---------------------------------------------------------------- what is refused


def with_setting(**changes: Any) -> Change:
    def change(folder: Path) -> None:
        arrays, settings = stored(folder)
        named = {key.replace("_", "-"): value for key, value in changes.items()}
        save(folder / "model.npz", arrays, {**settings, **named})

    return change


def with_array(**changes: Any) -> Change:
    """`None` takes an array out."""

    def change(folder: Path) -> None:
        arrays, settings = stored(folder)
        kept = {name: values for name, values in {**arrays, **changes}.items() if values is not None}
        save(folder / "model.npz", kept, settings)

    return change


def huge(folder: Path) -> None:
    """50 GB of zeros in an array's header, of which the file has none."""
    with zipfile.ZipFile(folder / "model.npz", "a") as file, file.open("huge.npy", "w") as member:
        np.lib.format.write_array_header_1_0(
            member, {"descr": "<f4", "fortran_order": False, "shape": (12_500_000_000,)}
        )


def of_npz(change: Callable[[bytes], bytes]) -> Change:
    return rewritten("model.npz", change)


def of_bin(change: Callable[[bytes], bytes]) -> Change:
    def write(folder: Path) -> None:
        save_bin(folder / "model.bin", *stored(folder), 8)
        (folder / "model.npz").unlink()
        rewritten("model.bin", change)(folder)

    return write


def saved(**arrays: Any) -> Change:
    return lambda folder: np.savez(folder / "model.npz", **arrays)


DAMAGED = "damaged, cut off, or not a model"
HOSTILE: dict[str, tuple[Change, str]] = {
    "an RNN": (with_setting(type="s2s"), r'type "s2s" in model\.npz, a part that does not map'),
    "GRUs": (with_setting(transformer_decoder_autoreg="rnn"), 'dec-cell "gru" in .* not map'),
    "averages": (
        with_setting(transformer_decoder_autoreg="average-attention"), 'decoder-autoreg "average-.* not map',
    ),
    "layers before": (with_setting(transformer_preprocess="n"), 'transformer-preprocess "n" .* not map'),
    "a final norm": (with_setting(transformer_postprocess_top="n"), 'transformer-postprocess-top "n" .* not'),
    "an activation": (with_setting(transformer_ffn_activation="prelu"), "ffn-activation .* not map"),
    "Marian's own GELU": (with_setting(transformer_ffn_activation="gelu"), "ffn-activation .* not map"),
    "factors": (with_setting(lemma_dim_emb=8), "lemma-dim-emb 8 .* not map"),
    "a factored vocabulary": (
        written("decoder.yml", b"vocabs: [vocab.fsv, vocab.fsv]"), r"vocab\.fsv.* in decoder\.yml, a part",
    ),
    "slopes instead of positions": (with_setting(transformer_attention_mask="alibi"), 'mask "alibi" .* not'),
    "trained positions": (with_setting(transformer_train_position_embeddings=True), "embeddings true"),
    "tied layers": (with_setting(transformer_tied_layers=[1, 1]), "transformer-tied-layers a list of 2"),
    "another feed-forward": (with_setting(transformer_decoder_dim_ffn=7), "transformer-decoder-dim-ffn"),
    "sizes that are none": (with_setting(dim_emb=-1), "width -1"),
    "stored positions": (with_array(Wpos=np.zeros((4, 16), np.float32)), "Wpos in .* does not map"),
    "a missing array": (with_array(encoder_l1_ffn_W1=None), r"no encoder_l1_ffn_W1 in model\.npz"),
    "a wrong shape": (
        with_array(encoder_l1_ffn_W1=np.zeros((3, 16), np.float32)),
        "ffn_W1 in .* is 3 × 16; allowed: 16 × 24",
    ),
    "another vocabulary": (with_array(Wemb=np.zeros((9, 16), np.float32)), "Wemb in .* is 9 × 16; allowed"),
    "int8": (with_array(Wemb=np.zeros((9, 16), np.int8)), "Wemb in .* has numbers of type int8"),
    "pickled objects": (
        with_array(Wemb=np.array([Ran()], dtype=object)),
        "Wemb in .* holds pickled objects, which can run programs",
    ),
    "cut off": (of_npz(lambda content: content[:-200]), DAMAGED),
    "its middle changed": (
        of_npz(lambda content: content.replace(b"NUMPY", b"numpy")),
        DAMAGED,
    ),
    "a text": (of_npz(lambda content: b"hello"), DAMAGED),
    "50 GB declared": (huge, DAMAGED),
    "compressed": (
        lambda folder: np.savez_compressed(folder / "model.npz", Wemb=np.zeros((12_500_000, 1), np.float32)),
        r"declares 50,0[\d,]+ bytes of arrays and has",
    ),
    "no settings": (saved(Wemb=np.zeros(1, np.float32)), "no readable special:model"),
    "settings that are no YAML": (
        saved(**{"special:model.yml": np.frombuffer(b"[\0", np.int8)}), "is not YAML with keys and values",
    ),
    "two models": (
        lambda folder: shutil.copyfile(folder / "model.npz", folder / "b.npz"),
        r"2 models in .*: b\.npz, model\.npz",
    ),
    "a cut .bin file": (of_bin(lambda content: content[:-1]), DAMAGED),
    "a .bin file of 2⁶⁰ arrays": (
        of_bin(lambda content: content[:8] + bytes([*[255] * 7, 15]) + content[16:]),
        DAMAGED,
    ),
    "50 GB in a .bin file": (  # the shape of the last array
        of_bin(lambda content: content.replace(struct.pack("<2i", 24, 16), struct.pack("<2i", 1 << 29, 24))),
        DAMAGED,
    ),
    "packed for a processor": (
        of_bin(lambda content: content.replace(struct.pack("<Q", 0x4101), struct.pack("<Q", 0x1801), 1)),
        "type 0x1801, packed for .* gemm type float32 or intgemm8",
    ),
    "a .bin file that is none": (of_bin(lambda content: b"\x80\x04" + content), "no config.json in"),
    "a vocabulary elsewhere": (
        written("decoder.yml", b"vocabs: [../hf/vocab.yml, vocab.yml]"), "in decoder.yml, a part that",
    ),
    "a link out of the folder": (linked("vocab.yml"), "a link that leads out of the folder"),
}  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_marian(tmp_path_factory.mktemp("original"))


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_and_what_does_not_map_have_one_message_each(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(original, tmp_path / "marian")
    change, message = HOSTILE[case]
    change(folder)
    with pytest.raises(UnusableModel, match=message):
        read_marian(folder)
    assert not Path("ran").exists()
