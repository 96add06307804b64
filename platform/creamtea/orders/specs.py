"""The spec that a study of the database was planned from."""

from __future__ import annotations

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import object_session

from creamtea.errors import InputError
from creamtea.methods.plugins import not_here
from creamtea.store.tables import StepRow, StudyRow, StudyStep
from creamtea.study.spec import Study


class UnreadableStudy(InputError):
    """A study of another version, or of a plug-in that is not here."""


def spec_of(row: StudyRow) -> Study:
    """UnreadableStudy for a study that this version, or this installation with its plug-ins, cannot read."""
    try:
        return Study.model_validate(row.spec)
    except ValidationError as error:
        study = f"study {row.name!r} (number {row.id})"
        if lacking := not_here(_plugins_of(row)):
            raise UnreadableStudy(f"{study} was {lacking}: install the same plug-ins here") from None
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UnreadableStudy(
            f"{study} was planned by creamtea {row.code_version}, whose spec this version cannot read "
            f"({place}: {first['msg']}); run it again"
        ) from None


def _plugins_of(row: StudyRow) -> dict[str, str]:
    """The distributions, with their versions, that the study's steps take methods from."""
    session = object_session(row)
    if session is None:
        return {}
    steps = (
        select(StepRow.resources)
        .join(StudyStep, StudyStep.step_key == StepRow.key)
        .where(StudyStep.study_id == row.id)
    )
    return {
        name: version
        for resources in session.scalars(steps)
        for name, version in resources.get("plugins", {}).items()
    }
