"""A file of YAML or JSON as the model that it must be."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from creamtea.document.document import read_document
from creamtea.document.mistakes import StudyErrors, mistakes_of_pydantic

Model = TypeVar("Model", bound=BaseModel)


def read_checked(path: Path, model: type[Model], keys: str) -> Model:
    """`keys`: those that a message names where the file has none. InputError for a file that cannot be read,
    StudyErrors with the line of every mistake, keys written twice among them."""
    document = read_document(path, keys)
    mistakes = list(document.mistakes)
    try:
        read = model.model_validate(document.data)
    except ValidationError as error:
        mistakes += mistakes_of_pydantic(error.errors(), model, document.data)
    if mistakes:
        raise StudyErrors([mistake.line(document.place(mistake.path)) for mistake in mistakes], document.name)
    return read
