"""CTranslate2 folders as systems, beside creamtea's own searches in the same weights."""

import json
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import step_files
import torch
from broken_files import Change, edited, linked, removed, rewritten, written
from marian_folders import SIDES, make_folder
from shipped_folders import make_shipped
from step_context import Context

from creamtea.errors import StepError, StepUnavailable
from creamtea.marian import SPM, UnusableModel, read_folder
from creamtea.shipped import MAP, read_shipped
from creamtea.steps.systems import IMPORT_MODEL, LATENCY, RECALL
from creamtea_workers.corpora.subwords import MarianSubwords
from creamtea_workers.corpora.text import read_jsonl
from creamtea_workers.models.marian import load_marian
from creamtea_workers.search.shipped import ShippedModel, token_names
from creamtea_workers.search.translator import OpenSystem, TrainedModel
from creamtea_workers.selection.tables import VocabularyMap

APART = {"share_encoder_decoder_embeddings": False}
KINDS: dict[str, dict[str, Any]] = {
    "tied": {},
    "separate": {**APART, "separate_vocabs": True, "more_sources": 20},
}
LINES = [*SIDES["source"], "the garden", "a book at the river", ""]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    make_folder(root / "marian", size=60, ends=3.0)
    make_shipped(root / "shipped", root / "marian")
    return root


@pytest.fixture
def shipped(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "shipped"


def imported(root: Path, kind: str) -> Path:
    """What the import of the folder `kind` leaves."""
    read = {"marian": read_folder, "ctranslate2": read_shipped}[kind]
    place = root / ("marian" if kind == "marian" else "shipped")
    params = {kind: "model", "digest": read(place).digest}
    step = Context(IMPORT_MODEL, params, {}, root / f"import-{kind}", locations={"model": str(place)})
    step.run()
    return step.output


def decoding(root: Path, folder: Path, **params: Any) -> Context:
    segments = [{"source": line, "reference": SIDES["target"][n % 3]} for n, line in enumerate(LINES)]
    test_set = root / "test_set"
    if not test_set.exists():
        step_files.segments_folder(root, segments)
    return step_files.decoding({"test_set": [test_set], "subwords": [folder], "train": [folder]}, **params)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_scores_and_sizes_are_those_of_the_same_weights_here(tmp_path: Path, kind: str) -> None:
    make_folder(tmp_path / "marian", ends=3.0, **KINDS[kind])
    selector = make_shipped(tmp_path / "shipped", tmp_path / "marian")
    own, library = (imported(tmp_path, name) for name in ("marian", "ctranslate2"))
    beam = {"kind": "beam", "width": 3, "length_normalization": 0.7}
    for search in ({"kind": "greedy"}, {"kind": "greedy", "max_length_ratio": 0.1}, beam):
        rows = []
        for folder in (own, library):
            step = decoding(tmp_path, folder, search=search)
            step.run()
            rows.append(read_jsonl(step.output / "hypotheses.jsonl"))
        same = [n for n, (a, b) in enumerate(zip(*rows, strict=True)) if a["text"] == b["text"]]
        assert len(same) >= (len(LINES) if search["kind"] == "greedy" else len(LINES) - 1)
        texts = [n for n in same if LINES[n]]
        scores = [[row[n]["score"] for n in texts] for row in rows]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)
        lengths = [[row[n]["length"] for n in same] for row in rows]
        assert lengths[0] == lengths[1]

    step = decoding(tmp_path, library, selection={"kind": "vmap"})
    step.run()
    opened = OpenSystem.of_step(step)
    assert isinstance(opened.subwords, MarianSubwords)
    sources = opened.subwords.encode_lines(LINES)
    names = [token_names(opened.subwords), token_names(MarianSubwords.load(own / "marian_subwords.json"))]
    map_ = VocabularyMap.load(library, opened.subwords)
    lines = (library / MAP).read_bytes()
    (library / MAP).write_bytes(lines.replace(b"\n", b"\r\n"))  # the same to CTranslate2
    assert VocabularyMap.load(library, opened.subwords) == map_
    for source in sources:
        theirs = {names[0][1][id_] for id_ in map_.ids(source)}
        ours = {names[1][1][id_] for id_ in selector.lexicon.select(
            [names[1][0].index(names[0][0][id_]) for id_ in source], 3, 2
        )}  # fmt: skip
        assert ours <= theirs <= ours | {"<unk>", "<begin>"}
    rows = read_jsonl(step.output / "hypotheses.jsonl")
    assert [row["selected_size"] for row in rows] == [len(map_.ids(source)) for source in sources]
    for row, source in zip(rows, sources, strict=True):  # it keeps within the map
        written = set(opened.subwords.encode_targets([row["text"]])[0])
        assert row["length"] == 0 or written <= {*map_.ids(source).tolist(), *range(4)}
    best = opened.translate(["the old man"], True, 1, "haus")[0]
    assert best["selected"] == opened.subwords.pieces(
        map_.ids(opened.subwords.encode_lines(["the old man"])[0])
    )
    assert {part["needs"] for part in best["word"]} <= {"", "another vmap.txt: it has no setting"}

    params = {"selection": {"kind": "vmap"}, "sweep": {}, "precision": "fp32"}
    recall = Context(RECALL, params, step.folders, tmp_path / "recall")
    sizes = [row.value for row in recall.run().metrics if row.name == "selected_size"]
    assert sizes == [pytest.approx(np.mean([len(map_.ids(source)) for source in sources]))]


@pytest.mark.parametrize("start", ["</s>", "<pad>"])
def test_sources_of_models_converted_from_transformers_get_their_end(
    shipped: Path, tmp_path: Path, start: str
) -> None:
    rows = []
    for by_library in (True, False):
        edited("config.json", decoder_start_token=start, add_source_eos=by_library)(shipped)
        step = decoding(tmp_path, imported(tmp_path, "ctranslate2"))
        step.run()
        rows.append(read_jsonl(step.output / "hypotheses.jsonl"))
        (shipped / MAP).write_text("\t</s>\n</s>\tx0\n")  # the library applies rules for </s> if it is given
        opened = OpenSystem.of_step(
            decoding(tmp_path, imported(tmp_path, "ctranslate2"), selection={"kind": "vmap"})
        )
        assert ("x0" in opened.translate(["a"], True)[0]["selected"]) != by_library
    assert rows[0] == rows[1]


def test_a_beam_gives_its_best_and_analyses_are_refused(shipped: Path, tmp_path: Path) -> None:
    folder = imported(tmp_path, "ctranslate2")
    step = decoding(tmp_path, folder, search={"kind": "beam", "width": 4})
    (row,) = OpenSystem.of_step(step).translate(["the old man"], count=3)
    assert len(row["best"]) == 3
    normalised = [best["score"] / (best["length"] + 1) for best in row["best"]]
    assert normalised == sorted(normalised, reverse=True)
    with pytest.raises(StepError, match="runs in its own library"):
        TrainedModel.of_step(step)


def test_it_is_timed_beside_a_model_with_other_ids(shipped: Path, tmp_path: Path) -> None:
    own, library = (imported(tmp_path, kind) for kind in ("marian", "ctranslate2"))
    decode = decoding(tmp_path, own)
    protocol = {
        "sentences": 3, "repetitions": 2, "warmup": 1, "batch_size": 1, "threads": 1,
    }  # fmt: skip
    common = {"search": {"kind": "greedy"}, "precision": "fp32"}
    systems = [
        {**common, "selection": {"kind": "full"}, "model": 0},
        {**common, "selection": {"kind": "full"}, "model": 1},
        {**common, "selection": {"kind": "vmap"}, "model": 1},
    ]
    folders = {**decode.folders, "models": [own, library]}
    made = Context(LATENCY, {"latency": protocol, "systems": systems}, folders, tmp_path / "latency").run()
    times = {row.subject: row for row in made.metrics if row.name == "latency_p50"}
    assert all(row.value is not None and row.value > 0 for row in times.values())
    sizes = [times[str(n)].detail["selected_size"] for n in range(3)]
    assert sizes[0] == sizes[1] > sizes[2]


# ---------------------------------------------------------------- what is refused


def huge(content: bytes) -> bytes:
    """Declare 50 GB in the first variable."""
    changed, place = bytearray(content), 4
    (length,) = struct.unpack_from("<H", content, place)
    place += 2 + length + 8
    (length,) = struct.unpack_from("<H", content, place)
    place += 2 + length
    changed[place] = 2
    changed[place + 1 : place + 9] = struct.pack("<II", 125_000, 100_000)
    return bytes(changed)


def named(name: str) -> bytes:
    """A name as model.bin has it."""
    return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"


def normalised(content: bytes) -> bytes:
    """Call another layer's scale that of the embeddings, which BART normalises."""
    there = named("encoder/layer_0/ffn/layer_norm/gamma")
    assert there in content
    return content.replace(there, named("encoder/layernorm_embedding/gamma"))


def like_bart(folder: Path) -> None:
    rewritten("model.bin", normalised)(folder)
    edited("config.json", add_source_eos=False)(folder)


DAMAGED = "declares .* bytes, and the file does not have them|is damaged, or cut off"
HOSTILE: dict[str, tuple[Change, str]] = {
    "cut off": (rewritten("model.bin", lambda content: content[:-100]), DAMAGED),
    "50 GB declared": (rewritten("model.bin", huge), DAMAGED),
    "no model": (written("model.bin", b"\0" * 64), "or of version 0"),
    "a pickle": (written("model.bin", b"\x80\x04\x95junk"), "of version"),
    "nothing": (written("model.bin", b""), "is damaged, or cut off"),
    "no configuration": (removed("config.json"), r"no config\.json"),
    "no SentencePiece model": (removed("source.spm"), r"no source\.spm"),
    "other pieces": (
        rewritten("shared_vocabulary.json", lambda content: json.dumps(json.loads(content)[:-1]).encode()),
        r"pieces in shared_vocabulary\.json, .* in model\.bin",
    ),
    "a vocabulary of numbers": (written("shared_vocabulary.json", b"[1]"), "does not list its pieces"),
    "a model of many languages": (
        rewritten("shared_vocabulary.json", lambda content: content.replace(b'"x0"', b'"wol_Latn"')),
        r"many languages \(wol_Latn in its vocabulary\)",
    ),
    "sources of more than text": (like_bart, "a model like BART"),
    "no start": (edited("config.json", decoder_start_token=None), "no decoder_start_token in config"),
    "another end": (edited("config.json", eos_token="x"), "eos_token"),
    "a link out of the folder": (linked(MAP), "a link that leads out of the folder"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_folders_have_one_message_each(shipped: Path, case: str) -> None:
    change, message = HOSTILE[case]
    change(shipped)
    with pytest.raises(UnusableModel, match=message):
        read_shipped(shipped)


def test_what_the_library_or_the_machine_lacks_fails_the_step_with_one_message(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (shipped / "model.bin").read_bytes()
    (shipped / "model.bin").write_bytes(content.replace(b"decoder/layer_0/ffn", b"decoder/layer_0/fff"))
    folder = imported(tmp_path, "ctranslate2")
    with pytest.raises(StepError, match=r"CTranslate2 cannot load the model: .*ffn"):
        decoding(tmp_path, folder).run()
    with pytest.raises(StepError, match="translates on CPUs"):
        ShippedModel.load(folder, "fp32", torch.device("cuda"), 1)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(StepUnavailable, match=r"pip install 'creamtea\[export\]'"):
        decoding(tmp_path, folder).run()


def test_one_subword_model_serves_both_sides_and_the_digest_is_of_what_is_read(shipped: Path) -> None:
    before = read_shipped(shipped)
    assert (before.weights, before.spm) == ("float32", SPM)
    (shipped / "source.spm").unlink()
    (shipped / "target.spm").rename(shipped / "sentencepiece.model")
    after = read_shipped(shipped)
    assert after.spm == ("sentencepiece.model",) * 2
    assert after.digest != before.digest


def test_weights_in_int8_are_known(shipped: Path, tmp_path: Path) -> None:
    make_shipped(tmp_path / "small", tmp_path / "marian", "int8")
    assert read_shipped(tmp_path / "small").weights == "int8"
    own, _, _ = load_marian(read_folder(tmp_path / "marian"))
    for folder in (shipped, tmp_path / "small"):
        assert read_shipped(folder).parameters == sum(weight.numel() for weight in own.parameters())
