"""Triton's kernels on a CPU."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch


def run_interpreted(tests: Path) -> None:
    """Run a file of tests with Triton's interpreter; a failure shows what it printed.

    In a process of its own: Triton reads TRITON_INTERPRET when it is imported.
    """
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(tests)],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def quickly_interpreted(module: str) -> Iterator[None]:
    """Keep calls within a module's kernels from preparing triton.language anew.

    Their launch has done that, and it takes longer than all else.
    """
    import triton
    from triton.runtime.interpreter import InterpretedFunction

    call = InterpretedFunction.__call__

    def inside(self: InterpretedFunction, *arguments: Any, **options: Any) -> Any:
        if self.fn.__module__ == module:
            return self.rewrite()(*arguments, **options)
        return call(self, *arguments, **options)

    assert triton.knobs.runtime.interpret
    with patch.object(InterpretedFunction, "__call__", inside):
        yield


def compile_for_hopper(
    kernel: Any, types: Mapping[str, str], constants: Mapping[str, Any], **options: int
) -> bytes:
    """Compile a kernel without a GPU: the interpreter runs much that the compiler refuses.

    `types`: of the arguments that are not constants, as Triton writes them.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    places = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(kernel, signature, places)
    compiled: bytes = triton.compile(source, GPUTarget("cuda", 90, 32), options).asm["cubin"]
    return compiled
