"""YAML and commands in the documents that `test_running_examples.py` does not run are right.

The comment above a block of YAML says what it is where its content does not:
- `<!-- part of STUDY -->`: put into that shipped study;
- `<!-- run by TEST -->`: by that file of tests.
One with a name (`yaml study.yaml`) is a file that commands of its document use.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands_of_blocks import pipelines
from fenced import DOCUMENTS, ROOT, Fenced, commands, fenced
from parsed import COMMAND, parse

from creamtea.cli.workplace import load_campaigns
from creamtea.study.loader import load_study

BLOCKS = list(fenced(*DOCUMENTS))
RESULTS = list(fenced(*sorted((ROOT / "docs/results").rglob("*.md"))))
DATA = sorted((ROOT / "docs/results/data").glob("*.yaml"))
SHELL = [block for block in BLOCKS if block.language in ("sh", "console")]
YAML = [block for block in BLOCKS if block.language == "yaml" and not block.mark.startswith("run by ")]


@pytest.mark.parametrize("block", [block for block in SHELL if block.mark.startswith("not run: ")], ids=str)
def test_commands_that_are_not_run_can_be_parsed(block: Fenced) -> None:
    for line in commands(block):
        words = re.match(r"(?:kubectl .* -- )?creamtea (.*)", line)
        if words:
            (pipeline,) = pipelines(words[1])
            parse(pipeline[0].words, f"{block}: {line}")


def test_commands_stand_in_blocks_of_shell() -> None:
    others = [block for block in BLOCKS if block.language not in ("sh", "console")]
    assert [
        str(block) for block in others if re.search(r"^(\$ )?(creamtea|make|pip) ", block.text, re.M)
    ] == []


@pytest.mark.parametrize("block", YAML, ids=str)
def test_a_block_of_yaml_is_right(block: Fenced, tmp_path: Path) -> None:
    data = yaml.safe_load(block.text)
    if data is None:  # a comment only
        return
    if block.name:
        lines = [line for other in fenced(block.document) if other in SHELL for line in commands(other)]
        used = rf"(?<![\w./-]){re.escape(block.name)}(?![\w.-])"
        assert any(re.search(used, line) for line in lines), f"{block}: no command uses {block.name}"
        return
    study = tmp_path / "study.yaml"
    part = re.fullmatch(r"part of (\S+)", block.mark)
    if part:
        whole = yaml.safe_load((ROOT / part[1]).read_text(encoding="utf-8"))
        for text in (ROOT / part[1]).parent.glob("*.md"):  # that its campaigns name
            (tmp_path / text.name).write_bytes(text.read_bytes())
        study.write_text(yaml.safe_dump(merged(whole, data), allow_unicode=True), encoding="utf-8")
    else:
        study.write_text(block.text, encoding="utf-8")
    load_campaigns(load_study(study))


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
        for words in (part.words for pipeline in pipelines(line) for part in pipeline):
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


def test_commands_of_results_can_be_parsed() -> None:
    for block in RESULTS:
        if block.language in ("sh", "console"):
            parse_all(block)


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.stem)
def test_a_file_of_data_has_measurements_with_their_commands(path: Path) -> None:
    for name, measurement in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        assert "outcome" in measurement, name
        assert measurement.keys() <= {"commands", "setting", "machine", "outcome", "notes", "tables"}, name
        assert all(table.startswith("|") for table in measurement.get("tables", {}).values()), name
        parse_all(Fenced(path, 0, "sh", name, "", measurement.get("commands", "")))


def parse_all(block: Fenced) -> None:
    """The commands made the figures, some long ago; whoever repeats them has today's options."""
    for line in commands(block):
        if re.search(r"\b(for|while|done|\$\()", line):
            continue
        for words in (part.words for pipeline in pipelines(line) for part in pipeline):
            if words[:1] == ["creamtea"]:
                parse(words[1:], f"{block}: {line}")
