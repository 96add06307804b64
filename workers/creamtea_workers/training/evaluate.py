"""Development loss, perplexity and BLEU of a training, and its live view on a page."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import scipy  # scipy.optimize is slow to import, and so is imported where it is first used
import torch
from sacrebleu.metrics import BLEU

from creamtea.contract.step import RUNNING_LOSS, LiveExample, LiveView, PointRow
from creamtea.methods.architectures import Nvs
from creamtea.methods.training import SelectBy
from creamtea_workers.corpora.batches import Pairs, plan_in_order
from creamtea_workers.corpora.subwords import TextModel
from creamtea_workers.metrics.base import Texts
from creamtea_workers.metrics.words import WordMetric
from creamtea_workers.models.interface import TranslationModel, output_logits
from creamtea_workers.models.model import Model
from creamtea_workers.models.nvs import nvs_loss
from creamtea_workers.objectives.base import Objective
from creamtea_workers.search.greedy import GreedySearch
from creamtea_workers.search.translator import Translator, translate_all
from creamtea_workers.selection.tables import FullSelector
from creamtea_workers.training.checkpoint import Position

BATCH_TOKENS = 4096
ROWS = 256  # tokens whose logits exist at the same time
BLEU_SENTENCES = 500
FITTED_TOKENS, MIN_FACTOR = 2000, 0.01


@dataclass(frozen=True)
class Development:
    """The development set: encoded pairs, and the references of its first sentences as text."""

    pairs: Pairs
    references: Sequence[str]
    subwords: TextModel
    select_by: SelectBy = "loss"
    groups: Sequence[str] = ()  # for words: the language of each reference
    sources: Sequence[str] = ()  # text of the first sources, whose translations a page shows
    tokenize: str = "13a"  # sacreBLEU's tokenizer


@dataclass(frozen=True)
class Evaluation:
    loss: float  # the training objective per token, EOS included
    perplexity: float  # exp of the mean -log score of the reference's tokens; infinite if one is impossible
    bleu: float  # greedy translations of the sentences with references; NaN if nothing was translated
    errors: float | None = None  # PER or Levenshtein distance, if models are selected by it
    examples: Sequence[str] = ()  # translations of the development set's `sources`

    def rank(self, select_by: SelectBy) -> float:
        """Return the value that models are selected by; lower is better."""
        ranks = {"loss": self.loss, "perplexity": self.perplexity, "bleu": -self.bleu}
        value = ranks.get(select_by, self.errors)
        assert value is not None
        return value


def evaluate(
    model: Model, objective: Objective, development: Development, device: torch.device
) -> Evaluation:
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        loss, surprise = reference_loss(model, objective, development.pairs, device)
        hypotheses = greedy_translations(model, objective, development)
    model.train(was_training)
    scorer, references = BLEU(tokenize=development.tokenize), [list(development.references)]
    bleu = float(scorer.corpus_score(hypotheses, references).score)
    perplexity = math.exp(surprise) if surprise < 700 else math.inf
    examples = hypotheses[: len(development.sources)]
    return Evaluation(loss, perplexity, bleu, word_errors(hypotheses, development), examples)


def evaluate_head(model: Model, nvs: Nvs, development: Development, device: torch.device) -> Evaluation:
    """Return the mean NVS loss per sentence, for a training with a frozen translation model."""
    was_training = model.training
    model.eval()
    total, pairs = 0.0, development.pairs
    with torch.inference_mode():
        for rows in plan_in_order(pairs, BATCH_TOKENS):
            batch = pairs.batch(rows).to(device)
            logits = model.nvs_logits(model.encode(batch.source))
            total += len(rows) * nvs_loss(logits, batch.target, nvs.positive_weight, nvs.auto_weight).item()
    model.train(was_training)
    return Evaluation(total / len(pairs), math.inf, math.nan)


def best_logits(
    model: TranslationModel, objective: Objective, pairs: Pairs, device: torch.device
) -> tuple[float, float]:
    """Find the factor and the shift of the logits that give the lowest loss on the first sentences.

    Losses are convex in the logits, which are linear in factor and shift, so there is a single minimum. The
    shift is 0 for an objective that does not depend on it.
    """
    rows = next(iter(plan_in_order(pairs, BATCH_TOKENS)))
    with torch.inference_mode():
        batch = pairs.batch(rows).to(device)
        hidden, targets = batch.real(model.decode(model.encode(batch.source), batch.target_in))
        hidden, targets = hidden[:FITTED_TOKENS], targets[:FITTED_TOKENS]

        def loss(values: Sequence[float]) -> float:
            factor, shift = float(values[0]), float(values[1])
            if factor < MIN_FACTOR:
                return math.inf
            bias = model.output_bias * factor + shift
            return objective.loss(hidden * factor, model.output_weight, bias, targets).item() / len(targets)

        # first steps: halve the logits; shift them towards log 1/V
        steps = [(1.0, 0.0), (0.5, 0.0), (1.0, -math.log(model.vocabulary_size))]
        minimum = scipy.optimize.minimize(
            loss, steps[0], method="Nelder-Mead", options={"initial_simplex": steps, "xatol": 0.01}
        )
        factor, shift = minimum.x.tolist()
        return factor, 0.0 if loss((factor, 0.0)) < minimum.fun + 1e-3 else shift


def word_errors(hypotheses: list[str], development: Development) -> float | None:
    if development.select_by not in ("per", "levenshtein"):
        return None
    metric, references = WordMetric(development.select_by), list(development.references)
    groups = list(development.groups) or [""] * len(references)
    statistics = metric.statistics(Texts([], [], hypotheses, references, groups))
    return float(metric.score(statistics.sum(axis=0)))


def reference_loss(
    model: TranslationModel, objective: Objective, pairs: Pairs, device: torch.device
) -> tuple[float, float]:
    """Return the means of training loss and -log score over the references' tokens."""
    loss = torch.zeros((), dtype=torch.float64, device=device)
    surprise = torch.zeros_like(loss)
    tokens = 0
    for rows in plan_in_order(pairs, BATCH_TOKENS):
        batch = pairs.batch(rows).to(device)
        hidden, targets = batch.real(model.decode(model.encode(batch.source), batch.target_in))
        loss += objective.loss(hidden, model.output_weight, model.output_bias, targets)
        for rows, gold in zip(hidden.split(ROWS), targets.split(ROWS), strict=True):
            scores = objective.log_scores(output_logits(model, rows))
            surprise -= scores.gather(1, gold[:, None]).sum()
        tokens += len(targets)
    return loss.item() / tokens, surprise.item() / tokens


def greedy_translations(model: TranslationModel, objective: Objective, development: Development) -> list[str]:
    translator = Translator(model, objective, FullSelector(), GreedySearch())
    sources = [development.pairs.sources[n].tolist() for n in range(len(development.references))]
    return [development.subwords.decode(tokens) for tokens in translate_all(translator, sources)]


# The live view of a training: its curves, its speed, and how a few translations change.


T = TypeVar("T")
EVERY = 2.0  # seconds between views
MAX_LOSSES = 300
MAX_OUTPUTS = 12  # outputs per example


class LiveTraining:
    """Collects the live view. From earlier attempts only the curves are known."""

    def __init__(self, development: Development, show: Callable[[LiveView], None]) -> None:
        self._development, self._show = development, show
        self._losses: list[tuple[int, float]] = []  # update, mean loss since the previous entry
        self._outputs: list[tuple[int, Sequence[str]]] = []  # update, a translation for each example
        self._tokens = 0  # tokens trained on up to the last loss
        self._next = 0.0

    def begin(self, position: Position) -> None:
        self._tokens = position.tokens

    def add_loss(self, position: Position, loss: float) -> float:
        """Record and return the mean loss. `loss`: the sum over the tokens since the last call."""
        tokens, self._tokens = position.tokens - self._tokens, position.tokens
        self._losses = thinned([*self._losses, (position.update, loss / tokens)], MAX_LOSSES)
        return loss / tokens

    def add_translations(self, update: int, outputs: Sequence[str]) -> None:
        self._outputs = thinned([*self._outputs, (update, outputs)], MAX_OUTPUTS)
        self._next = 0.0  # show new translations at once

    def refresh(self, position: Position, seconds: float) -> None:
        """Show the current state, at most every EVERY seconds. `seconds`: total training time."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        points = [PointRow(series, update, value) for series, update, value in position.points]
        points += [PointRow(RUNNING_LOSS, update, value) for update, value in self._losses]
        self._show(LiveView(points, self._examples(), position.tokens / seconds if seconds > 0 else None))

    def _examples(self) -> list[LiveExample]:
        texts = zip(self._development.sources, self._development.references, strict=False)
        shown = min((len(outputs) for _, outputs in self._outputs), default=0)
        return [
            LiveExample(source, reference, [(update, outputs[at]) for update, outputs in self._outputs])
            for at, (source, reference) in zip(range(shown), texts, strict=False)
        ]


def thinned(items: list[T], most: int) -> list[T]:
    """Drop every second item if there are more than `most`; keep the first and the last."""
    return items if len(items) <= most else [*items[:-1:2], items[-1]]
