"""The studies test the pairs of systems that the papers' claims compare."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from creamtea.papers.catalogue import (
    NAMES,
    SIZES,
    Column,
    Exhibit,
    OfAnalysis,
    OfSystem,
    Paper,
    Row,
    Wanted,
    exhibits,
    find_paper,
    wanted_cells,
)
from creamtea.study.loader import load_study
from creamtea.study.plan import Plan, plan
from creamtea.study.spec import Study

ROOT = Path(__file__).resolve().parents[2]


Place = tuple[Row, Column]


def compared_cells(exhibit: Exhibit) -> Iterator[tuple[Place, Place]]:
    rows = {row.title: row for row in exhibit.rows}
    columns = {column.title: column for column in exhibit.columns}
    for claim, row, column in product(exhibit.claims, exhibit.rows, exhibit.columns):
        against = rows[claim.against or row.title], columns[claim.against_column or column.title]
        if (
            row.title in (claim.rows or rows)
            and column.title in (claim.columns or columns)
            and (row, column) != against
        ):
            yield (row, column), against


def scores(paper: Paper, exhibit: Exhibit, row: Row, column: Column) -> list[tuple[Wanted, OfSystem]]:
    """Of one system each: not those of the best one on another test set."""
    wanted = [cell for size in SIZES for cell in wanted_cells(paper, exhibit, size, row, column)]
    places = [(cell, cell.place) for cell in wanted]
    return [
        (cell, place)
        for cell, place in places
        if isinstance(place, OfSystem) and isinstance(place.system, str) and not place.percent_of
    ]


def pairs(name: str) -> Iterator[tuple[str, str, str, str, str]]:
    """Exhibit, file of the study, metric, and the two systems."""
    paper = find_paper(name)
    for exhibit in exhibits(name):
        for own, other in compared_cells(exhibit):
            for (mine, a), (theirs, b) in product(
                scores(paper, exhibit, *own), scores(paper, exhibit, *other)
            ):
                same = mine.collection == theirs.collection and a.test_set == b.test_set
                if same and a.metric == b.metric:
                    file = paper.collections[mine.collection].file
                    yield exhibit.label, file, a.metric, str(a.system), str(b.system)


def is_tested(study: Study, metric: str, a: str, b: str) -> bool:
    if metric not in {one.name() for one in study.metrics}:
        return True  # not a metric (a time, a recall), or one of another member of the collection
    return b in study.comparisons(a) or a in study.comparisons(b)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_claim_about_scores_of_one_study_has_its_test(name: str) -> None:
    found = sorted(set(pairs(name)))
    studies = {file: load_study(ROOT / file).study for _, file, *_ in found}
    assert len([pair for pair in found if pair[2] in {"bleu", "wer", "accuracy"}]) >= 3
    missing = [pair for pair in found if not is_tested(studies[pair[1]], *pair[2:])]
    assert missing == []


# ---------------------------------------------------------------- analyses

# measures that no step compares in pairs, and why
UNPAIRED = {"ece": "noise adds to it", "support_size_median": "a median"}
AnalysisPlace = tuple[str, str, str]  # the row, its setting, the measure


def analysed(
    paper: Paper, exhibit: Exhibit, row: Row, column: Column
) -> Iterator[tuple[Wanted, str, AnalysisPlace]]:
    for size in SIZES:
        for cell in wanted_cells(paper, exhibit, size, row, column):
            if isinstance(cell.place, OfAnalysis):
                place = cell.place
                yield cell, place.analysis, (place.row, place.setting, place.measure)


def compared_in_analyses(name: str) -> Iterator[tuple[str, str, str, AnalysisPlace, AnalysisPlace]]:
    """Exhibit, file of the study, analysis, and the two places."""
    paper = find_paper(name)
    for exhibit in exhibits(name):
        for own, other in compared_cells(exhibit):
            for (mine, analysis, a), (theirs, another, b) in product(
                analysed(paper, exhibit, *own), analysed(paper, exhibit, *other)
            ):
                if mine.collection == theirs.collection and analysis == another and a[2] == b[2]:
                    yield exhibit.label, paper.collections[mine.collection].file, analysis, a, b


def are_compared(study: Study, planned: Plan, analysis: str, a: AnalysisPlace, b: AnalysisPlace) -> bool:
    """Whether a step compares the two places; of other rows and other settings at once there is none."""
    spec = study.analyses[analysis]
    if a[0] == b[0]:
        settings = [setting for layout in spec.tables for setting in layout.settings(spec)]
        bases = {setting.words for setting in settings if setting.parts == (spec.base_setting,)}
        return a[2] in spec.paired and bool(bases & {a[1], b[1]})
    pairs = {
        (node.labels[spec.rows], node.labels.get("baseline"))
        for node in planned.nodes
        if node.node.startswith(f"differences/{analysis}/")
    }
    return a[2] in spec.paired and (a[1] != b[1] or bool({(a[0], b[0]), (b[0], a[0])} & pairs))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scones", "entmax"])
def test_each_claim_about_an_analysis_is_compared_in_pairs(name: str) -> None:
    found = sorted(set(compared_in_analyses(name)))
    studies = {file: load_study(ROOT / file).study for _, file, *_ in found}
    plans = {file: plan(study, None) for file, study in studies.items()}
    assert len(found) >= 30
    missing = [
        (label, file, *pair)
        for label, file, *pair in found
        if pair[1][2] not in UNPAIRED and not are_compared(studies[file], plans[file], *pair)
    ]
    assert missing == []
