"""Whether an exported model translates as the trained one does: the same subwords, sentence by sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from creamtea_workers.models.interface import BOS, EOS, TranslationModel, output_logits
from creamtea_workers.search.translator import Sources, source_batch

Ids = Sequence[int]
Translate = Callable[[Sources], list[list[int]]]


@dataclass(frozen=True)
class Difference:
    """`line`, from 1, and `position`, from 0, of the first subword that differs. `gap`: the trained model's
    logit of its own subword less that of the other's, which is nearly 0 where rounding decides."""

    line: int
    position: int
    gap: float


@dataclass(frozen=True)
class Proof:
    sentences: int  # translated by both
    left_out: int  # sources that the exported model does not read
    differences: tuple[Difference, ...]

    @property
    def identical(self) -> int:
        return self.sentences - len(self.differences)


def prove(
    model: TranslationModel,
    ours: Translate,
    theirs: Translate,
    sources: Sources,
    fits: Callable[[int], bool],
) -> Proof:
    """`ours` and `theirs` translate sources, subwords without </s>; `model` is that of `ours`. Only sources
    whose number of subwords `fits` are compared."""
    lines = [n for n, source in enumerate(sources) if fits(len(source))]
    compared = [sources[n] for n in lines]
    differences = tuple(
        _difference(model, line + 1, source, own, other)
        for line, source, own, other in zip(lines, compared, ours(compared), theirs(compared), strict=True)
        if own != other
    )
    return Proof(len(lines), len(sources) - len(lines), differences)


@torch.inference_mode()
def _difference(model: TranslationModel, line: int, source: Ids, own: Ids, other: Ids) -> Difference:
    first, second = [*own, EOS], [*other, EOS]
    position = next(n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    device = model.output_weight.device
    memory = model.encode(source_batch([source], device))
    prefix = torch.tensor([[BOS, *own[:position]]], device=device)
    logits = output_logits(model, model.decode(memory, prefix)[0, -1])  # (V,)
    return Difference(line, position, float(logits[first[position]] - logits[second[position]]))
