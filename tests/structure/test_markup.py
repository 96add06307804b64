"""Pages put no HTML together: it comes from templates, which escape (creamtea_webapp/markup.py)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from creamtea.report import html

WEBAPP = Path(__file__).parents[2] / "webapp" / "creamtea_webapp"
MARKUP = WEBAPP / "markup.py"


def by_hand(source: str) -> list[str]:
    """What a module does that only markup.py may."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="st"), attr="html")):
                found.append(f"line {node.lineno}: st.html")
            case ast.keyword(arg="unsafe_allow_html"):
                found.append(f"line {node.value.lineno}: unsafe_allow_html")
            case (
                ast.Import(names=[ast.alias(name="html" | "markupsafe")])
                | ast.ImportFrom(module="html" | "markupsafe")
            ):
                found.append(f"line {node.lineno}: an import of {ast.unparse(node)}")
    return found


def test_pages_hold_no_html_made_by_hand() -> None:
    files = [path for path in WEBAPP.rglob("*.py") if path != MARKUP]
    found = {path.relative_to(WEBAPP).as_posix(): by_hand(path.read_text(encoding="utf-8")) for path in files}
    assert len(found) > 20
    assert {name: uses for name, uses in found.items() if uses} == {}


def test_html_made_by_hand_is_found() -> None:
    for line in (
        "st.html(f'<p>{x}</p>')",
        "st.markdown(x, unsafe_allow_html=True)",
        "from html import escape",
    ):
        assert by_hand(line), line


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
