"""The fused kernels without a GPU: interpreted beside plain operations, compiled for Hopper."""

from pathlib import Path

import pytest
from interpreted_triton import compile_for_hopper, run_interpreted

pytest.importorskip("triton", reason="Triton has no packages for this system")


@pytest.mark.slow
def test_interpreted_they_are_the_plain_operations() -> None:
    run_interpreted(Path(__file__).with_name("interpreted_fused.py"))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
def test_the_attention_of_a_step_compiles(
    dtype: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from creamtea_workers.models.fused import _attend_few

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    constants = {"HEADS": 8, "ROWS": 4, "WIDTH": 64, "TILE": 16, "KEYS": 64}
    tensors = dict.fromkeys(("query", "key", "value", "mask", "attended"), f"*{dtype}")
    others = {name: "i32" for name in _attend_few.arg_names if name not in constants}
    types = {**others, **tensors, "scale": "fp32"}
    assert compile_for_hopper(_attend_few, types, constants, num_stages=1)
