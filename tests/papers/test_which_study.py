"""Which study's values a paper's table shows and compares, and what it says where a study lacks them."""

import json
from collections.abc import Callable

import pytest
from paper_cells import cell, rows_of, study_document
from paper_rows import fill
from sqlalchemy import delete, select, update

from creamtea.contract.step import Column
from creamtea.papers.catalogue import OfAnalysis, OfSystem, exhibits, find_paper, settings_of
from creamtea.report.model import Cell, Document, Facts, Row, Table, Warnings
from creamtea.report.papers import (
    Outcome,
    Reports,
    StudyReport,
    _best,
    _measures_compared,
    build_exhibit,
    find_cell,
    judge,
    our_values,
    selection_size,
    settings_apart,
)
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


def test_a_study_that_has_not_finished_does_not_hide_one_that_has(
    g2p: Database, new_store: Callable[..., Database]
) -> None:
    database = new_store("g2p", "entmax-g2p-half")
    with database.transaction() as writing:
        half = writing.scalars(select(StudyRow).where(StudyRow.name == "entmax-g2p-half")).one()
        places = select(StudyStep.step_key).where(StudyStep.study_id == half.id)
        writing.execute(delete(Metric).where(Metric.step_key.in_(places)))
        writing.execute(update(StepRow).where(StepRow.key.in_(places)).values(state="pending"))
        half.state = "queued"
    shown, alone = (
        cell(build_exhibit(store, "entmax", "table", 1), "α = 1.5, ε = 0", "ours", "single, WER")
        for store in (database, g2p)
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
    difference = found[1].cells["recall_difference"]
    document = build_exhibit(our_size, "nvs", "figure", 4)
    verdict = rows_of(document)["EN-DE NVS", "verdict against EN-DE align"].cells["c0"]
    assert verdict.value == pytest.approx(100 * (difference.value or 0.0))
    assert (verdict.low, verdict.high) == pytest.approx((100 * difference.low, 100 * difference.high))


@pytest.mark.parametrize(("low", "significant"), [(0.005, True), (-0.005, False)])
def test_two_measures_of_a_model_are_judged_by_their_difference(low: float, significant: bool) -> None:
    own = Column("recall_nvs", "NVS recall", 1)
    difference = Column("recall_difference", "Δ", 1, less=("recall_nvs", "recall_lexicon"))
    cell = Cell("ok", value=0.02, low=low, high=0.035, deviation=0.01, seeds=3)  # over seeds, too
    row = Row("general", {"recall_difference": cell, "recall_nvs": Cell("ok", value=0.9)}, "k=200")
    document = study_document("analyses", "test", Table("t", "", "variant", (own, difference), (row,)))
    compared = _measures_compared(document, "analyses/test/t", row, own)
    (delta,) = compared[2].values()
    assert (delta.significant, delta.bounds) == (significant, (low, 0.035))


# ---------------------------------------------------------------- what ran


def ran(document: Document) -> list[tuple[str, str]]:
    return [
        (path.split("/")[0], f"{fact.label}: {fact.value}")
        for path, block in document.walk()
        if isinstance(block, Facts) and block.key == "ran"
        for fact in block.facts
    ]


def test_each_study_says_what_it_trained_below_its_size(new_store: Callable[..., Database]) -> None:
    document = build_exhibit(new_store("entmax-g2p", "g2p"), "entmax", "table", 1)
    models = "1,000 updates, 60,600,000 parameters; 30,000 training pairs"
    assert ran(document) == [
        ("paper", f"trained here by entmax-g2p, number 1: 30 models, {models}"),
        ("ours", f"trained here by g2p, number 2: 31 models, {models}"),
    ]


def test_models_of_several_sizes_are_a_range(new_store: Callable[..., Database]) -> None:
    database = new_store("entmax-g2p-half")
    with database.transaction() as writing:
        train = writing.scalars(select(StudyStep).where(StudyStep.node.like("train/%"))).first()
        mine = (Metric.step_key == train.step_key, Metric.name == "updates")
        writing.execute(update(Metric).where(*mine).values(value=90.0))
    (only,) = ran(build_exhibit(database, "entmax", "table", 1))
    assert only[1].split(": ")[1].startswith("6 models, 90 to 1,000 updates, 60,600,000 parameters")


def test_a_study_that_trained_nothing_yet_says_so(new_store: Callable[..., Database]) -> None:
    database = new_store("entmax-g2p-half")
    with database.transaction() as writing:
        steps = select(StudyStep.step_key)
        writing.execute(delete(Metric).where(Metric.step_key.in_(steps)))
        writing.execute(update(StepRow).where(StepRow.key.in_(steps)).values(state="pending"))
        writing.scalars(select(StudyRow)).one().state = "queued"
    (only,) = ran(build_exhibit(database, "entmax", "table", 1))
    assert only == ("ours", "trained here by entmax-g2p-half, number 1: none has finished")


def test_no_study_here_needs_no_line(no_studies: Database) -> None:
    assert ran(build_exhibit(no_studies, "entmax", "table", 1)) == []


def warned(document: Document) -> list[str]:
    return [
        warning.line()
        for _, block in document.walk()
        if isinstance(block, Warnings)
        for warning in block.warnings
    ]


def test_a_study_with_other_settings_than_the_published_one_is_warned_of(
    new_store: Callable[..., Database],
) -> None:
    database = new_store("entmax-g2p-half")
    assert warned(build_exhibit(database, "entmax", "table", 1)) == []
    with database.transaction() as writing:
        study = writing.scalars(select(StudyRow)).one()
        spec = json.loads(json.dumps(study.spec))
        spec["variants"]["softmax"]["training"]["max_epochs"] = 1
        spec["description"] = "smaller"
        study.spec = spec
    [line] = warned(build_exhibit(database, "entmax", "table", 1))
    assert line == (
        "entmax-g2p-half, number 1: it differs from studies/entmax-g2p-half.yaml in "
        "variants.softmax.training.max_epochs. It may be a study of another size. `creamtea run "
        "studies/entmax-g2p-half.yaml --data DIR` runs ours."
    )


def test_settings_apart_are_those_of_what_both_studies_have() -> None:
    other = {"name": "a", "systems": {"x": {"width": 1}, "y": {"width": 1}}, "analyses": {"z": {"k": [1]}}}
    assert settings_apart({**other, "name": "b", "resources": {"train": {"cpus": 2}}}, other) == []
    own = {"name": "a", "systems": {"x": {"width": 2, "depth": 1}, "new": {}}, "analyses": None}
    assert settings_apart(own, other) == ["systems.x.width", "systems.x.depth"]


@pytest.mark.parametrize("file", ["studies/g2p.yaml", "studies/none.yaml"])
def test_where_studies_are_not_installed_nothing_is_compared(file: str) -> None:
    assert (settings_of(file, ()) is None) == file.endswith("none.yaml")


# ---------------------------------------------------------------- our systems


def distances(first: float | None, second: float | None) -> Document:
    """Two systems' distances on dev."""
    column = Column("levenshtein", "Levenshtein", 2, "lower")
    rows = tuple(
        Row(name, {"levenshtein": Cell("pending" if value is None else "ok", value=value)})
        for name, value in (("a", first), ("b", second))
    )
    table = Table("systems", "", "system", (column,), rows)
    return study_document("systems", "dev", table)


def test_a_study_that_has_begun_anew_does_not_hide_the_finished_one(
    new_store: Callable[..., Database],
) -> None:
    database = new_store("g2p")
    fill(database, "g2p")
    with database.transaction() as writing:
        first, second = writing.scalars(select(StudyRow).order_by(StudyRow.id))
        first.state, second.state = "succeeded", "queued"
        expected = first.id
    report = Reports(database, find_paper("entmax")).read("few-languages", "words")
    assert isinstance(report, StudyReport)
    assert report.number == expected


@pytest.mark.parametrize(("first", "second", "chosen"), [(0.5, 1.9, "a"), (1.9, 0.5, "b"), (0.5, 0.5, "a")])
def test_the_best_is_the_lowest_where_lower_is_better(
    first: float | None, second: float | None, chosen: str
) -> None:
    place = OfSystem(system=["a", "b"], test_set="test", metric="levenshtein", chosen_on="dev")
    best = _best(distances(first, second), place)
    assert isinstance(best, OfSystem)
    assert best.system == chosen


def test_while_one_has_no_value_none_is_the_best() -> None:
    place = OfSystem(system=["a", "b"], test_set="test", metric="levenshtein", chosen_on="dev")
    note = "the best on dev is not known: b: pending"
    assert _best(distances(0.5, None), place) == Cell("pending", note, words="not chosen")
    place = place.model_copy(update={"system": ["a", "c"]})
    note = "the best on dev is not known: c: it is not in the study"
    assert _best(distances(0.5, None), place) == Cell("absent", note, words="not chosen")


@pytest.mark.parametrize(
    ("key", "own", "other", "factor"),
    [
        ("figure-3", ("softmax", "beam 1,000"), ("softmax", "beam 4"), 1),
        ("figure-3", ("SCONES α = 0.2", "beam 1,000"), ("softmax", "beam 1,000"), 1),
        ("figure-4", ("softmax", "beam 1,000"), ("softmax", "beam 4"), 1),
        ("figure-6", ("SCONES α = 1.0", "gap"), ("SCONES α = 0.2", "gap"), 1),
        (
            "figure-6",
            ("SCONES α = 1.0", "deviation of log p best"),
            ("SCONES α = 0.2", "deviation of log p best"),
            1,
        ),
        ("figure-7", ("SCONES α = 0.2", "beam 64"), ("softmax", "beam 64"), 100),
        ("figure-7", ("SCONES α = 0.5", "beam 64"), ("SCONES α = 0.2", "beam 64"), 100),
    ],
)
def test_claims_about_analyses_are_judged_by_paired_differences(
    our_size: Database, key: str, own: tuple[str, str], other: tuple[str, str], factor: float
) -> None:
    (exhibit,) = [exhibit for exhibit in exhibits("scones") if exhibit.key == key]
    reports = Reports(our_size, find_paper("scones"))
    rows = {row.title: row for row in exhibit.rows}
    columns = {column.title: column for column in exhibit.columns}
    ours, theirs = (
        our_values(reports, exhibit, "ours", rows[row], columns[column])[0] for row, column in (own, other)
    )
    higher = judge(ours, theirs, "higher")  # every difference of these studies is 0.1
    assert (higher.difference, higher.low, higher.high) == pytest.approx(
        (0.1 * factor, 0.05 * factor, 0.15 * factor)
    )
    assert higher.outcome == Outcome.HOLDS
    assert judge(theirs, ours, "higher").outcome == Outcome.OPPOSITE
