"""What an import stores, with systems left out, and the names that no campaign can have."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from whole_campaign import answer, everything

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts, NotKept
from creamtea.human.formats.exchange import Imported, import_campaign, without_systems
from creamtea.human.formats.rating_rows import RatingRow, rows_of
from creamtea.human.formats.storing import collect
from creamtea.human.making.campaigns import progress_by_kind
from creamtea.human.results.ratings import load_ratings
from creamtea.report.human.build import build_human
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign


def imported(
    database: Database, folder: Path, text: str, protocol: str, dry_run: bool = False, **facts: Any
) -> Imported:
    path = folder / "ratings.csv"
    path.write_text(text)
    given = ImportFacts(**{"name": "old", "protocol": protocol, **facts})
    return import_campaign(database, path, "csv", given, "test", dry_run=dry_run)


def rows(database: Database) -> list[RatingRow]:
    return list(rows_of(collect(database, "old")))


def test_what_was_made_elsewhere_has_no_plan(database: Database, tmp_path: Path) -> None:
    """One segment of three raters does not make the others incomplete."""
    raters = {segment: ["ann", "bob", "cid"] if segment == 4 else ["ann"] for segment in range(8)}
    lines = [
        f"{rater},{segment},{system},{7 * segment + at}\n"
        for segment, own in raters.items()
        for rater in own
        for at, system in enumerate("ab")
    ]
    imported(database, tmp_path, "rater,segment,system,value\n" + "".join(lines), "da")
    with database.session() as session:
        campaign = find_campaign(session, "old")
        ratings = load_ratings(session, campaign)
        (kind,) = progress_by_kind(session, campaign)
    assert (ratings.submitted, ratings.wanted, ratings.left_out.incomplete_items) == (20, 20, 0)
    assert (kind.wanted, kind.submitted, kind.complete) == (20, 20, 16)
    report = build_human(database, "old")
    assert "closed: 20 item ratings by 3 raters" in report.sections[1].blocks[0].facts  # below the answer


ONE = "rater,segment,system,value\n{},1,A,5\n"


@pytest.mark.parametrize(
    ("facts", "rater", "said"),
    [
        ({"name": "c" * 301}, "ann", "campaign name of at most 300"),
        ({}, "ann" * 101, "'annann.*at most 300"),
        ({"name": " "}, "ann", "name of the campaign: found ' '; allowed: text that is not blank"),
        ({"test_set": "a\0"}, "ann", r"--test-set: found 'a\\x00', with a NUL character"),
        ({"source_language": "\ud800", "target_language": "de"}, "ann", "--source-language: .* surrogate"),
        ({"first_segment": 0}, "ann", "--first-segment is only for --format appraise"),
        ({"rater_statistics": Path("x")}, "ann", "--rater-statistics is only for --format appraise"),
    ],
)
def test_facts_that_no_campaign_can_have(
    database: Database, tmp_path: Path, facts: dict[str, Any], rater: str, said: str
) -> None:
    """A campaign with such a name could be exported, but its export could not be read."""
    with pytest.raises(InputError, match=said):
        imported(database, tmp_path, ONE.format(rater), "da", dry_run=True, **facts)


RATINGS = "rater,segment,system,step,item,kind,original\n" + "".join(
    f"{rater},{segment},{system},50,{item},{kind},{original}\n"
    for rater, segment, system, item, kind, original in [
        ("ann", 1, "A", 0, "rated", ""),
        ("ann", 1, "B", 1, "rated", ""),
        ("ann", 1, "B", 2, "repeat", 1),
        ("bob", 2, "B", 3, "rated", ""),
    ]
)


def test_systems_are_left_out_with_all_that_is_theirs(other: Database, tmp_path: Path) -> None:
    tried = imported(other, tmp_path, RATINGS, "da", dry_run=True, leave_out=("B",))
    lost = NotKept(3, "ratings of systems left out (B)"), NotKept(1, "raters of these alone")
    assert tried.not_kept == lost
    done = imported(other, tmp_path, RATINGS, "da", leave_out=("B",))  # the dry run stored nothing
    assert done == tried
    content = collect(other, "old")
    assert [(row.system, row.rater, row.item) for row in rows_of(content)] == [("A", "ann", 0)]
    assert [person.pseudonym for person in content.raters] == ["ann"]
    assert len(content.items) == 1


def test_of_outputs_shown_together_the_others_stay(other: Database, tmp_path: Path) -> None:
    text = "rater,segment,system,value\nann,1,A,2.0\nann,1,B,3.0\nann,1,C,4.0\n"
    imported(other, tmp_path, text, "contrastive-da", leave_out=("B",))
    assert [(row.system, row.value, row.shown) for row in rows(other)] == [("A", "2.0", 1), ("C", "4.0", 2)]


def test_a_page_that_loses_its_first_item_goes_by_the_next() -> None:
    items = tuple(dataclasses.replace(item, page=0) for item in everything().items[:2])
    items = (dataclasses.replace(items[0], systems=("A",), outputs=("text",)), items[1])
    content = dataclasses.replace(everything(), items=items, answers=())
    left, _ = without_systems(content, ["A"])
    assert [(item.position, item.page, item.systems) for item in left.items] == [(1, 1, ("B",))]


def test_proposals_follow_their_systems_and_practice_goes() -> None:
    assert everything().items[0].proposals is not None
    left, not_kept = without_systems(everything(), ["A"])
    assert left.items[0].proposals == {}
    assert {item.kind for item in left.items} == {"rated", "random", "repeat"}
    content = dataclasses.replace(everything(), answers=(answer(3, "ann", 1, ("A", "B")),))
    left, not_kept = without_systems(content, ["A"])
    assert not_kept[0] == NotKept(2, "answers to practice and checks")


def test_a_preference_to_a_system_that_is_left_out_goes(other: Database, tmp_path: Path) -> None:
    pairs = [("A", 2, "B", 0), ("A", 2, "C", 0), ("C", 2, "B", 0)]
    lines = [f"ann,1,{a},{x},{n}\nann,1,{b},{y},{n}\n" for n, (a, x, b, y) in enumerate(pairs)]
    text = "rater,segment,system,value,item\n" + "".join(lines)
    done = imported(other, tmp_path, text, "preference", leave_out=("C",))
    assert done.not_kept == (NotKept(4, "ratings of systems left out (C)"),)
    assert [(row.item, row.system) for row in rows(other)] == [(0, "A"), (0, "B")]


PAIRS = "rater,segment,system,value,item\nann,1,A,2,0\nann,1,C,0,0\nann,1,B,2,1\nann,1,C,0,1\n"


@pytest.mark.parametrize(
    ("text", "protocol", "leave_out", "baseline", "said"),
    [
        (RATINGS, "da", ("C",), None, "--leave-out C: no such system; there are A, B"),
        (RATINGS, "da", ("A",), "A", "--leave-out A: it is the baseline"),
        (RATINGS, "da", ("A", "B"), None, "no system would be left"),
        (PAIRS, "preference", ("C",), None, "--leave-out C: every item shows one of these"),
    ],
)
def test_systems_that_cannot_be_left_out(
    other: Database,
    tmp_path: Path,
    text: str,
    protocol: str,
    leave_out: tuple[str, ...],
    baseline: Any,
    said: str,
) -> None:
    with pytest.raises(InputError, match=said):
        imported(other, tmp_path, text, protocol, baseline=baseline, leave_out=leave_out)
