"""Set up torch and memory in a step's process."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # malloc.h


def prepare_torch(cpus: int, deterministic: bool = True) -> None:
    """Use `cpus` threads, keep freed memory and, if `deterministic`, use deterministic kernels."""
    torch.set_num_threads(cpus)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS is not deterministic
    # not use_deterministic_algorithms, which also imports the compiler
    torch.set_deterministic_debug_mode("warn" if deterministic else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    use_tf32(False)  # with TF32 in cuDNN's recurrent layers, gradients are off by 10⁻³
    # cuDNN plans its attention for each new shape; batches have many shapes
    torch.backends.cuda.enable_cudnn_sdp(False)
    if sys.platform == "linux":
        keep_freed_memory()


def use_tf32(on: bool) -> None:
    """Set whether a GPU rounds the factors of fp32 matrix products to ten bits (TF32)."""
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


@contextmanager
def tf32_products() -> Iterator[None]:
    use_tf32(True)
    try:
        yield
    finally:
        use_tf32(False)


def keep_freed_memory() -> None:
    """Ask malloc to keep freed blocks of some megabytes; do nothing if the C library has no `mallopt`.

    By default malloc returns every larger tensor to the kernel, which must find and zero the pages of the
    next one. Results are the same.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 2**25)  # the largest that every glibc takes
        mallopt(M_TRIM_THRESHOLD, 2**30)
        mallopt(M_TOP_PAD, 2**26)
