"""What is not wrong, but probably not what was meant: warnings beside mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from creamtea.document.mistakes import KeyPath

PlaceOf = Callable[[KeyPath], str]  # where a value of a study stands, as messages name it


@dataclass(frozen=True)
class StudyWarning:
    """Something that a study or its results should be looked at for. It never changes an exit code."""

    kind: str  # for scripts: "warm-up", "few-updates", …
    place: str  # "study.yaml:12: variants.softmax.training", or in words: "softmax, seed 1"
    found: str
    remedy: str

    def line(self) -> str:
        return f"{self.place}: {self.message()}"

    def message(self) -> str:
        return f"{self.found}. {self.remedy}"

    def values(self) -> dict[str, Any]:
        return asdict(self)
