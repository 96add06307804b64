"""Models whose source has a vocabulary of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from creamtea_workers.models.build import ModelConfig, build_model, load_model, save_model

SIZES = {"encoder_layers": 1, "decoder_layers": 1, "width": 16, "heads": 2, "feed_forward": 32}
SOURCE = {"size": 12, "bracketed": 3}


def config(**changes: Any) -> ModelConfig:
    parts = {"objective": {"kind": "softmax"}, "architecture": SIZES, "nvs": None, "vocabulary_size": 7}
    return ModelConfig.model_validate({**parts, **changes})


def test_the_source_has_an_embedding_of_its_own() -> None:
    own, joint = build_model(config(source_vocabulary=SOURCE)), build_model(config())
    added = {name: value.shape for name, value in own.state_dict().items() if name not in joint.state_dict()}
    assert added == {"source_embedding.weight": (12, 16)}
    memory = own.encode(torch.tensor([[11, 10, 3]]))  # ids that the target does not have
    assert own.decode(memory, torch.tensor([[2, 6]])).shape == (1, 2, 16)


def test_source_and_target_are_not_tied() -> None:
    model = build_model(config(source_vocabulary=SOURCE)).eval()
    source, target = torch.tensor([[5, 3]]), torch.tensor([[2, 5]])
    memory = model.encode(source)
    before = model.decode(memory, target)
    with torch.no_grad():
        model.embedding.weight.mul_(2.0)
    assert torch.equal(model.encode(source).hidden, memory.hidden)
    assert not torch.equal(model.decode(memory, target), before)


def test_a_model_of_a_joint_vocabulary_is_written_as_before() -> None:
    assert "source_vocabulary" not in config().model_dump(mode="json")


@pytest.mark.parametrize("changes", [{}, {"source_vocabulary": SOURCE}])
def test_saved_and_loaded(tmp_path: Path, changes: dict[str, Any]) -> None:
    wanted = config(**changes)
    model = build_model(wanted)
    save_model(tmp_path, model, wanted)
    loaded, _, found = load_model(tmp_path)
    assert found == wanted
    assert all(torch.equal(loaded.state_dict()[name], value) for name, value in model.state_dict().items())
