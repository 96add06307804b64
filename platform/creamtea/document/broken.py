"""What the YAML parser cannot read, in words for people who write studies."""

from __future__ import annotations

import re

import yaml

# The parser's context and problem, and what it means; {0} is the first group.
EXPLANATIONS = (
    (r"'\\t'", "a tab where there must be spaces"),
    (r"quoted scalar.*unexpected end of stream", "a quote that is not closed"),
    (r"unknown escape character (.+)", "the escape \\{0} in double quotes; single quotes take text as it is"),
    (r"flow sequence.*expected ',' or '\]'", "a list that is not closed: a comma or ] is missing"),
    (r"flow mapping.*expected ',' or '\}'", "a block that is not closed: a comma or }} is missing"),
    (r"found undefined alias (.+)", "the alias *{0}, which no &{0} above it defines"),
    (r"duplicate anchor (.+?);", "a second anchor &{0}; each needs a name of its own"),
    (r"found character (.+) that cannot start", "text that begins with {0}; put it into quotes"),
    (r"mapping values are not allowed", "a second colon in a line, or a line that is indented too far; "
     "text with a colon needs quotes"),
    (r"could not find expected ':'", "a line without a colon between key and value"),
    (r"block (?:mapping|collection).*but found", "a line that is not indented like those before it, "
     "or is of another kind"),
    (r"expected a single document", "a second document after ---; a study is one"),
    (r"expected the node content", "a bracket, a comma or a mark where there must be a value"),
)  # fmt: skip


def explained(error: yaml.MarkedYAMLError) -> tuple[int, str]:
    """The line, from 1, and what is wrong there. What is not closed is shown where it begins."""
    message = " ".join(filter(None, (error.context, error.problem))) or "unreadable"
    for pattern, meaning in EXPLANATIONS:
        if found := re.search(pattern, message, re.DOTALL):
            words = [group.strip("'\"") for group in found.groups()]
            return _line(error, at_start="not closed" in meaning), meaning.format(*words)
    return _line(error, at_start=False), f"broken YAML ({message})"


def _line(error: yaml.MarkedYAMLError, at_start: bool) -> int:
    marks = [error.context_mark, error.problem_mark] if at_start else [error.problem_mark, error.context_mark]
    mark = next((mark for mark in marks if mark is not None), None)
    return 1 if mark is None else mark.line + 1
