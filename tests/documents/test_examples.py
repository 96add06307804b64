"""Commands and YAML in the documents are right: each is parsed, loaded or run, or says why it is not.

The comment above a block says how it is tested where its content does not:
- `<!-- not run: REASON -->`: only its lines of creamtea are parsed;
- `<!-- run by TEST -->`: by that file of tests;
- `<!-- part of STUDY -->`: YAML, put into that shipped study;
- `<!-- items of a campaign's tutorial -->`, `<!-- attention checks of a campaign -->`,
  `<!-- taxonomy of a campaign -->`: YAML, read as such.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fenced import DOCUMENTS, ROOT, Fenced, commands, fenced
from typer._click.exceptions import ClickException
from typer.main import get_command

from creamtea.cli.main import app
from creamtea.human.attention import read_attention
from creamtea.human.protocols.taxonomy import read_taxonomy
from creamtea.human.tutorial import read_tutorial
from creamtea.reference.environment import SECTIONS
from creamtea.study.loader import load_study

FILES_OF_CAMPAIGNS: dict[str, Callable[[Path], object]] = {
    "items of a campaign's tutorial": read_tutorial,
    "attention checks of a campaign": read_attention,
    "taxonomy of a campaign": read_taxonomy,
}

BLOCKS = list(fenced(*DOCUMENTS))
SHELL = [block for block in BLOCKS if block.language in ("sh", "console")]
YAML = [block for block in BLOCKS if block.language == "yaml"]
VARIABLES = {variable.name for variables in SECTIONS.values() for variable in variables}
OTHERS = ("AWS_", "RAY_")  # variables of Amazon's and Ray's
PROGRAMS = ("", "pip", "pytest", "mkdir", "cp", "cd", "printf")  # that every machine has
COMMAND = get_command(app)


def is_elsewhere(block: Fenced) -> bool:
    """Whether a mark says that it is not run, and why, or where it is."""
    test = re.fullmatch(r"run by (\S+)", block.mark)
    if test:
        assert block.document.stem in (ROOT / test[1]).read_text(encoding="utf-8"), f"{block}: {block.mark}"
    is_record = "results" in (block.document.stem, block.document.parent.name)  # of what was run
    return bool(is_record or test or re.fullmatch(r"not run: .{10,}", block.mark))


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_a_block_of_commands_is_right(block: Fenced) -> None:
    excused = is_elsewhere(block)
    for line in commands(block):
        if not excused or re.match(r"(\S*/)?creamtea ", line):
            for words in simple_commands(line):
                check(words, f"{block}: {line}", excused)


def simple_commands(line: str) -> Iterator[list[str]]:
    """The words of each command of a line, without redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    skip = False
    for token in [*lexer, ";"]:
        if skip:
            skip = False
        elif set(token) <= set("<>"):
            skip = True
        elif set(token) <= set("|&;"):
            if words:
                yield words
            words = []
        else:
            words.append(token)


def check(words: list[str], where: str, excused: bool) -> None:
    """`excused`: it may be a program of others."""
    while words and re.match(r"[A-Z_]+=", words[0]):
        set_variable(words.pop(0), where)
    program = words[0].rpartition("/")[2] if words else ""
    if program == "creamtea":
        parse(words[1:], where)
    elif program == "export":
        for word in words[1:]:
            set_variable(word, where)
    elif program == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M), where
    else:
        assert excused or program in PROGRAMS, f"{where}: `{program}` needs `not run: REASON`"


def set_variable(word: str, where: str) -> None:
    name = word.partition("=")[0]
    assert name in VARIABLES or name.startswith(OTHERS), f"{where}: creamtea reads no {name}"


def parse(words: list[str], where: str) -> None:
    """By the app itself, which runs nothing of it."""
    command, name = COMMAND, "creamtea"
    try:
        while True:
            context = command.make_context(name, list(words))
            if not hasattr(command, "commands"):
                return
            name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
    except ClickException as error:
        raise AssertionError(f"{where}: {error.format_message()}") from error


@pytest.mark.parametrize("block", YAML, ids=str)
def test_a_block_of_yaml_is_right(block: Fenced, tmp_path: Path) -> None:
    data = yaml.safe_load(block.text)
    if is_elsewhere(block) or data is None:  # a comment only
        return
    study = tmp_path / "study.yaml"
    part = re.fullmatch(r"part of (\S+)", block.mark)
    if block.mark in FILES_OF_CAMPAIGNS:
        study.write_text(block.text, encoding="utf-8")
        assert FILES_OF_CAMPAIGNS[block.mark](study)
        return
    if part:
        whole = yaml.safe_load((ROOT / part[1]).read_text(encoding="utf-8"))
        study.write_text(yaml.safe_dump(merged(whole, data), allow_unicode=True), encoding="utf-8")
    else:
        study.write_text(block.text, encoding="utf-8")
    load_study(study)


def merged(whole: Any, part: Any) -> Any:
    """With the part's keys in blocks of the same name, to any depth."""
    if not (isinstance(whole, dict) and isinstance(part, dict)):
        return part
    return whole | {key: merged(whole.get(key), value) for key, value in part.items()}


def inline_commands() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.S)
        for found in re.findall(r"`(creamtea [^`]+)`", text):
            yield document.relative_to(ROOT).as_posix(), " ".join(found.split())


def test_commands_within_sentences_exist_with_their_options() -> None:
    wrong = []
    for document, line in inline_commands():
        for words in simple_commands(line):
            command = COMMAND
            while words and hasattr(command, "commands") and words[0] in ("creamtea", *command.commands):
                command = command.commands.get(words.pop(0), command)
            options = {option for part in command.params for option in (*part.opts, *part.secondary_opts)}
            named = {word.partition("=")[0] for word in words if re.match(r"--\w", word)}
            unknown = (
                hasattr(command, "commands") and words and words[0][:1] not in "-" and words[0].islower()
            )
            if named - options - {"--help"} or unknown:
                wrong.append((document, line))
    assert wrong == []


def test_the_examples_of_every_help_text_are_commands() -> None:
    lines = [line for document, line in inline_commands() if document == "docs/reference/commands.md"]
    examples = [line for line in lines if "COMMAND" not in line and line.count(" ") > 1]
    assert len(examples) > 50
    for line in examples:
        for words in simple_commands(line):
            check(words, line, excused=True)
