"""The losses' GPU kernels without a GPU: interpreted beside the chunked path, compiled for Hopper."""

from pathlib import Path
from typing import Any

import pytest
import torch
from interpreted_triton import run_interpreted

from creamtea.methods.objectives import Entmax, Objective, Scones, Softmax
from creamtea_workers.objectives import build_objective

pytest.importorskip("triton", reason="Triton has no packages for this system")
POINTERS = {torch.bfloat16: "*bf16", torch.float32: "*fp32", torch.float64: "*fp64", torch.int64: "*i64"}


@pytest.mark.slow
def test_interpreted_they_equal_the_chunked_path() -> None:
    file = Path(__file__).with_name("interpreted_kernels.py")
    run_interpreted("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(file))


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
    """The interpreter runs much that the compiler refuses."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from creamtea_workers.objectives import kernels

    compiled = []

    def compile_(kernel: Any, *tensors: torch.Tensor, **options: Any) -> None:
        types = dict(
            zip(kernel.arg_names, [POINTERS[tensor.dtype] for tensor in tensors] + ["i32"], strict=False)
        )
        if options.get("frequencies") is not None:
            types["frequencies"] = POINTERS[options.pop("frequencies").dtype]
        constants = {**options, "BLOCK": 128, "SPAN": 256}
        signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
        source = ASTSource(
            kernel, signature, {(kernel.arg_names.index(name),): value for name, value in constants.items()}
        )
        compiled.append(triton.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 4}).asm["cubin"])

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernels, "launch", compile_)
    objective = build_objective(spec, torch.full((200,), 1 / 200))
    objective.fused_(torch.zeros(2, 200).bfloat16(), torch.zeros(200), torch.tensor([3, 4]))
    if isinstance(spec, Entmax):
        kernels.entmax_log_scores(torch.zeros(2, 200), spec.alpha)
    assert all(compiled)
    assert len(compiled) == 1 + isinstance(spec, Entmax)
