"""Selection by alignment lexicon (Jean et al. 2015; NVS paper, section 2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from creamtea_workers.models.interface import Memory
from creamtea_workers.selection.lexicon import Lexicon


@dataclass(frozen=True)
class LexiconSelector:
    """The top-k target subwords of every source subword, union over the sentence's source subwords."""

    lexicon: Lexicon
    k: int

    def select(self, sources: Sequence[Sequence[int]], memory: Memory) -> list[Tensor]:
        device = memory.hidden.device
        return [torch.from_numpy(self.lexicon.select(source, self.k)).to(device) for source in sources]
