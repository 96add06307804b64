"""Ratings made elsewhere as one file: the fewest columns, and what follows from them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts, repeats
from creamtea.human.formats.exchange import export_campaign, import_campaign
from creamtea.human.formats.own import read_ratings
from creamtea.human.formats.ratings import rows_of
from creamtea.human.formats.storing import collect
from creamtea.human.rating.progress import by_kind
from creamtea.human.results.ratings import load_ratings
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign
from creamtea.wording import counted

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def facts(protocol: str | None) -> ImportFacts:
    return ImportFacts("old", protocol, "newstest", "en", "de")


def written(folder: Path, text: str, name: str = "old.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_four_columns_are_enough(tmp_path: Path) -> None:
    text = (
        "rater,segment,system,value\nann,3,a,1.2\nann,3,b,6\nann,5,b,3.0\nann,5,a,3.4\nbob,3,b,1\nbob,3,a,2\n"
    )
    content, _ = read_ratings(written(tmp_path, text), "csv", facts("contrastive-da"), NOW)
    assert content.systems == ("a", "b")
    assert [(item.position, item.segment, item.systems) for item in content.items] == [
        (0, 3, ("a", "b")),
        (1, 5, ("a", "b")),
    ]
    assert content.ratings_per_item == 2
    answers = {(answer.item, answer.rater): answer for answer in content.answers}
    assert answers[0, "bob"].order == (("b",), ("a",))
    assert {score.system: score.step for score in answers[1, "ann"].scores} == {"a": 12, "b": 10}
    assert all(row.counts and row.revision == 1 for row in rows_of(content))
    assert {row.rated_at for row in rows_of(content)} == {NOW}


@pytest.mark.parametrize("written_value", ["-2.333333", "-1.6666666666666667", "1e-05", "70"])
def test_scores_of_segments_are_values_too(database: Database, tmp_path: Path, written_value: str) -> None:
    text = f"rater,segment,system,value\na,0,x,{written_value}\n"
    import_campaign(database, written(tmp_path, text), "csv", facts("scores"), "test")
    [row] = rows_of(collect(database, "old"))
    assert row.payload == {"score": written_value}
    export_campaign(database, "old", "csv", tmp_path / "out", "test")
    again = ImportFacts("again")
    import_campaign(database, tmp_path / "out" / "ratings.csv", "csv", again, "test")
    assert [row.payload for row in rows_of(collect(database, "again"))] == [{"score": written_value}]


@pytest.mark.parametrize(("protocol", "fits"), [("esa", "da or scores fits"), ("mqm", "scores fits")])
def test_scores_alone_are_no_marked_errors(tmp_path: Path, protocol: str, fits: str) -> None:
    text = "rater,segment,system,value\na,0,x,0\n"
    with pytest.raises(
        InputError,
        match=f"line 2, column value: {protocol} needs the marked errors .*; for scores alone {fits}",
    ):
        read_ratings(written(tmp_path, text), "csv", facts(protocol), NOW)


def test_da_has_an_item_for_each_output(tmp_path: Path) -> None:
    text = '{"rater": "ann", "segment": 1, "system": "a", "step": 70}\n'
    text += '{"rater": "ann", "segment": 1, "system": "b", "step": 7}\n'
    content, _ = read_ratings(written(tmp_path, text, "old.jsonl"), "jsonl", facts("da"), NOW)
    assert [(item.segment, item.systems) for item in content.items] == [(1, ("a",)), (1, ("b",))]


def test_names_that_look_alike_are_said(database: Database, tmp_path: Path) -> None:
    text = "rater,segment,system,value\nJos\u00e9,0,A,80\nJose\u0301,1,A,70\nJos\u00e9,2,B\u00e9,80\n"
    text += "Jos\u00e9,3,Be\u0301,70\n"
    done = import_campaign(database, written(tmp_path, text), "csv", facts("da"), "test")
    assert [(note.count, note.what.split(" that")[0]) for note in done.notices] == [
        (2, "names of systems"),
        (2, "names of raters"),
    ]


def test_rows_that_repeat_another_are_counted_and_kept_once(tmp_path: Path) -> None:
    text = "rater,segment,system,value\nann,1,a,70\nann,1,b,60\nann,1,a,70\nann,2,a,70\nann,1,a,70\n"
    content, not_kept = read_ratings(written(tmp_path, text), "csv", facts("da"), NOW)
    assert [score.step for answer in content.answers for score in answer.scores] == [70, 60, 70]
    assert not_kept == repeats([4, 6])


def test_a_file_with_a_mark_at_its_start_and_other_columns(database: Database, tmp_path: Path) -> None:
    text = (
        "\ufeffsystem,protocol,rater,segment,document,value,revision,source,output,excluded,rated_at\n"
        "a,da-sqm,ann,1,d,10,1,'=x,'s morgens,false,2020-01-01T00:00:00+02:00\n"
        "a,da-sqm,ann,1,d,20,2,'=x,'s morgens,false,2020-01-01T00:00:00+02:00\n"
        "a,da-sqm,bob,1,d,90,,'=x,'s morgens,true,\n"
    )
    path = written(tmp_path, text)
    import_campaign(database, path, "csv", facts(None), "test")
    rows = list(rows_of(collect(database, "old")))
    assert [(row.rater, row.step, row.counts, row.source, row.output) for row in rows] == [
        ("ann", 10, False, "=x", "'s morgens"),
        ("ann", 20, True, "=x", "'s morgens"),
        ("bob", 90, False, "=x", "'s morgens"),
    ]
    assert rows[0].rated_at == datetime(2019, 12, 31, 22, tzinfo=UTC)


def test_what_was_read_can_be_exported_and_read_again(
    database: Database, other: Database, tmp_path: Path
) -> None:
    path = written(tmp_path, "rater,segment,system,value\nann,1,a,0\nann,1,b,2\n")
    import_campaign(database, path, "csv", facts("preference"), "test")
    export_campaign(database, "old", "jsonl", tmp_path / "out", "test")
    import_campaign(other, tmp_path / "out", "jsonl", ImportFacts("old"), "test")
    assert list(rows_of(collect(other, "old"))) == list(rows_of(collect(database, "old")))


@pytest.mark.parametrize(
    ("protocol", "text", "message"),
    [
        (
            None,
            "rater,segment,system,value\na,1,s,1\n",
            "old.csv: it does not say the protocol: give --protocol, ",
        ),
        ("da", "rater,segment,system,value\n", "old.csv: no ratings in it"),
        (
            "da",
            "rater,segment,value\na,1,1\n",
            "line 1, column system: missing; needed: rater, segment, system",
        ),
        ("da", "rater,segment,system\na,1,s\n", "line 2, column step: found nothing; allowed: a step;"),
        (
            "da",
            "rater,segment,system,value\na,1,s,67.5\n",
            "line 2, column value: '67.5' is not a value of the",
        ),
        ("da", "rater,segment,system,value\na,1,s,1e999999999\n", "line 2, column value: '1e999999999' is "),
        (
            "da",
            "rater,segment,system,value\na,1,s,5\na,1,s,6\n",
            "line 3, column revision: found 1; allowed: another",
        ),
        (
            "da",
            "rater,segment,system,document,value\na,1,s,d,5\na,1,s,e,6\n",
            "line 3, column segment: found 1; allowed: a segment of document 'd' alone: ",
        ),
        (
            "contrastive-da",
            "rater,segment,system,value\na,1,s,5\na,1,t,6\nb,1,s,3\n",
            "line 4, column system: found 's'; allowed: a row for each system of the item",
        ),
        (
            "post-edit",
            'rater,segment,system,payload\na,1,s,"{""text"": ""Good.""}"\n',
            "line 2, column output: found nothing; allowed: the text that was corrected",
        ),
        (
            "da",
            "rater,segment,system,value,original\na,1,s,5,9\n",
            "line 2, column original: found 9; allowed: ",
        ),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, protocol: str | None, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_ratings(written(tmp_path, text), "csv", facts(protocol), NOW)
    assert str(error.value).startswith("old.csv")
    assert message in str(error.value)


def test_an_import_chooses_baseline_and_delta(database: Database, tmp_path: Path) -> None:
    text = "rater,segment,system,value\nann,3,a,1.2\nann,3,b,6\n"
    chosen = ImportFacts("old", "contrastive-da", baseline="b", delta=0.4)
    import_campaign(database, written(tmp_path, text), "csv", chosen, "test")
    assert collect(database, "old").settings == {"baseline": "b", "delta": 0.4, "first_segment": 0}
    with pytest.raises(InputError, match="--baseline c: no such system; there are a, b"):
        read_ratings(written(tmp_path, text), "csv", ImportFacts("o", "contrastive-da", baseline="c"), NOW)


@pytest.mark.parametrize("values", [{"A": 2, "B": 0, "C": 0, "D": 2}, {"A": 2, "B": 0, "C": 1}, {"A": 1}])
def test_preferences_without_an_item_are_no_item_of_all_their_systems(
    tmp_path: Path, values: dict[str, int]
) -> None:
    """Of A and B, and C and D, it would tell that C is worse than A."""
    rows = "".join(f"ann,4,{system},{value}\n" for system, value in values.items())
    with pytest.raises(InputError) as caught:
        read_ratings(
            written(tmp_path, "rater,segment,system,value\n" + rows), "csv", facts("preference"), NOW
        )
    assert str(caught.value) == (
        f"old.csv, line 2: an item of {counted(len(values), 'system')} ({', '.join(values)}), of which "
        "preference compares 2; number the pairs in a column item"
    )


def test_what_was_made_elsewhere_has_no_plan(database: Database, tmp_path: Path) -> None:
    """One segment of three raters does not make the others incomplete."""
    raters = {segment: ["ann", "bob", "cid"] if segment == 4 else ["ann"] for segment in range(8)}
    rows = [
        f"{rater},{segment},{system},{7 * segment + at}\n"
        for segment, own in raters.items()
        for rater in own
        for at, system in enumerate("ab")
    ]
    path = written(tmp_path, "rater,segment,system,value\n" + "".join(rows))
    import_campaign(database, path, "csv", facts("da"), "test")
    with database.session() as session:
        campaign = find_campaign(session, "old")
        ratings = load_ratings(session, campaign)
        (kind,) = by_kind(session, campaign)
    assert (ratings.submitted, ratings.wanted, ratings.left_out.incomplete_items) == (20, 20, 0)
    assert (kind.wanted, kind.submitted, kind.complete) == (20, 20, 16)
    report = build_human(database, "old")
    assert "closed: 20 item ratings by 3 raters" in report.sections[1].blocks[0].facts  # below the answer
