"""Which study's values a paper's table shows and compares, and what it says where a study lacks them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from paper_cells import cell, rows_of, study_document
from sqlalchemy import delete, select, update

from creamtea.contract.step import Column
from creamtea.papers.catalogue import OfAnalysis, find_paper
from creamtea.report.model import Cell, Document, Row, Table
from creamtea.report.papers.build import build_exhibit
from creamtea.report.papers.ours import Reports, StudyReport, _measures_compared, find_cell, selection_size
from creamtea.stats.seeds import spread_of_mean, widened
from creamtea.store.database import Database
from creamtea.store.tables import Metric, StepRow, StudyRow, StudyStep


@pytest.fixture(scope="module")
def two_studies_of_one_table(new_store: Callable[..., Database]) -> Document:
    """One has fifteen languages and one seed each, the other four languages and the ensembles."""
    return build_exhibit(new_store("g2p", "entmax-g2p-half"), "entmax", "table", 1)


def test_a_value_of_another_study_than_the_rest_says_so(two_studies_of_one_table: Document) -> None:
    shown = [
        cell(two_studies_of_one_table, "α = 1.5, ε = 0", "ours", column).note
        for column in ("single, WER", "ensemble, WER")
    ]
    assert shown == ["", "of g2p"]


def test_a_claim_is_judged_by_the_study_that_has_both_values(two_studies_of_one_table: Document) -> None:
    verdict = cell(two_studies_of_one_table, "α = 1.5, ε = 0", "verdict against single, WER", "ensemble, WER")
    assert verdict.value.split(":")[0] in ("holds", "opposite", "undecided")
    assert verdict.note == "of g2p"


def test_a_study_that_has_not_finished_does_not_hide_one_that_has(new_store: Callable[..., Database]) -> None:
    database = new_store("g2p", "entmax-g2p-half")
    with database.transaction() as writing:
        half = writing.scalars(select(StudyRow).where(StudyRow.name == "entmax-g2p-half")).one()
        places = select(StudyStep.step_key).where(StudyStep.study_id == half.id)
        writing.execute(delete(Metric).where(Metric.step_key.in_(places)))
        writing.execute(update(StepRow).where(StepRow.key.in_(places)).values(state="pending"))
        half.state = "queued"
    document = build_exhibit(database, "entmax", "table", 1)
    shown = cell(document, "α = 1.5, ε = 0", "ours", "single, WER")
    alone = cell(
        build_exhibit(new_store("g2p"), "entmax", "table", 1), "α = 1.5, ε = 0", "ours", "single, WER"
    )
    assert (shown.value, shown.note) == (alone.value, "")


def test_a_study_without_the_selection_has_no_such_cell(our_size: Database) -> None:
    reports = Reports(our_size, find_paper("nvs"))
    report = reports.read("idioms", "en-de")
    assert isinstance(report, StudyReport)
    assert [selection_size(report.spec, name) for name in ("nobody", "full")] == [None, None]


def test_recall_at_equal_size_is_judged_by_its_paired_difference(our_size: Database) -> None:
    report = Reports(our_size, find_paper("nvs")).read("idioms", "en-de")
    assert isinstance(report, StudyReport)
    found = find_cell(
        report.document,
        OfAnalysis(
            analysis="recall-idioms", row="general", setting="k=200, idioms", measure="recall_difference"
        ),
    )
    assert found is not None
    difference = found[1].cells["recall_difference"]
    document = build_exhibit(our_size, "nvs", "figure", 4)
    verdict = rows_of(document)["EN-DE NVS", "verdict against EN-DE align"].cells["c0"]
    assert verdict.value == pytest.approx(100 * (difference.value or 0.0))
    assert (verdict.low, verdict.high) == pytest.approx((100 * difference.low, 100 * difference.high))


@pytest.mark.parametrize(("deviation", "significant"), [(None, True), (0.003, True), (0.1, False)])
def test_two_measures_of_a_model_are_judged_over_its_seeds(
    deviation: float | None, significant: bool
) -> None:
    """Seeds of +6, -4 and +4 points have narrow intervals over segments each, and so has their mean."""
    own = Column("recall_nvs", "NVS recall", 1)
    difference = Column("recall_difference", "Δ", 1, less=("recall_nvs", "recall_lexicon"))
    cell = Cell("ok", value=0.02, low=0.005, high=0.035, deviation=deviation, seeds=3 if deviation else 1)
    row = Row("general", {"recall_difference": cell, "recall_nvs": Cell("ok", value=0.9)}, "k=200")
    document = study_document("analyses", "test", Table("t", "", "variant", (own, difference), (row,)))
    compared = _measures_compared(document, "analyses/test/t", row, own)
    assert compared is not None
    (delta,) = compared.deltas.values()
    assert delta.significant == significant
    if deviation:
        assert delta.bounds == widened(0.02, 0.005, 0.035, spread_of_mean(deviation, 3))
