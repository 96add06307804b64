"""Step `import_model`: a model that was trained elsewhere, in the files that a training leaves."""

from __future__ import annotations

from pathlib import Path

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.marian import UnusableModel, read_folder
from creamtea.steps.systems import ImportModelParams
from creamtea_workers.corpora.subwords import MARIAN_FILE
from creamtea_workers.models.build import save_model
from creamtea_workers.models.marian import load_marian


def run(context: StepContext[ImportModelParams]) -> StepResult:
    """Import a model.

    Raises StepError if its folder is unusable or has changed since the study was planned.
    """
    params = context.params
    try:
        marian = read_folder(Path(context.locations[params.marian]))
    except UnusableModel as error:
        raise StepError(f"{params.marian}: {error}") from None
    if marian.digest != params.digest:
        raise StepError(f"{params.marian} has changed since the study was submitted: submit it again")
    model, config, subwords = load_marian(marian)
    save_model(context.output, model, config)
    subwords.save(context.output / MARIAN_FILE)
    sizes = {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "vocabulary_size": config.vocabulary_size,
    }
    facts = {"name": marian.name, "digest": marian.digest, "licence": marian.licence or "not stated"}
    return StepResult([MetricRow(name, size) for name, size in sizes.items()], facts=facts)
