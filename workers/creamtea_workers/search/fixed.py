"""Decoding in tensors of fixed shape: on a GPU a whole step, from the last tokens to the next, is one replay.

A program (`models.graphs`) serves all batches up to certain numbers of sentences, source positions, target
positions and selected subwords. Finished sentences run on without effect until all are finished. The CPU
reads only whether any sentence is still running, and reads it one step late, so that the GPU never waits.

Translations equal those of the loops in `beam` and `greedy`, which free memory and work as rows finish, and
are faster on a CPU. The loops also serve systems without a state of fixed shape: ensembles, and beams and
samples too wide for one attention over all rows of a sentence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from creamtea_workers.models.graphs import Graphs, New, Program, bucket
from creamtea_workers.models.interface import EOS, PAD, Memory, TranslationModel
from creamtea_workers.models.model import Model
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import Hypothesis, SearchInput
from creamtea_workers.search.output import OutputLayer

DEVICES = {"cuda"}  # devices on which it is faster
MAX_ROWS = 64  # rows per sentence
POSITIONS, WORDS = 8, 256  # lengths and selections are rounded up to multiples of these


class Running(ABC):
    """The hypotheses of B sentences, k rows each, while they are decoded."""

    running: Tensor  # (B,) or (B, k) bool
    limits: Tensor  # (B,) or (B, 1)
    last: Tensor  # the rows' last tokens (B, k)

    def load(self, batch: SearchInput) -> None:
        """Take a batch of at most B sentences."""
        limits = [*batch.limits, *[0] * (len(self.limits) - len(batch.limits))]
        self.limits.copy_(torch.tensor(limits).view_as(self.limits))

    @abstractmethod
    def begin(self, output: OutputLayer) -> None:
        """Start decoding the loaded batch; `output` is its output layer."""

    @abstractmethod
    def extend(self, hidden: Tensor, output: OutputLayer, objective: Objective) -> Tensor | None:
        """Extend the hypotheses by one token, chosen by hidden (B, k, D); copy nothing to the CPU.

        Returns the row (B, k) that each new row continues; None: its own.
        """

    @abstractmethod
    def results(self, sentences: int) -> list[list[Hypothesis]]:
        """Return the hypotheses of the first `sentences` sentences."""


Make = Callable[[New, int, int], Running]  # the integers: sentences and positions


class Encoding(Program):
    """The encoder as a program of `Graphs`."""

    def __init__(self, new: New, model: Model, sentences: int, length: int) -> None:
        self.model = model
        self.source = new((sentences, length), torch.long)
        self.hidden = new((sentences, length, model.output_weight.shape[1]), model.output_weight.dtype)

    def functions(self) -> Sequence[Callable[[], None]]:
        return [self.encode]

    def encode(self) -> None:
        self.hidden.copy_(self.model.encode(self.source).hidden)


def encode_fixed(model: TranslationModel, source: Tensor) -> Memory:
    """Call `model.encode`, replayed if the device and the model allow it."""
    if source.device.type not in DEVICES or not isinstance(model, Model) or not model.fixed_encoder:
        return model.encode(source)
    sentences, length = source.shape
    sizes = bucket(sentences), bucket(length, POSITIONS)
    graphs = graphs_of(model, source.device)
    with graphs.lock:
        encoding = graphs.program(("encode", sizes), lambda new: Encoding(new, model, *sizes))
        if encoding is None:
            return model.encode(source)
        encoding.source.fill_(PAD)
        encoding.source[:, 0] = EOS  # also in unused rows: with every position masked they would be NaN
        encoding.source[:sentences, :length].copy_(source)
        encoding.replays[0]()
        # a copy, since other programs use the same memory
        return Memory(encoding.hidden[:sentences, :length].clone(), source != PAD)


class Decoding(Program):
    """A step of decoding as a program of `Graphs`."""

    def __init__(
        self, new: New, batch: SearchInput, model: Model, make: Make, sizes: tuple[int, int, int, int, int]
    ) -> None:
        sentences, rows, source, length, words = sizes
        self.model, self.objective = model, batch.objective
        self.state = model.start_fixed(new, sentences, rows, source, length)
        self.output = batch.output.fixed(new, sentences, words)
        self.hypotheses = make(new, sentences, length)
        self.any_running = new((1,), torch.bool)

    def functions(self) -> Sequence[Callable[[], None]]:
        return [self.begin, self.step]

    def load(self, batch: SearchInput) -> None:
        self.state.load(batch.memory)
        self.output.load(batch.output)
        self.hypotheses.load(batch)

    def begin(self) -> None:
        self.state.begin()
        self.hypotheses.begin(self.output)

    def step(self) -> None:
        hidden = self.model.step_fixed(self.hypotheses.last, self.state)  # (B, k, D)
        parents = self.hypotheses.extend(hidden, self.output, self.objective)
        if parents is not None:
            self.state.reorder(parents)
        torch.any(self.hypotheses.running.view(1, -1), dim=1, out=self.any_running)


def decode_fixed(batch: SearchInput, rows: int, key: Hashable, make: Make) -> list[list[Hypothesis]] | None:
    """Decode each sentence in `rows` decoder rows; return None if the search must use its own loop.

    It must in the cases above, and if the GPU has no room for a program. `key` identifies `make` and the
    search's settings.
    """
    model, output, device = batch.model, batch.output, batch.memory.hidden.device
    if device.type not in DEVICES or rows > MAX_ROWS or not (isinstance(model, Model) and output.fixable):
        return None
    (sentences, source), words = batch.memory.mask.shape, output.size
    sizes = (
        bucket(sentences),
        rows,
        bucket(source, POSITIONS),
        bucket(max(batch.limits), POSITIONS),
        words if words == model.vocabulary_size else bucket(words, WORDS),
    )
    key = (key, sizes, type(output), batch.objective)
    graphs = graphs_of(model, device)
    with torch.inference_mode(), graphs.lock:
        decoding = graphs.program(key, lambda new: Decoding(new, batch, model, make, sizes))
        if decoding is None:
            return None
        decoding.load(batch)
        _replay(decoding, max(batch.limits), device)
        return decoding.hypotheses.results(sentences)


def _replay(decoding: Decoding, steps: int, device: torch.device) -> None:
    """Run at most `steps` steps.

    On a GPU the next step starts before it is known whether the last step finished all sentences; such a step
    changes nothing.
    """
    begin, replay_step = decoding.replays
    begin()
    if device.type != "cuda":
        for _ in range(steps):
            replay_step()
            if not bool(decoding.any_running):
                return
        return
    answers = [torch.empty(1, dtype=torch.bool, pin_memory=True) for _ in range(2)]
    events = [torch.cuda.Event() for _ in range(2)]
    for step in range(steps):
        replay_step()
        answers[step % 2].copy_(decoding.any_running, non_blocking=True)
        events[step % 2].record()
        if step:
            events[(step - 1) % 2].synchronize()
            if not bool(answers[(step - 1) % 2]):
                return


def graphs_of(model: Model, device: torch.device) -> Graphs:
    if model.graphs is None:
        model.graphs = Graphs(device)
    return model.graphs
