"""Vocabulary selections of models in MarianMT format: lexica, NVS heads and their recall in the models' own
subwords."""

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_folders import SIDES, make_folder
from step_context import Context
from step_files import decoded, metric, segments_folder
from torch import Tensor

from creamtea.marian import read_folder
from creamtea.steps.systems import IMPORT_MODEL, RECALL, TRAIN
from creamtea.steps.texts import ALIGN, ENCODE
from creamtea_workers.corpora.subwords import (
    BLANK,
    UNK,
    MarianSubwords,
    SubwordTexts,
    load_text_model_of,
    vocabulary_sizes,
    word_starts,
)
from creamtea_workers.corpora.text import normalise, write_lines
from creamtea_workers.models.inference import prepare
from creamtea_workers.models.interface import BOS, EOS, PAD, Memory, output_logits
from creamtea_workers.models.marian import load_marian
from creamtea_workers.models.model import load_model
from creamtea_workers.search import fixed
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.output import output_layer
from creamtea_workers.search.translator import Translator, source_batch
from creamtea_workers.selection.aligner import Lexicon
from creamtea_workers.selection.nvs import NvsSelector

APART = {"share_encoder_decoder_embeddings": False}
KINDS: dict[str, dict[str, Any]] = {
    "tied": {},
    "separate": {**APART, "separate_vocabs": True},
    "larger source": {**APART, "separate_vocabs": True, "more_sources": 50},
}
WORDS = [tuple(line.split()[:5] for line in pair) for pair in zip(*SIDES.values(), strict=True)]
TRAINING = {
    "freeze": "translation", "batch_tokens": 60, "schedule": "constant", "warmup": 0, "learning_rate": 0.03,
    "max_updates": 60, "autocast": "none", "patience": 100,
}  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the steps from the import to the head leave, on pairs of single words and of sentences."""
    root = tmp_path_factory.mktemp("marian")
    make_folder(root / "model", ends=3.0, **KINDS[request.param])
    inputs: dict[str, list[Path]] = {"corpus": [root / "corpus"]}
    inputs["corpus"][0].mkdir()
    texts = {
        side: [word for pair in WORDS for word in pair[place]] * 3 + SIDES[side]
        for place, side in enumerate(SIDES)
    }
    for name in ("train", "dev"):
        write_lines(root / "corpus" / f"{name}.src", texts["source"])
        write_lines(root / "corpus" / f"{name}.tgt", texts["target"])
    params = {"marian": "model", "digest": read_folder(root / "model").digest}
    step = Context(IMPORT_MODEL, params, {}, root / "import", locations={"model": str(root / "model")})
    step.run()
    inputs["subwords"] = inputs["initial"] = [root / "import"]
    Context(ENCODE, {}, inputs, root / "encode").run()
    inputs["encode"] = [root / "encode"]
    Context(ALIGN, {"alignment": {}}, inputs, root / "align").run()
    inputs["align"] = [root / "align"]
    _, _, config = load_model(root / "import")
    raw = config.model_dump(mode="json", include={"objective", "architecture"})
    raw |= {"nvs": {"positive_weight": 20.0}, "training": TRAINING, "seed": 1}
    Context(TRAIN, raw, inputs, root / "train").run()
    inputs["train"] = [root / "train"]
    rows = [
        {"source": source, "reference": reference, "idioms": []}
        for source, reference in zip(*SIDES.values(), strict=True)
    ]
    rows[0]["idioms"] = [{"name": "house", "source": [2, 13], "target": [4, 16]}]
    inputs["test_set"] = [segments_folder(root, rows)]
    return inputs


def subwords_of(folders: dict[str, Any]) -> MarianSubwords:
    model = load_text_model_of(folders["subwords"][0])
    assert isinstance(model, MarianSubwords)
    assert isinstance(model, SubwordTexts)
    return model


@pytest.mark.parametrize("line", ["ein kleines haus steht am fluss", "½ ﬂuss", "日本 ein", ""])
def test_offsets_are_of_the_text_as_it_is_written(tmp_path: Path, line: str) -> None:
    """SentencePiece's own normalisation makes other characters of some."""
    make_folder(tmp_path / "tiny")
    _, _, subwords = load_marian(read_folder(tmp_path / "tiny"))
    offsets = subwords.offsets(line)
    assert [offset.id for offset in offsets] == subwords.encode_targets([line])[0]
    covered = "".join(line[offset.start : offset.end] for offset in offsets)
    assert covered == line.replace(" ", "")
    for offset, piece in zip(offsets, subwords.pieces([offset.id for offset in offsets]), strict=True):
        if offset.id != UNK and line == SIDES["target"][0]:
            assert line[offset.start : offset.end] == piece.removeprefix(BLANK)
    with pytest.raises(ValueError, match="normalised"):
        subwords.offsets(f" {line}")
    assert normalise(line) == line


def test_words_start_with_a_blank_on_the_sources_side(folders: dict[str, Any]) -> None:
    subwords = subwords_of(folders)
    (ids,) = subwords.encode_lines(["the old man"])
    starts = word_starts(subwords)
    assert sum(id_ in starts for id_ in ids) == 3
    assert [piece[0] == BLANK for piece in subwords.source_pieces(ids)] == [id_ in starts for id_ in ids]


def test_the_lexicon_is_in_the_models_own_subwords(folders: dict[str, Any]) -> None:
    subwords = subwords_of(folders)
    lexicon = Lexicon.load(folders["align"][0] / "lexicon.npz")
    sizes = vocabulary_sizes(subwords)
    assert len(lexicon.starts) == max(sizes) + 1
    assert lexicon.targets.max() < sizes[1]
    for source, target in zip(*WORDS[1], strict=True):  # zwei kinder spielen im garten, word by word
        (ids,), (wanted,) = subwords.encode_lines([source]), subwords.encode_targets([target])
        assert set(wanted) <= set(lexicon.select(ids, 10).tolist())


def test_a_table_of_another_aligner_is_read_by_the_pieces_of_each_side(
    folders: dict[str, Any], tmp_path: Path
) -> None:
    subwords = subwords_of(folders)
    own = Lexicon.load(folders["align"][0] / "lexicon.npz")
    sources = subwords.source_pieces(range(vocabulary_sizes(subwords)[0]))
    targets = subwords.pieces(range(subwords.size))
    lines = [
        f"{piece}\t{targets[own.targets[place]]}\t{math.log(own.probabilities[place]):.9f}"
        for id_, piece in enumerate(sources)
        for place in range(own.starts[id_], own.starts[id_ + 1])
    ]
    write_lines(tmp_path / "table", lines)
    digests = {"table": hashlib.sha256((tmp_path / "table").read_bytes()).hexdigest()}
    params = {"alignment": {"aligner": "table", "table": "table"}, "digests": digests}
    locations = {"table": str(tmp_path / "table")}
    Context(ALIGN, params, folders, tmp_path / "align", locations=locations).run()
    read = Lexicon.load(tmp_path / "align" / "lexicon.npz")
    (ids,) = subwords.encode_lines([SIDES["source"][0]])
    assert read.select(ids, 3).tolist() == own.select(ids, 3).tolist()


def test_a_head_trained_alone_leaves_the_imported_weights_and_finds_the_references(
    folders: dict[str, Any], tmp_path: Path
) -> None:
    imported, trained = (load_model(folders[role][0])[0].state_dict() for role in ("initial", "train"))
    assert set(trained) - set(imported) == {"nvs.weight", "nvs.bias"}
    assert all(torch.equal(trained[name], value) for name, value in imported.items())
    recalls = {}
    nvs = {"kind": "nvs", "threshold": 0.5}
    selections = {"nvs": nvs, "word": {**nvs, "context": "word"}, "lexicon": {"kind": "lexicon", "k": 5}}
    for name, selection in selections.items():
        params = {"selection": selection, "sweep": {}, "precision": "fp32"}
        result = Context(RECALL, params, folders, tmp_path / name).run()
        assert metric(result, "selected_size").value < subwords_of(folders).size
        scopes = ("sentence", "idiom", "idiom_words")
        recalls[name] = [metric(result, "recall", scope).value for scope in scopes]
    assert min(recalls["nvs"][:2]) > 0.9
    assert min(recalls["lexicon"]) > 0.9
    assert recalls["word"][0] > 0.7


# ---------------------------------------------------------------- decoding


def prepared(folders: dict[str, Any], precision: Any) -> tuple[Any, Any]:
    model, objective, _ = load_model(folders["train"][0])
    return prepare(model, precision), objective


@dataclasses.dataclass(frozen=True)
class WithForbidden:
    """NVS with pad and bos, which a threshold may let through."""

    selector: NvsSelector

    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor]:
        forbidden = torch.tensor([PAD, BOS])
        return [torch.cat([forbidden, ids]).unique() for ids in self.selector.select(sources, memory)]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_selected_logits_are_the_full_ones_of_the_selected_subwords(
    folders: dict[str, Any], precision: str
) -> None:
    """With the logits' bias, which forbids pad and bos."""
    model, _ = prepared(folders, precision)
    subwords = subwords_of(folders)
    sources = subwords.encode_lines(SIDES["source"])
    with torch.inference_mode():
        memory = model.encode(source_batch(sources, torch.device("cpu")))
        selection = WithForbidden(NvsSelector(model, 0.5)).select(sources, memory)
        hidden = model.decode(memory, torch.tensor([[BOS, 7, 9]] * 3))
        logits = output_layer(model, selection).logits(hidden)
        full = output_logits(model, hidden)
    for row, ids in enumerate(selection):
        assert ids.tolist()[:2] == [PAD, BOS]
        limits = {"atol": 0.05, "rtol": 1e-2} if precision == "bf16" else {"atol": 1e-4, "rtol": 1e-4}
        own = logits[row, :, : len(ids)].float()
        torch.testing.assert_close(own, full[row][:, ids].float(), **limits)
        assert (logits[row, :, :2] < -9000).all()


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_greedy_search_chooses_among_the_selected_subwords(
    folders: dict[str, Any], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the full logits of every step; tensors of fixed shape give the same."""
    model, objective = prepared(folders, precision)
    sources = subwords_of(folders).encode_lines(SIDES["source"])
    selector = WithForbidden(NvsSelector(model, 0.5))
    translator = Translator(model, objective, selector, GreedySearch())
    found = [translation.hypothesis.tokens for translation in translator.translate(sources)]
    for source, tokens in zip(sources, found, strict=True):
        with torch.inference_mode():
            memory = model.encode(source_batch([source], torch.device("cpu")))
            (ids,) = selector.select([source], memory)
            wanted: list[int] = []
            while len(wanted) < len(tokens) or not wanted:
                hidden = model.decode(memory, torch.tensor([[BOS, *wanted]]))[:, -1]
                best = int(ids[output_logits(model, hidden)[0, ids].argmax()])
                if best == EOS:
                    break
                wanted.append(best)
        assert tokens == wanted
        assert not {PAD, BOS} & {*tokens}
    if precision == "fp32":
        for search in (GreedySearch(), BeamSearch(width=3)):
            by_loops = Translator(model, objective, selector, search).translate(sources)
            with monkeypatch.context() as patch:
                patch.setattr(fixed, "DEVICES", {"cpu"})
                again = Translator(model, objective, selector, search).translate(sources)
            assert [one.hypothesis.tokens for one in again] == [one.hypothesis.tokens for one in by_loops]


def test_the_decode_step_selects(folders: dict[str, Any]) -> None:
    params = {"selection": {"kind": "lexicon", "k": 2}, "search": {"kind": "beam"}, "precision": "int8"}
    rows = decoded(folders, **params)
    assert all(1 < row["selected_size"] < subwords_of(folders).size for row in rows)
