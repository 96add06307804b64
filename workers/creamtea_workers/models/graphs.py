"""Functions on tensors at fixed addresses, which a GPU replays as CUDA graphs, and decoder states for them.

A decoder's step starts about a hundred small kernels, and starting them takes ten times as long as they run.
A graph starts all of them at once. On a CPU the functions run without graphs.

Only one program of a model runs at a time, so all of them share one block of memory for their tensors, and
one pool for intermediate results.
"""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from threading import RLock
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from creamtea_workers.models.interface import Memory
from creamtea_workers.models.state import Source

MAX_PROGRAMS = 256  # the least recently used program is dropped first
MIN_ARENA = 1 << 26  # bytes
ALIGNMENT = 256  # bytes
LEAST_FREE = 0.1  # share of a GPU's memory; if less is free, torch's cache is emptied before a capture

New = Callable[[Sequence[int], torch.dtype], Tensor]  # shape, type → a tensor whose content is undefined


Sizes = tuple[int, int, int, int, int, int]  # L, B, k, H, S, E
Project = Callable[[Tensor], Iterable[Tensor]]  # (B, S, D) → keys and values (2, B, H, S, E) in each layer


class Program(ABC):
    """Tensors, and functions that work on them in place.

    The functions copy nothing to the CPU, and no shape depends on data.
    """

    replays: Sequence[Callable[[], None]]  # the captured functions

    @abstractmethod
    def functions(self) -> Sequence[Callable[[], None]]: ...


P = TypeVar("P", bound=Program)


class Graphs:
    """The programs of one model on one device, by key."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds = 0.0  # time spent on captures
        self.lock = RLock()  # held while a program is used
        self._programs: OrderedDict[Hashable, Any] = OrderedDict()
        self._arena: Tensor | None = None
        self._pool: Any = None
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __deepcopy__(self, memo: Any) -> None:
        return None  # a copy of the model has other weights

    def program(self, key: Hashable, build: Callable[[New], P]) -> P | None:
        """Return the program with this key; warn and return None if the GPU has no room.

        A new program is built and captured. `build` makes it, with tensors from `New`; it is called twice,
        first to measure the memory.
        """
        if key not in self._programs:
            try:
                self._reserve(build)
                while len(self._programs) >= MAX_PROGRAMS:
                    self._programs.popitem(last=False)
                program = build(_Cutter(self._arena))
                program.replays = self._captured(program.functions())
            except Exception as error:
                self.clear()  # a failed capture leaves an unusable pool
                if not isinstance(error, torch.OutOfMemoryError):
                    raise
                warnings.warn(
                    "the GPU has no room for a CUDA graph: kernels are started one by one", stacklevel=2
                )
                return None
            self._programs[key] = program
        self._programs.move_to_end(key)
        return self._programs[key]

    def clear(self) -> None:
        """Drop all programs and free their memory."""
        self._programs.clear()
        self._arena = self._pool = None  # torch refuses a pool that no graph uses any more
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _reserve(self, build: Callable[[New], Any]) -> None:
        """Make the shared memory as large as a program needs; growing it drops all other programs."""
        measure = _Cutter(None)
        build(measure)
        if self._arena is None or len(self._arena) < measure.used:
            self.clear()
            size = max(MIN_ARENA, measure.used)
            self._arena = torch.empty(size, dtype=torch.uint8, device=self.device)

    def _captured(self, functions: Sequence[Callable[[], None]]) -> Sequence[Callable[[], None]]:
        if self._stream is None:
            return functions
        began = time.perf_counter()
        assert self._arena is not None
        self._arena.zero_()  # libraries choose their kernels in the first run, which must not meet NaN
        free, total = torch.cuda.mem_get_info(self.device)
        if free < LEAST_FREE * total:
            torch.cuda.empty_cache()
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        graphs = [torch.cuda.CUDAGraph() for _ in functions]
        current = torch.cuda.current_stream(self.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream), any_kernels():
            for function in functions:
                function()
            self._arena.zero_()
            self._stream.synchronize()
            for graph, function in zip(graphs, functions, strict=True):
                # other threads of this process may use the GPU meanwhile
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    function()
                except BaseException:
                    with suppress(RuntimeError):  # it only repeats that the capture has failed
                        graph.capture_end()
                    raise
                graph.capture_end()
        current.wait_stream(self._stream)
        self.seconds += time.perf_counter() - began
        return [graph.replay for graph in graphs]


class _Cutter:
    """Cuts tensors off a block of memory, one after the other; without a block it only counts bytes."""

    def __init__(self, arena: Tensor | None) -> None:
        self.arena, self.used = arena, 0

    def __call__(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        size = math.prod(shape) * dtype.itemsize
        first, self.used = self.used, self.used + -(-size // ALIGNMENT) * ALIGNMENT
        if self.arena is None:
            return torch.empty(tuple(shape), dtype=dtype, device="meta")
        return self.arena[first : first + size].view(dtype).view(tuple(shape))


@contextmanager
def any_kernels() -> Iterator[None]:
    """Turn deterministic mode off.

    Deterministic mode makes `index_copy_` a sort, which is needless because no index repeats here.
    """
    mode = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode(0)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)


def bucket(size: int, step: int = 1) -> int:
    """Round `size` up to a multiple of `step`, to one of at most eight numbers per octave.

    So there are few different sizes, and at most a seventh of a large one is unused.
    """
    grain = max(step, 1 << max(0, (size - 1).bit_length() - 3))
    return -(-size // grain) * grain


# ---------------------------------------------------------------- states of fixed shape


# Tensors of these states neither move nor grow, so that a step can be replayed. Each sentence is decoded in k
# rows (a beam's slots, or samples). Self-attention has k queries and k entries (key and value) per position,
# one per row; a mask selects the entries of each row's prefix. Reordering a beam reorders only the mask, not
# the keys and values. Keys and values of the source exist once per sentence.
#
# Shapes: B sentences, k rows per sentence, S source positions, T target positions, L layers, H heads,
# D width, E = D / H, F width of a recurrent state.


class FixedState(Protocol):
    """A model's state for B × k rows between steps."""

    def load(self, memory: Memory) -> None:
        """Load the encoder's output of at most B sentences of at most S positions."""

    def begin(self) -> None:
        """Start decoding the loaded sentences from their beginning."""

    def reorder(self, parents: Tensor) -> None:
        """Make row j of sentence b a copy of the sentence's row parents[b, j]; parents (B, k)."""


class FixedDecoderState:
    """State of a Transformer decoder: keys and values of the encoder's output, and the position.

    `mask` is added to the attention scores over the source, `own_mask` to the scores of self-attention.
    """

    own_mask: Tensor | None = None

    def __init__(self, new: New, sizes: Sizes, positions: Tensor, project: Project) -> None:
        """`positions` (T, D): embeddings of all positions."""
        dtype = positions.dtype
        layers, sentences, _, heads, source, width = sizes
        self.hidden = new((sentences, source, heads * width), dtype)
        self.real = new((sentences, source), torch.bool)
        self.cross = new((layers, 2, sentences, heads, source, width), dtype)
        self.mask = new((sentences, 1, 1, source), dtype)
        self.position = new((1,), torch.long)
        self.positions, self.project = positions, project

    def load(self, memory: Memory) -> None:
        sentences, source = memory.mask.shape
        if self.real.shape != memory.mask.shape:
            self.hidden.zero_()
            self.real.zero_()
            self.real[sentences:].fill_(True)  # unused rows: with every position masked they would be NaN
        self.hidden[:sentences, :source].copy_(memory.hidden)
        self.real[:sentences, :source].copy_(memory.mask)

    def begin(self) -> None:
        for cached, entries in zip(self.cross, self.project(self.hidden), strict=True):
            cached.copy_(entries)
        self.mask.fill_(-torch.inf).masked_fill_(self.real[:, None, None], 0.0)
        self.position.zero_()

    def memory(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return keys and values (B, H, S, E) of the encoder's output."""
        keys, values = self.cross[layer].unbind(0)
        return keys, values

    def enter(self) -> Tensor:
        """Begin a step; return the embedding of the current position (1, D)."""
        return self.positions.index_select(0, self.position)

    def leave(self) -> None:
        self.position.add_(1)


class FixedAttentionState(FixedDecoderState):
    """State of a decoder with self-attention."""

    own_mask: Tensor

    def __init__(self, new: New, sizes: Sizes, positions: Tensor, project: Project) -> None:
        super().__init__(new, sizes, positions, project)
        layers, sentences, rows, heads, _, width = sizes
        entries = len(positions) * rows
        dtype = positions.dtype
        self.cache = new((layers, 2, sentences, heads, entries, width), dtype)
        self.own_mask = new((sentences, 1, rows, entries), dtype)
        self.places = new((rows,), torch.long)  # indices of the current position's entries
        self.slots = torch.arange(rows, device=positions.device)
        square = torch.full((rows, rows), -torch.inf, dtype=dtype, device=positions.device)
        # each row sees its own new entry
        self.new_mask = square.fill_diagonal_(0.0).expand(sentences, 1, rows, rows)

    def begin(self) -> None:
        super().begin()
        self.cache.zero_()
        self.own_mask.fill_(-torch.inf)

    def enter(self) -> Tensor:
        torch.add(self.slots, self.position, alpha=len(self.slots), out=self.places)
        self.own_mask.index_copy_(3, self.places, self.new_mask)
        return super().enter()

    def append(self, layer: int, entries: Tensor) -> tuple[Tensor, Tensor]:
        """Store keys and values (2, B, H, k, E) of the current position.

        Returns the keys and the values of all positions, (B, H, T·k, E) each.
        """
        keys, values = self.cache[layer].index_copy_(3, self.places, entries).unbind(0)
        return keys, values

    def reorder(self, parents: Tensor) -> None:
        index = parents[:, None, :, None].expand_as(self.own_mask)
        self.own_mask.copy_(self.own_mask.gather(2, index))


class FixedCellState(FixedDecoderState):
    """State of a decoder with SSRUs: one cell per layer and row, fp32 or wider."""

    def __init__(self, new: New, sizes: Sizes, positions: Tensor, project: Project) -> None:
        super().__init__(new, sizes, positions, project)
        layers, sentences, rows, heads, _, width = sizes
        precise = torch.promote_types(positions.dtype, torch.float32)
        self.cells = new((layers, sentences, rows, heads * width), precise)

    def begin(self) -> None:
        super().begin()
        self.cells.zero_()

    def cell(self, layer: int) -> Tensor:
        """Return the layer's cells (B, k, D)."""
        return self.cells[layer]

    def set_cell(self, layer: int, cell: Tensor) -> None:
        self.cells[layer].copy_(cell)

    def reorder(self, parents: Tensor) -> None:
        self.cells.copy_(self.cells.gather(2, parents[None, :, :, None].expand_as(self.cells)))


class FixedRnnState:
    """State of LSTMs with attention. Each row has its own copy of the source, which is a short word."""

    def __init__(
        self,
        new: New,
        dtype: torch.dtype,
        sizes: tuple[int, int, int, int],
        state: int,
        parts: int,
        look: Callable[[Memory], tuple[Tensor, Source]],
    ) -> None:
        """`sizes`: B, k, S, D; `state`: F; `parts`: the number of attentions; `look` returns the states
        (B, F) of empty prefixes, and the source that the attentions read."""
        self.look = look
        sentences, self.beams, source, width = sizes
        count = sentences * self.beams
        self.rows = new((count, state), dtype)
        self.source = Source(
            [
                (
                    new((count, source, width), dtype),
                    new((count, source, 2 * width), dtype),
                    new((count, source), torch.bool),
                )
                for _ in range(parts)
            ]
        )

    def load(self, memory: Memory) -> None:
        rows, source = self.look(memory)
        fixed = [self.rows, *chain(*self.source.parts)]
        for kept, first in zip(fixed, [rows, *chain(*source.parts)], strict=True):
            repeated = first.repeat_interleave(self.beams, 0)
            kept.zero_()
            kept[tuple(slice(size) for size in repeated.shape)].copy_(repeated)

    def begin(self) -> None:
        pass  # `load` has written the first states

    def reorder(self, parents: Tensor) -> None:
        rows = self.rows.unflatten(0, (-1, self.beams))
        rows.copy_(rows.gather(1, parents.unsqueeze(2).expand_as(rows)))
