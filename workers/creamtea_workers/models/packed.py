"""Training on a GPU: sentences packed without padding between them (Transformers), and passes that are
recorded and replayed.

Products and elementwise kernels work on real subwords only, and kernels for attention know where sentences
begin. Packed batches have few different sizes, so that kernels can be replayed.

Shapes: B sentences, N subwords of all of them (N_q queries, N_s keys), H heads, D width, E = D / H.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

RECORD_AT = 8  # record at a shape's eighth call: a recording takes as long as many calls
MOST = 64  # recordings; each keeps its arguments, its result and their gradients in the GPU's memory
ROOM = 0.1  # share of a GPU's memory that recordings leave free
WARM_UP = 3  # calls before a recording, in which libraries choose their kernels and allocate memory
SHORT = 64  # positions of a sentence; for longer ones there are faster kernels than `fused.ShortAttention`


@dataclass(frozen=True)
class Lengths:
    """Sentence b has the rows starts[b] to starts[b + 1], at most `longest` of them."""

    starts: Tensor  # (B + 1,) int32
    longest: int

    def sentences(self, rows: int) -> Tensor:
        places = torch.arange(rows, device=self.starts.device, dtype=torch.int32)
        return torch.bucketize(places, self.starts, right=True)


@dataclass(frozen=True)
class Spans:
    """The sentences of queries, and of keys: the queries of sentence b attend to the keys of sentence b."""

    queries: Lengths
    keys: Lengths

    def attend(self, query: Tensor, key: Tensor, value: Tensor, dropout: float, causal: bool) -> Tensor:
        """Return the attention (N_q, D) of query (N_q, H, E) over key and value (N_s, H, E)."""
        starts, longest = (self.queries.starts, self.keys.starts), (self.queries.longest, self.keys.longest)
        if not query.is_cuda:  # the same without kernels for packed sentences, under a mask (N_q, N_s)
            mask = self.queries.sentences(len(query))[:, None] == self.keys.sentences(len(key))
            mask = mask.tril() if causal else mask
            q, k, v = (x.transpose(0, 1) for x in (query, key, value))  # (H, N, E)
            attended = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=dropout).transpose(0, 1)
        elif (
            query.dtype != torch.float32
            and not dropout
            and max(longest) <= SHORT
            and query.shape[2] in (16, 32, 64)
        ):
            from creamtea_workers.models.fused import ShortAttention

            attended = ShortAttention.apply(query, key, value, starts, longest, causal)  # type: ignore[no-untyped-call]
        elif query.dtype == torch.float32:
            # the 1: a query attends to keys up to its own position
            attended = torch.ops.aten._efficient_attention_forward(
                *(x[None] for x in (query, key, value)), None, *starts, *longest, dropout, int(causal), True
            )[0][0]
        else:
            attended = torch.ops.aten._flash_attention_forward(
                query, key, value, *starts, *longest, dropout, causal, False
            )[0]
        return attended.flatten(1)


@dataclass
class Packing:
    """How a batch is packed, and the seed of its dropout."""

    source: Lengths
    target: Lengths
    dtype: torch.dtype  # type of matrix products
    seed: Tensor  # () int64, seed of the fused kernels' dropout
    sites: Iterator[int] = field(default_factory=count)  # numbers the model's dropouts in order of execution


def add_and_normalise(
    x: Tensor | None, added: Tensor, dropout: nn.Module, norm: nn.Module, packing: Packing | None
) -> tuple[Tensor, Tensor]:
    """Return x + dropout(added), and the layer normalisation of this sum; x None counts as zero.

    On a GPU one kernel computes both for packed batches and for inference: the sum is then in fp32.
    """
    if added.is_cuda and (packing is not None or not (dropout.training or torch.is_grad_enabled())):
        from creamtea_workers.models.fused import AddAndNormalise

        assert isinstance(norm, nn.LayerNorm)
        threshold = dropout.threshold if dropout.training else 0
        if packing is None:
            seed: Tensor = norm.weight  # not read without dropout
            site, dtype = 0, norm.weight.dtype
        else:
            seed, site, dtype = packing.seed, next(packing.sites), packing.dtype
        rows = None if x is None else x.flatten(0, -2)
        total, normed = AddAndNormalise.apply(  # type: ignore[no-untyped-call]
            rows, added.flatten(0, -2), norm.weight, norm.bias, seed, site, threshold, norm.eps, dtype
        )
        return total.view(added.shape), normed.view(added.shape)
    if dropout.training:
        added = dropout(added)
    total = added if x is None else x + added
    normed = norm(total)
    return (total, normed) if packing is None else (total, normed.to(packing.dtype))


Function = Callable[..., tuple[Tensor, ...]]
# ---------------------------------------------------------------- recorded passes


# A recording (CUDA graph) replays the kernels of a function on a GPU, forwards and backwards, for one shape
# of arguments. A Transformer starts some hundred small kernels per batch and a recurrent decoder for each
# target position. Starting them takes longer than they run. A recording starts all of them at once.


class Recorder:
    """Call a function of tensors; replay it for shapes that have been recorded.

    Dropout draws the same numbers as without a recording. Recordings share the memory of intermediate
    results: compute the gradient of one call before the next call.
    """

    def __init__(self, record_at: int = RECORD_AT, most: int = MOST) -> None:
        self.record_at, self.most = record_at, most
        self.replays = 0
        self._calls: Counter[Any] = Counter()
        self._recordings: dict[Any, _Recording] = {}
        self._shared: _Shared | None = None

    def __deepcopy__(self, memo: Any) -> Recorder:
        return Recorder(self.record_at, self.most)  # the copy has other weights, which no recording reads

    @property
    def share(self) -> float | None:
        """The share of calls that were replays; None before the first call."""
        calls = self._calls.total()
        return self.replays / calls if calls else None

    def __call__(
        self, function: Function, weights: Sequence[Tensor], *arguments: Tensor, key: Any
    ) -> tuple[Tensor, ...]:
        """Return function(*arguments), replayed if there is a recording.

        `weights`: parameters that the function also reads; at least one must be trained for a replay. `key`
        distinguishes functions with arguments of the same shapes. A result that has no gradient has none in
        a replay.
        """
        trained = [weight for weight in weights if weight.requires_grad]
        shapes = tuple((tensor.shape, tensor.dtype, tensor.requires_grad) for tensor in arguments)
        place = (key, shapes, tuple(map(Tensor.data_ptr, trained)))
        self._calls[place] += 1
        recording = self._recordings.get(place)
        if recording is None:
            if self._calls[place] < self.record_at or len(self._recordings) == self.most or not has_room():
                return function(*arguments)
            if self._shared is None or [*map(id, self._shared.weights)] != [*map(id, trained)]:
                self._shared = _Shared(trained)
            recording = self._recordings[place] = _Recording(function, arguments, self._shared)
        self.replays += 1
        # autograd must see at least one of the weights
        return _Replay.apply(recording, trained[0], *arguments)  # type: ignore[no-untyped-call]


def has_room() -> bool:
    free, total = torch.cuda.mem_get_info()
    unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # given back before a recording
    return free + unused > ROOM * total


class _Shared:
    """The gradients, memory pool and stream that all recordings of the same weights use."""

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self.weights = weights
        self.slopes = [torch.zeros_like(weight) for weight in weights]
        self.pool: Any = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream()  # one for all recordings: cuBLAS keeps memory for each stream

    @torch.no_grad()
    def add_gradients(self) -> None:
        """Add the slopes to the weights' gradients. Autograd would start a kernel for each of them."""
        fresh, added = [], []
        for weight, slope in zip(self.weights, self.slopes, strict=True):
            if weight.grad is None:
                weight.grad = torch.empty_like(weight)
                fresh.append((weight.grad, slope))
            else:
                added.append((weight.grad, slope))
        for gradients, slopes in by_type(fresh):
            torch._foreach_copy_(gradients, slopes)
        for gradients, slopes in by_type(added):
            torch._foreach_add_(gradients, slopes)


class _Recording:
    def __init__(self, function: Function, arguments: Sequence[Tensor], shared: _Shared) -> None:
        self.shared = shared
        self.arguments = [
            tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in arguments
        ]
        wanted = [*(tensor for tensor in self.arguments if tensor.requires_grad), *shared.weights]
        with torch.random.fork_rng([arguments[0].device]), torch.enable_grad():
            self._warm_up(function, wanted)
        self.forwards, self.backwards = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        # other threads of this process (one that writes a checkpoint) may use the GPU meanwhile
        with (
            torch.enable_grad(),
            torch.cuda.graph(self.forwards, shared.pool, shared.stream, "thread_local"),
        ):
            results = function(*self.arguments)
        ends = [result for result in results if result.requires_grad]
        self.slopes_in = [torch.zeros_like(end) for end in ends]
        with torch.cuda.graph(self.backwards, shared.pool, shared.stream, "thread_local"):
            gradients = iter(torch.autograd.grad(ends, wanted, self.slopes_in))
            slopes = [next(gradients) if tensor.requires_grad else None for tensor in self.arguments]
            for kept, slope in by_type(list(zip(shared.slopes, gradients, strict=True))):
                torch._foreach_copy_(kept, slope)
        self.differentiable = [result.requires_grad for result in results]
        self.results, self.slopes = [result.detach() for result in results], slopes

    def _warm_up(self, function: Function, wanted: Sequence[Tensor]) -> None:
        stream = self.shared.stream
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                ends = [result for result in function(*self.arguments) if result.requires_grad]
                torch.autograd.grad(ends, wanted, [torch.zeros_like(end) for end in ends])
        torch.cuda.current_stream().wait_stream(stream)

    def run(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        for kept, tensor in zip(self.arguments, arguments, strict=True):  # the weights are where they were
            kept.copy_(tensor)
        self.forwards.replay()
        return [result.clone() for result in self.results]

    def run_backwards(self, slopes: Sequence[Tensor]) -> list[Tensor | None]:
        """Replay; return the gradients of the arguments. `shared.slopes` has the weights' gradients."""
        for kept, slope in zip(self.slopes_in, slopes, strict=True):
            kept.copy_(slope)
        self.backwards.replay()
        return [None if tensor is None else tensor.clone() for tensor in self.slopes]


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, recording: _Recording, weight: Tensor, *arguments: Tensor) -> tuple[Tensor, ...]:
        ctx.recording = recording
        results = recording.run(arguments)
        kept = zip(results, recording.differentiable, strict=True)
        ctx.mark_non_differentiable(*(result for result, differentiable in kept if not differentiable))
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        kept = zip(slopes, ctx.recording.differentiable, strict=True)
        of_arguments = ctx.recording.run_backwards([slope for slope, wanted in kept if wanted])
        ctx.recording.shared.add_gradients()
        return (None, None, *of_arguments)


def by_type(pairs: Sequence[tuple[Tensor, Tensor]]) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
    """Group pairs by the dtype of their first tensors: one kernel changes many tensors of one dtype."""
    for dtype in {first.dtype for first, _ in pairs}:
        chosen = [pair for pair in pairs if pair[0].dtype == dtype]
        yield [first for first, _ in chosen], [second for _, second in chosen]
