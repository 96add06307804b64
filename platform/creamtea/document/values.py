"""The base of every model of the spec, and the scalars that they share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME_CHARACTERS = "A-Za-z0-9._=,+-"
Name = Annotated[str, Field(pattern=rf"^[A-Za-z0-9][{NAME_CHARACTERS}]*$", max_length=120)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
BelowOne = Annotated[float, Field(ge=0.0, lt=1.0)]
Above0 = Annotated[float, Field(gt=0.0)]
Positive = Annotated[int, Field(ge=1, le=10**9)]
Count = Annotated[int, Field(ge=1, le=4096)]  # layers, heads, threads, processors
Width = Annotated[int, Field(ge=1, le=65536)]  # of a layer
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, protected_namespaces=(), allow_inf_nan=False
    )
