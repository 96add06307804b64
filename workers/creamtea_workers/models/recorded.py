"""A function whose kernels a GPU replays, forwards and backwards: a recording for each shape of arguments.

A recurrent decoder starts some hundred small kernels for each target position, and starting them takes
longer than they run. A recording (CUDA graph) starts all of them at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Function = Callable[..., Tensor]
RECORD_AT = 3  # a shape's third call: making a recording takes as long as some thirty calls
MOST = 64  # recordings; each keeps its arguments and results in the GPU's memory
WARM_UP = 3  # calls before a recording, in which libraries choose their kernels and take their memory


class Recorder:
    """Calls a function of tensors, and replays it where it knows the shapes.

    The draws of dropout are those that the function itself would make. Recordings share the memory of what
    they compute on the way: the gradient of one call must be computed before the next call.
    """

    def __init__(self) -> None:
        self._calls: Counter[Any] = Counter()
        self._recordings: dict[Any, _Recording] = {}
        self._pool: Any = None

    def __deepcopy__(self, memo: Any) -> Recorder:
        return Recorder()  # of other weights

    def __call__(self, function: Function, weights: Sequence[Tensor], *arguments: Tensor, key: Any) -> Tensor:
        """function(*arguments), of which `weights` are what it reads besides. `key` tells apart functions
        that compute something else from arguments of the same shapes."""
        trained = [weight for weight in weights if weight.requires_grad]
        shapes = tuple((tensor.shape, tensor.dtype, tensor.requires_grad) for tensor in arguments)
        place = (key, shapes, tuple(map(Tensor.data_ptr, trained)))
        self._calls[place] += 1
        found = self._recordings.get(place)
        if found is None:
            if self._calls[place] < RECORD_AT or len(self._recordings) == MOST:
                return function(*arguments)
            if self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            found = self._recordings[place] = _Recording(function, arguments, trained, self._pool)
        result: Tensor = _Replay.apply(found, *arguments, *trained)  # type: ignore[no-untyped-call]
        return result


class _Recording:
    def __init__(
        self, function: Function, arguments: Sequence[Tensor], weights: Sequence[Tensor], pool: Any
    ) -> None:
        self.arguments = [
            tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in arguments
        ]
        wanted = [*(tensor for tensor in self.arguments if tensor.requires_grad), *weights]
        with torch.random.fork_rng([arguments[0].device]), torch.enable_grad():
            self._warm_up(function, wanted)
        self.forwards, self.backwards = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        # other threads of this process (one that writes a checkpoint) may use the GPU meanwhile
        with torch.enable_grad(), torch.cuda.graph(self.forwards, pool, capture_error_mode="thread_local"):
            self.result = function(*self.arguments)
        self.slope = torch.zeros_like(self.result)
        with torch.cuda.graph(self.backwards, pool, capture_error_mode="thread_local"):
            slopes = torch.autograd.grad(self.result, wanted, self.slope)
        self.result = self.result.detach()
        found = iter(slopes)
        of_arguments = [next(found) if tensor.requires_grad else None for tensor in self.arguments]
        self.slopes = [*of_arguments, *found]

    def _warm_up(self, function: Function, wanted: Sequence[Tensor]) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                result = function(*self.arguments)
                torch.autograd.grad(result, wanted, torch.zeros_like(result))
        torch.cuda.current_stream().wait_stream(stream)

    def run(self, arguments: Sequence[Tensor]) -> Tensor:
        for kept, tensor in zip(self.arguments, arguments, strict=False):  # the weights are where they were
            kept.copy_(tensor)
        self.forwards.replay()
        return self.result.clone()

    def run_backwards(self, slope: Tensor) -> list[Tensor | None]:
        """Copies: the next replay writes where these are."""
        self.slope.copy_(slope)
        self.backwards.replay()
        return [None if tensor is None else tensor.clone() for tensor in self.slopes]


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, recording: _Recording, *tensors: Tensor) -> Tensor:
        ctx.recording = recording
        return recording.run(tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        return (None, *ctx.recording.run_backwards(slopes[0]))
