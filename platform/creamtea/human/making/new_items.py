"""What the items of a draft are made of, before they are rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from creamtea.store.item_kinds import ItemKind


@dataclass(kw_only=True)
class NewItem:
    """The fields are columns of the table `item`, but for `original`: of a control, the place of the item
    that it was made from. Systems go by their positions; the outputs of written items are numbered from 0."""

    kind: ItemKind
    segment_index: int
    document: str = ""
    source: str
    context: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    media: list[dict[str, Any]] = field(default_factory=list)
    systems: list[int]
    outputs: list[str]
    weight: float
    degraded: int | None = None
    guidance: dict[str, Any] | None = None
    proposals: dict[str, Any] | None = None
    original: int | None = None
