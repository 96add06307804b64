"""A line of a shell, taken apart: pipelines of commands with what they read from and write to."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Command:
    words: list[str] = field(default_factory=list)
    input: str | None = None  # the file behind <
    output: str | None = None  # the file behind >


def pipelines(line: str) -> Iterator[list[Command]]:
    """The pipelines between && or ;, each the commands between |."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    pipeline = [Command()]
    redirection = ""
    for token in lexer:
        if redirection:
            setattr(pipeline[-1], {"<": "input", ">": "output"}[redirection], token)
            redirection = ""
        elif token in ("<", ">"):
            redirection = token
        elif token == "|":
            pipeline.append(Command())
        elif token in ("&&", ";"):
            yield pipeline
            pipeline = [Command()]
        else:
            pipeline[-1].words.append(token)
    yield pipeline
