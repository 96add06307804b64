"""Step `import_model`: a model that was trained elsewhere, in the files that a training leaves."""

from __future__ import annotations

import shutil
from pathlib import Path

from creamtea.contract.step import MetricRow, StepContext, StepResult
from creamtea.errors import StepError
from creamtea.marian import UnusableModel
from creamtea.marian_files import read_marian
from creamtea.shipped import ShippedFolder, read_shipped
from creamtea.steps.systems import ImportModelParams
from creamtea_workers.corpora.marian_subwords import MarianSubwords
from creamtea_workers.corpora.subwords import MARIAN_FILE
from creamtea_workers.models.build import save_model
from creamtea_workers.models.marian import load_marian


def run(context: StepContext[ImportModelParams]) -> StepResult:
    """Import a model.

    Raises StepError if its folder is unusable or has changed since the study was planned.
    """
    params = context.params
    place = Path(context.locations[params.path])
    try:
        found = read_shipped(place) if params.ctranslate2 else read_marian(place)
    except UnusableModel as error:
        raise StepError(f"{params.path}: {error}") from None
    if found.digest != params.digest:
        raise StepError(f"{params.path} has changed since the study was submitted: submit it again")
    if isinstance(found, ShippedFolder):
        note, subwords, parameters = "", _copy(found, context.output), found.parameters
    else:
        note = found.note
        model, config, subwords = load_marian(found)
        save_model(context.output, model, config)
        parameters = sum(weight.numel() for weight in model.parameters())
    subwords.save(context.output / MARIAN_FILE)
    sizes = {"parameters": parameters, "vocabulary_size": subwords.size}
    facts = {
        "name": found.name,
        "digest": found.digest,
        "licence": found.licence or "not stated",
        "note": note,
    }
    return StepResult([MetricRow(name, size) for name, size in sizes.items()], facts=facts)


def _copy(shipped: ShippedFolder, output: Path) -> MarianSubwords:
    """Copy what CTranslate2 reads; return the subwords of its names."""
    for name in shipped.files:
        shutil.copyfile(shipped.folder / name, output / name)
    models = [(shipped.folder / name).read_bytes() for name in shipped.spm]
    source = None if shipped.source == shipped.target else shipped.source
    return MarianSubwords(models, source, shipped.target)
