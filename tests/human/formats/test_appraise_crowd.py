"""The crowd's scores: the layout of MTurk, and WMT's standardised ones with the raters' statistics."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from appraise_files import MTURK, NOW, block, campaign, cells, options

from creamtea.errors import InputError
from creamtea.human.formats.exchange import import_campaign
from creamtea.store.database import Database


def test_the_layout_of_mturk(tmp_path: Path) -> None:
    content = campaign(tmp_path, MTURK, protocol="da")
    assert content.systems == ("A.0", "reference")
    kinds = {item.kind: item.original for item in content.items if item.systems == ("A.0",)}
    assert kinds == {"rated": None, "bad-reference": 0, "repeat": 0}
    assert {answer.submitted_at for answer in content.answers} == {NOW}
    assert [answer.scores[0].step for answer in content.answers] == [72, 10, 71, 99]


def test_segments_within_documents_of_the_crowd(tmp_path: Path) -> None:
    """Of 2021: PAIR-HIT-DOCUMENT-ITEM.N_N, where systems share a segment by its document and number."""
    lines = MTURK.split("\n")[:1] + [
        f'NA\tann\thi\tbn ad NA "{system}" NA SYSTEM\thi-bn-{hit}-{document}-{number}.{at}_{at}\t70\t0'
        for system, hit, document, number in (
            ("A", 0, 46, 1001558),
            ("A", 0, 7, 1000012),
            ("B", 3, 46, 1000811),
        )
        for at in (1, 2)
    ]
    content = campaign(tmp_path, "\n".join(lines), protocol="da")
    found = [(item.systems[0], item.document, item.segment) for item in content.items]
    segments = {document: segment for _, document, segment in found}
    assert [document for _, document, _ in found] == ["46", "46", "7", "7", "46", "46"]
    assert found[0][2] == found[4][2]
    assert found[1][2] == found[5][2]
    assert len({segment for *_, segment in found}) == 4
    assert len(segments) == 2


def test_standardised_scores_of_the_crowd(database: Database, tmp_path: Path) -> None:
    """WMT's release: z, tabs and blanks mixed, and the raters' means and deviations beside it."""
    given = {"M01": [72, 10, 71, 99], "M02": [50, 60, 40, 100]}
    statistics, lines = [], MTURK.split("\n")[:1]
    for rater, scores in given.items():
        mean, deviation = statistics_of(scores)
        statistics += [f'[1] "{rater}"', f"[1] {mean:.5f}", f"[1] {deviation:.5f}"]
        for kind, score in zip(("SYSTEM", "BAD_REF", "REPEAT", "REF"), scores, strict=True):
            z = (score - mean) / deviation
            lines.append(f'3ABC\t{rater} lv\ten ad 13 "A.0"\t1003221 {kind} 121 {z:.14f} 1503.0')
    statistics += ['[1] "M03"', "[1] 1", "[1] NA"]
    (tmp_path / "trk.txt").write_text("\n".join(statistics).replace("M02", "M02\u200b"))  # looks alike
    content = campaign(tmp_path, "\n".join(lines), protocol="da", rater_statistics=tmp_path / "trk.txt")
    steps = {
        rater: [answer.scores[0].step for answer in content.answers if answer.rater == rater]
        for rater in given
    }
    assert steps == given
    assert content.settings == {"references": ["reference"], "wmt": "crowd"}

    facts = options(protocol="da", rater_statistics=tmp_path / "trk.txt", baseline="A.0", delta=3.0)
    import_campaign(database, tmp_path / "scores.csv", "appraise", facts, "test")
    zs = [(np.mean(scores[0:3:2]) - np.mean(scores)) / np.std(scores, ddof=1) for scores in given.values()]
    found = cells(database)
    assert list(found) == ["A.0"], "the reference is no competitor"
    assert found["A.0"]["z"] == pytest.approx(np.mean(zs), abs=1e-4)
    usual = block(database, rule="usual")["rows"][0]["cells"]
    assert usual["z"]["value"] != found["A.0"]["z"]


def statistics_of(scores: list[int]) -> tuple[float, float]:
    return float(np.mean(scores)), float(np.std(scores, ddof=1))


@pytest.mark.parametrize(
    ("statistics", "said"),
    [
        ('[1] "M02"\n[1] 5\n[1] 1\n', "no mean and deviation of 'M01'"),
        ('[1] "M01"\n[1] 5.5\n[1] 1\n', "a score of 77.500"),
        ('[1] "M01"\n[1] 5\n[1] NA\n', "a score of nan"),
        ('[1] "M01"\n[1] five\n[1] 1\n', "found 'M01 five 1'"),
        ("M01 5\n", "found 'M01 5'"),
    ],
)
def test_statistics_that_do_not_fit(tmp_path: Path, statistics: str, said: str) -> None:
    (tmp_path / "trk.txt").write_text(statistics)
    with pytest.raises(InputError, match=re.escape(said)):
        campaign(tmp_path, MTURK, protocol="da", rater_statistics=tmp_path / "trk.txt")
