"""Step kinds of the tests: `register` puts them into the catalogue of this process.

It is also what Ray's workers call when they start, so this folder must be on their path.
"""

from creamtea.contract.step import StepKind, StepParams
from creamtea.steps.catalogue import STEP_KINDS


class ToyParams(StepParams):
    log: str
    name: str
    do: str = "text"
    until: int = 10**9
    seconds: float = 0.0
    stop_at: int = 0


TOY = StepKind(
    "toy",
    1,
    "play",
    ToyParams,
    inputs={"before": "toys that are played with first"},
    files={"out.txt": "what has been said"},
    metrics={"length": "letters"},
    points={"curve": "one"},
    worker="toy_steps",
    optional=True,
)


def register() -> None:
    STEP_KINDS["toy"] = TOY
