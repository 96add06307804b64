"""Tables of several studies: which of their columns are one."""

from typing import Any

from blocks import facts, notes
from table_rows import step_row
from teatime_study import fill_study, row

from creamtea.report.across_studies import comparison_report
from creamtea.report.build import build_report
from creamtea.report.model import Document, Table
from creamtea.store.database import Database
from creamtea.store.tables import StudyRow, StudyStep


def compared(database: Database, *numbers: int) -> tuple[Document, Table]:
    """A report of studies with one common test set, and its table of systems."""
    with database.session() as session:
        studies = [session.get_one(StudyRow, number) for number in numbers]
        report = comparison_report(session, studies, lambda _: {"error": "not tested"})
    (table,) = (block for _, block in report.walk() if isinstance(block, Table) and block.key == "compared")
    return report, table


def test_lengths_in_other_tokens_are_another_column_and_each_is_explained(
    database: Database, spec: dict[str, Any]
) -> None:
    first = fill_study(database, spec)
    bleu, *others = spec["metrics"]
    changes = {
        f"score/{system}/{seed}/test/bleu-intl": {
            "metrics": [row("bleu-intl", 20.0), row("length_ratio", 0.5)]
        }
        for system in spec["systems"]
        for seed in (1, 2)
    }
    in_other_tokens = spec | {"name": "again", "metrics": [bleu | {"tokenize": "intl"}, *others]}
    second = fill_study(database, in_other_tokens, changes)
    report, table = compared(database, first, second)
    lengths = [column.key for column in table.columns if column.title == "length"]
    cells = {row.name: [row.cells[key].value for key in lengths] for row in table.rows}
    assert cells["teatime: scones-greedy"] == [0.987, None]
    assert cells["again: scones-greedy"] == [None, 0.5]
    meanings = facts(report, "columns")
    assert "BLEU (intl)" in meanings["length"]
    assert meanings["chrF"] == "nc:6"


def test_files_of_one_path_with_other_contents_and_versions_are_told(
    database: Database, spec: dict[str, Any]
) -> None:
    """Such studies have equal settings and unequal results."""
    first = fill_study(database, spec)
    second = fill_study(database, spec | {"name": "again"}, code_version="0.0.9")
    with database.transaction() as session:
        for number, digest in ((first, "a" * 64), (second, "b" * 64)):
            digests = {"train.en": digest, "train.de": "c" * 64, f"{number}.txt": digest}
            session.add(step_row(digest, "corpus", state="succeeded", params={"digests": digests}))
            session.flush()
            place = {"node": "corpus/other", "position": 99, "labels": {}}
            session.add(StudyStep(study_id=number, step_key=digest, **place))
    report, _ = compared(database, first, second)
    (settings,) = (block for _, block in report.walk() if isinstance(block, Table) and block.key == "specs")
    rows = {row.name: [cell.words for cell in row.cells.values()] for row in settings.rows}
    assert rows.pop("code version")[1] == "0.0.9"
    assert rows == {"contents of train.en (SHA-256)": ["a" * 12, "b" * 12]}


def test_pairs_that_one_study_tests_are_told_as_its_own_report_tests_them(
    database: Database, spec: dict[str, Any]
) -> None:
    first = fill_study(database, spec)
    greedy = {"softmax-greedy": {"variant": "softmax"}}
    fewer = {"name": "again", "systems": greedy, "metrics": [{"kind": "bleu"}], "latency": None}
    worse = {"score/": {"metrics": [row("bleu", 20.0), row("length_ratio", 1.0)]}}
    report, _ = compared(database, first, fill_study(database, spec | fewer, worse))
    said = notes(report, "answer-0/sentences")
    (untold,) = (
        line for line in notes(build_report(database, first), "answer/test/sentences") if "Not told" in line
    )
    own = "teatime: softmax-nvs, teatime: softmax-lexicon, teatime: softmax-greedy"
    assert untold.replace("all others", own) in said
    assert "No test has compared it with: again: softmax-greedy." in said
    assert not any(line.startswith("Groups") for line in said)  # most pairs of two studies are not tested
