"""What exports and imports leave behind is counted, named, and in the documents as it is in the code."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from whole_campaign import SIZES, answer, everything

from creamtea.errors import InputError
from creamtea.human.formats.base import FOREIGN, ImportFacts, NotKept
from creamtea.human.formats.exchange import export_campaign, import_campaign, without_systems
from creamtea.human.formats.losses import PARTS, not_held, table
from creamtea.human.formats.ratings import rows_of
from creamtea.human.formats.storing import collect, store_campaign
from creamtea.store.database import Database

DOCUMENT = Path(__file__).parents[3] / "docs/exchange.md"


@pytest.mark.parametrize("kind", FOREIGN)
def test_each_part_that_a_format_cannot_hold_is_counted(kind: str) -> None:
    da_sqm = dataclasses.replace(everything(), protocol="da-sqm", answers=(), systems=("B", "A"))
    items = everything().items
    third = dataclasses.replace(items[0], position=99, kind="third-rating", original=0)
    disputed = dataclasses.replace(everything(), items=(*items, third))
    said = {part.what for content in (disputed, da_sqm) for part in not_held(content, kind)}
    assert said == {part.what for part in PARTS if kind in part.without}


def test_how_many_there_are() -> None:
    counted = {part.what: part.count(everything()) for part in PARTS}
    assert counted["earlier revisions"] == 2
    assert counted["ratings of excluded raters"] == 2
    assert counted["second opinions of a rater on an output"] == 2
    assert counted["single ratings (a segment has their mean)"] == 6
    assert counted["costs of errors that are not usual, and scores by them"] == 8, "with a repeat's"
    assert counted["positions of errors in the source"] == 8, "with those of the repeat"
    assert counted["positions of errors in texts that are not known"] == 2
    assert counted["skipped items"] == counted["times on an item"] == counted["comments"] == 1


@pytest.mark.parametrize(
    ("protocol", "rule", "kind", "lost"),
    [
        ("esa", "esa", "mt-metrics-eval", True),  # scores of segments come back, with the usual rule
        ("esa", "usual", "mt-metrics-eval", False),
        ("mqm", "esa", "mt-metrics-eval", False),
        ("esa", "esa", "pearmut", False),
        ("esa", "usual", "pearmut", True),
        ("da-sqm", "da-sqm", "appraise", False),
    ],
)
def test_the_rule_of_wmt_that_an_import_takes(protocol: str, rule: str, kind: str, lost: bool) -> None:
    content = dataclasses.replace(everything(), protocol=protocol, settings={"wmt": rule}, answers=())
    assert any(part.what.startswith("rule of WMT") for part in not_held(content, kind)) == lost


def test_the_documents_show_the_table() -> None:
    assert table() in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["appraise", "mqm"])
def test_an_export_says_what_it_leaves_behind(other: Database, tmp_path: Path, kind: str) -> None:
    store_campaign(other, everything(), "test", "here", media_sizes=SIZES)
    done = export_campaign(other, "all", kind, tmp_path / "out", "test")
    assert done.not_kept == not_held(collect(other, "all"), kind)
    assert NotKept(1, "skipped items") in done.not_kept
    assert str(NotKept(1, "skipped items")) == "skipped items (1)"
    assert "name of the test set" in map(str, done.not_kept), "without a number"


def test_formats_without_a_protocol_refuse_it(other: Database, tmp_path: Path) -> None:
    store_campaign(
        other,
        dataclasses.replace(everything(), protocol="preference", answers=()),
        "test",
        "here",
        media_sizes=SIZES,
    )
    for kind, said in (("appraise", "no scores of preference"), ("mqm", "not preference")):
        with pytest.raises(InputError, match=said):
            export_campaign(other, "all", kind, tmp_path / kind, "test")
        assert not (tmp_path / kind).exists()


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"document": "a#b"}, "appraise", "ends the name of a document"),
        ({"document": "tutorial 1"}, "appraise", "marks practice"),
        ({"source": "a\tb"}, "mqm", r"segment 7 of A: found '\\t'"),
        ({"outputs": ("a <v>b", "text")}, "mqm", "segment 7 of A: found '<v>'"),
    ],
)
def test_what_a_format_would_take_for_something_else(
    other: Database, tmp_path: Path, change: dict[str, Any], kind: str, said: str
) -> None:
    content = everything()
    first = dataclasses.replace(content.items[0], **change)
    store_campaign(
        other,
        dataclasses.replace(content, items=(first, *content.items[1:])),
        "test",
        "here",
        media_sizes=SIZES,
    )
    with pytest.raises(InputError, match=said):
        export_campaign(other, "all", kind, tmp_path / "out", "test")
    assert not (tmp_path / "out").exists()


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
    path = tmp_path / "ratings.csv"
    path.write_text(RATINGS)
    facts = ImportFacts("old", "da", "test", "en", "de", leave_out=("B",))
    tried = import_campaign(other, path, "csv", facts, "test", dry_run=True)
    assert tried.not_kept == (
        NotKept(3, "ratings of systems left out (B)"),
        NotKept(1, "raters of these alone"),
    )
    done = import_campaign(other, path, "csv", facts, "test")  # the dry run stored nothing
    assert done == tried
    content = collect(other, "old")
    assert [(row.system, row.rater, row.item) for row in rows_of(content)] == [("A", "ann", 0)]
    assert [person.pseudonym for person in content.raters] == ["ann"]
    assert len(content.items) == 1


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
    path = tmp_path / "ratings.csv"
    pairs = [("A", 2, "B", 0), ("A", 2, "C", 0), ("C", 2, "B", 0)]
    rows = [f"ann,1,{a},{x},{n}\nann,1,{b},{y},{n}\n" for n, (a, x, b, y) in enumerate(pairs)]
    path.write_text("rater,segment,system,value,item\n" + "".join(rows))
    facts = ImportFacts("old", "preference", "test", "en", "de", leave_out=("C",))
    done = import_campaign(other, path, "csv", facts, "test")
    assert done.not_kept == (NotKept(4, "ratings of systems left out (C)"),)
    found = list(rows_of(collect(other, "old")))
    assert [(row.item, row.system) for row in found] == [(0, "A"), (0, "B")]


def test_no_rating_left_is_no_campaign(other: Database, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("rater,segment,system,value,item\nann,1,A,2,0\nann,1,C,0,0\nann,1,B,2,1\nann,1,C,0,1\n")
    facts = ImportFacts("old", "preference", "test", "en", "de", leave_out=("C",))
    with pytest.raises(InputError, match="--leave-out C: every item shows one of these"):
        import_campaign(other, path, "csv", facts, "test")


def test_of_outputs_shown_together_the_others_stay(other: Database, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("rater,segment,system,value\nann,1,A,2.0\nann,1,B,3.0\nann,1,C,4.0\n")
    facts = ImportFacts("old", "contrastive-da", "test", "en", "de", leave_out=("B",))
    import_campaign(other, path, "csv", facts, "test")
    rows = list(rows_of(collect(other, "old")))
    assert [(row.system, row.value, row.shown) for row in rows] == [("A", "2.0", 1), ("C", "4.0", 2)]


@pytest.mark.parametrize(
    ("leave_out", "baseline", "said"),
    [
        (("C",), None, "--leave-out C: no such system; there are A, B"),
        (("A",), "A", "--leave-out A: it is the baseline"),
        (("A", "B"), None, "no system would be left"),
    ],
)
def test_systems_that_cannot_be_left_out(
    other: Database, tmp_path: Path, leave_out: tuple[str, ...], baseline: str | None, said: str
) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(RATINGS)
    facts = ImportFacts("old", "da", "test", "en", "de", baseline=baseline, leave_out=leave_out)
    with pytest.raises(InputError, match=said):
        import_campaign(other, path, "csv", facts, "test")
