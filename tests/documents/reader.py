"""Follows a document as a reader would: each command in turn, in a folder and home of its own.

What stands for what costs too much or is not here:
- steps run in this process instead of on Ray;
- `init` times two updates, and none where the document does not show its output; its study is small, of one
  epoch, and trains on one processor;
- `submit` queues and starts no controller, unless it waits;
- a server is started once for each of its options, asked for a page, and interrupted;
- raters come as soon as a campaign is launched;
- /shared, /etc and /mnt lie in the reader's folder;
- what `make` and `pip` would do is not done: the target, the extra and the version must exist;
- `--address` names a cluster, which is not there: the command is only parsed.
"""

import contextlib
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from commands_of_blocks import Command, pipelines
from fenced import ROOT, Fenced, commands
from generate import SECTIONS
from parsed import parse
from reader_raters import rate_everything
from reader_servers import asked_for_a_page
from typer.testing import CliRunner

import creamtea
from creamtea.cli.main import app
from creamtea.study import start
from creamtea_workers.training import trainer

SMALLER = {
    "architecture.width": 32,
    "architecture.feed_forward": 64,
    "training.autocast": "none",
    "training.warmup": 10,
    "training.max_updates": 20,
}
INLINE = ("run", "submit", "retry", "controller")
VARIABLES = {variable.name for variables in SECTIONS.values() for variable in variables}
OF_OTHERS = ("AWS_", "RAY_")  # variables of Amazon's and Ray's
OF_THE_READER = re.compile(r"^/(?=(shared|etc|mnt)/)")
ELSEWHERE = {"docs": "tests/wheel/test_wheel.py"}  # it shows the site, which is built there
PROGRAMS = ("cp", "cut", "mkdir", "printf")  # that every machine has


@dataclass
class Reader:
    folder: Path
    served: set[str]  # what was started already, of all readers
    addresses: dict[str, str] = field(default_factory=dict)  # what stands for the documents' addresses
    variables: dict[str, str] = field(default_factory=dict)  # of the block
    printed: str = ""  # by the block's commands
    shown: bool = False

    def __post_init__(self) -> None:
        self.place = self.folder

    def follow(self, block: Fenced, shown: bool = False) -> None:
        """Run a block's commands; AssertionError for the first that fails. `shown`: the document shows what
        they print, so that `init` has to time updates."""
        self.variables, self.printed, self.shown = {}, "", shown
        for line in commands(block):
            self.run(line, f"{block}: {line}")

    def run(self, line: str, where: str) -> None:
        for pipeline in pipelines(line):
            text: bytes | None = None
            for command in pipeline:
                text = self._run(command, text, where)
                if command.output is not None:
                    (self.place / command.output).write_bytes(text)
                    text = b""
            self.printed += (text or b"").decode()

    def _run(self, command: Command, text: bytes | None, where: str) -> bytes:
        """What it prints to standard output."""
        words = [OF_THE_READER.sub(f"{self.folder}/", word) for word in self._files(command.words)]
        if command.input is not None:
            text = (self.place / command.input).read_bytes()
        variables = {}
        while words and re.match(r"[A-Z_]+=", words[0]):
            variables |= self._variable(words.pop(0), where)
        program, *arguments = words
        if program == "creamtea":
            return self._creamtea(arguments, text, self.variables | variables, where)
        if program == "export":
            for word in arguments:
                self.variables |= self._variable(word, where)
        elif program == "cd":
            self.place /= arguments[0]
        elif program == "make":
            targets = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{arguments[0]}:", targets, re.MULTILINE), f"{where}: no such target"
        elif program == "pip":
            check_installed(arguments[-1], where)
        else:
            assert program in PROGRAMS, f"{where}: {program} needs `not run: REASON` above the block"
            done = subprocess.run(words, cwd=self.place, input=text, capture_output=True)
            assert done.returncode == 0, f"{where}: {done.stderr.decode()}"
            return done.stdout
        return b""

    def _files(self, words: list[str]) -> Iterator[str]:
        for word in words:
            found = [path.name for path in sorted(self.place.glob(word))] if "*" in word else []
            yield from found or [word]

    def _variable(self, word: str, where: str) -> dict[str, str]:
        name, _, value = word.partition("=")
        assert name in VARIABLES or name.startswith(OF_OTHERS), f"{where}: creamtea reads no {name}"
        return {name: self.addresses.get(value) or OF_THE_READER.sub(f"{self.folder}/", value)}

    def environment(self, variables: dict[str, str]) -> dict[str, str]:
        mine = {name: text for name, text in os.environ.items() if not name.startswith(("CREAMTEA_", "RAY_"))}
        return mine | {"HOME": str(self.folder), "COLUMNS": "160"} | variables

    def _creamtea(
        self, arguments: list[str], text: bytes | None, variables: dict[str, str], where: str
    ) -> bytes:
        if arguments[0] == "submit" and "--wait" not in arguments:
            variables |= {"CREAMTEA_CONTROLLER": "service"}
        environment = self.environment(variables)
        if "--address" in arguments:
            parse(arguments, where)
            return b""
        if arguments[0] in ELSEWHERE:
            test = (ROOT / ELSEWHERE[arguments[0]]).read_text(encoding="utf-8")
            assert f'"{arguments[0]}"' in test, f"{where}: {ELSEWHERE[arguments[0]]} does not run it"
            return b""
        if serves(arguments):
            if " ".join(arguments) not in self.served:
                self.served.add(" ".join(arguments))
                asked_for_a_page(arguments, self.place, environment)
            return b""
        with (
            patch.dict(os.environ, environment, clear=True),
            patch.object(trainer, "MAX_UPDATES", 2),
            patch.object(start, "MAX_CPUS", 1),  # two threads would wait for each other beside other tests
            contextlib.chdir(self.place),
        ):
            done = CliRunner().invoke(app, self._quicker(arguments), input=text or b"y\n")
            told = done.exception if isinstance(done.exception, Exception) else ""
            assert done.exit_code == 0, f"{where}: exit code {done.exit_code}\n{done.output}{told}"
            if arguments[:2] == ["campaign", "launch"]:
                rate_everything(arguments[2])
        self.printed += done.stderr
        return done.stdout_bytes

    def _quicker(self, arguments: list[str]) -> list[str]:
        more = []
        if arguments[0] == "init" and not self.shown:
            more = ["--no-timing"]
        if arguments[:2] == ["run", "study.yaml"]:  # which `init` has written
            more = [f"--set=variants.softmax.{key}={value}" for key, value in SMALLER.items()]
        if arguments[0] in INLINE and "--executor" not in arguments:
            more += ["--executor", "inline"]
        return [*arguments, *more]


def serves(arguments: list[str]) -> bool:
    """Whether it ends by Ctrl-C only."""
    return arguments[0] == "serve" or (arguments[0] == "controller" and "--until-idle" not in arguments)


def check_installed(package: str, where: str) -> None:
    """What `pip install` is given: extras that creamtea has, a wheel of this version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.match(r"creamtea\[([\w,]+)\]", package)
    unknown = set(extras[1].split(",")) - set(project["optional-dependencies"]) if extras else set()
    assert not unknown, f"{where}: there is no extra {unknown}"
    wheel = re.search(r"creamtea-([\d.]+)-", package)
    assert wheel is None or wheel[1] == creamtea.__version__, f"{where}: this is {creamtea.__version__}"


def printed_lines(expected: str) -> Iterator[re.Pattern[str]]:
    """Patterns of the lines that a document shows: any white space, any numbers and their marks, minutes or
    hours (other programs may keep the machine busy), `…` for anything."""
    number = r"[<+−±-]?\\d[\\d.,]*( ?\\*| \\(\\d\\))?"
    for line in expected.splitlines():
        words = re.escape(" ".join(line.split())).replace("…", ".*?")
        words = re.sub("─+", "─+", words)
        pattern = re.sub(r"(\\[+-]|[+−±<])?\d[\d.,]*(\\\.[\d]+)*", number, words)
        pattern = re.sub(r"\bminutes?\b", "(seconds?|minutes?|hours?)", pattern)
        if pattern not in ("", ".*?"):
            yield re.compile(pattern)
