"""A key or a column that no reader knows is refused, kept or named, wherever it stands in a file."""

import copy
import csv
import dataclasses
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from whole_campaign import START, everything

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts, NotKept
from creamtea.human.formats.csv_jsonl import read_folder, read_ratings
from creamtea.human.formats.exchange import find_format
from creamtea.human.record import Content

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
