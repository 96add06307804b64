"""What exports and imports leave behind is counted and named; what no reader knows is told."""

import copy
import csv
import dataclasses
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from whole_campaign import SIZES, START, everything

from creamtea.errors import InputError
from creamtea.human.formats.base import FOREIGN, MT_METRICS_EVAL, ImportFacts, NotKept
from creamtea.human.formats.csv_jsonl import read_folder, read_ratings
from creamtea.human.formats.exchange import export_campaign, find_format
from creamtea.human.formats.losses import PARTS, not_held
from creamtea.human.formats.storing import collect, store_import
from creamtea.human.record import Content
from creamtea.store.database import Database

DOCUMENT = Path(__file__).parents[3] / "docs/exchange.md"


@pytest.mark.parametrize("kind", FOREIGN)
def test_each_part_that_a_format_cannot_hold_is_counted(kind: str) -> None:
    da_sqm = dataclasses.replace(everything(), protocol="da-sqm", answers=(), systems=("B", "A"))
    items = everything().items
    third = dataclasses.replace(items[0], position=99, kind="third-rating", original=0)
    alone = dataclasses.replace(items[0], position=98, segment=98, document="")
    disputed = dataclasses.replace(everything(), items=(*items, third, alone))
    (answer, *_) = everything().answers
    further = [dataclasses.replace(score, payload={"scales": {"Style": 1}}) for score in answer.scores]
    answer = dataclasses.replace(answer, scores=tuple(further))
    scaled = dataclasses.replace(everything(), protocol="da", answers=(answer,))
    corrected = [dataclasses.replace(score, payload={"text": "so"}) for score in answer.scores]
    answer = dataclasses.replace(answer, scores=tuple(corrected))
    edited = dataclasses.replace(everything(), protocol="post-edit", answers=(answer,))
    said = {part.what for each in (disputed, da_sqm, scaled, edited) for part in not_held(each, kind)}
    assert said == {part.what for part in PARTS if kind in part.without}


def test_how_many_there_are() -> None:
    counted = {part.what: part.count(everything()) for part in PARTS}
    assert counted["earlier revisions"] == 2
    assert counted["ratings of excluded raters"] == 2
    assert counted["second opinions of a rater on an output"] == 2
    assert counted["costs of errors that are unusual, and scores by them"] == 8, "with a repeat's"
    assert counted["positions of errors in the source"] == 8, "with those of the repeat"
    assert counted["positions of errors in texts that are not known"] == 2
    assert counted["skipped items"] == counted["times on an item"] == counted["comments"] == 1


def test_ratings_that_come_back_from_means_are_not_lost() -> None:
    (part,) = (part for part in PARTS if part.what.startswith("single ratings"))
    scores = dataclasses.replace(everything(), protocol="scores")
    assert (part.count(everything()), part.count(scores)) == (0, 6), "raters of MQM have files of their own"
    first, second, _, other, *_ = (dataclasses.replace(one, rater="scores") for one in scores.answers)
    for answers, lost in (((first, other), 0), ((first, second, other), 4)):  # the second is of one segment
        assert part.count(dataclasses.replace(scores, raters=(), answers=answers)) == lost


def test_names_that_a_folder_writes_otherwise(tmp_path: Path) -> None:
    """Two segments without a document become two of one, so that tests are over fewer groups."""
    path = tmp_path / "ratings.csv"
    path.write_text("rater,segment,system,value,document\nr,0,A,1,\nr,1,A,2,\nr,2,A,3,d\n")
    facts = ImportFacts("x", "da", "my set", "zh-Hant", "en")
    before, _ = find_format("csv").read(path, facts, START)
    named = {part.what: part.count for part in not_held(before, MT_METRICS_EVAL)}
    assert named["segments without a document, which get one"] == 2
    assert named["white space and slashes in names, hyphens in languages"] == 2
    find_format(MT_METRICS_EVAL).write(before, tmp_path / "out")
    after, _ = find_format(MT_METRICS_EVAL).read(tmp_path / "out", ImportFacts("y"), START)
    assert (after.test_set, after.source_language) == ("my_set", "zh_Hant")
    assert [item.document for item in after.items] == ["my_set-1", "my_set-1", "d"]


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
        ({"document": "Tutorial 1"}, "appraise", "marks practice"),
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


# ---------------------------------------------------------------- keys and columns that no reader knows


ODD = "oddity"
RECORDED = Path(__file__).parent / "pearmut"
FACTS = ImportFacts("all", "mqm", "test", "en", "de")
Imported = tuple[Content, tuple[NotKept, ...]]


def campaign() -> Content:
    content = everything()
    texts: dict[str, Any] = {"document": "d", "media": (), "outputs": ("text", "text")}
    items = tuple(dataclasses.replace(item, **texts) for item in content.items)
    settings = {"wmt": "crowd", "domains": {"d": "news"}}
    return dataclasses.replace(content, items=items, settings=settings)


def with_one_more(value: Any) -> Iterator[Any]:
    """Copies of a JSON value, each with the odd key in another one of its objects."""
    copied = copy.deepcopy(value)
    for block in _objects(copied):
        block[ODD] = "x"
        yield copied
        del block[ODD]


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """All but names of files and outputs, what creamtea and Pearmut made of checks, and actions."""
    if isinstance(value, dict):
        yield value
    passed_over = ("sha256", "validations", "actions", "tgt", "guidance", "mqm_categories")
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list) and name not in passed_over:
            yield from _objects(inner)


def assert_told(read: Callable[[], Imported]) -> None:
    try:
        told = repr(read())
    except InputError as error:
        told = str(error)
    assert ODD in told


def test_in_our_own_files(tmp_path: Path) -> None:
    find_format("jsonl").write(campaign(), tmp_path)
    sidecar = tmp_path / "campaign.json"
    for changed in with_one_more(json.loads(sidecar.read_text())):
        sidecar.write_text(json.dumps(changed))
        assert_told(lambda: (read_folder(tmp_path, "jsonl"), ()))
    ratings = tmp_path / "ratings.jsonl"
    lines = ratings.read_text().splitlines()
    for changed in with_one_more(json.loads(lines[0])):
        ratings.write_text("\n".join([json.dumps(changed), *lines[1:]]))
        assert_told(lambda: read_ratings(ratings, "jsonl", FACTS, START))


def test_in_a_table(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(f"rater,segment,system,step,{ODD}\nann,1,A,5,x\n")
    assert_told(lambda: read_ratings(path, "csv", dataclasses.replace(FACTS, protocol="da"), START))
    find_format("mqm").write(campaign(), tmp_path)
    tsv = tmp_path / "mqm.tsv"
    first, *lines = tsv.read_text().splitlines()
    tsv.write_text("\n".join([f"{first}\t{ODD}", f"{lines[0]}\tx", *lines[1:]]))
    assert_told(lambda: find_format("mqm").read(tsv, FACTS, START))


def test_answers_of_raters_to_questions(tmp_path: Path) -> None:
    find_format("csv").write(campaign(), tmp_path)
    (tmp_path / "raters.csv").write_text("rater,Age?,Town?\nann,9,\nbob,,\n")
    _, not_kept = find_format("csv").read(tmp_path, ImportFacts("all"), START)
    assert not_kept == (NotKept(1, "raters with answers to the campaign's questions (raters.csv)"),)


def test_in_errors_of_appraise(tmp_path: Path) -> None:
    [path], _ = find_format("appraise").write(campaign(), tmp_path)
    rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
    assert json.loads(rows[0][9])
    for changed in with_one_more(json.loads(rows[0][9])):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([[*rows[0][:9], json.dumps(changed), *rows[0][10:]], *rows[1:]])
        _, not_kept = find_format("appraise").read(path, FACTS, START)
        assert NotKept(1, f"values of '{ODD}' in errors") in not_kept


def test_in_a_folder_of_mt_metrics_eval(tmp_path: Path) -> None:
    content = campaign()
    find_format("mt-metrics-eval").write(content, tmp_path)
    facts = dataclasses.replace(FACTS, protocol=None)
    path = next((tmp_path / "human-scores").glob("*.seg.rating"))
    lines = path.read_text().splitlines()
    at, (system, rating, rater) = next(
        (number, line.split("\t")) for number, line in enumerate(lines) if "start" in line
    )
    for changed in with_one_more(json.loads(rating)):
        changed_line = "\t".join([system, json.dumps(changed), rater])
        path.write_text("\n".join([*lines[:at], changed_line, *lines[at + 1 :]]))
        assert_told(lambda: find_format("mt-metrics-eval").read(tmp_path, facts, START))
    path.write_text("\n".join(lines))
    before = find_format("mt-metrics-eval").read(tmp_path, facts, START)[1]
    assert not any("other files" in part.what for part in before)
    for name in ("ODDITY", f"human-scores/en-de.{ODD}.sys.score", f"sources/en-fr.{ODD}", f"{ODD}/x"):
        other = tmp_path / name
        other.parent.mkdir(exist_ok=True)
        other.write_text("x\n")
        after = find_format("mt-metrics-eval").read(tmp_path, facts, START)[1]
        assert NotKept(1, f"other files of the folder ({name})") in after
        other.unlink()


def test_in_an_export_to_pearmut(tmp_path: Path) -> None:
    find_format("pearmut").write(campaign(), tmp_path)
    path, answers = tmp_path / "campaign.json", tmp_path / "annotations.jsonl"
    written = json.loads(path.read_text())
    for changed in with_one_more(written):
        path.write_text(json.dumps(changed))
        assert_told(lambda: find_format("pearmut").read(tmp_path, ImportFacts("all"), START))
    path.write_text(json.dumps(written))
    lines = answers.read_text().splitlines()
    for changed in with_one_more(json.loads(lines[0])):
        answers.write_text("\n".join([json.dumps(changed), *lines[1:]]))
        assert_told(lambda: find_format("pearmut").read(tmp_path, ImportFacts("all"), START))


@pytest.mark.parametrize("folder", ["1.1.6-cesa", "1.1.6-da"])
def test_in_files_of_pearmut(tmp_path: Path, folder: str) -> None:
    told = json.loads((RECORDED / folder / "campaign.json").read_text())
    [(name, entries)] = json.loads((RECORDED / folder / "annotations.json").read_text()).items()
    beside, answers = tmp_path / "campaign.json", tmp_path / "annotations.json"
    facts = ImportFacts("all", campaign_file=beside)
    for changed in with_one_more([told, entries]):
        beside.write_text(json.dumps(changed[0]))
        answers.write_text(json.dumps({name: changed[1]}))
        assert_told(lambda: find_format("pearmut").read(answers, facts, START))
