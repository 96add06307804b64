"""The mt-metrics-eval folder, read by a strict reader of the documented layout (helpers/evalset.py)."""

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import evalset
import pytest
from rated_campaigns import rated_campaign
from rated_study import OUTPUTS, SYSTEMS, add_scores
from sqlalchemy import Delete, Update, delete, select, update
from table_rows import one_of

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts, NotKept
from creamtea.human.formats.exchange import export_campaign, find_format, import_campaign
from creamtea.human.formats.rating_rows import rows_of
from creamtea.human.formats.storing import collect
from creamtea.human.record import Content
from creamtea.human.results.ratings import load_ratings
from creamtea.store.database import Database
from creamtea.store.tables import (
    AuditEvent,
    Campaign,
    Hypothesis,
    Segment,
    StudyRow,
    StudyStep,
)

NAMES = SYSTEMS[:3]


def shown(segment: int, systems: Sequence[int] = (0, 1, 2), **fields: Any) -> dict[str, Any]:
    """An item of the study `jam` with the outputs of its first seed."""
    outputs = [OUTPUTS[segment][at] for at in systems]
    return {"segment_index": segment, "systems": list(systems), "outputs": outputs, **fields}


def rate_study(database: Database, items: list[dict[str, Any]], protocol: str = "contrastive-da") -> None:
    study = one_of(database, select(StudyRow.id))
    people: dict[str, Any] = {"raters": ("ann", "bob", "out"), "excluded": ["out"]}
    rated_campaign(database, items, systems=NAMES, protocol=protocol, study_id=study, **people)


RATED = [  # segments 1 and 3 of five; of two revisions the second counts
    shown(1, steps={"ann": [[0, 5, 10], [5, 5, 10]], "bob": [10, 0, 10], "out": [25, 25, 25]}),
    shown(3, steps={"bob": [25, 20, 20]}, weight=3.0),
    shown(1, steps={"ann": [25, 25, 25]}, kind="bad-reference", degraded=0),
]


def exported(database: Database, folder: Path) -> evalset.EvalSet:
    export_campaign(database, "tasting", "mt-metrics-eval", folder / "jam-test", "test")
    return evalset.read(folder / "jam-test", "en-de")


def test_the_whole_test_set_and_every_level(
    study_database: Database, other: Database, tmp_path: Path
) -> None:
    rate_study(study_database, RATED)
    add_scores(study_database, "comet", {name: [at, at + 0.5] * 2 + [9] for at, name in enumerate(NAMES)})
    add_scores(study_database, "bleu", {name: [1.0] * 5 for name in NAMES[:2]})
    done = export_campaign(study_database, "tasting", "mt-metrics-eval", tmp_path / "jam-test", "test")
    assert done.left_out == ("metric bleu: not every system has it",)
    found = evalset.read(tmp_path / "jam-test", "en-de")
    assert found.source == [f"source {index}" for index in range(5)]
    assert found.outputs["beam"] == ["das Haus", "ein Hund", "ja", "rot", "zwei"]
    assert (list(found.documents), found.domains) == (["test"], ["test"])
    # by hand: segment 1 by ann and bob, segment 3 by bob; 1 + 0.2 a step; weights 1 and 3
    human = {level: found.human["contrastive-da", level] for level in evalset.LEVELS}
    assert human["seg"] == {
        "plain": [None, 2.5, None, 6.0, None],
        "beam": [None, 1.5, None, 5.0, None],
        "scones": [None, 3.0, None, 5.0, None],
    }
    overall = {"plain": [5.125], "beam": [4.125], "scones": [4.5]}
    assert human["sys"] == human["domain"] == human["doc"] == overall
    assert {name for name, _, _ in found.metrics} == {"comet"}
    assert found.metrics["comet", "ref", "sys"]["scones"] == [(2 + 2.5 + 2 + 2.5 + 9) / 5]
    assert found.metrics["comet", "ref", "seg"]["beam"] == [1, 1.5, 1, 1.5, 9]

    # from a database that does not have the study, whose test set is that of its own items
    export_campaign(study_database, "tasting", "jsonl", tmp_path / "jsonl", "test")
    import_campaign(other, tmp_path / "jsonl", "jsonl", ImportFacts("tasting"), "test")
    again = exported(other, tmp_path / "again")
    assert again.source == ["source 0", "source 1"]
    for level in ("sys", "domain", "doc"):
        assert again.human["contrastive-da", level] == human[level]


def test_pairs_are_weighed_by_pair(study_database: Database, tmp_path: Path) -> None:
    pairs = [
        shown(1, (0, 1), steps={"ann": [2, 0], "bob": [1, 1]}),
        shown(3, (0, 1), steps={"bob": [0, 2]}, weight=3.0),
    ]
    rate_study(study_database, pairs, "preference")
    found = exported(study_database, tmp_path)
    assert found.human["preference", "seg"]["plain"] == [None, 1.5, None, 0.0, None]
    assert found.human["preference", "sys"] == {"plain": [0.375], "beam": [1.625], "scones": [None]}


@pytest.mark.parametrize(
    ("rated", "documents"),
    [
        ({0: "a", 2: "a", 3: "b c"}, {"a": (0, 3), "b_c": (3, 4), "test-3": (4, 5)}),
        ({3: "test-3"}, {"test-1": (0, 3), "test-3": (3, 4), "test-4": (4, 5)}),  # its own name stays
    ],
)
def test_documents_reach_over_segments_that_nobody_rated(
    study_database: Database, tmp_path: Path, rated: dict[int, str], documents: dict[str, tuple[int, int]]
) -> None:
    rate_study(study_database, [shown(at, (0,), document=name) for at, name in rated.items()], "da")
    assert exported(study_database, tmp_path).documents == documents


def test_an_import_has_its_own_items_as_test_set(database: Database, other: Database, tmp_path: Path) -> None:
    items = [
        {"segment_index": 7, "systems": [0], "outputs": ["x"], "steps": {"anna": [10]}},
        {"segment_index": 4, "systems": [1], "outputs": [""], "steps": {"anna": [20]}},
    ]
    rated_campaign(database, items, systems=["a b", "c.d-e"], protocol="da", test_set="old set")
    export_campaign(database, "tasting", "csv", tmp_path / "csv", "test")
    import_campaign(other, tmp_path / "csv", "csv", ImportFacts("tasting"), "test")
    found = exported(other, tmp_path)
    assert found.source == ["source 1", "source 0"]
    assert found.outputs == {"a_b": [None, "x"], "c.d-e": ["", None]}
    assert found.references == {"ref": [None, None]}
    assert found.human["da", "seg"] == {"a_b": [None, 10.0], "c.d-e": [20.0, None]}


@pytest.mark.parametrize(
    ("systems", "items", "message"),
    [
        ("a", [{"source": "two\nlines"}], "segment 1, source: found a line end in"),
        ("a", [{"outputs": ["cr\rlf"]}], "segment 1, output of a: found a line end in"),
        ("a", [{"outputs": ["[No translation supplied] "]}], "which means a missing text"),
        (["a b", "a/b"], [{}], "the systems 'a b' and 'a/b' are both called 'a_b'"),
        (["ref", "refA", "refB", "refC"], [{}], "no name is left for the reference"),
        ("a", [], "no items that rate systems: nothing to export"),
        ("a", [{"document": name} for name in "aba"], "document 'a': found in two places of the test set"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(
    database: Database, tmp_path: Path, systems: Sequence[str], items: list[dict[str, Any]], message: str
) -> None:
    usual = {"systems": [0], "outputs": ["x"]}
    rated_campaign(database, [{**usual, **item} for item in items], systems=systems, protocol="da")
    with pytest.raises(InputError) as error:
        export_campaign(database, "tasting", "mt-metrics-eval", tmp_path / "out", "test")
    assert message in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("code", "name"), [("zh-Hant", "zh_Hant"), ("x.y", "x_y"), ("e[n]", "e_n_"), ("*?", "__"), ("", "und")]
)
def test_languages_are_words_that_patterns_find(
    database: Database, tmp_path: Path, code: str, name: str
) -> None:
    """The toolkit looks for files by patterns with SRC-TGT in them: of "e[n]" it finds none."""
    rated_campaign(database, [{}], systems=["a"], protocol="da", source_language=code)
    export_campaign(database, "tasting", "mt-metrics-eval", tmp_path / "jam-test", "test")
    assert evalset.read(tmp_path / "jam-test", f"{name}-de").outputs == {"a": ["o0-a"]}


def test_a_reference_called_as_a_system_gets_another_name(database: Database, tmp_path: Path) -> None:
    rated_campaign(database, [{}], systems=["ref"], protocol="da")
    assert set(exported(database, tmp_path).references) == {"refA"}


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
    rate_study(study_database, RATED)
    with study_database.transaction() as session:
        session.execute(change)
    with pytest.raises(InputError, match=message):
        export_campaign(study_database, "tasting", "mt-metrics-eval", tmp_path / "out", "test")


@pytest.mark.parametrize(
    ("output", "read"),
    [
        ("one\u2028line\x85\x0b.", "one\u2028line\x85\x0b."),  # none of these ends a line
        ("\t a  b\u3000 ", "\t a  b"),  # readers drop white space at the end
    ],
)
def test_texts_are_written_as_they_are(database: Database, tmp_path: Path, output: str, read: str) -> None:
    rated_campaign(database, [{"outputs": [output]}], systems=["a"], protocol="da")
    assert exported(database, tmp_path).outputs["a"] == [read]
    written = (tmp_path / "jam-test" / "system-outputs" / "en-de" / "a.txt").read_bytes()
    assert written == f"{output}\n".encode()


# ---------------------------------------------------------------- imports


NOW = datetime(2026, 5, 1, tzinfo=UTC)
MISSING = "[No translation supplied]"


def written(folder: Path, **changes: str) -> Path:
    """A test set of three segments and two systems with three kinds of scores; `changes` by the file."""
    files = {
        "documents/en-de.docs": "news\ta\nnews\ta\nnews\tb\n",
        "sources/en-de.txt": "one\n two \nthree\n",
        "references/en-de.refA.txt": f"eins\n{MISSING}\ndrei\n",
        "system-outputs/en-de/A.txt": f"Eins\nZwei\n{MISSING}\n",
        "system-outputs/en-de/B.txt": "1\n2\n3\n",
        "human-scores/en-de.mqm.seg.score": "B -0.1\nB None\nB -1.6666666666666667\nA -25.0\nA 0\nA None\n",
        "human-scores/en-de.mqm.sys.score": "B -0.8\nA -12.5\n",
        "human-scores/en-de.da.seg.score": "A 70\nA None\nA None\nB None\nB 50.0\nB None\n",
        "human-scores/en-de.wmt-z.seg.score": "A 1e-05\nA None\nA None\nB None\nB 0.25\nB None\n",
        "metric-scores/en-de/bleu-refA.sys.score": "A 1\nB 2\n",
    }
    for name, text in (files | changes).items():
        path = folder / "wmt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text:
            path.write_text(text, encoding="utf-8")
    return folder / "wmt"


def facts(scores: str | None = None, protocol: str | None = None, **fields: Any) -> ImportFacts:
    return ImportFacts("wmt", protocol, scores=scores, **fields)


def read(folder: Path, chosen: ImportFacts) -> tuple[Content, tuple[NotKept, ...]]:
    return find_format("mt-metrics-eval").read(folder, chosen, NOW)


def test_the_folder_that_one_is_in_has_a_name(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written(tmp_path))
    with pytest.raises(InputError, match=r"^wmt: found sources"):
        read(Path(), facts(source_language="x", target_language="y"))
    import_campaign(database, Path(), "mt-metrics-eval", facts("mqm"), "test")
    with database.session() as session:
        (event,) = session.query(AuditEvent).all()
    assert event.detail["file"] == "wmt"


def test_segment_scores_are_those_of_one_rater_and_stay_as_they_are(
    database: Database, tmp_path: Path
) -> None:
    done = import_campaign(database, written(tmp_path), "mt-metrics-eval", facts("mqm"), "test")
    assert done.not_kept == (
        NotKept(4, "segment scores with their raters: one rater, 'mqm', has them all"),
        NotKept(2, "scores of documents, domains and systems"),
        NotKept(2, "other scores of people (da, wmt-z; --scores)"),
        NotKept(1, "files of metric scores"),
        NotKept(2, "reference translations"),
    )
    content = collect(database, "wmt")
    assert (content.protocol, content.test_set, content.systems) == ("scores", "news", ("B", "A"))
    assert (content.source_language, content.target_language) == ("en", "de")
    rows = {(row.system, row.segment): row for row in rows_of(content)}
    assert {key: row.payload for key, row in rows.items()} == {
        ("B", 0): {"score": "-0.1"},
        ("B", 2): {"score": "-1.6666666666666667"},
        ("A", 0): {"score": "-25.0"},
        ("A", 1): {"score": "0"},
    }
    assert {row.rater for row in rows.values()} == {"mqm"}
    items = {(item.segment, item.systems[0]): item for item in content.items}
    assert set(items) == {(0, "A"), (0, "B"), (1, "A"), (1, "B"), (2, "B")}, "without what nobody translated"
    assert (items[1, "A"].source, items[1, "A"].document, items[2, "B"].document) == (" two ", "a", "b")
    with database.session() as session:
        ratings = load_ratings(session, session.query(Campaign).one())
    assert sorted(ratings.value.tolist()) == [-25.0, -1.666667, -0.1, 0.0]

    export_campaign(database, "wmt", "mt-metrics-eval", tmp_path / "out", "test")
    shutil.rmtree(tmp_path / "wmt" / "metric-scores")  # which the strict reader has to refuse
    before, after = (evalset.read(tmp_path / folder, "en-de") for folder in ("wmt", "out"))
    assert after.human["scores", "seg"] == before.human["mqm", "seg"]
    assert (after.outputs, after.documents, after.source) == (before.outputs, before.documents, before.source)


def test_errors_without_a_length_are_omissions_and_counted_within_the_text(tmp_path: Path) -> None:
    errors = [
        {"start": at, "end": at, "category": "Other", "severity": "minor"} for at in (1, 4)
    ]  # of "Eins"
    marked = f"A\t{json.dumps({'errors': errors})}\n" + "A\tNone\n" * 2
    path = written(tmp_path, **{"human-scores/en-de.mqm.seg.rating": marked})
    content, not_kept = read(path, facts("mqm"))
    (score,) = content.answers[0].scores
    assert (score.payload or {})["spans"] == [{"severity": "minor", "category": ["Other"]}] * 2
    assert NotKept(1, "errors without a length, within the text: read as omissions", note=True) in not_kept


def test_documents_that_begin_again_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, **{"documents/en-de.docs": "news\ta\nnews\tb\nnews\ta\n"})
    content, not_kept = read(path, facts("da"))
    assert NotKept(1, "documents that begin again, and count as one", note=True) in not_kept
    assert {item.segment: item.document for item in content.items} == {0: "a", 1: "b", 2: "a"}


def test_a_byte_order_mark_is_not_text(tmp_path: Path) -> None:
    marked = {
        name: f"\ufeff{text}"
        for name, text in {
            "sources/en-de.txt": "one\n two \nthree\n",
            "system-outputs/en-de/A.txt": "Eins\nZwei\nDrei\n",
            "system-outputs/en-de/._A.txt": "of a Mac, and no system\n",
            "documents/en-de.docs": "news\ta\nnews\ta\nnews\tb\n",
            "human-scores/en-de.da.seg.score": "A 70\nA None\nA None\n\nB None\nB 50.0\nB None\n\n",
        }.items()
    }
    content, _ = read(written(tmp_path, **marked), facts("da", "da"))
    first = content.items[0]
    assert (first.source, first.outputs, first.document) == ("one", ("Eins",), "a")


def test_scores_of_a_scale(tmp_path: Path) -> None:
    folder = written(tmp_path)
    content, _ = read(folder, facts("da", "da"))
    assert sorted(score.step for answer in content.answers for score in answer.scores) == [50, 70]
    with pytest.raises(InputError, match=r"en-de\.wmt-z\.seg\.score, line 1.*1e-05.* not a value of the sc"):
        read(folder, facts("wmt-z", "da"))
    content, _ = read(folder, facts("wmt-z"))
    assert content.answers[0].scores[0].payload == {"score": "1e-05"}
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="reads a folder"):
        read(tmp_path / "file", facts())


def test_a_name_of_two_words_is_one_system(tmp_path: Path) -> None:
    scores = "A 1\t-1\nA 1\tNone\nA 1\t-3\n"
    folder = written(tmp_path, **{"system-outputs/en-de/A 1.txt": "x\n" * 3, SEG: scores})
    assert read(folder, facts("da"))[0].systems == ("A 1", "A", "B")


ERROR = {"start": 0, "end": 2, "category": "Fluency/Grammar", "severity": "major", "score": 5.0}
OMISSION = {"start": 4, "end": 4, "category": None, "severity": "minor", "is_source_error": False}


def rated(*errors: dict[str, object]) -> str:
    return json.dumps({"errors": errors})


def marked(rater: str = "ann", ending: str = "mqm.ann", **change: object) -> dict[str, str]:
    """A file of errors that a rater marked in A and B; `change` of the first one in B."""
    lines = ["A\tNone"] * 2 + [f"A\t{rated()}\t{rater}", f"B\t{rated(ERROR | change, OMISSION)}\t{rater}"]
    return {f"human-scores/en-de.{ending}.seg.rating": "\n".join([*lines, "B\tNone", "B\tNone"]) + "\n"}


def test_marked_errors_have_their_raters(tmp_path: Path) -> None:
    content, not_kept = read(written(tmp_path, **marked()), facts("mqm"))
    assert content.protocol == "mqm"
    rows = {(row.system, row.segment): row for row in rows_of(content)}
    grammar = {"start": 0, "end": 0, "severity": "major", "category": ["Fluency", "Grammar"]}
    assert rows["B", 0].payload == {"spans": [grammar, {"severity": "minor"}]}
    assert (rows["B", 0].rater, rows["B", 0].value, rows["A", 2].value) == ("ann", "-6.0", "0.0")
    said = {part.what: part.count for part in not_kept}
    assert said["segment scores without marked errors"] == 3
    assert said["segment scores that are not what their errors cost"] == 1
    assert said["errors that end after the end of the text: they end with it here"] == 1


def test_an_error_that_begins_behind_its_text_is_said_to_be_an_omission(tmp_path: Path) -> None:
    behind = rated({"start": 7, "end": 9, "severity": "minor"})
    ratings = {"human-scores/en-de.mqm.ann.seg.rating": f"A\t{behind}\tann\n" + "A\tNone\n" * 2}
    content, not_kept = read(written(tmp_path, **ratings), facts("mqm"))
    assert [row.payload for row in rows_of(content)] == [{"spans": [{"severity": "minor"}]}]
    notes = {part.what: part.count for part in not_kept if part.note}
    assert notes == {"errors marked after the end of the text: read as omissions": 1}


def test_esa_joins_a_score_with_the_errors_of_one_rater(tmp_path: Path) -> None:
    scores = {"human-scores/en-de.esa.seg.score": "A None\nA None\nA 90\nB 40\nB None\nB None\n"}
    content, _ = read(written(tmp_path, **marked(ending="esa"), **scores), facts("esa", "esa"))
    found = {(row.system, row.value, len(row.payload["spans"])) for row in rows_of(content)}
    assert found == {("A", "90", 0), ("B", "40", 2)}


def test_two_raters_of_one_segment(tmp_path: Path) -> None:
    folder = written(tmp_path, **marked(), **marked("bob", "mqm.bob"))
    content, _ = read(folder, facts("mqm"))
    assert (len(content.items), len(content.answers), content.ratings_per_item) == (6, 4, 2)
    (folder / "human-scores/en-de.mqm.seg.score").write_text("A None\nA None\nA 90\nB 4\nB None\nB None\n")
    with pytest.raises(InputError, match="found 2 raters' errors; allowed: those of one"):
        read(folder, facts("mqm", "esa"))
    written(tmp_path, **marked("ann", "mqm.merged"))  # the same ratings again
    assert len(read(folder, facts("mqm"))[0].answers) == 4
    assert len(read(folder, facts("mqm.merged"))[0].answers) == 2


def test_the_first_line_whose_errors_cost_nothing_that_is_known_is_named(tmp_path: Path) -> None:
    awful = rated({**ERROR, "severity": "awful"})
    lines = [f"{system}\t{awful}\tann" for system in "ABC"]
    outputs = {f"system-outputs/en-de/{system}.txt": "x\n" * 3 for system in "ABC"}
    scores = "".join(f"{system} -1\n" * 3 for system in "CBA")
    names = ("human-scores/en-de.mqm.seg.rating", "human-scores/en-de.mqm.seg.score")
    ratings = "".join(f"{line}\n" * 3 for line in lines)
    folder = written(tmp_path, **outputs, **dict(zip(names, (ratings, scores), strict=True)))
    with pytest.raises(InputError, match=r"seg\.rating, line 1: .*awful"):
        read(folder, facts("mqm"))


SEG = "human-scores/en-de.da.seg.score"


@pytest.mark.parametrize(
    ("change", "chosen", "said"),
    [
        ({}, facts(), "found scores of da, mqm, wmt-z; choose one with --scores"),
        ({}, facts("esa"), "found scores of da, mqm, wmt-z; choose one with --scores"),
        ({}, facts("da", source_language="en", target_language="fr"), "pairs: en-de; choose one"),
        ({"sources/en-fr.txt": "x\n"}, facts("da"), "pairs: en-de, en-fr; choose one"),
        ({"documents/en-de.docs": "news\ta\n"}, facts("da"), "found 1 line; allowed: 3"),
        ({"documents/en-de.docs": "news\n" * 3}, facts("da"), "line 1: found 'news'; allowed: DOMAIN TAB"),
        ({"system-outputs/en-de/A.txt": "x\n"}, facts("da"), "A.txt: found 1 line; allowed: 3"),
        ({SEG: "C 1\n"}, facts("da"), "line 1: found 'C 1'; allowed: a system of system-outputs"),
        ({SEG: "A 1\n"}, facts("da"), "found 1 values of A; allowed: 3"),
        ({SEG: "A 1\n" * 4}, facts("da"), "line 4: found a value of A too many"),
        ({SEG: "A 1\nA x\nA 2\n"}, facts("da"), "line 2: 'x' is not a number"),
        ({SEG: "A 1\nA inf\nA 2\n"}, facts("da"), "line 2: 'inf' is not a number"),
        ({SEG: "A 1\nA 1e999999999\nA 2\n"}, facts("da"), "line 2: '1e999999999' is not a number"),
        ({SEG: "A 1\nA 1001\nA 2\n"}, facts("da"), "line 2: 1001 is beyond"),
        ({SEG: "A None\n" * 3}, facts("da"), "only None in it: no ratings"),
        ({"system-outputs/en-de/ .txt": "x\n" * 3}, facts("da"), "found the file ' .txt'"),
        ({}, facts("da", "mqm"), "has no errors marked for da"),
        (
            marked(),
            facts("mqm", "esa"),
            "--protocol esa: mqm contradicts it: no score is above 0.*; mqm fits",
        ),
        (
            marked(ending="da", category=None),
            facts("da", "mqm"),
            "--protocol mqm: da contradicts it: it has 2 scores.*; esa fits",
        ),
        *(
            (marked(**change), facts("mqm"), r"seg\.rating, line 4: found .*; allowed: None, or")
            for change in ({"is_source_error": "false"}, {"start": "0", "end": "0"}, {"start": None})
        ),
        ({"human-scores/en-de.da.seg.rating": "A\tNone\n" * 2 + "A\t[]\n"}, facts("da"), "line 3: found"),
    ],
)
def test_folders_that_cannot_be_read(
    tmp_path: Path, change: dict[str, str], chosen: ImportFacts, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        read(written(tmp_path, **change), chosen)


def test_marked_errors_without_scores_are_found(tmp_path: Path) -> None:
    folder = written(tmp_path, **marked())
    for scores in (folder / "human-scores").glob("*.seg.score"):
        scores.unlink()
    with pytest.raises(InputError, match="choose one with --scores"):
        read(folder, facts())


def test_two_domains_of_one_name_in_the_format(database: Database, tmp_path: Path) -> None:
    lines = """\
ann,A,1,TGT,eng,deu,60,news.1,False,[],3,4
ann,A,2,TGT,eng,deu,62,chat.1,False,[],3,4
"""
    (tmp_path / "scores.csv").write_text(lines)
    (tmp_path / "docs").write_text("so_me\tnews.1\nso/me\tchat.1\n")
    import_campaign(database, tmp_path / "scores.csv", "appraise", facts(documents=tmp_path / "docs"), "test")
    with pytest.raises(InputError, match="the domains 'so_me' and 'so/me' are both called 'so_me'"):
        export_campaign(database, "wmt", "mt-metrics-eval", tmp_path / "out", "test")
