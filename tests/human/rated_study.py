"""A small study with outputs of four systems, written straight into the tables."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from sqlalchemy import select
from table_rows import NOON, step_row

from creamtea.store.database import Database
from creamtea.store.tables import Hypothesis, Metric, Segment, SegmentScore, StepInput, StudyRow, StudyStep

SYSTEMS = ["plain", "beam", "scones", "entmax"]
# by segment, the outputs of the four systems; segment 2 is the same for all
OUTPUTS = [
    ["ein Haus", "das Haus", "ein Haus", "Haus"],
    ["der Hund", "ein Hund", "Hund", ""],
    ["ja", "ja", "ja", "ja"],
    ["<b>rot</b>", "rot", "rot", "*rot*"],
    ["eins", "zwei", "drei", "vier"],
]


def fill_study(
    database: Database,
    name: str = "jam",
    systems: Sequence[str] = SYSTEMS,
    outputs: Sequence[Sequence[str]] = OUTPUTS,
) -> None:
    """`outputs`: by segment, of each system."""
    variant = {"corpus": "c", "subwords": "s", "objective": {"kind": "softmax"}, "seeds": [7, 8]}
    spec = {
        "name": name,
        "languages": {"source": "en", "target": "de"},
        "variants": {"base": variant},
        "systems": {system: {"variant": "base"} for system in systems},
        "test_sets": {"test": {}},
        "baseline": systems[0],
    }
    with database.transaction() as session:

        def step(key: str, kind: str, labels: dict, position: int) -> None:
            session.add(step_row(key, kind))
            session.flush()
            session.add(
                StudyStep(study_id=study.id, node=key, step_key=key, position=position, labels=labels)
            )

        study = StudyRow(
            name=name, config_hash="h", spec=spec, state="succeeded", code_version="0", created_at=NOON
        )
        session.add(study)
        session.flush()
        step(f"{name}/test", "test_set", {"test_set": "test"}, 0)
        session.add_all(
            Segment(step_key=f"{name}/test", index=i, source=f"source {i}", reference="", idioms=[])
            for i in range(len(outputs))
        )
        for position, system in enumerate(systems):
            for seed in (8, 7):
                key = f"{name}/{system}/{seed}"
                step(key, "decode", {"system": system, "seed": seed, "test_set": "test"}, position + 1)
                session.flush()
                session.add(StepInput(step_key=key, role="test_set", position=0, input_key=f"{name}/test"))
                session.add_all(
                    Hypothesis(
                        step_key=key,
                        index=i,
                        text=texts[position] if seed == 7 else f"other seed {i}",
                        score=-1.0,
                        length=1,
                        selected_size=10,
                    )
                    for i, texts in enumerate(outputs)
                )


def add_scores(
    database: Database,
    metric: str,
    values: Mapping[str, Sequence[float]],
    state: str = "succeeded",
    **labels: str,
) -> None:
    """Add a metric's values of each segment by system, and their means."""
    with database.transaction() as session:
        study = session.scalars(select(StudyRow.id)).one()
        for system, own in values.items():
            key = f"{metric}/{system}"
            error = "no model" if state == "failed" else None
            session.add(step_row(key, "score", state=state, error=error, params={"metric": {"kind": metric}}))
            session.flush()
            of_step = {"system": system, "seed": 7, "test_set": "test", "metric": metric, **labels}
            session.add(StudyStep(study_id=study, node=key, step_key=key, position=99, labels=of_step))
            session.add_all(SegmentScore(step_key=key, index=i, value=value) for i, value in enumerate(own))
            if own:
                mean = fmean(own)
                session.add(Metric(step_key=key, name=metric, subject="", value=mean, detail={}))
