"""Forward passes of a Transformer over packed batches, as a GPU trains it."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from creamtea_workers.corpora.batches import PackedBatch
from creamtea_workers.models.base import Model
from creamtea_workers.models.interface import PAD, Memory
from creamtea_workers.models.nvs import NvsHead
from creamtea_workers.models.packed import Lengths, Packing
from creamtea_workers.models.recorded import Recorder
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.training.group import gradient_of

RECORD_AT, RECORDINGS = 2, 256  # from a shape's second batch on; of the shape base each takes some 60 MB
HEADS_WIDTH = 8  # the attention kernels take multiples of it, up to 256


def can_pack(model: Model) -> bool:
    """Return True if packed batches have kernels for this architecture."""
    if not isinstance(model, Transformer) or model.recurrent:
        return False
    if model.size.attention != "softmax":
        return False
    if model.size.norm == "post" or model.size.positions == "learned":
        return False  # the residual stream would be in bf16; a gradient would have to reach the table
    if isinstance(model.nvs, NvsHead) and not model.nvs.detach:
        return False  # recorded passes give the encoder's output without a gradient
    width = model.output_weight.shape[1] // model.heads
    return width % HEADS_WIDTH == 0 and width <= 256


class PackedPasses:
    """Runs a model on packed batches, with matrices in `dtype`.

    In bf16 the layers' matrices are copies, which are made once per update (`refresh`) instead of for each
    product. Their gradients are moved to the model's own fp32 weights (`collect`), which the optimiser
    changes. All other weights are the model's own.
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
        """Return the encoder's output (N_s, D), without a gradient, and the decoder's (N, D) at targets."""

        def run(*tensors: Tensor) -> tuple[Tensor, Tensor]:
            source, target_in, places, *starts, seed, table = tensors
            sides = zip(starts, batch.longest, strict=True)
            of_source, of_target = (Lengths(starts.int(), longest) for starts, longest in sides)
            packing = Packing(of_source, of_target, self.dtype, seed)
            memory, hidden = self.model.run_packed(source, target_in, places, table, packing)
            return memory.detach(), hidden

        places = batch.places, batch.source_starts, batch.target_starts
        table = self.model.positions(0, max(batch.longest))
        arguments = (batch.source, batch.target_in, *places, batch.seed, table)
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
        """Copy the model's own weights, which have changed."""
        if self.own:
            torch._foreach_copy_(self.copies, self.own)


def unpacked(rows: Tensor, source: Tensor) -> Memory:
    """Return the encoder's output with padding, which has any vectors. `source` (B, S): its ids."""
    mask = source != PAD
    places = (mask.flatten().cumsum(0) - 1).clamp_(min=0)
    return Memory(rows[places].view(*source.shape, -1), mask)
