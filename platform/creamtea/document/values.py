"""The base of every model of the spec, and the scalars that they share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME_CHARACTERS = "A-Za-z0-9._=,+-"
Name = Annotated[str, Field(pattern=rf"^[A-Za-z0-9][{NAME_CHARACTERS}]*$", max_length=120)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
BelowOne = Annotated[float, Field(ge=0.0, lt=1.0)]
# Every number has bounds: sums and products of what lies within them stay finite.
Above0 = Annotated[float, Field(gt=0.0, le=10.0**9)]
# What models and their losses are multiplied or divided by, or cut at, in single precision: neither it nor
# its reciprocal is lost there, whatever a model's numbers are (10^-38 to 10^38).
Factor = Annotated[float, Field(ge=10.0**-6, le=10.0**9)]
Positive = Annotated[int, Field(ge=1, le=10**9)]
Copies = Annotated[int, Field(ge=1, le=10**4)]  # of texts, which are written as often
MadeUp = Annotated[int, Field(ge=1, le=10**6)]  # segments that are made in memory
Count = Annotated[int, Field(ge=1, le=4096)]  # layers, heads, threads, processors
Width = Annotated[int, Field(ge=1, le=65536)]  # of a layer
Seed = Annotated[int, Field(ge=0, lt=2**32)]


FILE = "file"  # the format of a text that names a file, in JSON Schema


class Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, protected_namespaces=(), allow_inf_nan=False
    )
