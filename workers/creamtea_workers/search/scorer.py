"""Force-decoding: the scores of given hypotheses, equal to those that the searches report."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from creamtea_workers.models.interface import BOS, EOS, Memory, TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.hypothesis import Hypothesis
from creamtea_workers.search.output import OutputLayer

_CELLS = 1 << 24  # logits held at once: 64 MB in fp32


def score_hypotheses(
    model: TranslationModel,
    objective: Objective,
    memory: Memory,
    output: OutputLayer,
    hypotheses: Sequence[Hypothesis],
) -> list[float]:
    """The sum of each hypothesis's log-scores under the sentence's own vocabulary: softmax and entmax
    renormalise over it, SCONES needs no normalisation. -inf for a token outside it. `score` is not read.
    """
    rows = [h.tokens + [EOS] * h.finished for h in hypotheses]
    longest = max(map(len, rows))
    device = memory.hidden.device
    targets = torch.tensor([row + [EOS] * (longest - len(row)) for row in rows], device=device)  # (B, T)
    begin = torch.full_like(targets[:, :1], BOS)
    hidden = model.decode(memory, torch.cat([begin, targets[:, :-1]], dim=1))  # (B, T, D)
    scores = torch.cat(
        [
            token_log_scores(objective, output, hidden[:, part], targets[:, part])
            for part in _parts(longest, len(rows) * model.vocabulary_size)
        ],
        dim=1,
    )
    lengths = torch.tensor([len(row) for row in rows], device=device)
    inside = torch.arange(longest, device=device) < lengths.unsqueeze(1)  # (B, T)
    totals: list[float] = torch.where(inside, scores.double(), 0.0).sum(dim=1).tolist()
    return totals


def token_log_scores(objective: Objective, output: OutputLayer, hidden: Tensor, targets: Tensor) -> Tensor:
    """hidden (B, R, D), targets (B, R) ids -> their log-scores (B, R); -inf outside the vocabulary."""
    log_scores = output.log_scores(objective, output.logits(hidden))  # (B, R, K)
    positions, allowed = output.positions(targets)
    chosen = log_scores.gather(2, positions.unsqueeze(2)).squeeze(2)
    return chosen.masked_fill(~allowed, -torch.inf)


def _parts(length: int, cells_per_position: int) -> list[slice]:
    size = max(1, _CELLS // cells_per_position)
    return [slice(start, start + size) for start in range(0, length, size)]
