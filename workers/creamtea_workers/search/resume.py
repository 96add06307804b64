"""The translations of a decoding step so far, with which its next attempt continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from creamtea.contract.step import Checkpoints
from creamtea_workers.search.exact import ExactHypothesis
from creamtea_workers.search.hypothesis import Hypothesis
from creamtea_workers.search.translator import Translation
from creamtea_workers.training import checkpoint

SAVE_EVERY = 60.0  # seconds


@dataclass
class SavedTranslations:
    translations: dict[int, Translation] = field(default_factory=dict)  # by position among the sources
    seconds: float = 0.0  # of all attempts

    def in_order(self) -> list[Translation]:
        return [self.translations[n] for n in range(len(self.translations))]

    def save(self, checkpoints: Checkpoints, worker: int) -> None:
        checkpoint.save(checkpoints, _name(worker), asdict(self))

    @classmethod
    def load(cls, checkpoints: Checkpoints) -> SavedTranslations:
        """What all workers have saved last, whose files have no gap; nothing at first."""
        saved: list[SavedTranslations] = []
        while (content := checkpoint.load(checkpoints, _name(len(saved)))) is not None:
            translations = {
                position: Translation(hypothesis(fields["hypothesis"]), fields["selected_size"])
                for position, fields in content["translations"].items()
            }
            saved.append(cls(translations, content["seconds"]))
        return cls.of_workers(saved)

    @classmethod
    def of_workers(cls, parts: Sequence[SavedTranslations]) -> SavedTranslations:
        """Of workers that translated beside one another."""
        translations = {n: translation for part in parts for n, translation in part.translations.items()}
        return cls(translations, max((part.seconds for part in parts), default=0.0))


def _name(worker: int) -> str:
    return f"translations-{worker}.pt"


def hypothesis(fields: dict[str, object]) -> Hypothesis:
    kind = ExactHypothesis if "outcome" in fields else Hypothesis
    return kind(**fields)  # type: ignore[arg-type]
