"""Batched beam search, one code path for every objective and for per-sentence vocabularies.

The beam of a sentence holds its `width` best hypotheses. A finished hypothesis stays in the beam with its
score frozen until better hypotheses push it out. Beside the beam, the requested number of best finished
hypotheses is kept. A sentence stops as soon as no unfinished hypothesis can beat the worst kept one: because
log-scores are ≤ 0, an unfinished hypothesis with score s ends at best with s (with length normalisation: with
s / limit^a; a coverage penalty only lowers this), so stopping early never changes the result.

Without normalisation the same bound applies to each hypothesis: if its score is not above the worst kept
score, it cannot win and is dropped. Every finished hypothesis is dropped from the beam too. A wide beam thus
becomes narrow once a hypothesis is finished, and only filled slots are decoded. Asking for more hypotheses
does not change the best one.

Equal candidates are ordered by their hypothesis, better first, then by id, so that the result depends neither
on the batch nor on `topk`'s order of equal values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from creamtea.errors import StepError
from creamtea.methods.searches import Beam
from creamtea_workers.models.graphs import New
from creamtea_workers.models.interface import BOS, EOS, AttentiveState
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import Detokenize, Hypothesis, SearchInput, SearchMethod, top_candidates
from creamtea_workers.search.fixed import Running, decode_fixed
from creamtea_workers.search.output import OutputLayer

LEAST_COVERED = 1e-10  # above 0, so that a source position without attention excludes no hypothesis


@dataclass(frozen=True)
class BeamSearch(SearchMethod):
    """Beam search, ranked by score / length^a (`length_normalization`).

    </s> counts; a = 0, the papers' choice, ranks by the score. `Hypothesis.score` is never normalised. With
    `gnmt` and `coverage_penalty` β the rank is GNMT's (Wu et al. 2016, Eq. 14):

        score / ((5 + length) / 6)^a + β Σ_i log min(Σ_j p_ij, 1)

    where p_ij is the attention of target position j to source position i, with </s> on both sides. Sums are
    at least `LEAST_COVERED`.
    """

    width: int = 4
    length_normalization: float = 0.0
    max_length_ratio: float = 2.0
    gnmt: bool = False
    coverage_penalty: float = 0.0

    @property
    def beam(self) -> int:
        return self.width

    def __call__(self, batch: SearchInput) -> list[Hypothesis]:
        """Return one hypothesis per sentence. A beam always scores, whatever `with_scores` says."""
        return [best for best, *_ in self.best(batch, 1)]

    def best(self, batch: SearchInput, count: int) -> list[list[Hypothesis]]:
        if not self.coverage_penalty:  # states of fixed shape do not keep attention
            decoded = decode_fixed(batch, self.width, (self, count), partial(_FixedBeams, self, count))
            if decoded is not None:
                return decoded
        model, limits, output = batch.model, batch.limits, batch.output
        device = batch.memory.hidden.device
        results: list[list[Hypothesis]] = [[] for _ in limits]
        beams = _Beams.start(self, count, limits, device)
        ends = output.ends(len(limits))
        state = model.start(batch.memory, max(limits))
        if self.coverage_penalty:
            if not isinstance(state, AttentiveState):
                raise StepError("coverage_penalty needs a model whose attention can be read: not an ensemble")
            state.keeps_attention = True
            padding = ~batch.memory.mask
            beams.attended = padding.float().unsqueeze(1)  # (n, 1, S): padding is covered
        while True:
            hidden = model.step(beams.last.flatten(), state)  # (n·R, D)
            if isinstance(state, AttentiveState) and state.attention is not None:
                beams.attend(state.attention)
            logits = output.logits(hidden.unflatten(0, (len(beams.last), -1)))  # (n, R, K)
            parents = beams.extend(output.log_scores(batch.objective, logits), output, ends)
            n, slots, _ = logits.shape
            rows = parents + torch.arange(0, n * slots, slots, device=device).unsqueeze(1)
            done = beams.done()
            if bool(done.any()):
                for sentence, hypotheses in beams.results(done):
                    results[sentence] = hypotheses
                kept = (~done).nonzero().squeeze(1)
                if len(kept) == 0:
                    return results
                beams, output = beams.mapped(itemgetter(kept)), output.keep(kept)
                rows, ends = rows[kept], ends[kept]
            state.reorder(beams.narrow(rows).flatten())


@dataclass
class _Beams:
    """The beams of n running sentences: R slots each, best first.

    R depends on the fullest beam. `extend` replaces the tensors, and never writes to them.
    """

    search: BeamSearch
    sentences: Tensor  # (n,) positions in the batch
    limits: Tensor  # (n,)
    length: Tensor  # (n,) tokens of the unfinished hypotheses
    last: Tensor  # (n, R) last token
    tokens: Tensor  # (n, R, L); only the first `lengths` tokens of a hypothesis count
    scores: Tensor  # (n, R); -inf: an empty slot
    lengths: Tensor  # (n, R) tokens, </s> included
    finished: Tensor  # (n, R) bool
    best_rank: Tensor  # (n, B) ranks of the B best finished hypotheses so far, best first; -inf: none
    best_score: Tensor  # (n, B)
    best_tokens: Tensor  # (n, B, L)
    best_length: Tensor  # (n, B)
    attended: Tensor | None = None  # (n, R, S) sums of attention, for the coverage penalty

    @classmethod
    def start(
        cls,
        search: BeamSearch,
        count: int,
        limits: Sequence[int],
        device: torch.device,
        slots: int = 1,
        room: int | None = None,
    ) -> _Beams:
        """Put the empty hypothesis in the first slot of each sentence; the other slots are empty.

        `count`: the number of finished hypotheses to keep; `room`: L.
        """
        n, room = len(limits), max(limits) if room is None else room
        nothing = torch.full((n, count), -torch.inf, device=device)
        scores = torch.full((n, slots), -torch.inf, device=device)
        scores[:, 0] = 0.0
        return cls(
            search=search,
            sentences=torch.arange(n, device=device),
            limits=torch.tensor(limits, device=device),
            length=torch.zeros(n, dtype=torch.long, device=device),
            last=torch.full((n, slots), BOS, device=device),
            tokens=torch.zeros((n, slots, room), dtype=torch.long, device=device),
            scores=scores,
            lengths=torch.zeros((n, slots), dtype=torch.long, device=device),
            finished=torch.zeros((n, slots), dtype=torch.bool, device=device),
            best_rank=nothing,
            best_score=nothing.clone(),
            best_tokens=torch.zeros((n, count, room), dtype=torch.long, device=device),
            best_length=torch.zeros((n, count), dtype=torch.long, device=device),
        )

    def extend(self, log_scores: Tensor, output: OutputLayer, ends: Tensor) -> Tensor:
        """Extend every unfinished hypothesis by log_scores (n, R, K) and keep the best.

        Overwrites `log_scores`. Returns the slots (n, R') that the kept hypotheses come from.
        """
        _, slots, size = log_scores.shape
        scores, ranks = (tensor.flatten(1) for tensor in self._candidates(log_scores, ends))
        rank, index = top_candidates(ranks, min(self.search.width, slots * size))  # (n, R')
        parents = index.div(size, rounding_mode="floor")
        frozen = self.finished.gather(1, parents)
        place, self.length = self.length[:, None, None], self.length + 1
        self.scores = scores.gather(1, index)
        self.attended = _of_slots(self.attended, parents)
        self.last = output.ids(index - parents * size)
        self.lengths = torch.where(frozen, self.lengths.gather(1, parents), self.length.unsqueeze(1))
        self.finished = self.last == EOS
        self.tokens = _of_slots(self.tokens, parents)
        self.tokens.scatter_(2, place.expand(-1, parents.shape[1], 1), self.last.unsqueeze(2))
        self._remember_best(rank.masked_fill(~self.finished | frozen, -torch.inf))
        if self.by_score:
            dropped = self.finished | (self.scores <= self.best_rank[:, -1:])
            self.scores.masked_fill_(dropped, -torch.inf)
        return parents

    def _candidates(self, log_scores: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Return the candidates' scores and ranks (n, R, K).

        A finished hypothesis (kept only with normalisation) is its own single candidate, at </s>.
        """
        scores = log_scores.add_(self.scores.unsqueeze(2))
        if self.by_score:
            return scores, scores
        frozen = self.finished.unsqueeze(2)
        column = ends.unsqueeze(2).expand(-1, scores.shape[1], 1)  # (n, R, 1)
        at_end = torch.where(frozen, self.scores.unsqueeze(2), scores.gather(2, column))
        scores = scores.masked_fill_(frozen, -torch.inf).scatter_(2, column, at_end)
        lengths = torch.where(self.finished, self.lengths, self.length.unsqueeze(1) + 1)
        ranks = self._normalised(scores, lengths.unsqueeze(2))
        if self.attended is not None:
            covered = self.attended.clamp(LEAST_COVERED, 1.0).log().sum(2, keepdim=True)  # (n, R, 1)
            ranks = ranks + self.search.coverage_penalty * covered
        return scores, ranks

    @property
    def by_score(self) -> bool:
        """True if the rank is the score."""
        return not (self.search.length_normalization or self.search.coverage_penalty)

    def attend(self, attention: Tensor) -> None:
        """Add the last step's attention (n·R, S) to the sums of unfinished hypotheses."""
        assert self.attended is not None
        added = attention.unflatten(0, self.finished.shape).masked_fill(self.finished.unsqueeze(2), 0.0)
        self.attended = self.attended + added

    def _normalised(self, scores: Tensor, lengths: Tensor) -> Tensor:
        power = self.search.length_normalization
        if not power:
            return scores
        return scores / ((5 + lengths) / 6 if self.search.gnmt else lengths) ** power

    def _remember_best(self, rank: Tensor) -> None:
        """Update the best finished hypotheses. `rank` (n, R): -inf in slots that this step did not finish."""
        if rank.device.type == "cpu" and not bool((rank > self.best_rank[:, -1:]).any()):
            return
        count = self.best_rank.shape[1]
        self.best_rank, kept = top_candidates(torch.cat([self.best_rank, rank], dim=1), count)  # (n, B)
        self.best_score = torch.cat([self.best_score, self.scores], dim=1).gather(1, kept)
        self.best_length = torch.cat([self.best_length, self.lengths], dim=1).gather(1, kept)
        tokens = torch.cat([self.best_tokens, self.tokens], dim=1)
        self.best_tokens = tokens.gather(1, kept.unsqueeze(2).expand(-1, -1, tokens.shape[2]))

    def done(self) -> Tensor:
        """Return (n,) bool: no unfinished hypothesis can still win, or the length limit is reached."""
        reachable = self.scores.masked_fill(self.finished, -torch.inf).amax(dim=1)
        reachable = self._normalised(reachable, self.limits)
        return (self.best_rank[:, -1] >= reachable) | (self.limits <= self.length)

    def results(self, done: Tensor) -> list[tuple[int, list[Hypothesis]]]:
        """Return (position in the batch, hypotheses) for the sentences that are `done` (n,).

        The hypotheses are the best finished ones, best first; if there is none, the best unfinished one.
        """
        own = self.mapped(itemgetter(done))
        best = (own.best_rank, own.best_score, own.best_length, own.best_tokens)
        cut = (own.length, own.scores[:, 0], own.tokens[:, 0])
        pairs = []
        for n, (*finished, cut_length, cut_score, cut_tokens) in zip(
            own.sentences.tolist(),
            zip(*(values.tolist() for values in (*best, *cut)), strict=True),
            strict=True,
        ):
            hypotheses = [
                Hypothesis(tokens[: length - 1], score, finished=True)
                for rank, score, length, tokens in zip(*finished, strict=True)
                if rank > -torch.inf
            ]
            unfinished = Hypothesis(cut_tokens[:cut_length], cut_score, finished=False)
            pairs.append((n, hypotheses or [unfinished]))
        return pairs

    def mapped(self, change: Callable[[Tensor], Tensor]) -> _Beams:
        """Return a copy whose tensors are changed by the function."""
        changed: dict[str, Any] = {name: change(tensor) for name, tensor in self.tensors().items()}
        return replace(self, **changed)

    def tensors(self) -> dict[str, Tensor]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    def narrow(self, rows: Tensor) -> Tensor:
        """Drop slots that are empty in every sentence: rows (n, R) of the slots → (n, R').

        R shrinks by a quarter at a time, since decoders copy more when the number of rows changes.
        """
        filled = self.scores > -torch.inf
        needed, slots = int(filled.sum(1).amax()), filled.shape[1]
        while (fewer := 3 * slots // 4) >= max(needed, 1):
            slots = fewer
        if slots == filled.shape[1]:
            return rows
        order = (~filled).long().argsort(dim=1, stable=True)[:, :slots]  # filled slots first
        self.last, self.scores, self.lengths, self.finished, rows = (
            tensor.gather(1, order) for tensor in (self.last, self.scores, self.lengths, self.finished, rows)
        )
        self.tokens, self.attended = _of_slots(self.tokens, order), _of_slots(self.attended, order)
        return rows


def _of_slots(table: Tensor | None, slots: Tensor) -> Any:
    """Select slots: table (n, R, X), slots (n, R') -> (n, R', X). None stays None."""
    return None if table is None else table.gather(1, slots.unsqueeze(2).expand(-1, -1, table.shape[2]))


class _FixedBeams(Running):
    """Beams of fixed shape: all slots of all sentences. Sentences that are done no longer change."""

    def __init__(self, search: BeamSearch, count: int, new: New, sentences: int, length: int) -> None:
        self.running = new((sentences,), torch.bool)
        self.ends = new((sentences, 1), torch.long)
        limits, room = [0] * sentences, length + 1  # finished sentences write to the last place
        fresh = _Beams.start(search, count, limits, self.running.device, search.width, room)
        self.fresh = fresh.tensors()
        self.beams = fresh.mapped(lambda tensor: new(tensor.shape, tensor.dtype))
        self.limits, self.last = self.beams.limits, self.beams.last  # tensors at fixed addresses

    def begin(self, output: OutputLayer) -> None:
        for name, own in self.beams.tensors().items():
            if name != "limits":
                own.copy_(self.fresh[name])
        torch.gt(self.limits, 0, out=self.running)
        self.ends.copy_(output.ends(len(self.running)))

    def extend(self, hidden: Tensor, output: OutputLayer, objective: Objective) -> Tensor:
        before = self.beams.tensors()
        log_scores = output.log_scores(objective, output.logits(hidden))
        parents = self.beams.extend(log_scores, output, self.ends)
        done = self.beams.done()
        for name, own in before.items():
            changed = getattr(self.beams, name)
            if changed is not own:
                running = self.running.view(-1, *[1] * (own.ndim - 1))
                torch.where(running, changed, own, out=own)
                setattr(self.beams, name, own)
        self.running.logical_and_(~done)
        return parents

    def results(self, sentences: int) -> list[list[Hypothesis]]:
        beams = self.beams.mapped(Tensor.cpu)
        everything = torch.arange(len(self.running)) < sentences
        return [hypotheses for _, hypotheses in beams.results(everything)]


def build(spec: Beam, detokenize: Detokenize | None) -> BeamSearch:
    return BeamSearch(
        spec.width,
        spec.length_normalization,
        spec.max_length_ratio,
        spec.length_penalty == "gnmt",
        spec.coverage_penalty,
    )
