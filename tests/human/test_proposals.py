"""Errors that are marked before a rater begins: from a file or a metric to page, report and exports."""

import json
from pathlib import Path
from typing import Any

import pytest
from found_errors import MINOR, add_scores
from ready_campaigns import draft_campaign
from small_campaigns import add_rater, changes_of, exchanged, items_of, make_campaign, work_for

from creamtea.document.document import YamlDocument
from creamtea.errors import InputError
from creamtea.human import rating as assignment
from creamtea.human.formats.exchange import export_campaign
from creamtea.human.formats.storing import collect
from creamtea.human.making import launching
from creamtea.human.making.campaign_file import Folder, check_campaign
from creamtea.human.making.proposals import (
    OUTCOMES,
    add_proposals,
    metrics_with_errors,
    outcomes,
    proposals_of_metric,
    read_proposals,
)
from creamtea.human.making.settings import CampaignSettings, ProposedBy, settings_of
from creamtea.human.making.texts import Line
from creamtea.human.protocols import find_protocol
from creamtea.human.protocols.spans import Span
from creamtea.human.protocols.taxonomy import ESA
from creamtea.human.rating import RatingRefused
from creamtea.human.record import ItemContent
from creamtea.report.human.build import build_human
from creamtea.report.model import Table
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.queries import find_campaign, find_study
from creamtea.store.tables import Item

# ---------------------------------------------------------------- from a file


MAJOR = {"start": 3, "end": 4, "severity": "major"}


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def line(system: str = "plain", segment: int = 1, *spans: dict[str, Any]) -> dict[str, Any]:
    return {"system": system, "segment": segment, "spans": list(spans)}


def make(database: Database, path: Path, **changes: Any) -> list[Item]:
    """The items of a new campaign with the proposals in a file."""
    fields: dict[str, Any] = {
        **{"systems": ["plain", "beam"], "protocol": "esa", "proposals": read_proposals(path)},
        "settings": CampaignSettings(bad_references=0, repeats=1),
        **changes,
    }
    draft_campaign(database, "c", replace=True, **fields)
    return items_of(database)


def test_items_have_what_was_proposed_for_their_texts(study_database: Database, tmp_path: Path) -> None:
    lines = [line(system, segment, MINOR) for system in ("plain", "beam") for segment in (1, 2, 3, 4)]
    items = make(study_database, written(tmp_path / "p.jsonl", *lines))
    assert {item.kind for item in items} == {"rated", "repeat"}
    for item in items:
        every = {str(system): [MINOR] for system in item.systems}
        assert item.proposals == (every if item.segment_index < 4 else None)
    launched = launching.launch(study_database, "c")
    with study_database.transaction() as session:
        session.get_one(Item, items[0].id).proposals = None
    assert changes_of(study_database) == ["items"], launched["items"]


def test_equal_texts_share_proposals_and_a_spoilt_one_has_none(tmp_path: Path) -> None:
    proposals = read_proposals(written(tmp_path / "p.jsonl", line("beam", 1, MAJOR), line("plain", 1, MINOR)))
    items = [
        ItemContent(segment=0, source="s", systems=("plain", "beam", "scones"), outputs=outputs)
        for outputs in (
            ("equal", "equal", "other"),
            ("spoilt", "equal", "other"),
            ("spoilt", "spoilt", "other"),
        )
    ]
    lines = [Line(0, "source", "", ("equal", "equal", "other"))]
    (made,) = add_proposals([items], proposals, find_protocol("esa"), ["plain", "beam", "scones"], lines)
    assert [item.proposals for item in made] == [{"plain": [MINOR], "beam": [MINOR]}, {"beam": [MINOR]}, None]
    none = read_proposals(written(tmp_path / "none.jsonl", line("plain", 1), line("beam", 1, MAJOR)))
    ((first,),) = add_proposals([items[:1]], none, find_protocol("esa"), ["plain", "beam", "scones"], lines)
    assert first.proposals == {"plain": [MAJOR], "beam": [MAJOR]}


@pytest.mark.parametrize(
    ("lines", "changes", "message"),
    [
        ([line("scones")], {}, "p.jsonl, line 1: the campaign has no system 'scones'"),
        ([line("plain", 99)], {}, "line 1: there is no segment 99: the test set has 5"),
        ([line("plain", 0)], {}, "line 1: segment: found 0"),
        ([line(), line()], {}, r"line 2: this output has proposals already \(p.jsonl, line 1\)"),
        ([line("plain", 1, MINOR | {"end": 999})], {}, "line 1: an error ends at character 999"),
        ([line("plain", 1, MINOR | {"severity": "critical"})], {}, "minor or major, not critical"),
        ([line("plain", 1, MINOR, MINOR)], {}, "two errors share character 0"),
        ([line("plain", 1, MINOR | {"proposed": 0})], {}, "neither `proposed` nor `in_source`"),
        ([line()], {"protocol": "da"}, "protocol.proposals: is for marked errors, and da has none"),
        ([{"system": "plain"}], {}, "line 1: segment: required key is missing"),
        (None, {}, "No such file"),
        (b'\n{"system"', {}, "line 2: not JSON"),
        (b'{"system": "a", "system": "b"}', {}, r"p\.jsonl, line 1: not JSON"),
        (b"\n", {}, r"p\.jsonl: no proposals in it"),
        (b"\xff", {}, "not UTF-8"),
        pytest.param(b"[" * 100_000, {}, r"p\.jsonl, line 1: not JSON", id="deep"),
        pytest.param(b"[" + b"1" * 5000 + b"]", {}, r"p\.jsonl, line 1: not JSON", id="long"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(
    study_database: Database, tmp_path: Path, lines: Any, changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / "p.jsonl"
    if isinstance(lines, bytes):
        path.write_bytes(lines)
    elif lines is not None:
        written(path, *lines)
    with pytest.raises(InputError, match=message):
        make(study_database, path, **changes)


def test_the_forms_field_is_told(study_database: Database, tmp_path: Path) -> None:
    path = written(tmp_path / "p.jsonl", line("scones"))
    found = ProposedBy(metric="found", scorer="xcomet", version="1", digest="0")
    for metric, field in ((None, "protocol.proposals"), (found, "protocol.proposals_from")):
        settings = CampaignSettings(bad_references=0, repeats=1, proposed_by=metric)
        with pytest.raises(InputError) as refused:
            make(study_database, path, settings=settings)
        assert refused.value.about == field


def test_every_error_is_kept_changed_deleted_or_added() -> None:
    proposed = [MINOR, MAJOR, {"severity": "minor"}]
    answer = [Span(**MINOR, proposed=0), Span(**{**MAJOR, "severity": "minor"}, proposed=1), Span(**MAJOR)]
    assert outcomes(proposed, answer) == {"kept": 1, "changed": 1, "deleted": 1, "added": 1}
    assert outcomes(proposed, [])["deleted"] == 3
    assert outcomes([], answer[2:]) == {"added": 1}
    assert set(OUTCOMES) == {"kept", "changed", "deleted", "added"}


def test_a_rater_sees_proposals_and_the_report_says_what_became_of_them(
    database: Database, tmp_path: Path
) -> None:
    one = {"outputs": ["ein Haus"], "systems": [0]}
    marked = {**one, "proposals": {"0": [MINOR, MAJOR]}}
    make_campaign(database, [marked, one], protocol="esa", taxonomy=ESA.model_dump(mode="json"))
    anna = add_rater(database)
    work = work_for(database, anna)
    assert work.segments[0].proposals == [[MINOR, MAJOR]]
    kept = {"spans": [{**MINOR, "proposed": 0}, {"start": 6, "end": 7, "severity": "minor"}], "score": 80}
    wrong = {**kept, "spans": [{**MINOR, "proposed": 2}]}
    with pytest.raises(RatingRefused, match="no proposal 2"):
        assignment.submit(database, anna, work.assignment_id, [wrong])
    with pytest.raises(RatingRefused, match="two errors from one proposal"):
        assignment.save_draft(database, anna, work.assignment_id, [{"spans": [kept["spans"][0]] * 2}])
    assignment.submit(database, anna, work.assignment_id, [kept])
    other = work_for(database, anna)
    assert other.segments[0].proposals == [[]]
    assignment.submit(database, anna, other.assignment_id, [{"spans": [], "score": 100}])
    tables = {block.key: block for _, block in build_human(database, "c").walk() if isinstance(block, Table)}
    (row,) = tables["proposed"].rows
    counts = {key: cell.value for key, cell in row.cells.items()}
    assert counts == {"answers": 1, "proposed": 2, "kept": 1, "changed": 0, "deleted": 1, "added": 1}

    before, after = collect(database, "c"), exchanged(database, tmp_path)
    assert before.items == after.items
    assert after.items[0].proposals == {"plain": [MINOR, MAJOR]}
    assert before.answers == after.answers
    done = export_campaign(database, "c", "appraise", tmp_path / "appraise", "test")
    assert "errors that were marked beforehand (2)" in [str(part) for part in done.not_kept]


# ---------------------------------------------------------------- from a metric


SYSTEMS = ["plain", "beam"]


def test_metrics_whose_scorer_found_errors(
    study_database: Database, tmp_path: Path, store: ArtefactStore
) -> None:
    found = []
    for system, fields in ((None, {}), ("plain", {"found_errors": False}), ("beam", {})):
        if system is not None:
            add_scores(study_database, store, tmp_path, system, [[]] * 5, **fields)
        with study_database.session() as session:
            found.append(metrics_with_errors(session, find_study(session, "jam")))
    assert found == [[], [], ["finder"]]


def test_from_the_metric_to_the_page(study_database: Database, tmp_path: Path, store: ArtefactStore) -> None:
    found = [[MINOR], [], [], [], [MINOR, {"severity": "major"}]]
    add_scores(study_database, store, tmp_path, "plain", found)
    add_scores(study_database, store, tmp_path, "beam", [[], [MINOR], [], [], []])
    asked = {"name": "c", "study": "jam", "test_set": "test", "systems": SYSTEMS}
    asked |= {"protocol": {"kind": "esa", "proposals_from": "finder"}}
    asked |= {"controls": {"bad_references": 0, "repeats": 0}}
    document = YamlDocument("the form", asked)
    loaded = check_campaign(document, Folder(tmp_path))
    draft_campaign(study_database, "c", loaded.request(study_database, store))
    with study_database.session() as session:
        campaign = find_campaign(session, "c")
        assert settings_of(campaign.settings).proposed_by == ProposedBy(
            metric="finder", scorer="finder", version="1.0", digest="d1"
        )
    proposed = {(item.segment_index, *item.systems): item.proposals for item in items_of(study_database)}
    assert proposed[0, 0] == {"0": found[0]}
    assert proposed[1, 1] == {"1": [MINOR]}
    assert proposed[4, 0] == {"0": found[4]}
    assert proposed[4, 1] == {"1": []}
    registered = launching.launch(study_database, "c")
    assert registered["settings"]["proposed_by"]["digest"] == "d1"
    both = check_campaign(document, Folder(tmp_path), ["protocol.proposals=p.jsonl"])
    with pytest.raises(InputError, match="give one of the two"):
        both.request(study_database, store)


CRITICAL = {"start": 0, "end": 1, "severity": "critical"}


@pytest.mark.parametrize(
    ("metric", "of_beam", "message"),
    [
        ("other", None, r"protocol.proposals_from: other: study 'jam' has no such metric; it has finder"),
        ("finder", None, "'beam'"),
        ("finder", {"found_errors": False}, "no `spans` with the scores of beam: docs/scorers"),
        ("finder", {"version": "2.0"}, "scored by different versions"),
        ("finder", {}, r"finder of plain, segment 2: .*minor or major, not critical"),  # as in a file
    ],
)
def test_what_a_metric_cannot_propose(
    study_database: Database, tmp_path: Path, store: ArtefactStore, metric: str, of_beam: Any, message: str
) -> None:
    add_scores(study_database, store, tmp_path, "plain", [[], [CRITICAL], [], [], []])
    if of_beam is not None:
        add_scores(study_database, store, tmp_path, "beam", [[]] * 5, **of_beam)

    def propose() -> None:
        with study_database.session() as session:
            given = proposals_of_metric(session, store.read, "jam", "test", SYSTEMS, metric)
        draft_campaign(study_database, "c", protocol="esa", proposals=given[0])

    with pytest.raises(InputError, match=message):
        propose()
