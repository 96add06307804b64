"""Tables of files: the text of a file, and what an import makes of it or says of it.

A case is a heading, the file, the files beside it, and what is expected, in a text file:

    ## FORMAT OPTION=VALUE …: what the case shows
    the file, in which | is a tab
    @src
    a file beside it, as an option names it
    => a row or a fact of the campaign; or the beginning of a refusal after "refused: "
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from creamtea.errors import InputError
from creamtea.human.formats.base import ImportFacts
from creamtea.human.formats.exchange import find_format
from creamtea.human.formats.losses import NOTICES
from creamtea.human.formats.rating_rows import RatingRow, error_notices, rows_of

NOW = datetime(2026, 5, 1, tzinfo=UTC)
FILES = ("sources", "documents", "segment_scores", "rater_statistics", "campaign_file")
EXPECTED, BESIDE, HEADING = "=> ", "@", "## "


@dataclass
class Case:
    title: str
    kind: str
    options: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)  # "" is the file itself
    expected: list[str] = field(default_factory=list)


def read_cases(path: Path) -> list[Case]:
    cases: list[Case] = []
    file = ""
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith(HEADING):
            asked, _, title = line.removeprefix(HEADING).partition(": ")
            kind, *options = asked.split()
            given = dict(option.split("=", 1) for option in options)
            cases.append(Case(title, kind, given, {"": ""}))
            file = ""
        elif line.startswith(EXPECTED):
            cases[-1].expected.append(line.removeprefix(EXPECTED))
        elif line.startswith(BESIDE):
            file = line.removeprefix(BESIDE)
            cases[-1].files[file] = ""
        elif cases and line:
            cases[-1].files[file] += f"{line}\n".replace("|", "\t")
    return cases


def outcome(case: Case, folder: Path) -> list[str]:
    """What an import says of the file: its campaign line by line, or why it is refused."""
    for name, text in case.files.items():
        (folder / (name or "scores")).write_text(text, encoding="utf-8")
    try:
        content, not_kept = find_format(case.kind).read(folder / "scores", _facts(case, folder), NOW)
    except InputError as error:
        return [f"refused: {error}"]
    noticed = [part for check in (*NOTICES, error_notices) for part in check(content)]
    rated = {answer.item for answer in content.answers}
    return [
        *(_row(row) for row in rows_of(content)),
        *(
            f"unrated {' '.join(item.systems)} {item.segment} {' '.join(map(repr, item.outputs))}"
            for item in content.items
            if item.position not in rated
        ),
        *(
            f"proposed for {system} {item.segment}: {_spans(spans)}"
            for item in content.items
            for system, spans in (item.proposals or {}).items()
        ),
        *([f"settings {json.dumps(content.settings, ensure_ascii=False)}"] if content.settings else []),
        *(f"{'read as' if part.note else 'lost'}: {part}" for part in not_kept),
        *(f"noticed: {part}" for part in noticed),
    ]


def _facts(case: Case, folder: Path) -> ImportFacts:
    values: dict[str, Any] = {"name": "x", "output_of": {}}
    for name, value in case.options.items():
        if name.isupper():
            values["output_of"][name] = folder / value
        else:
            values[name] = folder / value if name in FILES else int(value) if value.isdecimal() else value
    return ImportFacts(**values)


def _row(row: RatingRow) -> str:
    texts = "" if not row.source and not row.output else f" {row.source!r} {row.output!r}"
    kind = "" if row.kind == "rated" else f" ({row.kind} of {row.original})"
    facts = f"{row.rater} {row.system} {row.segment} {row.document or '-'} {row.value}{kind}{texts}"
    time = "" if row.active_ms is None else f" in {row.active_ms} ms"
    revision = "" if row.revision == 1 and row.counts else f" revision {row.revision}, counts {row.counts}"
    if row.payload and "spans" not in row.payload:
        facts += f" written {row.payload}"
    spans = "" if row.payload is None or "spans" not in row.payload else f": {_spans(row.payload['spans'])}"
    comment = f" comment {row.comment!r}" if row.comment else ""
    return f"{facts}{revision}{comment}{time}{spans}".replace("\n", "␊")


def _spans(spans: list[Mapping[str, Any]]) -> str:
    return "; ".join(map(_span, spans)) or "no errors"


def _span(span: Mapping[str, Any]) -> str:
    behind = f"[{span['special_mark']}]" if "special_mark" in span else "omission"
    place = f"{span['start']}-{span['end']}" if "start" in span else behind
    category = "/".join(span.get("category", ())) or "-"
    return (
        f"{place}{' in source' if span.get('in_source') else ''} {span['severity']} {category}"
        + (f" from {span['proposed']}" if "proposed" in span else "")
        + (f" costs {span['cost']}" if "cost" in span else "")
    )
