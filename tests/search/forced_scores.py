"""Force-decoding: the scores of given hypotheses, which those that searches report must equal."""

from collections.abc import Sequence

import torch

from creamtea_workers.models.interface import BOS, EOS, Memory, TranslationModel
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import Hypothesis
from creamtea_workers.search.output import OutputLayer, output_layer
from creamtea_workers.search.translator import Translator, source_batch


@torch.inference_mode()
def forced_scores(
    system: Translator, sources: Sequence[Sequence[int]], hypotheses: Sequence[Hypothesis]
) -> list[float]:
    """Under the sentences' own selected vocabularies; that of a source without subwords is </s> alone."""
    scores = [0.0] * len(sources)
    for empty in (True, False):
        there = [number for number, source in enumerate(sources) if (not source) is empty]
        if not there:
            continue
        given = [sources[number] for number in there]
        memory = system.model.encode(source_batch(given, torch.device("cpu")))
        only_the_end = [torch.tensor([EOS])] * len(given)
        selection = only_the_end if empty else system.selector.select(given, memory)
        output = output_layer(system.model, selection)
        own = [hypotheses[number] for number in there]
        found = score_hypotheses(system.model, system.objective, memory, output, own)
        for number, score in zip(there, found, strict=True):
            scores[number] = score
    return scores


def score_hypotheses(
    model: TranslationModel,
    objective: Objective,
    memory: Memory,
    output: OutputLayer,
    hypotheses: Sequence[Hypothesis],
) -> list[float]:
    """The sum of each hypothesis's log-scores; -inf for a token outside the sentence's vocabulary."""
    rows = [h.tokens + [EOS] * h.finished for h in hypotheses]
    longest = max(map(len, rows))
    targets = torch.tensor([row + [EOS] * (longest - len(row)) for row in rows])  # (B, T)
    begin = torch.full_like(targets[:, :1], BOS)
    hidden = model.decode(memory, torch.cat([begin, targets[:, :-1]], dim=1))  # (B, T, D)
    log_scores = output.log_scores(objective, output.logits(hidden))  # (B, T, K)
    ids = output.ids(torch.arange(log_scores.shape[2]).expand(len(rows), -1))  # (B, K)
    chosen = log_scores.masked_fill(ids[:, None] != targets[:, :, None], -torch.inf).amax(dim=2)
    return [float(own[: len(row)].double().sum()) for own, row in zip(chosen, rows, strict=True)]
