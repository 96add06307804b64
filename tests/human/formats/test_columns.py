"""Text in cells: nothing that a spreadsheet runs, and every text comes back."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creamtea.errors import InputError
from creamtea.human import record
from creamtea.human.formats.columns import Column
from creamtea.printable import text_from_cell, text_to_cell

MOMENT, WEIGHT = Column(record.Moment), Column(record.Weight)
NASTY = st.text(st.sampled_from("'=+-@\t\r\n＝＋－＠a"), max_size=6)
STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(STORABLE | NASTY)
def test_a_text_survives_its_cell_and_runs_nothing(text: str) -> None:
    cell = text_to_cell(text)
    assert text_from_cell(cell) == text
    assert not cell.startswith(tuple("=+-@\t\r\n＝＋－＠"))


@pytest.mark.parametrize("text", ["'s morgens", "'", "''", "plain", "1-2", ""])
def test_other_texts_are_written_as_they_are(text: str) -> None:
    assert text_to_cell(text) == text
    assert text_from_cell(text) == text


def test_a_negative_score_stays_a_number() -> None:
    """Else every program that reads MQM's values of our CSV would get text."""
    column = Column(record.Value)
    assert [column.encode_cell(value, "p") for value in ("-25.0", "-5", "-5+3")] == ["-25.0", "-5", "'-5+3"]
    found = [column.decode_cell(cell, "p") for cell in ("-25.0", "'-25.0", "'-5+3")]
    assert found == ["-25.0", "-25.0", "-5+3"]


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_survives_to_the_microsecond(moment: datetime) -> None:
    assert MOMENT.decode_cell(MOMENT.encode_cell(moment, "p"), "p") == moment


@given(st.floats(min_value=0, allow_infinity=False))
def test_a_weight_survives_bit_for_bit(weight: float) -> None:
    assert WEIGHT.decode_cell(WEIGHT.encode_cell(weight, "p"), "p") == weight


WRONG = [
    (record.Integer, ("-1", "1.0", " 1", "٣", "2147483648")),
    (record.Weight, ("nan", "inf", "-0.5", "1_0", " 1 ", "٣", "1e999")),
    (record.Flag, ("",)),
    (record.Moment, ("2026-03-01T09:30:00", "yesterday")),
    (record.Name, (" ",)),
    (record.Text, ("a\0b", "\ud800")),
]


@pytest.mark.parametrize(("annotation", "cell"), [(kind, cell) for kind, cells in WRONG for cell in cells])
def test_what_is_not_allowed_is_said_with_its_place(annotation: Any, cell: str) -> None:
    with pytest.raises(InputError, match=r"^f, line 3: found .*; allowed: "):
        Column(annotation).decode_cell(cell, "f, line 3")


def test_no_plug_in_is_looked_for_at_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking takes a twentieth of a second, an hour for a campaign of 70,000 ratings."""

    def looked(*_: Any) -> None:
        raise AssertionError("the metadata of every distribution was read")

    monkeypatch.setattr("creamtea.plugins.installed", looked)
    assert Column(record.ProtocolName).decode("da", "f") == "da"


@pytest.mark.parametrize("wrong", ["stars", ["da"], None, 1])
def test_an_unknown_protocol_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match=r"^f: found .*; allowed: a protocol of creamtea"):
        Column(record.ProtocolName).decode(wrong, "f")


def test_a_weight_beyond_floats_is_refused() -> None:
    with pytest.raises(InputError, match=r"^f: found 1000.*; allowed: a finite number"):
        WEIGHT.decode(10**400, "f")
