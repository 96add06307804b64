"""Count lines, files, functions, classes, imports, loose types, and words of the documents.

A report, not a limit: .ci/run prints it. `bench/house.py platform/creamtea/report` counts one room.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("platform/creamtea", "workers/creamtea_workers", "webapp/creamtea_webapp")
# written from the code
BUILT = re.compile(r"docs/(reference/(?!notes)|steps\.md|papers\.md)")
# what `make docs` and `make gpu-check` write into pages that are otherwise kept by hand
GENERATED = re.compile(r"<!-- (?!not |run by|part of)[^>]*-->\n.*?<!-- end[^>]*-->", re.DOTALL)


def tracked(*paths: str) -> list[Path]:
    """Return the files below these paths that git tracks and that are still there."""
    listed = subprocess.check_output(["git", "ls-files", "-z", "--", *paths], cwd=ROOT, text=True).split("\0")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def count_python(files: list[Path]) -> Counter[str]:
    """Count lines, definitions, imports and loose types in Python files."""
    counts: Counter[str] = Counter(files=len(files))
    for file in files:
        text = file.read_text(encoding="utf-8")
        counts["lines"] += len(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    counts["functions"] += 1
                case ast.ClassDef():
                    counts["classes"] += 1
                case ast.Import() | ast.ImportFrom():
                    counts["import lines"] += (node.end_lineno or node.lineno) - node.lineno + 1
                case ast.Name(id="Any"):
                    counts["Any"] += 1
                case ast.Subscript() if ast.unparse(node) == "dict[str, Any]":
                    counts["dict[str, Any]"] += 1
    return counts


def report(rooms: list[str]) -> None:
    """Print one line for each count."""
    counts = count_python([file for file in tracked(*rooms) if file.suffix == ".py"])
    share = 100 * counts["import lines"] / max(counts["lines"], 1)
    for name in ("lines", "files", "functions", "classes", "import lines", "Any", "dict[str, Any]"):
        print(f"{name:<32}{counts[name]:>8,}" + (f"  ({share:.1f} %)" if name == "import lines" else ""))
    if rooms == list(SOURCES):
        tests = count_python([file for file in tracked("tests") if file.suffix == ".py"])
        pages = [file for file in tracked("docs", "*.md") if file.suffix == ".md"]
        kept = {file for file in pages if not BUILT.match(str(file.relative_to(ROOT)))}
        words = sum(len(GENERATED.sub("", file.read_text(encoding="utf-8")).split()) for file in kept)
        print(f"{'lines of tests':<32}{tests['lines']:>8,}")
        print(f"{'words kept by hand (docs, *.md)':<32}{words:>8,}")


if __name__ == "__main__":
    report(sys.argv[1:] or list(SOURCES))
