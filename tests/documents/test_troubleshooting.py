"""The messages on docs/troubleshooting.md are those that the source has."""

import ast
import re
from collections.abc import Iterator

import pytest
from fenced import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
OF_OTHERS = {"command not found: creamtea"}


def quoted() -> list[str]:
    """First cells of tables that are a message in `code`."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    found = [re.match(r"\| `([^`]+)`", line) for line in lines]
    return [match[1] for match in found if match]


def messages() -> Iterator[str]:
    """Every text in the source, with … for what is put in; those of templates as they stand."""
    for root in ("platform", "workers", "webapp"):
        for path in (ROOT / root).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
                    yield "".join(map(str, parts))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value
        for path in (ROOT / root).rglob("*.html"):
            yield path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_quoted_message_is_in_the_source() -> None:
    quotes = quoted()
    assert len(quotes) > 40
    texts = [" ".join(text.split()) for text in messages()]
    missing = []
    for quote in quotes:
        pattern = re.compile(".*".join(re.escape(part) for part in re.split(r"\s*…\s*", quote)), re.DOTALL)
        if quote not in OF_OTHERS and not any(map(pattern.search, texts)):
            missing.append(quote)
    assert missing == []
