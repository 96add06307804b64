"""What a step does to its process before it uses torch."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # malloc.h


def prepare_torch(cpus: int, deterministic: bool = True) -> None:
    """Use `cpus` threads, and keep freed memory. `deterministic`: use such kernels where there are any."""
    torch.set_num_threads(cpus)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic only with it
    # use_deterministic_algorithms imports the compiler, too
    torch.set_deterministic_debug_mode("warn" if deterministic else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    use_tf32(False)  # cuDNN would compute recurrent layers in it: gradients are then off by 10⁻³
    # cuDNN plans its attention for each new shape, which takes as long as several updates; batches have many
    torch.backends.cuda.enable_cudnn_sdp(False)
    if sys.platform == "linux":
        keep_freed_memory()


def use_tf32(on: bool) -> None:
    """Set whether a GPU rounds the factors of matrix products of fp32 numbers to ten bits."""
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
    """Ask malloc to keep blocks of some megabytes when they are freed.

    Otherwise every larger tensor goes back to the kernel, which must find and zero its pages again for the
    next one: a softmax of 256 × 4000 took 1.3 ms instead of 6, a whole update 10 % less. Other C libraries
    than glibc may lack `mallopt`; then memory is managed as always, with the same results.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 2**25)  # the largest that every glibc takes
        mallopt(M_TRIM_THRESHOLD, 2**30)
        mallopt(M_TOP_PAD, 2**26)
