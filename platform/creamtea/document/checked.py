"""A file of YAML or JSON as the model that it must be, or one of JSON Lines, line by line."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from creamtea.document.document import read_document
from creamtea.document.mistakes import StudyErrors, mistakes_in_line, mistakes_of_pydantic
from creamtea.document.strict_json import parse_json
from creamtea.errors import InputError
from creamtea.files import read_text
from creamtea.wording import file_name, key_name

Model = TypeVar("Model", bound=BaseModel)
MAX_BYTES = 200_000_000  # of a file of JSON Lines


def read_checked(path: Path, model: type[Model], keys: str, kind: str) -> Model:
    """`keys`: those that a message names where the file has none; `kind`: what it says the file should be.
    InputError for a file that cannot be read, StudyErrors with the line of every mistake, keys written twice
    among them."""
    document = read_document(path, keys, kind=kind)
    mistakes = list(document.mistakes)
    try:
        read = model.model_validate(document.data)
    except ValidationError as error:
        mistakes += mistakes_of_pydantic(error.errors(), model, document.data)
    if mistakes:
        raise StudyErrors([mistake.line(document.place(mistake.path)) for mistake in mistakes], document.name)
    return read


def read_lines(path: Path, model: type[Model], name: str) -> list[tuple[str, Model]]:
    """The lines of a file of JSON Lines but blank ones, each with its place ("list.jsonl, line 3").

    InputError for a file that cannot be read, with the key `name` that names it, and with the place and
    every mistake for a line that is not as the model says.
    """
    text = read_text(
        path, f"{key_name(name)}: {file_name(path)}", MAX_BYTES, "give a list in JSON Lines, saved as UTF-8"
    )
    lines = text.split("\n")  # JSON may hold other line separators
    places = ((f"{path.name}, line {number}", line) for number, line in enumerate(lines, start=1))
    return [(place, _read_line(line, place, model)) for place, line in places if line.strip()]


def _read_line(text: str, place: str, model: type[Model]) -> Model:
    value = parse_json(text, place)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InputError(f"{place}: {mistakes_in_line(error, model, value)}") from None
