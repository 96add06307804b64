"""A metric's model that is a file or a folder of the user, which must stay as it was planned with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creamtea.contract.step import StepContext
from creamtea.errors import InputError, StepError
from creamtea.scorers import content_digest
from creamtea.steps.systems import ScoreParams


@dataclass(frozen=True)
class PinnedModel:
    """A metric's model that is the user's: `name` as the study gives it, `place` on this machine, and the
    `digest` of its content when the study was planned; that is empty for a model of another kind."""

    name: str = ""
    place: str = ""
    digest: str = ""

    @classmethod
    def of(cls, name: str | None, context: StepContext[Any]) -> PinnedModel:
        # a comparison reads the scores that are there, and pins nothing itself
        params, name = context.params, name or ""
        digests = (params.digests or {}) if isinstance(params, ScoreParams) else {}
        return cls(name, context.locations.get(name, name), digests.get(name, ""))

    def check(self) -> None:
        """StepError where it is not there, or is not what it was."""
        if not self.digest:
            return
        try:
            found = content_digest(Path(self.place))
        except InputError as error:
            raise StepError(
                f"the model {self.name}: {error}; the data folder must be visible, under the same path, to "
                "every machine that runs steps"
            ) from None
        if found != self.digest:
            raise StepError(
                f"the model {self.name} has changed since the study was planned: submit it again, so that it "
                "is planned with the new model"
            )
