"""Generated pages say what the code says, and the code says something about everything."""

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import generate
import pytest
from generate import DOCS, PAGES, SECTIONS, commands, parts_of
from typer.main import get_command

from creamtea.cli.main import app
from creamtea.document.mistakes import fields_by_key
from creamtea.document.values import Strict, descriptions
from creamtea.human.making.settings import CampaignDocument
from creamtea.study.spec import Study

ROOT = Path(__file__).parents[2]
INSIDE = {"CREAMTEA_OIDC"}  # what the three names begin with


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_declares(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("reference/")])
def test_the_reference_says_nothing_of_python(name: str) -> None:
    assert re.findall(r"\bNone\b|<class |\bcreamtea\.[a-z]+\)", PAGES[name]()) == []


@pytest.mark.parametrize(("words", "code"), [(["--help"], 0), (["more"], 2)])
def test_the_program_says_how_it_is_called(
    words: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["generate.py", *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(generate.__file__, run_name="__main__")
    assert ended.value.code == code
    assert "usage: generate.py " in "".join(capfd.readouterr())


def test_every_column_of_trainings_has_a_meaning() -> None:
    section = re.search(r"## Trainings\n(.*?)\n## ", PAGES["reference/measures.md"](), re.DOTALL)
    rows = [line.split(" | ") for line in section[1].splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows if not row[3]] == []


@pytest.mark.parametrize("document", [Study, CampaignDocument])
def test_every_key_of_a_document_has_a_meaning(document: type[Strict]) -> None:
    models: set[type[Strict]] = {document}
    for part in parts_of(document):
        models |= {part.model} if part.family is None else set(part.family.built_in.values())
    nameless = [
        (model.__name__, key)
        for model in models
        for key in fields_by_key(model).keys() - {"kind"}
        if not descriptions(model).get(key, ("",))[0] and not descriptions(model).get(key, ("", ""))[1]
    ]
    assert nameless == []


def test_every_command_and_option_has_a_meaning_and_every_command_an_example() -> None:
    without: list[tuple[str, str]] = []
    for name, command in commands(get_command(app)):
        without += [(name, "help")] * (not command.help) + [(name, "example")] * (not command.epilog)
        without += [(name, part.name) for part in command.params if not part.help]
    assert without == []


def test_every_variable_that_the_code_reads_is_listed() -> None:
    listed = {variable.name for variables in SECTIONS.values() for variable in variables}
    named = {name for path in sources() for name in re.findall(r"\bCREAMTEA_[A-Z_]*[A-Z]\b", text(path))}
    assert named - INSIDE == {name for name in listed if name.startswith("CREAMTEA_")}


def sources() -> Iterator[Path]:
    yield ROOT / "docker-compose.yml"
    for root in ("platform", "workers", "webapp", "deploy"):
        for path in (ROOT / root).rglob("*"):
            if path.suffix in (".py", ".yaml", ".sbatch"):
                yield path


def text(path: Any) -> str:
    return str(path.read_text(encoding="utf-8"))
