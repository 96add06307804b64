"""What exports and imports leave behind is counted, named, and in the documents as it is in the code."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from whole_campaign import SIZES, everything

from creamtea.errors import InputError
from creamtea.human.formats.base import FOREIGN, NotKept
from creamtea.human.formats.exchange import export_campaign
from creamtea.human.formats.losses import PARTS, not_held
from creamtea.human.formats.storing import collect, store_import
from creamtea.store.database import Database

DOCUMENT = Path(__file__).parents[3] / "docs/exchange.md"


@pytest.mark.parametrize("kind", FOREIGN)
def test_each_part_that_a_format_cannot_hold_is_counted(kind: str) -> None:
    da_sqm = dataclasses.replace(everything(), protocol="da-sqm", answers=(), systems=("B", "A"))
    items = everything().items
    third = dataclasses.replace(items[0], position=99, kind="third-rating", original=0)
    disputed = dataclasses.replace(everything(), items=(*items, third))
    (answer, *_) = everything().answers
    further = [dataclasses.replace(score, payload={"scales": {"Style": 1}}) for score in answer.scores]
    answer = dataclasses.replace(answer, scores=tuple(further))
    scaled = dataclasses.replace(everything(), protocol="da", answers=(answer,))
    said = {part.what for content in (disputed, da_sqm, scaled) for part in not_held(content, kind)}
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
    lines = [f"| | csv, jsonl | {' | '.join(FOREIGN)} |", f"|---|{'---|' * (len(FOREIGN) + 1)}"]
    for part in PARTS:
        cells = ["no" if kind in part.without else "yes" for kind in FOREIGN]
        lines.append(f"| {part.what} | yes | {' | '.join(cells)} |")
    assert "\n".join(lines) in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["appraise", "mqm"])
def test_an_export_says_what_it_leaves_behind(other: Database, tmp_path: Path, kind: str) -> None:
    store_import(other, everything(), "test", "here", media_sizes=SIZES)
    done = export_campaign(other, "all", kind, tmp_path / "out", "test")
    assert done.not_kept == not_held(collect(other, "all"), kind)
    assert NotKept(1, "skipped items") in done.not_kept
    assert str(NotKept(1, "skipped items")) == "skipped items (1)"
    assert "name of the test set" in map(str, done.not_kept), "without a number"


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"protocol": "preference", "answers": ()}, "appraise", "no scores of preference"),
        ({"protocol": "preference", "answers": ()}, "mqm", "not preference"),
        ({"document": "a#b"}, "appraise", "ends the name of a document"),
        ({"document": "tutorial 1"}, "appraise", "marks practice"),
        ({"source": "a\tb"}, "mqm", r"segment 7 of A: found '\\t'"),
        ({"outputs": ("a <v>b", "text")}, "mqm", "segment 7 of A: found '<v>'"),
    ],
)
def test_what_a_format_does_not_have_or_would_take_for_something_else(
    other: Database, tmp_path: Path, change: dict[str, Any], kind: str, said: str
) -> None:
    content = everything()
    if "protocol" not in change:
        first = dataclasses.replace(content.items[0], **change)
        change = {"items": (first, *content.items[1:])}
    store_import(other, dataclasses.replace(content, **change), "test", "here", media_sizes=SIZES)
    with pytest.raises(InputError, match=said):
        export_campaign(other, "all", kind, tmp_path / "out", "test")
    assert not (tmp_path / "out").exists()
