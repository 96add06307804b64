"""Compare every two systems on one test set, on the same resamples and swaps for all pairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from creamtea.contract.step import StepContext, StepResult
from creamtea.steps.systems import PairsParams
from creamtea_workers.steps.compare import compared


def run(context: StepContext[PairsParams]) -> StepResult:
    """Return a `delta` for each pair. The subject "0/2" is the third system less the first."""
    folders = iter(context.inputs("systems"))
    systems = [list(islice(folders, count)) for count in context.params.outputs]
    rows = compared(context, systems)
    return StepResult(metrics=[replace(row, subject=f"{i}/{j}") for (i, j), row in rows.items()])
