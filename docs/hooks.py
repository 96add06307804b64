"""What MkDocs does besides: pages from outside docs/, and GitHub's Markdown made Python's.

The documents are read on code hosts, too, so they are written in GitHub's Markdown. Python's wants list items
indented by four blanks, and an empty line before a list and a table.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")  # of the repository, pages of the site
LICENCE = "https://www.apache.org/licenses/LICENSE-2.0"
FENCE = re.compile(r"\s*(```+)")
ITEM = re.compile(r"(\s*)([-*+]|\d+\.) +(?=\S)")
NAMED_FENCE = re.compile(r"(\s*```\w+) ([\w./-]+)$")  # ```python score.py


def on_files(files: Files, config: Any) -> Files:
    for name in OUTSIDE:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    if page.file.src_uri in OUTSIDE:
        markdown = markdown.replace("](docs/", "](").replace("](LICENSE)", f"]({LICENCE})")
    else:
        markdown = re.sub(rf"\]\((?:\.\./)+({'|'.join(map(re.escape, OUTSIDE))})", r"](/\1", markdown)
        markdown = markdown.replace("](/", "](" + "../" * page.file.src_uri.count("/"))
    return python_markdown(markdown)


def on_page_content(html: str, **_: Any) -> str:
    """A column without a heading has no heading, rather than an empty one."""
    return re.sub(r"<th([^>]*)></th>", r"<td\1></td>", html)


def python_markdown(markdown: str) -> str:
    """GitHub's Markdown as Python's: what is in an item of a list at depth n is indented by 4n blanks."""
    result: list[str] = [""]
    depths: list[int] = []  # where the content of each open item begins, the outermost first
    fence = ""
    has_blocks = False  # the last item holds more than a paragraph
    for line in markdown.splitlines():
        has_blocks = has_blocks or not result[-1] or bool(fence)
        if not line.strip():
            result.append("")
            continue
        indent = len(line) - len(line.lstrip())
        opened = FENCE.match(line)
        item = None if fence else ITEM.match(line)
        in_list, after_text = bool(depths), bool(result[-1].strip())
        if item and item[2][0].isdigit() and after_text and not in_list and item[2] != "1.":
            item = None  # a number at the end of a sentence
        if not fence and not (in_list and after_text and indent == 0 and not item and _is_text(line)):
            while depths and indent < depths[-1]:
                depths.pop()
        begins_list = item is not None and not in_list
        begins_table = not fence and line.lstrip()[0] == "|" and not result[-1].lstrip().startswith("|")
        if after_text and (begins_list or begins_table or (item and has_blocks)):
            result.append("")
        margin = " " * 4 * len(depths)
        if item:
            result.append(f"{margin}{item[2]} {line[item.end() :]}")
            depths.append(item.end())
            has_blocks = False
            continue
        named = None if fence else NAMED_FENCE.match(line)
        text = f'{named[1]} title="{named[2]}"' if named else line
        result.append(margin + text[min(indent, depths[-1]) if depths else 0 :])
        if opened:
            fence = "" if fence == opened[1] else fence or opened[1]
    return "\n".join(result[1:]) + "\n"


def _is_text(line: str) -> bool:
    """Not the beginning of a heading, table, quotation or block of code: it goes on with a paragraph."""
    return not re.match(r"\s*(#|\||>|```|<!--)", line)
