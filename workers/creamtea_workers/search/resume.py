"""The translations of a decoding step so far, with which its next attempt continues."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from creamtea.contract.step import Checkpoints
from creamtea_workers.search.exact import ExactHypothesis
from creamtea_workers.search.hypothesis import Hypothesis
from creamtea_workers.search.translator import Translation
from creamtea_workers.training import checkpoint

NAME = "translations.pt"
SAVE_EVERY = 60.0  # seconds


@dataclass
class SavedTranslations:
    translations: dict[int, Translation] = field(default_factory=dict)  # by position among the sources
    seconds: float = 0.0  # of all attempts

    def in_order(self) -> list[Translation]:
        return [self.translations[n] for n in range(len(self.translations))]

    def save(self, checkpoints: Checkpoints) -> None:
        checkpoint.save(checkpoints, NAME, asdict(self))

    @classmethod
    def load(cls, checkpoints: Checkpoints) -> SavedTranslations:
        """What was saved last; nothing at first."""
        content = checkpoint.load(checkpoints, NAME)
        if content is None:
            return cls()
        translations = {
            position: Translation(hypothesis(fields["hypothesis"]), fields["selected_size"])
            for position, fields in content["translations"].items()
        }
        return cls(translations, content["seconds"])


def hypothesis(fields: dict[str, object]) -> Hypothesis:
    kind = ExactHypothesis if "outcome" in fields else Hypothesis
    return kind(**fields)  # type: ignore[arg-type]
