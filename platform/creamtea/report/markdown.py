"""A report as Markdown, for docs/results/."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import assert_never

from creamtea.document.mistakes import StudyWarning
from creamtea.report import text
from creamtea.report.model import (
    Block,
    Choice,
    Document,
    Entry,
    Fact,
    Facts,
    Figure,
    Notes,
    Section,
    Table,
    Texts,
    Warnings,
)

_EMPTY_LINE = re.compile(r"\n\s*\n")
# a paragraph must not begin like a list item, or look like a rule
_MARKUP = re.compile(r"^(?:(\d{1,9})(?=[.)](?:\s|$))|(?=[-+](?:\s|$))|(?=-[- ]*$))")


def to_markdown(report: Document) -> str:
    """Write every block, and the notes of all cells at the end."""
    facts = [f"{fact.label}: {text.fact(fact)}" for fact in report.facts]
    line = "; ".join(filter(None, [report.state, *facts]))
    head = [f"# {plain(report.name)}", paragraphs(report.about), paragraphs(line)]
    return "\n\n".join([*filter(None, head), sections_to_markdown(report.sections)])


def sections_to_markdown(sections: Sequence[Section]) -> str:
    """Write sections for a page that already has a heading, and the notes of their cells at the end."""
    notes = text.Footnotes()
    blocks = [part for section in sections for part in _block(section, 2, notes)]
    blocks.append("\n".join(f"- ({count}) {plain(note)}" for note, count in notes.notes.items()))
    return "\n\n".join(filter(None, blocks)) + "\n"


def _block(block: Block, level: int, notes: text.Footnotes) -> list[str]:
    """Return the paragraphs of a block."""
    match block:
        case Section():
            title = f"{'#' * min(level, 6)} {plain(block.title)}" if block.title else ""
            facts = f" ({plain(', '.join(block.facts))})" if block.facts else ""
            inside = (part for inner in block.blocks for part in _block(inner, level + 1, notes))
            return [f"{title}{facts}", paragraphs(block.about), *inside]
        case Table():
            return [_bold(block.title), _table(block, notes), paragraphs(block.about)]
        case Figure():
            return [_figure(block)]
        case Choice():
            listed = "\n".join(map(_figure, block.figures))
            return [_bold(block.title), listed or paragraphs(text.sentence(block.absent))]
        case Texts():
            return [_bold(block.title), paragraphs(block.about), "\n".join(map(_entry, block.entries))]
        case Notes() if block.lead:
            return ["\n".join(f"- {plain(paragraph)}" for paragraph in block.paragraphs)]
        case Notes():
            return [paragraphs(paragraph) for paragraph in block.paragraphs]
        case Warnings():
            return ["\n".join(map(_warning, block.warnings))]
        case Facts():
            return [_bold(block.title), "\n".join(map(_fact, block.facts))]
        case _:
            assert_never(block)


def _table(table: Table, notes: text.Footnotes) -> str:
    headings = [table.heading, *map(text.heading, table.columns)]
    lines = [_row(map(plain, headings)), _row([":--", *("--:" for _ in table.columns)])]
    for row in table.rows:
        name = f"**{plain(row.name)}**{plain(text.row_name(row).removeprefix(row.name))}"
        described = f"{name}<br>{plain(row.description)}" if row.description else name
        shown = (text.shown(row.cells[column.key], column).lines(notes) for column in table.columns)
        lines.append(_row([described, *("<br>".join(map(plain, parts)) for parts in shown)]))
    return "\n".join(lines)


def _figure(figure: Figure) -> str:
    return f"- Figure: {plain(text.figure(figure))}"


def _entry(entry: Entry) -> str:
    passages = (
        f"{plain(passage.label)}: {plain(text.one_line(passage.text)) or '(empty)'}"
        for passage in entry.passages
        if not passage.has_lines
    )
    listings = (
        textwrap.indent(f"\n{fence}\n{passage.text.rstrip()}\n{fence}", "  ")
        for passage in entry.passages
        if passage.has_lines
        for fence in ["`" * (1 + max(map(len, re.findall("``+", passage.text)), default=2))]
    )
    return "\n".join([f"- {'<br>'.join([plain(text.entry_name(entry)), *passages])}", *listings])


def _warning(warning: StudyWarning) -> str:
    words = (f"`{part}`" if code else plain(part) for part, code in text.code_parts(warning.message()))
    return f"> - **{plain(warning.place)}**: {''.join(words)}"


def _fact(fact: Fact) -> str:
    value = text.fact(fact)
    return f"- {plain(fact.label)}: {f'`{value}`' if fact.code and '`' not in value else plain(value)}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _bold(title: str) -> str:
    return f"**{plain(title)}**" if title else ""


def plain(words: str) -> str:
    """Escape Markdown's characters and join lines: text for the middle of a line."""
    line = words.replace("\n", " ")
    return "".join(f"\\{character}" if character in "\\`*_|<>[]#&~" else character for character in line)


def paragraphs(words: str) -> str:
    """Escape text that stands by itself; an empty line begins a paragraph."""
    return "\n\n".join(
        _MARKUP.sub(r"\1\\", plain(" ".join(part.split()))) for part in _EMPTY_LINE.split(words.strip())
    )
