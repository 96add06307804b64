"""The speed of a training's updates, for estimates of its time."""

from __future__ import annotations

import pytest

from creamtea_workers.training import speed


@pytest.mark.parametrize("length", [1.0, 8.0])
def test_updates_of_a_shape_are_timed(length: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SECONDS", 0.05)
    architecture = {"encoder_layers": 1, "decoder_layers": 1, "width": 32, "heads": 4, "feed_forward": 64}
    speeds = speed.tokens_per_second(architecture, 100, 64, length, threads=1)
    assert speeds.keys() == {"bf16", "none"}
    assert all(len(rounds) == speed.ROUNDS and min(rounds) > 0 for rounds in speeds.values())
