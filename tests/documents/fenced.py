"""The blocks of code in documents, each with the comment above it that says how it is tested."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?: (?P<name>[\w./-]+))?\n(?P<text>.*?)^ *```", re.M | re.S
)
MARK = re.compile(r"<!-- (?P<mark>[^\n]*) -->\s*\Z")


@dataclass(frozen=True)
class Fenced:
    document: Path
    line: int
    language: str
    name: str  # of a file: ```yaml study.yaml
    mark: str  # of the comment above: "not run: it needs a cluster"
    text: str
    follows: bool = False  # directly below another block, but for its comment

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def fenced(*documents: Path) -> Iterator[Fenced]:
    for document in documents:
        text = document.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            before = text[: match.start()]
            mark = MARK.search(before)
            body = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.M)
            yield Fenced(
                document,
                before.count("\n") + 1,
                match["language"],
                match["name"] or "",
                mark["mark"] if mark else "",
                body,
                MARK.sub("", before).rstrip().endswith("```"),
            )


def commands(block: Fenced) -> list[str]:
    """The commands of a block of `sh` or `console`, one per line, without comments; in `console` they stand
    behind a $, and the rest is what they print."""
    text = re.sub(r" *\\\n\s*", " ", block.text)
    lines = [line.strip() for line in text.splitlines()]
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    without = [re.sub(r"(^|\s+)# .*|(^|\s+)#$", "", line) for line in lines]
    return [line for line in without if line and not line.startswith("#")]
