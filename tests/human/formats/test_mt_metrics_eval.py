"""The mt-metrics-eval folder, read by a strict reader of the documented layout (helpers/evalset.py)."""

from collections.abc import Callable
from pathlib import Path

import evalset
import pytest
from rated import Rated
from sqlalchemy import Delete, Update, delete, select, update

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.store.database import Database
from creamtea.store.tables import (
    Campaign,
    Hypothesis,
    Metric,
    Segment,
    SegmentScore,
    StepRow,
    StudyRow,
    StudyStep,
)

PLAIN, BEAM, SCONES = 0, 1, 2  # systems of the study `jam` (tests/human/conftest.py)
NAMES = ["plain", "beam", "scones"]


def study_campaign(database: Database, protocol: str = "contrastive-da") -> Rated:
    """Segments 1 and 3 of five are rated, on every output of the study's first seed."""
    with database.session() as session:
        study = session.scalars(select(StudyRow)).one().id
        texts = {
            (row.step_key.split("/")[1], row.index): row.text
            for row in session.scalars(select(Hypothesis).where(Hypothesis.step_key.endswith("/7")))
        }
    rated = Rated(database, protocol, systems=NAMES, study_id=study)
    for segment, weight in ((1, 1.0), (3, 3.0)):
        outputs = {at: texts[name, segment] for at, name in enumerate(NAMES)}
        if protocol == "preference":
            del outputs[SCONES]
        rated.item(outputs, segment_index=segment, weight=weight)
    for pseudonym, excluded in (("ann", False), ("bob", False), ("out", True)):
        rated.rater(pseudonym, excluded)
    return rated


def rate(rated: Rated) -> None:
    each = [[0], [1], [2]]
    rated.answer(0, "ann", each, [0, 5, 10], [5, 5, 10])  # the second revision counts
    rated.answer(0, "bob", each, [10, 0, 10])
    rated.answer(0, "out", each, [25, 25, 25])
    rated.answer(1, "bob", [[1, 2], [0]], [20, 25])
    spoilt = rated.item(
        {0: "x", 1: "y", 2: "z"}, kind="bad-reference", original=0, degraded=0, segment_index=1
    )
    rated.answer(spoilt, "ann", each, [25, 25, 25])


def add_metrics(database: Database, systems: list[str], segments: int = 5) -> None:
    with database.transaction() as session:
        study = session.scalars(select(StudyRow)).one().id
        now = database.now(session)
        for number, system in enumerate(systems):
            key = f"score/{system}"
            labels = {"system": system, "test_set": "test", "seed": 7, "metric": "comet"}
            session.add(
                StepRow(
                    key=key,
                    kind="score",
                    version=1,
                    params={"metric": {"kind": "comet"}},
                    state="succeeded",
                    resources={},
                    locations={},
                    created_at=now,
                )
            )
            session.flush()
            session.add(
                StudyStep(study_id=study, node=key, step_key=key, position=90 + number, labels=labels)
            )
            session.add(Metric(step_key=key, name="comet", subject="", value=0.1 * (number + 1), detail={}))
            session.add_all(
                SegmentScore(step_key=key, index=index, value=number + index / 3) for index in range(segments)
            )


def exported(database: Database, rated: Rated, folder: Path) -> evalset.EvalSet:
    export_campaign(database, rated.name, "mt-metrics-eval", folder / "jam-test", "test")
    return evalset.read(folder / "jam-test", "en-de")


def test_the_whole_test_set_and_every_level(study_database: Database, tmp_path: Path) -> None:
    rated = study_campaign(study_database)
    rate(rated)
    add_metrics(study_database, NAMES)
    found = exported(study_database, rated, tmp_path)
    assert found.source == [f"source {index}" for index in range(5)]
    assert found.outputs["beam"] == ["das Haus", "ein Hund", "ja", "rot", "zwei"]
    assert list(found.documents) == ["test"]
    assert found.domains == ["test"]
    # by hand: segment 1 by ann and bob, segment 3 by bob; 1 + 0.2 a step; weights 1 and 3
    human = {level: found.human["contrastive-da", level] for level in evalset.LEVELS}
    assert human["seg"] == {
        "plain": [None, 2.5, None, 6.0, None],
        "beam": [None, 1.5, None, 5.0, None],
        "scones": [None, 3.0, None, 5.0, None],
    }
    overall = {"plain": [5.125], "beam": [4.125], "scones": [4.5]}
    assert human["sys"] == human["domain"] == human["doc"] == overall
    assert found.metrics["comet", "ref", "sys"]["scones"] == [0.1 * 3]
    assert found.metrics["comet", "ref", "seg"]["beam"] == [1 + index / 3 for index in range(5)]


def test_pairs_are_weighed_by_pair(study_database: Database, tmp_path: Path) -> None:
    rated = study_campaign(study_database, "preference")
    rated.answer(0, "ann", [[0], [1]], [2, 0])
    rated.answer(0, "bob", [[1], [0]], [1, 1])
    rated.answer(1, "bob", [[1], [0]], [2, 0])
    found = exported(study_database, rated, tmp_path)
    assert found.human["preference", "seg"]["plain"] == [None, 1.5, None, 0.0, None]
    assert found.human["preference", "sys"] == {"plain": [0.375], "beam": [1.625], "scones": [None]}


def test_outputs_shown_one_at_a_time_meet_in_their_segment(study_database: Database, tmp_path: Path) -> None:
    rated = Rated(study_database, "da", systems=NAMES, study_id=study_campaign(study_database).study_id)
    rated.rater("ann")
    rated.answer(rated.item({0: "ein Haus", 2: "ein Haus"}, segment_index=0), "ann", [[0, 2]], [40])
    rated.answer(rated.item({1: "das Haus"}, segment_index=0), "ann", [[1]], [60])
    found = exported(study_database, rated, tmp_path)
    assert found.human["da", "seg"]["scones"] == [40.0, None, None, None, None]
    assert found.human["da", "sys"] == {"plain": [40.0], "beam": [60.0], "scones": [40.0]}


def test_metrics_that_are_not_whole_are_left_out_and_said(study_database: Database, tmp_path: Path) -> None:
    rated = study_campaign(study_database)
    add_metrics(study_database, NAMES[:2])
    done = export_campaign(study_database, rated.name, "mt-metrics-eval", tmp_path / "out", "test")
    assert done.left_out == ("metric comet: not every system has it",)
    assert evalset.read(tmp_path / "out", "en-de").metrics == {}


def test_documents_reach_over_segments_that_nobody_rated(study_database: Database, tmp_path: Path) -> None:
    rated = Rated(study_database, "da", systems=NAMES, study_id=study_campaign(study_database).study_id)
    for segment, document in ((0, "a"), (2, "a"), (3, "b c")):
        text = {0: "ein Haus", 2: "ja", 3: "<b>rot</b>"}[segment]
        rated.item({0: text}, segment_index=segment, document=document)
    found = exported(study_database, rated, tmp_path)
    assert found.documents == {"a": (0, 3), "b_c": (3, 4), "test-3": (4, 5)}


def test_segments_that_nobody_rated_do_not_join_a_document_of_their_number(
    study_database: Database, tmp_path: Path
) -> None:
    rated = Rated(study_database, "da", systems=NAMES, study_id=study_campaign(study_database).study_id)
    rated.item({0: "<b>rot</b>"}, segment_index=3, document="test-3")
    found = exported(study_database, rated, tmp_path)
    assert found.documents == {"test-1": (0, 3), "test-3": (3, 4), "test-4": (4, 5)}


def test_an_import_has_its_own_items_as_test_set(database: Database, other: Database, tmp_path: Path) -> None:
    rated = Rated(database, "da", systems=["a b", "c.d-e"], test_set="old set")
    rated.rater("ann")
    rated.answer(rated.item({0: "x"}, segment_index=7), "ann", [[0]], [10])
    rated.answer(rated.item({1: ""}, segment_index=4), "ann", [[1]], [20])
    export_campaign(database, rated.name, "csv", tmp_path / "csv", "test")
    import_campaign(other, tmp_path / "csv", "csv", ImportFacts(rated.name), "test")
    found = exported(other, rated, tmp_path)
    assert found.source == ["source 1", "source 0"]
    assert found.outputs == {"a_b": [None, "x"], "c.d-e": ["", None]}
    assert found.references == {"ref": [None, None]}
    assert found.human["da", "seg"] == {"a_b": [None, 10.0], "c.d-e": [20.0, None]}


def test_the_export_of_an_export_has_the_same_scores(
    study_database: Database, other: Database, tmp_path: Path
) -> None:
    rated = study_campaign(study_database)
    rate(rated)
    direct = exported(study_database, rated, tmp_path)
    export_campaign(study_database, rated.name, "jsonl", tmp_path / "jsonl", "test")
    import_campaign(other, tmp_path / "jsonl", "jsonl", ImportFacts(rated.name), "test")
    again = exported(other, rated, tmp_path / "again")
    for level in ("sys", "domain", "doc"):
        assert again.human["contrastive-da", level] == direct.human["contrastive-da", level]


def in_documents(database: Database, names: str) -> Rated:
    rated = Rated(database, "da", systems=["a"])
    for name in names:
        rated.item({0: "x"}, document=name)
    return rated


def one_item(database: Database, systems: list[str], **fields: str) -> Rated:
    rated = Rated(database, "da", systems=systems)
    output = fields.pop("output", "x")
    rated.item({0: output}, **fields)
    return rated


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda db: one_item(db, ["a"], source="two\nlines"), "segment 1, source: found a line end in"),
        (lambda db: one_item(db, ["a"], output="cr\rlf"), "segment 1, output of a: found a line end in"),
        (lambda db: one_item(db, ["a"], output="[No translation supplied] "), "which means a missing text"),
        (lambda db: one_item(db, ["a b", "a/b"]), "the systems 'a b' and 'a/b' are both called 'a_b'"),
        (lambda db: one_item(db, ["ref", "refA", "refB", "refC"]), "no name is left for the reference"),
        (lambda db: Rated(db, "da"), "no items that tell of systems: nothing to export"),
        (lambda db: in_documents(db, "aba"), "document 'a': found in two places of the test set"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(
    database: Database, tmp_path: Path, make: Callable[[Database], Rated], message: str
) -> None:
    rated = make(database)
    with pytest.raises(InputError) as error:
        export_campaign(database, rated.name, "mt-metrics-eval", tmp_path / "out", "test")
    assert message in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("code", "name"), [("zh-Hant", "zh_Hant"), ("x.y", "x_y"), ("e[n]", "e_n_"), ("*?", "__"), ("", "und")]
)
def test_languages_are_words_that_patterns_find(
    database: Database, tmp_path: Path, code: str, name: str
) -> None:
    """The toolkit looks for files by patterns with SRC-TGT in them: of "e[n]" it finds none."""
    rated = one_item(database, ["a"])
    with database.transaction() as session:
        session.execute(update(Campaign).values(source_language=code))
    export_campaign(database, rated.name, "mt-metrics-eval", tmp_path / "jam-test", "test")
    assert evalset.read(tmp_path / "jam-test", f"{name}-de").outputs == {"a": ["x"]}


def test_a_reference_called_as_a_system_gets_another_name(database: Database, tmp_path: Path) -> None:
    assert set(exported(database, one_item(database, ["ref"]), tmp_path).references) == {"refA"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            update(Hypothesis)
            .where(Hypothesis.step_key == "jam/beam/7", Hypothesis.index == 3)
            .values(text="anders"),
            "item 1: the study's output of system 'beam' for segment 3 is not",
        ),
        (update(Segment).where(Segment.index == 2).values(reference="a\nb"), "segment 3, reference: found a"),
        (delete(StudyStep).where(StudyStep.node == "jam/beam/7"), "beam"),
    ],
)
def test_outputs_that_are_not_the_studys_any_more(
    study_database: Database, tmp_path: Path, change: Update | Delete, message: str
) -> None:
    rated = study_campaign(study_database)
    with study_database.transaction() as session:
        session.execute(change)
    with pytest.raises(InputError, match=message):
        export_campaign(study_database, rated.name, "mt-metrics-eval", tmp_path / "out", "test")


@pytest.mark.parametrize(
    ("output", "read"),
    [
        ("one\u2028line\x85\x0b.", "one\u2028line\x85\x0b."),  # none of these ends a line
        ("\t a  b\u3000 ", "\t a  b"),  # readers drop white space at the end
    ],
)
def test_texts_are_written_as_they_are(database: Database, tmp_path: Path, output: str, read: str) -> None:
    rated = one_item(database, ["a"], output=output)
    assert exported(database, rated, tmp_path).outputs["a"] == [read]
    written = (tmp_path / "jam-test" / "system-outputs" / "en-de" / "a.txt").read_bytes()
    assert written == f"{output}\n".encode()
