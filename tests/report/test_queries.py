"""Queries of the report and the web app, on SQLite and PostgreSQL."""

import time

import pytest
from sqlalchemy import insert
from teatime_study import fill_study

from creamtea.errors import InputError
from creamtea.store.database import Database
from creamtea.store.queries import (
    PageQuery,
    SegmentFilter,
    find_study,
    list_studies,
    side_by_side,
    study_names,
    study_nodes,
)
from creamtea.store.tables import Hypothesis, Segment, StepRow


def keys_of(database: Database, study: int) -> dict[str, str]:
    with database.session() as session:
        return {node.name: node.key for node in study_nodes(session, study)}


def test_studies_newest_first_with_their_steps_by_state(database: Database) -> None:
    first = fill_study(
        database, changes={"decode/scones": {"state": "running"}, "latency": {"state": "failed"}}
    )
    second = fill_study(database, state="queued")
    with database.session() as session:
        studies = list_studies(session)
        assert [study.id for study in studies] == [second, first]
        # steps are shared: what one submission sees, the other sees too
        assert studies[0].steps == studies[1].steps == {"succeeded": 42, "running": 3, "failed": 1}
        assert (studies[0].total, studies[0].done, studies[0].failed) == (46, 42, 1)
        assert studies[0].unavailable == 0
        assert studies[0].state == "queued"
        assert list(study_names(session).items()) == [(second, "teatime"), (first, "teatime")]


def test_studies_are_found_by_number_or_newest_of_a_name(database: Database) -> None:
    first, second = fill_study(database), fill_study(database)
    with database.session() as session:
        assert find_study(session, "teatime").id == second
        assert find_study(session, first).id == first
        with pytest.raises(InputError, match="no study 'tea'; known studies: teatime"):
            find_study(session, "tea")


def test_nodes_come_in_the_plans_order_with_labels_and_state(database: Database) -> None:
    study = fill_study(
        database, changes={"latency": {"state": "failed", "error_kind": "timeout", "error": "slow"}}
    )
    with database.session() as session:
        nodes = study_nodes(session, study)
        assert nodes[0].kind == "corpus"
        assert len({node.name for node in nodes}) == len(nodes)
        (latency,) = study_nodes(session, study, "latency")
        assert (latency.state, latency.error_kind, latency.error) == ("failed", "timeout", "slow")
        assert latency.labels["test_set"] == "test"
        decodes = study_nodes(session, study, "decode")
        assert [node.labels["seed"] for node in decodes] == [1, 1, 1, 1, 2, 3]


SYSTEMS = ("softmax-greedy/1", "softmax-lexicon/1", "scones-greedy/1")


@pytest.mark.parametrize(
    ("chosen", "indices"),
    [
        (SegmentFilter(), [0, 1, 2, 3]),
        (SegmentFilter(contains="MOND"), [1]),  # in one output only
        (SegmentFilter(contains="first"), [2, 3]),  # in the source, whatever its case
        (SegmentFilter(contains="%"), []),  # a character, no wildcard
        (SegmentFilter(different=True), [1, 3]),
        (SegmentFilter(idioms=True), [1]),
        (SegmentFilter(empty=True), [3]),
        (SegmentFilter(different=True, contains="tea"), []),
    ],
)
def test_filters(chosen: SegmentFilter, indices: list[int], database: Database) -> None:
    keys = keys_of(database, fill_study(database))
    decodes = [keys[f"decode/{system}/test"] for system in SYSTEMS]
    with database.session() as session:
        page = side_by_side(session, PageQuery(keys["test_set/test"], decodes, filter=chosen))
    assert [row.index for row in page.rows] == indices
    assert page.total == len(indices)


def test_a_page_has_outputs_and_scores_in_the_asked_order(database: Database) -> None:
    keys = keys_of(database, fill_study(database, changes={"decode/softmax-nvs": {"state": "running"}}))
    decodes = [keys[f"decode/{system}/test"] for system in ("softmax-nvs/1", "softmax-lexicon/1")]
    scores = [keys["score/softmax-lexicon/1/test/bleu"]]
    with database.session() as session:
        page = side_by_side(session, PageQuery(keys["test_set/test"], decodes, scores, offset=1, limit=2))
    assert (page.total, [row.index for row in page.rows]) == (4, [1, 2])
    first = page.rows[0]
    assert (first.source, first.reference, first.scores) == ("over the moon", "überglücklich", (10.0,))
    missing, output = first.outputs
    assert missing is None
    assert (output.text, output.score, output.length, output.selected_size) == ("über dem Mond", -2.0, 3, 9)
    assert first.idioms[0]["name"] == "moon"


def test_without_decodes_the_segments_are_shown_and_nothing_differs(database: Database) -> None:
    keys = keys_of(database, fill_study(database))
    with database.session() as session:
        assert side_by_side(session, PageQuery(keys["test_set/test"], [])).total == 4
        none = side_by_side(
            session, PageQuery(keys["test_set/test"], [], filter=SegmentFilter(different=True))
        )
        assert none.total == 0


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_pages_of_a_large_table_are_quick(database: Database) -> None:
    """A test set of 20,000 segments with two decodes, and as many hypotheses of another step."""
    study = fill_study(database)
    keys = keys_of(database, study)
    some = [keys[f"decode/{system}/test"] for system in SYSTEMS[:2]]
    with database.transaction() as session:
        template = session.get_one(StepRow, some[0])
        values = {column.key: getattr(template, column.key) for column in StepRow.__table__.columns}
        session.execute(insert(StepRow), [{**values, "key": "other"}])
        row = {"text": "ein Hund läuft", "score": -1.0, "length": 3, "selected_size": 9}
        for key in [*some, "other"]:
            session.execute(
                insert(Hypothesis), [{"step_key": key, "index": 10 + i, **row} for i in range(20_000)]
            )
        text = {"source": "a dog", "reference": "ein Hund", "idioms": []}
        segments = [{"step_key": keys["test_set/test"], "index": 10 + i, **text} for i in range(20_000)]
        session.execute(insert(Segment), segments)
    with database.session() as session:
        started = time.thread_time()
        page = side_by_side(session, PageQuery(keys["test_set/test"], some, offset=19_000))
        plain = time.thread_time() - started
        chosen = SegmentFilter(different=True, contains="x")
        side_by_side(session, PageQuery(keys["test_set/test"], some, filter=chosen))
        filtered = time.thread_time() - started - plain
    assert (page.total, page.rows[0].index) == (20_004, 19_006)
    assert plain < 1.0  # a few ms; processor time, so that others on the machine do not count
    assert filtered < 5.0
