"""Evidence on where an error comes from (docs/methods.md, "Where an error comes from").

An investigation translates a sentence with the system's model under other searches and vocabularies, and
scores other texts with the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch

from creamtea.contract.step import StepContext
from creamtea.errors import StepError
from creamtea.methods.searches import Beam, Exact, Search
from creamtea.methods.selections import FullVocabulary
from creamtea.steps.systems import DecodeParams
from creamtea_workers.corpora.segments import encode_sources
from creamtea_workers.corpora.subwords import TextModel, load_text_model
from creamtea_workers.corpora.text import normalise
from creamtea_workers.models.interface import BOS, EOS, PAD, output_logits
from creamtea_workers.runtime import prepare_torch
from creamtea_workers.search.exact import TOLERANCE, ExactHypothesis
from creamtea_workers.search.translator import TrainedModel, Translator, lexicon_file, source_batch

Row = dict[str, Any]


@dataclass
class _Candidate:
    """A translation (subwords without </s>) and the names of its sources: searches, systems, references."""

    tokens: tuple[int, ...]
    names: list[str]
    outcome: str = ""  # how exact search ended


@dataclass(frozen=True)
class Investigation:
    """A system, its model, and other searches to try with the model.

    `others` use the full vocabulary. `again` is the system's own search with the full vocabulary; None if the
    system has no selection.
    """

    params: DecodeParams
    subwords: TextModel
    trained: TrainedModel
    system: Translator
    again: Translator | None
    others: Mapping[str, Translator]

    @classmethod
    def of_step(cls, context: StepContext[DecodeParams], beam: int, states: int) -> Self:
        """Load the system of a decode step.

        `beam`: the width of the wider beam. `states`: how many states exact search may explore per sentence.
        """
        prepare_torch(context.cpus)
        params, subwords = context.params, load_text_model(context)
        if isinstance(params.search, Beam) and not params.search.ranks_by_length:
            raise StepError(
                f"{params.search.describe()}: errors can be traced only if a system ranks outputs by "
                "score / length^a, without GNMT's penalties"
            )
        trained = TrainedModel.of_step(context, params.precision)
        full = FullVocabulary()

        def translator(search: Search) -> Translator:
            return trained.translator(full, search, None, subwords)

        ratio, normalization = params.search.max_length_ratio, normalization_of(params)
        wide = Beam(kind="beam", width=beam, length_normalization=normalization, max_length_ratio=ratio)
        others = {f"beam {beam}": translator(wide)}
        if params.precision not in Exact.excluded_precisions:
            exact = Exact(kind="exact", max_states=states, max_length_ratio=ratio)
            others["exact search"] = translator(exact)
        return cls(
            params,
            subwords,
            trained,
            trained.translator(params.selection, params.search, lexicon_file(context), subwords),
            translator(params.search) if params.selection.selects else None,
            others,
        )

    def examine(self, source: str, output: str, texts: Mapping[str, str]) -> Row:
        """Gather evidence on one output.

        `texts`: other translations by name, such as references and outputs of other systems.

        Returns {candidates, selected_size, vocabulary, normalization, tolerance, reproduced}. `reproduced` is
        True if the system gives the output again. A candidate is {names, text, score, length, forbidden,
        outcome}:

        - `score`: the model's score over the full vocabulary, </s> included; null if impossible (entmax)
        - `forbidden`: places [from, to) in the text of subwords that the selection does not allow; null
          without a selection
        """
        ids = encode_sources(self.subwords, [source])[0]
        candidates: dict[tuple[int, ...], _Candidate] = {}

        def add(name: str, tokens: Sequence[int], outcome: str = "") -> None:
            candidate = candidates.setdefault(tuple(tokens), _Candidate(tuple(tokens), []))
            candidate.names.append(name)
            candidate.outcome = candidate.outcome or outcome

        translation = self.system.translate([ids])[0]
        reproduced = self.subwords.decode(translation.hypothesis.tokens) == output
        add("output", translation.hypothesis.tokens if reproduced else self._encoded(output))
        if self.again is not None:
            add("full vocabulary", self.again.translate([ids])[0].hypothesis.tokens)
        for name, translator in self.others.items():
            hypothesis = translator.translate([ids])[0].hypothesis
            add(
                name, hypothesis.tokens, hypothesis.outcome if isinstance(hypothesis, ExactHypothesis) else ""
            )
        for name, text in texts.items():
            add(name, self._encoded(text))
        selected = self.system.selected([ids])
        allowed = None if selected is None else frozenset(selected[0])
        rows = [
            {
                "names": candidate.names,
                # the output as it was rated: decoded subwords may lack characters of a foreign output
                "text": output if "output" in candidate.names else self.subwords.decode(candidate.tokens),
                "score": score if math.isfinite(score) else None,
                "length": len(candidate.tokens),
                "forbidden": None if allowed is None else self._forbidden(candidate.tokens, allowed),
                "outcome": candidate.outcome,
            }
            for candidate, score in zip(candidates.values(), self._scores(ids, list(candidates)), strict=True)
        ]
        return {
            "candidates": rows,
            "selected_size": translation.selected_size,
            "vocabulary": self.trained.model.vocabulary_size,
            "normalization": normalization_of(self.params),
            "tolerance": TOLERANCE,
            "reproduced": reproduced,
        }

    def _encoded(self, text: str) -> list[int]:
        return self.subwords.encode_targets([normalise(text)])[0]

    def _forbidden(self, tokens: Sequence[int], allowed: frozenset[int]) -> list[list[int]]:
        """Return the places in the text of subwords that the selection does not allow.

        A subword's place is the characters that it adds to the text, without a leading blank.
        """
        text, places = self.subwords.decode(tokens), []
        for number, id_ in enumerate(tokens):
            if id_ not in allowed:
                start = len(self.subwords.decode(tokens[:number]))
                end = len(self.subwords.decode(tokens[: number + 1]))
                places.append([start + (text[start : start + 1] == " "), max(end, start + 1)])
        return places

    @torch.inference_mode()
    def _scores(self, source: Sequence[int], candidates: Sequence[Sequence[int]]) -> list[float]:
        """Sum the log-scores of each candidate's tokens, </s> included, over the full vocabulary."""
        model, scores = self.trained.model, list[float]()
        size = len(candidates) if model.may_pad else 1
        device = model.output_weight.device
        for first in range(0, len(candidates), size):
            part = candidates[first : first + size]
            longest = max(map(len, part))
            rests = [[PAD] * (longest - len(tokens)) for tokens in part]
            given = [[BOS, *tokens, *rest] for tokens, rest in zip(part, rests, strict=True)]
            wanted = [[*tokens, EOS, *rest] for tokens, rest in zip(part, rests, strict=True)]
            memory = model.encode(source_batch([source] * len(part), device))
            hidden = model.decode(memory, torch.tensor(given, device=device))
            log_scores = self.trained.objective.log_scores(output_logits(model, hidden))
            index = torch.tensor(wanted, device=device).unsqueeze(2)
            gains = log_scores.gather(2, index).squeeze(2).double()
            lengths = torch.tensor([len(tokens) + 1 for tokens in part], device=device)
            real = torch.arange(longest + 1, device=device) < lengths.unsqueeze(1)
            scores += gains.masked_fill(~real, 0.0).sum(dim=1).tolist()
        return scores


@dataclass(frozen=True)
class OtherModel:
    """Another model of the study, which translates the same sentences.

    It translates by a system's search, over the full vocabulary.
    """

    subwords: TextModel
    translator: Translator

    @classmethod
    def of_step(cls, context: StepContext[DecodeParams], search: Search) -> Self:
        prepare_torch(context.cpus)
        subwords = load_text_model(context)
        trained = TrainedModel.of_step(context)
        return cls(subwords, trained.translator(FullVocabulary(), search, None, subwords))

    def translate(self, sources: Sequence[str]) -> list[str]:
        """Translate one source after the other.

        No batches: outputs then do not depend on other sentences, and few outputs are needed.
        """
        lines = encode_sources(self.subwords, sources)
        return [self.subwords.decode(self.translator.translate([ids])[0].hypothesis.tokens) for ids in lines]


def normalization_of(params: DecodeParams) -> float:
    """Return the power of the length by which the system's search divides scores."""
    return params.search.length_normalization if isinstance(params.search, Beam) else 0.0
