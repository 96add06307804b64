"""COMET (Rei et al. 2020) by a subprocess in its own environment.

COMET's pins exclude those of the rest, so `comet_script.py` runs under another interpreter
(`Settings.comet_python`), as a scorer like any other (`creamtea_workers.metrics.scorer`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from creamtea.contract.step import StepContext
from creamtea.errors import StepUnavailable
from creamtea.methods.metrics import Comet
from creamtea.methods.texts import Languages
from creamtea.settings import Settings
from creamtea_workers.metrics.scorer import PinnedModel, Program, Progress, ScorerMetric

SCRIPT = Path(__file__).with_name("comet_script.py")
TIMEOUT = 3600.0  # fetching a model of some GB prints nothing


class CometMetric(ScorerMetric):
    def __init__(
        self,
        spec: Comet,
        python: Path,
        model: PinnedModel,
        progress: Progress,
        cpus: int = 1,
        gpus: float = 0.0,
    ) -> None:
        """Prepare the command.

        The place of `model` is a name that COMET knows, or the path of a checkpoint.
        """
        super().__init__("comet", progress, model)
        self._spec = spec
        self._python = python
        # -I: neither this folder (whose comet.py would be imported) nor PYTHONPATH reaches the script
        self._command = [str(python), "-I", str(SCRIPT), "--model", model.place]
        self._command += ["--batch-size", str(spec.batch_size), "--gpus", "1" if gpus > 0 else "0"]
        self._cpus = cpus

    def program(self) -> Program:
        if not (self._python.is_file() and os.access(self._python, os.X_OK)):
            raise StepUnavailable(
                f"COMET's environment is missing: {self._python} is not a Python interpreter; run "
                "`make install-comet`, or set CREAMTEA_COMET_PYTHON to the python of an environment with "
                "unbabel-comet"
            )
        threads = {"OMP_NUM_THREADS": str(self._cpus), "TOKENIZERS_PARALLELISM": "false"}
        return Program("COMET", self._command, TIMEOUT, threads)

    def signature(self) -> str:
        return "|".join(filter(None, [f"model:{self._spec.model}", self.own_signature]))


def build(spec: Comet, languages: Languages, context: StepContext[Any]) -> CometMetric:
    return CometMetric(
        spec,
        python=Settings.load().comet_python,
        model=PinnedModel.of(spec.model, context),
        progress=context.progress,
        cpus=context.cpus,
        gpus=context.gpus,
    )
