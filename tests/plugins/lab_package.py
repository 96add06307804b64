"""The plug-in package of docs/extending.md, installed into its own folder, and the place of another one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from limits import COMMAND

TESTS = Path(__file__).resolve().parents[1]
RATING_PROTOCOL = TESTS / "plugins" / "rating_protocol"  # as pip would install it
PAGE = TESTS.parent / "docs" / "extending.md"
BLOCK = re.compile(r"^```\w+ (?P<file>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def files_of_page() -> dict[str, str]:
    """What the page says each file holds, its blocks one after the other."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        files[block["file"]].append(block["text"])
    return {name: "\n\n".join(texts) for name, texts in files.items()}


def install(folder: Path, version: str | None = None) -> Path:
    """Write the package as an installer would, and its study; the study's path."""
    files = files_of_page()
    data = tomllib.loads(files["pyproject.toml"])["tool"]["setuptools"]["package-data"]
    packaged = [
        "*.py",
        *(f"{package}/{pattern}" for package, patterns in data.items() for pattern in patterns),
    ]
    for name, text in files.items():
        if "/" in name and not any(fnmatch(name, pattern) for pattern in packaged):
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    project = tomllib.loads(files["pyproject.toml"])["project"]
    version = version or project["version"]
    metadata = folder / f"creamtea_lab-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
    )
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(groups))
    return folder / "study.yaml"


# What the programs of tests begin with: `creamtea` runs a command line, and returns exit code and output.
PREAMBLE = """
import json, os, sys
from pathlib import Path
from command_line import call
def creamtea(*words):
    done = call(os.environ, *words)
    return [done.returncode, done.stdout, done.stderr]
"""


def asked(lab: Path, home: Path, program: str, *arguments: str | Path) -> Any:
    """Run a Python program in the home folder, with the package of the folder `lab` installed.

    Returns the value of its last line, which is an expression.
    """
    home.mkdir(exist_ok=True)
    *lines, answer = program.strip().splitlines()
    code = "\n".join([PREAMBLE, *lines, f"print(json.dumps({answer}))"])
    path = os.pathsep.join([str(lab), str(TESTS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, "CREAMTEA_HOME": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=COMMAND,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
