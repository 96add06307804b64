"""Models small enough to enumerate, behind the interface of `creamtea_workers.models.interface`."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from creamtea.methods.objectives import Entmax, Scones, Softmax
from creamtea_workers.models.interface import EOS, Memory, Projection
from creamtea_workers.objectives import build_objective
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.base import SearchInput
from creamtea_workers.search.output import output_layer

OBJECTIVES = {
    "softmax": build_objective(Softmax(kind="softmax")),
    "scones": build_objective(Scones(kind="scones", alpha=0.5)),
    "entmax": build_objective(Entmax(kind="entmax")),
}


class TableState:
    def __init__(self, sentences: list[int]) -> None:
        self.prefixes: list[tuple[int, tuple[int, ...]]] = [(s, ()) for s in sentences]
        self.begun = False

    def reorder(self, rows: Tensor) -> None:
        self.prefixes = [self.prefixes[n] for n in rows.tolist()]


class TableTree:
    def __init__(self, sentences: list[int]) -> None:
        self.prefixes: dict[int, tuple[int, tuple[int, ...] | None]] = {
            n: (sentence, None) for n, sentence in enumerate(sentences)
        }  # None: before bos
        self.count = len(sentences)
        self.most = 0

    def free(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            del self.prefixes[node]

    def add(self, token: int, parent: int) -> int:
        sentence, prefix = self.prefixes[parent]
        self.prefixes[self.count] = (sentence, () if prefix is None else (*prefix, token))
        self.count += 1
        self.most = max(self.most, len(self.prefixes))
        return self.count - 1


class TableModel:
    """Logits drawn anew for every (sentence, prefix): nothing generalises, so that one wrong parent, one
    lost row or one token of another sentence changes every later number. A sentence is known by its first
    source subword. The hidden vector is the logits (D = V), the output weight the identity."""

    projection: Projection | None = None
    kept = 0
    may_pad = True

    def __init__(self, vocabulary_size: int, seed: int, spread: float = 2.0, end: float = 0.0) -> None:
        self.vocabulary_size = vocabulary_size
        self.output_weight = torch.eye(vocabulary_size)
        self.output_bias = torch.zeros(vocabulary_size)
        self.output_bias[EOS] = end
        self.seed, self.spread = seed, spread
        self.rows_stepped: list[int] = []  # rows of each step
        self.drawn: dict[tuple[int, ...], Tensor] = {}  # a new generator for each takes long

    def vector(self, sentence: int, prefix: tuple[int, ...]) -> Tensor:
        key = (sentence, *prefix)
        if key not in self.drawn:
            draw = np.random.default_rng([self.seed, *key]).normal(size=self.vocabulary_size)
            self.drawn[key] = torch.tensor(draw * self.spread, dtype=torch.float32)
        return self.drawn[key]

    def logits(self, sentence: int, prefix: tuple[int, ...]) -> Tensor:
        return self.vector(sentence, prefix) + self.output_bias

    def encode(self, source: Tensor) -> Memory:
        hidden = source[:, :, None].float().expand(-1, -1, self.vocabulary_size)
        return Memory(hidden, source != 0)

    def decode(self, memory: Memory, target_in: Tensor) -> Tensor:
        rows = zip(sentences(memory), target_in.tolist(), strict=True)
        return torch.stack(
            [torch.stack([self.vector(s, tuple(row[1 : t + 1])) for t in range(len(row))]) for s, row in rows]
        )

    def start(self, memory: Memory, max_length: int) -> TableState:
        return TableState(sentences(memory))

    def step(self, tokens: Tensor, state: TableState) -> Tensor:
        if state.begun:  # the first token is bos
            pairs = zip(state.prefixes, tokens.tolist(), strict=True)
            state.prefixes = [(sentence, (*prefix, token)) for (sentence, prefix), token in pairs]
        state.begun = True
        self.rows_stepped.append(len(state.prefixes))
        return torch.stack([self.vector(*prefix) for prefix in state.prefixes])

    def start_tree(self, memory: Memory, max_length: int) -> TableTree:
        self.tree = TableTree(sentences(memory))
        return self.tree

    def step_tree(self, tokens: Tensor, parents: Tensor, tree: TableTree) -> tuple[Tensor, list[int]]:
        pairs = zip(tokens.tolist(), parents.tolist(), strict=True)
        nodes = [tree.add(token, parent) for token, parent in pairs]
        prefixes = [(sentence, prefix or ()) for sentence, prefix in map(tree.prefixes.__getitem__, nodes)]
        self.rows_stepped.append(len(nodes))
        return torch.stack([self.vector(*prefix) for prefix in prefixes]), nodes

    def nvs_logits(self, memory: Memory) -> Tensor:
        raise ValueError("no NVS head")


class AttentiveTableState(TableState):
    keeps_attention = False
    attention: Tensor | None = None


class AttentiveTableModel(TableModel):
    """With attention to two source positions, drawn like the logits."""

    def attention(self, sentence: int, prefix: tuple[int, ...]) -> list[float]:
        draw = np.random.default_rng([self.seed + 1, sentence, *prefix])
        share = float(draw.beta(0.3, 0.3))
        return [share, 1 - share]

    def start(self, memory: Memory, max_length: int) -> AttentiveTableState:
        return AttentiveTableState(sentences(memory))

    def step(self, tokens: Tensor, state: TableState) -> Tensor:
        hidden = super().step(tokens, state)
        assert isinstance(state, AttentiveTableState)
        if state.keeps_attention:
            state.attention = torch.tensor([self.attention(*prefix) for prefix in state.prefixes])
        return hidden


def sentences(memory: Memory) -> list[int]:
    return memory.hidden[:, 0, 0].long().tolist()


def batch_of(
    model: TableModel,
    objective: str,
    numbers: Sequence[int],
    limits: Sequence[int],
    vocabularies: Sequence[Sequence[int]] | None = None,
) -> SearchInput:
    """Of the sentences with these numbers."""
    selection = None if vocabularies is None else [torch.tensor(ids) for ids in vocabularies]
    output = output_layer(model, selection)
    sources = [[number] for number in numbers]
    return SearchInput(model, OBJECTIVES[objective], memory_of(model, numbers), output, limits, sources)


def memory_of(model: TableModel, numbers: Sequence[int]) -> Memory:
    return model.encode(torch.tensor([[n, EOS] for n in numbers]))


@dataclass(frozen=True)
class Slow:
    """The oracle's view of one sentence: plain Python, one prefix at a time."""

    model: TableModel
    objective: Objective
    sentence: int
    allowed: Sequence[int]
    known: dict[tuple[int, ...], dict[int, float]] = field(default_factory=dict, compare=False)

    def log_scores(self, prefix: tuple[int, ...]) -> dict[int, float]:
        if prefix not in self.known:
            logits = self.model.logits(self.sentence, prefix)[list(self.allowed)]
            scores = self.objective.log_scores(logits).tolist()
            self.known[prefix] = dict(zip(self.allowed, scores, strict=True))
        return self.known[prefix]

    def enumerate(self, limit: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """(score, tokens with </s>) of every finished hypothesis of at most `limit` tokens."""
        words = [w for w in self.allowed if w != EOS]
        for length in range(limit):
            for body in itertools.product(words, repeat=length):
                tokens = (*body, EOS)
                yield sum(self.log_scores(tokens[:t])[w] for t, w in enumerate(tokens)), tokens

    def greedy(self, limit: int) -> tuple[int, ...]:
        tokens: tuple[int, ...] = ()
        while len(tokens) < limit and EOS not in tokens:
            logits = self.model.logits(self.sentence, tokens)
            tokens += (max(self.allowed, key=lambda w: float(logits[w])),)
        return tokens

    def beam(
        self, width: int, limit: int, power: float, gnmt: bool = False, coverage: float = 0.0
    ) -> tuple[float, tuple[int, ...]]:
        """The textbook: no early stop. The best finished hypothesis ever in the beam, else the best one.
        `coverage`: GNMT's β, of an `AttentiveTableModel`."""

        def rank(item: tuple[float, tuple[int, ...]]) -> float:
            score, tokens = item
            length = (5 + len(tokens)) / 6 if gnmt else max(1, len(tokens))
            if not coverage:
                return score / length**power
            assert isinstance(self.model, AttentiveTableModel)
            attended = [self.model.attention(self.sentence, tokens[:n]) for n in range(len(tokens))]
            covered = sum(math.log(min(1.0, max(1e-10, sum(sums)))) for sums in zip(*attended, strict=True))
            return score / length**power + coverage * covered

        beam: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        finished: list[tuple[float, tuple[int, ...]]] = []
        for _ in range(limit):
            candidates = []
            for score, tokens in beam:
                if tokens[-1:] == (EOS,):
                    candidates.append((score, tokens))
                    continue
                candidates += [(score + s, (*tokens, w)) for w, s in self.log_scores(tokens).items()]
            beam = sorted(candidates, key=rank, reverse=True)[:width]
            finished += [item for item in beam if item[1][-1] == EOS and item[0] > -torch.inf]
        return max(finished, key=rank) if finished else beam[0]
