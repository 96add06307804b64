"""The losses' GPU kernels without a GPU: interpreted beside the chunked path, compiled for Hopper."""

from pathlib import Path
from typing import Any

import pytest
import torch
from interpreted_triton import compile_for_hopper, run_interpreted

from creamtea.methods.objectives import Entmax, Objective, Scones, Softmax
from creamtea_workers.objectives import build_objective

pytest.importorskip("triton", reason="Triton has no packages for this system")
POINTERS = {torch.bfloat16: "*bf16", torch.float32: "*fp32", torch.float64: "*fp64", torch.int64: "*i64"}


@pytest.mark.slow
def test_interpreted_they_equal_the_chunked_path() -> None:
    run_interpreted(Path(__file__).with_name("interpreted_kernels.py"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [
        Softmax(kind="softmax", label_smoothing=0.1),
        Softmax(kind="softmax", label_smoothing=0.1, smoothing="unigram"),
        Scones(kind="scones", alpha=0.5, label_smoothing=0.1),
        *(Entmax(kind="entmax", alpha=alpha, label_smoothing=0.1) for alpha in (1.001, 1.3, 1.5, 2.0, 3.0)),
    ],
    ids=str,
)
def test_they_compile(spec: Objective, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from creamtea_workers.objectives import kernels

    compiled = []

    def compile_(kernel: Any, *tensors: torch.Tensor, **options: Any) -> None:
        pointers = [POINTERS[tensor.dtype] for tensor in tensors]
        types = dict(zip(kernel.arg_names, [*pointers, "i32"], strict=False))
        if options.get("frequencies") is not None:
            types["frequencies"] = POINTERS[options.pop("frequencies").dtype]
        constants = {**options, "BLOCK": 128, "SPAN": 256}
        compiled.append(compile_for_hopper(kernel, types, constants, num_warps=4))

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernels, "launch", compile_)
    objective = build_objective(spec, torch.full((200,), 1 / 200))
    objective.fused_(torch.zeros(2, 200).bfloat16(), torch.zeros(200), torch.tensor([3, 4]))
    if isinstance(spec, Entmax):
        kernels.entmax_log_scores(torch.zeros(2, 200), spec.alpha)
    assert all(compiled)
    assert len(compiled) == 1 + isinstance(spec, Entmax)
