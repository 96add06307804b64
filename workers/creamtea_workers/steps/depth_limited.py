"""Step `depth_limited`: how often a short hypothesis outscores the beam's.

Peters and Martins 2021, Table 5.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import torch

from creamtea.contract.step import PointRow, StepContext, StepResult
from creamtea.methods.analyses.search import DepthLimitedParams
from creamtea_workers.analysis.rows import SegmentStatistics
from creamtea_workers.corpora.batches import parts
from creamtea_workers.corpora.segments import EncodedTestSet
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.base import SearchInput, length_limit
from creamtea_workers.search.beam import BeamSearch
from creamtea_workers.search.exact import SearchBudget, depth_first, tolerance
from creamtea_workers.search.output import output_layer
from creamtea_workers.search.translator import SAVE_EVERY, TrainedModel, source_batch
from creamtea_workers.training import checkpoint

_BATCH = 32  # sentences
_SAVED = "verdicts.pt"


@dataclass(frozen=True)
class Verdict:
    """What the search found out about one sentence.

    `shortest`: the smallest length limit up to which a hypothesis outscores the beam's; None if no hypothesis
    does. `undecided`: the length limits at which the search ran out of states.
    """

    shortest: int | None
    undecided: list[int]

    def is_better(self, length: int) -> bool:
        return self.shortest is not None and self.shortest <= length

    def is_undecided(self, length: int) -> bool:
        return length in self.undecided and not self.is_better(length)


def run(context: StepContext[DepthLimitedParams]) -> StepResult:
    """Search, for each length ℓ, for a hypothesis of at most ℓ subwords that outscores the beam's.

    The depth-first search may expand `max_states` states per sentence and length; </s> does not count as a
    subword. A hypothesis outscores the beam's if its score is higher by more than rounding explains. What
    outscores it at one ℓ does so at every larger one. A beam output that was cut at its length limit has no
    score: any finished hypothesis outscores it. Nothing outscores the output of an empty source.

    Batches are saved every `SAVE_EVERY` seconds, and a later attempt continues after the last saved batch.

    The subject of a metric is ℓ ("2"). `shorter_better` is a lower bound if some sentences are undecided.
    """
    prepare_torch(context.cpus)
    sources = EncodedTestSet.of_step(context).sources
    trained = TrainedModel.of_step(context)
    lengths = sorted(set(context.params.lengths))
    budget = SearchBudget(context.params.max_states, only_first=True)
    order = [n for n, source in enumerate(sources) if source]
    order.sort(key=lambda n: -len(sources[n]))
    saved_verdicts = checkpoint.load(context.checkpoints, _SAVED) or []
    verdicts = [Verdict(**fields) for fields in saved_verdicts]  # in this order
    saved = time.monotonic()
    for members in parts(order[len(verdicts) :], [len(source) for source in sources], _BATCH):
        tick = partial(context.progress, len(verdicts), len(order), "sentences")
        batch = [sources[n] for n in members]
        verdicts += judge(trained, batch, context.params.width, lengths, budget, tick)
        if time.monotonic() - saved > SAVE_EVERY:
            checkpoint.save(context.checkpoints, _SAVED, [asdict(verdict) for verdict in verdicts])
            saved = time.monotonic()
    found, kept = dict(zip(order, verdicts, strict=True)), SegmentStatistics()
    verdicts = [found.get(n, Verdict(None, [])) for n in range(len(sources))]
    rows = []
    for length in lengths:
        better = [verdict.is_better(length) for verdict in verdicts]
        undecided = [verdict.is_undecided(length) for verdict in verdicts]
        rows.append(kept.share_row("shorter_better", better, str(length)))
        rows.append(kept.share_row("undecided", undecided, str(length)))
    kept.save(context.output)
    context.progress(len(order), len(order), "sentences")
    curve = [
        PointRow("shorter_better", float(row.subject), row.value)
        for row in rows
        if row.name == "shorter_better" and row.value is not None
    ]
    return StepResult(rows, curve)


@torch.inference_mode()
def judge(
    trained: TrainedModel,
    sources: Sequence[Sequence[int]],
    width: int,
    lengths: Sequence[int],
    budget: SearchBudget,
    tick: Callable[[], None],
) -> list[Verdict]:
    """Judge a batch of sources. `lengths` increase; `tick` is called often, and may raise."""
    model, objective = trained.model, trained.objective
    memory = model.encode(source_batch(sources, model.output_weight.device))
    output = output_layer(model, None)
    search = BeamSearch(width)
    limits = [length_limit(search.max_length_ratio, len(source)) for source in sources]
    batch = SearchInput(model, objective, memory, output, limits)
    beams = search(batch)
    shortest: dict[int, int] = {}
    undecided: list[list[int]] = [[] for _ in sources]
    for length in lengths:
        left = [n for n in range(len(sources)) if n not in shortest]
        if not left:
            break
        rows = torch.tensor(left, device=memory.hidden.device)
        bounds = [
            beams[n].score + tolerance(len(beams[n].tokens)) if beams[n].finished else -math.inf for n in left
        ]
        depths = [min(limits[n], length + 1) for n in left]
        rest = replace(batch, memory=memory.select(rows), output=output.keep(rows), limits=depths)
        for finished in depth_first(rest, bounds, budget):
            tick()
            for search_result in finished:
                if search_result.tokens is not None:
                    shortest[left[search_result.sentence]] = length
                elif not search_result.exhausted:
                    undecided[left[search_result.sentence]].append(length)
    return [Verdict(shortest.get(n), undecided[n]) for n in range(len(sources))]
