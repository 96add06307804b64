"""What a step needs to run, as a study sets it and as the plan completes it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from creamtea.document.values import Above0, Count, Positive, Strict


def _pair(value: Any) -> Any:
    return [value, value] if isinstance(value, int) else value


def _ascending(values: list[int]) -> list[int]:
    if values[0] > values[1]:
        raise ValueError("has the larger number first")
    return values


# [s] that workers of one step wait for each other: Ray notices a lost process or node by itself; this is for
# a validation, or for another's share of the sentences
GROUP_PATIENCE = 6 * 3600

LeastAndMost = Annotated[list[Count], Field(min_length=2, max_length=2)]
# [least, most], also written as one number
Workers = Annotated[
    LeastAndMost,
    BeforeValidator(_pair, json_schema_input_type=Count | LeastAndMost),
    AfterValidator(_ascending),
]


Named = Annotated[str, Field(min_length=1, max_length=253)]


class StepResources(Strict):
    # [processes] of a training or a decoding, with these cpus and gpus each: one number, or a
    # minimum and a maximum, as there is room
    workers: Workers = Field(default=[1, 1])
    cpus: Count = 1  # [cores] per worker
    gpus: Annotated[float, Field(ge=0.0, le=4096.0)] = 0.0  # [GPUs] per worker
    memory_gb: Above0 | None = None  # [GB] per worker
    # of a cluster: only on nodes of this group, as KubeRay's groupName or `ray start --labels
    # ray.io/node-group=NAME` says; none: anywhere
    worker_group: Named | None = Field(default=None, exclude_if=lambda name: name is None)
    # only on the node with this host name, address or `ray start --node-name`; none: anywhere
    node: Named | None = Field(default=None, exclude_if=lambda name: name is None)
    # [minutes] after which an attempt is stopped; none: the limit of its kind
    timeout_minutes: Above0 | None = None
    # [minutes] without a sign of life, after which an attempt is stopped and tried again; none: the limit
    # of its kind
    silent_minutes: Above0 | None = None
    max_attempts: Positive = 4  # after infrastructure failures; deterministic ones are final


class Resources(StepResources, extra="ignore"):
    """With what the study does not set; any value may be missing in rows of other versions."""

    exclusive: bool = False  # starts only when nothing else runs, and nothing starts beside it
    # distributions that its methods come from, with their versions
    plugins: dict[str, str] = Field(default={}, exclude_if=lambda plugins: not plugins)
