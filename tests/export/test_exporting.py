import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import step_files
import torch
from step_context import Context

from creamtea.contract.step import ExportFacts
from creamtea.errors import InputError
from creamtea.steps.systems import DECODE
from creamtea_workers.export import POSITIONS, ExportedModel, export, load
from creamtea_workers.models.interface import EOS
from creamtea_workers.models.model import WEIGHTS, build_model, load_model, save_model

LINES = ["the cat sat on the mat", "", "a dog", "zzz ☃ unseen", "she took the cake in the park " * 3] * 3
OBJECTIVES = {
    "softmax": {"kind": "softmax"},
    "scones": {"kind": "scones", "alpha": 0.5},
    "entmax": {"kind": "entmax"},
}


USUAL = {
    "selection": {"kind": "full"},
    "search": {"kind": "greedy"},
    "precision": "fp32",
    "batch_size": 4,
}
System = Callable[..., Context]


@pytest.fixture
def subwords(tmp_path: Path) -> Path:
    return step_files.subwords_folder(tmp_path)


@pytest.fixture
def lively(tmp_path: Path, subwords: Path) -> Callable[..., Path]:
    """Makes a model whose sublayers weigh so much that outputs differ and end at many lengths."""

    def make(end: float = 0.0, **params: Any) -> Path:
        folder = tmp_path / "lively"
        folder.mkdir()
        torch.manual_seed(4)
        config = step_files.model_config(step_files.vocabulary_size(subwords), **params)
        model = build_model(config)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if name.endswith(("out.weight", "decoder_norm.weight")):
                    weight.mul_(6.0)
            model.output_bias[EOS] += end
        save_model(folder, model, config)
        return folder

    return make


@pytest.fixture
def system(tmp_path: Path, subwords: Path, lively: Callable[..., Path]) -> System:
    """A decoding of LINES by these models, by default a lively one."""

    def decoding(*models: Path, search: dict[str, Any] = USUAL["search"], **model: Any) -> Context:
        segments = [{"source": line, "reference": "x"} for line in LINES]
        folders = {
            "test_set": [step_files.segments_folder(tmp_path, segments)],
            "subwords": [subwords],
            "train": list(models) or [lively(**model)],
        }
        return Context(DECODE, {**USUAL, "search": search}, folders)

    return decoding


def exported(context: Context, to: str, folder: Path, quantization: str | None = None) -> ExportFacts:
    folder.mkdir()
    return export(context, to, folder, None, quantization)


@pytest.mark.parametrize(
    "settings",
    [
        {"norm": "post", "activation": "silu", "positions": "halves"},
        {"activation": "gelu", "tied_embeddings": "none", "scale_embeddings": False},
    ],
)
def test_a_transformer_of_other_settings_is_the_same_in_ctranslate2(
    tmp_path: Path, system: System, settings: dict[str, Any]
) -> None:
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "width": 16, "heads": 2, "feed_forward": 32}
    context = system(architecture={"kind": "transformer", **sizes, **settings})
    assert exported(context, "ctranslate2", tmp_path / "out").proof.differences == ()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_greedy_outputs_are_identical(tmp_path: Path, system: System, objective: str) -> None:
    context = system(objective=OBJECTIVES[objective])
    for to in ("ctranslate2", "safetensors"):
        proof = exported(context, to, tmp_path / to).proof
        compared = LINES if to == "safetensors" else [line for line in LINES if line]
        counts = {"sentences": len(compared), "left_out": len(LINES) - len(compared)}
        assert asdict(proof) == {**counts, "differences": (), "identical": len(compared)}


def test_int8_is_a_quarter_of_the_size_and_what_it_changes_is_counted(tmp_path: Path, system: System) -> None:
    wide = {"kind": "transformer", **step_files.TINY, "width": 64, "feed_forward": 256}
    context = system(architecture=wide)
    full = exported(context, "ctranslate2", tmp_path / "full")
    small = exported(context, "ctranslate2", tmp_path / "small", "int8")
    positions = 4 * wide["width"] * POSITIONS  # bytes: a table that stays as it is
    sizes = [(tmp_path / name / "model.bin").stat().st_size - positions for name in ("full", "small")]
    assert sizes[1] < 0.3 * sizes[0]
    assert (full.quantization, small.quantization) == (None, "int8")
    proof = small.proof
    assert proof.identical + len(proof.differences) == proof.sentences > 0


def beam(width: int, normalization: float) -> dict[str, Any]:
    return {"kind": "beam", "width": width, "length_normalization": normalization}


def test_beams_of_a_system_are_compared(tmp_path: Path, system: System) -> None:
    context = system(search=beam(3, 0.5))
    found = exported(context, "ctranslate2", tmp_path / "out").beam
    assert found.search == "beam 3 / length^0.5"
    assert found.identical + len(found.differences) == found.sentences == 12
    assert exported(context, "safetensors", tmp_path / "own").beam is None


@pytest.mark.parametrize("normalization", [0.0, 1.0])
def test_a_beam_of_one_is_greedy_in_both(tmp_path: Path, system: System, normalization: float) -> None:
    """The longest sentences have limits of their own in the batch."""
    found = exported(system(search=beam(1, normalization)), "ctranslate2", tmp_path / "out").beam
    assert found.identical == found.sentences == 12


@pytest.mark.parametrize("end", [1000.0, -1000.0], ids=["at once", "never"])
def test_empty_and_endless_outputs_too(tmp_path: Path, system: System, end: float) -> None:
    """CTranslate2's defaults forbid the ones, and cut the others at another length."""
    context = system(end=end, search={"kind": "greedy", "max_length_ratio": 3.5})
    made = exported(context, "ctranslate2", tmp_path / "out")
    assert made.proof.identical == len([line for line in LINES if line])
    assert made.max_length_ratio == 3.5


def test_a_difference_is_found_with_its_place(
    tmp_path: Path, system: System, lively: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = lively()
    other, _, config = load_model(model)
    with torch.no_grad():
        other.output_bias[EOS] += 9
    spoilt = tmp_path / "spoilt"
    spoilt.mkdir()
    save_model(spoilt, other, config)

    def load_spoilt(folder: Path, **options: Any) -> ExportedModel:
        shutil.copyfile(spoilt / WEIGHTS, folder / WEIGHTS)
        return load(folder, **options)

    monkeypatch.setattr("creamtea_workers.export.load", load_spoilt)
    proof = exported(system(model), "safetensors", tmp_path / "out").proof
    assert 0 < len(proof.differences) == proof.sentences - proof.identical
    assert all(0 < difference.gap < 9.01 for difference in proof.differences)


def test_the_loader_translates_lines(tmp_path: Path, system: System) -> None:
    context = system()
    exported(context, "safetensors", tmp_path / "out")
    context.run()
    rows = step_files.read_rows(context.output / "hypotheses.jsonl")
    loaded = load(tmp_path / "out")
    assert loaded.translate(LINES) == [row["text"] for row in rows]
    assert len(load(tmp_path / "out", beam=3).translate(LINES)) == len(LINES)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["objective"]["kind"] == "softmax"
    with pytest.raises(InputError, match=r"no config\.json"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("architecture", "nvs", "reason"),
    [
        ({"kind": "ssru", **step_files.TINY}, {}, "SSRUs"),
        ({"kind": "rnn", "layers": 1, "width": 8, "embedding": 8}, {"nvs": None}, "not a Transformer"),
        ({"kind": "transformer", "attention": "entmax", **step_files.TINY}, {}, "entmax attention"),
    ],
)
def test_what_ctranslate2_cannot_express_is_refused_and_left_to_safetensors(
    tmp_path: Path, subwords: Path, system: System, architecture: Any, nvs: Any, reason: str
) -> None:
    size = step_files.vocabulary_size(subwords)
    context = system(step_files.model_folder(tmp_path, size, architecture=architecture, **nvs))
    with pytest.raises(InputError, match=f"{reason}.*--to safetensors"):
        exported(context, "ctranslate2", tmp_path / "refused")
    assert not any((tmp_path / "refused").iterdir())
    proof = exported(context, "safetensors", tmp_path / "out").proof
    assert proof.identical == proof.sentences


def test_what_can_prove_nothing_is_refused(
    tmp_path: Path, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = system()
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="all 2 sentences"):
        export(context, "ctranslate2", tmp_path / "out", ["", "the cat sat on the mat " * 400])
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "ctranslate2", None)
        with pytest.raises(InputError, match=r"pip install 'creamtea\[export\]'"):
            export(context, "ctranslate2", tmp_path / "out", None)
    context.folders["train"] *= 2
    with pytest.raises(InputError, match="ensemble of 2"):
        export(context, "safetensors", tmp_path / "out", None)
