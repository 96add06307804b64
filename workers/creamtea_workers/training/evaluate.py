"""Development loss, perplexity and BLEU, in fp32 and without dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from sacrebleu.metrics import BLEU
from torch import Tensor

from creamtea_workers.corpora.batches import Pairs, pad, plan_in_order
from creamtea_workers.corpora.subwords import SubwordModel
from creamtea_workers.models.interface import BOS, EOS, PAD, TranslationModel, output_logits
from creamtea_workers.models.transformer import Transformer
from creamtea_workers.objectives.base import Objective

BATCH_TOKENS = 4096
ROWS = 256  # tokens whose logits exist at one time
BLEU_SENTENCES = 500


@dataclass(frozen=True)
class Development:
    """The development set: encoded pairs, and the references of its first sentences as text."""

    pairs: Pairs
    references: Sequence[str]
    subwords: SubwordModel


@dataclass(frozen=True)
class Evaluation:
    loss: float  # of the training objective, a token (EOS counts)
    perplexity: float  # exp of the mean -log score of the reference's tokens; infinite if one is impossible
    bleu: float  # greedy, 13a, at most BLEU_SENTENCES sentences


def evaluate(
    model: Transformer, objective: Objective, development: Development, device: torch.device
) -> Evaluation:
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        loss, surprise = reference_loss(model, objective, development.pairs, device)
        bleu = greedy_bleu(model, development, device)
    model.train(was_training)
    return Evaluation(loss, math.exp(surprise) if surprise < 700 else math.inf, bleu)


def reference_loss(
    model: Transformer, objective: Objective, pairs: Pairs, device: torch.device
) -> tuple[float, float]:
    """Mean over the reference's tokens of (training loss, -log score)."""
    loss = torch.zeros((), dtype=torch.float64, device=device)
    surprise = torch.zeros_like(loss)
    tokens = 0
    for members in plan_in_order(pairs, BATCH_TOKENS):
        batch = pairs.batch(members).to(device)
        hidden, targets = batch.real(model.decode(model.encode(batch.source), batch.target_in))
        loss += objective.loss(hidden, model.output_weight, model.output_bias, targets)
        for rows, gold in zip(hidden.split(ROWS), targets.split(ROWS), strict=True):
            scores = objective.log_scores(output_logits(model, rows))
            surprise -= scores.gather(1, gold[:, None]).sum()
        tokens += len(targets)
    return loss.item() / tokens, surprise.item() / tokens


def greedy_bleu(model: TranslationModel, development: Development, device: torch.device) -> float:
    count = len(development.references)
    order = sorted(range(count), key=lambda i: len(development.pairs.sources[i]))
    hypotheses = [""] * count
    for first in range(0, count, 64):
        members = order[first : first + 64]
        source = pad([development.pairs.sources[i] for i in members]).to(device)
        for i, ids in zip(members, greedy(model, source), strict=True):
            hypotheses[i] = development.subwords.decode(ids)
    return float(BLEU().corpus_score(hypotheses, [list(development.references)]).score)


def greedy(model: TranslationModel, source: Tensor) -> list[list[int]]:
    """The most likely next subword of source (B, S) until EOS, at most 2 S + 10: ids without EOS.

    Needs no activation: every objective's scores rise with the logits. Finished rows leave the batch."""
    limit = 2 * source.shape[1] + 10
    results: list[list[int]] = [[] for _ in range(len(source))]
    state = model.start(model.encode(source), limit)
    running = list(range(len(source)))
    tokens = source.new_full((len(source),), BOS)
    for _ in range(limit):
        logits = output_logits(model, model.step(tokens, state))
        logits[:, [PAD, BOS]] = float("-inf")
        tokens = logits.argmax(1)
        kept = [row for row, token in enumerate(tokens.tolist()) if token != EOS]
        if len(kept) < len(running):
            rows = torch.tensor(kept, dtype=torch.int64, device=source.device)
            running, tokens = [running[row] for row in kept], tokens[rows]
            state.reorder(rows)
        for sentence, token in zip(running, tokens.tolist(), strict=True):
            results[sentence].append(token)
        if not running:
            break
    return results
