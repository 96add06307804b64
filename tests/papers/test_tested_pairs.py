"""The studies test the pairs of systems that the papers' claims compare."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from creamtea.papers.catalogue import (
    NAMES,
    SIZES,
    Exhibit,
    OfAnalysis,
    OfSystem,
    exhibits,
    find_paper,
    wanted_cells,
)
from creamtea.study.loader import load_study
from creamtea.study.plan import Plan, plan
from creamtea.study.spec import Study

ROOT = Path(__file__).resolve().parents[2]


Titles = tuple[str, str]  # of a row and a column
Place = OfSystem | OfAnalysis
# measures that no step compares in pairs, and why
UNPAIRED = {"ece": "noise adds to it", "support_size_median": "a median"}


def compared_cells(exhibit: Exhibit) -> Iterator[tuple[Titles, Titles]]:
    rows, columns = ([entry.title for entry in entries] for entries in (exhibit.rows, exhibit.columns))
    for claim in exhibit.claims:
        for row, column in product(claim.rows or rows, claim.columns or columns):
            against = claim.against or row, claim.against_column or column
            if (row, column) != against:
                yield (row, column), against


def measured(place: object) -> tuple[str, str] | None:
    """Return what two places must have in common to be compared. None for what no step compares: the best
    of several systems, which is chosen on another test set, and a percentage."""
    match place:
        case OfSystem(system=str(), percent_of=""):
            return place.test_set, place.metric
        case OfAnalysis():
            return place.analysis, place.measure
    return None


@cache
def compared(name: str) -> list[tuple[str, str, Place, Place]]:
    """Exhibit, file of the study, and the two places; each two only once."""
    paper, found = find_paper(name), {}
    for exhibit in exhibits(name):
        wanted = {
            (row.title, column.title): [
                cell for size in SIZES for cell in wanted_cells(paper, exhibit, size, row, column)
            ]
            for row, column in product(exhibit.rows, exhibit.columns)
        }
        for own, other in compared_cells(exhibit):
            for mine, theirs in product(wanted[own], wanted[other]):
                shared = measured(mine.place)
                if mine.collection == theirs.collection and shared and shared == measured(theirs.place):
                    file = paper.collections[mine.collection].file
                    pair = (exhibit.label, file, mine.place, theirs.place)
                    found[str(pair)] = pair
    return list(found.values())  # type: ignore[arg-type]


def are_tested(study: Study, a: OfSystem, b: OfSystem) -> bool:
    if a.metric not in {one.name() for one in study.metrics}:
        return True  # not a metric (a time, a recall), or one of another member of the collection
    return b.system in study.comparisons(a.system) or a.system in study.comparisons(b.system)


def are_compared(study: Study, planned: Plan, a: OfAnalysis, b: OfAnalysis) -> bool:
    """Whether a step compares the two places; of other rows and other settings at once there is none."""
    spec = study.analyses[a.analysis]
    if a.row == b.row:
        settings = [setting for layout in spec.tables for setting in layout.settings(spec)]
        bases = {setting.words for setting in settings if setting.parts == (spec.base_setting,)}
        return a.measure in spec.paired and bool(bases & {a.setting, b.setting})
    pairs = {
        (node.labels[spec.rows], node.labels.get("baseline"))
        for node in planned.nodes
        if node.node.startswith(f"differences/{a.analysis}/")
    }
    own = {(a.row, b.row), (b.row, a.row)}
    return a.measure in spec.paired and (a.setting != b.setting or bool(own & pairs))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_claim_about_scores_of_one_study_has_its_test(name: str) -> None:
    found = [pair for pair in compared(name) if isinstance(pair[2], OfSystem)]
    studies = {file: load_study(ROOT / file).study for file in {file for _, file, *_ in found}}
    assert len([pair for pair in found if pair[2].metric in {"bleu", "wer", "accuracy"}]) >= 3
    assert [pair for pair in found if not are_tested(studies[pair[1]], *pair[2:])] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scones", "entmax"])
def test_each_claim_about_an_analysis_is_compared_in_pairs(name: str) -> None:
    found = [pair for pair in compared(name) if isinstance(pair[2], OfAnalysis)]
    studies = {file: load_study(ROOT / file).study for file in {file for _, file, *_ in found}}
    plans = {file: plan(study, None) for file, study in studies.items()}
    assert len(found) >= 30
    missing = [
        (label, file, a, b)
        for label, file, a, b in found
        if a.measure not in UNPAIRED and not are_compared(studies[file], plans[file], a, b)
    ]
    assert missing == []
