"""Variants that start from a model in MarianMT format, in CTranslate2 with a lexicon's vocabulary map."""

import unicodedata
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import sentencepiece
import step_files
from marian_folders import SIDES, make_folder
from step_context import Context

from creamtea.marian import read_folder
from creamtea.steps.systems import DECODE, IMPORT_MODEL
from creamtea.steps.texts import ALIGN, ENCODE, SHORTLIST
from creamtea_workers.corpora.text import write_lines
from creamtea_workers.export import export
from creamtea_workers.search.translator import OpenSystem

APART = {"share_encoder_decoder_embeddings": False}
KINDS: dict[str, dict[str, Any]] = {
    "tied": {},
    "separate": {**APART, "separate_vocabs": True, "more_sources": 20},
    "untied": {**APART, "tie_word_embeddings": False},
}


@pytest.fixture
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Context:
    make_folder(tmp_path / "model", ends=3.0, **KINDS[request.param])
    digest = read_folder(tmp_path / "model").digest
    locations = {"model": str(tmp_path / "model")}
    params: dict[str, Any] = {"marian": "model", "digest": digest}
    Context(IMPORT_MODEL, params, {}, tmp_path / "import", locations=locations).run()
    (tmp_path / "corpus").mkdir()
    for split in ("train", "dev"):
        write_lines(tmp_path / "corpus" / f"{split}.src", SIDES["source"])
        write_lines(tmp_path / "corpus" / f"{split}.tgt", SIDES["target"])
    folders = {
        "corpus": [tmp_path / "corpus"],
        "subwords": [tmp_path / "import"],
        "train": [tmp_path / "import"],
    }
    Context(ENCODE, {}, folders, tmp_path / "encode").run()
    folders["encode"] = [tmp_path / "encode"]
    Context(ALIGN, {"alignment": {}}, folders, tmp_path / "align").run()
    lines = [*SIDES["source"], "the garden", "a book at the river"]
    segments = [{"source": line, "reference": "x"} for line in lines]
    folders["align"] = [tmp_path / "align"]
    Context(SHORTLIST, {}, folders, tmp_path / "shortlist").run()
    folders |= {
        "align": [tmp_path / "shortlist"],
        "test_set": [step_files.segments_folder(tmp_path, segments)],
    }
    params = {
        "selection": {"kind": "lexicon", "k": 2, "frequent": 4},
        "search": {"kind": "greedy"},
        "precision": "fp32",
        "batch_size": 4,
    }
    return Context(DECODE, params, folders)


@pytest.mark.parametrize("context", KINDS, indirect=True)
def test_greedy_outputs_are_identical_with_the_map_and_without(context: Context, tmp_path: Path) -> None:
    """The second by what a user would write, from text to text."""
    folder = tmp_path / "out"
    folder.mkdir()
    made = export(context, "ctranslate2", folder, None)
    assert made.proof.identical == made.proof.sentences == 5
    assert made.map.identical == made.map.sentences == 5
    assert made.map.selection == "lexicon k=2 + 4 frequent"
    sides = [
        sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        for side in ("source", "target")
    ]
    model = ctranslate2.Translator(str(folder))
    ours = OpenSystem.of_step(context)
    for line, row in zip(SIDES["source"], ours.translate(SIDES["source"]), strict=True):
        pieces = sides[0].encode(line, out_type=str)
        (result,) = model.translate_batch(
            [pieces],
            beam_size=1,
            use_vmap=True,
            max_decoding_length=2 * len(pieces) + 10,
            min_decoding_length=0,
        )
        text = sides[1].decode(result.hypotheses[0]).replace("\u2581", " ")
        assert unicodedata.normalize("NFC", " ".join(text.split())) == row["text"]
