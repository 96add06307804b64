"""The pages of studies by AppTest: the list, steps, what organisers do, submitting, several compared."""

import re
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from filled_study import ANALYSED, HOSTILE, SPEC, fill_study, lines
from organiser_app import READER, visits
from organiser_app import shown as html
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from table_rows import all_of, row_of

from creamtea.access import sessions
from creamtea.access.sessions import Identity
from creamtea.document.mistakes import StudyErrors
from creamtea.errors import InputError
from creamtea.orders.submission import check_written
from creamtea.report.across_studies import common_test_sets, compared_systems
from creamtea.report.model import Choice, Figure, Notes
from creamtea.store.areas import LogName, write_log
from creamtea.store.artefacts import ArtefactStore
from creamtea.store.database import Database
from creamtea.store.tables import StepRow, StudyRow, StudyStep
from creamtea_webapp.pages import blocks
from creamtea_webapp.pages.organise import shared as pressing
from creamtea_webapp.pages.steps import LINES

REFUSED = "Your link does not open this page"


@pytest.fixture
def visit(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CREAMTEA_ARTEFACTS", str(tmp_path / "artefacts"))
    return visits(database, monkeypatch)


# ---------------------------------------------------------------- the list


def test_the_list_of_studies(
    visit: Any, database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = html(visit())
    assert "creamtea run" in shown  # how to begin
    for way in ("?compare=", "?submit=new"):  # they would lead nowhere
        assert way not in shown
    monkeypatch.setenv("CREAMTEA_DATA", str(tmp_path))
    first, second = (fill_study(database, HOSTILE) for _ in range(2))
    shown = html(visit())
    assert shown.count(">quagga</a>") == 1
    for number in (first, second):
        assert f'href="?study={number}"' in shown
    assert '<span title="tapir-greedy, tapir-lexicon' in shown
    assert re.search(r"[0-9.]+ BLEU \([a-z-]+\)", shown)
    for way in ("?compare=", "?submit=new", "campaigns=all"):
        assert way in shown
    assert "campaigns=all" not in html(visit(READER))


def test_failed_steps_are_not_done(visit: Any, database: Database) -> None:
    fill_study(database, HOSTILE)
    states = all_of(database, select(StepRow.state))
    failed = states.count("failed")
    assert failed
    wanted = f"{len(states) - failed} of {len(states)} steps, 1 without a result, {failed - 1} unavailable"
    with database.transaction() as session:  # all of them are unavailable, which fails no study
        one = session.scalars(select(StepRow).where(StepRow.state == "failed")).first()
        one.error_kind = "deterministic"
    assert wanted in html(visit())


def test_no_half_of_the_answer_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[tuple[list[str], int]] = []
    monkeypatch.setattr(
        *(blocks, "in_rows"),
        lambda placed, draw, width, least: rows.append(([block.key for block, _ in placed], width)),
    )
    monkeypatch.setattr(blocks, "show_block", lambda block, path, level: rows.append(([block.key], 1)))
    ranking, quality = Figure("ranking", "", {}, ()), Choice("quality", "", (), (), "none")
    blocks._blocks([Notes("sentences", ("a.",), lead=True), ranking, quality], "study-1/answer", 2)
    assert rows == [(["sentences", "ranking"], 2), (["quality"], 1)]


@pytest.mark.parametrize(
    ("asked", "title"),
    [(1, "This study cannot be read here"), (99, "No such study"), ("<img src=x>", "No such study")],
)
def test_why_there_is_no_report(database: Database, visit: Any, asked: int | str, title: str) -> None:
    fill_study(database, HOSTILE)
    with database.transaction() as writing:
        (row,) = writing.scalars(select(StudyRow))
        system = {**row.spec["systems"]["tapir-greedy"], "search": {"kind": "steeped"}}
        row.spec = {**row.spec, "systems": {**row.spec["systems"], "tapir-greedy": system}}
    page = html(visit(study=asked))
    assert f"<h1>{title}</h1>" in page
    assert ("&lt;img src=x&gt;" in page, "<img" in page) == (asked == "<img src=x>", False)


# ---------------------------------------------------------------- steps and logs


def test_steps_and_their_logs_are_text_for_organisers(visit: Any, database: Database, tmp_path: Path) -> None:
    number = fill_study(database, HOSTILE)
    with database.transaction() as writing:
        query = select(StudyStep.node, StepRow).join(StepRow, StepRow.key == StudyStep.step_key)
        place, step = writing.execute(query.where(StepRow.state == "failed")).first()
        step.error, key = "no <b>jam</b>", step.key
    listed = html(visit(study=number, step=""))
    assert f">{place}</a>" in listed
    assert 'data-sort="' in listed  # how long it took
    assert html(visit(study=number, step="no such step")) == listed
    shown = html(visit(study=number, step=place))
    assert "no log" in shown
    assert "Events" not in shown

    lines = [f"line {line}" for line in range(LINES + 50)]
    log = "\n".join([*lines, "<script>alert(1)</script>"])
    write_log(ArtefactStore(tmp_path / "artefacts"), key, LogName(3, 0), log.encode())
    shown = html(visit(study=number, step=place))
    assert shown.index("no &lt;b&gt;jam&lt;/b&gt;") < shown.index("line 249")  # the reason comes first
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<script>" not in shown
    assert "line 50\n" not in shown
    assert "51 earlier lines" in shown
    for role in ("reader", "rater"):
        assert place not in html(visit(Identity(7, role), study=number, step=place))


# ---------------------------------------------------------------- what organisers do


def state(database: Database, study: int) -> str:
    return row_of(database, StudyRow, study).state


@pytest.mark.slow
def test_an_organiser_cancels_and_retries(visit: Any, database: Database) -> None:
    study = fill_study(database, HOSTILE)
    with database.transaction() as writing:
        writing.get_one(StudyRow, study).state = "running"
        some = writing.scalars(select(StepRow).where(StepRow.kind == "latency")).one()
        some.state, some.finished_at = "pending", None
    app = visit(study=study)
    assert "Progress" in html(app)
    app.button(key="cancel-study").click().run()
    assert state(database, study) == "cancelled"
    app.button(key="retry-study").click().run()
    assert state(database, study) == "queued"
    assert "creamtea controller" in html(app)
    reader = visit(READER, study=study)
    assert not [button for button in reader.button if button.key in ("cancel-study", "retry-study")]


@pytest.mark.slow
def test_a_link_to_one_report_is_made_once_for_a_double_click_and_revoked(
    visit: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pressing, "DOUBLE_CLICK", 3600)
    study, other = fill_study(database, HOSTILE), fill_study(database, HOSTILE, ANALYSED)
    app = visit(study=study)
    app.number_input(key="share-days").set_value(3)
    for _ in range(2):
        app.button(key="share-make").click().run()
    (code,) = [block.value for block in app.code]
    opened = sessions.exchange(database, code.partition("#")[2])
    assert opened.lifetime <= timedelta(days=3)
    who = sessions.identify(database, opened.secret)
    assert (who.role, who.study_id) == ("reader", study)

    assert "quagga" in html(visit(who))
    assert "quagga" in html(visit(who, study=study))
    assert "/?study=" not in html(visit(who))  # no way to anything else
    for query in ({"study": other}, {"study": "quokka"}, {"campaigns": "all"}):
        page = visit(who, **query)
        assert [error.value for error in page.error if REFUSED in error.value]
        assert "quokka" not in html(page)
    for query in ({"papers": "all"}, {"study": study, "step": ""}):
        assert "quagga" in html(visit(who, **query)), "whatever else is asked for, it is the report"

    app = visit(study=study)
    (link,) = [link for link in sessions.list_links(database) if link.study_id == study]
    app.button(key=f"share-revoke-{link.id}").click().run()
    assert sessions.identify(database, opened.secret) is None


def test_a_deleted_study_takes_its_links_with_it(database: Database) -> None:
    study = fill_study(database, HOSTILE)
    secret = sessions.exchange(database, sessions.create_link(database, "reader", study_id=study)).secret
    with database.transaction() as writing:
        writing.delete(writing.get_one(StudyRow, study))
    assert sessions.identify(database, secret) is None
    assert sessions.list_links(database) == []


# ---------------------------------------------------------------- several studies


@pytest.fixture
def studies(database: Database) -> list[int]:
    """Two with a test set in common, and one with another."""
    other = SPEC | {
        "name": "zebra",
        "test_sets": {"narwhal": {"kind": "synthetic", "corpus": "okapi", "lines": 30}},
    }
    return [fill_study(database, HOSTILE, document) for document in (SPEC, ANALYSED, other)]


def test_systems_of_both_stand_in_one_table(database: Database, studies: list[int]) -> None:
    with database.session() as reading:
        rows = [reading.get_one(StudyRow, number) for number in studies[:2]]
        ((key, common),) = common_test_sets(reading, rows).items()
        table = compared_systems(reading, key, common).table
        assert common_test_sets(reading, reading.scalars(select(StudyRow)).all()) == {}
    names = [row.name for row in table.rows]
    assert {"quagga: tapir-greedy", "quagga: tapir-lexicon"} < set(names)
    assert "quokka: tapir-lexicon+k=200" in names
    assert {column.group for column in table.columns} == {"quality", "recall", "outputs"}
    assert all(cell.delta is None for row in table.rows for cell in row.cells.values())
    first, same = (
        table.rows[names.index("quagga: tapir-greedy")].cells,
        table.rows[names.index("quokka: tapir-greedy")].cells,
    )
    bleu = next(column.key for column in table.columns if column.key.startswith("bleu"))
    assert first[bleu].value == same[bleu].value
    scores = [row.cells[bleu].value or 0.0 for row in table.rows]
    assert scores == sorted(scores, reverse=True)


def test_a_test_set_under_two_names_is_compared_once(database: Database) -> None:
    again = SPEC["test_sets"] | {f"{name}-again": text for name, text in SPEC["test_sets"].items()}
    numbers = [fill_study(database, HOSTILE, SPEC | {"name": n, "test_sets": again}) for n in ("emu", "rhea")]
    with database.session() as reading:
        common = common_test_sets(reading, [reading.get_one(StudyRow, number) for number in numbers])
    assert [[own.number for own in both] for both in common.values()] == [numbers] * len(SPEC["test_sets"])
    assert not [own for both in common.values() for own in both if own.test_set.endswith("-again")]


def test_what_is_compared_and_what_is_not(visit: Any, database: Database, studies: list[int]) -> None:
    page = compared(visit, studies[0], *studies[:2])  # asked for twice
    assert page.multiselect(key="compare-studies").value == studies[:2]
    assert "quokka: tapir-greedy" in page.multiselect[1].options
    assert "&lt;script&gt;document.title" in html(page)
    assert "no test set in common" in html(compared(visit, studies[0], studies[2]))
    assert "Choose at least two" in html(compared(visit, studies[0], 999))
    of_one_report = Identity(1, "reader", study_id=studies[0])
    assert "Studies compared" not in html(compared(visit, *studies[:2], who=of_one_report))
    with database.transaction() as writing:
        row = writing.get_one(StudyRow, studies[1])
        row.spec = {**row.spec, "forgotten": 1}  # as of another version
    assert "run it again" in html(compared(visit, *studies[:2]))


def test_the_outputs_of_another_test_set_begin_with_its_first_page(visit: Any, database: Database) -> None:
    sets = SPEC["test_sets"] | {"oryx": {"kind": "synthetic", "corpus": "okapi", "lines": 41}}
    numbers = [
        fill_study(database, lines(40), SPEC | {"name": name, "test_sets": sets})
        for name in ("quagga", "zebra")
    ]
    page = compared(visit, *numbers)
    page.number_input[0].set_value(4).run()
    assert shown_segments(page)[0] == 31
    next(box for box in page.selectbox if box.label == "Test set").select_index(1).run()
    assert shown_segments(page)[0] == 1


def shown_segments(app: AppTest) -> list[int]:
    return [int(number) for number in re.findall(r'class="where">(\d+)<', html(app))]


def compared(visit: Any, *studies: int, who: Identity = READER) -> AppTest:
    return visit(who, compare=",".join(map(str, studies)))


# ---------------------------------------------------------------- submitting a study


def study(**files: str) -> str:
    """A study of given outputs, in files of these names by default."""
    names = {"source": "test.en", "target": "test.de", "outputs": "mt.de"} | files
    return yaml.safe_dump(
        {
            "name": "given",
            "languages": {"source": "en", "target": "de"},
            "systems": {"mt": {"outputs": {"test": names["outputs"]}}},
            "test_sets": {"test": {"kind": "files", "source": names["source"], "target": names["target"]}},
            "metrics": [{"kind": "bleu"}],
            "baseline": "mt",
        }
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("test.en", "test.de", "mt.de"):
        (folder / name).write_text("ein Satz\n" * 3)
    (tmp_path / "secret.txt").write_text("ein Satz\n" * 3)
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "within.txt").symlink_to(folder / "test.de")
    return folder


def test_files_inside_of_the_folder_are_read(data: Path) -> None:
    written = check_written(study(target="within.txt"), data)
    assert written.name == "given"
    assert "score" in written.planned.kinds()


@pytest.mark.parametrize(
    "name", ["../secret.txt", "{above}/secret.txt", "link.txt", "../none.txt", "a/../../secret.txt"]
)
@pytest.mark.parametrize("role", ["source", "outputs"])
def test_a_path_out_of_the_folder_is_a_mistake_that_tells_nothing(role: str, name: str, data: Path) -> None:
    with pytest.raises(StudyErrors) as refused:
        check_written(study(**{role: name.format(above=data.parent)}), data)
    (line,) = [line for line in refused.value.lines if "outside" in line]
    assert line.startswith("study:")
    assert "no such file" not in line


def test_a_metrics_checkpoint_stays_inside_too(data: Path) -> None:
    text = study().replace("kind: bleu", "kind: comet\n  model: ../secret.txt")
    with pytest.raises(InputError, match="outside"):
        check_written(text, data)
    assert (
        check_written(study().replace("kind: bleu", "kind: comet\n  model: some/name"), data).name == "given"
    )


def test_an_overlong_text_is_not_parsed(data: Path) -> None:
    with pytest.raises(InputError, match="characters"):
        check_written("#" * 300_000, data)


@pytest.fixture
def submitting(visit: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`submitting(who)`: the page on which studies are submitted."""
    monkeypatch.setenv("CREAMTEA_DATA", str(data))
    return partial(visit, submit="new")


def submitted(database: Database) -> list[tuple[str, str]]:
    return [(row.name, row.state) for row in all_of(database, select(StudyRow).order_by(StudyRow.id))]


def test_an_organiser_corrects_and_submits(submitting: Any, database: Database) -> None:
    app = submitting()
    app.text_area(key="submit-text").set_value("name: <img src=x>\nsystem: {}\n").run()
    assert "study:" in html(app)
    assert "&lt;img src=x&gt;" in html(app)
    assert not app.button
    app.text_area(key="submit-text").set_value(study()).run()
    assert "given is valid" in html(app)
    app.button(key="submit-study").click().run()
    assert submitted(database) == [("given", "queued")]
    assert "creamtea controller" in html(app)
    app.text_area(key="submit-text").set_value(f"description: better\n{study()}").run()
    assert "will be cancelled" in html(app)
    app.button(key="submit-study").click().run()
    assert submitted(database) == [("given", "cancelled"), ("given", "queued")]


def test_a_file_is_taken_as_it_is_or_refused(submitting: Any) -> None:
    app = submitting()
    written = f"description: grün\n{study()}"
    app.file_uploader(key="submit-file").set_value(
        ("new.yaml", written.encode("utf-8-sig"), "text/yaml")
    ).run()
    assert app.text_area(key="submit-text").value == written
    assert "given is valid" in html(app)
    app.file_uploader(key="submit-file").set_value(("old.yaml", written.encode("latin-1"), "text/yaml")).run()
    assert "old.yaml, line 1: not UTF-8 text" in html(app)
    assert app.text_area(key="submit-text").value == written


def test_only_organisers_of_a_server_with_a_folder_submit(submitting: Any) -> None:
    reader = submitting(READER)
    assert [error.value for error in reader.error if "does not open this page" in error.value]
    assert not reader.text_area


def test_without_a_folder_the_page_says_what_to_do(submitting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREAMTEA_DATA", raising=False)
    app = submitting()
    assert "CREAMTEA_DATA" in html(app)
    assert not app.text_area
