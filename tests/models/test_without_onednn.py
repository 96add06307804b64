"""A build of torch without oneDNN, such as that for macOS on ARM, still decodes."""

import copy
import importlib
import sys
from types import ModuleType

import pytest
import torch

from creamtea_workers import models
from creamtea_workers.models.interface import output_logits
from creamtea_workers.models.model import ModelConfig, build_model


class NoOperators:
    """Stands where `torch.ops.mkldnn` is; torch answers so for an operator that was not built."""

    def __getattr__(self, name: str) -> None:
        raise AttributeError(f"'_OpNamespace' 'mkldnn' object has no attribute '{name}'")


@pytest.fixture
def inference(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`models.inference`, imported where torch has no oneDNN operators."""
    name = "creamtea_workers.models.inference"
    imported_before = importlib.import_module(name)
    monkeypatch.setattr(models, "inference", imported_before)  # restored, as is `sys.modules`
    monkeypatch.setitem(sys.modules, name, imported_before)
    monkeypatch.setattr(torch.ops, "mkldnn", NoOperators())
    del sys.modules[name]
    return importlib.import_module(name)


def test_a_model_is_prepared_and_gives_the_same_logits(
    inference: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "MIN_PACKED", 0)
    torch.manual_seed(1)
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "width": 16, "heads": 2, "feed_forward": 32}
    parts = {"architecture": sizes, "nvs": None, "objective": {"kind": "softmax"}}
    plain = build_model(ModelConfig.model_validate({**parts, "vocabulary_size": 30})).eval()
    prepared = inference.prepare(copy.deepcopy(plain), "fp32")
    source, target = torch.tensor([[7, 9, 11, 3], [5, 3, 0, 0]]), torch.tensor([[2, 4, 6], [2, 8, 3]])
    with torch.inference_mode():
        expected, logits = (
            output_logits(model, model.decode(model.encode(source), target)) for model in (plain, prepared)
        )
    torch.testing.assert_close(logits, expected)
