"""Errors beside their field, and where the button was pressed, in every form of the organiser's pages."""

import ast
import re
from pathlib import Path

import pytest
from filled_study import QUAGGA
from organiser_app import Visit, order, place_of_error, ran, visits
from ready_campaigns import draft_campaign
from streamlit.testing.v1 import AppTest

import creamtea
import creamtea_webapp
from creamtea.human.making import campaigns
from creamtea.human.making.campaigns import CampaignRequest
from creamtea.human.making.settings import declarations
from creamtea.human.rating import raters
from creamtea.store.database import Database
from creamtea_webapp.pages import submit
from creamtea_webapp.pages.organise.shared import LABELS


@pytest.fixture
def database(ready: Database) -> Database:
    draft_campaign(ready, "tasting", CampaignRequest(**QUAGGA))
    return ready


@pytest.fixture
def visit(database: Database, monkeypatch: pytest.MonkeyPatch) -> Visit:
    return visits(database, monkeypatch)


def pressed(app: AppTest, key: str) -> AppTest:
    button = next(one for one in app.button if one.key == key or key in one.label)
    return ran(button.click().run())


def test_of_an_import(visit: Visit) -> None:
    app = pressed(visit(campaigns="import"), "Import")
    assert place_of_error(app, "Enter a campaign name") == "import-name"
    app.text_input(key="import-name").set_value("again")
    app = pressed(app, "Import")
    assert place_of_error(app, "Choose a file") == "import-file"
    app.file_uploader(key="import-file").set_value([("x.csv", b"item,system\n", "text/csv")])
    app = pressed(app, "Import")
    assert place_of_error(app, "x.csv") == "import-kind"  # nobody recognises it
    app.selectbox(key="import-kind").set_value("csv")
    app.text_input(key="import-source_language").set_value("de")
    app = pressed(app, "Import")
    assert place_of_error(app, "go together") == "import-source_language"
    app.file_uploader(key="import-sources").set_value([("s.txt", b"a\n", "text/plain")])
    app.text_input(key="import-source_language").set_value("")
    app = pressed(app, "Import")
    assert place_of_error(app, "is only for “Kind of file” appraise") == "import-sources"
    (texts,) = [one for one in app.expander if "Appraise" in one.label]
    assert texts.proto.expanded


def test_of_raters(visit: Visit, database: Database) -> None:
    raters.add(database, "tasting", "test", pseudonym="anna")
    app = visit(campaign=1, view="raters")
    app.text_input(key="add-pseudonym").set_value("anna")
    app = pressed(app, "Add and make a link")
    assert "add-rater" in place_of_error(app, "already")  # fields and button are one row
    app = pressed(app, "Make links (CSV)")
    assert "many-raters" in place_of_error(app, "not both")


def test_of_a_draft(visit: Visit, database: Database) -> None:
    app = visit(campaigns="new")
    for widget, key, value, words, right in (
        ("text_input", "name", "", "Enter a campaign name", "other"),
        ("text_input", "name", "tasting", "already exists", "other"),
        ("text_area", "raters.questions", "ask | one", "line 1", ""),
        ("text_input", "raters.completion_url", "nowhere", "not an address", ""),
        ("number_input", "controls.bad_references", 1.5, "found 1.5", 0),  # from 1 on it is a number of items
        (
            "multiselect",
            "systems-quagga",
            ["tapir-greedy"],
            "list them as “Systems”",
            ["tapir-nvs", "dugong-greedy"],
        ),
        ("selectbox", "baseline-quagga", "tapir-greedy", "use one of tapir-nvs, dugong-greedy", None),
        ("file_uploader", "documents", [("d.tsv", b"a\tb\tc\n", "text/plain")], "d.tsv, line 1: found", []),
    ):
        getattr(app, widget)(key=f"campaign-{key}").set_value(value)
        app = pressed(app, "make")
        assert place_of_error(app, words) == f"campaign-{key}"
        assert sum("<" in one and words in one for one in order(app)) == 2  # and above the button
        getattr(app, widget)(key=f"campaign-{key}").set_value(right)
    assert [one.name for one in campaigns.summaries(database)] == ["tasting"]


def test_names_that_look_like_options_stay_as_they_are(visit: Visit, database: Database) -> None:
    """Neither is rewritten, nor does it say which field is wrong."""
    draft_campaign(database, "nvs--pairs", CampaignRequest(**QUAGGA))
    app = visit(campaigns="new")
    app.text_input(key="campaign-name").set_value("nvs--pairs")
    app = pressed(app, "make")
    assert place_of_error(app, "nvs--pairs") == "campaign-name"
    app = visit(campaigns="import")
    app.text_input(key="import-name").set_value("other")
    app.file_uploader(key="import-file").set_value([("nvs--protocol.csv", b"", "text/csv")])
    app = pressed(app, "Import")
    assert place_of_error(app, "nvs--protocol.csv: an empty file") == "import-file"


# options in texts that no page shows, or that stand in a command to be copied
OF_COMMANDS = {
    "human": {"--batch-info", "--reason", "--wmt"},  # of commands to be copied
    "document.document": {"--set"},  # pages override nothing
    "orders.submission": {"--make-anew"},
    "papers.catalogue": {"--set", "--data", "--paper", "--table"},
    "report.export": {"--export"},
    "settings": {"--url"},  # checked before the server begins
    "server": {"--host", "--port"},
}


def modules_of_pages() -> dict[str, ast.Module]:
    """What the web app imports, and the process that tries a system out, by their names in the packages."""
    files = {
        ".".join(
            file.relative_to(Path(package.__file__ or "").parents[1]).with_suffix("").parts
        ).removesuffix(".__init__"): file
        for package in (creamtea, creamtea_webapp)
        for file in Path(package.__file__ or "").parent.rglob("*.py")
    }
    waiting = [name for name in files if name.startswith("creamtea_webapp.")] + ["creamtea.engine.try_out"]
    found: dict[str, ast.Module] = {}
    while waiting:
        name = waiting.pop()
        if name in found or name not in files or name.startswith("creamtea.cli"):
            continue
        found[name] = ast.parse(files[name].read_text(encoding="utf-8"))
        for node in ast.walk(found[name]):
            if isinstance(node, ast.ImportFrom) and node.module:
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return {name.partition(".")[2]: tree for name, tree in found.items()}


@pytest.mark.slow
def test_every_option_of_a_message_has_a_label_on_pages() -> None:
    """Or is one of the command line alone."""
    modules = modules_of_pages()
    assert {"human.formats.appraise", "engine.try_out", "study.data_files"} <= set(modules)
    for name, tree in modules.items():
        labels = {*LABELS, "leave-out", "output"} if name.startswith("human.") else {*LABELS, *submit.LABELS}
        known = OF_COMMANDS.get("human" if name.startswith("human.") else name, set())
        texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "option":
                option = getattr(node.args[0], "value", None)
                assert option is None or option in labels, (name, option)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("key_name", "wrong"):
                key = getattr(node.args[0], "value", None)
                assert key is None or key in declarations(), (name, key)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
                written = set(re.findall(r"(?<![\w-])(?<!list )--[a-z][a-z-]+", node.value))
                assert written <= known, f"{name}: write option(...), so that a page names its field"


def test_of_a_rater(visit: Visit, database: Database) -> None:
    rater = raters.add(database, "tasting", "test", pseudonym="anna")
    app = pressed(visit(campaign=1, view="raters", rater=rater), "decide")
    assert place_of_error(app, "give a reason") == "reason"
    app = pressed(app, "forget")
    assert place_of_error(app, "not the rater") == "forget-confirmation"
