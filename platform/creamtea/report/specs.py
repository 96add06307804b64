"""The spec that a study of the database was planned from."""

from __future__ import annotations

from pydantic import ValidationError

from creamtea.errors import InputError
from creamtea.store.tables import StudyRow
from creamtea.study.spec import Study


def spec_of(row: StudyRow) -> Study:
    """InputError for a study that this version cannot read."""
    try:
        return Study.model_validate(row.spec)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"study {row.name!r} (number {row.id}) was planned by creamtea {row.code_version}, whose spec "
            f"this version cannot read ({place}: {first['msg']}); run it again"
        ) from None
