"""The arrows and agreements that the tree promises (docs/architecture.md)."""

import ast
import importlib
import inspect
import json
import platform
import re
import subprocess
import sys
import tomllib
import typing
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from limits import ANSWER
from pydantic import TypeAdapter
from slowest import SLOWEST

from creamtea.contract.step import OWN_STEP_KINDS
from creamtea.methods.analysis import ANALYSES
from creamtea.methods.family import Method, implementation
from creamtea.methods.objectives import Objective, Scones
from creamtea.methods.plugins import FAMILIES
from creamtea.report import html
from creamtea.steps.catalogue import STEP_KINDS
from creamtea.words import UNSPACED_LANGUAGES, characters, count_words, is_unspaced, main_language

ROOT = Path(__file__).resolve().parents[2]
CHANGES_PATH = re.compile(r"^sys\.path\.", re.MULTILINE)


def test_the_source_roots_are_no_packages() -> None:
    # platform/__init__.py would shadow the standard library's module and break Ray, torch and pytest.
    for root in ("platform", "workers", "webapp", "migrations", "tests"):
        assert not (ROOT / root / "__init__.py").exists()
    assert platform.python_implementation() == "CPython"


def test_modules_that_tests_share_have_names_of_their_own() -> None:
    # their folders are on one path (pytest's `pythonpath`): of two with one name the second would be hidden
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = [ROOT / folder for folder in settings["tool"]["pytest"]["ini_options"]["pythonpath"]]
    names = Counter(path.stem for folder in folders for path in folder.glob("*.py"))
    shared = {name: count for name, count in names.items() if not name.startswith("test_")}
    assert [name for name, count in shared.items() if count > 1 and name != "conftest"] == []
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    assert [path for path in files if CHANGES_PATH.search(path.read_text(encoding="utf-8"))] == []


def test_no_module_gives_a_name_twice() -> None:
    # the second WIDTH of a module, for exported figures, once replaced the one that labels are placed by
    roots = ("platform/creamtea", "workers/creamtea_workers", "webapp/creamtea_webapp")
    twice = []
    for path in (file for root in roots for file in (ROOT / root).rglob("*.py")):
        names = Counter[str]()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names[node.name] += 1
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                parts = (part for target in targets for part in ast.walk(target))
                names.update(part.id for part in parts if isinstance(part, ast.Name))
        twice += [f"{path.name}: {name}" for name, count in names.items() if count > 1]
    assert twice == []


def test_the_slowest_files_are_there_once() -> None:
    assert [name for name in SLOWEST if not (ROOT / "tests" / name).is_file()] == []
    assert len(set(SLOWEST)) == len(SLOWEST)


def test_each_kind_of_step_has_its_function_and_each_file_of_steps_a_kind() -> None:
    files = {p.stem for p in (ROOT / "workers/creamtea_workers/steps").glob("*.py")} - {"__init__"}
    assert files == {kind.module.rpartition(".")[2] for kind in STEP_KINDS.values()}
    for kind in STEP_KINDS.values():
        assert callable(getattr(importlib.import_module(kind.module), kind.function))


# ---------------------------------------------------------------- imports


WITHOUT_TORCH = ("buckets", "scores", "texts")
MODULES = ["creamtea.report.build", *(f"creamtea_workers.steps.{step}" for step in WITHOUT_TORCH)]
SLOW = {"alembic", "ray", "sacremoses", "scipy.special", "scipy.stats", "streamlit", "torch"}
OF_WORKERS = [
    "creamtea.engine.executors.ray",
    "creamtea_workers.steps.train",
    "creamtea_workers.steps.decode",
]
NO_WORKERS = {"alembic", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats", "sqlalchemy"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "modules, slow",
    [pytest.param(MODULES, SLOW, id="reports, no torch"), pytest.param(OF_WORKERS, NO_WORKERS, id="workers")],
)
def test_reports_and_workers_import_nothing_slow_in_vain(modules: list[str], slow: set[str]) -> None:
    code = f"import sys, {', '.join(modules)}; print(*sorted({slow!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=ANSWER)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


# ---------------------------------------------------------------- methods


METHODS = [
    pytest.param(method, family.functions, id=f"{family.noun} {kind}")
    for family in FAMILIES
    if family.functions
    for kind, method in family.kinds.items()
]


@pytest.mark.parametrize(("method", "functions"), METHODS)
def test_a_method_has_its_module_with_the_functions_of_its_family(
    method: type[Method], functions: tuple[str, ...]
) -> None:
    module = implementation(method.model_construct())
    for name in functions:
        function = getattr(module, name)
        first = next(iter(inspect.signature(function).parameters))
        taken: Any = typing.get_type_hints(function)[first]
        assert issubclass(method, taken), f"{name} is of {taken.__name__}"


def test_no_plugin_may_take_the_name_of_a_step_of_creamteas_own() -> None:
    assert set(STEP_KINDS) == OWN_STEP_KINDS


def test_a_bare_family_takes_any_of_its_kinds() -> None:
    read: Any = TypeAdapter(Objective).validate_python({"kind": "scones", "alpha": 0.3})
    assert read == Scones(kind="scones", alpha=0.3)


@pytest.mark.parametrize("kind", ANALYSES.kinds)
def test_an_analysis_has_its_step(kind: str) -> None:
    step = ANALYSES.kinds[kind].step
    assert step.name == kind
    assert STEP_KINDS[kind] is step


# ---------------------------------------------------------------- templates


WEBAPP = ROOT / "webapp" / "creamtea_webapp"
MARKUP = WEBAPP / "markup.py"


def by_hand(source: str) -> list[str]:
    """Return the calls of a module that only markup.py may make."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id="st"), attr="html"))
                | ast.keyword(arg="unsafe_allow_html")
                | ast.Import(names=[ast.alias(name="html" | "markupsafe")])
                | ast.ImportFrom(module="html" | "markupsafe")
            ):
                found.append(ast.unparse(node))
    return found


def test_pages_hold_no_html_made_by_hand() -> None:
    files = [path for path in WEBAPP.rglob("*.py") if path != MARKUP]
    found = {path.relative_to(WEBAPP).as_posix(): by_hand(path.read_text(encoding="utf-8")) for path in files}
    assert len(found) > 20
    assert {name: uses for name, uses in found.items() if uses} == {}
    lines = ("st.html(f'<p>{x}</p>')", "st.markdown(x, unsafe_allow_html=True)", "from html import escape")
    assert all(by_hand(line) for line in lines)


def test_templates_switch_no_escaping_off() -> None:
    """`safe` stands only on attributes written in the template itself."""
    reports = Path(html.__file__).parent
    templates = sorted([*(WEBAPP / "templates").rglob("*.html"), *reports.glob("*.html")])
    assert len({path.parent for path in templates}) > 2
    for path in templates:
        for line in path.read_text(encoding="utf-8").splitlines():
            assert "autoescape" not in line, path
            written_here = re.findall("' class=\"[a-z]+\"' \\| safe", line)
            assert line.count("| safe") == len(written_here), f"{path}: {line}"


# ---------------------------------------------------------------- the terminal


PLATFORM = ROOT / "platform" / "creamtea"
COMMANDS, PRINTING = PLATFORM / "cli", PLATFORM / "cli" / "printing.py"
CONSOLE = PLATFORM / "report" / "terminal.py"


def printed_by_hand(source: str) -> list[str]:
    """The calls that print, or make a console of rich's own."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id="typer" | "click"), attr="echo" | "secho"))
                | ast.Call(func=ast.Name(id="print" | "Console"))
            ):
                found.append(f"line {node.lineno}: {ast.unparse(node.func)}")
    return found


def test_commands_print_through_one_place() -> None:
    files = [path for path in [*COMMANDS.rglob("*.py"), *CONSOLE.parent.rglob("*.py")] if path != PRINTING]
    found = {
        path.relative_to(PLATFORM).as_posix(): printed_by_hand(path.read_text("utf-8")) for path in files
    }
    assert len(found) > 40
    assert {name: calls for name, calls in found.items() if calls} == {}
    assert all(map(printed_by_hand, ("typer.echo(x)", "typer.secho(x)", "print(x)", "Console()")))
    assert not any(map(printed_by_hand, ("say(x)", "console.print(x)", "PrintingConsole()")))


# ---------------------------------------------------------------- property tests


def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Draw examples as the first test of a process would that draws whole numbers."""
    monkeypatch.setattr(providers, "CONSTANTS_CACHE", type(providers.CONSTANTS_CACHE)(1024))
    numbers: list[int] = []

    @settings(derandomize=True, max_examples=100, database=None)
    @given(st.integers())
    def draw(number: int) -> None:
        numbers.append(number)

    draw()
    return numbers


def test_examples_do_not_depend_on_the_modules_that_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = drawn(monkeypatch)
    (tmp_path / "loaded_later.py").write_text(f"NUMBERS = {list(range(123_456, 123_556))}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("loaded_later")
    assert drawn(monkeypatch) == before


# ---------------------------------------------------------------- languages without blanks


def test_the_page_has_the_same_languages() -> None:
    board = (WEBAPP / "board" / "texts.js").read_text(encoding="utf-8")
    listed = re.search(r"const BY_CHARACTER = new Set\((\[.*?\])\)", board)
    assert json.loads(listed[1]) == list(UNSPACED_LANGUAGES)


def test_codes_of_languages() -> None:
    assert all(map(is_unspaced, ["th", "zh-TW", "zh_CN", "JPN", "mya", "nan_Hant", "hak-Hani-TW"]))
    assert not any(map(is_unspaced, ["de", "", "nan", "nan-Latn-TW", "hak"]))
    for same in (
        *("sh sr-Cyrl sr", "zh-Hant-HK zho cmn_Hans zh", "yue-Hant yue", "nor no", "nob nb", "nno nn"),
        *("iw he", "in ind id", "tl fil", "deu de", "jpn ja", "prs fa"),
    ):
        *codes, main = same.split()
        assert [main_language(code) for code in codes] == [main] * len(codes)


@given(st.text())
def test_the_characters_of_a_text_are_the_text(text: str) -> None:
    found = characters(text)
    assert "".join(found) == text
    assert "" not in found


def test_marks_stay_with_their_letters() -> None:
    assert characters("ที่นี่") == ["ที่", "นี่"]
    assert characters("ខ្ញុំ") == ["ខ្ញុំ"]
    assert characters("猫 e\u0301") == ["猫", " ", "e\u0301"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("", 0),
        ("one two three", 3),
        ("私たちは七時に駅の前で会います", 9),  # 15 characters
        ("ที่นี่", 2),  # 6 letters and marks
        ("私 たち は Python です", 5),  # 7 characters, and a word
    ],
)
def test_words_by_characters(text: str, words: int) -> None:
    assert count_words(text, unspaced=True) == words
    assert count_words(text, unspaced=False) == len(text.split())


@given(st.text(st.characters(max_codepoint=0x2FF)))
def test_scripts_with_blanks_are_counted_by_these(text: str) -> None:
    assert count_words(text, unspaced=True) == len(text.split())
