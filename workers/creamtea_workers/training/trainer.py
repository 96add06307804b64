"""The training loop: updates, validations, checkpoints, early stopping, averaging."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from creamtea.contract.step import Checkpoints, GaveWay, LiveView
from creamtea.errors import DamagedCheckpoint, StepError
from creamtea.steps.systems import TrainParams
from creamtea_workers.corpora.batches import Batch, PackedBatch, Pairs, plan_epoch
from creamtea_workers.models.interface import EOS, PAD, Memory
from creamtea_workers.models.model import Model, ModelConfig, build_model, load_initial
from creamtea_workers.models.nvs import NvsHead, nvs_loss
from creamtea_workers.models.packed import Lengths, Packing, Recorder
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.objectives import build_objective
from creamtea_workers.objectives.base import unigram_frequencies
from creamtea_workers.runtime import prepare_torch, tf32_products
from creamtea_workers.training import checkpoint
from creamtea_workers.training.evaluate import (
    Development,
    Evaluation,
    LiveTraining,
    best_logits,
    evaluate,
    evaluate_head,
)
from creamtea_workers.training.group import Exchange, Group, TreeSum, batch_seed, gradient_of, leaves_of
from creamtea_workers.training.optimiser import learning_rate, make_optimiser

RECORD_AT, RECORDINGS = 2, 256  # record a shape's second batch; recordings take memory
HEADS_WIDTH = 8  # attention kernels support multiples of it, up to 256
MIN_BIAS = -100.0  # bias of a symbol that is never produced: smoothed labels give it a small finite loss
REPORT_EVERY = 20  # updates between readings of the loss, each of which waits for a GPU


@dataclass(frozen=True)
class TrainingResult:
    """The averaged model, and its evaluation on the development set."""

    model: Model
    evaluation: Evaluation
    position: checkpoint.Position
    stopped: str  # why the training ended


class Trainer:
    """Train a model on `pairs`; resume from the position in `checkpoints` if there is one.

    A training that is interrupted and resumed on a CPU with the same number of threads ends with exactly the
    same weights.

    `pairs_of_epoch` returns an epoch's pairs if each epoch segments the text anew; always as many as `pairs`.

    An adaptation starts from `initial`, the output folder of another train step. With `training.keep` "best"
    and no new NVS head, the initial model is validated at update 0 and competes for the best model: without
    averaging, an adaptation never ends with a worse value of `select_by` than it began with.
    """

    def __init__(
        self,
        params: TrainParams,
        pairs: Pairs,
        development: Development,
        device: torch.device,
        checkpoints: Checkpoints,
        progress: Callable[[float, float, str], None],
        initial: Path | None = None,
        group: Group | None = None,
        show: Callable[[LiveView], None] = lambda view: None,
        has_more_room: Callable[[], bool] = lambda: False,
        pairs_of_epoch: Callable[[int], Pairs] | None = None,
    ) -> None:
        self.training, self.nvs, self.seed = params.training, params.nvs, params.seed
        self.pairs, self.development, self.device = pairs, development, device
        self.pairs_of_epoch = pairs_of_epoch
        self.progress, self.group = progress, group or Group()
        self.has_more_room = has_more_room
        self.live = LiveTraining(development, show)
        self.saver = checkpoint.Saver(checkpoints, self.group)
        torch.manual_seed(self.seed)
        unigram = unigram_frequencies(pairs.targets, development.subwords.size).to(device)
        self.objective = build_objective(params.objective, unigram)
        self.config = ModelConfig(
            objective=params.objective,
            architecture=params.architecture,
            nvs=params.nvs,
            vocabulary_size=development.subwords.size,
            source_vocabulary=development.subwords.source_vocabulary,
        )
        self.model = build_model(self.config)
        self.width = self.model.output_weight.shape[1]
        same_parts = initial is not None and not load_initial(self.model, initial)
        self.validates_initial = same_parts and self.training.keep == "best"
        self.model.to(device)
        self.frozen = self.training.freeze is not None
        if self.frozen:
            for name, weight in self.model.named_parameters():
                weight.requires_grad_(name.startswith("nvs."))
        elif initial is not None:
            # symbols that an imported model never produces (`marian.NEVER`) have a share in smoothed labels
            with torch.no_grad():
                self.model.output_bias.clamp_(min=MIN_BIAS)
        self.weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        self.exchange = Exchange(self.group, self.weights)
        self.optimiser = make_optimiser(self.model, self.training)
        on_gpu = device.type == "cuda"
        self.deterministic = self.training.is_deterministic(on_gpu)
        self.packed: PackedPasses | None = None  # None: passes are not packed
        if on_gpu and not self.deterministic and not self.frozen and can_pack(self.model):
            self.pack()
        self.state = checkpoint.Position()
        self.plan: list[NDArray[Any]] = []
        self.planned_epoch = -1
        self.losses: list[Tensor] = []  # (2,) per update since the last flush: loss, translation losses
        self.loss_summary = self.dev_summary = ""
        self.clock = 0.0  # training time is counted up to this moment
        self.total = self.training.max_updates  # upper bound on updates
        if (epochs := self.training.max_epochs) is not None:
            self.total = min(self.total, epochs * math.ceil(len(self.plan_of(0)) / self.training.accumulate))

    def run(self) -> TrainingResult:
        with closing(self.saver):
            self.resume()
            self.live.begin(self.state)
            self.clock = time.monotonic()
            if self.validates_initial and not self.state.best:
                self.validate()
            while not self.stop_reason():
                self.proceed()
            if self.state.validated != self.state.update:
                self.validate()
            self.saver.wait()
            self.load_trained(checkpoint.average_best(self.saver, self.state.best))
        self.model.eval()
        return TrainingResult(self.model, self.group.share(self.evaluate), self.state, self.stop_reason())

    def trained_state(self) -> dict[str, Tensor]:
        """Return the weights that the training changes; a checkpoint holds no others."""
        state = self.model.state_dict()
        return {name: state[name] for name in state if name.startswith("nvs.")} if self.frozen else state

    def load_trained(self, state: dict[str, Tensor]) -> None:
        self.model.load_state_dict({**self.model.state_dict(), **state})

    def pack(self) -> None:
        dtype = torch.bfloat16 if self.training.autocast == "bf16" else torch.float32
        assert isinstance(self.model, Transformer)
        self.packed = PackedPasses(self.model, dtype)

    def proceed(self) -> None:
        """Perform one update, or end the epoch."""
        if self.state.position == len(self.plan_of(self.state.epoch)):
            self.state.epoch, self.state.position = self.state.epoch + 1, 0
            if self.training.validate_every is None:
                self.validate()
            return
        self.update(self.next_batches())
        if self.training.validate_every and self.state.update % self.training.validate_every == 0:
            self.validate()
        elif self.state.update % self.training.checkpoint_every == 0:
            self.checkpoint()

    def resume(self) -> None:
        self.saver.clear()
        try:
            saved = checkpoint.load_position(self.saver)
            if saved is not None:
                # to find a damaged model now, not at the end
                checkpoint.average_best(self.saver, saved[0].best)
        except DamagedCheckpoint:
            self.saver.discard_damaged()
            raise
        if saved is None and self.training.fit_logits:
            fit = partial(best_logits, self.model.eval(), self.objective, self.development.pairs, self.device)
            self.model.change_logits(*self.group.share(fit))
        if saved is not None:
            self.state, model, optimiser = saved
            self.load_trained(model)
            self.optimiser.load_state_dict(optimiser)
            if self.packed is not None:
                self.packed.refresh()

    def plan_of(self, epoch: int) -> list[NDArray[Any]]:
        if self.planned_epoch != epoch:
            if self.pairs_of_epoch is not None:
                self.pairs = self.pairs_of_epoch(epoch)
            self.plan = plan_epoch(
                self.pairs, self.training.batch_tokens, self.seed, epoch, self.training.batch_sentences
            )
            self.planned_epoch = epoch
        return self.plan

    def stop_reason(self) -> str:
        """Return why the training has ended; empty while it continues."""
        if self.state.update >= self.training.max_updates:
            return "max_updates"
        if self.training.max_epochs is not None and self.state.epoch >= self.training.max_epochs:
            return "max_epochs"
        lowest = self.training.learning_rate * 0.5**self.state.halvings
        if self.training.schedule == "plateau" and lowest < self.training.min_learning_rate:
            return "min_learning_rate"
        return "patience" if self.state.waited >= self.training.patience else ""

    def next_batches(self) -> list[NDArray[Any]]:
        """Return the batches of one update, as rows of `pairs`: `accumulate`, or the rest of the epoch."""
        first = self.state.position
        return self.plan[first : first + self.training.accumulate]

    def update(self, batches: Sequence[NDArray[Any]]) -> None:
        self.model.train(not self.frozen)  # a frozen model encodes without dropout, as in translation
        self.state.update += 1
        self.state.position += len(batches)
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate()
        self.losses.append(self.accumulate(batches))
        self.clip_gradients()
        self.saver.settle()
        self.optimiser.step()
        if self.packed is not None:
            self.packed.refresh()
        self.optimiser.zero_grad(set_to_none=True)
        tokens = self.target_tokens(batches)
        self.state.tokens += tokens
        self.state.loss_tokens += tokens
        if len(self.losses) >= REPORT_EVERY:
            self.flush_losses()

    def target_tokens(self, batches: Sequence[NDArray[Any]]) -> int:
        return sum(int(self.pairs.target_lengths[rows].sum()) for rows in batches)

    def clip_gradients(self) -> None:
        """Clip the gradients; clip the NVS head's separately.

        With a common norm, the head would shorten the model's steps.
        """
        head = [weight for name, weight in self.model.named_parameters() if name.startswith("nvs.")]
        others = [weight for name, weight in self.model.named_parameters() if not name.startswith("nvs.")]
        if self.training.clip_value is None:
            torch.nn.utils.clip_grad_norm_(others, self.training.clip)
        else:
            torch.nn.utils.clip_grad_value_(others, self.training.clip_value)
        if self.nvs is not None:
            torch.nn.utils.clip_grad_norm_(head, self.nvs.clip)

    def accumulate(self, batches: Sequence[NDArray[Any]]) -> Tensor:
        """Accumulate the gradients of all batches as if they were one.

        Returns the loss, and the sum of the translation losses: (2,). `TreeSum` adds the batches, so that the
        sums are exactly the same for any number of workers.
        """
        tokens, sentences = self.target_tokens(batches), sum(map(len, batches))
        if self.training.accumulate == 1:
            return self.backward(batches[0], 0, tokens, sentences)
        total, losses = TreeSum(), torch.zeros(2, device=self.device)  # stays 0 for a worker without batches
        positions = leaves_of(len(batches), self.group.rank, self.group.size)
        for position in positions:
            if position == positions[-1] and self.packed is None:  # in a replay all gradients arrive together
                self.exchange.begin(total)
            losses = self.backward(batches[position], position, tokens, sentences)
            if position != positions[-1]:
                total.add([*map(gradient_of, self.weights), losses])
                self.optimiser.zero_grad(set_to_none=True)
        return self.exchange.finish(total, losses)

    def backward(self, rows: NDArray[Any], position: int, tokens: int, sentences: int) -> Tensor:
        """Add the gradients of one batch of an update; return (2,): its share of the losses."""
        batch, seed = self.pairs.batch(rows), batch_seed(self.seed, self.state.update, position)
        if self.training.word_dropout:
            batch = batch.without_words(self.training.word_dropout, seed)
        torch.manual_seed(seed)  # for dropout
        bf16 = self.training.autocast == "bf16"
        with tf32_products() if self.training.autocast == "tf32" else nullcontext():
            with (
                attention_kernels(self.device, self.deterministic),
                torch.autocast(self.device.type, torch.bfloat16, enabled=bf16),
            ):
                loss, translation = self.losses_of(batch, seed, tokens, sentences)
            loss.backward()
        if self.packed is not None:
            self.packed.collect()
        return torch.stack((loss.detach(), translation.detach())).float()

    def losses_of(self, batch: Batch, seed: int, tokens: int, sentences: int) -> tuple[Tensor, Tensor]:
        """Return a batch's part in the loss of an update, and the sum of its translation losses.

        `tokens`, `sentences`: numbers in the whole update, whose loss is the mean translation loss per token
        plus the mean NVS loss per sentence. `seed`: the seed of dropout. If only the head is trained, its
        loss per sentence replaces the translation loss.
        """
        if self.frozen:
            batch = batch.to(self.device)
            with torch.no_grad():
                memory = self.model.encode(batch.source)
            loss = self.head_loss(memory, batch, sentences)
            return loss, loss * tokens
        if self.packed is None:
            batch = batch.to(self.device)
            memory = self.model.encode(batch.source)
            hidden, targets = batch.real(self.model.decode(memory, batch.target_in))
        else:
            packed = PackedBatch.of(batch, seed, self.device)
            targets = packed.targets
            rows, hidden = self.packed(packed)
            if self.nvs is not None:
                batch = batch.to(self.device)
                memory = unpacked(rows, batch.source)
        translation = self.objective.loss(hidden, self.model.output_weight, self.model.output_bias, targets)
        loss = translation / tokens
        if self.nvs is not None:
            loss = loss + self.head_loss(memory, batch, sentences)
        return loss, translation

    def head_loss(self, memory: Memory, batch: Batch, sentences: int) -> Tensor:
        """Return a batch's part in an update's mean NVS loss per sentence."""
        assert self.nvs is not None
        weights = (self.nvs.positive_weight, self.nvs.auto_weight)
        return len(batch.source) / sentences * nvs_loss(self.model.nvs_logits(memory), batch.target, *weights)

    def flush_losses(self) -> None:
        """Read the losses since the last flush. Raise StepError at the first that is not finite."""
        if not self.losses:
            return
        rows = torch.stack(self.losses).cpu()
        self.losses.clear()
        bad = (~rows.isfinite().all(1)).nonzero()
        if len(bad):
            update = self.state.update - len(rows) + 1 + int(bad[0])
            raise StepError(
                f"the training loss is {rows[int(bad[0]), 0].item()} at update {update}: lower "
                "training.learning_rate or training.clip, or lengthen training.warmup"
            )
        loss = rows[:, 1].double().sum().item()
        self.state.loss_sum += loss
        mean = self.live.add_loss(self.state, loss)
        unit = "sentence" if self.frozen else "token"
        self.loss_summary = f", loss {mean:.3f} per {unit}, learning rate {self.learning_rate():.2g}"
        self.report_progress()

    def report_progress(self) -> None:
        epoch = self.state.epoch + (self.state.position > 0)  # between two epochs: the finished one
        message = f"updates, epoch {epoch}{self.loss_summary}{self.dev_summary}"
        seconds = self.state.seconds + time.monotonic() - self.clock
        if self.clock and self.state.tokens and seconds > 0:
            message += f", {self.state.tokens / seconds:,.0f} tokens/s"
        self.progress(self.state.update, self.total, message)
        if self.clock:  # the training has begun
            self.live.refresh(self.state, seconds)

    def count_seconds(self) -> None:
        """Add the time since `clock` to the training time."""
        now = time.monotonic()
        self.state.seconds += now - self.clock
        self.clock = now

    def validate(self) -> None:
        self.flush_losses()
        self.count_seconds()
        result = self.group.share(self.evaluate)
        if not math.isfinite(result.loss):
            raise StepError(
                f"the development loss is {result.loss} after update {self.state.update}: lower "
                "training.learning_rate or training.clip, or lengthen training.warmup"
            )
        rank = result.rank(self.development.select_by)
        is_better = rank < self.best_rank()
        before = [kept.slot for kept in self.state.best]
        self.state.best = checkpoint.keep_best(
            self.saver,
            self.state.best,
            count=self.training.average,
            loss=rank,
            update=self.state.update,
            model=self.trained_state(),
            keep=self.training.keep,
            spared=self.state.spared,
        )
        self.state.spared = before
        self.state.validated = self.state.update
        self.add_points(result)
        self.live.add_translations(self.state.update, result.examples)
        self.state.waited = 0 if is_better else self.state.waited + 1
        self.state.stalled = 0 if is_better else self.state.stalled + 1
        if self.state.stalled > self.training.plateau_patience:
            self.state.stalled, self.state.halvings = 0, self.state.halvings + 1
        self.dev_summary = "" if self.frozen else f", dev BLEU {result.bleu:.1f}"
        if result.errors is not None:
            self.dev_summary = f", dev {self.development.select_by} {result.errors:.2f}"
        if math.isfinite(result.perplexity):
            self.dev_summary += f", dev perplexity {result.perplexity:.4g}"
        else:  # entmax may give a reference's token probability 0
            self.dev_summary += f", dev loss {result.loss:.4g}"
        self.report_progress()
        self.clock = time.monotonic()
        self.checkpoint()

    def evaluate(self) -> Evaluation:
        if self.frozen:
            assert self.nvs is not None
            return evaluate_head(self.model, self.nvs, self.development, self.device)
        return evaluate(self.model, self.objective, self.development, self.device)

    def best_rank(self) -> float:
        """Return the best rank of the validations so far."""
        select_by = self.development.select_by
        sign = -1 if select_by == "bleu" else 1
        ranks = [sign * y for name, _, y in self.state.points if name == f"dev_{select_by}"]
        return min(ranks, default=math.inf)

    def learning_rate(self) -> float:
        return learning_rate(self.state.update, self.training, self.width, self.state.halvings)

    def add_points(self, result: Evaluation) -> None:
        trained = self.state.update > 0  # False at the start of an adaptation
        rate = self.learning_rate() if trained else math.nan
        values = {
            "train_loss": self.state.loss_sum / self.state.loss_tokens if trained else math.nan,
            "dev_loss": result.loss,
            "dev_perplexity": result.perplexity,
            "dev_bleu": result.bleu,
            "learning_rate": rate,
        }
        if result.errors is not None:
            values[f"dev_{self.development.select_by}"] = result.errors
        self.state.loss_sum, self.state.loss_tokens = 0.0, 0
        self.state.points += [(name, self.state.update, y) for name, y in values.items() if math.isfinite(y)]

    def checkpoint(self) -> None:
        self.flush_losses()
        self.count_seconds()
        checkpoint.save_position(self.saver, self.state, self.trained_state(), self.optimiser.state_dict())
        if not self.stop_reason() and self.group.share(self.has_more_room):
            self.saver.wait()
            raise GaveWay
        self.clock = time.monotonic()


def attention_kernels(device: torch.device, deterministic: bool) -> AbstractContextManager[None]:
    """Choose plain matrix products where fused kernels are slow or not deterministic.

    On a CPU the backward pass of the fused kernel takes seven times as long (bf16, sentences of 17 subwords;
    docs/results/data/training.yaml).
    """
    return sdpa_kernel(SDPBackend.MATH) if deterministic or device.type == "cpu" else nullcontext()


# ---------------------------------------------------------------- packed batches


def can_pack(model: Model) -> bool:
    """Return True if packed batches have kernels for this architecture."""
    if not isinstance(model, Transformer) or model.recurrent:
        return False
    if model.size.attention != "softmax":
        return False
    if model.size.norm == "post" or model.size.positions == "learned":
        return False  # post: the residual stream would be in bf16; learned: the table would need a gradient
    if isinstance(model.nvs, NvsHead) and not model.nvs.detach:
        return False  # recorded passes give the encoder's output without a gradient
    width = model.output_weight.shape[1] // model.heads
    return width % HEADS_WIDTH == 0 and width <= 256


class PackedPasses:
    """Runs a Transformer on packed batches, for training on a GPU, with matrices in `dtype`.

    In bf16 the layers' matrices are copies, made once per update (`refresh`) instead of for each product.
    `collect` moves the copies' gradients to the model's own fp32 weights, which the optimiser changes. All
    other weights are the model's own.
    """

    def __init__(self, model: Transformer, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.own: list[Tensor] = []  # weights of the model that have a copy
        if dtype != torch.float32:
            layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
            self.own = [weight for layer in layers for weight in layer.parameters()]
        copies = {id(w): nn.Parameter(w.detach().to(dtype), w.requires_grad) for w in self.own}
        shared = {id(weight): weight for weight in model.parameters()}
        self.copies: list[Tensor] = list(copies.values())
        self.model = copy.deepcopy(model, {**shared, **copies}).train()
        unused = {id(model.output_bias), *(id(w) for name, w in model.named_parameters() if "nvs." in name)}
        if model.output_embedding is not None:
            unused.add(id(model.output_weight))
        self.weights = [weight for weight in self.model.parameters() if id(weight) not in unused]
        self.recorder = model.recorder = Recorder(RECORD_AT, RECORDINGS)

    def __call__(self, batch: PackedBatch) -> tuple[Tensor, Tensor]:
        """Return the outputs of the encoder (N_s, D), without a gradient, and of the decoder (N, D)."""

        def run(*tensors: Tensor) -> tuple[Tensor, Tensor]:
            source, target_in, places, *starts, seed, table = tensors
            sides = zip(starts, batch.longest, strict=True)
            of_source, of_target = (Lengths(starts.int(), longest) for starts, longest in sides)
            packing = Packing(of_source, of_target, self.dtype, seed)
            memory, hidden = self.model.run_packed(source, target_in, places, table, packing)
            return memory.detach(), hidden

        starts = batch.source_starts, batch.target_starts
        table = self.model.positions(0, max(batch.longest))
        arguments = (batch.source, batch.target_in, batch.places, *starts, batch.seed, table)
        if batch.source.is_cuda:
            memory, hidden = self.recorder(run, self.weights, *arguments, key=batch.longest)
        else:
            memory, hidden = run(*arguments)
        return memory, hidden[: len(batch.targets)]

    def collect(self) -> None:
        """Move the gradients of the copies to the model's own weights, in fp32."""
        if self.own:
            gradients = [torch.empty_like(weight) for weight in self.own]
            torch._foreach_copy_(gradients, [gradient_of(weight) for weight in self.copies])
            for weight, twin, gradient in zip(self.own, self.copies, gradients, strict=True):
                weight.grad, twin.grad = gradient, None

    @torch.no_grad()
    def refresh(self) -> None:
        """Update the copies from the model's own weights."""
        if self.own:
            torch._foreach_copy_(self.copies, self.own)


def unpacked(rows: Tensor, source: Tensor) -> Memory:
    """Return the encoder's output with padding of arbitrary vectors. `source` (B, S): its ids."""
    mask = source != PAD
    places = (mask.flatten().cumsum(0) - 1).clamp_(min=0)
    return Memory(rows[places].view(*source.shape, -1), mask)


# ---------------------------------------------------------------- the speed of a training


WARM_UP, SECONDS, MAX_UPDATES = 2, 1.4, 10  # per round: updates before the clock runs, bounds on measuring
ROUNDS = 3  # all precisions take turns, so that other load on the machine affects them alike
BATCHES = 8


def tokens_per_second(
    architecture: dict[str, Any], vocabulary: int, batch_tokens: int, length: float, threads: int
) -> dict[str, list[float]]:
    """Measure target subwords per second, by `autocast`, in each round. `length`: subwords per sentence."""
    prepare_torch(threads)
    random = np.random.default_rng(1)
    sentences = max(2, round(BATCHES * batch_tokens / length))
    lengths = 1 + random.poisson(max(1.0, length - 2), sentences)
    rows = [random.integers(EOS + 1, vocabulary, size) for size in lengths]
    pairs = Pairs(rows, rows)
    # an update reads no text and saves nothing
    subwords: Any = SimpleNamespace(size=vocabulary, source_vocabulary=None)
    development, checkpoints = Development(pairs, (), subwords), cast(Checkpoints, None)
    trainers = {}
    for autocast in ("bf16", "none"):
        params = TrainParams.model_validate(
            {
                "objective": {"kind": "softmax", "label_smoothing": 0.1},
                "architecture": architecture,
                "nvs": None,
                "training": {"batch_tokens": batch_tokens, "autocast": autocast},
                "seed": 1,
            }
        )
        trainers[autocast] = Trainer(
            params, pairs, development, torch.device("cpu"), checkpoints, lambda done, total, words: None
        )
    rounds: dict[str, list[float]] = {autocast: [] for autocast in trainers}
    for _ in range(ROUNDS):
        for autocast, trainer in trainers.items():
            rounds[autocast].append(_speed(trainer))
    return rounds


def _speed(trainer: Trainer) -> float:
    batches = trainer.plan_of(0)
    started, first = 0.0, 0
    for update in range(WARM_UP + MAX_UPDATES):
        if update == WARM_UP:
            started, first = time.monotonic(), trainer.state.tokens
        elif update > WARM_UP and time.monotonic() - started > SECONDS:
            break
        trainer.update([batches[update % len(batches)]])
    return (trainer.state.tokens - first) / (time.monotonic() - started)
