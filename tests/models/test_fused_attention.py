"""The kernel of a step's attention without a GPU: interpreted beside torch's, compiled for Hopper."""

from pathlib import Path

import pytest
from interpreted_triton import run_interpreted

pytest.importorskip("triton", reason="Triton has no packages for this system")


@pytest.mark.slow
def test_interpreted_it_is_the_attention_of_torch() -> None:
    file = Path(__file__).with_name("interpreted_attention.py")
    run_interpreted("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(file))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
def test_it_compiles(dtype: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The interpreter runs much that the compiler refuses."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from creamtea_workers.models.fused import _attend_few

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    constants = {"HEADS": 8, "ROWS": 4, "WIDTH": 64, "TILE": 16, "KEYS": 64}
    types = {
        **dict.fromkeys(("query", "key", "value", "mask", "attended"), f"*{dtype}"),
        **dict.fromkeys(constants, "constexpr"),
        "scale": "fp32",
    }
    signature = {name: types.get(name, "i32") for name in _attend_few.arg_names}
    places = {(_attend_few.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(_attend_few, signature, places)
    assert triton.compile(source, GPUTarget("cuda", 90, 32), {"num_stages": 1}).asm["cubin"]
