"""Several studies on one page: only what they have in common, every name escaped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from filled_study import ANALYSED, HOSTILE, SPEC, fill_study, lines
from limits import ANSWER
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

import creamtea_webapp
from creamtea.access.sessions import Identity
from creamtea.report.several import common_test_sets, compared_systems
from creamtea.store.database import Database
from creamtea.store.tables import StudyRow
from creamtea_webapp import session

SCRIPT = Path(creamtea_webapp.__file__).parent / "script" / "entry.py"


@pytest.fixture
def studies(database: Database) -> list[int]:
    """Two with a test set in common, and one with another."""
    other = SPEC | {
        "name": "zebra",
        "test_sets": {"narwhal": {"kind": "synthetic", "corpus": "okapi", "lines": 30}},
    }
    return [fill_study(database, HOSTILE, document) for document in (SPEC, ANALYSED, other)]


@pytest.fixture
def visit(database: Database, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(session, "database", lambda: database)

    def shown(who: Identity, *numbers: int) -> AppTest:
        monkeypatch.setattr(session, "identity", lambda: who)
        app = AppTest.from_file(str(SCRIPT), default_timeout=ANSWER)
        app.query_params["compare"] = ",".join(map(str, numbers))
        app.run()
        assert not app.exception, [error.message for error in app.exception]
        return app

    return shown


def html(app: AppTest) -> str:
    return "\n".join(element.proto.body for element in app.get("html"))


def test_systems_of_both_stand_in_one_table(database: Database, studies: list[int]) -> None:
    with database.session() as reading:
        rows = [reading.get_one(StudyRow, number) for number in studies[:2]]
        ((key, common),) = common_test_sets(reading, rows).items()
        table = compared_systems(reading, key, common).table
        assert common_test_sets(reading, reading.scalars(select(StudyRow)).all()) == {}
    names = [row.name for row in table.rows]
    assert {"quagga: tapir-greedy", "quagga: tapir-lexicon"} < set(names)
    assert "quokka: tapir-lexicon+k=200" in names
    assert {column.group for column in table.columns} == {"quality", "recall", "outputs"}
    assert all(cell.delta is None for row in table.rows for cell in row.cells.values())
    first, same = (
        table.rows[names.index("quagga: tapir-greedy")].cells,
        table.rows[names.index("quokka: tapir-greedy")].cells,
    )
    bleu = next(column.key for column in table.columns if column.key.startswith("bleu"))
    assert first[bleu].value == same[bleu].value
    scores = [row.cells[bleu].value or 0.0 for row in table.rows]
    assert scores == sorted(scores, reverse=True)


def test_a_test_set_under_two_names_is_compared_once(database: Database) -> None:
    again = SPEC["test_sets"] | {f"{name}-again": text for name, text in SPEC["test_sets"].items()}
    numbers = [fill_study(database, HOSTILE, SPEC | {"name": n, "test_sets": again}) for n in ("emu", "rhea")]
    with database.session() as reading:
        common = common_test_sets(reading, [reading.get_one(StudyRow, number) for number in numbers])
    assert [[own.number for own in both] for both in common.values()] == [numbers] * len(SPEC["test_sets"])
    assert not [own for both in common.values() for own in both if own.test_set.endswith("-again")]


def test_the_page_has_the_table_and_the_outputs(visit: Any, studies: list[int]) -> None:
    page = visit(Identity(1, "reader"), *studies[:2])
    assert "quokka: tapir-greedy" in page.multiselect[1].options
    assert "&lt;script&gt;document.title" in html(page)
    assert "no test set in common" in html(visit(Identity(1, "reader"), studies[0], studies[2]))
    assert "Choose two" in html(visit(Identity(1, "reader"), studies[0], 999))


def test_a_reader_of_one_report_compares_nothing(visit: Any, studies: list[int]) -> None:
    page = visit(Identity(1, "reader", study_id=studies[0]), *studies[:2])
    assert "Studies compared" not in html(page)


def test_a_study_that_is_asked_for_twice_is_compared_once(visit: Any, studies: list[int]) -> None:
    page = visit(Identity(1, "reader"), studies[0], studies[0], studies[1])
    assert page.multiselect(key="compare-studies").value == studies[:2]


def test_a_study_of_another_version_is_named_with_a_remedy(
    visit: Any, database: Database, studies: list[int]
) -> None:
    with database.transaction() as session:
        row = session.get_one(StudyRow, studies[1])
        row.spec = {**row.spec, "forgotten": 1}
    assert "run it again" in html(visit(Identity(1, "reader"), *studies[:2]))


def test_the_outputs_of_another_test_set_begin_with_its_first_page(visit: Any, database: Database) -> None:
    sets = SPEC["test_sets"] | {"oryx": {"kind": "synthetic", "corpus": "okapi", "lines": 41}}
    numbers = [
        fill_study(database, lines(40), SPEC | {"name": name, "test_sets": sets})
        for name in ("quagga", "zebra")
    ]
    page = visit(Identity(1, "reader"), *numbers)
    page.number_input[0].set_value(4).run()
    assert shown_segments(page)[0] == 31
    next(box for box in page.selectbox if box.label == "Test set").select_index(1).run()
    assert shown_segments(page)[0] == 1


def shown_segments(app: AppTest) -> list[int]:
    return [int(number) for number in re.findall(r'class="where">(\d+)<', html(app))]
