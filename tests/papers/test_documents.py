"""The papers' tables and figures beside our studies: every cell found, shown and judged, in every printer."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import pytest
from command_line import CommandsOn
from paper_cells import cell, rows_of

from creamtea.papers.catalogue import (
    SIZES,
    Exhibit,
    OfSelection,
    OfSystem,
    exhibits,
    find_exhibit,
    find_paper,
    number,
    papers,
    wanted_cells,
)
from creamtea.report import text
from creamtea.report.export import table_csv, to_latex
from creamtea.report.html import to_html
from creamtea.report.model import Document, Facts, Figure, Table
from creamtea.report.papers import (
    Reports,
    StudyReport,
    build_exhibit,
    build_list,
    exhibit_document,
    find_cell,
    our_values,
)
from creamtea.store.database import Database

Documents = list[tuple[str, Exhibit, Document]]
ALL = [(name, exhibit) for name in papers() for exhibit in exhibits(name)]


# ---------------------------------------------------------------- all of them


@pytest.fixture(scope="module")
def documents(reports: dict[str, Reports]) -> Documents:
    return [(name, exhibit, exhibit_document(reports[name], exhibit)) for name, exhibit in ALL]


def without_figures(document: Document) -> Document:
    """Drawing all of them would take a minute."""
    return replace(
        document,
        sections=tuple(
            replace(section, blocks=tuple(b for b in section.blocks if not isinstance(b, Figure)))
            for section in document.sections
        ),
    )


def shown_tables(document: Document) -> Iterator[Table]:
    for path, block in document.walk():
        if isinstance(block, Table) and path.endswith("/values"):
            yield block


@pytest.mark.slow
def test_every_study_has_the_cells_that_are_named(reports: dict[str, Reports]) -> None:
    missing = []
    checked = set()
    for name, paper in papers().items():
        for exhibit in exhibits(name):
            for size, row, column in product(SIZES, exhibit.rows, exhibit.columns):
                for wanted in wanted_cells(paper, exhibit, size, row, column):
                    checked.add(wanted.collection)
                    for member in wanted.members:
                        report = reports[name].read(wanted.collection, member)
                        assert not isinstance(report, str), report
                        if report is not None and not has_value(report, wanted.place):
                            missing.append((name, exhibit.key, row.title, column.title, wanted))
    assert missing == []
    assert checked == {name for paper in papers().values() for name in paper.collections}


def has_value(report: StudyReport, place: object) -> bool:
    if isinstance(place, OfSelection):
        return place.selection_of in report.spec.systems
    places = [place]
    if isinstance(place, OfSystem) and isinstance(place.system, list):
        places = [place.model_copy(update={"system": system}) for system in place.system]
    found = [find_cell(report.document, one) for one in places]  # type: ignore[arg-type]
    cells = [one and one[1].cells[one[2].key] for one in found]
    return all(cell is not None and (cell.value is not None or cell.words) for cell in cells)


@pytest.mark.slow
def test_at_least_thirty_have_published_and_own_values_side_by_side(documents: Documents) -> None:
    beside = [
        exhibit.key
        for _, exhibit, document in documents
        if any(
            row.setting == "ours" and any(cell.value is not None for cell in row.cells.values())
            for table in shown_tables(document)
            for row in table.rows
        )
    ]
    assert len(beside) >= 30, beside


@pytest.mark.slow
def test_every_published_value_is_on_its_page_and_in_its_files(documents: Documents) -> None:
    for _, exhibit, document in documents:
        page = to_html(without_figures(document))
        for table in shown_tables(document):
            assert table_csv(table).count("published") >= len(exhibit.rows)
            assert to_latex(table).count("published") == len(exhibit.rows)
        for value in (value for row in exhibit.rows for value in row.values if value):
            wanted = (f'class="value">{value}', f'class="value best">{value}')
            assert any(words in page for words in wanted), (exhibit.key, value)


@pytest.mark.slow
def test_figures_are_those_of_the_studies(documents: Documents) -> None:
    for _, exhibit, document in documents:
        figures = [block for _, block in document.walk() if isinstance(block, Figure)]
        listed = [path for path, block in document.walk() if isinstance(block, Table)]
        drawn = len(figures) + sum(not path.endswith("/values") for path in listed)
        assert drawn == sum(len(drawing.members) for drawing in exhibit.drawings), exhibit.key
        for figure in figures:
            assert bool(figure.rows) != any("(not run)" in words for words in figure.missing), exhibit.key


def test_without_a_study_no_cell_is_blank_and_the_one_to_run_first_is_the_small_one(
    no_studies: Database,
) -> None:
    """Figure 3 of NVS has tables of both sizes."""
    for name, exhibit in ALL:
        document = build_exhibit(no_studies, name, exhibit.kind, exhibit.number)
        sizes = {find_paper(name).collections[source.collection].size for source in exhibit.sources}
        small = "ours" in {section.key for section in document.sections}
        assert small == ("ours" in sizes or not sizes), exhibit.label
        for table in shown_tables(document):
            for row in table.rows:
                shown = [text.shown(row.cells[column.key], column).value for column in table.columns]
                assert all(shown), (exhibit.key, row.name)
                if row.setting == "ours" or row.setting.startswith("verdict"):
                    assert set(shown) <= {"not run", "–"}


def test_what_the_authors_have_run_is_not_said_of_this_database(no_studies: Database) -> None:
    document = build_exhibit(no_studies, "entmax", "table", 1)
    facts = {fact.label: fact.value for fact in document.facts}
    assert document.state.startswith("studies here: 0 of ")
    assert facts["in creamtea's documentation"] == "run at our size: 24 of 26 cells"


@pytest.mark.slow
def test_the_list_of_a_paper_has_them_all(our_size: Database) -> None:
    document = build_list(our_size, "scones")
    table = document.table("list/exhibits")
    assert [row.name for row in table.rows] == [exhibit.label for exhibit in exhibits("scones")]
    assert table.rows[2].cells["here"].words == "1 of 7"
    assert table.rows[2].cells["status"].words == "run at our size: 4 of 36 cells"


# ---------------------------------------------------------------- one by one


def test_a_table_has_the_papers_rows_and_columns(our_size: Database) -> None:
    document = build_exhibit(our_size, "scones", "table", 3)
    exhibit = find_exhibit("scones", "table", 3)
    table = document.table("ours/values")
    assert [column.title for column in table.columns] == [column.title for column in exhibit.columns]
    assert [(row.name, row.setting) for row in table.rows] == [
        ("Softmax", "published"),
        ("Softmax", "ours"),
        ("SCONES", "published"),
        ("SCONES", "ours"),
        ("SCONES", "verdict against Softmax"),
        ("Rel. improvement", "published"),
        ("Rel. improvement", "ours"),
    ]
    assert cell(document, "SCONES", "published", "beam 4, en-de").value == "39.8"
    assert cell(document, "Rel. improvement", "published", "greedy, de-en").value == "+2.7 ‡"


def test_our_values_have_intervals_and_the_paired_verdict(our_size: Database) -> None:
    document = build_exhibit(our_size, "scones", "table", 3)
    report = Reports(our_size, find_paper("scones")).read("multi30k", "en-de")
    assert isinstance(report, StudyReport)
    on_dev, systems = (
        {row.name: row.cells["bleu"] for row in report.document.table(f"systems/{name}/systems").rows}
        for name in ("dev", "test2016")
    )
    candidates = [name for name in on_dev if "scones-beam4" in name]
    best = max(candidates, key=lambda name: on_dev[name].value or 0.0)
    own, delta = systems[best], systems[best].delta
    assert own.value is not None
    shown = cell(document, "SCONES", "ours", "beam 4, en-de")
    assert shown.value == f"{own.value:.1f}"
    assert (len(shown.details), shown.note) == (2, f"{best}, the best on dev")
    words = "holds" if delta.value > 0 else "opposite"  # published: +0.4
    outcome = words if delta.significant else "undecided"
    verdict = cell(document, "SCONES", "verdict against Softmax", "beam 4, en-de")
    assert verdict.value.startswith(f"{outcome}: ")
    assert verdict.details


def test_directions_without_a_study_say_which_would_have_them(our_size: Database) -> None:
    document = build_exhibit(our_size, "scones", "table", 3)
    shown = cell(document, "SCONES", "ours", "greedy, fi-en")
    assert (shown.value, shown.note) == ("not run", "only a study at the paper's size has this cell: WMT19")
    assert cell(document, "SCONES", "verdict against Softmax", "greedy, fi-en").value == "not run"


def test_of_several_studies_of_ours_the_one_that_was_run_is_shown(
    g2p: Database, new_store: Callable[..., Database]
) -> None:
    for database in (g2p, new_store("entmax-g2p-half")):
        document = build_exhibit(database, "entmax", "table", 1)
        assert cell(document, "α = 1.5, ε = 0", "ours", "single, WER").value


def test_an_empty_database_says_what_to_run(no_studies: Database) -> None:
    document = build_exhibit(no_studies, "entmax", "table", 6)
    shown = cell(document, "ε = 0", "ours", "EN→DE")
    assert (shown.value, shown.note) == ("not run", "entmax-multi30k is not in this database")
    commands = dict(document.walk())["studies/commands"]
    assert isinstance(commands, Facts)
    assert commands.facts[-1].label == "entmax-multi30k (not in this database)"
    assert commands.facts[-1].value == "creamtea run studies/entmax-multi30k.yaml --data DIR"


def test_numbers_are_in_the_papers_unit(our_size: Database) -> None:
    document = build_exhibit(our_size, "nvs", "table", 2)
    shown = cell(document, "EN-DE sentence", "ours", "k = 200, ITDS")
    assert (shown.value, shown.details) == ("90.0", ("[88.0, 92.0]",))  # 0.9 in the store
    context = rows_of(build_exhibit(our_size, "nvs", "table", 6))["EN-DE All 0.9", "ours"]
    assert all(value.value is not None and value.value <= 1 for value in context.cells.values())


def test_a_latency_is_a_percentage_and_a_rate(our_size: Database) -> None:
    document = build_exhibit(our_size, "nvs", "table", 5)
    assert cell(document, "EN-DE -", "ours", "CPU (ms / %)").value == "99.0"  # ms, the second of six systems
    share = cell(document, "EN-DE NVS λ=0.9", "ours", "CPU (ms / %)")
    assert share.value == f"{100 * 95 / 99:.1f}"
    figure = build_exhibit(our_size, "scones", "figure", 2)
    speed = rows_of(figure)["softmax, greedy", "ours"].cells["c2"]
    assert speed.value == pytest.approx(1000 / 100)
    assert speed.low < speed.value < speed.high


def test_the_size_of_a_selection_is_counted_as_the_paper_counts(our_size: Database) -> None:
    document = build_exhibit(our_size, "nvs", "table", 7)
    assert cell(document, "align k=200", "ours", "Size").value == "1,600,000"  # 200 × 8,000
    assert cell(document, "NVS", "ours", "Size").value == "1,032,000"  # 8,000 × 128 + 8,000
    assert number("6,590,600") == 32953 * 200
    assert number("33,776,825") == 32953 * 1024 + 32953


def test_a_value_that_no_copy_prints_says_so(our_size: Database) -> None:
    shown = cell(build_exhibit(our_size, "entmax", "table", 3), "α = 1, ε = 0", "published", "WMT14")
    assert (shown.value, shown.note) == ("lost", "no copy of the paper that we have prints this value")


def test_claims_of_alike_are_judged(our_size: Database) -> None:
    document = build_exhibit(our_size, "nvs", "table", 5)
    verdict = cell(document, "EN-DE NVS λ=0.9", "verdict against EN-DE -", "newstest2020, BLEU")
    assert verdict.value.split(":")[0] in ("holds", "opposite", "undecided")


def test_a_figure_has_the_printed_points_among_ours(our_size: Database) -> None:
    document = build_exhibit(our_size, "scones", "figure", 3)
    (figure,) = [block for _, block in document.walk() if isinstance(block, Figure)]
    points = {(row["group"], row["x"]): row["y"] for row in figure.rows}
    assert points["softmax, published", 4.0] == 39.6
    assert points["SCONES α = 0.2, published", 4.0] == 39.3
    assert ("softmax", 4) in points
    domain = figure.spec["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert set(domain) == {group for group, _ in points}


def test_the_best_of_several_is_chosen_on_development_text(reports: dict[str, Reports]) -> None:
    report = reports["scones"].read("wmt19", "de-en")
    assert isinstance(report, StudyReport)
    table = report.document.table("systems/newstest2018/systems")
    scores = {row.name: row.cells["bleu"].value or 0.0 for row in table.rows if "scones-greedy" in row.name}
    best = max(scores, key=scores.__getitem__)
    document = exhibit_document(reports["scones"], find_exhibit("scones", "table", 5))
    assert cell(document, "de-en", "ours", "α", "paper").value == best.removeprefix("scones-greedy+alpha=")


def test_missed_subwords_are_shown_for_the_papers_idioms(our_size: Database) -> None:
    document = build_exhibit(our_size, "nvs", "figure", 1)
    pill = "to swal__ low the bitter pill, in den sau__ ren ap__fel bei__ ßen"
    assert cell(document, pill, "published", "missing, k = 200").value == "ap__fel"
    assert cell(document, pill, "ours", "missing, k = 1000").value == "▁kat"
    (table,) = [
        block
        for path, block in build_exhibit(our_size, "nvs", "figure", 5).walk()
        if isinstance(block, Table) and not path.endswith("/values")
    ]
    assert table.title == "Subwords that only the context selects: nvs-idioms"
    assert table.rows[0].name == "rain or shine"


def test_an_idiom_that_is_not_listed_says_so(reports: dict[str, Reports]) -> None:
    exhibit = find_exhibit("nvs", "figure", 1)
    row = exhibit.rows[0].model_copy(update={"names": {"idiom": "apple pie"}})
    (ours,) = our_values(reports["nvs"], exhibit, "ours", row, exhibit.columns[0])
    assert (ours.cell.state, ours.cell.words) == ("absent", "not listed")


def test_both_sizes_stand_apart(reports: dict[str, Reports]) -> None:
    document = exhibit_document(reports["entmax"], find_exhibit("entmax", "table", 4))
    assert [section.title for section in document.sections[:2]] == ["At the paper's size", "At our size"]


# ---------------------------------------------------------------- the command


def test_the_command_lists_a_paper_and_shows_a_table(our_size: Database) -> None:
    run = CommandsOn(our_size)
    assert "Figure 9" in run("report", "--paper", "scones")
    shown = run("report", "--paper", "scones", "--table", "6")
    assert "SCONES (α = 0.2), published" in shown
    assert "scones-multi30k (number 1, succeeded)" in shown
    assert json.loads(run("report", "--paper", "nvs", "--figure", "7", "--json"))["name"] == "NVS, Figure 7"
    for arguments, message in {
        "": "name a study",
        "demo --paper scones": "demo is a study and --paper scones a paper: give one of them",
        "demo --table 3": "--table and --figure belong to a paper: give --paper as well",
        "--paper scones --table 3 --figure 3": "--table and --figure: give one of them",
        "--paper scones --test-set test": "--test-set is for one study, not for a paper",
        "--paper jam": "no paper 'jam'; the papers are scones, nvs, entmax",
        "--paper nvs --figure 2": "the NVS paper has no figure 2 with results",
    }.items():
        assert message in run.refused("report", *arguments.split())
