"""Models in folders that other programs load: a CTranslate2 model, or weights that `load` reads."""

from creamtea_workers.export.weights import ExportedModel as ExportedModel
from creamtea_workers.export.weights import load as load
