"""What a step needs to run, as a study sets it and as the plan completes it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from creamtea.document.values import Above0, Positive, Strict


class StepResources(Strict):
    cpus: Positive = 1
    gpus: Annotated[float, Field(ge=0.0)] = 0.0
    memory_gb: Above0 | None = None
    timeout_minutes: Above0 | None = None
    max_attempts: Positive = 4  # after infrastructure failures; deterministic ones are final


class Resources(StepResources, extra="ignore"):
    """With what the study does not set; any value may be missing in rows of other versions."""

    exclusive: bool = False  # starts only when nothing else runs, and nothing starts beside it
    # distributions that its methods come from, with their versions
    plugins: dict[str, str] = Field(default={}, exclude_if=lambda plugins: not plugins)
