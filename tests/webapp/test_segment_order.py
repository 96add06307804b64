"""Segments in the order of a difference of scores, on both databases."""

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import delete

from creamtea.store.database import Database
from creamtea.store.queries import (
    ByDifference,
    PageQuery,
    SegmentFilter,
    find_study,
    side_by_side,
    study_nodes,
)
from creamtea.store.tables import SegmentScore
from creamtea_webapp.pages.outputs import by_difference


def keys(database: Database) -> dict[str, str]:
    with database.session() as session:
        study = find_study(session, "quagga")
        return {node.name: node.key for node in study_nodes(session, study.id)}


def shown(database: Database, order: ByDifference | None, **options: Any) -> list[int]:
    known = keys(database)
    decodes = [known["decode/tapir-greedy/1/narwhal"], known["decode/tapir-nvs/1/narwhal"]]
    with database.session() as session:
        query = PageQuery(known["test_set/narwhal"], decodes, order=order, **options)
        page = side_by_side(session, query)
    return [row.index for row in page.rows]


@pytest.mark.parametrize("lowest_first", [True, False])
def test_segments_come_by_difference_and_those_without_at_the_end(
    filled: Database, lowest_first: bool
) -> None:
    known = keys(filled)
    system, baseline = (known[f"score/{name}/1/narwhal/bleu"] for name in ("tapir-nvs", "tapir-greedy"))
    with filled.transaction() as session:
        for key, index in ((system, 7), (baseline, 3)):
            session.execute(
                delete(SegmentScore).where(SegmentScore.step_key == key, SegmentScore.index == index)
            )
    order = ByDifference(system, baseline, lowest_first)
    by_score = [index for index in range(40) if index not in (3, 7)]  # the filled scores rise with the index
    expected = [*(by_score if lowest_first else by_score[::-1]), 3, 7]
    assert shown(filled, order, limit=100) == expected
    assert shown(filled, order, limit=5, offset=10) == expected[10:15]
    assert shown(filled, None, limit=100) == list(range(40))


@pytest.mark.parametrize(("metric", "lowest_first"), [("bleu", True), ("wer", False)])
def test_the_worst_have_the_most_errors(metric: str, lowest_first: bool) -> None:
    outputs = SimpleNamespace(
        scores={metric: {"own": "key of own", "base": "key of base"}},
        columns={metric: SimpleNamespace(better="lower" if metric == "wer" else "higher")},
        against={"own": "base"},
    )
    worst, best = (by_difference(outputs, metric, "own", worst_first=worst) for worst in (True, False))  # type: ignore[arg-type]
    assert worst == ByDifference("key of own", "key of base", lowest_first)
    assert best == ByDifference("key of own", "key of base", not lowest_first)


def test_an_order_and_a_filter_go_together(filled: Database) -> None:
    known = keys(filled)
    order = ByDifference(
        known["score/tapir-nvs/1/narwhal/bleu"],
        known["score/tapir-greedy/1/narwhal/bleu"],
        lowest_first=False,
    )
    assert shown(filled, order, filter=SegmentFilter(idioms=True)) == [39, 38, 37, 36]
