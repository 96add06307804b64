"""Scores of WMT 2024: numbers of segments, tasks that are filled up, outputs rated again."""

from __future__ import annotations

from pathlib import Path

from appraise_files import blocks_of, options, written

from creamtea.human.formats.base import NotKept
from creamtea.human.formats.exchange import import_campaign
from creamtea.human.formats.storing import collect
from creamtea.report.export import to_values
from creamtea.report.human.build import build_human
from creamtea.store.database import Database


def test_wmt_2024_numbers_segments_as_the_test_set_does_and_fills_tasks_up(
    database: Database, tmp_path: Path
) -> None:
    """As esa_generalMT2024_wave2.csv: DOCUMENT#bad1 of any system, #incomplete and #dup to fill a task up."""
    lines = """\
ann,A,1,TGT,eng,deu,60,news.1,False,[],3,4
ann,A,2,TGT,eng,deu,61,news.1,False,[],3,4
ann,B,3,TGT,eng,deu,62,chat.1,False,[],3,4
ann,A,3,BAD,eng,deu,5,chat.1#bad1,False,[],3,4
ann,A,2,TGT,eng,deu,63,news.1#dup,False,[],3,4
ann,B,1,TGT,eng,deu,64,news.1#incomplete,False,[],3,4
"""
    (tmp_path / "docs").write_text("canary\tcanary\nnews\tnews.1\nnews\tnews.1\nchat\tchat.1\n")
    facts = options(protocol="esa", documents=tmp_path / "docs", first_segment=0)
    done = import_campaign(database, written(tmp_path, lines), "appraise", facts, "test")
    assert done.not_kept == (NotKept(2, "scores of documents that fill a task up (#incomplete, #dup)"),)
    content = collect(database, "wmt")
    assert [(item.kind, item.document, item.segment) for item in content.items] == [
        ("rated", "news.1", 1),
        ("rated", "news.1", 2),
        ("rated", "chat.1", 3),
        ("rated", "chat.1", 3),
        ("bad-reference", "chat.1", 3),
    ]
    assert content.settings["domains"] == {"canary": "canary", "news.1": "news", "chat.1": "chat"}
    blocks = blocks_of(to_values(build_human(database, "wmt")))
    table = next(block for block in blocks if block.get("key") == "wmt" and "rows" in block)
    assert "means over 2 domains" in table["about"]
    assert {row["name"]: row["cells"]["raw"]["value"] for row in table["rows"]} == {"A": 60.5, "B": 62.0}
