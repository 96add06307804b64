"""Metrics of the machine's scorers: programs that the file of CREAMTEA_SCORERS names (`creamtea.scorers`)."""

from __future__ import annotations

from typing import Any

from creamtea.contract.step import StepContext
from creamtea.errors import InputError, StepUnavailable
from creamtea.methods.metrics import Command
from creamtea.methods.texts import Languages
from creamtea.scorers import MODEL, Scorer, ScorerPins, UnknownScorer, find_scorer
from creamtea.steps.systems import DecodeParams, ScoreParams
from creamtea_workers.metrics.scorer import PinnedModel, Program, ScorerMetric


class CommandMetric(ScorerMetric):
    def __init__(self, spec: Command, context: StepContext[Any]) -> None:
        super().__init__("command", context.progress, PinnedModel.of(spec.model, context))
        self._spec = spec
        self._context = context
        params = context.params
        # a comparison reads stored scores, and pins nothing itself
        pinned = isinstance(params, ScoreParams | DecodeParams)
        self._pins: ScorerPins | None = params.scorer if pinned else None

    def program(self) -> Program:
        scorer = self._scorer()
        environment = {
            "OMP_NUM_THREADS": str(self._context.cpus),
            **({} if self._context.gpus else {"CUDA_VISIBLE_DEVICES": ""}),
            **scorer.environment,
        }
        command = [word.replace(MODEL, self.model.place) for word in scorer.command]
        return Program(f"the scorer {self._spec.scorer}", command, scorer.timeout_minutes * 60.0, environment)

    def _scorer(self) -> Scorer:
        """Find this machine's scorer, and check that it is the one that the study was planned with."""
        name = self._spec.scorer
        try:
            scorer = find_scorer(name, with_model=self._spec.model is not None)
            pins = scorer.pins()
        except UnknownScorer as error:
            raise StepUnavailable(f"the worker lacks the scorer: {error}") from None
        except InputError:  # its text may quote the file, and this error is stored
            raise StepUnavailable(
                f"the worker cannot use its scorer {name}: `creamtea validate` there says what is wrong with "
                "its CREAMTEA_SCORERS"
            ) from None
        if pins != self._pins:
            planned = self._pins.version if self._pins else "none"
            raise StepUnavailable(
                f"the study was planned with another scorer {name} than the worker's (version {planned} "
                f"there, {pins.version} here; arguments or files may differ): make them the same and run it "
                "again"
            )
        return scorer

    def signature(self) -> str:
        spec, pins = self._spec, self._pins
        parts = {
            "scorer": spec.scorer,
            "version": pins.version if pins else "",
            "digest": pins.digest[:12] if pins else "",
            "model": spec.model,
            "model-digest": self.model.digest[:12],
        }
        named = [f"{name}:{value}" for name, value in parts.items() if value]
        return "|".join([*named, *filter(None, [self.own_signature])])


def build(spec: Command, languages: Languages, context: StepContext[Any]) -> CommandMetric:
    return CommandMetric(spec, context)
