"""What the documents link to and which commands they name exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")] if path.is_file()]


def test_every_link_leads_to_a_file() -> None:
    missing = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for link in re.findall(r'\]\(([^)#\s]+)[^)]*\)|src="([^"]+)"', text):
            target = "".join(link)
            if "://" not in target and not (document.parent / target).exists():
                missing.append((document.relative_to(ROOT).as_posix(), target))
    assert missing == []


def test_the_tree_of_the_readme_is_the_repositorys() -> None:
    """The text block has folders in its first 30 columns; indented ones are in the last that is not."""
    tree = (ROOT / "README.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    base, missing = ROOT, []
    for line in tree.splitlines():
        names = re.findall(r"\S+/", line[:30])
        inside = line.startswith(" ")
        missing += [name for name in names if not ((base if inside else ROOT) / name).is_dir()]
        base = base if inside else ROOT / names[0]
    assert (len(tree.splitlines()) > 20, missing) == (True, [])


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set()
    for document in DOCUMENTS:
        named |= set(re.findall(r"(?:`|^)make ([a-z-]+)", document.read_text(encoding="utf-8"), re.MULTILINE))
    assert {"demo", "test", "test-fast"} <= named
    assert named <= targets


def test_every_decision_is_listed_and_short() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    for path in folder.glob("*.md"):
        if path.name != "README.md":
            assert f"({path.name})" in listed
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 25, path.name
