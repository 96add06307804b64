"""Raters as processes that are killed, lose connections and send things twice (bench/simulated_raters.py)."""

from pathlib import Path

import pytest
from simulated_raters import PROTOCOLS, Trouble, compare, simulate
from table_rows import NOON, assignment_row

from creamtea.store.database import open_database
from creamtea.store.tables import Rating


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "processes"), [(PROTOCOLS[0], 6), (PROTOCOLS[1], 2)])
def test_nothing_is_lost_or_doubled_whatever_happens_to_the_raters(
    empty_url: str, tmp_path: Path, protocol: str, processes: int
) -> None:
    trouble = Trouble(think=0.02, deaths=1, lost=0.15, doubled=0.3)
    outcome = simulate(
        empty_url,
        tmp_path / "journals",
        raters=6,
        items=12,
        k=3,
        trouble=trouble,
        protocol=protocol,
        processes=processes,
    )
    assert outcome.right, outcome
    assert outcome.items == 12
    assert outcome.kills >= processes // 2
    assert outcome.lost_connections >= 3
    # an answer of each of its raters may have been stored by a process that died before it was told
    assert 36 - outcome.kills * 6 // processes <= outcome.acknowledged <= 36


def test_the_comparison_sees_what_is_wrong(sqlite_url: str) -> None:
    from simulated_raters import fill

    database = open_database(sqlite_url)
    (rater,) = fill(database, raters=1, items=2, k=1)
    with database.transaction() as session:
        for item in (1, 2):
            answered = {} if item == 1 else {"submitted_at": None}
            session.add(assignment_row(item, rater, [[0], [1], [2], [3]], **answered))
            session.flush()
        session.add_all(
            Rating(assignment_id=1, system=system, revision=1, step=system, created_at=NOON)
            for system in range(3)
        )
    journal = [
        {"what": "sent", "assignment": 1, "answers": [0, 1, 2, 3]},
        {"what": "saved", "assignment": 1, "steps": {"0": 0, "1": 1, "2": 2, "3": 3}},
    ]
    outcome = compare(database, journal, k=1)
    assert not outcome.right
    assert outcome.items_without_k_raters == 1
    assert (outcome.lost_answers, outcome.doubled_answers, outcome.unknown_answers) == (1, 1, 1)
    database.close()
